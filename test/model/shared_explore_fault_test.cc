// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the explorer is worth: each access of shared_ops.h that is said to be
// strong, or to come before another, is made weaker or later, and that must be
// found, by a scenario in which nothing is wrong without it.

#include "shared_explore_world.h"

#include <gtest/gtest.h>

#include <inttypes.h>
#include <stdio.h>

#include <ostream>

namespace shared_explore
{

namespace
{

using Ops = std::vector<Op>;

struct Case {
    Fault fault;
    const char *violation;
    Scenario scenario;
};

// Threads: the owner, and others; timers as many as they name.
Scenario scenario(const Ops &before, const std::vector<Ops> &threads)
{
    unsigned timers = 1;
    for (const Ops &ops : threads) {
        for (const Op &op : ops) {
            timers = op.timer + 1 > timers ? op.timer + 1 : timers;
        }
    }
    return {timers, before, threads, {}};
}

constexpr Kind any = Kind::load;
constexpr Field none = Field::other;

const Ops at_10 = {local(0, 10)};
const Ops extended = {local(0, 10), local(0, 30)};
const Ops pass_10 = {at(Do::pass, 10)};
const Ops night = {at(Do::sleep, 50)};
const Ops end = {at(Do::destroy, 0)};
const Op retire = on(Do::retire, 0);
const Op stop = on(Do::stop, 0);

const std::vector<Case> cases = {
    {{"ExpireRaisesTheCoverByAPut", Kind::store, Field::cover, Do::advance,
      How::buffered, any, none},
     "fires late",
     scenario(extended, {pass_10, {start(0, 20)}})},
    {{"ExpireLeavesTheCover", Kind::store, Field::cover, Do::advance, How::lost,
      any, none},
     "fires late",
     scenario(at_10, {pass_10, {start(0, 20)}})},
    {{"StartStoresItsDeadlineByAPut", Kind::exchange, Field::deadline,
      Do::start, How::split_put, any, none},
     "fires late",
     scenario(extended, {pass_10, {start(0, 20)}})},
    {{"StartLooksAtTheCoverFirst", Kind::load, Field::cover, Do::start,
      How::stale, any, none},
     "fires late",
     scenario(extended, {pass_10, {start(0, 20)}})},
    {{"OwnersStartDoesNotLookAtTheCover", Kind::load, Field::cover, Do::local,
      How::zero, any, none},
     "fires late",
     scenario(at_10, {{local(0, 5)}, {start(0, 20)}})},
    {{"StopTakesInTwoSteps", Kind::exchange, Field::deadline, Do::stop,
      How::split, any, none},
     "stops what does not run",
     scenario(at_10, {pass_10, {stop}})},
    {{"ExpireTakesInTwoSteps", Kind::swap, Field::deadline, Do::advance,
      How::split, any, none},
     "fires early",
     scenario(at_10, {pass_10, {start(0, 20)}})},
    {{"PushIsInTwoSteps", Kind::swap, Field::head, Do::start, How::split, any,
      none},
     "fires late",
     scenario({}, {{}, {start(0, 5)}, {start(1, 5)}})},
    {{"DrainTakesInTwoSteps", Kind::exchange, Field::head, Do::drain,
      How::split, any, none},
     "fires late",
     scenario({}, {pass_10, {start(0, 5), start(1, 6)}})},
    {{"PostedIsSetInTwoSteps", Kind::set, Field::flags, Do::start, How::split,
      any, none},
     "a timer is in the box twice",
     scenario({}, {{}, {start(0, 5)}, {start(0, 6)}})},
    {{"PostedIsNeverCleared", Kind::clear, Field::flags, Do::drain, How::lost,
      any, none},
     "fires late",
     scenario({}, {pass_10, {start(0, 15), start(0, 12)}})},
    {{"PostedIsClearedTooLate", Kind::clear, Field::flags, Do::drain, How::late,
      Kind::load, Field::deadline},
     "fires late",
     scenario({}, {pass_10, {start(0, 15), start(0, 12)}})},
    {{"PostedIsClearedInTwoSteps", Kind::clear, Field::flags, Do::drain,
      How::split, any, none},
     "a retired timer is not released",
     scenario({start(0, 20)}, {pass_10, {retire}})},
    {{"PushLosesTheTag", Kind::swap, Field::head, Do::start, How::untagged, any,
      none},
     "the owner sleeps through a start",
     scenario({}, {night, {start(0, 5)}})},
    {{"StartRingsForItsOwnDeadline", Kind::load, Field::deadline, Do::start,
      How::own, any, none},
     "the owner sleeps through a start",
     scenario({}, {night, {start(0, 60)}, {start(0, 5)}})},
    {{"SleepIsInTwoSteps", Kind::swap, Field::head, Do::sleep, How::split, any,
      none},
     "fires late",
     scenario({}, {night, {start(0, 5)}})},
    {{"SleepSaysTooLateUntilWhen", Kind::store, Field::wake_at, Do::sleep,
      How::late, Kind::swap, Field::head},
     "the owner sleeps through a start",
     scenario({}, {night, {start(0, 5)}})},
    {{"TheBellIsAnsweredInTwoSteps", Kind::clear, Field::head, Do::start,
      How::split, any, none},
     "fires late",
     scenario({}, {night, {start(0, 5)}, {start(1, 6)}})},
    {{"StartPutsTheRetiredInTheBox", Kind::set, Field::flags, Do::start,
      How::alive, any, none},
     "releases a message",
     scenario({}, {{retire, at(Do::drain, 10)}, {start(0, 5)}})},
    {{"RetireMarksInTwoSteps", Kind::set, Field::flags, Do::retire, How::split,
      any, none},
     "a timer is in the box twice",
     scenario({}, {{}, {retire}, {start(0, 5)}})},
    {{"RetireHoldsTheBoxTooLate", Kind::add, Field::users, Do::retire,
      How::late, Kind::swap, Field::head},
     "touches the box that was freed",
     scenario({}, {end, {retire}})},
    {{"ExpireDoesNotLookForARetire", Kind::load, Field::flags, Do::advance,
      How::zero, any, none},
     "fires when retire has returned",
     scenario(at_10, {{local(0, 10), pass_10[0]}, {retire}})},
    {{"ExpireSaysTooLateWhatRuns", Kind::put, Field::running, Do::advance,
      How::late, Kind::swap, Field::deadline},
     "sync returns while a callback runs",
     scenario(at_10, {pass_10, {stop, on(Do::sync, 0)}})},
    {{"RunsAreCountedTooLate", Kind::put, Field::runs, Do::advance, How::late,
      Kind::swap, Field::deadline},
     "sync returns while a callback runs",
     scenario(at_10, {pass_10, {stop, on(Do::sync, 0)}})},
    {{"UncoverStopsFirst", Kind::store, Field::cover, Do::empty, How::late,
      Kind::exchange, Field::deadline},
     "fires late",
     scenario(at_10, {{at(Do::empty, 0)}, {start(0, 15)}})},
    {{"CloseDoesNotClose", Kind::exchange, Field::head, Do::destroy,
      How::untagged, any, none},
     "starts in a destroyed box",
     scenario({}, {end, {start(0, 5)}})},
    {{"CloseDoesNotWaitForTheBell", Kind::load, Field::ringing, Do::destroy,
      How::zero, any, none},
     "wakes when destroy has returned",
     scenario({}, {{at(Do::doze, 50), end[0]}, {start(0, 5)}})},
    {{"CloseStopsAfterItLetsGo", Kind::store, Field::deadline, Do::destroy,
      How::late, Kind::clear, Field::flags},
     "touches a timer that was released",
     scenario({}, {end, {start(0, 5), retire}})},
    {{"TheBoxIsDroppedInTwoSteps", Kind::add, Field::users, Do::destroy,
      How::split, any, none},
     "touches the box that was freed",
     scenario({}, {end, {retire}})},
};

// What a failed test says of its case: it has its name already.
void PrintTo(const Case &, std::ostream *)
{
}

class SharedExploreFault : public testing::TestWithParam<Case>
{
};

TEST_P(SharedExploreFault, IsFound)
{
    constexpr uint64_t most_runs = 10'000;
    const Case &it = GetParam();
    const Result without = World::explore(it.scenario, nullptr, most_runs);
    EXPECT_TRUE(without.is_complete);
    EXPECT_TRUE(without.violations.empty()) << text_of(it.scenario, without);
    const Result with = World::explore(it.scenario, &it.fault, most_runs);
    ASSERT_EQ(with.violations.size(), 1U);
    EXPECT_EQ(with.violations[0], it.violation) << text_of(it.scenario, with);
    EXPECT_GT(with.steps.size(), 1U);
    printf("found by run %" PRIu64 ", of %" PRIu64 " without the fault\n",
           with.runs, without.runs);
}

INSTANTIATE_TEST_SUITE_P(All, SharedExploreFault, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case> &info) {
                             return info.param.fault.name;
                         });

} // namespace

} // namespace shared_explore
