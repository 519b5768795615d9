// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared timers in several threads, on a real clock: what lawn/shared.h
// promises to a thread while others use the same timers, and that an engine
// that sleeps is woken. Each start has a number, and what became of it is
// counted, so that none can be lost, doubled or lied about. None of it depends
// on how fast anything is.

#include <lawn/engine.h>

#include "../../environment.h"
#include "../../hang.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using lawn_test::got_on;
using lawn_test::scaled;
using lawn_test::Thread;
using lawn_test::wait_for;
using lawn_test::Waiting;

struct EngineDeleter {
    void operator()(lawn_engine_t *engine) const
    {
        lawn_engine_destroy(engine);
    }
};

using EnginePtr = std::unique_ptr<lawn_engine_t, EngineDeleter>;

EnginePtr make_engine(unsigned budget = 0)
{
    lawn_engine_params_t params = {};
    params.budget = budget;
    lawn_engine_t *engine = nullptr;
    EXPECT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    return EnginePtr(engine);
}

// A timer with a number for each start. Starters take turns by a lock, of which
// the owner knows nothing; a start that the next one finds running is
// superseded.
struct Counted {
    lawn_shared_t timer; // first
    lawn_engine_t *engine;
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    std::atomic<uint64_t> started{0};  // plain increments by the lock's holder
    std::atomic<uint64_t> stopped{0};  // or superseded: told by a stop
    std::atomic<uint64_t> fired{0};    // by the owner
    std::atomic<uint64_t> released{0}; // likewise
    std::atomic<uint64_t> early{0};
    std::atomic<lawn_time_t> deadline{0}; // the earliest that may fire
};

void count_expired(lawn_shared_t *timer, lawn_time_t now)
{
    Counted *const self = reinterpret_cast<Counted *>(timer);
    self->early += now < self->deadline.load();
    self->fired.fetch_add(1);
}

void count_released(lawn_shared_t *timer, lawn_time_t)
{
    reinterpret_cast<Counted *>(timer)->released.fetch_add(1);
}

// Starts and stops `self` a little, alone but for the owner.
void use(Counted *self, std::mt19937 *random)
{
    if (self->lock.test_and_set(std::memory_order_acquire)) {
        return;
    }
    // So that each start ends in one way that is told: a stop, or a callback.
    self->stopped += lawn_shared_stop(&self->timer);
    lawn_shared_sync(&self->timer);
    EXPECT_EQ(self->stopped + self->fired, self->started);
    const lawn_time_t ttl = lawn_time_from_usec((*random)() % 100);
    const lawn_time_t deadline = lawn_engine_time(self->engine) + ttl;
    self->deadline = deadline;
    ++self->started;
    EXPECT_TRUE(lawn_shared_start(&self->timer, deadline));
    for (unsigned extensions = (*random)() % 3; extensions > 0; --extensions) {
        // Later: it may fire by the deadline before, or by this one.
        if (lawn_shared_stop(&self->timer)) {
            const lawn_time_t later = self->deadline + ttl;
            self->deadline = later;
            EXPECT_TRUE(lawn_shared_start(&self->timer, later));
        }
    }
    self->lock.clear(std::memory_order_release);
}

// Passes while there is something to do, and sleeps else.
template <class IsSo>
void pass_until(lawn_engine_t *engine, const char *whom, const char *what,
                IsSo is_so)
{
    const Waiting waiting(whom, what);
    while (!is_so()) {
        if (lawn_engine_progress(engine) == 0) {
            ASSERT_EQ(lawn_engine_wait(engine, LAWN_TIME_INFINITY), LAWN_OK);
        }
    }
}

// A fast starter may be done before the owner first gets a processor.
void use_until_fired(Counted *self)
{
    self->stopped += lawn_shared_stop(&self->timer);
    lawn_shared_sync(&self->timer);
    const uint64_t before = self->fired;
    self->deadline = lawn_engine_time(self->engine);
    ++self->started;
    EXPECT_TRUE(lawn_shared_start(&self->timer, self->deadline));
    wait_for("the owner", "to fire", [&] { return self->fired != before; });
}

