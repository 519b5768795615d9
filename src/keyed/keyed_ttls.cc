// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Decides which TTLs get a queue, and opens and closes these queues
// (keyed_ttls.h).

#include "keyed/keyed_ttls.h"

namespace lawn
{

namespace
{

size_t place_of(const Ttls *ttls, lawn_time_t ttl)
{
    return mix64(ttl) & ttls->mask;
}

Share *find(const Ttls *ttls, size_t place, lawn_time_t ttl)
{
    Share *share = ttls->buckets[place];
    while (share && share->queue.ttl != ttl) {
        share = share->next;
    }
    return share;
}

// Returns whether the timer that was last started with this TTL still runs with
// it. From now on `member` is the one that was last started.
bool is_shared(Recent *recent, const Member *member, lawn_time_t ttl)
{
    const unsigned i = recent->ttl[0] == ttl ? 0 : 1;
    const Member *const other =
        recent->ttl[i] == ttl ? recent->member[i] : nullptr;
    if (i != 0) {
        recent->ttl[1] = recent->ttl[0];
        recent->member[1] = recent->member[0];
        recent->ttl[0] = ttl;
    }
    recent->member[0] = member;
    return other && other->ttl == ttl && lawn_timer_is_active(&other->timer);
}

Share *open_share(Ttls *ttls, size_t place, lawn_time_t ttl)
{
    Share *const share = ttls->free;
    ttls->free = share->next;
    share->next = ttls->buckets[place];
    ttls->buckets[place] = share;
    share->members = 0;
    queue_open(&share->queue, ttls->lawn, ttl);
    return share;
}

LAWN_COLD_PATH void close_share(Ttls *ttls, Share *share)
{
    Share **link = &ttls->buckets[place_of(ttls, share->queue.ttl)];
    while (*link != share) {
        link = &(*link)->next;
    }
    *link = share->next;
    queue_close(&share->queue);
    ttls_give(ttls, share);
}

void let_go(Ttls *ttls, Share *share)
{
    if (share && --share->members == 0) {
        close_share(ttls, share);
    }
}

} // namespace

void ttls_use(Ttls *ttls, Share **buckets, Recent *recents, size_t count)
{
    Share **const old_buckets = ttls->buckets;
    const size_t old_count = old_buckets ? ttls->mask + 1 : 0;
    for (size_t i = 0; i < count; ++i) {
        buckets[i] = nullptr;
        recents[i] = {};
    }
    ttls->mask = count - 1;
    ttls->buckets = buckets;
    ttls->recents = recents;
    for (size_t i = 0; i < old_count; ++i) {
        while (Share *const share = old_buckets[i]) {
            old_buckets[i] = share->next;
            Share **const bucket = &buckets[place_of(ttls, share->queue.ttl)];
            share->next = *bucket;
            *bucket = share;
        }
    }
}

void ttls_give(Ttls *ttls, Share *share)
{
    share->next = ttls->free;
    ttls->free = share;
}

void ttls_start(Ttls *ttls, Member *member, lawn_time_t now, lawn_time_t ttl)
{
    Share *const left = member->share;
    Share *share = left;
    // A re-arm with the same TTL stays in its queue or slot. In a slot it costs
    // one store.
    if (!is_linked(&member->timer) || member->ttl != ttl) {
        const size_t place = place_of(ttls, ttl);
        share = find(ttls, place, ttl);
        if (!share && ttls->free &&
            is_shared(&ttls->recents[place], member, ttl)) {
            share = open_share(ttls, place, ttl);
        }
        member->ttl = ttl;
        member->share = share;
    }
    if (!share) {
        lawn_timer_start(ttls->lawn, &member->timer, now, ttl);
    } else {
        lawn_queue_start(&share->queue, &member->timer, now);
    }
    if (share != left) {
        if (share) {
            ++share->members;
        }
        let_go(ttls, left); // after the timer has left its queue
    }
}

void ttls_leave(Ttls *ttls, Member *member)
{
    Share *const share = member->share;
    member->share = nullptr;
    let_go(ttls, share);
}

void ttls_close(Ttls *ttls)
{
    for (size_t i = 0; i <= ttls->mask; ++i) {
        while (Share *const share = ttls->buckets[i]) {
            close_share(ttls, share);
        }
    }
}

} // namespace lawn
