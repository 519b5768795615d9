// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A flight against its model, under random operations from a seed. Operations
// also come from within the ops, which may close the connection, and free it
// with the flight and all messages. Some messages never get through.
//
// LAWN_TEST_SEED replays one seed; LAWN_TEST_SCALE is the share of seeds to run
// in percent (100), for runs under an instrument.

#include "../../environment.h"
#include "flight_model.h"

#include <random>
#include <string>

namespace
{

using lawn_test::environment;
using lawn_test::FlightModel;

class FlightDriver
{
public:
    explicit FlightDriver(uint64_t seed)
        : random_(seed), model_(is_one_in(3), !is_one_in(4)),
          closes_(is_one_in(2)), most_(is_one_in(2) ? 6 : 40)
    {
        model_.in_op = [this] { in_op(); };
    }

    void step()
    {
        if (!model_.is_open()) {
            model_.open();
        }
        const uint64_t what = any_of(10);
        if (what < 4) {
            model_.pass_after(is_one_in(20) ? any_of(100000000)
                                            : any_of(30000));
        } else if (what == 4 && is_one_in(4)) {
            model_.retransmit(attempt());
        } else {
            operate();
        }
        if (model_.exists()) {
            model_.check();
        }
    }

    const std::vector<uint64_t> &counts() const
    {
        return model_.counts;
    }

private:
    uint64_t any_of(uint64_t count)
    {
        return random_() % count;
    }

    bool is_one_in(uint64_t count)
    {
        return any_of(count) == 0;
    }

    unsigned attempt()
    {
        return static_cast<unsigned>(any_of(4));
    }

    // A time of sending, which may also be none or a false one.
    lawn_time_t echo_of(const FlightModel::Known &known)
    {
        const uint64_t what = any_of(4);
        return what == 0   ? known.sent_at
               : what == 1 ? any_of(model_.now + 1000)
                           : LAWN_TIME_INFINITY;
    }

    void operate()
    {
        const uint64_t what = any_of(16);
        const size_t i = model_.list.empty() ? 0 : any_of(model_.list.size());
        if (what < 5 && model_.list.size() < most_) {
            send();
        } else if (what == 5 && closes_ && is_one_in(40)) {
            model_.close();
        } else if (what == 6) {
            const size_t most = model_.ops.is_cumulative ? 5 : 2;
            model_.ack_several(
                [this] {
                    return model_.ops.is_cumulative
                               ? 0
                               : any_of(model_.list.size());
                },
                any_of(std::min(model_.list.size() + 1, most)));
        } else if (what < 15 && !model_.list.empty()) {
            // A message in a black hole is acknowledged at last.
            if (model_.list[i].gets_through || is_one_in(600)) {
                handle(i, what);
            }
        } else if (!model_.idle.empty()) {
            handle_idle(any_of(model_.idle.size()));
        }
        while (model_.idle.size() > 10) {
            FlightModel::take(&model_.idle, 0);
        }
    }

    void send()
    {
        FlightModel::Known known;
        if (!model_.idle.empty() && is_one_in(2)) {
            known = FlightModel::take(&model_.idle, any_of(model_.idle.size()));
        }
        known.gets_through = !is_one_in(15);
        model_.send(std::move(known));
    }

    void handle(size_t i, uint64_t what)
    {
        if (what == 7) {
            model_.send_again(i);
        } else if (what == 8) {
            model_.give_up(i);
        } else {
            model_.ack(i, echo_of(model_.list[i]));
        }
    }

    void handle_idle(size_t i)
    {
        if (is_one_in(4)) {
            model_.give_up_again(i);
            FlightModel::take(&model_.idle, i); // freed
        } else {
            model_.ack_again(i, echo_of(model_.idle[i]));
        }
    }

    void in_op()
    {
        if (closes_ && is_one_in(200)) {
            model_.free_all();
        }
        uint64_t left = is_one_in(2) ? any_of(5) : 0;
        while (left-- != 0 && model_.exists()) {
            if (model_.depth() < 3 && is_one_in(8)) {
                model_.retransmit(attempt());
            } else {
                operate();
            }
            if (model_.exists()) {
                model_.check();
            }
        }
    }

    std::mt19937_64 random_;
    FlightModel model_;
    const bool closes_;
    const size_t most_;
};

TEST(FlightModel, DoesAsTheModelSays)
{
    const uint64_t only = environment("LAWN_TEST_SEED", 0);
    const uint64_t seeds = only != 0 ? 1 : lawn_test::scaled(100) + 1;
    std::vector<uint64_t> counts(3);
    for (uint64_t i = 0; i < seeds; ++i) {
        const uint64_t seed = only != 0 ? only : i + 1;
        SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
        FlightDriver driver(seed);
        for (int n = 0; n < 5000; ++n) {
            driver.step();
            if (testing::Test::HasFailure()) {
                FAIL() << "step " << n;
            }
        }
        for (size_t k = 0; k < counts.size(); ++k) {
            counts[k] += driver.counts()[k];
        }
    }
    if (only == 0) {
        EXPECT_GT(counts[0], seeds * 100);
        EXPECT_GT(counts[1], seeds);
        EXPECT_GT(counts[2], seeds);
    }
    RecordProperty("sent_again", std::to_string(counts[0]));
    RecordProperty("black_holes", std::to_string(counts[1]));
    RecordProperty("left_out", std::to_string(counts[2]));
}

} // namespace
