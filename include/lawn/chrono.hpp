// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/chrono.hpp - the clock as one of std::chrono's, and its spans and points
// in time in ticks, for C++17. lawn/lawn.hpp includes it. Threads: any.

#ifndef LAWN_CHRONO_HPP
#define LAWN_CHRONO_HPP

#include <lawn/time.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace lawn
{

namespace detail
{

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

constexpr std::uint64_t nsec_per_sec = 1'000'000'000;

constexpr std::int64_t longest_nsec = std::numeric_limits<std::int64_t>::max();

// `sign` times any span in nanoseconds, rounded up. A float that does not fit
// is the longest one of its sign, NaN is 0. Not chrono's conversion, which
// overflows: seconds::max() is how programs write "for ever".
template <typename Rep, typename Period>
constexpr int128 exact_nsec_of(std::chrono::duration<Rep, Period> span,
                               int sign = 1) noexcept
{
    using Scale = std::ratio_divide<Period, std::nano>;
    if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
        constexpr long double num = Scale::num, den = Scale::den;
        const long double nsec =
            static_cast<long double>(span.count()) * sign * num / den;
        if (!(nsec < 0x1p63L && nsec > -0x1p63L)) {
            return nsec > 0 ? longest_nsec : nsec < 0 ? -longest_nsec : 0;
        }
        const auto whole = static_cast<std::int64_t>(nsec);
        return int128{whole} + (static_cast<long double>(whole) < nsec ? 1 : 0);
    } else {
        const int128 scaled =
            static_cast<int128>(span.count()) * sign * Scale::num;
        return scaled / Scale::den + (scaled % Scale::den > 0 ? 1 : 0);
    }
}

constexpr std::chrono::nanoseconds saturated(int128 nsec) noexcept
{
    using std::chrono::nanoseconds;
    if (nsec >= longest_nsec) {
        return nanoseconds::max();
    }
    return nanoseconds(nsec > 0 ? static_cast<std::int64_t>(nsec) : 0);
}

// In nanoseconds, rounded up: 0 for negative spans and NaN, nanoseconds::max()
// for all that are longer.
template <typename Rep, typename Period>
constexpr std::chrono::nanoseconds
nsec_of(std::chrono::duration<Rep, Period> span) noexcept
{
    return saturated(exact_nsec_of(span));
}

// How long it is until `when`, likewise.
template <typename Clock, typename Duration>
std::chrono::nanoseconds
nsec_until(std::chrono::time_point<Clock, Duration> when) noexcept
{
    const auto now = Clock::now().time_since_epoch();
    const int128 end = exact_nsec_of(when.time_since_epoch());
    return end < longest_nsec ? saturated(end + exact_nsec_of(now, -1))
                              : std::chrono::nanoseconds::max();
}

// Ticks per second, exactly mantissa * 2^exponent, the mantissa below 2^53.
struct rate {
    std::uint64_t mantissa;
    int exponent;
};

inline rate rate_of(double ticks_per_sec) noexcept
{
    int exponent = 0;
    const double fraction = std::frexp(ticks_per_sec, &exponent);
    return {static_cast<std::uint64_t>(std::ldexp(fraction, 53)),
            exponent - 53};
}

// As lawn_time_from_nsec(), at any rate; exact also where a double is not.
inline lawn_time_t ticks_of(std::chrono::nanoseconds span, rate at) noexcept
{
    if (span == std::chrono::nanoseconds::max()) {
        return LAWN_TIME_INFINITY;
    }
    if (span.count() <= 0) {
        return 0;
    }
    uint128 scaled = uint128{static_cast<std::uint64_t>(span.count())} *
                     at.mantissa; // below 2^116
    if (at.exponent > 0) {
        // What does not fit below 2^127 is more than 2^64 * nsec_per_sec.
        if (at.exponent >= 127 || scaled >> (127 - at.exponent) != 0) {
            return LAWN_TIME_INFINITY;
        }
        scaled <<= at.exponent;
    } else if (at.exponent > -128) {
        const uint128 whole = scaled >> -at.exponent;
        scaled = whole + (whole << -at.exponent != scaled ? 1 : 0);
    } else {
        scaled = 1;
    }
    const uint128 ticks = (scaled + nsec_per_sec - 1) / nsec_per_sec;
    return ticks < LAWN_TIME_INFINITY ? static_cast<lawn_time_t>(ticks)
                                      : LAWN_TIME_INFINITY;
}

// Of this process's clock. A tick is `whole` + `fraction` * 2^-64 nanoseconds,
// not rounded down, so that the way to ticks and back does not lose one.
struct clock_rate {
    rate ticks;
    std::uint64_t whole;
    std::uint64_t fraction;
};

inline clock_rate clock_rate_of(double ticks_per_sec) noexcept
{
    // Good for 2^-40 to 2^53 ticks per second: each step stays in 128 bits.
    const rate ticks = rate_of(ticks_per_sec);
    const uint128 nsec = uint128{nsec_per_sec} << -ticks.exponent;
    const uint128 rest = nsec % ticks.mantissa << 64;
    return {ticks, static_cast<std::uint64_t>(nsec / ticks.mantissa),
            static_cast<std::uint64_t>((rest + ticks.mantissa - 1) /
                                       ticks.mantissa)};
}

inline const clock_rate &process_rate() noexcept
{
    static const clock_rate rate = clock_rate_of(lawn_time_sec_value());
    return rate;
}

inline std::chrono::nanoseconds nsec_at(lawn_time_t ticks,
                                        const clock_rate &rate) noexcept
{
    constexpr auto longest = std::chrono::nanoseconds::max();
    const uint128 nsec =
        uint128{ticks} * rate.whole + (uint128{ticks} * rate.fraction >> 64);
    return ticks != LAWN_TIME_INFINITY &&
                   nsec < static_cast<uint128>(longest.count())
               ? std::chrono::nanoseconds(static_cast<std::int64_t>(nsec))
               : longest;
}

} // namespace detail

// lawn_get_time() as a clock of std::chrono: a TrivialClock, in nanoseconds,
// whose epoch is tick 0. (Named for the usual counter; it is the process's
// clock on any machine.) Each time is converted from the whole count, by one
// rate for the life of the process: conversions never go back against each
// other and errors do not add up. now() is the counter and two
// multiplications. to_ticks() divides 128 bits, some nanoseconds: keep the
// ticks of a TTL that is started per packet. The first use in a process may
// take 20 ms (lawn/time.h).
struct tsc_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<tsc_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept
    {
        return time_point(from_ticks(lawn_get_time()));
    }

    // The ticks of `span`, of any period. Rounds up, since a timeout is never
    // shortened; 0 for negative spans and NaN; LAWN_TIME_INFINITY for
    // nanoseconds::max() and for whatever is longer.
    template <typename Rep, typename Period>
    static lawn_time_t
    to_ticks(std::chrono::duration<Rep, Period> span) noexcept
    {
        return detail::ticks_of(detail::nsec_of(span),
                                detail::process_rate().ticks);
    }

    // Whole nanoseconds, up to duration::max(), which LAWN_TIME_INFINITY is
    // too; time_point(from_ticks(ticks)) when `ticks` is a point in time.
    // from_ticks(to_ticks(d)) >= d.
    static duration from_ticks(lawn_time_t ticks) noexcept
    {
        return detail::nsec_at(ticks, detail::process_rate());
    }
};

} // namespace lawn

#endif
