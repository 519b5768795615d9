// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/shared.hpp - timers that any thread starts, stops and destroys, for
// C++17. lawn/lawn.hpp includes it; what is said there of exceptions holds.
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

// A shared timer (lawn/shared.h) on the heap with its callable, by a handle
// that any thread may use and destroy, also while its callable runs and from
// inside it. `Function` is called by the box's owner as f(now). It and its
// captures live until the owner has let go of the timer, which may be after the
// handle. Moved, not copied; one handle is not used by two threads while it is
// moved or destroyed.
template <typename Function> class shared_timer
{
public:
    shared_timer() noexcept = default; // empty

    explicit operator bool() const noexcept
    {
        return state_ != nullptr;
    }

    // lawn_shared_start(): `deadline` is on lawn_engine_time(). False when the
    // box was destroyed.
    bool start_at(lawn_time_t deadline) noexcept
    {
        return lawn_shared_start(&state_->timer, deadline);
    }

    // With engine.to_ticks(ttl) from lawn_engine_time(): rounded up, for ever
    // when it does not fit. The engine is the one whose box it is.
    template <typename Rep, typename Period>
    bool start(const engine &engine,
               std::chrono::duration<Rep, Period> ttl) noexcept
    {
        return start_in(engine, engine.to_ticks(ttl));
    }

    // With engine.to_ticks(when): when `when` has come by its own clock, or as
    // soon as it may when it is past.
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

    // lawn_shared_sync(): waits until the callable does not run.
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

// lawn_shared_init(), for any thread while the box is there. Empty when there
// is no memory.
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

// With lawn_engine_box(), so on the engine's thread. Empty, too, when there is
// no memory for that.
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
