// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of RFC 6298, "Computing TCP's Retransmission Timer", on ticks,
// for conn.cc. These are pure functions, so that they can be checked against
// the RFC by hand. Intermediate values have 128 bits, so nothing overflows.
// Results saturate.

#ifndef LAWN_SRC_CONN_RTO_H
#define LAWN_SRC_CONN_RTO_H

#include <lawn/time.h>

namespace lawn
{

__extension__ typedef unsigned __int128 uint128;

// If `srtt` is 0, nothing was measured.
struct Rtt {
    lawn_time_t srtt;
    lawn_time_t rttvar;
};

// Takes the round trip `r`, which is not 0, into the averages. RFC 6298, 2.2
// for the first sample, else 2.3: alpha is 1/8, beta 1/4. Both averages are
// rounded to the nearest tick. SRTT does not become 0.
inline Rtt rtt_update(Rtt rtt, lawn_time_t r)
{
    if (rtt.srtt == 0) {
        return {r, r / 2};
    }
    // 2.3 calculates RTTVAR with the SRTT from before this sample.
    const lawn_time_t error = rtt.srtt > r ? rtt.srtt - r : r - rtt.srtt;
    const uint128 rttvar = (uint128{rtt.rttvar} * 3 + error + 2) / 4;
    const uint128 srtt = (uint128{rtt.srtt} * 7 + r + 4) / 8;
    return {static_cast<lawn_time_t>(srtt), static_cast<lawn_time_t>(rttvar)};
}

inline lawn_time_t rto_clamp(lawn_time_t rto, lawn_time_t min, lawn_time_t max)
{
    return rto < min ? min : rto > max ? max : rto;
}

// RFC 6298, 2.3 to 2.5: SRTT + max(G, 4 * RTTVAR), within [min, max].
inline lawn_time_t rto_from_rtt(Rtt rtt, lawn_time_t granularity,
                                lawn_time_t min, lawn_time_t max)
{
    const uint128 spread = uint128{rtt.rttvar} * 4;
    const uint128 rto =
        rtt.srtt + (spread > granularity ? spread : granularity);
    return rto > max ? max : rto_clamp(static_cast<lawn_time_t>(rto), min, max);
}

// RFC 6298, 5.5: the timer backs off by `factor` >= 1, up to `max`, which is
// not below `rto`. What is added is rounded up: if it were rounded down, an RTO
// of a few ticks would never back off by a factor below 2.
inline lawn_time_t rto_back_off(lawn_time_t rto, double factor, lawn_time_t max)
{
    const double more = static_cast<double>(rto) * (factor - 1);
    if (!(more < static_cast<double>(max - rto))) {
        return max;
    }
    // A double that is below the rounded `max - rto` is not above the exact
    // one. So the sum is at most `max`.
    const lawn_time_t whole = static_cast<lawn_time_t>(more);
    return rto + whole + (static_cast<double>(whole) < more);
}

} // namespace lawn

#endif
