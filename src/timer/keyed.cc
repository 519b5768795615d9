// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers by number: nodes from a pool, found by a chained hash of their id,
// each embedding a timer of the lawn below.

#include "base/mix.h"
#include "timer/lawn_impl.h"

#include <lawn/keyed.h>

namespace
{

struct Node {
    lawn_timer_t timer; // first: the callback's timer is its node
    lawn_keyed_t *keyed;
    uint64_t id;
    void *payload;
    Node *next; // in its bucket, or in the free list
};

// Nodes are allocated by the slab, so that they never move.
struct Slab {
    Slab *next;
    Node nodes[1];
};

} // namespace

struct lawn_keyed {
    lawn_t *lawn;
    lawn_keyed_fn_t expired;
    void *arg;
    size_t count;
    size_t capacity; // nodes in the slabs, running or free
    size_t bucket_mask;
    Node **buckets; // as many as the least power of two >= capacity
    Node *free;
    Slab *slabs;
};

namespace
{

using namespace lawn;

Node **bucket_of(lawn_keyed_t *keyed, uint64_t id)
{
    return &keyed->buckets[mix64(id) & keyed->bucket_mask];
}

// The link that points at `id`'s node, or the null one at its bucket's end.
Node **find(lawn_keyed_t *keyed, uint64_t id)
{
    Node **place = bucket_of(keyed, id);
    while (*place && (*place)->id != id) {
        place = &(*place)->next;
    }
    return place;
}

// Takes the node out of the table and frees it; its fields stay readable.
void forget(Node **place)
{
    Node *const node = *place;
    lawn_keyed_t *const keyed = node->keyed;
    *place = node->next;
    node->next = keyed->free;
    keyed->free = node;
    --keyed->count;
}

void on_expired(lawn_timer_t *timer, lawn_time_t now)
{
    const Node *const node = reinterpret_cast<Node *>(timer);
    lawn_keyed_t *const keyed = node->keyed;
    const uint64_t id = node->id;
    void *const payload = node->payload;
    forget(find(keyed, id));
    if (keyed->expired) {
        keyed->expired(keyed->arg, id, payload, now);
    }
}

// Adds room for `more` nodes, and buckets for all: both or neither.
bool grow(lawn_keyed_t *keyed, size_t more)
{
    const lawn_allocator_t &allocator = impl_of(keyed->lawn)->allocator;
    if (more > SIZE_MAX / 4 / sizeof(Node) - keyed->capacity) {
        return false;
    }
    const size_t capacity = keyed->capacity + more;
    size_t bucket_count = 1;
    while (bucket_count < capacity) {
        bucket_count *= 2;
    }
    Slab *const slab = static_cast<Slab *>(
        allocate(allocator, sizeof(Slab) + (more - 1) * sizeof(Node)));
    Node **const buckets = static_cast<Node **>(
        allocate(allocator, bucket_count * sizeof(Node *)));
    if (!slab || !buckets) {
        release(allocator, slab);
        release(allocator, buckets);
        return false;
    }
    for (size_t i = 0; i < bucket_count; ++i) {
        buckets[i] = nullptr;
    }
    Node **const old_buckets = keyed->buckets;
    const size_t old_count = old_buckets ? keyed->bucket_mask + 1 : 0;
    keyed->buckets = buckets;
    keyed->bucket_mask = bucket_count - 1;
    for (size_t i = 0; i < old_count; ++i) {
        while (Node *const node = old_buckets[i]) {
            old_buckets[i] = node->next;
            Node **const bucket = bucket_of(keyed, node->id);
            node->next = *bucket;
            *bucket = node;
        }
    }
    release(allocator, old_buckets);
    slab->next = keyed->slabs;
    keyed->slabs = slab;
    for (size_t i = more; i-- > 0;) {
        Node *const node = &slab->nodes[i];
        lawn_timer_init(&node->timer, on_expired);
        node->keyed = keyed;
        node->next = keyed->free;
        keyed->free = node;
    }
    keyed->capacity = capacity;
    return true;
}

} // namespace

lawn_status_t lawn_keyed_create(lawn_t *lawn, size_t capacity_hint,
                                lawn_keyed_t **keyed_p)
{
    if (!lawn || !keyed_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_keyed_t *const keyed = static_cast<lawn_keyed_t *>(
        allocate(impl_of(lawn)->allocator, sizeof(lawn_keyed_t)));
    if (!keyed) {
        return LAWN_ERR_NO_MEMORY;
    }
    *keyed = {};
    keyed->lawn = lawn;
    if (!grow(keyed, capacity_hint ? capacity_hint : 1)) {
        release(impl_of(lawn)->allocator, keyed);
        return LAWN_ERR_NO_MEMORY;
    }
    *keyed_p = keyed;
    return LAWN_OK;
}

void lawn_keyed_destroy(lawn_keyed_t *keyed)
{
    if (!keyed) {
        return;
    }
    const lawn_allocator_t &allocator = impl_of(keyed->lawn)->allocator;
    for (size_t i = 0; i <= keyed->bucket_mask; ++i) {
        for (Node *node = keyed->buckets[i]; node; node = node->next) {
            lawn_timer_stop(keyed->lawn, &node->timer);
        }
    }
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
        if (!keyed->free && !grow(keyed, keyed->capacity)) {
            return LAWN_ERR_NO_MEMORY;
        }
        node = keyed->free;
        LAWN_ASSERT(node);
        keyed->free = node->next;
        node->id = id;
        Node **const bucket = bucket_of(keyed, id);
        node->next = *bucket;
        *bucket = node;
        ++keyed->count;
    }
    node->payload = payload;
    lawn_timer_start(keyed->lawn, &node->timer, now, ttl);
    return LAWN_OK;
}

lawn_status_t lawn_keyed_stop(lawn_keyed_t *keyed, uint64_t id,
                              void **payload_p)
{
    Node **const place = find(keyed, id);
    if (!*place) {
        return LAWN_ERR_NO_ELEM;
    }
    // Not running although it is in the table: the lawn was drained.
    const bool was_running = lawn_timer_stop(keyed->lawn, &(*place)->timer);
    if (was_running && payload_p) {
        *payload_p = (*place)->payload;
    }
    forget(place);
    return was_running ? LAWN_OK : LAWN_ERR_NO_ELEM;
}

size_t lawn_keyed_count(const lawn_keyed_t *keyed)
{
    return keyed->count;
}
