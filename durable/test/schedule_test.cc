// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The schedule of a pump, on virtual time, against a store that is a sorted
// list of due times with a clock and a network of its own.

#include "src/schedule.h"
#include "src/store_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace
{

using lawn::durable::FireReply;
using lawn::durable::preferred_pump;
using lawn::durable::Schedule;
using lawn::durable::ScheduleParams;
using lawn::durable::StoreClock;

lawn_time_t us(double n)
{
    return lawn_time_from_usec(n);
}

// A network and a store. The local clock is in microseconds from 0, the
// store's is ahead of it by `offset_`.
class World : public Schedule::Store
{
public:
    explicit World(unsigned shards) : dues_(shards), random_(17)
    {
        params_.coalesce = us(250);
        params_.backup_delay = us(20000);
        params_.acting = us(5e6);
        params_.prefetch_us = 100000;
        params_.max_calls = 64;
        schedule_ = std::make_unique<Schedule>(*this, shards, params_);
    }

    World(const World &) = delete;
    World &operator=(const World &) = delete;

    void start(unsigned shard, int64_t due_us, bool is_announced)
    {
        const bool is_head =
            dues_[shard].empty() || due_us < *dues_[shard].begin();
        dues_[shard].insert(due_us);
        if (is_announced && is_head) {
            schedule_->wake(shard, due_us, us(now_us_));
        }
    }

    // Goes on from event to event until the local clock shows `end_us`.
    void run(double end_us)
    {
        for (;;) {
            const lawn_time_t timer = schedule_->next();
            double next = timer == LAWN_TIME_INFINITY
                              ? end_us
                              : lawn_time_to_usec(timer) + 0.01;
            if (!events_.empty()) {
                next = std::min(next, events_.begin()->first);
            }
            if (next >= end_us) {
                now_us_ = end_us;
                return;
            }
            now_us_ = std::max(now_us_, next);
            while (!events_.empty() && events_.begin()->first <= now_us_) {
                const Event event = events_.begin()->second;
                events_.erase(events_.begin());
                happen(event);
            }
            schedule_->run(us(now_us_));
        }
    }

    int64_t store_us() const
    {
        return static_cast<int64_t>(now_us_ + offset_);
    }

    ScheduleParams params_;
    std::unique_ptr<Schedule> schedule_;
    StoreClock clock_;
    std::vector<std::multiset<int64_t>> dues_;
    double now_us_ = 1000;
    double offset_ = 1.7e15;
    double way_us_ = 50; // one way; up to `jitter_us_` longer
    double jitter_us_ = 0;
    bool is_losing_ = false;
    size_t limit_ = 500;
    size_t most_dues_ = 64; // in an answer
    uint64_t calls_ = 0;
    uint64_t fired_ = 0;
    int64_t most_late_us_ = 0;

private:
    struct Event {
        bool is_answer;
        unsigned shard;
        uint64_t call;
        double sent;
        FireReply reply;
    };

    void fire(unsigned shard, uint64_t call) override
    {
        ++calls_;
        send({false, shard, call, now_us_, {}});
    }

    int64_t store_time(unsigned, lawn_time_t time) override
    {
        return clock_.is_known() ? clock_.store(time) : 0;
    }

    lawn_time_t send_time(unsigned, int64_t store_us) override
    {
        return clock_.is_known() ? clock_.local(store_us) : LAWN_TIME_INFINITY;
    }

    // What was sent first arrives first.
    void send(const Event &event)
    {
        double *const last = &last_arrival_us_[event.is_answer];
        std::uniform_real_distribution<double> jitter(0, jitter_us_ + 0.001);
        *last = std::max(*last + 0.001, now_us_ + way_us_ + jitter(random_));
        events_.emplace(*last, event);
    }

    void happen(const Event &event)
    {
        if (event.is_answer) {
            clock_.add(us(event.sent), us(now_us_), event.reply.now_us);
            schedule_->on_answer(event.shard, event.call, event.reply,
                                 us(now_us_));
        } else if (is_losing_) {
            schedule_->on_lost(event.shard, event.call, us(now_us_));
        } else {
            send({true, event.shard, event.call, event.sent,
                  answer(event.shard)});
        }
    }

    FireReply answer(unsigned shard)
    {
        std::multiset<int64_t> *const dues = &dues_[shard];
        FireReply reply;
        reply.now_us = store_us();
        while (!dues->empty() && *dues->begin() <= reply.now_us &&
               reply.fired < limit_) {
            most_late_us_ =
                std::max(most_late_us_, reply.now_us - *dues->begin());
            dues->erase(dues->begin());
            ++reply.fired;
            ++fired_;
        }
        reply.is_more = !dues->empty() && *dues->begin() <= reply.now_us;
        for (auto due = dues->upper_bound(reply.now_us);
             due != dues->end() && *due <= reply.now_us + 100000 &&
             reply.dues.size() < most_dues_;
             due = dues->upper_bound(*due)) {
            reply.dues.push_back(*due);
        }
        const auto head = dues->upper_bound(reply.now_us);
        if (reply.dues.empty() && head != dues->end()) {
            reply.dues.push_back(*head);
        }
        reply.is_full = reply.dues.size() == most_dues_;
        return reply;
    }

    std::multimap<double, Event> events_;
    double last_arrival_us_[2] = {0, 0};
    std::mt19937 random_;
};

TEST(Schedule, CallsAtTheDueTimeAndNotBefore)
{
    for (const size_t most_dues : {64U, 1U}) {
        World world(1);
        world.most_dues_ = most_dues;
        world.dues_[0].insert(world.store_us() + 3000000);
        world.schedule_->ask(0, us(world.now_us_));
        world.run(2e6);
        EXPECT_EQ(world.calls_, 1U);
        world.run(5e6);
        EXPECT_EQ(world.fired_, 1U);
        EXPECT_EQ(world.calls_, 3U); // at first, shortly before, and in time
        EXPECT_LE(world.most_late_us_, 3);
    }
}

// A store whose clock is the local one, and which answers when the test does.
class SilentStore : public Schedule::Store
{
public:
    void fire(unsigned, uint64_t call) override
    {
        calls.push_back(call);
    }
    int64_t store_time(unsigned, lawn_time_t time) override
    {
        return static_cast<int64_t>(lawn_time_to_usec(time));
    }
    lawn_time_t send_time(unsigned, int64_t store_us) override
    {
        return us(static_cast<double>(store_us));
    }

    std::vector<uint64_t> calls;
};

// The second timer is started after the call for the first one has come to the
// store, and its message arrives before the answer of that call, for which it
// does not wait.
TEST(Schedule, AMessageThatIsCoveredDoesNotHideALaterOne)
{
    SilentStore store;
    ScheduleParams params;
    params.coalesce = us(250);
    params.prefetch_us = 100000;
    params.max_calls = 64;
    Schedule schedule(store, 1, params);
    FireReply nothing;
    schedule.ask(0, us(1000));
    schedule.run(us(1000));
    ASSERT_EQ(store.calls.size(), 1U);
    nothing.now_us = 1050;
    schedule.on_answer(0, store.calls[0], nothing, us(1100));
    schedule.wake(0, 1200, us(1250));
    schedule.run(us(1251));
    ASSERT_EQ(store.calls.size(), 2U);
    schedule.wake(0, 1320, us(1350));
    EXPECT_LE(schedule.next(), us(1502));
    nothing.now_us = 1300;
    schedule.on_answer(0, store.calls[1], nothing, us(1360));
    EXPECT_LE(schedule.next(), us(1502));
    schedule.run(us(1502));
    EXPECT_EQ(store.calls.size(), 3U);
}

TEST(Schedule, DoesNotWaitForAnswers)
{
    World world(1);
    world.way_us_ = 20000; // 40 ms there and back
    world.schedule_->ask(0, us(world.now_us_));
    world.run(100000);
    for (int i = 0; i < 50; ++i) {
        world.start(0, world.store_us() + 200000 + i * 1000, true);
    }
    world.run(1e6);
    EXPECT_EQ(world.fired_, 50U);
    EXPECT_LE(world.most_late_us_, 2000);
}

// Where answers come before the next call, each may have one due time only.
TEST(Schedule, FiresManyInTimeWithFewCalls)
{
    for (const size_t most_dues : {64U, 1U}) {
        World world(4);
        world.most_dues_ = most_dues;
        world.jitter_us_ = most_dues > 1 ? 200 : 50;
        std::mt19937 random(3);
        for (unsigned shard = 0; shard < 4; ++shard) {
            for (int i = 0; i < 20000; ++i) {
                world.dues_[shard].insert(
                    world.store_us() + 100000 +
                    static_cast<int64_t>(random() % 2000000));
            }
            world.schedule_->ask(shard, us(world.now_us_));
        }
        world.run(4e6);
        EXPECT_EQ(world.fired_, 80000U);
        EXPECT_LE(world.most_late_us_, 1500);
        EXPECT_LE(world.calls_, 4 * 4 * 2200U); // one in 250 us for each shard
        EXPECT_EQ(world.schedule_->calls(), 0U);
    }
}

TEST(Schedule, WakesForAnEarlierTimer)
{
    World world(1);
    world.start(0, world.store_us() + 60000000, false);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1e6);
    world.start(0, world.store_us() + 5000, true);
    world.run(2e6);
    EXPECT_EQ(world.fired_, 1U);
    EXPECT_LE(world.most_late_us_, 3);
}

