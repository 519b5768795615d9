// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/shared.hpp - timers that any thread starts, stops and destroys, for
// C++17. lawn/lawn.hpp includes it. The rules there for exceptions hold here.
//
//     auto timeout = lawn::make_shared_timer(
//         engine, [=](lawn_time_t) { give_up(id); });
//     timeout.start(engine, std::chrono::seconds(5));   // any thread
//     timeout.stop();                                   // any thread

#ifndef LAWN_SHARED_HPP
#define LAWN_SHARED_HPP

#include <lawn/engine.hpp>
#include <lawn/shared.h>

#include <chrono>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace lawn
{

// A handle of a shared timer (lawn/shared.h), which is on the heap with its
// callable. Any thread may use and destroy the handle, also while the callable
// runs and from inside it. The box's owner calls `Function` as f(now). The
// callable and its captures live until the owner no longer uses the timer,
// which may be longer than the handle. A handle can be moved, but not copied.
// While one thread moves or destroys a handle, no other thread may use it.
template <typename Function> class shared_timer
{
public:
    shared_timer() noexcept = default; // empty

    explicit operator bool() const noexcept
    {
        return state_ != nullptr;
    }

    // lawn_shared_start(). `deadline` is a time of lawn_engine_time(). Returns
    // false if the box was destroyed.
    bool start_at(lawn_time_t deadline) noexcept
    {
        return lawn_shared_start(&state_->timer, deadline);
    }

    // Expires engine.to_ticks(ttl) after lawn_engine_time(): rounded up, and
    // never if the sum does not fit. The engine must be the one that has the
    // timer's box.
    template <typename Rep, typename Period>
    bool start(const engine &engine,
               std::chrono::duration<Rep, Period> ttl) noexcept
    {
        return start_in(engine, engine.to_ticks(ttl));
    }

    // Expires when `when` has come by its own clock, by engine.to_ticks(when).
    // If `when` is past, the timer expires as soon as possible.
    template <typename Clock, typename Duration>
    bool start_at(const engine &engine,
                  std::chrono::time_point<Clock, Duration> when) noexcept
    {
        return start_in(engine, engine.to_ticks(when));
    }

    // lawn_shared_start_local(), for the owner.
    bool start_local_at(lawn_time_t deadline) noexcept
    {
        return lawn_shared_start_local(&state_->timer, deadline);
    }

    // lawn_shared_stop(): true if it was running.
    bool stop() noexcept
    {
        return lawn_shared_stop(&state_->timer);
    }

    // lawn_shared_sync(): waits until the callable is not running.
    void sync() noexcept
    {
        lawn_shared_sync(&state_->timer);
    }

    bool is_active() const noexcept
    {
        return lawn_shared_is_active(&state_->timer);
    }

    // lawn_shared_deadline()
    lawn_time_t deadline() const noexcept
    {
        return lawn_shared_deadline(&state_->timer);
    }

private:
    template <typename F>
    friend shared_timer<F> make_shared_timer(lawn_box_t *box,
                                             F function) noexcept;

    struct state {
        explicit state(Function &&callable) noexcept(
            std::is_nothrow_move_constructible_v<Function>)
            : function(std::move(callable))
        {
        }

        lawn_shared_t timer; // first
        Function function;
    };

    struct retire {
        void operator()(state *retired) const noexcept
        {
            lawn_shared_retire(&retired->timer, release);
        }
    };

    bool start_in(const engine &engine, lawn_time_t ttl) noexcept
    {
        const lawn_time_t deadline = lawn_engine_time(engine.get()) + ttl;
        return start_at(deadline < ttl ? LAWN_TIME_INFINITY : deadline);
    }

    explicit shared_timer(state *owned) noexcept : state_(owned)
    {
    }

    static state *of(lawn_shared_t *timer) noexcept
    {
        return reinterpret_cast<state *>(timer);
    }

    static void call(lawn_shared_t *due, lawn_time_t now) noexcept
    {
        of(due)->function(now);
    }

    static void release(lawn_shared_t *retired, lawn_time_t) noexcept
    {
        delete of(retired);
    }

    std::unique_ptr<state, retire> state_;
};

// lawn_shared_init(). Any thread may call it while the box exists. Returns an
// empty handle if there is no memory.
template <typename Function>
[[nodiscard]] shared_timer<Function>
make_shared_timer(lawn_box_t *box, Function function) noexcept
{
    using timer = shared_timer<Function>;
    auto *const state =
        new (std::nothrow) typename timer::state(std::move(function));
    if (state) {
        lawn_shared_init(&state->timer, box, timer::call);
    }
    return timer(state);
}

// The same with lawn_engine_box(), so only the engine's thread may call it. The
// handle is also empty if there is no memory for the box.
template <typename Function>
[[nodiscard]] shared_timer<Function>
make_shared_timer(const engine &engine, Function function) noexcept
{
    lawn_box_t *const box = lawn_engine_box(engine.get());
    return box ? make_shared_timer(box, std::move(function))
               : shared_timer<Function>();
}

} // namespace lawn

#endif
