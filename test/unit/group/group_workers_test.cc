// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Workers of a group that are refused, that are not woken, and that go while
// others reach for them.

#include "../../hang.h"
#include "../../misuse.h"
#include "../../threads.h"
#include "../../yield.h"
#include "group/group_impl.h"
#include "group_fixture.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <utility>

#include <time.h>

namespace
{

thread_local std::function<void()> on_nap;

} // namespace

extern "C" {

int __real_nanosleep(const timespec *duration, timespec *left);

int __wrap_nanosleep(const timespec *duration, timespec *left)
{
    if (!on_nap) {
        return __real_nanosleep(duration, left);
    }
    on_nap();
    return 0;
}
}

namespace
{

using lawn_test::Thread;
using lawn_test::wait_for;

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

// A thread of the library, which is in a callback. So its removal, by another
// thread, takes until the callback may end.
class BusyThread
{
public:
    BusyThread(lawn_group_t *group, lawn_shard_t *shard)
    {
        EXPECT_EQ(lawn_group_add_thread(group, &worker_), LAWN_OK);
        is_called_ = may_end_ = false;
        lawn_shared_init(&timer_, lawn_shard_box(shard),
                         [](lawn_shared_t *, lawn_time_t) {
                             is_called_ = true;
                             wait_for("the test", "to let the callback end",
                                      [] { return +may_end_; });
                         });
        lawn_shared_start(&timer_, 0);
        wait_for("the thread", "to be in the callback",
                 [] { return +is_called_; });
    }

    void begin_removal(lawn_worker_t *heir)
    {
        remover_ = Thread("the remover", [this, heir] {
            EXPECT_EQ(lawn_group_remove_worker(worker_, heir), LAWN_OK);
        });
        wait_for("the remover", "to tell the thread to end", [this] {
            return __atomic_load_n(&worker_->thread.is_ending,
                                   __ATOMIC_SEQ_CST) != 0;
        });
    }

    void end_removal()
    {
        may_end_ = true;
        remover_.join();
    }

    // The next owner of the shard makes a pass after that.
    void retire()
    {
        lawn_shared_retire(&timer_, nullptr);
    }

private:
    inline static std::atomic<bool> is_called_;
    inline static std::atomic<bool> may_end_;
    lawn_worker_t *worker_ = nullptr;
    lawn_shared_t timer_;
    Thread remover_;
};

TEST_F(Group, ShardsGoToAnotherIfTheHeirIsRemovedMeanwhile)
{
    make();
    BusyThread thread(group_, shard(0));
    lawn_worker_t *const last = add_worker();
    lawn_worker_t *const heir = add_worker();
    thread.begin_removal(heir);
    EXPECT_EQ(lawn_group_remove_worker(heir, last), LAWN_OK);
    thread.end_removal();
    pass(last);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    thread.retire();
    pass(last);
}

// Its memory is that of a worker that is being made, which fails then.
TEST_F(Group, ShardsGoToNoWorkerInTheMaking)
{
    make();
    BusyThread thread(group_, shard(0));
    lawn_worker_t *const last = add_worker();
    lawn_worker_t *const heir = add_worker();
    thread.begin_removal(heir);
    EXPECT_EQ(lawn_group_remove_worker(heir, last), LAWN_OK);
    on_create = [&] {
        EXPECT_FALSE(heir->is_removed);
        EXPECT_EQ(lawn_group_move_shard(shard(1), heir),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_group_remove_worker(last, heir), LAWN_ERR_INVALID_PARAM);
        thread.end_removal();
        return EAGAIN;
    };
    lawn_worker_t *made = nullptr;
    EXPECT_EQ(lawn_group_add_thread(group_, &made), LAWN_ERR_IO);
    on_create = nullptr;
    pass(last);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    thread.retire();
    pass(last);
}

// Until the very end of a removal, what is the worker's is still in use.
TEST_F(Group, ARemovedWorkerIsUsedAgainOnlyAfterItsRemoval)
{
    static std::function<void()> on_release;
    params_.lawn.allocator.alloc = [](void *, size_t size) {
        return malloc(size);
    };
    params_.lawn.allocator.release = [](void *, void *memory) {
        free(memory);
        if (on_release) {
            std::exchange(on_release, nullptr)();
        }
    };
    make();
    lawn_worker_t *thread = nullptr;
    ASSERT_EQ(lawn_group_add_thread(group_, &thread), LAWN_OK);
    on_release = [&] { EXPECT_NE(add_worker(), thread); };
    EXPECT_EQ(lawn_group_remove_worker(thread, nullptr), LAWN_OK);
    EXPECT_FALSE(on_release) << "while the engine was destroyed";
    EXPECT_EQ(add_worker(), thread);
    end();
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

// The other thread may have a lower priority, and be on this processor.
TEST_F(Group, RemovalSleepsIfYieldsDoNotHelp)
{
    make();
    lawn_worker_t *const worker = add_worker();
    worker->ringing = 1;
    unsigned yields = 0;
    unsigned naps = 0;
    on_yield = [&] { worker->ringing = ++yields < 1000; };
    on_nap = [&] {
        ++naps;
        worker->ringing = 2 - naps;
    };
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    EXPECT_EQ(naps, 2U);
    on_nap = nullptr;
    on_yield = nullptr;
}

TEST_F(Group, AWorkerWithOrdersLetsWhoHasTheLockGoOn)
{
    make();
    lawn_worker_t *const worker = add_worker();
    unsigned naps = 0;
    on_nap = [&] { ++naps; };
    pthread_mutex_lock(&group_->lock); // as another thread does
    pass(worker);
    EXPECT_FALSE(lawn_worker_sleep(worker, now_));
    EXPECT_EQ(naps, 1U);
    pthread_mutex_unlock(&group_->lock);
    EXPECT_FALSE(lawn_worker_sleep(worker, now_));
    pass(worker);
    EXPECT_TRUE(lawn_worker_sleep(worker, now_));
    EXPECT_EQ(naps, 1U);
    on_nap = nullptr;
}

// A callback adds and removes workers, and another removal is in progress.
TEST_F(Group, WhileItEndsNoWorkerIsAddedOrRemoved)
{
    make();
    BusyThread busy(group_, shard(0));
    lawn_worker_t *const other = add_worker();
    lawn_group_move_shard(shard(1), other);
    busy.begin_removal(nullptr);
    Thread destroyer("the destroyer", [this] { lawn_group_destroy(group_); });
    wait_for("the destroyer", "to have begun", [this] {
        const lawn::Locked locked(group_);
        return group_->is_ending;
    });
    lawn_worker_t *worker = nullptr;
    EXPECT_EQ(lawn_group_add_worker(group_, nullptr, nullptr, &worker),
              LAWN_ERR_UNSUPPORTED);
    EXPECT_EQ(lawn_group_add_thread(group_, &worker), LAWN_ERR_UNSUPPORTED);
    EXPECT_EQ(lawn_group_remove_worker(other, nullptr), LAWN_ERR_UNSUPPORTED);
    EXPECT_EQ(worker, nullptr);
    busy.end_removal();
    destroyer.join();
    group_ = nullptr;
    busy.retire();
}

} // namespace
