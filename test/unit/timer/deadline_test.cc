// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What can be read of timers and lawns: deadlines in every state, the latest
// time, who runs; starts by deadline; and the end of time.

#include "timer_fixture.h"
#include "times.h"

#include <lawn/queue.h>

#include <deque>
#include <set>

namespace
{

using lawn_test::last_time;
using lawn_test::Times;

class Deadline : public lawn_test::TimerFixture
{
protected:
    void start_at(Probe &probe, lawn_time_t now, lawn_time_t deadline)
    {
        lawn_timer_start_at(lawn_, &probe.timer, now, deadline);
    }

    static lawn_time_t deadline(const Probe &probe)
    {
        return lawn_timer_deadline(&probe.timer);
    }

    // Those that lawn_for_each() shows, each once.
    std::set<const lawn_timer_t *> shown() const
    {
        std::set<const lawn_timer_t *> shown;
        lawn_for_each(
            lawn_,
            [](const lawn_timer_t *timer, void *arg) {
                auto *const set =
                    static_cast<std::set<const lawn_timer_t *> *>(arg);
                EXPECT_TRUE(set->insert(timer).second) << "twice";
                EXPECT_TRUE(lawn_timer_is_active(timer));
            },
            &shown);
        EXPECT_EQ(shown.size(), lawn_count(lawn_));
        return shown;
    }
};

// A negative difference overflows, but not near time 0.
TEST_F(Deadline, NegativeTtlFiresOnlyIfItIsStartedNearTimeZero)
{
    constexpr auto negative = static_cast<lawn_time_t>(-5);
    std::deque<Probe *> probes;
    for (lawn_time_t now = 0; now < 8; ++now) {
        probes.push_back(&probe());
        lawn_timer_start(lawn_, &probes.back()->timer, now, negative);
        EXPECT_EQ(deadline(*probes.back()),
                  now < 3 ? negative + now : LAWN_TIME_INFINITY);
    }
    EXPECT_EQ(lawn_advance(lawn_, negative - 1, 0), 0U);
    for (lawn_time_t now = 0; now < 3; ++now) {
        EXPECT_EQ(lawn_advance(lawn_, negative + now, 0), 1U);
        EXPECT_FALSE(lawn_timer_is_active(&probes[now]->timer));
    }
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 0), 0U);
    EXPECT_EQ(lawn_count(lawn_), 5U);
}

TEST_F(Deadline, StartAtIsExact)
{
    for (unsigned bit = 0; bit < 64; ++bit) {
        const lawn_time_t at = lawn_time_t{1} << bit;
        Probe &p = probe();
        start_at(p, at / 2, at + 1);
        EXPECT_EQ(deadline(p), at + 1);
        EXPECT_EQ(lawn_advance(lawn_, at, 0), 0U);
        EXPECT_EQ(lawn_advance(lawn_, at + 1, 0), 1U);
        EXPECT_EQ(deadline(p), at + 1);
    }
}

TEST_F(Deadline, StartAtMovesATimerAnywhere)
{
    Probe &p = probe();
    for (const lawn_time_t from : {1'000, 1'000'000, 1'000'000'000}) {
        for (const lawn_time_t to : {900, 1'100, 500'000, 2'000'000'000}) {
            const lawn_time_t now = lawn_now(lawn_);
            start_at(p, now, now + from);
            start_at(p, now, now + to);
            EXPECT_EQ(lawn_count(lawn_), 1U);
            EXPECT_EQ(lawn_advance(lawn_, now + to - 1, 0), 0U);
            EXPECT_EQ(lawn_advance(lawn_, now + to, 0), 1U);
        }
    }
}

TEST_F(Deadline, StartAtAPastDeadlineIsDueAtTheNextAdvance)
{
    lawn_advance(lawn_, 1000, 0);
    for (const lawn_time_t past : {0, 1, 999, 1000}) {
        Probe &p = probe();
        Probe &later = probe();
        start(later, 1000, 500'000);
        p.then = [&, past](lawn_time_t now) {
            if (p.fired_at.size() == 1) {
                start_at(p, now, past); // not in this pass
                start_at(later, now, past);
            }
        };
        start_at(p, 500, past); // a time that goes back is the latest seen
        EXPECT_LE(lawn_next(lawn_), 1000U);
        EXPECT_EQ(deadline(p), past);
        EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 1U);
        EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 2U);
        EXPECT_EQ(p.fired_at, (Times{1000, 1000}));
        EXPECT_EQ(later.fired_at, Times{1000});
        EXPECT_EQ(deadline(p), past ? past : LAWN_TIME_INFINITY);
    }
}

