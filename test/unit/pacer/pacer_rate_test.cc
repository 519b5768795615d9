// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How exact the rate is where the loop polls seldom, and how fair under a
// budget.

#include "pacer_fixture.h"

#include <algorithm>
#include <climits>
#include <random>

using namespace lawn_test;

namespace
{

// A flow that always has packets, which it sends as it may.
class PacerRate : public PacerTest
{
protected:
    struct Sender {
        Flow *flow = nullptr;
        uint64_t size = 0;
        uint64_t sent = 0; // bytes
    };

    // Sends up to `most` packets, and then waits.
    void send(Sender *sender, unsigned most)
    {
        for (unsigned i = 0; i < most; ++i) {
            if (!take(sender->flow, sender->size)) {
                return;
            }
            sender->sent += sender->size;
        }
        lawn_pacer_yield(&sender->flow->pacer, now_);
    }

    void begin(Sender *sender, double rate, uint64_t burst, uint64_t size,
               unsigned most = UINT_MAX)
    {
        sender->flow = open(rate, burst);
        sender->size = size;
        sender->flow->on_ready = [this, sender, most](lawn_time_t now) {
            now_ = now;
            send(sender, most);
        };
        send(sender, most);
    }
};

struct Speed {
    const char *name;
    double bits;   // per second
    uint64_t size; // of a packet
};

class PacerSpeed : public PacerRate, public testing::WithParamInterface<Speed>
{
};

// A poll each 10 us, and one up to 10 us late: the error is below 1 % over the
// longer of 10 ms and 1,000 packets, though the loop is a thousand packets
// coarse at the fastest.
TEST_P(PacerSpeed, IsExactToOnePercent)
{
    const double rate = GetParam().bits / 8;
    const uint64_t size = GetParam().size;
    const lawn_time_t poll = 10 * usec;
    const auto two_polls =
        static_cast<uint64_t>(rate * 2 * static_cast<double>(poll) / 1e9);
    for (const bool is_late : {false, true}) {
        Sender sender;
        begin(&sender, rate, two_polls + size, size);
        const lawn_time_t from = now_;
        const uint64_t before = sender.sent;
        const lawn_time_t whole = std::max(
            10 * msec, static_cast<lawn_time_t>(
                           1000 * static_cast<double>(size) / rate * 1e9));
        std::mt19937_64 random(1);
        while (now_ < from + whole) {
            // Polls before that find nothing.
            const lawn_time_t idle = lawn_next(lawn_) - now_;
            pass_at(now_ + (idle / poll + 1) * poll -
                    (is_late ? random() % poll : 0));
        }
        const double expected = rate * static_cast<double>(now_ - from) / 1e9;
        const double sent = static_cast<double>(sender.sent - before);
        EXPECT_LE(sent, expected * 1.0001 + static_cast<double>(size));
        EXPECT_GE(sent, expected * .99 - static_cast<double>(size));
        lawn_pacer_stop(&sender.flow->pacer);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Each, PacerSpeed,
    testing::Values(Speed{"1Mbit", 1e6, 64}, Speed{"1MbitLarge", 1e6, 9000},
                    Speed{"10Mbit", 1e7, 1500}, Speed{"1Gbit", 1e9, 1500},
                    Speed{"10Gbit", 1e10, 4096}, Speed{"100Gbit", 1e11, 64},
                    Speed{"400Gbit", 4e11, 4096},
                    Speed{"400GbitSegments", 4e11, 65536}),
    [](const testing::TestParamInfo<Speed> &speed) {
        return std::string(speed.param.name);
    });

// The sums are exact: after a million bytes of 3 ticks and a third.
TEST_F(PacerRate, ErrorsDoNotAddUp)
{
    Flow *const flow = open(3e8, 2);
    for (int i = 0; i < 1'000'000; ++i) {
        now_ = std::max(now_, lawn_pacer_next(&flow->pacer, 1));
        ASSERT_TRUE(take(flow, 1));
    }
    EXPECT_NEAR(static_cast<double>(now_ - start), 1e6 / .3, 10);
}

// A thousand flows of which all are due in each pass, and a budget for a
// hundred: each gets its turn before one has its second.
TEST_F(PacerRate, ASmallBudgetIsSharedFairly)
{
    constexpr unsigned count = 1000;
    std::vector<Sender> senders(count);
    for (Sender &sender : senders) {
        begin(&sender, 1e9, 1500, 1500, 1);
    }
    for (int i = 0; i < 5000; ++i) {
        pass_at(now_ + 10 * usec, 100);
    }
    const auto [least, most] = std::minmax_element(
        senders.begin(), senders.end(),
        [](const Sender &a, const Sender &b) { return a.sent < b.sent; });
    EXPECT_GE(least->sent, 400U * 1500);
    EXPECT_LE(most->sent - least->sent, 4U * 1500);
}

// Those that ask for more are not served at the cost of those that ask for
// less.
TEST_F(PacerRate, ASlowFlowIsNotStarvedByFastOnes)
{
    std::vector<Sender> fast(100);
    for (Sender &sender : fast) {
        begin(&sender, 1e12, 1500, 1500, 1);
    }
    Sender slow;
    begin(&slow, 1.5e6, 1500, 1500, 1); // a packet each millisecond
    const uint64_t before = slow.sent;
    for (int i = 0; i < 10'000; ++i) {
        pass_at(now_ + 10 * usec, 10);
    }
    const double expected = 1.5e6 * .1;
    EXPECT_GE(static_cast<double>(slow.sent - before), expected * .8);
    EXPECT_LE(static_cast<double>(slow.sent - before), expected * 1.01);
}

} // namespace