// A wake message may arrive while an answer is under way that does not have
// its timer yet, or that has.
TEST(Schedule, KeepsAWakeThatOvertakesAnAnswer)
{
    World world(1);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1060); // the store has answered at 1050: no timer
    world.start(0, world.store_us() + 10000, true);
    world.run(1e6);
    EXPECT_EQ(world.fired_, 1U);
    EXPECT_LE(world.most_late_us_, 300);
}

// The answer that is under way says that all until then has fired, and was made
// before the timer was started.
TEST(Schedule, AsksForATimerThatAnAnswerUnderWayHasMissed)
{
    World world(1);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1060); // the store has answered at 1050: no timer
    world.start(0, world.store_us() - 20, true);
    world.run(1e6);
    EXPECT_EQ(world.fired_, 1U);
    EXPECT_LE(world.most_late_us_, 1000);
}

// A timer that is due at once may be older than a call that was sent before
// the message about it came.
TEST(Schedule, AsksForATimerThatIsDueAlready)
{
    World world(1);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1e6);
    for (int i = 0; i < 1000; ++i) {
        world.start(0, world.store_us(), true);
        world.run(1e6 + i * 777.0);
    }
    world.run(3e6);
    EXPECT_EQ(world.fired_, 1000U);
    EXPECT_LE(world.most_late_us_, 1000);
}

