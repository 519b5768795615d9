// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/periodic.hpp - a periodic timer that carries its callable, for C++17.
// lawn/lawn.hpp includes it, and what it says about exceptions and threads
// holds here. lawn/periodic.h says what a late pass does.
//
//     lawn::periodic tick([&](lawn_time_t now, uint64_t periods) { ... });
//     tick.start(engine, std::chrono::milliseconds(10));

#ifndef LAWN_PERIODIC_HPP
#define LAWN_PERIODIC_HPP

#include <lawn/engine.hpp>
#include <lawn/periodic.h>

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace lawn
{

// The callable is called as f(periodic, now, periods), f(now, periods) or
// f(now): the first that is possible. It may start, stop and destroy any timer,
// also its own. If it destroys its own timer, it must not use its captures or
// the reference any more.
//
// The lawn knows the object by its address, so the object can be neither copied
// nor moved. Its destructor stops the timer.
template <typename Function> class periodic
{
public:
    explicit periodic(Function function) noexcept(
        std::is_nothrow_move_constructible_v<Function>)
        : function_(std::move(function))
    {
        lawn_periodic_init(&timer_.periodic, call);
        timer_.owner = this;
    }

    ~periodic()
    {
        stop();
    }

    periodic(const periodic &) = delete;
    periodic &operator=(const periodic &) = delete;

    // lawn_periodic_start(), with a period in ticks.
    lawn_status_t start(lawn_t *lawn, lawn_time_t now,
                        lawn_time_t period) noexcept
    {
        return lawn_periodic_start(lawn, &timer_.periodic, now, period);
    }

    // lawn_engine_start_periodic(), with a period in ticks of the engine.
    lawn_status_t start(const engine &engine, lawn_time_t period) noexcept
    {
        return lawn_engine_start_periodic(engine.get(), &timer_.periodic,
                                          period);
    }

    // Uses engine.to_ticks(period), which is rounded up.
    template <typename Rep, typename Period>
    lawn_status_t start(const engine &engine,
                        std::chrono::duration<Rep, Period> period) noexcept
    {
        return start(engine, engine.to_ticks(period));
    }

    // lawn_periodic_stop(): returns true if the timer was running.
    bool stop() noexcept
    {
        return lawn_periodic_stop(&timer_.periodic);
    }

    bool is_active() const noexcept
    {
        return lawn_periodic_is_active(&timer_.periodic);
    }

    // lawn_periodic_deadline(): the next, in ticks.
    lawn_time_t deadline() const noexcept
    {
        return lawn_periodic_deadline(&timer_.periodic);
    }

private:
    struct owned {
        lawn_periodic_t periodic;
        class periodic *owner;
    };

    static void call(lawn_periodic_t *due, lawn_time_t now,
                     std::uint64_t periods) noexcept
    {
        periodic &self = *reinterpret_cast<owned *>(due)->owner;
        // The last use of `self`: the callable may destroy it.
        if constexpr (std::is_invocable_v<Function &, periodic &, lawn_time_t,
                                          std::uint64_t>) {
            self.function_(self, now, periods);
        } else if constexpr (std::is_invocable_v<Function &, lawn_time_t,
                                                 std::uint64_t>) {
            self.function_(now, periods);
        } else {
            static_assert(std::is_invocable_v<Function &, lawn_time_t>,
                          "called as f(periodic, now, periods), f(now, "
                          "periods) or f(now)");
            self.function_(now);
        }
    }

    owned timer_;
    Function function_;
};

} // namespace lawn

#endif
