// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How long to wait for an answer. These are pure functions on ticks, for
// conn.cc, so that they can be checked by hand:
//   - SRTT and RTTVAR of RFC 6298, scaled by 8 and 4 as in Jacobson's
//     "Congestion Avoidance and Control" (1988), so that shifts suffice.
//   - The greatest errors of the path. RTTVAR is an average: where the path is
//     steady and a few answers are late, it knows nothing of those few. So the
//     two greatest errors (sample - SRTT) of this window of samples and of the
//     window before are kept. The second greatest of both is about the
//     99.97 % quantile.
// Samples end at `longest`, so nothing overflows.

#ifndef LAWN_SRC_CONN_RTO_H
#define LAWN_SRC_CONN_RTO_H

#include "base/ticks.h"

#include <lawn/time.h>

#include <stdint.h>

namespace lawn
{

constexpr lawn_time_t longest = lawn_time_t{1} << 56; // of samples

// ---- Averages

// Takes the first round trip, from 1 to `longest`: RFC 6298, 2.2.
inline void average_first(lawn_time_t *srtt, lawn_time_t *rttvar, lawn_time_t r)
{
    *srtt = r * 8;
    *rttvar = r * 2;
}

// Takes the round trip `r`, up to `longest`, into the averages. RFC 6298, 2.3:
// alpha is 1/8, beta 1/4. `srtt` is times 8, and no sample makes it 0.
// `rttvar` is times 4.
inline void average(lawn_time_t *srtt, lawn_time_t *rttvar, lawn_time_t r)
{
    // RTTVAR is calculated with the SRTT from before this sample.
    const int64_t error = static_cast<int64_t>(r - (*srtt >> 3));
    const lawn_time_t distance =
        static_cast<lawn_time_t>(error < 0 ? -error : error);
    *rttvar += distance - (*rttvar >> 2);
    *srtt += static_cast<lawn_time_t>(error);
}

// ---- Great errors

// A span in 16 bits, for it is kept eight times in each connection. It is
// rounded up, by less than a thousandth. The codes are in the order of the
// spans.
inline uint16_t code_of(lawn_time_t span)
{
    if (span < 2048) {
        return static_cast<uint16_t>(span);
    }
    const unsigned shift = 53U - static_cast<unsigned>(__builtin_clzll(span));
    const lawn_time_t up = (lawn_time_t{1} << shift) - 1;
    return static_cast<uint16_t>((shift << 10) + ((span + up) >> shift));
}

inline lawn_time_t span_of(uint16_t code)
{
    if (code < 2048) {
        return code;
    }
    const unsigned shift = (code >> 10) - 1U;
    return lawn_time_t{(code & 1023U) | 1024U} << shift;
}

// The two greatest errors of this window of samples, and those of the one
// before.
enum { greatest, second, old_greatest, old_second };

// Takes an error into this window. An episode (one pause, one burst) counts
// once, with its greatest error: what was sent before `*until`, when the latest
// great error arrived, belongs to the same one.
inline void add_error(uint16_t errors[4], lawn_time_t *until, lawn_time_t error,
                      lawn_time_t sent_at, lawn_time_t now)
{
    const uint16_t code = code_of(error);
    if (code <= errors[second]) {
        return;
    }
    if (sent_at < *until) {
        errors[greatest] = code > errors[greatest] ? code : errors[greatest];
        return;
    }
    *until = now;
    if (code > errors[greatest]) {
        errors[second] = errors[greatest];
        errors[greatest] = code;
    } else {
        errors[second] = code;
    }
}

inline void begin_window(uint16_t errors[4])
{
    errors[old_greatest] = errors[greatest];
    errors[old_second] = errors[second];
    errors[greatest] = 0;
    errors[second] = 0;
}

// The margin above SRTT that the errors ask for. Until the first window is
// full, a lone great error counts, too, up to four SRTT: it may be the only one
// of its kind. `srtt` is times 8.
inline lawn_time_t tail_of(const uint16_t errors[4], bool is_full,
                           lawn_time_t srtt)
{
    const uint16_t a = errors[greatest];
    const uint16_t b = errors[old_greatest];
    const uint16_t lesser = a < b ? a : b;
    const uint16_t seconds = errors[second] > errors[old_second]
                                 ? errors[second]
                                 : errors[old_second];
    const lawn_time_t tail = span_of(lesser > seconds ? lesser : seconds);
    if (is_full) {
        return tail + (tail >> 3);
    }
    const lawn_time_t lone = span_of(a > b ? a : b);
    return later_of(tail + (tail >> 2),
                    earlier_of(lone + (lone >> 2), srtt >> 1));
}

// ---- Results

// `max` holds also where `min` is above it.
inline lawn_time_t rto_clamp(lawn_time_t rto, lawn_time_t min, lawn_time_t max)
{
    return earlier_of(later_of(rto, min), max);
}

// RFC 6298, 5.5: the timer backs off by `factor` >= 1, up to `max`. What is
// added is rounded up: if it were rounded down, an RTO of a few ticks would
// never back off by a factor below 2.
inline lawn_time_t rto_back_off(lawn_time_t rto, double factor, lawn_time_t max)
{
    const double more = static_cast<double>(rto) * (factor - 1);
    if (rto >= max || !(more < static_cast<double>(max - rto))) {
        return max;
    }
    // A double that is below the rounded `max - rto` is not above the exact
    // one. So the sum is at most `max`.
    const lawn_time_t whole = static_cast<lawn_time_t>(more);
    return rto + whole + (static_cast<double>(whole) < more);
}

} // namespace lawn

#endif
