// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The clock of a program's machine is set back, or stands still. The program's
// timers come as if nothing had happened, and a pump fires those of the store
// in time. The library is made to read clock_gettime() instead of the
// processor's counter, and this program has one of its own.

#include "flow_fixture.h"

#include "src/loop.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace
{

constexpr int64_t second_ns = 1000000000;
constexpr int64_t hour_ns = 3600 * second_ns;

const bool is_forced = setenv("LAWN_CLOCK", "clock_gettime", 1) == 0;
int64_t ahead_ns = 1000 * hour_ns; // of the real clock
int64_t fixed_ns = 0;              // if not 0, what the clock shows

} // namespace

extern "C" __attribute__((visibility("default"))) int
clock_gettime(clockid_t clock, timespec *time) noexcept
{
    const long result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_MONOTONIC_RAW) {
        const int64_t ns =
            fixed_ns != 0 ? fixed_ns
                          : time->tv_sec * second_ns + time->tv_nsec + ahead_ns;
        time->tv_sec = ns / second_ns;
        time->tv_nsec = ns % second_ns;
    }
    return static_cast<int>(result);
}

namespace
{

using namespace lawn_test;
using lawn::durable::Loop;
using lawn::durable::Timer;

class DurableLoop : public testing::Test
{
protected:
    void SetUp() override
    {
        ASSERT_TRUE(is_forced);
        ASSERT_EQ(loop.open(), LAWN_OK);
    }
    void TearDown() override
    {
        fixed_ns = 0;
    }

    // Sleeps until there is something to do, and does it. False: there was
    // nothing for long.
    bool run_once()
    {
        pollfd fd = {loop.fd(), POLLIN, 0};
        if (::poll(&fd, 1, 10000) != 1) {
            return false;
        }
        loop.poll();
        return true;
    }

    Loop loop;
    unsigned expired = 0;
    Timer timer{loop, [this] { ++expired; }};
};

TEST_F(DurableLoop, ATimerIsInTimeWhenTheClockIsSetBackFar)
{
    for (unsigned round = 1; round <= 3; ++round) {
        timer.start_after(20000);
        ahead_ns -= hour_ns;
        EXPECT_TRUE(run_once());
        EXPECT_EQ(expired, round);
    }
}

// The clock shows more than when the sleep began, so nothing but the end of the
// sleep tells.
TEST_F(DurableLoop, ATimerIsInTimeWhenTheClockIsSetBackWithinItsSleep)
{
    timer.start_after(50000);
    ahead_ns -= second_ns / 40;
    EXPECT_TRUE(run_once());
    EXPECT_EQ(expired, 1U);
}

TEST_F(DurableLoop, NoOtherTimerIsEarlyForIt)
{
    timer.start_after(20000);
    ahead_ns -= hour_ns;
    loop.poll(); // notices it
    Timer later{loop, [this] { expired += 10; }};
    later.start_after(60000000);
    // What passed before the poll is lost, so the sleep may end too soon.
    while (expired == 0 && run_once()) {
    }
    EXPECT_EQ(expired, 1U);
}

TEST_F(DurableLoop, AWaitEndsWhileTheClockStandsStill)
{
    fixed_ns = 2000 * hour_ns;
    EXPECT_EQ(loop.wait(20000), LAWN_ERR_TIMED_OUT);
    timer.start_after(20000);
    EXPECT_EQ(loop.wait(60000000), LAWN_OK);
    EXPECT_EQ(expired, 1U);
}

// Between two processors.
TEST_F(DurableLoop, ASmallStepBackDoesNotAddUp)
{
    fixed_ns = 2000 * hour_ns;
    const lawn_time_t before = loop.now();
    for (int i = 0; i < 100; ++i) {
        fixed_ns -= 500000;
        EXPECT_EQ(loop.now(), before);
        fixed_ns += 500000;
        EXPECT_EQ(loop.now(), before);
    }
    fixed_ns += 1;
    EXPECT_EQ(loop.now(), before + 1);
}

TEST_F(DurableLoop, AStepBackIsMadeUpFor)
{
    fixed_ns = 2000 * hour_ns;
    const lawn_time_t before = loop.now();
    fixed_ns -= hour_ns;
    EXPECT_EQ(loop.now(), before);
    fixed_ns += 7;
    EXPECT_EQ(loop.now(), before + 7);
    fixed_ns -= hour_ns;
    EXPECT_EQ(loop.now(), before + 7);
    fixed_ns += hour_ns;
    EXPECT_EQ(loop.now(), before + 7 + static_cast<lawn_time_t>(hour_ns));
}

class DurableClock : public Flow
{
protected:
    Client *pumping = add_client();
    Taker taker{client};
};

TEST_F(DurableClock, APumpFiresThoughItsClockIsSetBack)
{
    add_pump(pumping);
    taker.open();
    start("a", 0);
    run_until([&] { return taker.count("a") == 1; });
    start("b", 200000);
    ahead_ns -= hour_ns;
    run_until([&] { return taker.count("b") == 1; });
    start("c", 50000);
    run_until([&] { return taker.count("c") == 1; });
    EXPECT_EQ(get("c").status, LAWN_OK);
    EXPECT_EQ(taker.taken.size(), 3U);
}

} // namespace
