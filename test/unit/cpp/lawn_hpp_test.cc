// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp: timers with a callable, on virtual time. What is
// freed under a timer is for the sanitizers to see. Allocations are counted,
// those of the library and those compiled here from the header: the program is
// linked with --wrap, since a replaced operator new would be valgrind's.

#include <lawn/lawn.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace
{

unsigned allocations;

} // namespace

extern "C" {

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real__Znwm(size_t size); // operator new

void *__wrap_malloc(size_t size)
{
    ++allocations;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    ++allocations;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    ++allocations;
    return __real_realloc(memory, size);
}

void *__wrap__Znwm(size_t size)
{
    ++allocations;
    return __real__Znwm(size);
}
}

namespace
{

using namespace std::chrono_literals;
using lawn::tsc_clock;
using std::chrono::duration;

// An engine of its own clock, a thousand ticks per second.
class Hpp : public testing::Test
{
protected:
    Hpp()
    {
        params_.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params_.clock_arg = &now_;
        params_.ticks_per_sec = 1000;
        engine_ = lawn::make_engine(&params_);
    }

    void SetUp() override
    {
        ASSERT_TRUE(engine_);
    }

    lawn_t *engine_lawn() const
    {
        return lawn_engine_lawn(engine_.get());
    }

    unsigned pass_at(lawn_time_t now)
    {
        now_ = now;
        return lawn_engine_progress(engine_.get());
    }

    void expect_nothing_held() const
    {
        EXPECT_EQ(lawn_count(engine_lawn()), 0U);
        EXPECT_EQ(lawn_check(engine_lawn()), LAWN_OK);
    }

