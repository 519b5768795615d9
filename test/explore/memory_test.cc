// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the explorer takes for possible, against what C11 says of programs that
// are known (litmus.h): no outcome more, and none less.

#include "explorer.h"
#include "litmus.h"
#include "system.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

using namespace explore;

namespace
{

using Outcomes = std::set<std::vector<int>>;

class LitmusProgram final : public Program
{
public:
    LitmusProgram(const litmus::Test &test, unsigned seen)
        : test_(test), seen_(seen)
    {
    }

    void set_up() override
    {
        state_ = static_cast<litmus::State *>(
            explorer().memory().allocate(sizeof(*state_)));
        for (int &i : state_->seen) {
            i = -1;
        }
    }

    void begin() override
    {
        for (void (*const run)(litmus::State *) : test_.threads) {
            if (run) {
                explorer().add_thread([this, run] { run(state_); });
            }
        }
    }

    void end() override
    {
        outcomes.insert({state_->seen, state_->seen + seen_});
    }

    Outcomes outcomes;

private:
    const litmus::Test &test_;
    unsigned seen_;
    litmus::State *state_ = nullptr;
};

struct Explored {
    Outcomes outcomes;
    std::string violation;
};

Explored explore_litmus(const litmus::Test &test, unsigned seen)
{
    LitmusProgram program(test, seen);
    const Result result = explorer().explore(&program, Limits());
    leave_system();
    EXPECT_TRUE(result.is_complete || !result.violation.empty());
    return {program.outcomes, result.violation};
}

Outcomes outcomes_of(const litmus::Test &test, unsigned seen)
{
    const Explored explored = explore_litmus(test, seen);
    EXPECT_EQ(explored.violation, "") << test.name;
    return explored.outcomes;
}

TEST(ExploreMemory, StoreBuffers)
{
    EXPECT_EQ(outcomes_of(litmus::store_buffers_seq_cst, 2),
              (Outcomes{{0, 1}, {1, 0}, {1, 1}}));
    EXPECT_EQ(outcomes_of(litmus::store_buffers_acq_rel, 2),
              (Outcomes{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

TEST(ExploreMemory, AMessageComesWithItsFlag)
{
    EXPECT_EQ(outcomes_of(litmus::message_release, 2),
              (Outcomes{{0, 0}, {0, 1}, {1, 1}}));
    const Outcomes all = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    EXPECT_EQ(outcomes_of(litmus::message_relaxed, 2), all);
    EXPECT_EQ(outcomes_of(litmus::message_acquired_late, 2), all);
}

// An add to the flag passes on the message, a store does not.
TEST(ExploreMemory, AReleaseSequencePassesOnTheMessage)
{
    EXPECT_EQ(outcomes_of(litmus::message_through_add, 2),
              (Outcomes{{0, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}, {3, 1}}));
    EXPECT_EQ(outcomes_of(litmus::message_through_store, 2),
              (Outcomes{{0, 0}, {0, 1}, {1, 1}, {2, 0}, {2, 1}}));
}

// All agree on the order of what is seq_cst, and of nothing else.
TEST(ExploreMemory, TwoReadersOfTwoWriters)
{
    const std::vector<int> disagree = {1, 0, 1, 0};
    const Outcomes seq_cst = outcomes_of(litmus::independent_seq_cst, 4);
    EXPECT_EQ(seq_cst.count(disagree), 0U);
    EXPECT_EQ(seq_cst.size(), 15U);
    EXPECT_EQ(outcomes_of(litmus::independent_acquire, 4).size(), 16U);
}

TEST(ExploreMemory, ALocationDoesNotGoBack)
{
    EXPECT_EQ(outcomes_of(litmus::two_loads_of_one, 2),
              (Outcomes{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}));
}

TEST(ExploreMemory, AWeakSwapMayFail)
{
    EXPECT_EQ(outcomes_of(litmus::weak_swap, 2), (Outcomes{{0, 0}, {1, 0}}));
}

TEST(ExploreMemory, WhatNothingOrdersIsADataRace)
{
    EXPECT_EQ(explore_litmus(litmus::plain_without_order, 1).violation,
              "data race");
}

TEST(ExploreMemory, AThreadThatSpinsForEverIsTold)
{
    EXPECT_EQ(explore_litmus(litmus::spins_for_ever, 1).violation,
              "nobody goes on: thread 0 spins; thread 1 has ended;");
}

// With a fault in all accesses of that order.
Outcomes outcomes_with(Fault::Kind kind, Order order)
{
    Fault fault;
    fault.kind = kind;
    outcomes_of(litmus::message_release, 2);
    for (const auto &[place, site] : explorer().sites()) {
        if (site.order == order) {
            fault.places.insert(place);
        }
    }
    explorer().set_fault(fault);
    const Outcomes outcomes = outcomes_of(litmus::message_release, 2);
    explorer().set_fault({});
    return outcomes;
}

// The message is relaxed. Its flag is stored by a release, loaded by an
// acquire.
TEST(ExploreMemory, AFaultShows)
{
    const Outcomes right = {{0, 0}, {0, 1}, {1, 1}};
    const Outcomes never_seen = {{0, 0}, {0, 1}};
    const Outcomes all = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    EXPECT_EQ(outcomes_with(Fault::none, Order::release), right);
    EXPECT_EQ(outcomes_with(Fault::left_out, Order::release), never_seen);
    EXPECT_EQ(outcomes_with(Fault::stale, Order::acquire), never_seen);
    EXPECT_EQ(outcomes_with(Fault::weaker, Order::release), all);
    EXPECT_EQ(outcomes_with(Fault::weaker, Order::acquire), all);
    EXPECT_EQ(outcomes_with(Fault::later, Order::relaxed).count({1, 0}), 1U);
}

} // namespace