TEST_F(Deadline, StartAtTakesItsTime)
{
    start_at(probe(), 700, 2000);
    EXPECT_EQ(lawn_now(lawn_), 700U);
    start_at(probe(), 600, 2000);
    EXPECT_EQ(lawn_now(lawn_), 700U);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 2U);
}

TEST_F(Deadline, NowIsTheLatestTimeTold)
{
    EXPECT_EQ(lawn_now(lawn_), 0U);
    lawn_advance(lawn_, 50, 0);
    EXPECT_EQ(lawn_now(lawn_), 50U);
    Probe &p = probe();
    start(p, 70, 10);
    EXPECT_EQ(lawn_now(lawn_), 70U);
    lawn_advance(lawn_, 60, 0);
    start(p, 10, 10);
    EXPECT_EQ(lawn_now(lawn_), 70U);
    p.then = [&](lawn_time_t now) {
        EXPECT_EQ(lawn_now(lawn_), now);
        start(p, 200, 10);
    };
    lawn_advance(lawn_, 90, 0);
    EXPECT_EQ(lawn_now(lawn_), 200U);
    p.then = nullptr;
    lawn_advance(lawn_, LAWN_TIME_INFINITY, 0);
    EXPECT_EQ(lawn_now(lawn_), LAWN_TIME_INFINITY);
}

TEST_F(Deadline, IsReadInEveryState)
{
    Probe &p = probe();
    EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY); // never started
    start(p, 0, 1000);
    EXPECT_EQ(deadline(p), 1000U);
    start(p, 0, 3000); // in the slot of the 1000
    EXPECT_EQ(deadline(p), 3000U);
    lawn_timer_pause(lawn_, &p.timer);
    EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY);
    start(p, 10, 2000);
    EXPECT_EQ(deadline(p), 2010U);
    p.then = [&](lawn_time_t) { EXPECT_EQ(deadline(p), 2010U); };
    EXPECT_EQ(lawn_advance(lawn_, 2500, 0), 1U);
    EXPECT_EQ(deadline(p), 2010U); // fired
    EXPECT_FALSE(lawn_timer_stop(lawn_, &p.timer));
    EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY); // stopped after that
    p.then = nullptr;
    start(p, 2500, 10);
    EXPECT_EQ(lawn_advance(lawn_, 2600, 0), 1U);
    EXPECT_EQ(deadline(p), 2510U);
    EXPECT_FALSE(lawn_timer_pause(lawn_, &p.timer));
    EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY); // paused after that
    start(p, 2600, 10);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &p.timer));
    EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY); // stopped
    start(p, 2600, 0);
    EXPECT_EQ(deadline(p), 2600U); // due at once
    EXPECT_EQ(lawn_advance(lawn_, 2600, 0), 1U);
    EXPECT_EQ(deadline(p), 2600U);
    lawn_timer_init(&p.timer, on_expired);
    EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY);
}

TEST_F(Deadline, OfDrainedTimersIsStillRead)
{
    static std::vector<std::pair<lawn_timer_t *, lawn_time_t>> drained;
    drained.clear();
    lawn_queue_t *queue = nullptr;
    ASSERT_EQ(lawn_queue_create(lawn_, 400, &queue), LAWN_OK);
    const Probes all = make(5);
    start(*all[0], 5, 1000);
    start(*all[0], 5, 7000); // re-armed
    start(*all[1], 5, 0);
    lawn_queue_start(queue, &all[2]->timer, 5);
    start(*all[3], 5, LAWN_TIME_INFINITY);
    start(*all[4], 5, 10);
    lawn_timer_pause(lawn_, &all[4]->timer);
    EXPECT_EQ(lawn_drain(lawn_,
                         [](lawn_timer_t *timer, lawn_time_t now) {
                             EXPECT_EQ(now, 5U);
                             EXPECT_FALSE(lawn_timer_is_active(timer));
                             drained.emplace_back(timer,
                                                  lawn_timer_deadline(timer));
                         }),
              4U);
    std::set<std::pair<lawn_timer_t *, lawn_time_t>> expected = {
        {&all[0]->timer, 7005},
        {&all[1]->timer, 5},
        {&all[2]->timer, 405},
        {&all[3]->timer, LAWN_TIME_INFINITY}};
    EXPECT_EQ(drained.size(), 4U);
    EXPECT_EQ((std::set<std::pair<lawn_timer_t *, lawn_time_t>>(drained.begin(),
                                                                drained.end())),
              expected);
    EXPECT_EQ(deadline(*all[0]), 7005U);
    EXPECT_EQ(deadline(*all[4]), LAWN_TIME_INFINITY);
}

