// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers by number (lawn/keyed.h). This is the TimerHash of the Lawn paper:
// nodes come from a pool and are found by a chained hash of their ids.
// keyed_ttls.h has the paper's TTLHash.

#include "base/mix.h"
#include "keyed/keyed_ttls.h"

#include <lawn/keyed.h>

#include <stddef.h>

namespace
{

using namespace lawn;

struct Node {
    Member member; // first, so that a callback's timer can be cast
    lawn_keyed_t *keyed;
    uint64_t id;
    void *payload;
    Node *next; // in its bucket, in the free list, or in `cleared`
};

// Nodes are allocated in slabs, so that a node never moves. The shares of a
// slab stand behind its nodes.
struct Slab {
    Slab *next;
    Node nodes[1];
};

// How many TTLs may have a queue at a time. Queues that have only a few timers
// each cost more than they save.
constexpr size_t least_shares = 16;
constexpr size_t nodes_per_share = 64;

} // namespace

struct lawn_keyed {
    lawn_t *lawn;
    lawn_keyed_fn_t expired;
    void *arg;
    size_t count;
    size_t capacity; // nodes in the slabs, running or free
    size_t bucket_mask;
    // As many as the least power of two >= capacity. The arrays of `ttls` stand
    // behind them.
    Node **buckets;
    Node *free;
    Node *cleared; // stopped, but not handed over yet
    Slab *slabs;
    Ttls ttls;
};

