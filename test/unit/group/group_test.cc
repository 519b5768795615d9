// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Groups in one thread: who owns which shard, and what goes along with it.

#include "group_fixture.h"

#include <cmath>

namespace
{

using Group = GroupTest;

TEST_F(Group, RefusesBadInput)
{
    EXPECT_EQ(lawn_group_create(&params_, nullptr), LAWN_ERR_INVALID_PARAM);
    for (const double rate : {-1.0, double(NAN), double(INFINITY)}) {
        params_.ticks_per_sec = rate;
        EXPECT_EQ(lawn_group_create(&params_, &group_), LAWN_ERR_INVALID_PARAM);
    }
    params_.ticks_per_sec = 1e9;
    params_.lawn.allocator.alloc = [](void *, size_t) -> void * {
        return nullptr;
    };
    EXPECT_EQ(lawn_group_create(&params_, &group_), LAWN_ERR_INVALID_PARAM);
    params_.lawn.allocator.release = [](void *, void *) {};
    EXPECT_EQ(lawn_group_create(&params_, &group_), LAWN_ERR_NO_MEMORY);
    params_.moves_memory = true;
    EXPECT_EQ(lawn_group_create(&params_, &group_), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(group_, nullptr);
    params_.moves_memory = false;
    params_.lawn.allocator = {};
    make();
    lawn_worker_t *worker = nullptr;
    EXPECT_EQ(lawn_group_add_worker(nullptr, nullptr, nullptr, &worker),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_add_worker(group_, nullptr, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_add_thread(nullptr, &worker), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_add_thread(group_, nullptr), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_add_engine(group_, nullptr, &worker),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_shard(group_, 8), nullptr);
    EXPECT_EQ(lawn_group_remove_worker(nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    worker = add_worker();
    EXPECT_EQ(lawn_group_remove_worker(worker, worker), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_move_shard(nullptr, worker), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_move_shard(shard(0), nullptr), LAWN_ERR_INVALID_PARAM);
    lawn_group_t *other = nullptr;
    ASSERT_EQ(lawn_group_create(nullptr, &other), LAWN_OK);
    EXPECT_EQ(lawn_group_shards(other), 64U);
    EXPECT_EQ(lawn_group_move_shard(lawn_group_shard(other, 0), worker),
              LAWN_ERR_INVALID_PARAM);
    lawn_worker_t *stranger = nullptr;
    ASSERT_EQ(lawn_group_add_worker(other, nullptr, nullptr, &stranger),
              LAWN_OK);
    EXPECT_EQ(lawn_group_remove_worker(worker, stranger),
              LAWN_ERR_INVALID_PARAM);
    lawn_group_destroy(other);
    lawn_group_destroy(nullptr);
}

TEST_F(Group, EachFailedAllocationIsToldAndLeaksNothing)
{
    static unsigned left;
    static int live;
    live = 0;
    params_.lawn.allocator.alloc = [](void *, size_t size) -> void * {
        if (left == 0) {
            return nullptr;
        }
        --left;
        ++live;
        return malloc(size);
    };
    params_.lawn.allocator.release = [](void *, void *memory) {
        --live;
        free(memory);
    };
    unsigned failures = 0;
    left = 0;
    while (lawn_group_create(&params_, &group_) == LAWN_ERR_NO_MEMORY) {
        EXPECT_EQ(group_, nullptr);
        EXPECT_EQ(live, 0);
        left = ++failures;
    }
    EXPECT_EQ(failures, 3 + 2 * 8U); // each shard is a lawn and a box
    lawn_worker_t *worker = nullptr;
    // What the tries before have got is kept for the next.
    for (const unsigned allocations : {0, 1, 1}) {
        left = allocations;
        EXPECT_EQ(lawn_group_add_worker(group_, nullptr, nullptr, &worker),
                  LAWN_ERR_NO_MEMORY);
        EXPECT_EQ(worker, nullptr);
    }
    left = 2;
    EXPECT_EQ(lawn_group_add_worker(group_, nullptr, nullptr, &worker),
              LAWN_OK);
    left = 0;
    EXPECT_EQ(pass(worker), 0U);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    // A worker that was removed leaves its memory to the next.
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_group_add_worker(group_, nullptr, nullptr, &worker),
              LAWN_OK);
    EXPECT_EQ(lawn_group_add_thread(group_, &worker), LAWN_ERR_NO_MEMORY);
    end();
    EXPECT_EQ(live, 0);
}

TEST_F(Group, ATimerIsRunByWhoeverOwnsItsShard)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    Told told;
    told.init(shard(3));
    EXPECT_EQ(lawn_group_moving(group_), 8U);
    pass(first);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    EXPECT_TRUE(told.start(2000));
    now_ = 2000;
    pass(second);
    EXPECT_EQ(told.fired, 0U);
    pass(first);
    EXPECT_EQ(told.fired, 1U);
    ASSERT_EQ(lawn_group_move_shard(shard(3), second), LAWN_OK);
    EXPECT_TRUE(told.start(3000));
    now_ = 3000;
    pass(second); // The first has not given it up.
    EXPECT_EQ(told.fired, 1U);
    EXPECT_EQ(lawn_group_moving(group_), 1U);
    pass(first);
    EXPECT_EQ(told.fired, 1U);
    pass(second);
    EXPECT_EQ(told.fired, 2U);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    told.retire();
    pass(second);
    EXPECT_EQ(told.released, 1U);
    end();
}

TEST_F(Group, AShardWithoutAWorkerWaits)
{
    make();
    Told told;
    told.init(shard(0));
    EXPECT_TRUE(told.start(1500));
    EXPECT_TRUE(lawn_shared_stop(&told.timer));
    EXPECT_TRUE(told.start(1600));
    now_ = 5000;
    EXPECT_EQ(lawn_group_moving(group_), 8U);
    EXPECT_EQ(lawn_group_balance(group_), 0U);
    lawn_worker_t *worker = add_worker();
    EXPECT_EQ(pass(worker), 2U); // a message, a timer
    EXPECT_EQ(told.fired, 1U);
    EXPECT_TRUE(told.start(6000));
    pass(worker);
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_group_moving(group_), 8U);
    now_ = 7000;
    worker = add_worker();
    pass(worker);
    EXPECT_EQ(told.fired, 2U);
    told.retire();
    end();
}

// Timers that were filed, messages that were left by a budget, messages that
// are in the box, and what is due, in every stage of a hand-over.
TEST_F(Group, AHandOverTakesEverythingAlong)
{
    make();
    constexpr unsigned count = 40;
    std::vector<Told> all(count);
    lawn_worker_t *workers[] = {add_worker(), add_worker()};
    pass(workers[0]);
    for (Told &told : all) {
        told.init(shard(1));
    }
    unsigned owner = 0;
    for (unsigned round = 0; round < 50; ++round) {
        for (unsigned i = 0; i < count; ++i) {
            EXPECT_TRUE(all[i].start(now_ + (i * 37 + round) % 90));
            if (i == count / 2) {
                pass(workers[owner], 5);
            }
        }
        owner = 1 - owner;
        ASSERT_EQ(lawn_group_move_shard(shard(1), workers[owner]), LAWN_OK);
        pass(workers[1 - owner], 1);
        now_ += 45;
        pass(workers[owner], 7);
        now_ += 45;
        while (pass(workers[owner], 7) != 0) {
        }
        for (const Told &told : all) {
            EXPECT_EQ(told.fired, round + 1);
        }
        ASSERT_EQ(lawn_check(lawn_shard_lawn(shard(1))), LAWN_OK);
    }
    for (Told &told : all) {
        told.retire();
    }
    pass(workers[1 - owner]);
    EXPECT_EQ(all[0].released, 0U);
    pass(workers[owner]);
    for (const Told &told : all) {
        EXPECT_EQ(told.released, 1U);
    }
    end();
}

TEST_F(Group, PlainTimersGoAlong)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    pass(first);
    static unsigned fired;
    fired = 0;
    lawn_timer_t timer = {};
    lawn_timer_init(&timer, [](lawn_timer_t *, lawn_time_t) { ++fired; });
    lawn_timer_start(lawn_shard_lawn(shard(2)), &timer, now_, 100);
    lawn_group_move_shard(shard(2), second);
    pass(first);
    now_ += 100;
    EXPECT_EQ(lawn_worker_next(first), LAWN_TIME_INFINITY);
    pass(first);
    EXPECT_EQ(fired, 0U);
    pass(second);
    EXPECT_EQ(fired, 1U);
}

TEST_F(Group, ALaterMoveOverridesAnEarlierOne)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    lawn_worker_t *const third = add_worker();
    Told told;
    told.init(shard(0));
    told.start(1000);
    lawn_group_move_shard(shard(0), second); // before anybody has it
    pass(first);
    EXPECT_EQ(told.fired, 0U);
    lawn_group_move_shard(shard(0), third);
    pass(second);
    EXPECT_EQ(told.fired, 0U);
    pass(third);
    EXPECT_EQ(told.fired, 1U);
    lawn_group_move_shard(shard(0), first);
    lawn_group_move_shard(shard(0), third); // stays
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    told.start(1000);
    pass(first);
    EXPECT_EQ(told.fired, 1U);
    pass(third);
    EXPECT_EQ(told.fired, 2U);
    lawn_group_move_shard(shard(0), first);
    pass(third);
    lawn_group_move_shard(shard(0), third); // back, on the way
    told.start(1000);
    pass(first);
    EXPECT_EQ(told.fired, 2U);
    pass(third);
    EXPECT_EQ(told.fired, 3U);
    told.retire();
    end();
}