TEST_F(Deadline, ForEachShowsWhatRunsWhereverItIs)
{
    EXPECT_TRUE(shown().empty());
    lawn_queue_t *queue = nullptr;
    ASSERT_EQ(lawn_queue_create(lawn_, 400, &queue), LAWN_OK);
    std::set<const lawn_timer_t *> running;
    for (unsigned bit = 0; bit < 64; ++bit) {
        Probe &p = probe();
        start(p, 1, lawn_time_t{1} << bit);
        running.insert(&p.timer);
    }
    for (int i = 0; i < 3; ++i) {
        for (const bool in_queue : {false, true}) {
            Probe &p = probe();
            start(p, 1, 0);
            if (in_queue) {
                lawn_queue_start(queue, &p.timer, 1);
            }
            running.insert(&p.timer);
            if (i == 1) {
                lawn_timer_pause(lawn_, &p.timer);
                running.erase(&p.timer);
            }
        }
    }
    EXPECT_EQ(shown(), running);
    // In a pass what it has deferred is shown too, not what has fired.
    Probe &first = probe();
    Probe &zero = probe();
    start(first, 1, 2);
    bool has_looked = false;
    first.then = [&](lawn_time_t now) {
        start(zero, now, 0);
        const auto all = shown();
        EXPECT_EQ(all.count(&zero.timer), 1U);
        EXPECT_EQ(all.count(&first.timer), 0U);
        has_looked = true;
    };
    lawn_advance(lawn_, 3, 0);
    EXPECT_TRUE(has_looked);
    lawn_queue_destroy(queue);
    lawn_drain(lawn_, nullptr);
    EXPECT_TRUE(shown().empty());
}

TEST_F(Deadline, TheLastTimeThatComes)
{
    for (const lawn_time_t from : {lawn_time_t{0}, last_time - 1, last_time}) {
        Probe &last = probe();
        Probe &by_ttl = probe();
        Probe &never = probe();
        start_at(last, from, last_time);
        start(by_ttl, from, last_time - lawn_now(lawn_));
        start_at(never, from, last_time + 1);
        EXPECT_EQ(deadline(last), last_time);
        EXPECT_EQ(deadline(by_ttl), last_time);
        EXPECT_EQ(deadline(never), LAWN_TIME_INFINITY);
        if (from < last_time) {
            EXPECT_EQ(lawn_advance(lawn_, last_time - 1, 0), 0U);
        }
        EXPECT_LE(lawn_next(lawn_), last_time);
        EXPECT_EQ(lawn_advance(lawn_, last_time, 0), 2U);
        EXPECT_EQ(deadline(last), last_time);
        EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
        for (const lawn_time_t now : {last_time + 1, LAWN_TIME_INFINITY}) {
            EXPECT_EQ(lawn_advance(lawn_, now, 0), 0U);
        }
        EXPECT_TRUE(lawn_timer_is_active(&never.timer));
        EXPECT_TRUE(lawn_timer_stop(lawn_, &never.timer));
        // The next one needs a lawn whose time has not come to its end.
        lawn_destroy(lawn_);
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }
}

TEST_F(Deadline, OverflowingIsNever)
{
    for (const lawn_time_t ttl :
         {LAWN_TIME_INFINITY - 6, LAWN_TIME_INFINITY - 5,
          LAWN_TIME_INFINITY - 1, LAWN_TIME_INFINITY}) {
        Probe &p = probe();
        start(p, 5, ttl);
        EXPECT_EQ(deadline(p), LAWN_TIME_INFINITY) << ttl;
        EXPECT_TRUE(lawn_timer_is_active(&p.timer));
        EXPECT_TRUE(lawn_settle(lawn_, 0));
        EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY) << ttl;
    }
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 0), 0U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_count(lawn_), 4U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    for (const auto &p : probes_) {
        EXPECT_TRUE(lawn_timer_is_active(&p->timer));
        EXPECT_TRUE(lawn_timer_pause(lawn_, &p->timer));
    }
}