namespace
{

Node **bucket_of(const lawn_keyed_t *keyed, uint64_t id)
{
    return &keyed->buckets[mix64(id) & keyed->bucket_mask];
}

// Returns the link that points to the node of `id`, or the null link at the end
// of the bucket. Every node in the table runs.
Node **find(const lawn_keyed_t *keyed, uint64_t id)
{
    Node **place = bucket_of(keyed, id);
    while (*place && (*place)->id != id) {
        place = &(*place)->next;
    }
    return place;
}

// Takes a node out of the table. Its timer is idle.
void leave(lawn_keyed_t *keyed, Node **place)
{
    Node *const node = *place;
    *place = node->next;
    --keyed->count;
    ttls_leave(&keyed->ttls, &node->member);
}

// Frees a node that is out of the table. Its fields stay readable.
void give_back(lawn_keyed_t *keyed, Node *node)
{
    node->next = keyed->free;
    keyed->free = node;
}

void forget(lawn_keyed_t *keyed, Node **place)
{
    Node *const node = *place;
    leave(keyed, place);
    give_back(keyed, node);
}

void on_member_expired(lawn_timer_t *timer, lawn_time_t now)
{
    const Node *const node = reinterpret_cast<Node *>(timer);
    lawn_keyed_t *const keyed = node->keyed;
    const uint64_t id = node->id;
    void *const payload = node->payload;
    forget(keyed, find(keyed, id));
    if (keyed->expired) {
        keyed->expired(keyed->arg, id, payload, now);
    }
}

const Node *node_of(const lawn_timer_t *timer)
{
    return timer->expired == on_member_expired
               ? reinterpret_cast<const Node *>(timer)
               : nullptr;
}

void on_member_drain(lawn_timer_t *timer)
{
    const Node *const node = reinterpret_cast<const Node *>(timer);
    forget(node->keyed, find(node->keyed, node->id));
}

size_t power_of_two_from(size_t least)
{
    size_t power = 1;
    while (power < least) {
        power *= 2;
    }
    return power;
}

void use_buckets(lawn_keyed_t *keyed, Node **buckets, size_t count)
{
    Node **const old_buckets = keyed->buckets;
    const size_t old_count = old_buckets ? keyed->bucket_mask + 1 : 0;
    for (size_t i = 0; i < count; ++i) {
        buckets[i] = nullptr;
    }
    keyed->buckets = buckets;
    keyed->bucket_mask = count - 1;
    for (size_t i = 0; i < old_count; ++i) {
        while (Node *const node = old_buckets[i]) {
            old_buckets[i] = node->next;
            Node **const bucket = bucket_of(keyed, node->id);
            node->next = *bucket;
            *bucket = node;
        }
    }
}

void use_slab(lawn_keyed_t *keyed, Slab *slab, size_t nodes, size_t shares)
{
    slab->next = keyed->slabs;
    keyed->slabs = slab;
    for (size_t i = nodes; i-- > 0;) {
        Node *const node = &slab->nodes[i];
        *node = {};
        lawn_timer_init(&node->member.timer, on_member_expired);
        node->keyed = keyed;
        node->next = keyed->free;
        keyed->free = node;
    }
    Share *const share = reinterpret_cast<Share *>(&slab->nodes[nodes]);
    for (size_t i = shares; i-- > 0;) {
        ttls_give(&keyed->ttls, &share[i]);
    }
    keyed->capacity += nodes;
}

// Adds room for `more` nodes, and makes enough buckets for all nodes. If it
// returns false, nothing has changed.
bool grow(lawn_keyed_t *keyed, size_t more)
{
    const lawn_allocator_t &allocator = allocator_of(keyed->lawn);
    if (more > SIZE_MAX / 8 / sizeof(Node) - keyed->capacity) {
        return false;
    }
    const size_t buckets = power_of_two_from(keyed->capacity + more);
    const size_t places = buckets > least_shares * nodes_per_share
                              ? buckets / nodes_per_share
                              : least_shares;
    const size_t shares =
        more / nodes_per_share + (keyed->slabs ? 0 : least_shares);
    Slab *const slab = static_cast<Slab *>(
        allocate(allocator, offsetof(Slab, nodes) + more * sizeof(Node) +
                                shares * sizeof(Share)));
    void *const table =
        allocate(allocator, buckets * sizeof(Node *) +
                                places * (sizeof(Share *) + sizeof(Recent)));
    if (!slab || !table) {
        release(allocator, slab);
        release(allocator, table);
        return false;
    }
    void *const old_table = keyed->buckets;
    Node **const of_ids = static_cast<Node **>(table);
    Share **const of_ttls = reinterpret_cast<Share **>(of_ids + buckets);
    use_buckets(keyed, of_ids, buckets);
    ttls_use(&keyed->ttls, of_ttls,
             reinterpret_cast<Recent *>(of_ttls + places), places);
    release(allocator, old_table);
    use_slab(keyed, slab, more, shares);
    return true;
}

// Adds a node for an id that has none. Returns NULL if there is no memory.
Node *add(lawn_keyed_t *keyed, uint64_t id)
{
    if (!keyed->free && !grow(keyed, keyed->capacity)) {
        return nullptr;
    }
    Node *const node = keyed->free;
    LAWN_ASSERT(node);
    keyed->free = node->next;
    node->id = id;
    Node **const bucket = bucket_of(keyed, id);
    node->next = *bucket;
    *bucket = node;
    ++keyed->count;
    return node;
}

} // namespace