    lawn_time_t now_ = 1000;
    lawn_engine_params_t params_ = {};
    lawn::engine engine_;
};

TEST_F(Hpp, FiresAtTheDeadlineAndNotBefore)
{
    lawn_time_t fired = 0;
    lawn::timer timer([&](lawn_time_t now) { fired = now; });
    EXPECT_FALSE(timer.is_active());
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
    timer.start(engine_, 1999us); // 1.999 ticks
    EXPECT_TRUE(timer.is_active());
    EXPECT_EQ(timer.deadline(), 1002U);
    EXPECT_EQ(pass_at(1001), 0U);
    EXPECT_EQ(pass_at(1003), 1U);
    EXPECT_EQ(fired, 1003U);
    EXPECT_FALSE(timer.is_active());
    EXPECT_EQ(timer.deadline(), 1002U);
    EXPECT_FALSE(timer.stop()); // forgets it, as lawn_timer_stop() does
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
}

TEST_F(Hpp, EveryWayToStart)
{
    unsigned fired = 0;
    lawn::timer timer([&](lawn_time_t) { ++fired; });
    now_ = 1500;
    timer.start(engine_, 7U);
    EXPECT_EQ(timer.deadline(), 1507U); // the clock was read
    timer.start(engine_.get(), 8);
    EXPECT_EQ(timer.deadline(), 1508U);
    timer.start(engine_lawn(), 1600, 9);
    EXPECT_EQ(timer.deadline(), 1609U);
    timer.start(engine_, duration<double>(0.25));
    EXPECT_EQ(timer.deadline(), 1850U); // the lawn has seen 1600
    EXPECT_EQ(lawn_count(engine_lawn()), 1U);
    timer.start(engine_, std::chrono::hours::max());
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
    pass_at(LAWN_TIME_INFINITY - 1);
    EXPECT_EQ(fired, 0U);
}

TEST_F(Hpp, StartAtADeadline)
{
    lawn_time_t fired = 0;
    lawn::timer timer([&](lawn_time_t now) { fired = now; });
    timer.start_at(engine_lawn(), 1500, 1700);
    EXPECT_EQ(timer.deadline(), 1700U);
    pass_at(1699);
    EXPECT_EQ(fired, 0U);
    pass_at(1701);
    EXPECT_EQ(fired, 1701U);
    timer.start_at(engine_lawn(), 1701, 3); // past: at once
    pass_at(1702);
    EXPECT_EQ(fired, 1702U);
    const lawn::lawn_ptr other = lawn::make_lawn();
    timer.start(engine_, 50ms);
    timer.start_at(other.get(), 10, 20);
    expect_nothing_held();
    EXPECT_EQ(lawn_advance(other.get(), 20, 0), 1U);
    EXPECT_EQ(fired, 20U);
}

TEST_F(Hpp, AQueueExpiresInTheOrderOfTheStarts)
{
    std::string log;
    lawn::timer a([&](lawn_time_t) { log += 'a'; });
    lawn::timer b([&](lawn_time_t) { log += 'b'; });
    lawn::timer c([&](lawn_time_t) { log += 'c'; });
    lawn::queue_ptr queue = lawn::make_queue(engine_lawn(), 20);
    ASSERT_TRUE(queue);
    EXPECT_EQ(lawn_queue_ttl(queue.get()), 20U);
    a.start(queue.get(), 1000);
    b.start(queue.get(), 1001);
    c.start(queue.get(), 1002);
    a.start(queue.get(), 1003); // to the tail
    EXPECT_EQ(a.deadline(), 1023U);
    EXPECT_EQ(lawn_queue_count(queue.get()), 3U);
    pass_at(1020);
    EXPECT_EQ(log, "");
    pass_at(1100);
    EXPECT_EQ(log, "bca");

    b.start(queue.get(), 1100);
    b.start(engine_, 5ms); // out of it
    EXPECT_EQ(lawn_queue_count(queue.get()), 0U);
    pass_at(1105);
    EXPECT_EQ(log, "bcab");
    // From another lawn to a queue of this one; the queue goes first.
    const lawn::lawn_ptr other = lawn::make_lawn();
    c.start(other.get(), 0, 5);
    c.start(queue.get(), 1105);
    EXPECT_EQ(lawn_count(other.get()), 0U);
    a.start(queue.get(), 1105);
    EXPECT_TRUE(a.stop());
    queue.reset();
    EXPECT_FALSE(c.is_active());
    EXPECT_FALSE(c.stop());
    pass_at(2000);
    EXPECT_EQ(log, "bcab");
    expect_nothing_held();
}

TEST_F(Hpp, StopAndPause)
{
    unsigned fired = 0;
    lawn::timer timer([&](lawn_time_t) { ++fired; });
    EXPECT_FALSE(timer.stop()); // before it knows any lawn
    EXPECT_FALSE(timer.pause());
    timer.start(engine_, 5ms);
    EXPECT_TRUE(timer.pause());
    EXPECT_FALSE(timer.pause());
    EXPECT_FALSE(timer.is_active());
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
    pass_at(1010); // lets go of it
    EXPECT_EQ(fired, 0U);
    timer.start(engine_, 5ms);
    EXPECT_TRUE(timer.stop());
    EXPECT_FALSE(timer.stop());
    EXPECT_EQ(pass_at(1020), 0U);
    EXPECT_EQ(fired, 0U);
    expect_nothing_held();
}

TEST_F(Hpp, TheCallableMayTakeTheTimer)
{
    std::string log;
    lawn::timer by_base([&](lawn::timer_base &self, lawn_time_t now) {
        EXPECT_FALSE(self.is_active());
        log += 'b';
        if (now < 1030) {
            self.start(engine_, 10ms);
        }
    });
    const lawn::timer_base *told = nullptr;
    lawn::timer by_type([&](auto &self, lawn_time_t) {
        static_assert(
            !std::is_same_v<std::decay_t<decltype(self)>, lawn::timer_base>);
        log += 't';
        told = &self;
    });
    lawn::timer either([&](auto &&...arguments) {
        log += static_cast<char>('0' + sizeof...(arguments));
    });
    by_base.start(engine_, 10ms);
    by_type.start(engine_, 15ms);
    either.start(engine_, 25ms);
    for (lawn_time_t now = 1000; now < 1100; ++now) {
        pass_at(now);
    }
    EXPECT_EQ(log, "btb2b");
    EXPECT_EQ(told, &by_type);
    expect_nothing_held();
}

lawn_time_t seen_by_function;

void see(lawn_time_t now)
{
    seen_by_function = now;
}

TEST_F(Hpp, AnyCallable)
{
    struct Owning {
        std::unique_ptr<int> value; // moves, does not copy
        int *seen;
        void operator()(lawn_time_t)
        {
            *seen = (*value)++;
        }
    };
    int seen = 0;
    lawn::timer<Owning> owning(Owning{std::make_unique<int>(41), &seen});
    lawn::timer function(&see);
    for (lawn_time_t now = 1001; now <= 1002; ++now) {
        owning.start(engine_, 1ms);
        function.start(engine_, 1ms);
        EXPECT_EQ(pass_at(now), 2U);
        EXPECT_EQ(seen_by_function, now);
    }
    EXPECT_EQ(seen, 42);
    static_assert(!std::is_copy_constructible_v<lawn::timer<Owning>>);
    static_assert(!std::is_move_constructible_v<lawn::timer<Owning>>);
    static_assert(!std::is_copy_assignable_v<lawn::timer<Owning>>);
    static_assert(!std::is_move_assignable_v<lawn::timer<Owning>>);
    static_assert(!std::is_destructible_v<lawn::timer_base>);
}

TEST_F(Hpp, TheDestructorStops)
{
    unsigned fired = 0;
    const auto count = [&](lawn_time_t) { ++fired; };
    {
        lawn::timer never_started(count);
        auto running = std::make_unique<lawn::timer<decltype(count)>>(count);
        auto re_armed = std::make_unique<lawn::timer<decltype(count)>>(count);
        auto paused = std::make_unique<lawn::timer<decltype(count)>>(count);
        running->start(engine_, 5ms);
        re_armed->start(engine_, 5ms);
        re_armed->start(engine_, 9ms);
        paused->start(engine_, 6ms);
        paused->pause();
    }
    expect_nothing_held();
    EXPECT_EQ(pass_at(2000), 0U);
    EXPECT_EQ(fired, 0U);
}

TEST_F(Hpp, TheLawnMayGoFirst)
{
    unsigned fired = 0;
    lawn::timer running([&](lawn_time_t) { ++fired; });
    lawn::timer paused([&](lawn_time_t) { ++fired; });
    lawn::timer expired([&](lawn_time_t) { ++fired; });
    lawn::timer dropped([&](lawn_time_t) { ++fired; });
    running.start(engine_, 50ms);
    paused.start(engine_, 50ms);
    paused.pause();
    expired.start(engine_, 1ms);
    dropped.start(engine_, 50ms);
    pass_at(1001);
    engine_ = lawn::engine();
    EXPECT_FALSE(running.is_active());
    EXPECT_FALSE(running.stop());
    EXPECT_EQ(running.deadline(), LAWN_TIME_INFINITY);
    EXPECT_FALSE(paused.pause());
    EXPECT_FALSE(expired.stop());

    const lawn::lawn_ptr next = lawn::make_lawn();
    running.start(next.get(), 10, 5);
    paused.start(next.get(), 10, 6);
    EXPECT_EQ(lawn_advance(next.get(), 15, 0), 1U);
    EXPECT_EQ(fired, 2U);
}

TEST_F(Hpp, StartedOnAnotherLawnItLeavesTheFirst)
{
    const lawn::lawn_ptr other = lawn::make_lawn();
    lawn_time_t fired = 0;
    lawn::timer timer([&](lawn_time_t now) { fired = now; });
    timer.start(engine_, 5ms);
    timer.start(other.get(), 0, 5);
    expect_nothing_held();
    EXPECT_EQ(lawn_count(other.get()), 1U);
    timer.pause();
    timer.start(engine_, 7ms);
    EXPECT_EQ(lawn_check(other.get()), LAWN_OK);
    EXPECT_EQ(lawn_advance(other.get(), 100, 0), 0U);
    EXPECT_EQ(pass_at(1007), 1U);
    EXPECT_EQ(fired, 1007U);
}

struct Peer;

// Closes its peer, which holds the timer that this is in.
struct Close {
    std::list<Peer> *peers;
    Peer *peer;
    unsigned *closed;
    std::unique_ptr<int> owned; // freed with the timer