// Started for a time that had passed when the latest call was sent.
TEST(Schedule, AsksForATimerThatWasDueBeforeTheLatestCall)
{
    World world(1);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1e6);
    world.start(0, world.store_us() - 2000000, true);
    world.run(1.01e6);
    EXPECT_EQ(world.fired_, 1U);
}

TEST(Schedule, GoesOnAfterALimitedCall)
{
    World world(1);
    world.limit_ = 10;
    for (int i = 0; i < 1000; ++i) {
        world.dues_[0].insert(world.store_us() - i);
    }
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1e6);
    EXPECT_EQ(world.fired_, 1000U);
}

TEST(Schedule, PausesAfterLostCallsAndForgetsNothing)
{
    World world(1);
    world.is_losing_ = true;
    world.dues_[0].insert(world.store_us() + 5000);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(60e6);
    EXPECT_EQ(world.fired_, 0U);
    EXPECT_GE(world.calls_, 20U);
    EXPECT_LE(world.calls_, 80U);
    world.is_losing_ = false;
    world.run(63e6);
    EXPECT_EQ(world.fired_, 1U);
    EXPECT_EQ(world.schedule_->calls(), 0U);
}

TEST(Schedule, BackupLeavesTimersToTheirPump)
{
    World world(1);
    world.schedule_->set_backup(0, true, us(world.now_us_));
    const int64_t due = world.store_us() + 50000;
    world.dues_[0].insert(due);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(51000 + 15000);
    EXPECT_EQ(world.fired_, 0U);
    world.dues_[0].clear(); // the other pump has fired it
    world.run(200000);
    EXPECT_EQ(world.calls_, 2U);
}

// The other pump is dead, so this one stops to leave timers to it.
TEST(Schedule, BackupActsWhenItWasNeeded)
{
    World world(1);
    world.schedule_->set_backup(0, true, us(world.now_us_));
    for (int i = 0; i < 100; ++i) {
        world.dues_[0].insert(world.store_us() + 50000 + i * 50000);
    }
    world.schedule_->ask(0, us(world.now_us_));
    world.run(100000);
    EXPECT_EQ(world.fired_, 1U);
    EXPECT_GE(world.most_late_us_, 20000);
    world.most_late_us_ = 0;
    world.run(4e6);
    EXPECT_GT(world.fired_, 70U);
    EXPECT_LE(world.most_late_us_, 3);
}

