// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp - Lawn for C++17: owners of what the C API creates, timers
// that carry their callable, and the clock as one of std::chrono's. Header
// only, on top of the C API, which it replaces nothing of: an owner's get() is
// for every call that has no wrapper here.
//
//     struct Peer {
//         struct Silent {
//             Peer *peer;
//             void operator()(lawn_time_t now) const { peer->close(now); }
//         };
//         lawn::timer<Silent> silence{Silent{this}};
//     };
//
//     lawn::engine engine = lawn::make_engine();
//     peer.silence.start(engine, std::chrono::milliseconds(100));
//     while (running) {
//         lawn_engine_progress(engine.get());
//     }
//
// Exceptions and RTTI are not needed and not used: creation returns an empty
// owner when it fails, and says why to whom asks; nothing else can fail. A
// callable must not throw, since it is called through C: std::terminate().
//
// Threads: those of the objects below; the clock is for any thread.

#ifndef LAWN_LAWN_HPP
#define LAWN_LAWN_HPP

#include <lawn/lawn.h>
#include <lawn/shared.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ratio>
#include <type_traits>
#include <utility>

namespace lawn
{

namespace detail
{

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

constexpr std::uint64_t nsec_per_sec = 1'000'000'000;

// Any span in nanoseconds, rounded up; negative ones and NaN give 0, and
// nanoseconds::max() is for all that are longer. Not chrono's conversion, which
// overflows: seconds::max() is how programs write "for ever".
template <typename Rep, typename Period>
constexpr std::chrono::nanoseconds
nsec_of(std::chrono::duration<Rep, Period> span) noexcept
{
    using std::chrono::nanoseconds;
    using Scale = std::ratio_divide<Period, std::nano>;
    constexpr auto longest = nanoseconds::max();
    if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
        constexpr long double num = Scale::num, den = Scale::den;
        const long double nsec =
            static_cast<long double>(span.count()) * num / den;
        if (!(nsec > 0)) {
            return nanoseconds::zero();
        }
        if (!(nsec < 0x1p63L)) {
            return longest;
        }
        const auto whole = static_cast<std::int64_t>(nsec);
        return nanoseconds(whole +
                           (static_cast<long double>(whole) < nsec ? 1 : 0));
    } else {
        const int128 scaled = static_cast<int128>(span.count()) * Scale::num;
        if (scaled <= 0) {
            return nanoseconds::zero();
        }
        const int128 nsec =
            scaled / Scale::den + (scaled % Scale::den != 0 ? 1 : 0);
        return nsec < longest.count()
                   ? nanoseconds(static_cast<std::int64_t>(nsec))
                   : longest;
    }
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

struct destroy {
    void operator()(lawn_t *lawn) const noexcept
    {
        lawn_destroy(lawn);
    }

    void operator()(lawn_engine_t *engine) const noexcept
    {
        lawn_engine_destroy(engine);
    }

    void operator()(lawn_queue_t *queue) const noexcept
    {
        lawn_queue_destroy(queue);
    }

