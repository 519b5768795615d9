// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/queue.h, one by one, on virtual time.

#include "timer_fixture.h"
#include "times.h"

namespace
{

using lawn_test::Times;
using lawn_test::ttl;

class Queue : public lawn_test::TimerFixture
{
protected:
    static void start_in(lawn_queue_t *queue, Probe &probe, lawn_time_t now)
    {
        lawn_queue_start(queue, &probe.timer, now);
    }

    // One timer per tick from `now` on.
    Probes start_some(lawn_queue_t *queue, size_t count, lawn_time_t now)
    {
        Probes some = make(count);
        for (size_t i = 0; i < count; ++i) {
            start_in(queue, *some[i], now + i);
        }
        return some;
    }
};

TEST_F(Queue, FiresInTheOrderOfStartsEachAtItsDeadline)
{
    lawn_queue_t *const queue = create(ttl);
    EXPECT_EQ(lawn_queue_ttl(queue), ttl);
    EXPECT_EQ(lawn_queue_count(queue), 0U);
    const Probes all = start_some(queue, 100, 5);
    EXPECT_EQ(lawn_queue_count(queue), 100U);
    EXPECT_EQ(lawn_count(lawn_), 100U);
    for (size_t i = 0; i < 50; ++i) {
        EXPECT_EQ(lawn_timer_deadline(&all[i]->timer), 5 + i + ttl);
        EXPECT_EQ(lawn_advance(lawn_, 4 + i + ttl, 0), 0U);
        EXPECT_LE(lawn_next(lawn_), 5 + i + ttl);
        EXPECT_EQ(lawn_advance(lawn_, 5 + i + ttl, 0), 1U);
    }
    EXPECT_EQ(lawn_queue_count(queue), 50U);
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl, 0), 50U);
    EXPECT_EQ(fired(), all);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
}

TEST_F(Queue, AllOfOneTickFireInTheOrderOfStarts)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = make(3000);
    for (Probe *const p : all) {
        start_in(queue, *p, 0);
    }
    // In reverse: the last start decides.
    for (size_t i = all.size(); i-- > 0;) {
        start_in(queue, *all[i], 10);
    }
    EXPECT_EQ(lawn_count(lawn_), all.size());
    EXPECT_EQ(lawn_advance(lawn_, ttl + 9, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 10, 0), all.size());
    EXPECT_EQ(fired(), Probes(all.rbegin(), all.rend()));
}

TEST_F(Queue, ARestartMovesToTheTail)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 4, 0);
    for (const size_t i : {0, 2, 2, 3, 0}) { // the first, middle, last, itself
        start_in(queue, *all[i], 10);
        EXPECT_EQ(lawn_queue_count(queue), 4U);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }
    EXPECT_EQ(lawn_advance(lawn_, ttl + 9, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 10, 0), 3U);
    EXPECT_EQ(fired(), (Probes{all[1], all[2], all[3], all[0]}));
    // One alone, over and over.
    for (lawn_time_t now = 2 * ttl; now < 4 * ttl; now += 1000) {
        start_in(queue, *all[0], now);
        ASSERT_EQ(lawn_advance(lawn_, now, 0), 0U);
    }
    EXPECT_EQ(lawn_advance(lawn_, 5 * ttl - 1001, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 5 * ttl - 1000, 0), 1U);
}

TEST_F(Queue, ATimerGoesFromSlotsToQueuesAndBack)
{
    lawn_queue_t *const queue = create(ttl);
    lawn_queue_t *const other = create(ttl / 2);
    Probe &p = probe();
    Probe &neighbour = probe();
    start_in(queue, neighbour, 0);
    start(p, 0, 50 * ttl);
    start_in(queue, p, 1); // from a slot
    EXPECT_EQ(lawn_timer_deadline(&p.timer), ttl + 1);
    start_in(other, p, 2); // from another queue
    EXPECT_EQ(lawn_queue_count(queue), 1U);
    EXPECT_EQ(lawn_queue_count(other), 1U);
    EXPECT_EQ(lawn_timer_deadline(&p.timer), ttl / 2 + 2);
    start(p, 3, 2 * ttl); // out of it, to later
    EXPECT_EQ(lawn_queue_count(other), 0U);
    EXPECT_EQ(lawn_timer_deadline(&p.timer), 2 * ttl + 3);
    start_in(queue, p, 4);
    start(p, 5, 100); // to earlier
    EXPECT_EQ(lawn_count(lawn_), 2U);
    EXPECT_EQ(lawn_advance(lawn_, 104, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 105, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 10 * ttl, 0), 1U);
    EXPECT_EQ(fired(), (Probes{&p, &neighbour}));
    start(p, 10 * ttl, 0); // due at once
    start_in(queue, p, 10 * ttl);
    EXPECT_EQ(lawn_advance(lawn_, 10 * ttl, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 11 * ttl, 0), 1U);
}

