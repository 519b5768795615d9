// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Groups whose workers are threads of the library's, which sleep. What a test
// waits for comes, or the test does not end; none of it depends on how fast
// anything is. That nothing is lost in a crowd: test/model/group_history_test.

#include "../../hang.h"
#include "../../misuse.h"
#include "../../threads.h"

#include <lawn/group.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

namespace
{

using lawn_test::wait_for;

struct Called {
    lawn_shared_t timer; // first
    std::atomic<bool> is_called{false};
    std::thread::id thread;
    bool blocks_signals = false;

    static void on_expired(lawn_shared_t *timer, lawn_time_t)
    {
        Called *const self = reinterpret_cast<Called *>(timer);
        self->thread = std::this_thread::get_id();
        sigset_t set;
        pthread_sigmask(SIG_BLOCK, nullptr, &set);
        self->blocks_signals = sigismember(&set, SIGTERM) != 0;
        self->is_called = true;
    }

    void init(lawn_group_t *group, unsigned shard)
    {
        lawn_shared_init(&timer, lawn_shard_box(lawn_group_shard(group, shard)),
                         on_expired);
    }

    void wait_until_called() const
    {
        wait_for("a worker", "to fire the timer",
                 [this] { return +is_called; });
    }

    void start(lawn_group_t *group, double msec)
    {
        is_called = false;
        EXPECT_TRUE(lawn_shared_start(&timer, lawn_group_time(group) +
                                                  lawn_time_from_msec(msec)));
    }
};

class GroupThreads : public testing::Test
{
protected:
    GroupThreads()
    {
        lawn_group_params_t params = {};
        params.shards = 4;
        EXPECT_EQ(lawn_group_create(&params, &group_), LAWN_OK);
    }

    ~GroupThreads() override
    {
        end();
    }

    // Before timers of the test's own go, which may wait to be released.
    void end()
    {
        lawn_group_destroy(group_);
        group_ = nullptr;
    }

    lawn_worker_t *add_thread()
    {
        lawn_worker_t *worker = nullptr;
        EXPECT_EQ(lawn_group_add_thread(group_, &worker), LAWN_OK);
        return worker;
    }

