// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What connections share: their parameters, their ops and their engine. A
// program opens most of its connections with equal ones, so these are kept once
// for each engine. They are found by a hash. When the last connection that has
// them is closed, they are kept until that happens to others.

#ifndef LAWN_SRC_CONN_PROFILE_H
#define LAWN_SRC_CONN_PROFILE_H

#include <lawn/conn.h>

#include <stddef.h>

struct lawn_conn_profile {
    // What each ACK needs. A fixed RTO is the least and the greatest one.
    lawn_t *lawn;
    lawn_engine_t *engine;
    lawn_time_t rto_min;
    lawn_time_t rto_limit; // the lesser of the next two
    bool rto_is_first;     // no jitter, and no RTO above the peer timeout
    bool is_plain;         // the same, and no `ask`
    lawn_time_t rto_max;
    lawn_time_t rto_share;    // of the peer timeout; INFINITY: none
    lawn_time_t peer_timeout; // INFINITY: none
    lawn_time_t granularity;  // of a measured round trip
    uint64_t seed;            // of jitters
    lawn_conn_params_t params;
    lawn_conn_ops_t ops;
    size_t connections;
    uint64_t hash;
    lawn_conn_profile *next; // in its bucket
};

namespace lawn
{

// Returns the profile of the engine that is equal to these, counted once more,
// or nullptr without memory.
lawn_conn_profile *share_profile(lawn_engine_t *engine,
                                 const lawn_conn_params_t &params,
                                 const lawn_conn_ops_t &ops);

// Undoes one share_profile().
void unshare_profile(lawn_conn_profile *profile);

} // namespace lawn

#endif
