// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A group under stress: threads start and stop timers whose shards move from
// worker to worker, while workers come and go, and a signal stops each thread
// at any instruction, for a while. All that is called and called back is
// recorded, and each timer's history is checked. So no start may be lost,
// doubled or early, and no stop may lie.

#include "linearizability.h"

#include "../environment.h"
#include "../hang.h"

#include <lawn/group.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <random>

#include <pthread.h>

namespace
{

using history::Event;
using history::What;
using lawn_test::environment;
using lawn_test::got_on;
using lawn_test::scaled;
using lawn_test::Thread;
using lawn_test::wait_for;

// ---- The checker itself.

Event start(uint64_t begin, uint64_t end, uint64_t deadline)
{
    return {begin, end, deadline, What::start};
}

Event stop(uint64_t begin, uint64_t end, bool result)
{
    return {begin, end, 0, result ? What::stopped : What::not_stopped};
}

Event fire(uint64_t begin, uint64_t end, uint64_t now)
{
    return {begin, end, now, What::fired};
}

bool is_possible(const history::History &history)
{
    return history::check(history).empty();
}

TEST(History, WhatCanHaveBeen)
{
    EXPECT_TRUE(is_possible({}));
    EXPECT_TRUE(is_possible({{start(1, 2, 10), stop(3, 4, true)}, {}}));
    EXPECT_TRUE(is_possible({{start(1, 2, 10)}, {fire(0, 20, 10)}}));
    EXPECT_TRUE(is_possible(
        {{start(1, 2, 10), start(3, 4, 30)}, {}, {fire(0, 20, 30)}}));
    // The callback was taken before the stop, and is told after it.
    EXPECT_TRUE(
        is_possible({{start(1, 2, 10), stop(5, 6, false)}, {fire(0, 9, 10)}}));
    // Two that overlap: the other start came later.
    EXPECT_TRUE(
        is_possible({{start(1, 9, 90)}, {start(2, 3, 10)}, {fire(0, 99, 95)}}));
    EXPECT_TRUE(is_possible({{start(1, 9, 90)},
                             {start(2, 3, 10), stop(4, 5, true)},
                             {fire(0, 99, 95)}}));
}

TEST(History, WhatCannot)
{
    // Lost: it runs for ever, or a stop finds nothing.
    EXPECT_FALSE(is_possible({{start(1, 2, 10)}, {}}));
    EXPECT_FALSE(is_possible({{start(1, 2, 10), stop(3, 4, false)}, {}}));
    // Early.
    EXPECT_FALSE(is_possible({{start(1, 2, 10)}, {fire(0, 20, 9)}}));
    EXPECT_FALSE(
        is_possible({{start(1, 2, 10), start(3, 4, 30)}, {fire(5, 20, 20)}}));
    // Doubled.
    EXPECT_FALSE(
        is_possible({{start(1, 2, 10)}, {fire(0, 5, 10), fire(5, 9, 11)}}));
    // Before anybody started it.
    EXPECT_FALSE(is_possible({{start(5, 6, 10)}, {fire(0, 4, 10)}}));
    // A stop that lied.
    EXPECT_FALSE(
        is_possible({{start(1, 2, 10), stop(3, 4, true)}, {fire(5, 9, 10)}}));
    EXPECT_FALSE(is_possible(
        {{start(1, 2, 10)}, {stop(3, 4, true)}, {stop(3, 4, true)}, {}}));
    EXPECT_FALSE(is_possible({{stop(1, 2, true)}, {start(3, 4, 9)}, {}}));
}

// ---- The stress.

constexpr unsigned clients = 3;
constexpr unsigned timers = 60;
constexpr unsigned shards = 12;
constexpr unsigned own_workers = 2; // and threads of the library's
constexpr unsigned ops_per_round = 20000;

std::atomic<uint64_t> ticket; // the time of all events

struct Timer {
    lawn_shared_t shared; // first
    std::vector<Event> fires;
    uint64_t last = 0;
    history::History calls{clients};

