// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An owner of shared memory that ends all timers before they are due.

#include "shm_fixture.h"

#include <algorithm>

#include <sys/wait.h>

namespace
{

class ShmDrain : public TimedShmOwner
{
protected:
    struct Call {
        uint64_t cookie;
        lawn_time_t deadline;
        lawn_time_t now;
    };

    void own_with_function()
    {
        params_.expired = on_expired;
        params_.arg = this;
        own();
    }

    static lawn_time_t on_expired(void *arg, lawn_shm_timer_t, uint64_t cookie,
                                  lawn_time_t deadline, lawn_time_t now)
    {
        ShmDrain *const self = static_cast<ShmDrain *>(arg);
        self->calls_.push_back({cookie, deadline, now});
        return self->next_;
    }

    std::vector<lawn_time_t> deadlines_of_events(lawn_shm_client_t *client)
    {
        std::vector<lawn_time_t> deadlines;
        lawn_shm_event_t event = {};
        while (lawn_shm_next(client, &event)) {
            deadlines.push_back(event.deadline);
        }
        std::sort(deadlines.begin(), deadlines.end());
        return deadlines;
    }

    std::vector<Call> calls_;
    lawn_time_t next_ = LAWN_TIME_INFINITY;
};

TEST_F(ShmDrain, EndsEachTimerOnceAndTellsItsClient)
{
    own();
    lawn_shm_client_t *const one = open_client();
    lawn_shm_client_t *const other = open_client();
    const lawn_time_t begin = now_;
    const lawn_shm_timer_t known = alloc(one);
    lawn_shm_start(one, known, begin + 100);
    lawn_shm_start(other, alloc(other), begin + 300);
    pass();
    lawn_shm_start(one, alloc(one), begin + 200); // of which it has not heard
    lawn_shm_start(one, alloc(one), LAWN_TIME_INFINITY - 1);
    const lawn_shm_timer_t stopped = alloc(one);
    lawn_shm_start(one, stopped, begin + 100);
    lawn_shm_stop(one, stopped);
    EXPECT_EQ(lawn_shm_drain(shm_), 4U);
    EXPECT_FALSE(lawn_shm_stop(one, known));
    EXPECT_EQ(deadlines_of_events(one),
              (std::vector<lawn_time_t>{begin + 100, begin + 200,
                                        LAWN_TIME_INFINITY - 1}));
    EXPECT_EQ(deadlines_of_events(other),
              std::vector<lawn_time_t>{begin + 300});
    EXPECT_EQ(lawn_shm_drain(shm_), 0U);
    now_ += 1000;
    pass();
    EXPECT_TRUE(deadlines_of_events(one).empty());
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY)
        << "a plain timer is left";
}

TEST_F(ShmDrain, CallsTheFunctionAheadOfTheDeadline)
{
    own_with_function();
    lawn_shm_client_t *const client = open_client();
    pass();
    lawn_shm_start(client, alloc(client, 7), now_ + 100);
    EXPECT_EQ(lawn_shm_drain(shm_), 1U);
    ASSERT_EQ(calls_.size(), 1U);
    EXPECT_EQ(calls_[0].cookie, 7U);
    EXPECT_EQ(calls_[0].deadline, now_ + 100);
    EXPECT_EQ(calls_[0].now, now_);
}

TEST_F(ShmDrain, ATimerThatTheFunctionLetsGoOnExpiresAtItsTime)
{
    own_with_function();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_start(client, alloc(client), now_ + 100);
    next_ = now_ + 500;
    EXPECT_EQ(lawn_shm_drain(shm_), 1U);
    EXPECT_TRUE(deadlines_of_events(client).empty());
    next_ = LAWN_TIME_INFINITY;
    now_ += 499;
    pass();
    EXPECT_EQ(calls_.size(), 1U);
    ++now_;
    pass();
    EXPECT_EQ(calls_.size(), 2U);
    EXPECT_EQ(deadlines_of_events(client), std::vector<lawn_time_t>{now_});
}

// Nothing was late, and the timers can be started as before.
TEST_F(ShmDrain, LeavesNoTrace)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_histogram_t late;
    for (unsigned i = 0; i < 3; ++i) {
        lawn_shm_start(client, timer, now_ + 100);
        pass();
        EXPECT_EQ(lawn_shm_drain(shm_), 1U);
        EXPECT_EQ(deadlines_of_events(client).size(), 1U);
        EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
    }
    lawn_engine_query_lateness(engine_, &late);
    EXPECT_EQ(lawn_histogram_count(&late), 0U);
    lawn_shm_start(client, timer, now_ + 100);
    now_ += 100;
    pass();
    EXPECT_EQ(deadlines_of_events(client), std::vector<lawn_time_t>{now_});
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
}

TEST_F(ShmDrain, AReleasedTimerHasNoEvent)
{
    own_with_function();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_shm_start(client, timer, now_ + 100);
    pass();
    lawn_shm_release(client, timer);
    EXPECT_EQ(lawn_shm_drain(shm_), 0U);
    EXPECT_TRUE(calls_.empty());
}

// The timers are its parent's.
TEST_F(ShmDrain, TheChildOfAForkEndsNothing)
{
    own_with_function();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_start(client, alloc(client), now_ + 100);
    pass();
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(lawn_shm_drain(shm_) == 0 && calls_.empty() ? 0 : 1);
    }
    int status = 1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(lawn_shm_drain(shm_), 1U);
}

} // namespace
