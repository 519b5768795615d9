// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Parameters of connections, for conn_fuzz.cc: those that are accepted, and a
// few that are not.

#ifndef LAWN_TEST_FUZZ_CONN_PARAMS_H
#define LAWN_TEST_FUZZ_CONN_PARAMS_H

#include "input.h"

#include <lawn/conn.h>

#include <cmath>
#include <cstring>

namespace fuzz
{

constexpr lawn_time_t usec = 1000; // a tick is a nanosecond
constexpr lawn_time_t sec = 1000000 * usec;

// Deadlines after it never come.
constexpr lawn_time_t last_time = LAWN_TIME_INFINITY - 2;

inline lawn_time_t add(lawn_time_t a, lawn_time_t b)
{
    return a > last_time || b > last_time - a ? LAWN_TIME_INFINITY : a + b;
}

inline bool params_are_valid(const lawn_conn_params_t &p)
{
    if (!std::isfinite(p.backoff) || p.backoff < 1) {
        return false;
    }
    if (!std::isfinite(p.rto_jitter) || p.rto_jitter < 0 || p.rto_jitter > 1) {
        return false;
    }
    if (p.rto_fixed == 0 && (p.rto_initial == 0 || p.rto_max == 0)) {
        return false;
    }
    if (p.keepalive_idle != 0 &&
        (p.keepalive_probes == 0 || p.keepalive_interval == 0)) {
        return false;
    }
    return p.rto_min <= p.rto_max;
}

// What holds if none are given.
inline lawn_conn_params_t default_params()
{
    lawn_conn_params_t p = {};
    p.rto_initial = sec / 10;
    p.rto_max = 10 * sec;
    p.backoff = 2;
    p.peer_timeout = 30 * sec;
    p.keepalive_idle = 5 * sec;
    p.keepalive_interval = sec;
    p.keepalive_probes = 3;
    p.keepalive_jitter = sec;
    return p;
}

// Zeros fill what is between the fields of both.
inline bool are_equal(const lawn_conn_params_t &a, const lawn_conn_params_t &b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

inline void spoil(lawn_conn_params_t *p, Input *input)
{
    static constexpr double odd[] = {0, 0.999, -2, NAN, INFINITY, 1e300, 1};
    p->rto_initial = input->number();
    p->rto_max = input->number();
    const unsigned which = input->byte();
    (which & 8 ? p->rto_jitter : p->backoff) = odd[which % 7];
}

// Accepted ones, but for a few.
inline lawn_conn_params_t make_params(Input *input)
{
    const unsigned which = input->byte();
    lawn_conn_params_t p;
    memset(&p, 0, sizeof(p));
    p.rto_initial = add(1, input->number());
    p.rto_max = add(p.rto_initial, input->number());
    p.rto_min = which & 1 ? input->number() : 0;
    p.rto_fixed = which & 2 ? input->number() : 0;
    const unsigned how = input->byte();
    p.backoff = 1 + how % 32 / 8.0;
    p.rto_jitter = how & 32 ? input->byte() / 255.0 : 0;
    p.jitter_seed = how & 64 ? 1 + how / 128 : 0;
    p.max_retries = which & 4 ? input->byte() % 16 : 0;
    p.peer_timeout = which & 8 ? input->number() : 0;
    if (which & 16) {
        p.keepalive_idle = input->number();
        p.keepalive_interval = input->number();
        p.keepalive_probes = input->byte() % 4;
        p.keepalive_jitter = which & 32 ? input->number() : 0;
    }
    if ((which & 0xc0) == 0xc0) {
        spoil(&p, input);
    }
    return p;
}

} // namespace fuzz

#endif