TEST(SharedThreads, EachStartEndsInOneWay)
{
    constexpr unsigned threads = 3;
    constexpr unsigned timers = 20;
    const EnginePtr engine = make_engine(8);
    lawn_box_t *const box = lawn_engine_box(engine.get());
    ASSERT_NE(box, nullptr);
    EXPECT_EQ(lawn_engine_box(engine.get()), box);
    std::vector<Counted> all(timers);
    for (Counted &i : all) {
        i.engine = engine.get();
        lawn_shared_init(&i.timer, box, count_expired);
    }
    std::atomic<unsigned> running{threads};
    std::vector<Thread> others;
    for (unsigned seed = 0; seed < threads; ++seed) {
        others.emplace_back("a starter", [&, seed] {
            std::mt19937 random(seed);
            for (uint64_t i = 0; i < scaled(200'000); ++i) {
                use(&all[random() % timers], &random);
                got_on();
            }
            if (--running == 0) {
                use_until_fired(&all[0]);
                for (Counted &i : all) {
                    lawn_shared_retire(&i.timer, count_released);
                }
            }
        });
    }
    const auto is_done = [&all] {
        for (const Counted &i : all) {
            if (i.released == 0) {
                return false;
            }
        }
        return true;
    };
    pass_until(engine.get(), "a starter", "to retire all timers", is_done);
    for (Thread &i : others) {
        i.join();
    }
    uint64_t fired = 0;
    for (const Counted &i : all) {
        EXPECT_LE(i.stopped + i.fired, i.started);
        EXPECT_GE(i.stopped + i.fired + 1, i.started); // the last was retired
        EXPECT_EQ(i.early, 0U);
        EXPECT_EQ(i.released, 1U);
        fired += i.fired;
    }
    EXPECT_GT(fired, 0U);
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine.get())), LAWN_OK);
}

