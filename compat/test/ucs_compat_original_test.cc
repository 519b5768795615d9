// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timers of libucs and those of lawn/ucs_compat.h, side by side in one
// program and on virtual time: that they do the same where the original is
// right, and that it is wrong where the header says so. Where it is, what ours
// must do is tested here too.
//
// LAWN_TEST_SEED replays one seed; LAWN_TEST_SCALE is the share of seeds to
// run in percent (100), for runs under an instrument.

#include "../../test/environment.h"
#include "ucs_compat_original.h"
#include <lawn/ucs_compat.h>

#include "ucs_compat_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace
{

using lawn_test::environment;

constexpr ucs_time_t resolution = 1024;
constexpr ucs_time_t start = 1000000 * resolution;

struct Original {
    using Wheel = ucs_twheel_t;
    using Node = ucs_wtimer_t;
    static constexpr auto init = ucs_twheel_init;
    static constexpr auto cleanup = ucs_twheel_cleanup;
    static constexpr auto sweep = ucs_twheel_sweep;
    static constexpr auto is_empty = ucs_twheel_is_empty;
    static constexpr auto timer_init = ucs_wtimer_init;
    static constexpr auto add = ucs_wtimer_add;
    static constexpr auto remove = ucs_wtimer_remove;
    static bool is_active(const Node *timer)
    {
        return timer->is_active;
    }
};

struct Ours {
    using Wheel = lawn_ucs_twheel_t;
    using Node = lawn_ucs_wtimer_t;
    static constexpr auto init = lawn_ucs_twheel_init;
    static constexpr auto cleanup = lawn_ucs_twheel_cleanup;
    static constexpr auto sweep = lawn_ucs_twheel_sweep;
    static constexpr auto is_empty = lawn_ucs_twheel_is_empty;
    static constexpr auto timer_init = lawn_ucs_wtimer_init;
    static constexpr auto add = lawn_ucs_wtimer_add;
    static constexpr auto remove = lawn_ucs_wtimer_remove;
    static constexpr auto is_active = lawn_ucs_wtimer_is_active;
};

// A wheel with numbered timers that note how long they took.
template <class Api> class Bench
{
public:
    struct Timer {
        typename Api::Node node; // first: the callback's timer is this
        Bench *bench;
        ucs_time_t added;
        ucs_time_t again; // the delta to add itself with when it fires; 0: none
        std::vector<ucs_time_t> took;
        std::function<void()> then;
    };

    explicit Bench(size_t count) : timers_(count)
    {
        EXPECT_EQ(Api::init(&wheel_, resolution, start), UCS_OK);
        for (Timer &timer : timers_) {
            EXPECT_EQ(Api::timer_init(&timer.node, expired), UCS_OK);
            timer.bench = this;
        }
    }

    ~Bench()
    {
        Api::cleanup(&wheel_);
    }

    Bench(const Bench &) = delete;
    Bench &operator=(const Bench &) = delete;

    Timer &operator[](size_t i)
    {
        return timers_[i];
    }

    ucs_status_t add(size_t i, ucs_time_t delta, ucs_time_t again = 0)
    {
        const ucs_status_t status = Api::add(&wheel_, &timers_[i].node, delta);
        if (status == UCS_OK) {
            timers_[i].added = now_;
            timers_[i].again = again;
        }
        return status;
    }

    void remove(size_t i)
    {
        Api::remove(&wheel_, &timers_[i].node);
    }

    void sweep(ucs_time_t now)
    {
        now_ = now;
        Api::sweep(&wheel_, now);
    }

    void limit(ucs_time_t max_delta)
    {
        wheel_.max_delta = max_delta;
    }

    bool is_active(size_t i) const
    {
        return Api::is_active(&timers_[i].node);
    }

    bool is_empty()
    {
        return Api::is_empty(&wheel_);
    }

    // How long a timer takes when sweeps come every `step`.
    ucs_time_t takes(size_t i, ucs_time_t delta, ucs_time_t step)
    {
        timers_[i].took.clear();
        EXPECT_EQ(add(i, delta), UCS_OK);
        for (int n = 0; n < 1000000 && timers_[i].took.empty(); ++n) {
            sweep(now_ + step);
        }
        return timers_[i].took.at(0);
    }

private:
    static void expired(typename Api::Node *node)
    {
        Timer *const timer = reinterpret_cast<Timer *>(node);
        Bench *const bench = timer->bench;
        timer->took.push_back(bench->now_ - timer->added);
        const ucs_time_t again = timer->again;
        if (again != 0) {
            const auto i = static_cast<size_t>(timer - &bench->timers_[0]);
            EXPECT_EQ(bench->add(i, again, timer->then ? again : 0), UCS_OK);
        }
        if (timer->then) {
            timer->then();
        }
    }

    typename Api::Wheel wheel_ = {};
    ucs_time_t now_ = start;
    std::vector<Timer> timers_;
};

// Random operations on both within what the original can do: deltas of one to
// 1023 slots, added at the time of a sweep, and sweeps of whole slots.
class Pair
{
public:
    static constexpr size_t count = 200;

    Pair(uint64_t seed, bool is_steady)
        : random_(seed), steady_(is_steady), original_(count), ours_(count)
    {
    }

    void step()
    {
        for (uint64_t i = any_of(8); i > 0; --i) {
            act(any_of(count));
        }
        const ucs_time_t slots = steady_ ? 1 : 1 + any_of(30);
        now_ += slots * resolution;
        original_.sweep(now_);
        ours_.sweep(now_);
        tolerance_ = std::max(tolerance_, slots * resolution);
    }

    void finish()
    {
        for (int i = 0; i < 2100; ++i) {
            now_ += resolution;
            original_.sweep(now_);
            ours_.sweep(now_);
        }
        EXPECT_TRUE(original_.is_empty());
        EXPECT_TRUE(ours_.is_empty());
        for (size_t i = 0; i < count; ++i) {
            compare(i);
        }
    }

    size_t fired() const
    {
        return fired_;
    }

private:
    uint64_t any_of(uint64_t below)
    {
        return random_() % below;
    }

    ucs_time_t any_delta()
    {
        const ucs_time_t slots = any_of(2) ? any_of(1022) : any_of(20);
        return (1 + slots) * resolution + any_of(3) * any_of(resolution) / 2;
    }

    // One that has fired in one and not yet in the other is left alone.
    void act(size_t i)
    {
        if (original_.is_active(i) != ours_.is_active(i) ||
            original_[i].took.size() != ours_[i].took.size()) {
            return;
        }
        compare(i);
        if (ours_.is_active(i) && any_of(3) == 0) {
            original_.remove(i);
            ours_.remove(i);
            return;
        }
        const ucs_time_t delta = any_delta();
        const ucs_time_t again = steady_ && any_of(3) == 0 ? any_delta() : 0;
        const ucs_status_t status = original_.add(i, delta, again);
        ASSERT_EQ(ours_.add(i, delta, again), status);
    }

    // As long in one as in the other, up to a slot, or up to a sweep.
    void compare(size_t i)
    {
        auto &theirs = original_[i].took;
        auto &took = ours_[i].took;
        ASSERT_EQ(took.size(), theirs.size());
        for (size_t n = 0; n < took.size(); ++n) {
            ASSERT_LE(took[n], theirs[n] + tolerance_);
            ASSERT_LE(theirs[n], took[n] + tolerance_);
        }
        fired_ += took.size();
        took.clear();
        theirs.clear();
    }

    std::mt19937_64 random_;
    bool steady_;
    ucs_time_t now_ = start;
    ucs_time_t tolerance_ = resolution;
    size_t fired_ = 0;
    Bench<Original> original_;
    Bench<Ours> ours_;
};

void compare_wheels(bool is_steady)
{
    const uint64_t only = environment("LAWN_TEST_SEED", 0);
    const uint64_t scale = environment("LAWN_TEST_SCALE", 100);
    const uint64_t seeds = only ? 1 : std::max<uint64_t>(scale / 5, 2);
    size_t fired = 0;
    for (uint64_t i = 1; i <= seeds; ++i) {
        const uint64_t seed = only ? only : i;
        SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
        Pair pair(seed, is_steady);
        for (int n = 0; n < 5000; ++n) {
            pair.step();
            if (testing::Test::HasFailure()) {
                return;
            }
        }
        pair.finish();
        fired += pair.fired();
    }
    EXPECT_GT(fired, seeds * 2000);
}

TEST(UcsOriginal, WheelsFireTheSameUpToAResolution)
{
    compare_wheels(true);
}

TEST(UcsOriginal, WheelsFireTheSameWhenSweepsAreLate)
{
    compare_wheels(false);
}

TEST(UcsOriginal, ClampsLongDeltas)
{
    Bench<Original> original(1);
    Bench<Ours> ours(1);
    EXPECT_EQ(original.takes(0, 10000 * resolution, resolution),
              1024 * resolution);
    EXPECT_EQ(ours.takes(0, 10000 * resolution, resolution),
              10000 * resolution);
    ours.limit(1023 * resolution);
    EXPECT_EQ(ours.takes(0, 10000 * resolution, resolution), 1023 * resolution);
}

TEST(UcsOriginal, DriftsWhenSweepsAreNotWholeSlots)
{
    for (const ucs_time_t percent : {99UL, 150UL, 199UL}) {
        const ucs_time_t step = resolution * percent / 100;
        Bench<Original> original(1);
        Bench<Ours> ours(1);
        const ucs_time_t delta = 500 * resolution;
        EXPECT_GT(original.takes(0, delta, step), delta + delta * 49 / 100);
        const ucs_time_t took = ours.takes(0, delta, step);
        EXPECT_GE(took, delta);
        EXPECT_LT(took, delta + step);
    }
}

TEST(UcsOriginal, FiresEarlyWhatACallbackAdds)
{
    Bench<Original> original(1);
    Bench<Ours> ours(1);
    const ucs_time_t delta = 2 * resolution - 1;
    original.add(0, delta, delta);
    ours.add(0, delta, delta);
    for (ucs_time_t slot = 1; slot <= 10; ++slot) {
        original.sweep(start + slot * resolution);
        ours.sweep(start + slot * resolution);
    }
    EXPECT_EQ(original[0].took,
              (std::vector<ucs_time_t>{2 * resolution, resolution}));
    EXPECT_EQ(ours[0].took,
              (std::vector<ucs_time_t>{2 * resolution, 2 * resolution}));
}

// How often a timer that always adds itself for ten slots fires after 500.
template <class Api> size_t fires_after_a_stall()
{
    Bench<Api> bench(1);
    bench[0].then = [] {};
    bench.add(0, 10 * resolution, 10 * resolution);
    bench.sweep(start + 500 * resolution);
    return bench[0].took.size();
}

TEST(UcsOriginal, FiresManyTimesAfterAStall)
{
    EXPECT_EQ(fires_after_a_stall<Original>(), 49U);
    EXPECT_EQ(fires_after_a_stall<Ours>(), 1U);
}

// How many of 1000 timers, one per slot, a clock that goes back a tick fires.
template <class Api> size_t fires_when_the_clock_goes_back()
{
    Bench<Api> bench(1000);
    for (size_t i = 0; i < 1000; ++i) {
        bench.add(i, (i + 10) * resolution);
    }
    bench.sweep(start - 1);
    size_t fired = 0;
    for (size_t i = 0; i < 1000; ++i) {
        fired += bench[i].took.size();
    }
    return fired;
}

TEST(UcsOriginal, FiresEverythingWhenTheClockGoesBack)
{
    EXPECT_EQ(fires_when_the_clock_goes_back<Original>(), 1000U);
    EXPECT_EQ(fires_when_the_clock_goes_back<Ours>(), 0U);
}

// How many timers of 300 to 999 slots fire when a callback in the third slot
// sweeps as if 100 had passed.
template <class Api> size_t fires_when_nested()
{
    Bench<Api> bench(701);
    for (size_t i = 0; i < 700; ++i) {
        bench.add(i, (i + 300) * resolution);
    }
    bench.add(700, 2 * resolution);
    bench[700].then = [&] { bench.sweep(start + 100 * resolution); };
    bench.sweep(start + 10 * resolution);
    size_t fired = 0;
    for (size_t i = 0; i < 700; ++i) {
        fired += bench[i].took.size();
    }
    return fired;
}

TEST(UcsOriginal, FiresEverythingWhenNested)
{
    EXPECT_EQ(fires_when_nested<Original>(), 700U);
    EXPECT_EQ(fires_when_nested<Ours>(), 0U);
}

// Fifty slots go by without a sweep before a timer of 100 is added.
TEST(UcsOriginal, CountsFromTheLatestSweep)
{
    const ucs_time_t now = start + 50 * resolution;
    const ucs_time_t delta = 100 * resolution;
    Bench<Original> original(1);
    lawn_ucs_twheel_t wheel;
    lawn_ucs_wtimer_t timer;
    lawn_ucs_twheel_init(&wheel, resolution, start);
    lawn_ucs_wtimer_init(&timer, [](lawn_ucs_wtimer_t *) {});
    original.add(0, delta);
    lawn_ucs_wtimer_add_at(&wheel, &timer, now, delta);
    for (ucs_time_t slot = 1; slot <= 51; ++slot) {
        original.sweep(now + slot * resolution);
        lawn_ucs_twheel_sweep(&wheel, now + slot * resolution);
    }
    EXPECT_FALSE(original.is_active(0));
    EXPECT_TRUE(lawn_ucs_wtimer_is_active(&timer));
    lawn_ucs_twheel_sweep(&wheel, now + delta - 1);
    EXPECT_TRUE(lawn_ucs_wtimer_is_active(&timer));
    lawn_ucs_twheel_sweep(&wheel, now + delta);
    EXPECT_FALSE(lawn_ucs_wtimer_is_active(&timer));
    lawn_ucs_twheel_cleanup(&wheel);
}

TEST(UcsProgram, DoesTheSameOnBoth)
{
    program_result theirs;
    program_result ours;
    program_on_libucs(&theirs);
    program_on_lawn(&ours);
    EXPECT_EQ(memcmp(&theirs, &ours, sizeof ours), 0);
    EXPECT_EQ(theirs.status, UCS_OK);
    EXPECT_EQ(theirs.acked, 48U);
    EXPECT_TRUE(theirs.is_empty);
}

} // namespace