    lawn_group_t *group_ = nullptr;
};

using GroupThreadsDeathTest = GroupThreads;

// It sleeps for ever, for an hour, and until the start before.
TEST_F(GroupThreads, ASleepingThreadIsWoken)
{
    add_thread();
    Called late;
    Called soon;
    late.init(group_, 0);
    soon.init(group_, 1);
    soon.start(group_, 0);
    soon.wait_until_called();
    EXPECT_NE(soon.thread, std::this_thread::get_id());
    EXPECT_TRUE(soon.blocks_signals);
    late.start(group_, 3600e3);
    soon.start(group_, 1);
    soon.wait_until_called();
    EXPECT_TRUE(lawn_shared_stop(&late.timer));
    lawn_shared_retire(&late.timer, nullptr);
    lawn_shared_retire(&soon.timer, nullptr);
    end();
}

TEST_F(GroupThreads, AShardGoesFromThreadToThread)
{
    const std::array<lawn_worker_t *, 3> workers = {add_thread(), add_thread(),
                                                    add_thread()};
    Called called;
    called.init(group_, 2);
    std::array<std::thread::id, 3> threads;
    for (unsigned i = 0; i < 30; ++i) {
        lawn_shard_t *const shard = lawn_group_shard(group_, 2);
        EXPECT_EQ(lawn_group_move_shard(shard, workers[i % 3]), LAWN_OK);
        wait_for("the shard's worker", "to give it away",
                 [this] { return lawn_group_moving(group_) == 0; });
        called.start(group_, 0);
        called.wait_until_called();
        if (i < 3) {
            threads[i] = called.thread;
        }
        EXPECT_EQ(called.thread, threads[i % 3]);
    }
    EXPECT_NE(threads[0], threads[1]);
    EXPECT_NE(threads[1], threads[2]);
    lawn_shared_retire(&called.timer, nullptr);
    end();
}

// The callback does not end before the removal waits for it.
TEST_F(GroupThreads, ARemovedThreadHasFinishedItsCallback)
{
    static std::atomic<bool> is_inside;
    static std::atomic<bool> may_end;
    is_inside = false;
    may_end = false;
    lawn_worker_t *const worker = add_thread();
    lawn_shared_t timer;
    lawn_shared_init(&timer, lawn_shard_box(lawn_group_shard(group_, 0)),
                     [](lawn_shared_t *, lawn_time_t) {
                         is_inside = true;
                         wait_for("the test", "to remove the thread",
                                  [] { return +may_end; });
                         is_inside = false;
                     });
    lawn_shared_start(&timer, 0);
    wait_for("the thread", "to be in the callback", [] { return +is_inside; });
    before_join = [] { may_end = true; };
    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
    before_join = nullptr;
    EXPECT_FALSE(is_inside);
    may_end = true;
    lawn_shared_retire(&timer, nullptr);
    end();
}

TEST_F(GroupThreads, AThreadThatCannotBeIsTold)
{
    lawn_worker_t *worker = nullptr;
    on_create = [] { return EAGAIN; };
    EXPECT_EQ(lawn_group_add_thread(group_, &worker), LAWN_ERR_IO);
    on_create = nullptr;
    EXPECT_EQ(worker, nullptr);
    EXPECT_EQ(lawn_group_moving(group_), 4U); // it never was a worker
    add_thread();
}

// The worker that inherits is told, also while it sleeps.
TEST_F(GroupThreads, TheHeirWakesForWhatItInherits)
{
    lawn_worker_t *const first = add_thread();
    lawn_worker_t *const second = add_thread();
    Called called;
    called.init(group_, 3);
    called.start(group_, 20);
    EXPECT_EQ(lawn_group_remove_worker(first, second), LAWN_OK);
    called.wait_until_called();
    // And whoever comes when there was nobody.
    EXPECT_EQ(lawn_group_remove_worker(second, nullptr), LAWN_OK);
    called.start(group_, 0);
    add_thread();
    called.wait_until_called();
    lawn_shared_retire(&called.timer, nullptr);
    end();
}

TEST_F(GroupThreadsDeathTest, AThreadDoesNotRemoveItself)
{
    static lawn_worker_t *own;
    static std::atomic<bool> is_refused;
    is_refused = false;
    lawn_shared_t timer;
    lawn_shared_init(&timer, lawn_shard_box(lawn_group_shard(group_, 0)),
                     [](lawn_shared_t *, lawn_time_t) {
                         is_refused = lawn_group_remove_worker(own, nullptr) ==
                                      LAWN_ERR_INVALID_PARAM;
                     });
    // The thread begins inside: a death test forks, and takes none along.
    const auto remove = [&] {
        own = add_thread();
        lawn_shared_start(&timer, 0);
        wait_for("the thread", "to be refused", [] { return +is_refused; });
    };
    EXPECT_MISUSE(remove(), "may_remove");
    lawn_shared_retire(&timer, nullptr);
    end();
}

TEST_F(GroupThreadsDeathTest, ACallbackDoesNotDestroyItsGroup)
{
    static lawn_group_t *own;
    own = group_;
    lawn_worker_t *worker = nullptr;
    ASSERT_EQ(lawn_group_add_worker(group_, nullptr, nullptr, &worker),
              LAWN_OK);
    lawn_shared_t timer;
    lawn_shared_init(
        &timer, lawn_shard_box(lawn_group_shard(group_, 0)),
        [](lawn_shared_t *, lawn_time_t) { lawn_group_destroy(own); });
    lawn_shared_start(&timer, 0);
    EXPECT_MISUSE(lawn_worker_pass(worker, lawn_group_time(group_), 0),
                  "may_remove");
    lawn_shared_retire(&timer, nullptr);
    end();
}

} // namespace
