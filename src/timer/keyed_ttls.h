// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The TTLHash of the Lawn paper, for lawn/keyed.h: which TTLs are in use, and
// the queue of each that timers share.
//
// A timer that is alone with its TTL is in the hash itself, and in no queue.
// When a second one comes, both become members of a group, which takes its
// place in the hash and has a queue. The first stays where it is in the lawn
// until it is started again: as the queue is in the order of the starts, it
// would be the head, and nothing is won by moving it there. The last member to
// leave closes the queue. Where no group is to be had, the second and those
// after it are strays, which only the lawn knows.

#ifndef LAWN_SRC_TIMER_KEYED_TTLS_H
#define LAWN_SRC_TIMER_KEYED_TTLS_H

#include "base/mix.h"
#include "timer/queue.h"

namespace lawn
{

struct Group;

// Of a timer, or of a group.
struct Ttl {
    lawn_time_t value;
    Ttl *next;    // in its bucket
    Group *group; // NULL: alone
};

// Timers that share a TTL.
struct Group {
    Ttl ttl; // first; its group is this
    size_t members;
    Queue queue;
};

struct Ttls {
    lawn_t *lawn;
    Ttl **buckets;
    size_t bucket_mask;
    Group *free; // by ttl.group
    Group strays;
};

inline Ttl **bucket_of(const Ttls *ttls, lawn_time_t value)
{
    return &ttls->buckets[mix64(value) & ttls->bucket_mask];
}

// Lets a group be used.
void give_group(Ttls *ttls, Group *group);

// Moves everything to other, empty buckets.
void rehash_ttls(Ttls *ttls, Ttl **buckets, size_t bucket_count);

// Enters a TTL that is nowhere.
void add_ttl(Ttls *ttls, Ttl *ttl, lawn_time_t value);

// Takes out a TTL that is alone.
void remove_ttl(Ttls *ttls, const Ttl *ttl);

// Tells a group that it has a member less; it may be closed by that. The
// member's timer must not be in its queue any more.
void leave_group(Ttls *ttls, Group *group);

// Closes the queues of all groups.
void close_groups(Ttls *ttls);

} // namespace lawn

#endif
