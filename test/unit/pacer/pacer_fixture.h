// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Flows that are paced on virtual time, 1 tick = 1 ns.

#ifndef LAWN_TEST_UNIT_PACER_FIXTURE_H
#define LAWN_TEST_UNIT_PACER_FIXTURE_H

#include <lawn/pacer.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace lawn_test
{

class PacerTest : public testing::Test
{
protected:
    static constexpr lawn_time_t usec = 1'000;
    static constexpr lawn_time_t msec = 1'000 * usec;
    static constexpr lawn_time_t sec = 1'000 * msec;
    static constexpr lawn_time_t start = 5 * sec;

    struct Flow {
        lawn_pacer_t pacer = {}; // first
        unsigned called = 0;
        std::function<void(lawn_time_t now)> on_ready = nullptr;
    };

    PacerTest()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }

    ~PacerTest() override
    {
        for (const auto &flow : flows_) {
            lawn_pacer_stop(&flow->pacer);
        }
        EXPECT_EQ(lawn_count(lawn_), 0U);
        lawn_destroy(lawn_);
    }

    lawn_status_t init(Flow *flow, double rate, uint64_t burst)
    {
        lawn_pacer_params_t params = {};
        params.rate = rate;
        params.burst = burst;
        params.ticks_per_sec = 1e9;
        return lawn_pacer_init(&flow->pacer, lawn_, &params, ready);
    }

    // Stopped at the end of the test.
    Flow *open(double rate, uint64_t burst)
    {
        flows_.push_back(std::make_unique<Flow>());
        EXPECT_EQ(init(flows_.back().get(), rate, burst), LAWN_OK);
        return flows_.back().get();
    }

    static void ready(lawn_pacer_t *pacer, lawn_time_t now)
    {
        Flow *const flow = reinterpret_cast<Flow *>(pacer);
        ++flow->called;
        if (flow->on_ready) {
            flow->on_ready(now);
        }
    }

    bool take(Flow *flow, uint64_t bytes)
    {
        return lawn_pacer_take(&flow->pacer, now_, bytes);
    }

    void pass_at(lawn_time_t now, unsigned budget = 0)
    {
        now_ = now;
        lawn_advance(lawn_, now, budget);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    lawn_t *lawn_ = nullptr;
    lawn_time_t now_ = start;
    std::vector<std::unique_ptr<Flow>> flows_;
};

} // namespace lawn_test

#endif
