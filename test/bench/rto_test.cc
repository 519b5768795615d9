// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator of bench/rto on cases that can be computed by hand, most of
// them on a path without any jitter, and its targets on figures that are given.

#include "rto/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace
{

using namespace bench::rto;

constexpr Tick round_trip = 10 * microsecond;
constexpr uint32_t messages = 4'000;
constexpr uint32_t warm_up = 1'000;

// With a window of 1 and without a loss: a round trip for each message, and a
// quarter before each but the first.
constexpr Tick undisturbed =
    messages * round_trip + (messages - 1) * (round_trip / 4);

// Each round trip takes as long as the first.
Path constant()
{
    Path path = {};
    path.name = "constant";
    path.what = "no jitter at all";
    path.delay = [](Random &, const Moment &) { return 1.; };
    return path;
}

Setting setting_of(uint32_t window, double loss)
{
    Setting setting;
    setting.round_trip = round_trip;
    setting.window = window;
    setting.messages = messages;
    setting.warm_up = warm_up;
    setting.loss = loss;
    setting.seed = 1;
    return setting;
}

Outcome run(const Path &path, const Setting &setting, Contender &contender)
{
    Flow flow;
    const Variant variant = {&path, Order::kept, path.name};
    return flow.run(variant, setting, contender);
}

std::unique_ptr<Contender> fixed(double round_trips)
{
    return make_fixed(
        static_cast<Tick>(round_trips * static_cast<double>(round_trip)));
}

double median(std::vector<double> values)
{
    if (values.empty()) {
        ADD_FAILURE() << "nothing was lost";
        return 0;
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

const Kind &kind(const std::string &name)
{
    return *std::find_if(kinds().begin(), kinds().end(),
                         [&](const Kind &each) { return each.name == name; });
}

const Variant &variant(const std::string &name)
{
    return *std::find_if(
        variants().begin(), variants().end(),
        [&](const Variant &each) { return each.name == name; });
}

// All but the oracle.
std::vector<const Kind *> real_kinds()
{
    std::vector<const Kind *> real;
    for (const Kind &each : kinds()) {
        if (each.make) {
            real.push_back(&each);
        }
    }
    return real;
}

TEST(Rto, NothingIsSentTwiceOnAConstantPathWithoutLoss)
{
    for (const Kind *const each : real_kinds()) {
        SCOPED_TRACE(each->name);
        const Outcome single = run(constant(), setting_of(1, 0), *each->make());
        EXPECT_FALSE(single.is_stuck);
        EXPECT_EQ(single.spurious, 0U);
        EXPECT_EQ(single.transmissions, messages);
        EXPECT_EQ(single.took, undisturbed);
        EXPECT_TRUE(single.stalls.empty());
        const Outcome window = run(constant(), setting_of(8, 0), *each->make());
        EXPECT_FALSE(window.is_stuck);
        EXPECT_EQ(window.spurious, 0U);
        EXPECT_LE(window.transmissions, messages + 8);
        EXPECT_LT(window.took, undisturbed / 4);
    }
}

// Half a round trip is too short for all of them. After that, the timer has
// backed off and waits long enough.
TEST(Rto, AnRtoBelowTheRoundTripIsSpuriousOnceForEachMessage)
{
    const Outcome outcome = run(constant(), setting_of(1, 0), *fixed(.5));
    EXPECT_EQ(outcome.spurious, messages - warm_up);
    EXPECT_EQ(outcome.transmissions, 2 * messages);
    EXPECT_EQ(outcome.took, undisturbed);
}

TEST(Rto, AFixedRtoOfTwoRoundTripsStallsForThree)
{
    for (const uint32_t window : {1, 4}) {
        for (const Acks acks : {Acks::single, Acks::cumulative, Acks::bare}) {
            SCOPED_TRACE(testing::Message() << "window " << window << ", ACKs "
                                            << static_cast<int>(acks));
            Setting setting = setting_of(window, .01);
            setting.acks = acks;
            const Outcome outcome = run(constant(), setting, *fixed(2));
            EXPECT_FALSE(outcome.is_stuck);
            EXPECT_EQ(outcome.spurious, 0U);
            EXPECT_DOUBLE_EQ(median(outcome.stalls), 3);
        }
    }
}

// With a window of 1, a stall is what the contender waits and a round trip.
TEST(Rto, ContendersWaitForAsLongAsTheirDocumentsSay)
{
    struct {
        const char *name;
        double least;
        double most;
    } const expected[] = {
        {"rfc6298", 2.1, 2.1},       // R + 1 us
        {"rto_min", 101, 101},       // 1 ms
        {"infiniband", 7.55, 7.56},  // 4.096 us * 2^4
        {"ucx", 3001, 7001},         // from 3 to 7 ticks of 10 ms
        {"linux", 20001, 20101},     // 200 ms + R, in whole jiffies of 1 ms
        {"linux-250", 20001, 20401}, // of 4 ms
        {"quic", 102, 102},          // R + 1 ms
        {"lawn", 2.1, 2.5},          // R + R/4, or as much as 1 us
        {"lawn+ask", 2.1, 2.5},
    };
    EXPECT_EQ(std::size(expected), real_kinds().size());
    for (const auto &[name, least, most] : expected) {
        SCOPED_TRACE(name);
        const Outcome outcome =
            run(constant(), setting_of(1, .01), *kind(name).make());
        EXPECT_FALSE(outcome.is_stuck);
        const double stall = median(outcome.stalls);
        EXPECT_GE(stall, least - 1e-9);
        EXPECT_LE(stall, most + 1e-9);
    }
}

// Sent again after 2, 6, 14, 30, 62, 126, and from then on each 128 round
// trips.
TEST(Rto, AnOutageIsOverWithTheFirstAttemptBehindIt)
{
    Path path = constant();
    path.outage = 1000;
    const Outcome outcome = run(path, setting_of(1, 0), *fixed(2));
    EXPECT_EQ(outcome.attempts, 13U);
    EXPECT_EQ(outcome.spurious, 0U);
    ASSERT_EQ(outcome.stalls.size(), 1U);
    EXPECT_DOUBLE_EQ(outcome.stalls[0], 1023);
    EXPECT_EQ(outcome.took, undisturbed + 1022 * round_trip);
}

// A pass receives first.
TEST(Rto, APauseOfTheProgramIsNotTakenForALoss)
{
    Path path = constant();
    path.own_pause = 10'000;
    for (const Kind *const each : real_kinds()) {
        SCOPED_TRACE(each->name);
        const Outcome outcome = run(path, setting_of(1, 0), *each->make());
        EXPECT_EQ(outcome.transmissions, messages);
        EXPECT_EQ(outcome.took, undisturbed + 9'999 * round_trip);
    }
}

TEST(Rto, AnAckWaitsForTheNextPacketOrItsDelay)
{
    Path path = constant();
    path.ack_every = 2;
    path.ack_delay = 1;
    const Outcome outcome = run(path, setting_of(1, 0), *fixed(4));
    EXPECT_EQ(outcome.transmissions, messages);
    EXPECT_EQ(outcome.took, undisturbed + messages * round_trip);
}

// On these paths an answer is later than R + x with the probability
// exp(-x / mean), which is 5 of 10,000 at ln(2000) times the mean.
TEST(Rto, TheOracleIsTheQuantileOfThePath)
{
    Flow flow;
    Plan plan;
    plan.kinds = {&kind("oracle")};
    plan.setting = setting_of(1, .01);
    plan.setting.messages = 40'000;
    plan.seeds = 3;
    const Path path = constant();
    const Variant on_constant = {&path, Order::kept, path.name};
    struct {
        const Variant *variant;
        double mean;
    } const expected[] = {{&on_constant, 0},
                          {&variant("steady"), 1. / 200},
                          {&variant("jitter"), 1. / 4}};
    for (const auto &[on, mean] : expected) {
        SCOPED_TRACE(on->name);
        Cell cell = {on, round_trip, 1, {}, 0};
        measure(plan, flow, cell);
        const Figures &oracle = cell.figures.at(0);
        const double quantile = 1 + std::log(2000) * mean;
        EXPECT_NEAR(oracle.rto, quantile, .03 * quantile);
        EXPECT_LE(oracle.spurious, mean == 0 ? 0 : 5);
        EXPECT_NEAR(oracle.p50, oracle.rto + 1 + mean, mean / 2 + 1e-3);
        EXPECT_EQ(oracle.p50, cell.oracle_p50);
    }
}

TEST(Rto, LawnGetsThroughWithAllKindsOfAcks)
{
    Flow flow;
    for (const char *const name : {"jitter", "jitter/any"}) {
        for (const Acks acks : {Acks::single, Acks::cumulative, Acks::bare}) {
            for (const uint32_t window : {1, 8}) {
                SCOPED_TRACE(testing::Message()
                             << name << ", ACKs " << static_cast<int>(acks)
                             << ", window " << window);
                Setting setting = setting_of(window, 0);
                setting.acks = acks;
                const Outcome clean =
                    flow.run(variant(name), setting, *make_lawn());
                EXPECT_FALSE(clean.is_stuck);
                EXPECT_LE(clean.spurious, (messages - warm_up) / 200);
                setting.loss = .01;
                const Outcome lossy =
                    flow.run(variant(name), setting, *make_lawn());
                EXPECT_FALSE(lossy.is_stuck);
                EXPECT_GT(lossy.transmissions, messages);
                EXPECT_GT(median(lossy.stalls), 2);
                EXPECT_LT(median(lossy.stalls), 8);
            }
        }
    }
}

void expect_same(const Outcome &a, const Outcome &b)
{
    EXPECT_EQ(a.spurious, b.spurious);
    EXPECT_EQ(a.transmissions, b.transmissions);
    EXPECT_EQ(a.asks, b.asks);
    EXPECT_EQ(a.attempts, b.attempts);
    EXPECT_EQ(a.took, b.took);
    EXPECT_EQ(a.stalls, b.stalls);
}

// Also in memory that another run has used.
TEST(Rto, ASeedRepeatsARunExactly)
{
    Flow used;
    for (const char *const name :
         {"jitter", "bursts/any", "every-other", "pauses-20/any"}) {
        for (const Kind *const each : real_kinds()) {
            SCOPED_TRACE(std::string(each->name) + " on " + name);
            Setting setting = setting_of(8, .01);
            Flow fresh;
            const Outcome first =
                fresh.run(variant(name), setting, *each->make());
            expect_same(first, used.run(variant(name), setting, *each->make()));
            setting.seed = 2;
            const Outcome other =
                used.run(variant(name), setting, *each->make());
            EXPECT_NE(first.took, other.took);
        }
    }
}

TEST(Rto, FiguresAreTheMeanOfTheSeeds)
{
    Flow flow;
    const auto p50 = [&](uint64_t first, unsigned seeds) {
        Plan plan;
        plan.kinds = {&kind("lawn")};
        plan.setting = setting_of(8, .01);
        plan.setting.seed = first;
        plan.seeds = seeds;
        plan.needs_oracle = false;
        Cell cell = {&variant("jitter"), round_trip, 8, {}, 0};
        measure(plan, flow, cell);
        return cell.figures.at(0).p50;
    };
    EXPECT_NE(p50(5, 1), p50(6, 1));
    EXPECT_DOUBLE_EQ(p50(5, 2), (p50(5, 1) + p50(6, 1)) / 2);
}

FirstCell first_losses(const Variant &on, Tick of, uint32_t window)
{
    Plan plan;
    plan.setting = setting_of(window, .01);
    plan.setting.messages = 6'000;
    FirstCell cell = {&on, of, window, {}, {}, {}};
    Flow flow;
    measure_first(plan, 100, flow, cell);
    return cell;
}

// What knows nothing waits for rto_initial, 100 ms, and a round trip.
TEST(RtoInherit, TheFirstLossIsFoundAsSoonAsALaterOne)
{
    const Path path = constant();
    const Variant on = {&path, Order::kept, path.name};
    const FirstCell fast = first_losses(on, 10 * microsecond, 1);
    EXPECT_NEAR(fast.alone.p50, 10'001, 1e-3);
    EXPECT_NEAR(fast.alone.p99, 10'001, 1e-3);
    EXPECT_NEAR(fast.inherited.p50, 2.25, 1e-3); // R + R/4, and R
    EXPECT_NEAR(fast.inherited.p99, 2.25, 1e-3);
    const FirstCell slow = first_losses(on, 20 * millisecond, 1);
    EXPECT_NEAR(slow.alone.p50, 6, 1e-3);
    EXPECT_NEAR(slow.inherited.p50, 2.25, 1e-3);
}

// Where a round trip may take ten times as long, silence says nothing earlier,
// but the peer can be asked. Where the route changes, it takes that long
// itself.
TEST(RtoInherit, TheFirstLossStallsForAtMostEightRoundTripsInTheMedian)
{
    unsigned count = 0;
    unsigned long_tails = 0;
    for (const Variant &each : variants()) {
        const Rules &rules = each.path->rules;
        if (rules.is_aside || rules.changes) {
            continue;
        }
        const bool has_tail = rules.spurious > Rules().spurious;
        ++count;
        long_tails += has_tail;
        for (const Tick of : {10 * microsecond, 20 * millisecond}) {
            for (const uint32_t window : {1, 8}) {
                SCOPED_TRACE(each.name + ", round trip " + text_of(of) +
                             ", window " + std::to_string(window));
                const FirstCell cell = first_losses(each, of, window);
                // Where answers were seen to overtake others by so much, only
                // the silence of a whole tail is evidence: the oracle's stalls
                // take 22.
                const bool is_unsure = has_tail && each.order == Order::any;
                EXPECT_GE(cell.asking.p50, 1.5);
                EXPECT_LE(cell.asking.p50, is_unsure ? 30 : 8);
                EXPECT_LE(cell.asking.p50, cell.asking.p99);
                EXPECT_GE(cell.inherited.p50, 1.5);
                EXPECT_LE(cell.inherited.p50, has_tail ? 30 : 8);
                EXPECT_LE(cell.inherited.p50, cell.inherited.p99);
            }
        }
    }
    EXPECT_GE(count, 29U);
    EXPECT_EQ(long_tails, 4U);
}

// How many targets a cell misses in which lawn has these figures.
unsigned misses(const char *name, uint32_t window, double oracle_p50,
                double p50, double spurious)
{
    Plan plan;
    plan.kinds = {&kind("oracle"), &kind("lawn")};
    Figures lawn;
    lawn.p50 = p50;
    lawn.spurious = spurious;
    return print_misses(
        plan,
        {{&variant(name), round_trip, window, {Figures(), lawn}, oracle_p50}});
}

TEST(RtoTargets, SpuriousRetransmissions)
{
    EXPECT_EQ(misses("steady", 1, 2, 2, 5), 0U);
    EXPECT_EQ(misses("steady", 1, 2, 2, 5.1), 1U);
    EXPECT_EQ(misses("heavy-tail", 1, 2, 2, 10), 0U);
    EXPECT_EQ(misses("heavy-tail/any", 1, 2, 2, 10.1), 1U);
    EXPECT_EQ(misses("pauses-20", 1, 2, 2, 12), 0U);
    EXPECT_EQ(misses("pauses-20", 1, 2, 2, 12.1), 1U);
}

TEST(RtoTargets, StallsAgainstTheOracles)
{
    struct {
        const char *path;
        uint32_t window;
        double oracle;
        double most; // of it
    } const expected[] = {
        {"steady", 1, 2, 1.25},      {"jitter/any", 8, 5, 1.25},
        {"at-once", 8, 5, .75},      {"heavy-tail", 1, 20, 2},
        {"heavy-tail/any", 8, 5, 2}, {"steady", 8, 2, 1.15},
        {"jitter", 8, 4.1, .75},     {"heavy-tail", 8, 20, .75},
        {"late-peer", 8, 7.9, 1.15}, {"late-peer", 8, 8.1, .75},
        {"longer", 8, 20, 1.15},
    };
    for (const auto &[path, window, oracle, most] : expected) {
        SCOPED_TRACE(testing::Message() << path << ", window " << window);
        EXPECT_EQ(misses(path, window, oracle, .999 * most * oracle, 0), 0U);
        EXPECT_EQ(misses(path, window, oracle, 1.001 * most * oracle, 0), 1U);
    }
}

TEST(RtoTargets, NoOtherTimerIsBetterInBothFigures)
{
    struct {
        const char *other;
        double p50;
        double spurious;
        unsigned misses;
    } const expected[] = {
        {"linux", 1.89, 2.9, 1}, {"linux", 1.91, 2.9, 0},
        {"linux", 1.89, 3.1, 0}, {"oracle", 1, 0, 0},
        {"lawn+ask", 1, 0, 0},
    };
    for (const auto &[other, p50, spurious, most] : expected) {
        SCOPED_TRACE(testing::Message() << other << ", " << p50);
        Plan plan;
        plan.kinds = {&kind(other), &kind("lawn")};
        Figures others;
        others.p50 = p50;
        others.spurious = spurious;
        Figures lawn;
        lawn.p50 = 2;
        lawn.spurious = 5;
        EXPECT_EQ(
            print_misses(
                plan, {{&variant("steady"), round_trip, 1, {others, lawn}, 2}}),
            most);
    }
}

TEST(RtoTargets, OneOutageSaysNothingOfTheNext)
{
    for (const char *const name :
         {"outage", "own-pause", "pause-10000", "pauses-1000/any"}) {
        EXPECT_EQ(misses(name, 1, 2, 2000, 1000), 0U) << name;
    }
}

} // namespace