    void operator()(lawn_keyed_t *keyed) const noexcept
    {
        lawn_keyed_destroy(keyed);
    }
};

inline void tell(lawn_status_t status, lawn_status_t *status_p) noexcept
{
    if (status_p) {
        *status_p = status;
    }
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

// Owners: unique_ptr's rules, not copied, may be moved. What made nothing is
// empty, and `status_p`, if given, says why. Queues and keyed tables are to be
// destroyed before their lawn, and so declared after it.
using lawn_ptr = std::unique_ptr<lawn_t, detail::destroy>;
using queue_ptr = std::unique_ptr<lawn_queue_t, detail::destroy>;
using keyed_ptr = std::unique_ptr<lawn_keyed_t, detail::destroy>;

// lawn_create()
[[nodiscard]] inline lawn_ptr
make_lawn(const lawn_params_t *params = nullptr,
          lawn_status_t *status_p = nullptr) noexcept
{
    lawn_t *lawn = nullptr;
    detail::tell(lawn_create(params, &lawn), status_p);
    return lawn_ptr(lawn);
}

// lawn_queue_create()
[[nodiscard]] inline queue_ptr
make_queue(lawn_t *lawn, lawn_time_t ttl,
           lawn_status_t *status_p = nullptr) noexcept
{
    lawn_queue_t *queue = nullptr;
    detail::tell(lawn_queue_create(lawn, ttl, &queue), status_p);
    return queue_ptr(queue);
}

// lawn_keyed_create()
[[nodiscard]] inline keyed_ptr
make_keyed(lawn_t *lawn, std::size_t capacity_hint,
           lawn_status_t *status_p = nullptr) noexcept
{
    lawn_keyed_t *keyed = nullptr;
    detail::tell(lawn_keyed_create(lawn, capacity_hint, &keyed), status_p);
    return keyed_ptr(keyed);
}

// Owns an engine, and knows the rate of its clock, which need not be the
// process's. Not to be destroyed from inside a pass.
class engine
{
public:
    engine() noexcept = default; // empty

    lawn_engine_t *get() const noexcept
    {
        return engine_.get();
    }

    explicit operator bool() const noexcept
    {
        return engine_ != nullptr;
    }

    // As tsc_clock::to_ticks(), in ticks of this engine.
    template <typename Rep, typename Period>
    lawn_time_t to_ticks(std::chrono::duration<Rep, Period> span) const noexcept
    {
        return detail::ticks_of(detail::nsec_of(span), rate_);
    }

private:
    friend engine make_engine(const lawn_engine_params_t *params,
                              lawn_status_t *status_p) noexcept;

    engine(lawn_engine_t *owned, double ticks_per_sec) noexcept
        : engine_(owned), rate_(detail::rate_of(ticks_per_sec))
    {
    }

    std::unique_ptr<lawn_engine_t, detail::destroy> engine_;
    detail::rate rate_ = {};
};

// lawn_engine_create()
[[nodiscard]] inline engine
make_engine(const lawn_engine_params_t *params = nullptr,
            lawn_status_t *status_p = nullptr) noexcept
{
    lawn_engine_t *owned = nullptr;
    detail::tell(lawn_engine_create(params, &owned), status_p);
    if (!owned) {
        return engine();
    }
    const bool is_own = params && params->ticks_per_sec != 0;
    return engine(owned,
                  is_own ? params->ticks_per_sec : lawn_time_sec_value());
}

// A timer without its callable: all that is done to one, for instance by a
// callback that is told which timer has expired. Knows the lawn it was started
// on, so that stop and pause need none. Once the lawn is destroyed the timer
// is idle and does not touch it, so either may go first.
class timer_base
{
public:
    timer_base(const timer_base &) = delete;
    timer_base &operator=(const timer_base &) = delete;

    // lawn_timer_start(). On another lawn than before it is stopped there.
    void start(lawn_t *lawn, lawn_time_t now, lawn_time_t ttl) noexcept
    {
        move_to(lawn);
        lawn_timer_start(lawn, &timer_, now, ttl);
    }

    // lawn_timer_start_at(), with a deadline instead of a TTL.
    void start_at(lawn_t *lawn, lawn_time_t now, lawn_time_t deadline) noexcept
    {
        move_to(lawn);
        lawn_timer_start_at(lawn, &timer_, now, deadline);
    }

    // lawn_queue_start(): at the tail of the queue, with its TTL.
    void start(lawn_queue_t *queue, lawn_time_t now) noexcept
    {
        move_to(queue->lawn);
        lawn_queue_start(queue, &timer_, now);
    }

    // lawn_engine_start(), with a TTL in ticks of the engine's clock.
    void start(lawn_engine_t *engine, lawn_time_t ttl) noexcept
    {
        move_to(lawn_engine_lawn(engine));
        lawn_engine_start(engine, &timer_, ttl);
    }

    void start(const engine &engine, lawn_time_t ttl) noexcept
    {
        start(engine.get(), ttl);
    }

    // With engine.to_ticks(ttl): rounded up, for ever when it does not fit.
    // Only an owned engine tells its rate, so only it takes a duration.
    template <typename Rep, typename Period>
    void start(const engine &engine,
               std::chrono::duration<Rep, Period> ttl) noexcept
    {
        start(engine.get(), engine.to_ticks(ttl));
    }

    // lawn_timer_stop(): true if it was running.
    bool stop() noexcept
    {
        return is_held() && lawn_timer_stop(lawn_, &timer_);
    }

    // lawn_timer_pause(): true if it was running.
    bool pause() noexcept
    {
        return is_held() && lawn_timer_pause(lawn_, &timer_);
    }

    bool is_active() const noexcept
    {
        return lawn_timer_is_active(&timer_);
    }

    // lawn_timer_deadline(), in ticks of the clock it was started with.
    lawn_time_t deadline() const noexcept
    {
        return lawn_timer_deadline(&timer_);
    }

protected:
    explicit timer_base(lawn_expired_fn_t expired) noexcept
    {
        lawn_timer_init(&timer_, expired);
    }

    ~timer_base() = default; // of timer<F> only, which has stopped it

    // `timer` is the first member.
    static timer_base *of(lawn_timer_t *timer) noexcept
    {
        return reinterpret_cast<timer_base *>(timer);
    }

private:
    // Whether the lawn may hold it, running or paused. If not, the lawn may be
    // gone, and what a stop would do is to forget the deadline.
    bool is_held() noexcept
    {
        if (timer_.link.next != nullptr) {
            return true;
        }
        timer_.check = 0;
        return false;
    }

    void move_to(lawn_t *lawn) noexcept
    {
        if (lawn_ != lawn) {
            stop();
            lawn_ = lawn;
        }
    }

    lawn_timer_t timer_;
    lawn_t *lawn_ = nullptr;
};

static_assert(std::is_standard_layout_v<timer_base>,
              "timer_base::of() needs the timer to be the first member");

// A timer with its callable inside: 48 bytes and the callable, no allocation.
// `Function` is called as f(timer, now) if it can be, `timer` being this
// object, for instance as a timer_base &; or else as f(now). `now` is the time
// of the advance, not before the deadline.
//
// The address is what the lawn knows, so it is neither copied nor moved; its
// destructor stops it. When the callable is called the timer is idle, and the
// callable may do to any timer, its own included, whatever it may do outside:
// start, stop, and destroy. Once it has destroyed its own timer it has
// destroyed itself: it runs on, but may use its captures and the reference no
// more. Copies made before, in local variables, stay good.
template <typename Function> class timer : public timer_base
{
public:
    explicit timer(Function function) noexcept(
        std::is_nothrow_move_constructible_v<Function>)
        : timer_base(call), function_(std::move(function))
    {
    }

    ~timer()
    {
        stop();
    }

private:
    static void call(lawn_timer_t *due, lawn_time_t now) noexcept
    {
        timer *const self = static_cast<timer *>(of(due));
        // The last use of *self: the callable may end it.
        if constexpr (std::is_invocable_v<Function &, timer &, lawn_time_t>) {
            self->function_(*self, now);
        } else {
            static_assert(std::is_invocable_v<Function &, lawn_time_t>,
                          "called as f(timer, now) or f(now)");
            self->function_(now);
        }
    }

    Function function_;
};

} // namespace lawn

#endif
