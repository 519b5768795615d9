// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The TTLHash of the Lawn paper, for lawn/keyed.h. It holds the queues of the
// TTLs that several timers share.
//
// If most TTLs belong to one timer each, a hash of all TTLs would cost each
// timer two cache misses per life. So the hash holds only the queues. A small
// cache of the latest TTLs decides which TTL gets a queue: if the last timer
// that was started with a TTL still runs when the next one starts, the TTL gets
// a queue. The cache forgets the oldest TTLs. If it forgets a TTL before the
// next timer starts, the TTL is too rare for a queue to be useful.

#ifndef LAWN_SRC_KEYED_TTLS_H
#define LAWN_SRC_KEYED_TTLS_H

#include "base/mix.h"
#include "timer/inside.h"
#include "timer/queue.h"

namespace lawn
{

// A queue that is in use, or free.
struct Share {
    Queue queue;    // its TTL is the key
    size_t members; // members that have not left
    Share *next;    // in its bucket, or in the free list
};

// A timer of a table, which may be in a share.
struct Member {
    lawn_timer_t timer; // first, so that a timer can be cast
    lawn_time_t ttl;    // of the latest start
    Share *share;       // NULL: in no queue
};

// The latest two TTLs that hash to this place, the latest first. A member is
// never freed before the cache. It may be idle by now, or have another TTL.
struct Recent {
    lawn_time_t ttl[2];
    const Member *member[2]; // NULL: none
};

struct Ttls {
    lawn_t *lawn;
    size_t mask; // of `buckets` and of `recents`: both have one size
    Share **buckets;
    Recent *recents;
    Share *free;
};

// Uses the arrays `buckets` and `recents` from now on. Both have `count`
// elements, a power of two. The arrays that were used before belong to the
// caller again.
void ttls_use(Ttls *ttls, Share **buckets, Recent *recents, size_t count);

// Adds a share to the free ones.
void ttls_give(Ttls *ttls, Share *share);

// Starts the timer with the TTL. If the TTL has a queue or deserves one, the
// timer enters the queue.
void ttls_start(Ttls *ttls, Member *member, lawn_time_t now, lawn_time_t ttl);

// Takes an idle member out of its share. When the last member leaves, the queue
// is closed.
void ttls_leave(Ttls *ttls, Member *member);

// Closes all queues. Their timers become idle.
void ttls_close(Ttls *ttls);

} // namespace lawn

#endif