TEST_F(Queue, StopPauseAndResumeAreThoseOfAnyTimer)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 5, 0);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[0]->timer));
    EXPECT_FALSE(lawn_timer_stop(lawn_, &all[0]->timer));
    EXPECT_TRUE(lawn_timer_pause(lawn_, &all[1]->timer));
    EXPECT_FALSE(lawn_timer_pause(lawn_, &all[1]->timer));
    EXPECT_TRUE(lawn_timer_pause(lawn_, &all[3]->timer));
    for (const size_t i : {0, 1, 3}) {
        EXPECT_FALSE(lawn_timer_is_active(&all[i]->timer));
        EXPECT_EQ(lawn_timer_deadline(&all[i]->timer), LAWN_TIME_INFINITY);
    }
    EXPECT_EQ(lawn_queue_count(queue), 2U);
    EXPECT_EQ(lawn_count(lawn_), 2U);
    free_probe(all[0]);
    // Resumed in the queue, and out of it; to earlier than it was, too.
    start_in(queue, *all[1], 10);
    EXPECT_EQ(lawn_queue_count(queue), 3U);
    start(*all[3], 10, ttl / 2);
    EXPECT_EQ(lawn_queue_count(queue), 3U);
    EXPECT_EQ(lawn_count(lawn_), 4U);
    EXPECT_EQ(lawn_advance(lawn_, ttl / 2 + 9, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, ttl / 2 + 10, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl, 0), 3U);
    EXPECT_EQ(fired(), (Probes{all[3], all[2], all[4], all[1]}));
    // Stop of a paused one takes it out.
    start_in(queue, *all[1], 2 * ttl);
    EXPECT_TRUE(lawn_timer_pause(lawn_, &all[1]->timer));
    EXPECT_FALSE(lawn_timer_stop(lawn_, &all[1]->timer));
    free_probe(all[1]);
    EXPECT_EQ(lawn_advance(lawn_, 4 * ttl, 0), 0U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
}

TEST_F(Queue, PausedHeadsAreInNobodysWay)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 50, 0);
    for (size_t i = 0; i < 49; ++i) {
        lawn_timer_pause(lawn_, &all[i]->timer);
    }
    EXPECT_EQ(lawn_queue_count(queue), 1U);
    EXPECT_LE(lawn_next(lawn_), ttl + 49);
    // One by one they go; what they were in the way of still fires on time.
    for (lawn_time_t now = ttl; now < ttl + 49; ++now) {
        EXPECT_EQ(lawn_advance(lawn_, now, 1), 0U);
    }
    EXPECT_EQ(lawn_queue_count(queue), 1U);
    unsigned advances = 0;
    while (lawn_count(lawn_) != 0) {
        lawn_advance(lawn_, ttl + 49, 1);
        ASSERT_LE(++advances, 4U);
    }
    EXPECT_EQ(all[49]->fired_at, Times{ttl + 49});
    for (size_t i = 0; i < 49; ++i) {
        start_in(queue, *all[i], 2 * ttl);
    }
    EXPECT_EQ(lawn_advance(lawn_, 3 * ttl, 0), 49U);
}

TEST_F(Queue, AnAlarmThatHasLostItsHeadIsSetAnew)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 3, 0);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[0]->timer));
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[1]->timer));
    EXPECT_EQ(lawn_advance(lawn_, ttl + 1, 0), 0U);
    EXPECT_LE(lawn_next(lawn_), ttl + 2);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 2, 0), 1U);
    // Of a queue that all have left.
    start_in(queue, *all[0], ttl + 2);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[0]->timer));
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    start_in(queue, *all[1], ttl + 50);
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl + 49, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl + 50, 0), 1U);
}

TEST_F(Queue, ATtlOfZeroIsDueAtTheNextAdvanceOnly)
{
    lawn_queue_t *const queue = create(0);
    EXPECT_EQ(lawn_queue_ttl(queue), 0U);
    const Probes all = start_some(queue, 3, 0);
    for (Probe *const p : all) {
        p->then = [=](lawn_time_t now) { start_in(queue, *p, now); };
    }
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_LE(lawn_next(lawn_), 100U);
        ASSERT_EQ(lawn_advance(lawn_, 100, 0), 3U);
        ASSERT_EQ(fired(), all);
        ASSERT_EQ(lawn_queue_count(queue), 3U);
    }
}

// Whether its alarm has run in that pass or not.
TEST_F(Queue, ATtlOfZeroIsNeverDueInThePassOfItsStart)
{
    for (const bool has_members : {false, true}) {
        lawn_queue_t *const queue = create(0);
        Probe &member = probe();
        Probe &before = probe();
        Probe &after = probe();
        Probe &late = probe();
        start(before, lawn_now(lawn_), 0);
        if (has_members) {
            start_in(queue, member, lawn_now(lawn_));
        }
        start(after, lawn_now(lawn_), 0);
        Probe &of_before = probe();
        Probe &of_after = probe();
        start(of_before, lawn_now(lawn_), ttl);
        before.then = [&, queue](lawn_time_t now) {
            start_in(queue, of_before, now);
            EXPECT_EQ(lawn_queue_count(queue), 1U + has_members);
        };
        after.then = [&, queue](lawn_time_t now) {
            start_in(queue, of_after, now);
            start_in(queue, late, now);
            EXPECT_TRUE(lawn_timer_stop(lawn_, &late.timer));
        };
        const lawn_time_t now = lawn_now(lawn_) + 10;
        EXPECT_EQ(lawn_advance(lawn_, now, 0), 2U + has_members);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        EXPECT_LE(lawn_next(lawn_), now);
        fired();
        EXPECT_EQ(lawn_advance(lawn_, now, 0), 2U);
        EXPECT_EQ(fired(), (Probes{&of_before, &of_after}));
        lawn_queue_destroy(queue);
    }
}

