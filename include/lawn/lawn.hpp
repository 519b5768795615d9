// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp - Lawn for C++17: owners of what the C API creates, timers that
// carry their callable, and the clock as a std::chrono clock. Header only, on
// top of the C API. It replaces no part of the C API: for a call that has no
// wrapper, use the get() of an owner.
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
// It needs no exceptions and no RTTI, and uses none. If a creation fails, it
// returns an empty owner, and stores the reason if the caller asks for it.
// engine::wait() returns a status, and the start of a shared timer returns
// false if its box was destroyed. Nothing else can fail. A callable must not
// throw, because it is called through C: an exception ends in std::terminate().
//
// Threads: each object follows the rules of the C object that it wraps. Any
// thread may use the clock.

#ifndef LAWN_LAWN_HPP
#define LAWN_LAWN_HPP

#include <lawn/chrono.hpp>
#include <lawn/engine.hpp>
#include <lawn/lawn.h>
#include <lawn/periodic.hpp>
#include <lawn/shared.hpp>

#include <chrono>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace lawn
{

// A timer without its callable: all that can be done to a timer, for instance
// by a callback that is told which timer has expired. It knows the lawn that it
// was started on, so stop and pause need no lawn. When the lawn is destroyed,
// the timer becomes idle and does not touch the lawn any more. So either may be
// destroyed first.
class timer_base
{
public:
    timer_base(const timer_base &) = delete;
    timer_base &operator=(const timer_base &) = delete;

    // lawn_timer_start(). A timer that was started on another lawn is stopped
    // there first.
    void start(lawn_t *lawn, lawn_time_t now, lawn_time_t ttl) noexcept
    {
        move_to(lawn);
        lawn_timer_start(lawn, &timer_, now, ttl);
    }

    // Uses tsc_clock::to_ticks(ttl), for a lawn that is told the time of the
    // process's clock.
    template <typename Rep, typename Period>
    void start(lawn_t *lawn, lawn_time_t now,
               std::chrono::duration<Rep, Period> ttl) noexcept
    {
        start(lawn, now, tsc_clock::to_ticks(ttl));
    }

    // lawn_timer_start_at(): with a deadline instead of a TTL.
    void start_at(lawn_t *lawn, lawn_time_t now, lawn_time_t deadline) noexcept
    {
        move_to(lawn);
        lawn_timer_start_at(lawn, &timer_, now, deadline);
    }

    // lawn_queue_start(): at the tail of the queue, with the queue's TTL.
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

    // Uses engine.to_ticks(ttl): rounded up, LAWN_TIME_INFINITY if it does not
    // fit. Only an owned engine knows its rate, so only an owned engine takes a
    // duration.
    template <typename Rep, typename Period>
    void start(const engine &engine,
               std::chrono::duration<Rep, Period> ttl) noexcept
    {
        start(engine.get(), engine.to_ticks(ttl));
    }

    // With a deadline in the engine's time.
    void start_at(const engine &engine, lawn_time_t deadline) noexcept
    {
        start_at(lawn_engine_lawn(engine.get()), engine.now(), deadline);
    }

    // Uses engine.to_ticks(when): the timer is due when `when` has come by its
    // own clock, or as soon as possible if `when` is past.
    template <typename Clock, typename Duration>
    void start_at(const engine &engine,
                  std::chrono::time_point<Clock, Duration> when) noexcept
    {
        start(engine.get(), engine.to_ticks(when));
    }

    // lawn_timer_stop(): returns true if the timer was running.
    bool stop() noexcept
    {
        return is_held() && lawn_timer_stop(lawn_, &timer_);
    }

    // lawn_timer_pause(): returns true if the timer was running.
    bool pause() noexcept
    {
        return is_held() && lawn_timer_pause(lawn_, &timer_);
    }

    bool is_active() const noexcept
    {
        return lawn_timer_is_active(&timer_);
    }

    // lawn_timer_deadline(): in ticks of the clock that the timer was started
    // with.
    lawn_time_t deadline() const noexcept
    {
        return lawn_timer_deadline(&timer_);
    }

protected:
    explicit timer_base(lawn_expired_fn_t expired) noexcept
    {
        lawn_timer_init(&timer_, expired);
    }

    ~timer_base() = default; // the classes below have stopped the timer

    // `timer` is the first member of a timer_base.
    static timer_base *of(lawn_timer_t *timer) noexcept
    {
        return reinterpret_cast<timer_base *>(timer);
    }

private:
    // Returns true if the lawn may hold the timer, running or paused. If not,
    // the lawn may be gone. A stop would then only forget the deadline, which
    // is done here.
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

// A timer with its callable inside: 48 bytes and the callable, without
// allocation. `Function` is called as f(timer, now) if that is possible, and
// else as f(now). `timer` is this object, for instance as a timer_base &. `now`
// is the time of the advance, which is not before the deadline.
//
// The lawn knows the object by its address, so the object can be neither copied
// nor moved. Its destructor stops the timer. When the callable is called, the
// timer is idle. The callable may start, stop and destroy any timer, also its
// own, as it may outside. If it destroys its own timer, it destroys itself. It
// may then go on, but must not use its captures or the reference any more.
// Copies made before, in local variables, stay valid.
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
        // The last use of *self: the callable may destroy it.
        detail::call(self->function_, *self, now);
    }

    Function function_;
};

// Like timer, but the type does not name the callable. So a class can have it
// as a member with a lambda that captures `this`. With timer<F>, the class
// would have to name the lambda's type. The callable is stored inside the
// object, which has room for five pointers. A callable that does not fit does
// not compile: use timer<F>, or a lambda that captures less. The object takes
// 96 bytes on a 64-bit machine. The callable is called as f(timer, now), where
// `timer` is a function_timer &, or as f(now).
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
        // The last use of *self: the callable may destroy it.
        detail::call(self->function<Function>(), *self, now);
    }

    void (*destroy_)(function_timer &self) noexcept = nullptr;
    alignas(void *) unsigned char function_[capacity];
};

} // namespace lawn

#endif
