// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Groups in one thread: what a pass, a sleep and the clock promise, where
// timers are placed, and an engine that is a worker.

#include "../../misuse.h"
#include "group_fixture.h"

#include <functional>
#include <set>
#include <utility>

namespace
{

using Group = GroupTest;
using GroupDeathTest = GroupTest;

TEST_F(Group, APassKeepsItsBudgetAndStarvesNoShard)
{
    make();
    constexpr unsigned each = 100;
    lawn_worker_t *const worker = add_worker();
    std::vector<Told> all(8 * each);
    for (unsigned i = 0; i < all.size(); ++i) {
        all[i].init(shard(i % 8));
        all[i].start(1000);
    }
    const auto fired_in = [&](unsigned number) {
        unsigned count = 0;
        for (unsigned i = number; i < all.size(); i += 8) {
            count += all[i].fired;
        }
        return count;
    };
    for (unsigned passes = 0; passes < 8; ++passes) {
        EXPECT_EQ(pass(worker, 10), 20U); // messages and timers
    }
    for (unsigned i = 0; i < 8; ++i) {
        EXPECT_EQ(fired_in(i), 10U) << i;
    }
    unsigned passes = 8;
    while (pass(worker, 10) != 0) {
        ++passes;
    }
    EXPECT_EQ(passes, 8 * each / 10);
    for (Told &told : all) {
        EXPECT_EQ(told.fired, 1U);
        told.retire();
    }
    end();
}

TEST_F(Group, ShardsShareTheBudgetOfAPass)
{
    make();
    lawn_worker_t *const worker = add_worker();
    pass(worker);
    std::vector<Told> all(8 * 4);
    for (unsigned i = 0; i < all.size(); ++i) {
        all[i].init(shard(i % 8));
        all[i].start(1500);
    }
    for (const unsigned messages : {10U, 10U, 10U, 2U, 0U}) {
        EXPECT_EQ(pass(worker, 10), messages);
    }
    now_ = 1500;
    for (const unsigned timers : {10U, 10U, 10U, 2U, 0U}) {
        EXPECT_EQ(pass(worker, 10), timers);
    }
    for (Told &told : all) {
        EXPECT_EQ(told.fired, 1U);
        told.retire();
    }
    end();
}

TEST_F(Group, PlacesAreEvenAndStay)
{
    make();
    unsigned counts[8] = {};
    for (uint64_t id = 0; id < 8000; ++id) {
        lawn_shard_t *const place = lawn_group_by_id(group_, id);
        EXPECT_EQ(place, lawn_group_by_id(group_, id));
        for (unsigned i = 0; i < 8; ++i) {
            counts[i] += place == shard(i);
        }
    }
    for (const unsigned count : counts) {
        EXPECT_GT(count, 850U);
        EXPECT_LT(count, 1150U);
    }
    EXPECT_EQ(lawn_group_by_ttl(group_, 70), lawn_group_by_ttl(group_, 70));
    std::set<lawn_shard_t *> places;
    for (lawn_time_t ttl = 0; ttl < 100; ++ttl) {
        places.insert(lawn_group_by_ttl(group_, ttl));
    }
    EXPECT_EQ(places.size(), 8U);
}

TEST_F(Group, AWorkerGivesOutItsOwnShardsInTurn)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    EXPECT_EQ(lawn_worker_place(first), nullptr);
    lawn_group_move_shard(shard(2), second);
    lawn_group_move_shard(shard(5), second);
    pass(second);
    std::multiset<lawn_shard_t *> places;
    for (unsigned i = 0; i < 6; ++i) {
        places.insert(lawn_worker_place(second));
    }
    EXPECT_EQ(places.count(shard(2)), 3U);
    EXPECT_EQ(places.count(shard(5)), 3U);
}

