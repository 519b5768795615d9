// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The owner's plain timers, which its lawn runs: what the lawn counts, shows
// and drains of them, how late they are, and what the child of a fork does with
// its copies.

#include "shm_fixture.h"

#include <lawn/stats.h>

#include <functional>

#include <sys/wait.h>

namespace
{

class ShmLawn : public TimedShmOwner
{
protected:
    using TimedShmOwner::pass;
    void pass(lawn_time_t later)
    {
        now_ += later;
        pass();
    }

    // The number of events that the client has not read yet.
    static unsigned events(lawn_shm_client_t *client)
    {
        unsigned count = 0;
        lawn_shm_event_t event;
        while (lawn_shm_next(client, &event)) {
            ++count;
        }
        return count;
    }

    // Besides what the library has of its own.
    void expect_timers(size_t count) const
    {
        const lawn_t *const lawn = lawn_engine_lawn(engine_);
        EXPECT_EQ(lawn_count(lawn), count);
        size_t shown = 0;
        lawn_for_each(
            lawn,
            [](const lawn_timer_t *, void *arg) {
                ++*static_cast<size_t *>(arg);
            },
            &shown);
        EXPECT_EQ(shown, count);
        EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    }

    static void expect_of_a_child(const std::function<bool()> &work)
    {
        const pid_t child = fork();
        if (child == 0) {
            exit(work() ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }

    lawn_histogram_t lateness() const
    {
        lawn_histogram_t late;
        lawn_engine_query_lateness(engine_, &late);
        return late;
    }
};

TEST_F(ShmLawn, CountsOnlyTimersOfTheProgram)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t first = alloc(client);
    const lawn_shm_timer_t second = alloc(client);
    lawn_timer_t plain;
    lawn_timer_init(&plain, nullptr);
    lawn_engine_start(engine_, &plain, 10'000);
    lawn_shm_start(client, first, now_ + 100);
    lawn_shm_start(client, second, now_ + 100);
    pass();
    expect_timers(1);
    lawn_shm_start(client, first, now_ + 50);   // earlier
    lawn_shm_start(client, second, now_ + 200); // later
    pass();
    expect_timers(1);
    pass(100); // one expires, and the other is only moved
    EXPECT_EQ(events(client), 1U);
    expect_timers(1);
    lawn_shm_release(client, second); // which is in the lawn
    lawn_shm_release(client, first);  // and this one is not
    pass();
    expect_timers(1);
    EXPECT_EQ(events(client), 0U);
    const lawn_shm_timer_t third = alloc(client);
    lawn_shm_start(client, third, now_ + 100);
    pass();
    lawn_shm_close(client); // which still has one
    clients_.clear();
    pass();
    expect_timers(1);
    lawn_timer_stop(lawn_engine_lawn(engine_), &plain);
    expect_timers(0);
}

TEST_F(ShmLawn, DoesNotCountWhatADestroyedOwnerHad)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_start(client, alloc(client), now_ + 100);
    pass();
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    expect_timers(0);
}

TEST_F(ShmLawn, ADrainStopsTimersThatMayBeStartedAgain)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_shm_start(client, timer, now_ + 100);
    pass();
    EXPECT_EQ(lawn_drain(lawn_engine_lawn(engine_),
                         [](lawn_timer_t *, lawn_time_t) {
                             ADD_FAILURE() << "this is not the program's";
                         }),
              0U);
    lawn_timer_t plain;
    lawn_timer_init(&plain, nullptr);
    lawn_engine_start(engine_, &plain, 500);
    expect_timers(1);
    EXPECT_FALSE(lawn_shm_stop(client, timer));
    pass(1000);
    expect_timers(0);
    EXPECT_EQ(events(client), 0U);
    EXPECT_TRUE(lawn_shm_start(client, timer, now_ + 100));
    pass();
    pass(100);
    EXPECT_EQ(events(client), 1U);
}

// A plain timer that was moved, or that found its timer stopped, is not late.
TEST_F(ShmLawn, WhatExpiresCountsAsLateAndNothingElseDoes)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t stopped = alloc(client);
    const lawn_shm_timer_t extended = alloc(client);
    lawn_shm_start(client, stopped, now_ + 100);
    lawn_shm_start(client, extended, now_ + 100);
    pass();
    lawn_shm_stop(client, stopped);
    lawn_shm_start(client, extended, now_ + 10'000);
    pass(5000);
    lawn_histogram_t late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), 0U);
    EXPECT_EQ(late.max, 0U);
    pass(5007);
    late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), 1U);
    EXPECT_EQ(late.max, 7U);
    EXPECT_EQ(events(client), 1U);
}

