// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What an observer is told, and when a lawn takes one. queue_pass_test.cc has
// queues, trace_test.cc an observer at work.

#include <lawn/observer.h>

#include <gtest/gtest.h>

#include <string>

namespace
{

struct Log : lawn_observer_t {
    std::string text;

    Log() : lawn_observer_t{on_event}
    {
    }

    static void on_event(lawn_observer_t *observer, lawn_event_t event,
                         const lawn_timer_t *timer, lawn_time_t now,
                         lawn_time_t ttl)
    {
        static const char *const names[] = {"start", "stop", "pause", "fire",
                                            "advance"};
        EXPECT_EQ(timer == nullptr, event == LAWN_EVENT_ADVANCE);
        static_cast<Log *>(observer)->text += std::string(names[event]) + " " +
                                              std::to_string(now) + " " +
                                              std::to_string(ttl) + "\n";
    }
};

class ObserverTest : public testing::Test
{
protected:
    ObserverTest()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        lawn_timer_init(&timer_, nullptr);
    }

    ~ObserverTest() override
    {
        lawn_destroy(lawn_);
    }

    lawn_t *lawn_ = nullptr;
    lawn_timer_t timer_;
    Log log_;
};

TEST_F(ObserverTest, IsToldOfEachCallAndEachExpiry)
{
    ASSERT_EQ(lawn_observe(lawn_, &log_), LAWN_OK);
    lawn_timer_start(lawn_, &timer_, 10, 1000);
    lawn_timer_start(lawn_, &timer_, 20, 2000); // a re-arm
    lawn_timer_pause(lawn_, &timer_);
    lawn_timer_stop(lawn_, &timer_); // of an idle timer
    lawn_timer_start_at(lawn_, &timer_, 30, 35);
    EXPECT_EQ(lawn_advance(lawn_, 40, 0), 1U);
    lawn_timer_start(lawn_, &timer_, 40, LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 1U);
    EXPECT_EQ(log_.text, "start 10 1000\n"
                         "start 20 2000\n"
                         "pause 20 0\n"
                         "stop 20 0\n"
                         "start 30 5\n"
                         "advance 40 0\n"
                         "fire 40 0\n"
                         "start 40 18446744073709551615\n"
                         "stop 40 0\n");
}

TEST_F(ObserverTest, TakenAwayItIsToldNothing)
{
    ASSERT_EQ(lawn_observe(lawn_, &log_), LAWN_OK);
    ASSERT_EQ(lawn_unobserve(lawn_, &log_), LAWN_OK);
    EXPECT_EQ(lawn_unobserve(lawn_, &log_), LAWN_ERR_NO_ELEM);
    lawn_timer_start(lawn_, &timer_, 0, 5);
    lawn_timer_start(lawn_, &timer_, 0, 50);
    EXPECT_EQ(lawn_advance(lawn_, 50, 0), 1U);
    EXPECT_EQ(log_.text, "");
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
}

TEST_F(ObserverTest, ALawnHasOneAtMost)
{
    Log other;
    ASSERT_EQ(lawn_observe(lawn_, &log_), LAWN_OK);
    EXPECT_EQ(lawn_observe(lawn_, &other), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_unobserve(lawn_, &other), LAWN_ERR_NO_ELEM);
    lawn_advance(lawn_, 7, 0);
    EXPECT_EQ(log_.text, "advance 7 0\n");
    EXPECT_EQ(other.text, "");
    ASSERT_EQ(lawn_unobserve(lawn_, &log_), LAWN_OK);
    EXPECT_EQ(lawn_observe(lawn_, &other), LAWN_OK);
}

TEST_F(ObserverTest, RefusesBadInput)
{
    lawn_observer_t none = {nullptr};
    EXPECT_EQ(lawn_observe(nullptr, &log_), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_observe(lawn_, nullptr), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_observe(lawn_, &none), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_unobserve(nullptr, &log_), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_unobserve(lawn_, nullptr), LAWN_ERR_NO_ELEM);
}

TEST_F(ObserverTest, ACallbackCannotChangeIt)
{
    struct Watched {
        lawn_timer_t timer; // first
        lawn_t *lawn;
        lawn_status_t begun;
        lawn_status_t ended;
        Log log;
        Log other;
    } watched = {};
    watched.lawn = lawn_;
    ASSERT_EQ(lawn_observe(lawn_, &watched.log), LAWN_OK);
    lawn_timer_init(&watched.timer, [](lawn_timer_t *timer, lawn_time_t) {
        Watched *const self = reinterpret_cast<Watched *>(timer);
        self->begun = lawn_observe(self->lawn, &self->other);
        self->ended = lawn_unobserve(self->lawn, &self->log);
    });
    lawn_timer_start(lawn_, &watched.timer, 0, 1);
    EXPECT_EQ(lawn_advance(lawn_, 1, 0), 1U);
    EXPECT_EQ(watched.begun, LAWN_ERR_BUSY);
    EXPECT_EQ(watched.ended, LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_unobserve(lawn_, &watched.log), LAWN_OK);
}

} // namespace