TEST_F(Group, ASleeperIsWokenForWhatIsEarlierAndForOrders)
{
    make();
    unsigned wakes[2] = {};
    lawn_worker_t *const first = add_worker(&wakes[0]);
    lawn_worker_t *const second = add_worker(&wakes[1]);
    EXPECT_FALSE(lawn_worker_sleep(first, LAWN_TIME_INFINITY)); // eight shards
    EXPECT_TRUE(lawn_worker_sleep(second, LAWN_TIME_INFINITY));
    pass(first);
    wakes[0] = 0;
    Told told;
    told.init(shard(0));
    told.start(5000);
    EXPECT_FALSE(lawn_worker_sleep(first, LAWN_TIME_INFINITY)); // a message
    pass(first);
    EXPECT_EQ(lawn_worker_next(first), 5000U);
    EXPECT_TRUE(lawn_worker_sleep(first, 5000));
    told.start(6000);
    EXPECT_EQ(wakes[0], 0U);
    Told other;
    other.init(shard(1));
    other.start(5000); // no earlier
    EXPECT_EQ(wakes[0], 0U);
    other.start(4000);
    EXPECT_EQ(wakes[0], 1U);
    other.start(3000); // by a worker that is being woken
    EXPECT_EQ(wakes[0], 1U);
    pass(first);
    EXPECT_TRUE(lawn_worker_sleep(first, lawn_worker_next(first)));
    wakes[0] = 0;
    lawn_group_move_shard(shard(0), second);
    EXPECT_EQ(wakes[0], 1U);
    EXPECT_EQ(wakes[1], 0U);
    EXPECT_FALSE(lawn_worker_sleep(first, 3000));
    pass(first);
    EXPECT_EQ(wakes[1], 1U);
    EXPECT_FALSE(lawn_worker_sleep(second, LAWN_TIME_INFINITY));
    pass(second);
    EXPECT_EQ(lawn_worker_next(second), 5000U); // to find that it is later
    EXPECT_TRUE(lawn_worker_sleep(second, 5000));
    told.start(2000);
    EXPECT_EQ(wakes[0], 1U);
    EXPECT_EQ(wakes[1], 2U);
    // A shard that is on its way rings at where it goes.
    lawn_group_move_shard(shard(1), second);
    pass(first);
    wakes[1] = 0;
    told.retire();
    other.retire();
    pass(second);
    EXPECT_EQ(told.released + other.released, 2U);
    end();
}

TEST_F(Group, TheTimeGoesOnWhenTheClockGoesBack)
{
    now_ = 1'000'000'000;
    make();
    const lawn_time_t begin = lawn_group_time(group_);
    EXPECT_EQ(begin, now_);
    now_ -= 900'000; // less than a millisecond: waited for
    EXPECT_EQ(lawn_group_time(group_), begin);
    now_ += 900'000 + 10'000'000;
    EXPECT_EQ(lawn_group_time(group_), begin + 10'000'000);
    now_ -= 500'000'000;
    EXPECT_EQ(lawn_group_time(group_), begin + 10'000'000);
    now_ += 7;
    EXPECT_EQ(lawn_group_time(group_), begin + 10'000'007);
    now_ = 3;
    EXPECT_GE(lawn_group_time(group_), begin + 10'000'000);
    now_ += 3'000'000;
    EXPECT_GE(lawn_group_time(group_), begin + 13'000'000);
    EXPECT_LE(lawn_group_time(group_), begin + 13'000'007);
}

// Its reader is interrupted once, after it has read the clock.
struct InterruptedClock {
    lawn_time_t now = 1'000'000'000;
    std::function<void()> meanwhile;

    static lawn_time_t read(void *arg)
    {
        InterruptedClock *const self = static_cast<InterruptedClock *>(arg);
        const lawn_time_t now = self->now;
        if (const auto run = std::exchange(self->meanwhile, nullptr)) {
            run();
        }
        return now;
    }
};

// For longer than a millisecond, in which another thread asks the group for its
// time.
TEST_F(Group, AnInterruptedThreadDoesNotTakeTheClockForGoneBack)
{
    InterruptedClock clock;
    params_.clock = InterruptedClock::read;
    params_.clock_arg = &clock;
    make();
    clock.meanwhile = [&] {
        clock.now += 5'000'000;
        EXPECT_EQ(lawn_group_time(group_), clock.now);
    };
    EXPECT_LE(lawn_group_time(group_), clock.now);
    EXPECT_EQ(lawn_group_time(group_), clock.now) << "ahead of its clock";
    clock.now += 3'000'000;
    EXPECT_EQ(lawn_group_time(group_), clock.now) << "ahead of its clock";
}

// Another thread, which has read the clock before this one, stores its time
// while this one is about to.
TEST_F(Group, TheLatestOfTheTimesThatThreadsHaveReadStays)
{
    InterruptedClock clock;
    params_.clock = InterruptedClock::read;
    params_.clock_arg = &clock;
    make();
    clock.now += 10'000'000;
    clock.meanwhile = [&] {
        clock.now -= 8'000'000;
        EXPECT_EQ(lawn_group_time(group_), clock.now);
        clock.now += 8'000'000;
    };
    const lawn_time_t latest = lawn_group_time(group_);
    EXPECT_EQ(latest, clock.now);
    clock.now -= 20'000'000;
    EXPECT_EQ(lawn_group_time(group_), latest);
}