// At the end of time a TTL is never over, but a deadline that is past is.
TEST_F(Deadline, AtTheEndOfTime)
{
    for (const lawn_time_t now :
         {last_time, last_time + 1, LAWN_TIME_INFINITY}) {
        Probe &zero = probe();
        Probe &one = probe();
        Probe &past = probe();
        Probe &waits = probe();
        const bool comes = now == last_time;
        start(waits, lawn_now(lawn_), 10);
        start_at(zero, now, now);
        start(one, now, 1);
        start_at(past, now, 7);
        EXPECT_EQ(deadline(one), LAWN_TIME_INFINITY);
        EXPECT_EQ(deadline(zero), comes ? now : LAWN_TIME_INFINITY);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        const bool waits_for_ever = deadline(waits) == LAWN_TIME_INFINITY;
        EXPECT_EQ(lawn_advance(lawn_, now, 0), 1U + comes + !waits_for_ever);
        EXPECT_EQ(past.fired_at, Times{last_time});
        EXPECT_EQ(zero.fired_at.size(), comes ? 1U : 0U);
        EXPECT_TRUE(one.fired_at.empty());
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        EXPECT_EQ(lawn_drain(lawn_, nullptr), 2U - comes + waits_for_ever);
    }
}

// At the last tick of all, where no TTL is over any more.
TEST_F(Deadline, AtTheLastTick)
{
    Probe &before = probe();
    start(before, 0, 10);
    const Probes all = make(4);
    for (Probe *const p : all) {
        start(*p, LAWN_TIME_INFINITY, p == all[0] ? 0 : 5);
        EXPECT_EQ(deadline(*p), LAWN_TIME_INFINITY);
    }
    lawn_queue_start(create(0), &all[1]->timer, LAWN_TIME_INFINITY);
    lawn_queue_start(create(7), &all[2]->timer, LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_now(lawn_), LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 0), 1U);
    EXPECT_EQ(before.fired_at, Times{last_time});
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 1), 0U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_TRUE(lawn_timer_pause(lawn_, &all[3]->timer));
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[0]->timer));
    start(*all[3], 5, 5);
    EXPECT_EQ(lawn_count(lawn_), 3U);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 3U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
}

// TTLs that a signed number has no room for.
TEST_F(Deadline, MoreThanHalfOfAllTimeIsExact)
{
    const lawn_time_t half = lawn_time_t{1} << 63;
    for (const lawn_time_t ttl : {half - 1, half, half + 1, half + half / 2,
                                  LAWN_TIME_INFINITY - 1000}) {
        for (const bool is_re_armed : {false, true}) {
            lawn_destroy(lawn_);
            ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
            Probe &p = probe();
            if (is_re_armed) {
                start(p, 77, half / 3);
            }
            start(p, 77, ttl);
            EXPECT_EQ(deadline(p), 77 + ttl);
            EXPECT_EQ(lawn_advance(lawn_, 76 + ttl, 0), 0U);
            EXPECT_TRUE(lawn_settle(lawn_, 0));
            EXPECT_EQ(lawn_next(lawn_), 77 + ttl);
            EXPECT_EQ(lawn_advance(lawn_, 77 + ttl, 0), 1U);
        }
    }
}

TEST(Sizes, OfTimersAndLawns)
{
    EXPECT_EQ(sizeof(lawn_timer_t), 40U);
    static size_t taken;
    taken = 0;
    lawn_params_t params = {};
    params.allocator.alloc = [](void *, size_t size) {
        taken += size;
        return malloc(size);
    };
    params.allocator.release = [](void *, void *memory) { free(memory); };
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(&params, &lawn), LAWN_OK);
    EXPECT_LE(taken, 24U * 1024);
    EXPECT_GE(taken, 21U * 64 * 16); // it has been counted
    lawn_destroy(lawn);
}

} // namespace
