// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A box in the child of a fork, where the parent's threads do not exist: nobody
// waits for them, but for the child's own.
//
// The parents have no thread beside their own, not even that of hang.h: the
// thread sanitizer lets a child begin none otherwise.

#include "../../hang.h"
#include "../../yield.h"
#include "shared/box.h"

#include <lawn/shared.h>

#include <gtest/gtest.h>

#include <atomic>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using lawn_test::Thread;
using lawn_test::wait_for;

std::atomic<bool> has_begun;
std::atomic<bool> may_end;
std::atomic<bool> has_ended;

void begin_and_wait()
{
    has_begun = true;
    wait_for("the test", "to let the callback end", [] { return +may_end; });
    has_ended = true;
}

void wait_for_the_beginning()
{
    wait_for("the callback", "to begin", [] { return +has_begun; });
}

class SharedFork : public testing::Test
{
protected:
    SharedFork()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        EXPECT_EQ(lawn_box_create(lawn_, &box_), LAWN_OK);
        lawn_box_on_wake(
            box_, [](void *) { begin_and_wait(); }, nullptr);
        lawn_shared_init(&timer_, box_, [](lawn_shared_t *, lawn_time_t) {
            begin_and_wait();
        });
        has_begun = may_end = has_ended = false;
    }

    ~SharedFork() override
    {
        lawn_shared_retire(&timer_, nullptr);
        lawn_box_destroy(box_);
        lawn_destroy(lawn_);
    }

    // Returns whether `run` returns true in a child.
    template <class Run> static bool is_true_in_child(Run run)
    {
        const pid_t child = fork();
        if (child == 0) {
            exit(run() ? 0 : 1); // not _exit(): instruments have their say
        }
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return status == 0;
    }

    lawn_t *lawn_ = nullptr;
    lawn_box_t *box_ = nullptr;
    lawn_shared_t timer_;
};

TEST_F(SharedFork, ADestroyedBoxWaitsForTheThreadsOfTheChild)
{
    box_->ringing = 1; // a thread of the parent
    EXPECT_TRUE(is_true_in_child([this] {
        EXPECT_TRUE(lawn_box_sleep(box_, 1000));
        Thread ringer("the ringer", [this] { lawn_shared_start(&timer_, 10); });
        wait_for_the_beginning();
        on_yield = [] {
            may_end = true;
            __real_sched_yield();
        };
        lawn_box_destroy(box_);
        const bool has_waited = has_ended;
        may_end = true;
        ringer.join();
        return has_waited;
    }));
    box_->ringing = 0;
}

TEST_F(SharedFork, ADestroyedBoxDoesNotWaitForTheThreadsOfTheParent)
{
    box_->ringing = 2;
    EXPECT_TRUE(is_true_in_child([this] {
        on_yield = [] { _exit(2); };
        lawn_box_destroy(box_);
        return true;
    }));
    box_->ringing = 0;
}

TEST_F(SharedFork, SyncDoesNotWaitForACallbackOfTheParent)
{
    box_->running = &timer_;
    EXPECT_TRUE(is_true_in_child([this] {
        on_yield = [] { _exit(2); };
        lawn_shared_sync(&timer_);
        return true;
    }));
    box_->running = nullptr;
}

// A thread of the child has the number of the parent's thread that was running
// the callback. That is no misuse.
TEST_F(SharedFork, ACallbackOfTheParentIsNotTheCallersOwn)
{
    box_->running = &timer_;
    box_->runner = static_cast<uintptr_t>(pthread_self());
    EXPECT_TRUE(is_true_in_child([this] {
        on_yield = [] { _exit(2); };
        lawn_shared_sync(&timer_);
        return true;
    }));
    box_->running = nullptr;
}

TEST_F(SharedFork, SyncWaitsForACallbackOfTheChild)
{
    EXPECT_TRUE(is_true_in_child([this] {
        Thread owner("the owner", [this] {
            lawn_shared_start(&timer_, 1);
            lawn_box_drain(box_, 1, 0);
            lawn_advance(lawn_, 1, 0);
        });
        wait_for_the_beginning();
        on_yield = [] {
            may_end = true;
            __real_sched_yield();
        };
        lawn_shared_sync(&timer_);
        const bool has_waited = has_ended;
        may_end = true;
        owner.join();
        return has_waited;
    }));
}

} // namespace