    static void on_expired(lawn_shared_t *shared, lawn_time_t now)
    {
        Timer *const self = reinterpret_cast<Timer *>(shared);
        // It was taken somewhen since the callback before.
        const uint64_t end = ticket.fetch_add(1);
        self->fires.push_back({self->last, end, now, What::fired});
        self->last = end;
    }
};

// Keeps a thread where it is for a moment: a preemption, between any two
// instructions.
void on_signal(int)
{
    const int error = errno;
    const timespec moment = {0, 20000};
    nanosleep(&moment, nullptr);
    errno = error;
}

class Stress
{
public:
    Stress()
    {
        lawn_group_params_t params = {};
        params.shards = shards;
        EXPECT_EQ(lawn_group_create(&params, &group_), LAWN_OK);
        for (unsigned i = 0; i < timers; ++i) {
            lawn_shared_init(
                &timers_[i].shared,
                lawn_shard_box(lawn_group_shard(group_, i % shards)),
                Timer::on_expired);
        }
        signal(SIGUSR1, on_signal);
    }

    ~Stress()
    {
        signal(SIGUSR1, SIG_DFL);
        for (Timer &timer : timers_) {
            lawn_shared_retire(&timer.shared, nullptr);
        }
        lawn_group_destroy(group_);
    }

    void run(uint64_t ops)
    {
        std::vector<Thread> workers;
        for (unsigned i = 0; i < own_workers; ++i) {
            workers.emplace_back("a worker", [this, i] { work(i); });
        }
        Thread mover("the mover", [this] { move(); });
        Thread preempter("the preempter", [this] { preempt(); });
        // No thread is sure of a processor before the others are done.
        while ((ops_ < ops || moves_ == 0 || preemptions_ == 0) &&
               !testing::Test::HasFailure()) {
            round();
        }
        is_over_ = true;
        preempter.join();
        mover.join();
        for (Thread &worker : workers) {
            worker.join();
        }
    }

    void report() const
    {
        printf("%llu operations, %llu callbacks, %llu shards moved, %llu "
               "workers removed, %llu preemptions\n",
               static_cast<unsigned long long>(ops_),
               static_cast<unsigned long long>(fires_),
               static_cast<unsigned long long>(moves_.load()),
               static_cast<unsigned long long>(removals_.load()),
               static_cast<unsigned long long>(preemptions_.load()));
        EXPECT_GT(fires_, 0U);
        EXPECT_GT(moves_, 0U);
        EXPECT_GT(removals_, 0U);
        EXPECT_GT(preemptions_, 0U);
    }

private:
    // The calling thread may be stopped by signals while it lives.
    class Target
    {
    public:
        Target(Stress *stress) : stress_(stress)
        {
            const std::lock_guard<std::mutex> lock(stress_->targets_lock_);
            stress_->targets_.push_back(pthread_self());
        }

        ~Target()
        {
            const std::lock_guard<std::mutex> lock(stress_->targets_lock_);
            auto &all = stress_->targets_;
            all.erase(std::find_if(all.begin(), all.end(), [](pthread_t i) {
                return pthread_equal(i, pthread_self()) != 0;
            }));
        }

    private:
        Stress *stress_;
    };

    // Starts and stops timers, and records each call.
    void use(unsigned client, uint64_t seed)
    {
        const Target target(this);
        std::mt19937_64 random(seed);
        for (unsigned i = 0; i < ops_per_round; ++i) {
            Timer *const timer = &timers_[random() % timers];
            // Due soon, at once, or so late that it is mostly overtaken.
            const uint64_t kind = random() % 16;
            const double usec = kind == 0  ? 3000
                                : kind < 6 ? 0
                                           : double(random() % 40);
            const bool is_start = random() % 3 != 0;
            Event event = {};
            event.begin = ticket.fetch_add(1);
            if (is_start) {
                event.what = What::start;
                event.time =
                    lawn_group_time(group_) + lawn_time_from_usec(usec);
                EXPECT_TRUE(lawn_shared_start(&timer->shared, event.time));
            } else {
                event.what = lawn_shared_stop(&timer->shared)
                                 ? What::stopped
                                 : What::not_stopped;
            }
            event.end = ticket.fetch_add(1);
            got_on();
            timer->calls[client].push_back(event);
        }
    }

    // One burst of calls; when all is quiet, what was recorded is checked.
    void round()
    {
        std::vector<Thread> threads;
        for (unsigned i = 0; i < clients; ++i) {
            threads.emplace_back("a client",
                                 [this, i, seed = seed_ + i] { use(i, seed); });
        }
        seed_ += clients;
        for (Thread &thread : threads) {
            thread.join();
        }
        for (Timer &timer : timers_) {
            wait_for("a worker", "to fire the timer",
                     [&] { return !lawn_shared_is_active(&timer.shared); });
            lawn_shared_sync(&timer.shared);
            fires_ += timer.fires.size();
            for (const std::vector<Event> &calls : timer.calls) {
                ops_ += calls.size();
            }
            history::History all = timer.calls;
            all.push_back(timer.fires);
            EXPECT_EQ(history::check(all), "")
                << "timer " << &timer - timers_.data();
            timer.calls.assign(clients, {});
            timer.fires.clear();
        }
    }