// Many starters of one timer, and no order among them: what fires is no more
// than what was started, and after the last stop nothing does.
TEST(SharedThreads, StartersOfOneTimerNeedNoLock)
{
    const EnginePtr engine = make_engine();
    Counted one;
    one.engine = engine.get();
    lawn_shared_init(&one.timer, lawn_engine_box(engine.get()), count_expired);
    std::atomic<unsigned> running{3};
    std::vector<Thread> others;
    for (unsigned seed = 0; seed < 3; ++seed) {
        others.emplace_back("a starter", [&, seed] {
            std::mt19937 random(seed);
            for (uint64_t i = 0; i < scaled(100'000); ++i) {
                const lawn_time_t ttl = random() % 10'000;
                if (random() % 3 == 0) {
                    one.stopped += lawn_shared_stop(&one.timer);
                } else {
                    ++one.started;
                    lawn_shared_start(&one.timer,
                                      lawn_engine_time(one.engine) + ttl);
                }
                got_on();
            }
            --running;
        });
    }
    while (running > 0) {
        lawn_engine_progress(engine.get());
        lawn_shared_start_local(&one.timer, lawn_engine_now(engine.get()) + 10);
        ++one.started;
    }
    for (Thread &i : others) {
        i.join();
    }
    one.stopped += lawn_shared_stop(&one.timer);
    const uint64_t fired = one.fired;
    lawn_engine_progress(engine.get());
    EXPECT_EQ(one.fired, fired);
    EXPECT_LE(one.fired + one.stopped, one.started);
    lawn_shared_retire(&one.timer, count_released);
    lawn_engine_progress(engine.get());
    EXPECT_EQ(one.released, 1U);
}

// A sleeper without a deadline wakes for the start of another thread, and for
// a deadline before the one that it sleeps until.
TEST(SharedThreads, ASleeperIsWokenForAnEarlierDeadline)
{
    const EnginePtr engine = make_engine();
    Counted timer;
    timer.engine = engine.get();
    lawn_shared_init(&timer.timer, lawn_engine_box(engine.get()),
                     count_expired);
    lawn_timer_t late;
    lawn_timer_init(&late, nullptr);
    for (unsigned round = 0; round < 20; ++round) {
        if (round % 2 == 1) {
            lawn_engine_start(engine.get(), &late, lawn_time_from_sec(3600));
        }
        Thread starter("the starter", [&] {
            lawn_shared_start(&timer.timer, lawn_engine_time(engine.get()) +
                                                lawn_time_from_usec(200));
        });
        pass_until(engine.get(), "the starter", "to have its timer fire",
                   [&] { return timer.fired != round; });
        starter.join();
        lawn_engine_stop(engine.get(), &late);
    }
    EXPECT_EQ(timer.early, 0U);
    lawn_shared_retire(&timer.timer, nullptr);
}

// Likewise where the program has armed, and sleeps in a poll() of its own.
TEST(SharedThreads, APollOfTheProgramsIsWoken)
{
    const EnginePtr engine = make_engine();
    Counted timer;
    timer.engine = engine.get();
    lawn_shared_init(&timer.timer, lawn_engine_box(engine.get()),
                     count_expired);
    for (unsigned round = 0; round < 20; ++round) {
        Thread starter("the starter", [&] {
            lawn_shared_start(&timer.timer, lawn_engine_time(engine.get()));
        });
        const Waiting waiting("the starter", "to have its timer fire");
        while (timer.fired == round) {
            if (lawn_engine_progress(engine.get()) == 0 &&
                lawn_engine_arm(engine.get()) == LAWN_OK) {
                pollfd fd = {lawn_engine_fd(engine.get()), POLLIN, 0};
                ASSERT_EQ(poll(&fd, 1, 60'000), 1);
            }
        }
        starter.join();
    }
    lawn_shared_retire(&timer.timer, nullptr);
}

TEST(SharedThreads, ASleeperIsWokenForARetiredTimer)
{
    const EnginePtr engine = make_engine();
    Counted timer;
    lawn_shared_init(&timer.timer, lawn_engine_box(engine.get()), nullptr);
    Thread retirer("the retirer",
                   [&] { lawn_shared_retire(&timer.timer, count_released); });
    pass_until(engine.get(), "the retirer", "to have the timer released",
               [&] { return timer.released != 0; });
    retirer.join();
}

// The callback holds on until the other thread waits for it, or nearly so.
TEST(SharedThreads, SyncWaitsForTheCallback)
{
    struct Slow {
        lawn_shared_t timer; // first
        std::atomic<bool> is_running{false};
        std::atomic<bool> is_waited_for{false};
        std::atomic<bool> is_over{false};
    };
    const EnginePtr engine = make_engine();
    Slow slow;
    lawn_shared_init(&slow.timer, lawn_engine_box(engine.get()),
                     [](lawn_shared_t *timer, lawn_time_t) {
                         Slow *const self = reinterpret_cast<Slow *>(timer);
                         self->is_running = true;
                         wait_for("the waiter", "to be about to wait",
                                  [self] { return +self->is_waited_for; });
                         for (int i = 0; i < 100; ++i) {
                             std::this_thread::yield();
                         }
                         self->is_over = true;
                     });
    lawn_shared_start(&slow.timer, 0);
    Thread waiter("the waiter", [&slow] {
        wait_for("the callback", "to run", [&] { return +slow.is_running; });
        EXPECT_FALSE(lawn_shared_stop(&slow.timer));
        slow.is_waited_for = true;
        lawn_shared_sync(&slow.timer);
        EXPECT_TRUE(slow.is_over);
    });
    wait_for("the callback", "to be over", [&] {
        lawn_engine_progress(engine.get());
        return +slow.is_over;
    });
    waiter.join();
    lawn_shared_retire(&slow.timer, nullptr);
}

// While others start and retire: none is lost on the way to a box that closes.
TEST(SharedThreads, ABoxIsDestroyedUnderItsUsers)
{
    for (unsigned round = 0; round < scaled(2000) + 1; ++round) {
        EnginePtr engine = make_engine();
        lawn_box_t *const box = lawn_engine_box(engine.get());
        std::array<Counted, 4> all;
        for (Counted &i : all) {
            lawn_shared_init(&i.timer, box, nullptr);
        }
        std::vector<Thread> others;
        for (unsigned t = 0; t < 2; ++t) {
            others.emplace_back("a user", [&all, t] {
                lawn_shared_start(&all[t].timer, 1);
                lawn_shared_retire(&all[t].timer, count_released);
                for (lawn_time_t i = 0; i < 10; ++i) {
                    lawn_shared_start(&all[2 + t].timer, 100 - i);
                }
            });
        }
        lawn_engine_progress(engine.get());
        engine.reset();
        for (Thread &i : others) {
            i.join();
        }
        for (unsigned t = 0; t < 2; ++t) {
            EXPECT_EQ(all[t].released, 1U);
            EXPECT_FALSE(lawn_shared_start(&all[2 + t].timer, 1));
            lawn_shared_retire(&all[2 + t].timer, count_released);
            EXPECT_EQ(all[2 + t].released, 1U);
        }
    }
}

// A child has the box for itself, and does not wake its parent.
TEST(SharedThreads, TheChildOfAForkHasABoxOfItsOwn)
{
    const EnginePtr engine = make_engine();
    Counted timer;
    timer.engine = engine.get();
    lawn_shared_init(&timer.timer, lawn_engine_box(engine.get()),
                     count_expired);
    ASSERT_EQ(lawn_engine_arm(engine.get()), LAWN_OK); // asleep
    const pid_t child = fork();
    if (child == 0) {
        lawn_shared_start(&timer.timer, 0);
        lawn_engine_progress(engine.get());
        const bool has_fired = timer.fired == 1;
        lawn_shared_retire(&timer.timer, nullptr);
        lawn_engine_destroy(engine.get());
        exit(has_fired ? 0 : 1); // not _exit(): instruments have their say
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    pollfd fd = {lawn_engine_fd(engine.get()), POLLIN, 0};
    EXPECT_EQ(poll(&fd, 1, 0), 0);
    EXPECT_EQ(timer.fired, 0U);
    lawn_shared_retire(&timer.timer, nullptr);
}

} // namespace
