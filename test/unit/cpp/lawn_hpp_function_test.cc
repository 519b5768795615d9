// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp: timers whose type does not tell their callable, and what an
// engine and a timer do with durations and points in time, on virtual time.

#include <lawn/lawn.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace
{

using namespace std::chrono_literals;
using lawn::tsc_clock;
using std::chrono::duration;
using std::chrono::time_point;

// An engine of its own clock, a thousand ticks per second.
class HppFunction : public testing::Test
{
protected:
    HppFunction()
    {
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now_;
        params.ticks_per_sec = 1000;
        engine_ = lawn::make_engine(&params);
    }

    void SetUp() override
    {
        ASSERT_TRUE(engine_);
    }

    unsigned pass_at(lawn_time_t now)
    {
        now_ = now;
        return engine_.progress();
    }

    lawn_time_t now_ = 1000;
    lawn::engine engine_;
};

// A class with timers as members, whose lambdas capture `this`.
struct Session {
    explicit Session(lawn::engine *its_engine) : engine(its_engine)
    {
        silence.start(*engine, 100ms);
        probe.start(*engine, 30ms);
    }

    lawn::engine *engine;
    std::string log;
    lawn::function_timer silence{[this](lawn_time_t) {
        log += 's';
        probe.stop();
    }};
    lawn::function_timer probe{[this](lawn::timer_base &self, lawn_time_t) {
        log += 'p';
        self.start(*engine, 30ms);
    }};
};

TEST_F(HppFunction, IsAMemberWhoseLambdaCapturesThis)
{
    std::optional<Session> peer(&engine_);
    for (lawn_time_t now = 1001; now < 1200; ++now) {
        pass_at(now);
    }
    EXPECT_EQ(peer->log, "ppps");
    peer->silence.start(engine_, 5ms);
    peer.reset();
    EXPECT_EQ(pass_at(2000), 0U);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_.get())), 0U);
}

lawn_time_t noted;

void note(lawn_time_t now)
{
    noted = now;
}

TEST_F(HppFunction, TakesAnyCallableThatFits)
{
    static_assert(!std::is_copy_constructible_v<lawn::function_timer>);
    static_assert(!std::is_move_constructible_v<lawn::function_timer>);
    static_assert(!std::is_copy_assignable_v<lawn::function_timer>);
    static_assert(!std::is_move_assignable_v<lawn::function_timer>);
    unsigned seen = 0;
    std::array<unsigned *, lawn::function_timer::capacity / sizeof(void *)>
        full = {};
    full.back() = &seen;
    lawn::function_timer largest([full](lawn_time_t) { ++*full.back(); });
    lawn::function_timer function(note);
    lawn::function_timer erased(
        std::function<void(lawn_time_t)>([&](lawn_time_t) { seen += 10; }));
    lawn::function_timer mutating(
        [&seen, i = 100U](lawn::function_timer &self, lawn_time_t) mutable {
            EXPECT_FALSE(self.is_active());
            seen += i;
            i *= 10;
        });
    for (lawn_time_t now = 1001; now <= 1002; ++now) {
        largest.start(engine_, 1ms);
        function.start(engine_, 1ms);
        erased.start(engine_, 1ms);
        mutating.start(engine_, 1ms);
        EXPECT_EQ(pass_at(now), 4U);
        EXPECT_EQ(noted, now);
    }
    EXPECT_EQ(seen, 2U + 20 + 100 + 1000);
}