    // A worker of the test's own, which leaves now and then and comes back.
    void work(unsigned number)
    {
        const Target target(this);
        std::mt19937 random(number);
        lawn_engine_params_t params = {};
        params.clock = lawn_group_time;
        params.clock_arg = group_;
        params.budget = 8;
        lawn_engine_t *engine = nullptr;
        ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
        while (!is_over_) {
            lawn_worker_t *const worker = enter(engine);
            for (unsigned left = 20000 + random() % 20000;
                 left > 0 && !is_over_; --left) {
                if (lawn_engine_progress(engine) == 0) {
                    lawn_engine_wait(engine, lawn_time_from_msec(1));
                }
            }
            leave(worker, random());
        }
        lawn_engine_destroy(engine);
    }

    // `engine` NULL: a thread of the library's.
    lawn_worker_t *enter(lawn_engine_t *engine)
    {
        const std::lock_guard<std::mutex> lock(workers_lock_);
        lawn_worker_t *worker = nullptr;
        EXPECT_EQ(engine ? lawn_group_add_engine(group_, engine, &worker)
                         : lawn_group_add_thread(group_, &worker),
                  LAWN_OK);
        workers_.push_back(worker);
        return worker;
    }

    void leave(lawn_worker_t *worker, unsigned random)
    {
        const std::lock_guard<std::mutex> lock(workers_lock_);
        workers_.erase(std::find(workers_.begin(), workers_.end(), worker));
        lawn_worker_t *const heir =
            workers_.empty() ? nullptr : workers_[random % workers_.size()];
        EXPECT_EQ(lawn_group_remove_worker(worker, heir), LAWN_OK);
        ++removals_;
    }

    // Moves shards, balances, and has a thread of the library's come and go.
    void move()
    {
        const Target target(this);
        std::mt19937 random(99);
        lawn_worker_t *own = enter(nullptr);
        for (unsigned i = 0; !is_over_; ++i) {
            {
                const std::lock_guard<std::mutex> lock(workers_lock_);
                lawn_worker_t *const to = workers_[random() % workers_.size()];
                lawn_shard_t *const shard =
                    lawn_group_shard(group_, random() % shards);
                EXPECT_EQ(lawn_group_move_shard(shard, to), LAWN_OK);
                ++moves_;
                if (i % 64 == 0) {
                    moves_ += lawn_group_balance(group_);
                }
            }
            const timespec moment = {0, 10000};
            nanosleep(&moment, nullptr);
            if (i % 500 == 499) {
                leave(own, random());
                own = enter(nullptr);
            }
        }
        leave(own, random());
    }

    void preempt()
    {
        std::mt19937 random(5);
        while (!is_over_) {
            {
                const std::lock_guard<std::mutex> lock(targets_lock_);
                if (!targets_.empty()) {
                    pthread_kill(targets_[random() % targets_.size()], SIGUSR1);
                    ++preemptions_;
                }
            }
            const timespec moment = {0, 1000 * long(random() % 2000)};
            nanosleep(&moment, nullptr);
        }
    }

    lawn_group_t *group_ = nullptr;
    std::array<Timer, timers> timers_;
    std::mutex workers_lock_;
    std::vector<lawn_worker_t *> workers_;
    std::mutex targets_lock_;
    std::vector<pthread_t> targets_;
    std::atomic<bool> is_over_{false};
    std::atomic<uint64_t> moves_{0};
    std::atomic<uint64_t> removals_{0};
    std::atomic<uint64_t> preemptions_{0};
    uint64_t ops_ = 0;
    uint64_t fires_ = 0;
    uint64_t seed_ = 1;
};

TEST(GroupHistory, CanHaveBeen)
{
    const uint64_t ops =
        environment("LAWN_TEST_FULL", 0) != 0 ? 100'000'000 : 3'000'000;
    Stress stress;
    stress.run(environment("LAWN_HISTORY_OPS", scaled(ops)));
    stress.report();
}

} // namespace
