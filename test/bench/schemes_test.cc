// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The reference schemes of bench/schemes, each against the same conformance: a
// comparison with a wrong wheel is worth nothing. A scheme must fire each timer
// once, at the first advance at or after its deadline (rounded up to the tick,
// where it has one), and timers of one TTL in the order of their starts unless
// its traits say that it does not. A model that knows only deadlines decides,
// under random operations from seeds; single cases follow for what random ones
// seldom meet.
//
// LAWN_TEST_SCALE is the share of the seeds in percent (100), for runs under an
// instrument.

#include "../environment.h"
#include "schemes_trial.h"

namespace
{

template <class Scheme> class SchemeTest : public testing::Test
{
protected:
    using Node = typename Scheme::Node;

    std::vector<Node> nodes(size_t count)
    {
        return std::vector<Node>(count);
    }

    // Advances and returns the indices of what fired, in order.
    std::vector<size_t> advance(Scheme &scheme, std::vector<Node> &timers,
                                Time now, unsigned budget = 0)
    {
        std::vector<size_t> order;
        const unsigned count =
            scheme.advance(now, budget, [&](Node &node, Time at) {
                EXPECT_EQ(at, now);
                order.push_back(static_cast<size_t>(&node - timers.data()));
            });
        EXPECT_EQ(count, order.size());
        return order;
    }
};

using Schemes = testing::Types<
    bench::UnorderedList, bench::OrderedList, bench::Tree, bench::SimpleWheel,
    bench::HashedWheelSorted, bench::HashedWheel, bench::HierarchicalWheel,
    bench::NoMigrationWheel, CappedResizingWheel, bench::MultipassWheel,
    bench::LawnTextbook, bench::LawnIntrusive>;

class SchemeNames
{
public:
    template <class Scheme> static std::string GetName(int)
    {
        return Scheme::traits.name;
    }
};

TYPED_TEST_SUITE(SchemeTest, Schemes, SchemeNames);

TYPED_TEST(SchemeTest, FiresAsTheModelSays)
{
    const uint64_t seeds = lawn_test::scaled(150);
    constexpr unsigned steps = 1500;
    size_t fired = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Trial<TypeParam> trial(seed, seed % 10 == 0 ? 300 : 1 + seed);
        for (unsigned i = 0; i < steps; ++i) {
            trial.step();
            if (this->HasFailure()) {
                return;
            }
        }
        trial.finish();
        if (this->HasFailure()) {
            return;
        }
        fired += trial.fired();
    }
    EXPECT_GT(fired, seeds * steps / 10);
}

// Each TTL alone, advanced to just before it and to it: the boundaries of
// slots, levels and revolutions, from a start that is on none of them.
TYPED_TEST(SchemeTest, FiresAtItsDeadlineAndNotBefore)
{
    for (const Time tick : {Time{1}, Time{10}, Time{64}}) {
        const Config config = config_with(tick, 16);
        for (unsigned bits = 0; bits < 40; ++bits) {
            for (Time ttl = (Time{1} << bits) - (bits > 0 ? 1 : 0);
                 ttl <= (Time{1} << bits) + 1; ++ttl) {
                SCOPED_TRACE(ttl);
                TypeParam scheme(config);
                auto timers = this->nodes(1);
                const Time start = 12345;
                this->advance(scheme, timers, start);
                scheme.start(timers[0], start, ttl);
                const Time latest = bench::latest_firing(
                    TypeParam::traits, config, start, start + ttl);
                EXPECT_TRUE(
                    this->advance(scheme, timers, start + ttl - 1).empty());
                EXPECT_EQ(this->advance(scheme, timers, latest).size(), 1U);
                EXPECT_FALSE(scheme.stop(timers[0]));
            }
        }
    }
}

TYPED_TEST(SchemeTest, JumpsOverEverything)
{
    TypeParam scheme(config_with(1, 64));
    auto timers = this->nodes(130);
    for (unsigned bits = 0; bits < 62; ++bits) {
        scheme.start(timers[2 * bits], 7, Time{1} << bits);
        scheme.start(timers[2 * bits + 1], 7, (Time{3} << bits) / 2);
    }
    scheme.start(timers[129], 7, never);
    auto order = this->advance(scheme, timers, never - 1);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), 124U);
    for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(order[i], i);
    }
    EXPECT_TRUE(this->advance(scheme, timers, never).empty());
    EXPECT_TRUE(scheme.stop(timers[129]));
}

TYPED_TEST(SchemeTest, EqualTtlsFireInTheOrderOfStarts)
{
    TypeParam scheme(config_with(1, 64));
    auto timers = this->nodes(50);
    Time now = 0;
    for (size_t i = 0; i < timers.size(); ++i) {
        scheme.start(timers[i], now, 300);
        now += i % 3;
        EXPECT_TRUE(this->advance(scheme, timers, now).empty());
    }
    // A re-arm is a new start, and so the last.
    scheme.start(timers[0], now, 300);
    auto order = this->advance(scheme, timers, now + 400);
    ASSERT_EQ(order.size(), timers.size());
    if (TypeParam::traits.any_order) {
        std::sort(order.begin(), order.end());
        std::rotate(order.begin(), order.begin() + 1, order.end());
    }
    for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(order[i], (i + 1) % timers.size());
    }
}

