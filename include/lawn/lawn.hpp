// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp - Lawn for C++17: owners of what the C API creates, timers
// that carry their callable, and the clock as one of std::chrono's. Header
// only, on top of the C API, which it replaces nothing of: an owner's get() is
// for every call that has no wrapper here.
//
//     struct Peer {
//         lawn::function_timer silence{[this](lawn_time_t) { close(); }};
//     };
//
//     lawn::engine engine = lawn::make_engine();
//     peer.silence.start(engine, std::chrono::milliseconds(100));
//     while (running) {
//         engine.progress();
//     }
//
// Exceptions and RTTI are not needed and not used: creation returns an empty
// owner when it fails, and says why to whom asks; nothing else can fail. A
// callable must not throw, since it is called through C: std::terminate().
//
// Threads: those of the objects below; the clock is for any thread.

#ifndef LAWN_LAWN_HPP
#define LAWN_LAWN_HPP

#include <lawn/chrono.hpp>
#include <lawn/engine.hpp>
#include <lawn/lawn.h>
#include <lawn/shared.hpp>

#include <chrono>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace lawn
{

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

    // With tsc_clock::to_ticks(ttl), for a lawn that is told the process's
    // time.
    template <typename Rep, typename Period>
    void start(lawn_t *lawn, lawn_time_t now,
               std::chrono::duration<Rep, Period> ttl) noexcept
    {
        start(lawn, now, tsc_clock::to_ticks(ttl));
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

    // With a deadline, on the time of the engine.
    void start_at(const engine &engine, lawn_time_t deadline) noexcept
    {
        start_at(lawn_engine_lawn(engine.get()), engine.now(), deadline);
    }

    // With engine.to_ticks(when): when `when` has come by its own clock, or as
    // soon as it may when it is past.
    template <typename Clock, typename Duration>
    void start_at(const engine &engine,
                  std::chrono::time_point<Clock, Duration> when) noexcept
    {
        start(engine.get(), engine.to_ticks(when));
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

    ~timer_base() = default; // of the timers below, which have stopped it

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

namespace detail
{

template <typename Timer, typename Function>
void call(Function &function, Timer &timer, lawn_time_t now) noexcept
{
    if constexpr (std::is_invocable_v<Function &, Timer &, lawn_time_t>) {
        function(timer, now);
    } else {
        static_assert(std::is_invocable_v<Function &, lawn_time_t>,
                      "called as f(timer, now) or f(now)");
        function(now);
    }
}

} // namespace detail

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
        detail::call(self->function_, *self, now);
    }

    Function function_;
};

// The same with any callable, so that the type does not tell which: a class can
// have it as a member with a lambda that captures `this`, where timer<F> would
// have to name the lambda's type. The callable is inside here, too, in what is
// room for five pointers, and one that does not fit does not compile: timer<F>
// takes it, or a lambda that captures less. 96 bytes on a 64-bit machine. It is
// called as f(timer, now), `timer` being a function_timer &, or as f(now).
class function_timer : public timer_base
{
public:
    static constexpr std::size_t capacity = 5 * sizeof(void *);

    template <typename Function, typename = std::enable_if_t<
                                     !std::is_same_v<Function, function_timer>>>
    explicit function_timer(Function function) noexcept(
        std::is_nothrow_move_constructible_v<Function>)
        : timer_base(call<Function>)
    {
        static_assert(sizeof(Function) <= capacity,
                      "the callable does not fit: see lawn::timer");
        static_assert(alignof(Function) <= alignof(void *),
                      "the callable does not fit: see lawn::timer");
        ::new (static_cast<void *>(function_)) Function(std::move(function));
        if constexpr (!std::is_trivially_destructible_v<Function>) {
            destroy_ = [](function_timer &self) noexcept {
                self.function<Function>().~Function();
            };
        }
    }

    ~function_timer()
    {
        stop();
        if (destroy_) {
            destroy_(*this);
        }
    }

private:
    template <typename Function> Function &function() noexcept
    {
        return *std::launder(reinterpret_cast<Function *>(function_));
    }

    template <typename Function>
    static void call(lawn_timer_t *due, lawn_time_t now) noexcept
    {
        function_timer *const self = static_cast<function_timer *>(of(due));
        // The last use of *self: the callable may end it.
        detail::call(self->function<Function>(), *self, now);
    }

    void (*destroy_)(function_timer &self) noexcept = nullptr;
    alignas(void *) unsigned char function_[capacity];
};

} // namespace lawn

#endif
