// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a connection learns from its path, for conn_fuzz.cc. The estimator is
// not modelled: SRTT and RTTVAR are read from the connection. They, and all
// that follows from them, must lie between bounds that follow from the least
// and the greatest round trip. src/conn/rto.h and doc/design.md have the
// estimator.

#ifndef LAWN_TEST_FUZZ_CONN_PATH_H
#define LAWN_TEST_FUZZ_CONN_PATH_H

#include "conn_params.h"

#include <algorithm>

namespace fuzz
{

struct Bounds {
    lawn_time_t least;
    lawn_time_t most;

    bool hold(lawn_time_t time) const
    {
        return time >= least && time <= most;
    }
};

inline Bounds earlier_of(Bounds a, Bounds b)
{
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
}

inline Bounds after(lawn_time_t from, Bounds span)
{
    return {add(from, span.least), add(from, span.most)};
}

inline lawn_conn_stats_t stats_of(const lawn_conn_t *conn)
{
    lawn_conn_stats_t stats;
    lawn_conn_query(conn, &stats);
    return stats;
}

struct Path {
    bool is_measured = false;
    uint64_t samples = 0;
    uint64_t in_order = 0; // since an answer was overtaken by a later one
    lawn_time_t least = LAWN_TIME_INFINITY; // round trip
    lawn_time_t most = 0;
    lawn_time_t srtt = 0; // as lawn_conn_query() tells, so rounded down
    lawn_time_t rttvar = 0;

    // SRTT is an average of what was measured, RTTVAR one of the differences to
    // it, but begins as half of the first. Both round by less than a tick. A
    // round trip beyond 2^56 may count as that.
    void measure(lawn_time_t rtt, bool is_overtaken, lawn_conn_stats_t stats)
    {
        const lawn_time_t r = std::min(rtt, lawn_time_t{1} << 56);
        least = std::min(least, r);
        most = std::max({most, rtt, lawn_time_t{1}});
        ++samples;
        in_order = is_overtaken ? 0 : in_order + 1;
        srtt = stats.srtt;
        rttvar = stats.rttvar;
        FUZZ_CHECK((Bounds{least, most}.hold(srtt)));
        FUZZ_CHECK(rttvar <= std::max(most / 2, most - least) + 1);
        if (!is_measured) {
            FUZZ_CHECK(srtt == std::max(r, lawn_time_t{1}));
            FUZZ_CHECK(rttvar == srtt / 2);
        }
        is_measured = true;
    }

    // The latest sample came so many times more.
    void repeat(unsigned times)
    {
        samples += times;
        in_order += in_order == 0 ? 0 : times;
    }

    // The greatest margin that errors (sample - SRTT) can ask for: 5/4 of the
    // greatest, which is rounded up by less than a thousandth.
    lawn_time_t greatest_margin() const
    {
        const lawn_time_t error = is_measured ? most - least : 0;
        return add(error, error / 4 + error / 256 + 2);
    }

    // RFC 6298, 2.3, but the margin is at least a quarter of SRTT and a
    // microsecond, and at most what the greatest error asks for. Four times
    // RTTVAR is told without its last two bits.
    Bounds rto() const
    {
        const lawn_time_t margin = std::max(usec, srtt / 4);
        return {
            srtt + std::max(margin, 4 * rttvar),
            add(srtt, std::max({margin, 4 * rttvar + 3, greatest_margin()}))};
    }

    // How old what was overtaken is when it is lost. The greatest round trip of
    // late, rounded up, may ask for more than SRTT does, and errors may if an
    // answer was overtaken. If none was in the latest samples, it is lost at
    // once: after 128 in all, or after the window of 4096 that follows the
    // latest such one.
    Bounds evidence_age() const
    {
        const bool was_overtaken = in_order != samples;
        const lawn_time_t margin = std::max(usec, srtt / 8);
        const lawn_time_t errors = was_overtaken ? greatest_margin() : 0;
        const Bounds few =
            was_overtaken ? Bounds{4096, 8200} : Bounds{128, 136};
        return {in_order >= few.least ? 0 : srtt + margin,
                in_order >= few.most
                    ? 0
                    : std::max(add(srtt, std::max(margin, errors)),
                               add(most, most / 32 + most / 512 + 2))};
    }

    // And when the peer is asked.
    Bounds ask_age() const
    {
        const lawn_time_t margin = std::max(usec, srtt / 4);
        return {srtt + std::max(margin, 4 * rttvar),
                srtt + std::max(margin, 4 * rttvar + 3)};
    }
};

} // namespace fuzz

#endif