TEST_F(Group, WhoIsRemovedLeavesItsShardsToTheHeir)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    lawn_worker_t *const third = add_worker();
    pass(first);
    lawn_group_move_shard(shard(4), second); // has not given it up
    lawn_group_move_shard(shard(5), second);
    lawn_group_move_shard(shard(6), third);
    pass(first);
    lawn_group_move_shard(shard(7), second);
    std::vector<Told> all(8);
    for (unsigned i = 0; i < 8; ++i) {
        all[i].init(shard(i));
        all[i].start(1000);
    }
    // The second has got none yet; two wait for it, and one is the first's.
    EXPECT_EQ(lawn_group_remove_worker(second, third), LAWN_OK);
    pass(third);
    EXPECT_EQ(all[4].fired + all[5].fired + all[6].fired, 3U);
    EXPECT_EQ(all[7].fired, 0U);
    EXPECT_EQ(lawn_group_remove_worker(first, third), LAWN_OK);
    pass(third);
    for (Told &told : all) {
        EXPECT_EQ(told.fired, 1U);
        told.retire();
    }
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    EXPECT_EQ(lawn_group_move_shard(shard(0), first), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_remove_worker(third, first), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_group_remove_worker(third, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_group_moving(group_), 8U);
    end();
}

TEST_F(Group, AShardOnItsWayToAnotherWorkerDoesNotGoToTheHeir)
{
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    lawn_worker_t *const third = add_worker();
    pass(first);
    lawn_group_move_shard(shard(0), second); // the first has it still
    EXPECT_EQ(lawn_group_remove_worker(first, third), LAWN_OK);
    Told told;
    told.init(shard(0));
    told.start(now_);
    pass(third);
    EXPECT_EQ(told.fired, 0U);
    pass(second);
    EXPECT_EQ(told.fired, 1U);
    EXPECT_EQ(lawn_group_moving(group_), 0U);
    told.retire();
    pass(second);
}

TEST_F(Group, ADestroyedGroupTakesNoStart)
{
    make();
    lawn_worker_t *const worker = add_worker();
    Told filed;
    Told posted;
    filed.init(shard(0));
    posted.init(shard(1));
    filed.start(2000);
    pass(worker);
    posted.start(2000);
    end();
    EXPECT_FALSE(lawn_shared_is_active(&filed.timer));
    EXPECT_FALSE(lawn_shared_is_active(&posted.timer));
    EXPECT_FALSE(filed.start(1));
    EXPECT_FALSE(posted.start(1));
    filed.retire();
    posted.retire();
    EXPECT_EQ(filed.released + posted.released, 2U);
}

} // namespace
