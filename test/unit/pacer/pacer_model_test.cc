// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Pacers against buckets that leak, with random operations, jumps of the clock
// and budgets; and what flows have sent in any span of time.

#include "bucket.h"
#include "pacer_fixture.h"

#include "environment.h"

#include <algorithm>
#include <random>

using namespace lawn_test;

namespace
{

class PacerModel : public PacerTest
{
protected:
    struct Known {
        Flow *flow = nullptr;
        Bucket bucket;
        uint64_t wanted = 0;
        bool waits = false;
        bool was_touched = false; // in the latest pass
    };

    explicit PacerModel()
    {
        known_.resize(8);
        for (Known &known : known_) {
            known.flow = open(1e9, 1500);
            known.bucket.set_rate(now_, 1e9, 1500);
            known.flow->on_ready = [this, &known](lawn_time_t now) {
                now_ = now;
                EXPECT_TRUE(known.waits);
                EXPECT_EQ(known.bucket.next(now, known.wanted), now);
                known.waits = false;
                for (int i = below(4); i > 0; --i) {
                    act(&known_[static_cast<size_t>(below(8))]);
                }
            };
        }
    }

    int below(int limit)
    {
        return static_cast<int>(random_() % static_cast<unsigned>(limit));
    }

    // Each magnitude as often as others.
    uint64_t any(unsigned bits)
    {
        return random_() >> (64 - 1 - random_() % bits);
    }

    void act(Known *known)
    {
        lawn_pacer_t *const pacer = &known->flow->pacer;
        const uint64_t bytes = any(20);
        known->was_touched = true;
        switch (below(9)) {
        case 0: {
            const double rate = 1e5 * static_cast<double>(any(24) + 1);
            const uint64_t burst = any(24);
            EXPECT_EQ(lawn_pacer_set_rate(pacer, now_, rate, burst), LAWN_OK);
            known->bucket.set_rate(now_, rate, burst);
            break;
        }
        case 1:
            lawn_pacer_stop(pacer);
            known->waits = false;
            break;
        case 2:
            lawn_pacer_yield(pacer, now_);
            known->waits = true;
            known->wanted = 0;
            break;
        case 3:
            lawn_pacer_force(pacer, now_, bytes);
            known->bucket.take(now_, bytes);
            break;
        default: {
            const bool may = known->bucket.next(now_, bytes) == now_;
            EXPECT_EQ(lawn_pacer_take(pacer, now_, bytes), may);
            if (may) {
                known->bucket.take(now_, bytes);
            } else {
                known->waits = true;
                known->wanted = bytes;
            }
        }
        }
    }

    void check(const Known &known)
    {
        const lawn_pacer_t *const pacer = &known.flow->pacer;
        const uint64_t bytes = any(20);
        EXPECT_EQ(std::max(lawn_pacer_next(pacer, bytes), now_),
                  known.bucket.next(now_, bytes));
        EXPECT_EQ(lawn_pacer_allowance(pacer, now_), known.bucket.left(now_));
        EXPECT_EQ(lawn_pacer_is_waiting(pacer), known.waits);
    }

    // Under a budget, a flow waits on; without one, none that may go, unless a
    // callback has made it wait.
    void pass()
    {
        const unsigned budget = below(2) == 0 ? 0 : 1U + random_() % 3;
        for (Known &known : known_) {
            known.was_touched = false;
        }
        pass_at(now_ + any(below(50) == 0 ? 45 : 24), budget);
        for (const Known &known : known_) {
            EXPECT_TRUE(budget != 0 || known.was_touched || !known.waits ||
                        known.bucket.next(now_, known.wanted) > now_);
        }
    }

    std::mt19937_64 random_;
    std::vector<Known> known_;
};

TEST_F(PacerModel, DoesAsTheBucketSays)
{
    for (uint64_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        random_.seed(seed);
        for (uint64_t i = 0; i < scaled(5000) && !HasFailure(); ++i) {
            if (below(3) == 0) {
                pass();
            } else {
                act(&known_[static_cast<size_t>(below(8))]);
            }
            check(known_[static_cast<size_t>(below(8))]);
        }
    }
}

// Whatever the polls, no span of time, from any packet to any other one, has
// more than its burst and the rate allow.
TEST_F(PacerModel, NoSpanHasMoreThanBurstAndRateAllow)
{
    struct Sent {
        lawn_time_t at;
        uint64_t sum; // of bytes, with this packet
        uint64_t bytes;
    };
    for (uint64_t seed = 0; seed < 30; ++seed) {
        random_.seed(seed);
        const double rate = 1e3 * static_cast<double>(any(30) + 1);
        const uint64_t burst = any(16);
        Flow *const flow = open(rate, burst);
        std::vector<Sent> all = {{0, 0, 0}};
        uint64_t largest = 0;
        while (all.size() < 300) {
            const uint64_t bytes = any(14);
            if (take(flow, bytes)) {
                all.push_back({now_, all.back().sum + bytes, bytes});
                largest = std::max(largest, bytes);
                now_ += below(2) == 0 ? 0 : any(20);
            } else {
                lawn_pacer_stop(&flow->pacer);
                now_ = lawn_pacer_next(&flow->pacer, bytes) +
                       (below(2) == 0 ? 0 : any(24));
            }
        }
        const double most = static_cast<double>(std::max(burst, largest));
        for (size_t i = 1; i < all.size(); ++i) {
            for (size_t j = i; j < all.size(); ++j) {
                const double span = static_cast<double>(all[j].at - all[i].at);
                const uint64_t sum = all[j].sum - all[i - 1].sum;
                ASSERT_LE(static_cast<double>(sum),
                          (most + rate * span / 1e9) * (1 + 1e-12))
                    << "seed " << seed << ", packets " << i << " to " << j;
            }
        }
    }
}

} // namespace
