// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Workers of a group that are refused, that are not woken, and that go while
// others reach for them.

#include "../../misuse.h"
#include "../../yield.h"
#include "group/group_impl.h"
#include "group_fixture.h"

#include <atomic>
#include <thread>

namespace
{

using Group = GroupTest;
using GroupDeathTest = GroupTest;

TEST_F(Group, AnEngineIsAWorkerOfOneGroup)
{
    make();
    lawn_group_t *other = nullptr;
    ASSERT_EQ(lawn_group_create(&params_, &other), LAWN_OK);
    lawn_engine_params_t params = {};
    params.stats_name = "group_test"; // its page is not taken for a worker
    lawn_engine_t *engine = nullptr;
    lawn_worker_t *worker = nullptr;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    EXPECT_EQ(lawn_group_add_engine(group_, engine, &worker),
              LAWN_ERR_INVALID_PARAM)
        << "another clock";
    lawn_engine_destroy(engine);
    params.clock = lawn_group_time;
    params.clock_arg = group_;
    params.ticks_per_sec = 1e9;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    EXPECT_EQ(lawn_group_add_engine(other, engine, &worker),
              LAWN_ERR_INVALID_PARAM)
        << "another group's clock";
    EXPECT_EQ(lawn_group_add_engine(nullptr, engine, &worker),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_add_engine(group_, engine, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(worker, nullptr);
    ASSERT_EQ(lawn_group_add_engine(group_, engine, &worker), LAWN_OK);
    lawn_worker_t *again = nullptr;
    EXPECT_EQ(lawn_group_add_engine(group_, engine, &again),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    lawn_engine_destroy(engine);
    lawn_group_destroy(other);
}

// Its program polls all the time.
TEST_F(Group, AWorkerThatNobodyCanWakeFindsWhatIsStarted)
{
    make();
    lawn_worker_t *const worker = add_worker();
    pass(worker);
    EXPECT_TRUE(lawn_worker_sleep(worker, LAWN_TIME_INFINITY));
    Told told;
    told.init(shard(0));
    EXPECT_TRUE(told.start(now_ + 10));
    pass(worker);
    now_ += 10;
    pass(worker);
    EXPECT_EQ(told.fired, 1U);
    told.retire();
    pass(worker);
}

TEST_F(Group, ABalanceGivesWorkToShardsThatWait)
{
    make();
    lawn_worker_t *const stays = add_worker();
    lawn_worker_t *const leaves = add_worker();
    EXPECT_GT(lawn_group_balance(group_), 0U);
    for (unsigned i = 0; i < 2; ++i) {
        pass(stays);
        pass(leaves);
    }
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    EXPECT_EQ(lawn_group_remove_worker(leaves, nullptr), LAWN_OK);
    EXPECT_GT(lawn_group_moving(group_), 0U);
    EXPECT_EQ(lawn_group_balance(group_), lawn_group_moving(group_));
    pass(stays);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
}

TEST_F(GroupDeathTest, APolicyMayNameNoStranger)
{
    params_.balance = [](void *, lawn_shard_load_t *loads, unsigned count,
                         uint64_t *, unsigned workers) {
        for (unsigned i = 0; i < count; ++i) {
            loads[i].worker = workers;
        }
    };
    make();
    lawn_worker_t *const worker = add_worker();
    pass(worker);
    EXPECT_MISUSE(EXPECT_EQ(lawn_group_balance(group_), 0U), "worker");
    EXPECT_EQ(lawn_group_moving(group_), 0U);
}

TEST_F(GroupDeathTest, ARemovedWorkerMakesNoPass)
{
    make();
    lawn_worker_t *const worker = add_worker();
    pass(worker);
    Told told;
    told.init(shard(0));
    told.start(now_);
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    EXPECT_MISUSE(EXPECT_EQ(pass(worker), 0U), "is_removed");
    EXPECT_EQ(told.fired, 0U);
    lawn_worker_t *const next = add_worker();
    pass(next);
    EXPECT_EQ(told.fired, 1U);
    told.retire();
    pass(next);
}

// A thread of the library is in a callback, so its end takes a while. Meanwhile
// its heir is removed.
TEST_F(Group, ShardsGoToAnotherIfTheHeirIsRemovedMeanwhile)
{
    make();
    lawn_worker_t *thread = nullptr;
    ASSERT_EQ(lawn_group_add_thread(group_, &thread), LAWN_OK);
    lawn_worker_t *const last = add_worker();
    lawn_worker_t *const heir = add_worker();
    static std::atomic<bool> is_called;
    static std::atomic<bool> may_end;
    is_called = may_end = false;
    lawn_shared_t timer;
    lawn_shared_init(&timer, lawn_shard_box(shard(0)),
                     [](lawn_shared_t *, lawn_time_t) {
                         is_called = true;
                         while (!may_end) {
                             std::this_thread::yield();
                         }
                     });
    lawn_shared_start(&timer, now_);
    while (!is_called) {
        std::this_thread::yield();
    }
    std::thread remover(
        [&] { EXPECT_EQ(lawn_group_remove_worker(thread, heir), LAWN_OK); });
    while (!__atomic_load_n(&thread->thread.is_ending, __ATOMIC_SEQ_CST)) {
        std::this_thread::yield();
    }
    EXPECT_EQ(lawn_group_remove_worker(heir, last), LAWN_OK);
    may_end = true;
    remover.join();
    pass(last);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    lawn_shared_retire(&timer, nullptr);
    pass(last);
}

// A thread is just about to wake it.
TEST_F(Group, RemovalWaitsForWhoeverWakesTheWorker)
{
    make();
    lawn_worker_t *const worker = add_worker();
    worker->ringing = 1;
    unsigned yields = 0;
    on_yield = [&] {
        ++yields;
        worker->ringing = 3 - yields;
    };
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    on_yield = nullptr;
    EXPECT_EQ(yields, 3U);
}

} // namespace