TEST_F(Group, AnEngineRunsTheShardsAfterItsSources)
{
    make();
    lawn_engine_params_t params = {};
    params.clock = lawn_group_time;
    params.clock_arg = group_;
    params.ticks_per_sec = 1e9;
    params.budget = 3;
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    lawn_worker_t *worker = nullptr;
    ASSERT_EQ(lawn_group_add_engine(group_, engine, &worker), LAWN_OK);
    lawn_worker_t *again = nullptr;
    EXPECT_EQ(lawn_group_add_engine(group_, engine, &again),
              LAWN_ERR_INVALID_PARAM);
    lawn_engine_progress(engine);
    EXPECT_EQ(lawn_engine_next(engine), LAWN_TIME_INFINITY);
    std::vector<Told> all(5);
    for (Told &told : all) {
        told.init(shard(2));
        told.start(2000);
    }
    EXPECT_EQ(lawn_engine_progress(engine), 3U);
    EXPECT_EQ(lawn_engine_progress(engine), 2U);
    EXPECT_EQ(lawn_engine_next(engine), 2000U);
    // A source that stops what is due, in the pass in which it is due.
    const auto poll = [](void *arg) -> unsigned {
        return lawn_shared_stop(&static_cast<Told *>(arg)->timer);
    };
    ASSERT_EQ(lawn_engine_add(engine, poll, &all[4], -1, nullptr), LAWN_OK);
    all[4].start(2000);
    now_ = 2000;
    unsigned fired = 0;
    for (unsigned i = 0; i < 4; ++i) {
        lawn_engine_progress(engine);
    }
    for (const Told &told : all) {
        fired += told.fired;
    }
    EXPECT_EQ(fired, 4U);
    EXPECT_EQ(all[4].fired, 0U);
    all[0].start(now_ + 10);
    EXPECT_EQ(lawn_engine_wait(engine, 5), LAWN_OK); // a message
    lawn_engine_progress(engine);
    EXPECT_EQ(lawn_engine_next(engine), 2010U);
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_engine_next(engine), LAWN_TIME_INFINITY);
    now_ = 3000;
    lawn_engine_progress(engine);
    EXPECT_EQ(all[0].fired, 1U);
    lawn_engine_destroy(engine);
    for (Told &told : all) {
        told.retire();
    }
    end();
}

TEST_F(GroupDeathTest, AnEngineIsNotDestroyedUnderItsWorker)
{
    make();
    lawn_worker_t *worker = nullptr;
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
    EXPECT_EQ(lawn_group_add_engine(group_, engine, &worker),
              LAWN_ERR_INVALID_PARAM); // another clock
    lawn_engine_destroy(engine);
    lawn_engine_params_t params = {};
    params.clock = lawn_group_time;
    params.clock_arg = group_;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    ASSERT_EQ(lawn_group_add_engine(group_, engine, &worker), LAWN_OK);
    EXPECT_MISUSE(lawn_engine_destroy(engine), "runs_others");
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    lawn_engine_destroy(engine);
}

TEST_F(GroupDeathTest, ACallbackDoesNotPassNorRemoveItsWorker)
{
    make();
    static lawn_worker_t *worker;
    worker = add_worker();
    lawn_shared_t timer;
    const auto run_passes = [](lawn_shared_t *, lawn_time_t now) {
        EXPECT_EQ(lawn_worker_pass(worker, now, 0), 0U);
    };
    lawn_shared_init(&timer, lawn_shard_box(shard(0)), run_passes);
    lawn_shared_start(&timer, 0);
    EXPECT_MISUSE(pass(worker), "in_pass");
    lawn_shared_t other;
    const auto run_removal = [](lawn_shared_t *, lawn_time_t) {
        EXPECT_EQ(lawn_group_remove_worker(worker, nullptr),
                  LAWN_ERR_INVALID_PARAM);
    };
    lawn_shared_stop(&timer);
    lawn_shared_init(&other, lawn_shard_box(shard(0)), run_removal);
    lawn_shared_start(&other, 0);
    EXPECT_MISUSE(pass(worker), "may_remove");
    lawn_shared_retire(&timer, nullptr);
    lawn_shared_retire(&other, nullptr);
    end();
}

// Nor does a source, in the pass of an engine that is a worker.
TEST_F(GroupDeathTest, ASourceDoesNotRemoveTheWorkerOfItsEngine)
{
    make();
    lawn_engine_params_t params = {};
    params.clock = lawn_group_time;
    params.clock_arg = group_;
    lawn_engine_t *engine = nullptr;
    static lawn_worker_t *worker;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    ASSERT_EQ(lawn_group_add_engine(group_, engine, &worker), LAWN_OK);
    const auto poll = [](void *) -> unsigned {
        EXPECT_EQ(lawn_group_remove_worker(worker, nullptr),
                  LAWN_ERR_INVALID_PARAM);
        return 0;
    };
    lawn_source_t *source = nullptr;
    ASSERT_EQ(lawn_engine_add(engine, poll, nullptr, -1, &source), LAWN_OK);
    EXPECT_MISUSE(lawn_engine_progress(engine), "may_remove");
    lawn_engine_remove(engine, source);
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    lawn_engine_destroy(engine);
}

} // namespace