TEST_F(HppFunction, DestroysItsCallableOnce)
{
    const auto alive = std::make_shared<int>(0);
    {
        lawn::function_timer idle([alive](lawn_time_t) {});
        lawn::function_timer running([alive](lawn_time_t) {});
        running.start(engine_, 1ms);
        EXPECT_EQ(alive.use_count(), 3);
    }
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(pass_at(1010), 0U);
    // From inside: what the callable has captured goes with it.
    std::optional<lawn::function_timer> timer;
    timer.emplace([&timer, alive](lawn_time_t) {
        const auto kept = alive;
        timer.reset();
        EXPECT_EQ(kept.use_count(), 2);
    });
    timer->start(engine_, 1ms);
    EXPECT_EQ(pass_at(1011), 1U);
    EXPECT_FALSE(timer.has_value());
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_F(HppFunction, AnEngineProgressesAndTellsItsTime)
{
    EXPECT_EQ(engine_.now(), 1000U);
    lawn::timer timer([](lawn_time_t) {});
    timer.start(engine_, 5ms);
    EXPECT_EQ(engine_.wait(0ns), LAWN_ERR_TIMED_OUT);
    EXPECT_EQ(pass_at(1007), 1U);
    EXPECT_EQ(engine_.now(), 1007U);
    EXPECT_EQ(engine_.progress(), 0U);
    timer.start(engine_, 0ms);
    EXPECT_EQ(engine_.wait(1h), LAWN_OK); // is due: poll again
    EXPECT_EQ(engine_.wait(), LAWN_OK);
    EXPECT_EQ(engine_.progress(), 1U);
}

TEST_F(HppFunction, StartsAtADeadlineOfTheEngines)
{
    lawn::timer timer([](lawn_time_t) {});
    timer.start_at(engine_, engine_.now() + engine_.to_ticks(20ms));
    EXPECT_EQ(timer.deadline(), 1020U);
    timer.start_at(engine_, 5U); // past
    EXPECT_EQ(pass_at(1000), 1U);
    timer.start_at(engine_, LAWN_TIME_INFINITY);
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
}

// A bare lawn that is told the process's time takes its durations.
TEST_F(HppFunction, StartsOnABareLawnByADuration)
{
    const lawn::lawn_ptr lawn = lawn::make_lawn();
    lawn::timer timer([](lawn_time_t) {});
    timer.start(lawn.get(), 500, 3ms);
    EXPECT_EQ(timer.deadline(), 500 + tsc_clock::to_ticks(3ms));
    timer.start(lawn.get(), 500, duration<double>(-1));
    EXPECT_EQ(timer.deadline(), 500U);
    timer.start(lawn.get(), 500, std::chrono::hours::max());
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
}

// A clock of the test's own: what the time is, and how it is counted.
template <typename Duration> struct ClockOf {
    using duration = Duration;
    using rep = typename duration::rep;
    using period = typename duration::period;
    using time_point = std::chrono::time_point<ClockOf>;
    static constexpr bool is_steady = false;

    static time_point now() noexcept
    {
        return time_point(duration(time));
    }

    static inline rep time = 0;
};

using Seconds = ClockOf<std::chrono::seconds>;
using Nanoseconds = ClockOf<std::chrono::nanoseconds>;
using Picoseconds = ClockOf<duration<int64_t, std::pico>>;
using Floating = ClockOf<duration<double>>;
using Unsigned = ClockOf<duration<uint64_t, std::milli>>;

template <typename Clock, typename Duration>
lawn_time_t ticks_until(const lawn::engine &engine, Duration since_epoch)
{
    return engine.to_ticks(time_point<Clock, Duration>(since_epoch));
}

TEST_F(HppFunction, TellsTheTicksUntilAPointInTime)
{
    Seconds::time = 50;
    EXPECT_EQ(ticks_until<Seconds>(engine_, 53s), 3000U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, 50s + 1ns), 1U); // rounded up
    EXPECT_EQ(ticks_until<Seconds>(engine_, 50s), 0U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, 49s), 0U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, std::chrono::hours::min()), 0U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, std::chrono::hours::max()),
              LAWN_TIME_INFINITY);
    EXPECT_EQ(engine_.to_ticks(Seconds::time_point::max()), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_until<Seconds>(engine_, duration<double>(50.5)), 500U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, duration<double>(1e300)),
              LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_until<Seconds>(engine_, duration<double>(-1e300)), 0U);
    Seconds::time = -50; // before the epoch
    EXPECT_EQ(ticks_until<Seconds>(engine_, -47s), 3000U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, -53s), 0U);
    EXPECT_EQ(ticks_until<Seconds>(engine_, 10s), 60'000U);
    Nanoseconds::time = 1;
    EXPECT_EQ(engine_.to_ticks(Nanoseconds::time_point::max()),
              LAWN_TIME_INFINITY);
    EXPECT_EQ(engine_.to_ticks(Nanoseconds::now() + 1ms), 1U);
    EXPECT_EQ(engine_.to_ticks(Nanoseconds::now() + 1000001ns), 2U);
    Picoseconds::time = 1'000'000'000 - 1; // a picosecond to go
    EXPECT_EQ(ticks_until<Picoseconds>(engine_, 1ms), 1U);
    Picoseconds::time = 1'000'000'000;
    EXPECT_EQ(ticks_until<Picoseconds>(engine_, 1ms), 0U);
    Floating::time = -0.25;
    EXPECT_EQ(ticks_until<Floating>(engine_, 1s), 1250U);
    Unsigned::time = 5000;
    EXPECT_EQ(ticks_until<Unsigned>(engine_, 5001ms), 1U);
    EXPECT_EQ(ticks_until<Unsigned>(engine_, 4999ms), 0U);
}

TEST_F(HppFunction, StartsAtAPointInTime)
{
    lawn::timer timer([](lawn_time_t) {});
    Nanoseconds::time = 77'000'000;
    now_ = 1500; // is read
    timer.start_at(engine_, Nanoseconds::now() + 20ms);
    EXPECT_EQ(timer.deadline(), 1520U);
    timer.start_at(engine_, Nanoseconds::now() - 20ms);
    EXPECT_EQ(timer.deadline(), 1500U);
    timer.start_at(engine_, Nanoseconds::time_point::max());
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
}

// On the process's clock it is exact, but for the time between two readings.
TEST(HppPoint, OfTheProcessesClockIsNeverEarly)
{
    const lawn::engine engine = lawn::make_engine();
    ASSERT_TRUE(engine);
    lawn::timer timer([](lawn_time_t) {});
    const tsc_clock::time_point when = tsc_clock::now() + 1h;
    const lawn_time_t before = lawn_get_time();
    timer.start_at(engine, when);
    const lawn_time_t after = lawn_get_time();
    // Readings may be some tens of cycles off program order.
    const lawn_time_t off = tsc_clock::to_ticks(1us);
    const lawn_time_t due = tsc_clock::to_ticks(when.time_since_epoch());
    EXPECT_GE(timer.deadline() + off, due);
    EXPECT_LE(timer.deadline(), due + (after - before) + off);
}

} // namespace
