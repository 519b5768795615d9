// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/chrono.hpp - the clock as a std::chrono clock, and std::chrono's
// durations and time points in ticks, for C++17. lawn/lawn.hpp includes this
// header.
//
// Threads: any thread may call all functions here.

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

// `sign` times a span in nanoseconds, rounded up. A floating-point span that
// does not fit gives the longest span of its sign. NaN gives 0. This is not the
// conversion of std::chrono, which overflows: programs write seconds::max() for
// "for ever".
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

// The span in nanoseconds, rounded up. Negative spans and NaN give 0. A span
// that does not fit gives nanoseconds::max().
template <typename Rep, typename Period>
constexpr std::chrono::nanoseconds
nsec_of(std::chrono::duration<Rep, Period> span) noexcept
{
    return saturated(exact_nsec_of(span));
}

// The time from now until `when`, converted in the same way.
template <typename Clock, typename Duration>
std::chrono::nanoseconds
nsec_until(std::chrono::time_point<Clock, Duration> when) noexcept
{
    const auto now = Clock::now().time_since_epoch();
    const int128 end = exact_nsec_of(when.time_since_epoch());
    return end < longest_nsec ? saturated(end + exact_nsec_of(now, -1))
                              : std::chrono::nanoseconds::max();
}

// Ticks per second: exactly mantissa * 2^exponent. The mantissa is below 2^53.
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

// Like lawn_time_from_nsec(), but at any rate. It is also exact where a double
// is not.
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
        // A value of 2^127 or more is above 2^64 * nsec_per_sec.
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

// The rate of this process's clock. A tick is `whole` + `fraction` * 2^-64
// nanoseconds. `fraction` is not rounded down, so that a conversion to ticks
// and back loses no nanosecond.
struct clock_rate {
    rate ticks;
    std::uint64_t whole;
    std::uint64_t fraction;
};

inline clock_rate clock_rate_of(double ticks_per_sec) noexcept
{
    // Valid for 2^-40 to 2^53 ticks per second: each step fits in 128 bits.
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

// lawn_get_time() as a clock of std::chrono. It is a TrivialClock in
// nanoseconds, and its epoch is tick 0. (It has the name of the usual counter,
// but it is the process's clock on any machine.) Each time is converted from
// the whole count, by one rate for the life of the process. So conversions
// never go back against each other, and errors do not add up. now() costs the
// counter and two multiplications. to_ticks() divides 128 bits, which takes
// some nanoseconds. If a TTL is started per packet, keep its ticks. The first
// use in a process may take 20 ms (lawn/time.h).
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

    // Converts `span`, of any period, to ticks. The result is rounded up,
    // because a timeout must not be shortened. Negative spans and NaN give 0.
    // nanoseconds::max() and every longer span give LAWN_TIME_INFINITY.
    template <typename Rep, typename Period>
    static lawn_time_t
    to_ticks(std::chrono::duration<Rep, Period> span) noexcept
    {
        return detail::ticks_of(detail::nsec_of(span),
                                detail::process_rate().ticks);
    }

    // Converts `ticks` to whole nanoseconds, up to duration::max().
    // LAWN_TIME_INFINITY gives duration::max() too. For a point in time, use
    // time_point(from_ticks(ticks)). from_ticks(to_ticks(d)) >= d.
    static duration from_ticks(lawn_time_t ticks) noexcept
    {
        return detail::nsec_at(ticks, detail::process_rate());
    }
};

} // namespace lawn

#endif
