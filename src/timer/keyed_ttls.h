// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The TTLHash of the Lawn paper, for lawn/keyed.h: the queues of the TTLs that
// several timers share.
//
// Most TTLs may belong to one timer each, and those must not pay for a hash
// with all of them: it would be two cache misses a life. So the hash has the
// queues only, and a small cache of the latest TTLs, which forgets the oldest,
// tells which ones are worth one: the timer that was last started with a TTL
// still runs when the next one comes. A TTL that the cache forgets before that
// is too rare for a queue to be of use.

#ifndef LAWN_SRC_TIMER_KEYED_TTLS_H
#define LAWN_SRC_TIMER_KEYED_TTLS_H

#include "base/mix.h"
#include "timer/queue.h"

namespace lawn
{

// A queue that is in use, or free.
struct Share {
    Queue queue;    // its TTL is the key
    size_t members; // timers that are to leave
    Share *next;    // in its bucket, or in the free list
};

// A timer that counts for a TTL.
struct Member {
    lawn_timer_t timer; // first
    lawn_time_t ttl;    // of the latest start
    Share *share;       // NULL: in no queue
};

// The latest two of the TTLs that fall here, the latest first. A member is
// never freed before the cache, but may be idle or have another TTL by now.
struct Recent {
    lawn_time_t ttl[2];
    const Member *member[2]; // NULL: none
};

struct Ttls {
    lawn_t *lawn;
    size_t mask; // of buckets and of recents, as many each
    Share **buckets;
    Recent *recents;
    Share *free;
};

// Makes `count` buckets and recents, a power of two, those in use. What was
// in use before is the caller's again.
void ttls_use(Ttls *ttls, Share **buckets, Recent *recents, size_t count);

// Lets a share be used.
void ttls_give(Ttls *ttls, Share *share);

// Starts the timer with the TTL, in the TTL's queue if it has one.
void ttls_start(Ttls *ttls, Member *member, lawn_time_t now, lawn_time_t ttl);

// Tells that a member, which is idle now, counts no more. The last one to leave
// closes its queue.
void ttls_leave(Ttls *ttls, Member *member);

// Closes all queues. Their timers become idle.
void ttls_close(Ttls *ttls);

} // namespace lawn

#endif
