// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A process that is stopped between any two instructions of a call for a timer,
// while the process that manages runs the timer's function.

#include "rte_alt_fixture.h"

#include "../../test/stepping.h"

namespace
{

using lawn_test::begin_stepping;
using lawn_test::end_stepping;
using lawn_test::step;

class RteAltSteps : public RteAlt
{
protected:
    // A child that has started timers 0 and 1, and is about to stop timer 0.
    static pid_t begin_stop()
    {
        shared->is_up = false;
        const pid_t pid = begin_stepping([] {
            of_parent = lawn_rte_alts[shared->id];
            lawn_rte_alts[shared->id] = nullptr;
            shared->result = reset(1, 300) | reset(0, 100);
            raise(SIGSTOP);
            shared->result = stop(0);
            shared->is_up = true;
            raise(SIGSTOP);
        });
        end_stepping(pid);
        EXPECT_EQ(shared->result, 0);
        return pid;
    }

    // The child ends, and the next one begins with nothing.
    void end(pid_t pid)
    {
        kill_child(pid);
        shared->now += msec;
        manage(shared->now);
    }

    // At most so many steps of the stop, and none behind it: an instrument does
    // not take as many each time. Returns how many.
    static unsigned step_in_stop(pid_t pid, unsigned most)
    {
        unsigned steps = 0;
        while (steps < most && !shared->is_up && step(pid, 1)) {
            ++steps;
        }
        return steps;
    }

    unsigned steps_of_stop()
    {
        const pid_t pid = begin_stop();
        const unsigned steps = step_in_stop(pid, most_steps);
        end(pid);
        return steps;
    }

    // After `steps` of the stop, timer 0 expires. Its function starts it again
    // for another lcore, where it gets a slot of this process.
    void expire_within_stop(unsigned steps)
    {
        runs.clear();
        const uint64_t now = shared->now;
        const pid_t pid = begin_stop();
        EXPECT_TRUE(step_in_stop(pid, steps) == steps || shared->is_up);
        then = [this] {
            if (runs.back() == 0) {
                EXPECT_EQ(reset(0, 100, SINGLE, 1), 0);
            }
        };
        manage(now + 100);
        end_stepping(pid); // to the end of the stop
        then = nullptr;
        EXPECT_TRUE(shared->is_up);
        manage(now + 200, 1);
        const std::vector<unsigned> by_stop = shared->result == 0
                                                  ? std::vector<unsigned>{}
                                                  : std::vector<unsigned>{0, 0};
        EXPECT_EQ(runs, by_stop) << "after " << steps;
        EXPECT_TRUE(rte_timer_pending(timer(1))) << "after " << steps;
        manage(now + 300);
        EXPECT_FALSE(rte_timer_pending(timer(1))) << "after " << steps;
        end(pid);
    }

    static constexpr unsigned most_steps = 200000;
};

TEST_F(RteAltSteps, AStopTouchesNoOtherTimerWhateverTheFunctionDoesMeanwhile)
{
    if (!lawn_test::can_trace()) {
        GTEST_SKIP() << "a process cannot be traced here";
    }
    const lawn_test::OnOneProcessor here;
    const unsigned steps = steps_of_stop();
    EXPECT_GT(steps, 50U);
    EXPECT_LT(steps, most_steps);
    constexpr unsigned places = 80;
    for (unsigned i = 0; i < places && !HasFailure(); ++i) {
        expire_within_stop(steps * i / places);
    }
}

} // namespace
