// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Whether a hang is told: tests of threads count on it that none goes
// unnoticed.

#include "../../hang.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>

#include <unistd.h>

namespace
{

using lawn_test::got_on;
using lawn_test::Thread;
using lawn_test::wait_for;
using lawn_test::Watch;

class HangDeathTest : public testing::Test
{
protected:
    HangDeathTest()
    {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

// Each waits for what the other would do next.
void wait_for_each_other()
{
    Watch::most_processor_sec = 0.2;
    Watch::between = std::chrono::milliseconds(10);
    std::atomic<bool> has_asked{false};
    std::atomic<bool> has_answered{false};
    Thread owner("the owner", [&] {
        wait_for("the starter", "to ask", [&] { return +has_asked; });
        has_answered = true;
    });
    wait_for("the owner", "to answer", [&] { return +has_answered; });
    has_asked = true;
    owner.join();
}

TEST_F(HangDeathTest, ThreadsThatWaitForEachOtherAreNamed)
{
    EXPECT_DEATH(
        wait_for_each_other(),
        "threads work, but do not get on.\n"
        "  the main thread waits for the owner to answer, .*hang_test.cc:.*\n"
        "  the owner waits for the starter to ask, .*hang_test.cc:");
}

void lock_twice()
{
    Watch::most_looks = 20;
    Watch::between = std::chrono::milliseconds(10);
    std::mutex mutex;
    mutex.lock();
    Thread locker("the locker", [&] { mutex.lock(); });
    locker.join();
}

TEST_F(HangDeathTest, ThreadsThatSleepAreNoticed)
{
    EXPECT_DEATH(lock_twice(),
                 "all threads sleep.\n"
                 "  the main thread waits for the locker to end, .*\n"
                 "  the locker works, and has not waited");
}

void work()
{
    const clock_t end = clock() + CLOCKS_PER_SEC / 5;
    while (clock() < end) {
        got_on();
    }
}

// Somebody waits, and more processor time than the bound is used.
[[noreturn]] void get_on()
{
    Watch::most_processor_sec = 0.05;
    Watch::between = std::chrono::milliseconds(1);
    Thread worker("the worker", work);
    worker.join();
    _exit(0);
}

TEST_F(HangDeathTest, AThreadThatGetsOnIsLeftAlone)
{
    EXPECT_EXIT(get_on(), testing::ExitedWithCode(0), "");
}

} // namespace