TEST_F(Queue, ATtlOfInfinityIsNever)
{
    lawn_queue_t *const queue = create(LAWN_TIME_INFINITY);
    const Probes all = start_some(queue, 3, 5);
    EXPECT_EQ(lawn_timer_deadline(&all[0]->timer), LAWN_TIME_INFINITY);
    EXPECT_TRUE(lawn_timer_is_active(&all[0]->timer));
    EXPECT_EQ(lawn_queue_count(queue), 3U);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 0), 0U);
    EXPECT_TRUE(lawn_timer_pause(lawn_, &all[0]->timer));
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[1]->timer));
    EXPECT_EQ(lawn_queue_count(queue), 1U);
    start_in(queue, *all[1], 9);
    start_in(queue, *all[0], 9);
    EXPECT_EQ(lawn_queue_count(queue), 3U);
}

TEST_F(Queue, ADeadlineBeyondTheEndOfTimeIsNever)
{
    lawn_queue_t *const queue = create(ttl);
    const lawn_time_t end = LAWN_TIME_INFINITY;
    const Probes all = make(6);
    lawn_time_t now = end - ttl - 4;
    for (Probe *const p : all) {
        start_in(queue, *p, now++); // deadlines end - 4 to end + 1
    }
    EXPECT_EQ(lawn_timer_deadline(&all[2]->timer), end - 2);
    for (const size_t i : {3, 4, 5}) {
        EXPECT_EQ(lawn_timer_deadline(&all[i]->timer), end) << i;
    }
    EXPECT_EQ(lawn_advance(lawn_, end - 5, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, end - 4, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, end, 0), 2U);
    EXPECT_EQ(fired(), (Probes{all[0], all[1], all[2]}));
    EXPECT_EQ(lawn_queue_count(queue), 3U);
    EXPECT_EQ(lawn_next(lawn_), end);
}

TEST_F(Queue, ATimeThatGoesBackIsTheLatestSeen)
{
    lawn_queue_t *const queue = create(ttl);
    Probe &p = probe();
    lawn_advance(lawn_, 500, 0);
    start_in(queue, p, 100);
    EXPECT_EQ(lawn_timer_deadline(&p.timer), ttl + 500);
    start_in(queue, probe(), 700);
    EXPECT_EQ(lawn_now(lawn_), 700U);
    start_in(queue, p, 100);
    EXPECT_EQ(lawn_timer_deadline(&p.timer), ttl + 700);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 700, 0), 2U);
}

TEST_F(Queue, RefusesBadParameters)
{
    lawn_queue_t *queue = nullptr;
    EXPECT_EQ(lawn_queue_create(nullptr, 1, &queue), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_queue_create(lawn_, 1, nullptr), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(queue, nullptr);
    lawn_queue_destroy(nullptr);
}

TEST_F(Queue, SettleLooksForTheEarliestOfEveryQueue)
{
    lawn_queue_t *const queue = create(ttl);
    lawn_queue_t *const longer = create(3 * ttl);
    start(probe(), 0, ttl + 5);
    const Probes all = start_some(queue, 10, 0);
    start_some(longer, 10, 9);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), ttl);
    for (size_t i = 0; i < 7; ++i) {
        (i % 2 ? lawn_timer_pause : lawn_timer_stop)(lawn_, &all[i]->timer);
    }
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), ttl + 5);
    start_in(queue, *all[1], 20); // the settled lawn hears of it
    EXPECT_LE(lawn_next(lawn_), ttl + 5);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 4, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 20, 0), 5U);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), 3 * ttl + 9);
    EXPECT_EQ(lawn_advance(lawn_, 3 * ttl + 8, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 3 * ttl + 9, 0), 1U);
}

TEST_F(Queue, AQueueStartAfterSettlingIsHeardOf)
{
    lawn_queue_t *const queue = create(ttl);
    start(probe(), 0, 50 * ttl);
    ASSERT_TRUE(lawn_settle(lawn_, 0));
    Probe &p = probe();
    start_in(queue, p, 10); // its alarm is set
    EXPECT_LE(lawn_next(lawn_), ttl + 10);
    ASSERT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), ttl + 10);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &p.timer));
    ASSERT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), 50 * ttl);
    start_in(queue, p, 20); // it is set already
    EXPECT_LE(lawn_next(lawn_), ttl + 20);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 19, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 20, 0), 1U);
}

} // namespace
