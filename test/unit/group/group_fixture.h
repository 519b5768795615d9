// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A group on virtual time, with workers that the test runs.

#ifndef LAWN_TEST_UNIT_GROUP_FIXTURE_H
#define LAWN_TEST_UNIT_GROUP_FIXTURE_H

#include <lawn/group.h>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

// A shared timer that tells where and when it was called back.
struct Told {
    lawn_shared_t timer; // first
    unsigned fired = 0;
    unsigned released = 0;
    lawn_time_t at = 0;

    static void on_expired(lawn_shared_t *timer, lawn_time_t now)
    {
        Told *const self = reinterpret_cast<Told *>(timer);
        EXPECT_GE(now, self->due);
        ++self->fired;
        self->at = now;
    }

    static void on_released(lawn_shared_t *timer, lawn_time_t)
    {
        ++reinterpret_cast<Told *>(timer)->released;
    }

    void init(lawn_shard_t *shard)
    {
        lawn_shared_init(&timer, lawn_shard_box(shard), on_expired);
    }

    bool start(lawn_time_t deadline)
    {
        due = deadline;
        return lawn_shared_start(&timer, deadline);
    }

    void retire()
    {
        lawn_shared_retire(&timer, on_released);
    }

    lawn_time_t due = 0; // the latest start's
};

class GroupTest : public testing::Test
{
protected:
    explicit GroupTest(unsigned shards = 8)
    {
        params_.shards = shards;
        params_.clock = [](void *arg) {
            return static_cast<GroupTest *>(arg)->now_;
        };
        params_.clock_arg = this;
        params_.ticks_per_sec = 1e9;
    }

    ~GroupTest() override
    {
        end();
    }

    // Before timers of the test's own go, which may wait to be released.
    void end()
    {
        lawn_group_destroy(group_);
        group_ = nullptr;
    }

    void make()
    {
        ASSERT_EQ(lawn_group_create(&params_, &group_), LAWN_OK);
    }

    // What a worker is woken for is counted in `wakes`.
    lawn_worker_t *add_worker(unsigned *wakes = nullptr)
    {
        lawn_worker_t *worker = nullptr;
        const auto wake = [](void *arg) { ++*static_cast<unsigned *>(arg); };
        EXPECT_EQ(lawn_group_add_worker(group_, wakes ? +wake : nullptr, wakes,
                                        &worker),
                  LAWN_OK);
        return worker;
    }

    lawn_shard_t *shard(unsigned number)
    {
        return lawn_group_shard(group_, number);
    }

    unsigned pass(lawn_worker_t *worker, unsigned budget = 0)
    {
        return lawn_worker_pass(worker, lawn_group_time(group_), budget);
    }

    lawn_group_params_t params_ = {};
    lawn_group_t *group_ = nullptr;
    lawn_time_t now_ = 1000;
};

#endif