    void operator()(lawn_time_t now) const;
};

struct Peer {
    Peer(std::list<Peer> *peers, unsigned *closed)
        : timer(Close{peers, this, closed, std::make_unique<int>(1)})
    {
    }

    lawn::timer<Close> timer;
};

void Close::operator()(lawn_time_t) const
{
    unsigned *const counter = closed; // good when this object is not
    peers->remove_if([self = peer](const Peer &each) { return &each == self; });
    ++*counter;
}

TEST_F(Hpp, TheCallableMayDestroyItsTimer)
{
    std::list<Peer> peers;
    unsigned closed = 0;
    for (unsigned i = 0; i < 10; ++i) {
        peers.emplace_back(&peers, &closed);
        peers.back().timer.start(engine_, std::chrono::milliseconds(1 + i / 4));
    }
    EXPECT_EQ(pass_at(1001), 4U);
    EXPECT_EQ(peers.size(), 6U);
    EXPECT_EQ(lawn_check(engine_lawn()), LAWN_OK);
    EXPECT_EQ(pass_at(1003), 6U);
    EXPECT_TRUE(peers.empty());
    EXPECT_EQ(closed, 10U);
    expect_nothing_held();
}

TEST_F(Hpp, TheCallableMayDestroyTimersDueInTheSamePass)
{
    std::list<Peer> peers;
    unsigned closed = 0;
    lawn::timer clear([&](lawn_time_t) { peers.clear(); });
    clear.start(engine_, 1ms);
    for (unsigned i = 0; i < 12; ++i) {
        peers.emplace_back(&peers, &closed);
        lawn::timer_base &timer = peers.back().timer;
        timer.start(engine_, std::chrono::milliseconds(2 + i % 4));
        if (i % 3 == 0) {
            timer.pause();
        }
    }
    EXPECT_EQ(pass_at(1010), 1U);
    EXPECT_EQ(closed, 0U);
    expect_nothing_held();
}

TEST_F(Hpp, TheCallableMayStartItsTimerAnewAndThenDestroyIt)
{
    std::optional<lawn::timer<std::function<void(lawn_time_t)>>> timer;
    timer.emplace([&](lawn_time_t) {
        timer->start(engine_, 1ms);
        timer.reset();
    });
    timer->start(engine_, 1ms);
    EXPECT_EQ(pass_at(1001), 1U);
    EXPECT_FALSE(timer.has_value());
    EXPECT_EQ(pass_at(1010), 0U);
    expect_nothing_held();
}

TEST(HppAllocation, IsCounted)
{
    allocations = 0;
    operator delete(operator new(8));
    EXPECT_EQ(allocations, 1U);
    EXPECT_TRUE(lawn::make_lawn());
    EXPECT_EQ(allocations, 2U);
}

TEST_F(Hpp, NothingIsAllocated)
{
    uint64_t fired = 0;
    std::array<uint64_t, 32> captured = {1};
    (void)tsc_clock::now(); // the clock has been chosen
    allocations = 0;
    for (lawn_time_t i = 0; i < 1000; ++i) {
        lawn::timer timer([&, captured](lawn_time_t) { fired += captured[0]; });
        timer.start(engine_, 5ms);
        timer.start(engine_, tsc_clock::now().time_since_epoch());
        timer.pause();
        timer.start(engine_, 2ms);
        timer.stop();
        timer.start(engine_, 1ms);
        pass_at(now_ + 1);
        timer.start(engine_lawn(), now_, tsc_clock::to_ticks(1h));
        lawn::function_timer any([&](lawn_time_t) { ++fired; });
        any.start(engine_, 1ms);
        pass_at(now_ + 1);
    }
    EXPECT_EQ(allocations, 0U);
    EXPECT_EQ(fired, 2000U);
}

} // namespace