TEST(Schedule, FollowsAStoreWhoseClockIsSet)
{
    World world(1);
    world.dues_[0].insert(world.store_us() + 50000);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(20000);
    world.offset_ -= 3e6; // back: the timer is delayed
    world.run(2e6);
    EXPECT_EQ(world.fired_, 0U);
    world.run(4e6);
    EXPECT_EQ(world.fired_, 1U);
    EXPECT_LE(world.most_late_us_, 3);
    EXPECT_LE(world.calls_, 10U);
    world.dues_[0].insert(world.store_us() + 50000000);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(5e6);
    world.offset_ += 20e6; // forward: each answer tells
    world.schedule_->ask(0, us(world.now_us_));
    world.run(30e6);
    EXPECT_EQ(world.fired_, 1U);
    world.run(40e6);
    EXPECT_EQ(world.fired_, 2U);
    EXPECT_LE(world.most_late_us_, 300);
}

// A store whose clock runs faster or slower: the schedule looks at it shortly
// before a due time that is far away.
TEST(Schedule, FollowsAStoreWhoseClockDrifts)
{
    for (const double drift : {-1e-4, 1e-4}) {
        World world(1);
        world.dues_[0].insert(world.store_us() + 300000000);
        world.schedule_->ask(0, us(world.now_us_));
        const double start = world.offset_;
        for (int i = 1; world.fired_ == 0 && i < 32000; ++i) {
            world.run(i * 10000.0);
            world.offset_ = start + i * 10000.0 * drift;
        }
        EXPECT_EQ(world.fired_, 1U);
        EXPECT_LE(world.most_late_us_, 300);
        EXPECT_LE(world.calls_, 6U);
    }
}

TEST(Schedule, StopSendsNothingMore)
{
    World world(2);
    world.dues_[0].insert(world.store_us() + 5000);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(3000);
    world.schedule_->stop();
    world.schedule_->ask(1, us(world.now_us_));
    world.run(1e6);
    EXPECT_EQ(world.calls_, 1U);
    EXPECT_EQ(world.fired_, 0U);
}

TEST(Schedule, IgnoresAnswersThatItDoesNotWaitFor)
{
    World world(1);
    world.schedule_->ask(0, us(world.now_us_));
    world.run(1e6);
    FireReply reply;
    reply.dues = {world.store_us()};
    world.schedule_->on_answer(0, 1, reply, us(world.now_us_));
    world.schedule_->on_lost(0, 77, us(world.now_us_));
    world.run(2e6);
    EXPECT_EQ(world.calls_, 1U);
    EXPECT_EQ(world.schedule_->calls(), 0U);
}

TEST(StoreClock, IsNeverAheadOfTheArrival)
{
    StoreClock clock;
    std::mt19937 random(5);
    EXPECT_FALSE(clock.is_known());
    for (int i = 1; i < 100000; ++i) {
        const double sent = i * 1000.0;
        const double way = 50.0 + static_cast<double>(random() % 3000);
        const double back = 50.0 + static_cast<double>(random() % 3000);
        clock.add(us(sent), us(sent + way + back),
                  static_cast<int64_t>(sent + way) + 1000000);
        ASSERT_TRUE(clock.is_known());
        // A call takes at least 50 us to the store.
        const int64_t due = static_cast<int64_t>(sent) + 5000000;
        const double local = lawn_time_to_usec(clock.local(due));
        ASSERT_GE(local + 3050 + 1000000, static_cast<double>(due));
        ASSERT_LE(std::abs(static_cast<double>(clock.store(us(local)) - due)),
                  2);
    }
    const int64_t due = 100000000 + 1000000 + 5000000;
    EXPECT_NEAR(lawn_time_to_usec(clock.local(due)), 105e6 - 50, 20);
}

TEST(PreferredPump, IsTheSameInAnyOrderAndMovesFewShards)
{
    EXPECT_EQ(preferred_pump({}, 3), "");
    EXPECT_EQ(preferred_pump({"a"}, 3), "a");
    std::map<std::string, int> counts;
    int moved = 0;
    for (unsigned shard = 0; shard < 1000; ++shard) {
        const std::string pump = preferred_pump({"a", "b", "c"}, shard);
        EXPECT_EQ(pump, preferred_pump({"c", "a", "b"}, shard));
        ++counts[pump];
        const std::string later = preferred_pump({"a", "b"}, shard);
        if (pump != "c") {
            EXPECT_EQ(later, pump);
        } else {
            ++moved;
        }
    }
    EXPECT_EQ(counts.size(), 3U);
    for (const auto &count : counts) {
        EXPECT_GT(count.second, 250);
    }
    EXPECT_EQ(moved, counts["c"]);
}

} // namespace
