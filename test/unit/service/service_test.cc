// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The sleeping service: what is called, cancelled and counted.

#include "../../environment.h"
#include "../../misuse.h"
#include "../../threads.h"
#include "service_fixture.h"

#include <random>
#include <set>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>

namespace
{

using lawn_test::got_on;
using lawn_test::scaled;
using lawn_test::Thread;
using lawn_test::wait_for;

using Service = ServiceTest;

TEST_F(Service, CallsWhenTheTimeHasComeAndNotBefore)
{
    create();
    for (unsigned i = 0; i < 20; ++i) {
        const lawn_time_t ttl = lawn_time_from_usec(i * 100);
        const lawn_time_t begin = lawn_get_time();
        const lawn_service_timer_t handle = start(ttl);
        EXPECT_GE(calls_.wait_for(i + 1), begin + ttl);
        EXPECT_EQ(cancel(handle), LAWN_ERR_NO_ELEM);
        EXPECT_EQ(lawn_service_pending(service_), 0U);
    }
    EXPECT_EQ(calls_.count(), 20U);
}

TEST_F(Service, ASleeperIsWokenForAnEarlierTimer)
{
    create();
    const lawn_service_timer_t late = start(hour);
    start(LAWN_TIME_INFINITY);
    start(0);
    calls_.wait_for(1);
    EXPECT_EQ(lawn_service_pending(service_), 2U);
    EXPECT_EQ(cancel(late), LAWN_OK);
    EXPECT_EQ(lawn_service_pending(service_), 1U);
}

TEST_F(Service, CancelSaysWhetherItWasInTime)
{
    is_one_lane = true; // so that a start gets the memory of the last to end
    create();
    const lawn_service_timer_t one = start(hour);
    const lawn_service_timer_t two = start(hour);
    EXPECT_EQ(cancel(one), LAWN_OK);
    EXPECT_EQ(cancel(one), LAWN_ERR_NO_ELEM);
    const lawn_service_timer_t three = start(hour); // in the same memory
    EXPECT_EQ(three.index, one.index);
    EXPECT_EQ(cancel(one), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_service_pending(service_), 2U);
    EXPECT_EQ(cancel(three), LAWN_OK);
    EXPECT_EQ(cancel(two), LAWN_OK);
    for (const lawn_service_timer_t unknown :
         {lawn_service_timer_t{0, 0}, lawn_service_timer_t{5, 0},
          lawn_service_timer_t{5, 1}, lawn_service_timer_t{64, 1},
          lawn_service_timer_t{UINT32_MAX, UINT32_MAX}}) {
        EXPECT_EQ(cancel(unknown), LAWN_ERR_NO_ELEM);
    }
    EXPECT_EQ(lawn_service_pending(service_), 0U);
    EXPECT_EQ(lawn_service_start(service_, 1, nullptr, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_service_start(service_, 1, Calls::note, &calls_, nullptr),
              LAWN_OK);
    calls_.wait_for(1);
    is_one_lane = false;
}

TEST_F(Service, NoMoreThanTheMostArePending)
{
    params_.max_pending = 100;
    create();
    std::vector<lawn_service_timer_t> handles;
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(lawn_service_pending(service_), i);
        handles.push_back(start(hour));
    }
    lawn_service_timer_t handle = {7, 8};
    EXPECT_EQ(lawn_service_start(service_, 0, Calls::note, &calls_, &handle),
              LAWN_ERR_BUSY);
    EXPECT_EQ(handle.index, 7U); // left alone
    EXPECT_EQ(lawn_service_pending(service_), 100U);
    EXPECT_EQ(cancel(handles[50]), LAWN_OK);
    start(0);
    calls_.wait_for(1);
    EXPECT_EQ(lawn_service_pending(service_), 99U);
}

// Netty's fault: what was cancelled stays until its tick.
TEST_F(Service, TimersThatHaveEndedTakeNoMemory)
{
    create();
    start(hour);
    const unsigned made = memory_.made;
    for (unsigned i = 0; i < 100'000; ++i) {
        EXPECT_EQ(cancel(start(hour + i)), LAWN_OK);
    }
    // Nor do those that have expired.
    for (unsigned i = 0; i < 1000; ++i) {
        start(0);
        calls_.wait_for(i + 1);
    }
    EXPECT_EQ(memory_.made, made);
}

TEST_F(Service, ManyArePendingAndEachIsCalled)
{
    create();
    constexpr unsigned count = 20'000;
    std::vector<lawn_service_timer_t> handles;
    for (unsigned i = 0; i < count; ++i) {
        handles.push_back(start(i % 2 ? hour : i % 50 * 1000));
    }
    calls_.wait_for(count / 2);
    for (unsigned i = 0; i < count; ++i) {
        EXPECT_EQ(cancel(handles[i]), i % 2 ? LAWN_OK : LAWN_ERR_NO_ELEM);
    }
    EXPECT_EQ(lawn_service_pending(service_), 0U);
    EXPECT_EQ(calls_.count(), count / 2);
}

TEST_F(Service, StopHandsBackWhatWasNotCalled)
{
    create();
    std::vector<int> args(100);
    std::vector<lawn_service_timer_t> handles;
    for (int &arg : args) {
        handles.push_back(start(hour, Calls::note, &arg));
    }
    EXPECT_EQ(cancel(handles[3]), LAWN_OK);
    std::set<void *> unprocessed;
    EXPECT_EQ(lawn_service_stop(
                  service_,
                  [](void *arg, void *user) {
                      static_cast<std::set<void *> *>(user)->insert(arg);
                  },
                  &unprocessed),
              99U);
    EXPECT_EQ(unprocessed.size(), 99U);
    EXPECT_EQ(unprocessed.count(&args[3]), 0U);
    EXPECT_EQ(lawn_service_pending(service_), 0U);
    EXPECT_EQ(cancel(handles[4]), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_service_start(service_, 0, Calls::note, &calls_, nullptr),
              LAWN_ERR_UNSUPPORTED);
    EXPECT_EQ(lawn_service_stop(service_, nullptr, nullptr), 0U);
}

// Which does not end before it is waited for.
TEST_F(Service, StopWaitsForTheCallbackThatRuns)
{
    create();
    static std::atomic<bool> may_end;
    static std::atomic<bool> runs;
    static std::atomic<bool> has_ended;
    may_end = runs = has_ended = false;
    start(
        0,
        [](void *) {
            runs = true;
            wait_for("the test", "to stop the service",
                     [] { return +may_end; });
            has_ended = true;
        },
        nullptr);
    wait_for("the service", "to call", [] { return +runs; });
    before_join = [] { may_end = true; };
    EXPECT_EQ(lawn_service_stop(service_, nullptr, nullptr), 0U);
    before_join = nullptr;
    EXPECT_TRUE(has_ended);
    may_end = true;
}

struct Chain {
    lawn_service_t *service;
    Calls calls;
    lawn_service_timer_t other;
    unsigned left;
};

// Starts itself anew, and cancels another.
TEST_F(Service, ACallbackMayStartAndCancel)
{
    create();
    Chain chain = {service_, {}, start(hour), 10};
    static void (*const next)(void *) = [](void *arg) {
        Chain *const self = static_cast<Chain *>(arg);
        if (--self->left > 0) {
            EXPECT_EQ(
                lawn_service_start(self->service, 100, next, self, nullptr),
                LAWN_OK);
        } else {
            EXPECT_EQ(lawn_service_cancel(self->service, self->other), LAWN_OK);
        }
        Calls::note(&self->calls);
    };
    start(0, next, &chain);
    chain.calls.wait_for(10);
    EXPECT_EQ(cancel(chain.other), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_service_pending(service_), 0U);
}

// A callback that does not return keeps nobody waiting: it has a thread.
TEST_F(Service, AnExecutorKeepsASlowCallbackOutOfTheWay)
{
    static std::vector<Thread> threads;
    params_.execute = [](void *executor, void (*fn)(void *), void *arg) {
        EXPECT_EQ(executor, &threads);
        threads.emplace_back("an executor", [=] { fn(arg); });
    };
    params_.executor = &threads;
    create();
    static std::atomic<bool> may_end;
    may_end = false;
    start(
        0,
        [](void *) {
            wait_for("the test", "to see the other callback",
                     [] { return +may_end; });
        },
        nullptr);
    start(0);
    calls_.wait_for(1);
    may_end = true;
    lawn_service_stop(service_, nullptr, nullptr);
    for (Thread &i : threads) {
        i.join();
    }
    threads.clear();
    EXPECT_EQ(calls_.count(), 1U);
}

TEST_F(Service, SignalsAreForOtherThreads)
{
    create();
    static sigset_t blocked;
    start(
        0,
        [](void *arg) {
            pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
            Calls::note(arg);
        },
        &calls_);
    calls_.wait_for(1);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
    EXPECT_EQ(sigismember(&blocked, SIGALRM), 1);
}

TEST_F(Service, NoMemoryAndNoArguments)
{
    EXPECT_EQ(lawn_service_create(&params_, nullptr), LAWN_ERR_INVALID_PARAM);
    lawn_service_params_t half = {};
    half.allocator.alloc = params_.allocator.alloc;
    EXPECT_EQ(lawn_service_create(&half, &service_), LAWN_ERR_INVALID_PARAM);
    for (unsigned left = 0; left < 6; ++left) {
        memory_.left = left;
        EXPECT_EQ(lawn_service_create(&params_, &service_), LAWN_ERR_NO_MEMORY);
        EXPECT_EQ(memory_.live, 0U);
    }
    memory_.left = 6;
    create();
    EXPECT_EQ(lawn_service_start(service_, 0, Calls::note, &calls_, nullptr),
              LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(lawn_service_pending(service_), 0U);
    memory_.left = 1;
    start(0);
    calls_.wait_for(1);
    lawn_service_destroy(nullptr);
}

// The id of a thread that has ended is often that of the next.
TEST_F(Service, AThreadWithTheIdOfTheServicesMayDestroyIt)
{
    create();
    static std::atomic<pthread_t> id;
    start(
        0,
        [](void *arg) {
            id = pthread_self();
            Calls::note(arg);
        },
        &calls_);
    calls_.wait_for(1);
    EXPECT_EQ(lawn_service_stop(service_, nullptr, nullptr), 0U);
    for (unsigned i = 0; i < 100 && service_; ++i) {
        std::thread([&] {
            if (pthread_equal(pthread_self(), id)) {
                lawn_service_destroy(service_);
                service_ = nullptr;
            }
        }).join();
    }
}

// Counts what became of each start.
TEST_F(Service, EachStartIsCalledOrCancelled)
{
    create();
    constexpr unsigned thread_count = 3;
    static std::atomic<uint64_t> called;
    called = 0;
    std::atomic<uint64_t> started{0};
    std::atomic<uint64_t> cancelled{0};
    std::vector<Thread> threads;
    for (unsigned seed = 0; seed < thread_count; ++seed) {
        threads.emplace_back("a starter", [&, seed] {
            std::mt19937 random(seed);
            std::vector<lawn_service_timer_t> handles;
            for (uint64_t i = 0; i < scaled(100'000); ++i) {
                const lawn_time_t ttl = lawn_time_from_nsec(random() % 50'000);
                handles.push_back(start(
                    ttl, [](void *) { ++called; }, nullptr));
                ++started;
                got_on();
                if (random() % 2 == 0) {
                    cancelled +=
                        cancel(handles[random() % handles.size()]) == LAWN_OK;
                }
            }
            // Surely one that is not due.
            handles.push_back(start(
                lawn_time_from_sec(3600), [](void *) { ++called; }, nullptr));
            ++started;
            for (const lawn_service_timer_t handle : handles) {
                cancelled += cancel(handle) == LAWN_OK;
            }
        });
    }
    for (Thread &i : threads) {
        i.join();
    }
    EXPECT_EQ(lawn_service_stop(service_, nullptr, nullptr), 0U);
    EXPECT_EQ(called + cancelled, started);
    EXPECT_GE(cancelled, thread_count);
}

using ServiceDeathTest = ServiceTest;

// The child that dies has no thread of its own, so the service is made there.
TEST_F(ServiceDeathTest, WhatIsPendingIsStoppedBeforeDestroy)
{
    EXPECT_MISUSE(
        {
            create();
            start(hour);
            start(hour);
            lawn_service_destroy(service_);
            service_ = nullptr;
        },
        "2 timers are pending; the first was started at 0x");
}

TEST_F(ServiceDeathTest, ACallbackDoesNotStopItsService)
{
    const auto stop = [this] {
        create();
        Chain chain = {service_, {}, {}, 0};
        start(
            0,
            [](void *arg) {
                Chain *const self = static_cast<Chain *>(arg);
                EXPECT_EQ(lawn_service_stop(self->service, nullptr, nullptr),
                          0U);
                lawn_service_destroy(self->service);
                Calls::note(&self->calls);
            },
            &chain);
        chain.calls.wait_for(1);
    };
    EXPECT_MISUSE(stop(), "is_own");
}

// A difference taken the wrong way round; in release builds it never comes.
TEST_F(ServiceDeathTest, ANegativeTtlIsNone)
{
    for (const lawn_time_t less : {lawn_time_t{5}, lawn_time_t{1} << 32}) {
        EXPECT_MISUSE(
            {
                create();
                start(lawn_time_t{0} - less);
                EXPECT_EQ(lawn_service_stop(service_, nullptr, nullptr), 1U);
                lawn_service_destroy(service_);
                service_ = nullptr;
            },
            "the TTL is no negative difference");
    }
}

} // namespace