// The first to fire stops the next, and re-arms itself and another that is due
// in the same pass: of the five, two do not fire in it.
TYPED_TEST(SchemeTest, CallbacksStopAndReArmWhatIsDue)
{
    using Timer = typename TypeParam::Node;
    TypeParam scheme(config_with(1, 16));
    auto timers = this->nodes(5);
    for (Timer &timer : timers) {
        scheme.start(timer, 0, 10);
    }
    std::set<Timer *> left;
    for (Timer &timer : timers) {
        left.insert(&timer);
    }
    Timer *re_armed = nullptr;
    Timer *first = nullptr;
    const unsigned count = scheme.advance(10, 0, [&](Timer &node, Time now) {
        EXPECT_EQ(left.erase(&node), 1U);
        if (first) {
            return;
        }
        first = &node;
        scheme.start(node, now, 10);
        Timer *const stopped = *left.begin();
        EXPECT_TRUE(scheme.stop(*stopped));
        left.erase(left.begin());
        re_armed = *left.begin();
        scheme.start(*re_armed, now, 20);
        left.erase(left.begin());
    });
    EXPECT_EQ(count, 3U);
    EXPECT_TRUE(left.empty());
    ASSERT_TRUE(first);
    const auto index = [&](Timer *node) {
        return static_cast<size_t>(node - timers.data());
    };
    EXPECT_TRUE(this->advance(scheme, timers, 19).empty());
    EXPECT_EQ(this->advance(scheme, timers, 20),
              std::vector<size_t>{index(first)});
    EXPECT_EQ(this->advance(scheme, timers, 30),
              std::vector<size_t>{index(re_armed)});
}

TYPED_TEST(SchemeTest, BudgetOfOneLosesNothing)
{
    TypeParam scheme(config_with(1, 64));
    auto timers = this->nodes(40);
    for (size_t i = 0; i < timers.size(); ++i) {
        scheme.start(timers[i], 0, 1 + (i % 4) * 600);
    }
    std::set<size_t> fired;
    for (size_t i = 0; i < timers.size(); ++i) {
        const auto order =
            this->advance(scheme, timers, 5000 + (i < 20 ? 0 : i), 1);
        ASSERT_EQ(order.size(), 1U);
        EXPECT_TRUE(fired.insert(order[0]).second);
    }
    EXPECT_TRUE(this->advance(scheme, timers, 9000, 1).empty());
}

TYPED_TEST(SchemeTest, TtlZeroFiresAtTheNextAdvanceAndNotInThisOne)
{
    TypeParam scheme(config_with(1, 16));
    auto timers = this->nodes(2);
    scheme.start(timers[0], 5, 0);
    scheme.start(timers[1], 5, 0);
    for (int pass = 0; pass < 3; ++pass) {
        const unsigned count = scheme.advance(
            5, 0, [&](auto &node, Time now) { scheme.start(node, now, 0); });
        EXPECT_EQ(count, 2U);
    }
    EXPECT_TRUE(scheme.stop(timers[0]));
    EXPECT_EQ(this->advance(scheme, timers, 5), std::vector<size_t>{1});
    EXPECT_TRUE(this->advance(scheme, timers, 6).empty());
}

TYPED_TEST(SchemeTest, HugeTtlsSaturate)
{
    const Time start = Time{1} << 63;
    for (const Time tick : {Time{1}, Time{1000}}) {
        const Config config = config_with(tick, 16);
        TypeParam scheme(config);
        auto timers = this->nodes(4);
        this->advance(scheme, timers, start);
        scheme.start(timers[0], start, never);
        scheme.start(timers[1], start, never - start);
        scheme.start(timers[2], start, Time{1} << 62);
        scheme.start(timers[3], start, 100);
        EXPECT_EQ(this->advance(scheme, timers, start + 2000),
                  std::vector<size_t>{3});
        EXPECT_TRUE(
            this->advance(scheme, timers, start + (Time{1} << 62) - 1).empty());
        EXPECT_EQ(this->advance(scheme, timers, never), std::vector<size_t>{2});
        EXPECT_TRUE(scheme.stop(timers[0]));
        EXPECT_TRUE(scheme.stop(timers[1]));
        EXPECT_TRUE(this->advance(scheme, timers, never).empty());
    }
}

// More TTLs than any table begins with, stopped and started with others, so
// that tables grow and their entries come and go.
TYPED_TEST(SchemeTest, ManyTtlsComeAndGo)
{
    TypeParam scheme(config_with(1, 1000));
    auto timers = this->nodes(1000);
    std::mt19937_64 random(1);
    Time now = 0;
    size_t fired = 0;
    for (int round = 0; round < 20; ++round) {
        for (auto &timer : timers) {
            scheme.start(timer, now, 100 + random() % 100000);
        }
        now += 10000;
        fired += this->advance(scheme, timers, now).size();
    }
    const size_t running = static_cast<size_t>(
        std::count_if(timers.begin(), timers.end(), [&](auto &timer) {
            const bool was_running = scheme.stop(timer);
            if (was_running) {
                scheme.start(timer, now, 50);
            }
            return was_running;
        }));
    EXPECT_GT(fired, 1000U);
    EXPECT_GT(running, 500U);
    EXPECT_EQ(this->advance(scheme, timers, now + 60).size(), running);
}

} // namespace