lawn_status_t lawn_keyed_create(lawn_t *lawn, size_t capacity_hint,
                                lawn_keyed_t **keyed_p)
{
    if (!lawn || !keyed_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_keyed_t *const keyed = static_cast<lawn_keyed_t *>(
        allocate(allocator_of(lawn), sizeof(lawn_keyed_t)));
    if (!keyed) {
        return LAWN_ERR_NO_MEMORY;
    }
    *keyed = {};
    keyed->lawn = lawn;
    keyed->ttls.lawn = lawn;
    if (!grow(keyed, capacity_hint ? capacity_hint : 1)) {
        release(allocator_of(lawn), keyed);
        return LAWN_ERR_NO_MEMORY;
    }
    set_kind(lawn, kind_keyed,
             {on_member_expired, true, on_member_drain, nullptr});
    *keyed_p = keyed;
    return LAWN_OK;
}

void lawn_keyed_destroy(lawn_keyed_t *keyed)
{
    if (!keyed) {
        return;
    }
    const lawn_allocator_t &allocator = allocator_of(keyed->lawn);
    for (size_t i = 0; i <= keyed->bucket_mask; ++i) {
        for (Node *node = keyed->buckets[i]; node; node = node->next) {
            lawn_timer_stop(keyed->lawn, &node->member.timer);
        }
    }
    ttls_close(&keyed->ttls);
    while (Slab *const slab = keyed->slabs) {
        keyed->slabs = slab->next;
        release(allocator, slab);
    }
    release(allocator, keyed->buckets);
    release(allocator, keyed);
}

void lawn_keyed_set_expired(lawn_keyed_t *keyed, lawn_keyed_fn_t expired,
                            void *arg)
{
    keyed->expired = expired;
    keyed->arg = arg;
}

lawn_status_t lawn_keyed_start(lawn_keyed_t *keyed, lawn_time_t now,
                               lawn_time_t ttl, uint64_t id, void *payload)
{
    Node *node = *find(keyed, id);
    if (!node) {
        node = add(keyed, id);
        if (!node) {
            return LAWN_ERR_NO_MEMORY;
        }
    }
    node->payload = payload;
    ttls_start(&keyed->ttls, &node->member, now, ttl);
    return LAWN_OK;
}

lawn_status_t lawn_keyed_stop(lawn_keyed_t *keyed, uint64_t id,
                              void **payload_p)
{
    Node **const place = find(keyed, id);
    Node *const node = *place;
    if (!node) {
        return LAWN_ERR_NO_ELEM;
    }
    lawn_timer_stop(keyed->lawn, &node->member.timer);
    if (payload_p) {
        *payload_p = node->payload;
    }
    forget(keyed, place);
    return LAWN_OK;
}

bool lawn_keyed_is_active(const lawn_keyed_t *keyed, uint64_t id)
{
    return *find(keyed, id) != nullptr;
}

lawn_time_t lawn_keyed_deadline(const lawn_keyed_t *keyed, uint64_t id)
{
    const Node *const node = *find(keyed, id);
    return node ? lawn_timer_deadline(&node->member.timer) : LAWN_TIME_INFINITY;
}

size_t lawn_keyed_count(const lawn_keyed_t *keyed)
{
    return keyed->count;
}

void lawn_keyed_for_each(lawn_keyed_t *keyed,
                         void (*each)(void *arg, uint64_t id, void *payload,
                                      lawn_time_t deadline),
                         void *arg)
{
    for (size_t i = 0; i <= keyed->bucket_mask; ++i) {
        for (Node *node = keyed->buckets[i]; node;) {
            Node *const next = node->next; // `each` may stop this id
            each(arg, node->id, node->payload,
                 lawn_timer_deadline(&node->member.timer));
            node = next;
        }
    }
}

size_t lawn_keyed_clear(lawn_keyed_t *keyed, lawn_keyed_fn_t each, void *arg)
{
    for (size_t i = 0; i <= keyed->bucket_mask; ++i) {
        while (Node *const node = keyed->buckets[i]) {
            lawn_timer_stop(keyed->lawn, &node->member.timer);
            leave(keyed, &keyed->buckets[i]);
            node->next = keyed->cleared;
            keyed->cleared = node;
        }
    }
    size_t count = 0;
    while (Node *const node = keyed->cleared) {
        keyed->cleared = node->next;
        const uint64_t id = node->id;
        void *const payload = node->payload;
        give_back(keyed, node);
        ++count;
        if (each) {
            each(arg, id, payload, lawn_now(keyed->lawn));
        }
    }
    return count;
}

lawn_keyed_t *lawn_keyed_identify(const lawn_timer_t *timer, uint64_t *id_p,
                                  void **payload_p)
{
    const Node *const node = node_of(timer);
    if (!node) {
        return nullptr;
    }
    if (id_p) {
        *id_p = node->id;
    }
    if (payload_p) {
        *payload_p = node->payload;
    }
    return node->keyed;
}