TEST_F(ShmLawn, TheBacklogIsWhatWouldExpire)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t due = alloc(client);
    const lawn_shm_timer_t stopped = alloc(client);
    const lawn_shm_timer_t extended = alloc(client);
    for (const lawn_shm_timer_t timer : {due, stopped, extended}) {
        lawn_shm_start(client, timer, now_ + 100);
    }
    pass();
    const lawn_t *const lawn = lawn_engine_lawn(engine_);
    EXPECT_EQ(lawn_backlog(lawn, now_ + 100, 0), 3U);
    lawn_shm_stop(client, stopped);
    lawn_shm_start(client, extended, now_ + 500);
    EXPECT_EQ(lawn_backlog(lawn, now_ + 100, 0), 1U);
    EXPECT_EQ(lawn_backlog(lawn, now_ + 500, 0), 2U);
    expect_of_a_child([&] { return lawn_backlog(lawn, now_ + 500, 0) == 0; });
    pass(500);
    EXPECT_EQ(events(client), 2U);
    EXPECT_EQ(lawn_backlog(lawn, now_, 0), 0U);
}

// It runs the engine that it has inherited, and then destroys it.
TEST_F(ShmLawn, TheChildOfAForkTakesNothingFromItsParent)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t due = alloc(client);
    const lawn_shm_timer_t later = alloc(client);
    const lawn_shm_timer_t posted = alloc(client);
    pass();
    lawn_shm_start(client, due, now_ + 100);
    lawn_shm_start(client, later, now_ + 1000);
    pass();
    lawn_shm_start(client, posted, now_ + 100);
    expect_of_a_child([this] {
        now_ += 500;
        pass();
        const bool may_sleep = lawn_engine_arm(engine_) == LAWN_OK;
        lawn_shm_destroy(shm_);
        lawn_engine_destroy(engine_);
        return may_sleep;
    });
    EXPECT_EQ(events(client), 0U) << "nothing has expired here";
    pass();
    pass(100);
    EXPECT_EQ(events(client), 2U);
    pass(900);
    EXPECT_EQ(events(client), 1U);
    EXPECT_TRUE(lawn_shm_is_open(client, 0)) << "the owner";
    EXPECT_EQ(files(), 3U);
}

// The bell is for the parent, which has not come to take it.
TEST_F(ShmLawn, TheChildOfAForkSleepsWhileItsParentIsRung)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    pass();
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    lawn_shm_start(client, timer, now_ + 100);
    expect_of_a_child([this] {
        pass();
        return lawn_engine_arm(engine_) == LAWN_OK;
    });
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    pass();
    pass(100);
    EXPECT_EQ(events(client), 1U);
}

// The child's drain is its own, too.
TEST_F(ShmLawn, TheChildOfAForkDrainsOnlyItsCopies)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_start(client, alloc(client), now_ + 100);
    pass();
    expect_of_a_child([this] {
        lawn_drain(lawn_engine_lawn(engine_), nullptr);
        return lawn_engine_next(engine_) == LAWN_TIME_INFINITY;
    });
    pass(100);
    EXPECT_EQ(events(client), 1U);
}

// A program's clean-up may run in a child, too.
TEST_F(ShmLawn, TheChildOfAForkClosesOnlyItsCopyOfAClient)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_start(client, alloc(client), now_ + 100);
    pass();
    expect_of_a_child([client] {
        const bool has_owner = lawn_shm_is_open(client, 0);
        lawn_shm_close(client);
        return !has_owner;
    });
    pass(99);
    EXPECT_EQ(stats().clients, 1U);
    pass(1);
    EXPECT_EQ(events(client), 1U);
    EXPECT_TRUE(lawn_shm_is_open(client, 0));
    EXPECT_EQ(files(), 3U);
}

} // namespace
