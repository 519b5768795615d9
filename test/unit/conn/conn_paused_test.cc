// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A program that polls at all times, but is stopped once, after some losses or
// none. A peer that lives is never dead. One that is dead is found in time,
// where only the time counts in which the program runs.

#include "conn_fixture.h"

#include <deque>
#include <tuple>

using namespace lawn_test;

namespace
{

// What becomes of the answers that arrive while the program does not run.
enum class Answers {
    wait,     // in the receive queue
    are_lost, // to a full receive ring
    are_none, // the peer is dead
};

// Losses before it, the pause, the peer timeout.
using Pause = std::tuple<unsigned, lawn_time_t, lawn_time_t, Answers>;

class Paused : public Conn, public testing::WithParamInterface<Pause>
{
protected:
    Paused()
        : losses_(std::get<0>(GetParam())), pause_(std::get<1>(GetParam())),
          answers_(std::get<3>(GetParam()))
    {
        create_engine(0); // a stall is 10 ms
        params_.peer_timeout = std::get<2>(GetParam());
        const auto poll = [](void *self) {
            return static_cast<Paused *>(self)->receive();
        };
        EXPECT_EQ(lawn_engine_add(engine_, poll, this, -1, nullptr), LAWN_OK);
        then_ = [this](lawn_conn_t *, char what) {
            if (what == 'd') {
                died_at_ = now_;
            } else {
                transmit(what == 'p');
            }
        };
    }

    // A connection that has measured its path, if it `knows` it, loses its
    // next message `losses_` times and sends it once more.
    void begin(bool knows)
    {
        lawn_conn_close(&conn_);
        open();
        take_log();
        arrivals_.clear();
        to_lose_ = 0;
        answered_ = 0;
        died_at_ = 0;
        transmissions_ = 0;
        is_alive_ = true;
        send_at_ = now_;
        while (answered_ < (knows ? 10 : 0)) {
            go_on();
        }
        to_lose_ = losses_;
        is_alive_ = answers_ != Answers::are_none;
        send_at_ = now_;
        transmissions_ = 0;
        while (transmissions_ <= losses_) {
            go_on();
        }
    }

    // Nothing is done for as long as the pause takes.
    void stop()
    {
        const lawn_time_t end = now_ + pause_;
        while (answers_ == Answers::are_lost && !arrivals_.empty() &&
               arrivals_.front().at < end) {
            arrivals_.pop_front();
        }
        transmissions_ = 0;
        pass_at(end);
    }

    // Polls at the next time at which something happens, and never late.
    void go_on(lawn_time_t end = infinity)
    {
        lawn_time_t next = std::min(lawn_engine_next(engine_), send_at_);
        if (!arrivals_.empty()) {
            next = std::min(next, arrivals_.front().at);
        }
        pass_at(std::max(now_, std::min({next, now_ + 5 * msec, end})));
        if (now_ >= send_at_) {
            send_at_ = infinity;
            sent_at_ = now_;
            send();
            transmit(false);
        }
    }

    void go_on_until(lawn_time_t end)
    {
        while (now_ < end && died_at_ == 0) {
            ASSERT_LT(transmissions_, 1000U) << "a storm";
            go_on(end);
        }
    }

    void transmit(bool is_probe)
    {
        ++transmissions_;
        if (!is_probe && to_lose_ != 0) {
            --to_lose_;
        } else if (is_alive_) {
            arrivals_.push_back({now_ + round_trip, now_, is_probe});
        }
    }

    // The next message follows a while after the answer to this one.
    unsigned receive()
    {
        unsigned count = 0;
        for (; !arrivals_.empty() && arrivals_.front().at <= now_; ++count) {
            const Arrival arrival = arrivals_.front();
            arrivals_.pop_front();
            if (arrival.is_probe) {
                lawn_conn_on_receive(&conn_, now_);
            } else if (send_at_ == infinity && arrival.sent_at >= sent_at_) {
                lawn_conn_on_ack_oldest(&conn_, now_, arrival.sent_at,
                                        infinity);
                ++answered_;
                send_at_ = now_ + 100 * msec;
            } else {
                lawn_conn_on_echo(&conn_, now_, arrival.sent_at);
            }
        }
        return count;
    }

    // The peer has answered something that was sent before the pause, or has
    // not, and answers all that is sent after it.
    void expect_alive()
    {
        go_on_until(now_ + round_trip / 2);
        stop();
        const unsigned before = answered_;
        go_on_until(now_ + 2 * params_.peer_timeout);
        EXPECT_EQ(died_at_, 0U) << take_log();
        EXPECT_GT(answered_ - before,
                  params_.peer_timeout / (101 * msec)); // of those after it
    }

    // The program stops when this much of the time is over until it would send
    // again, or find the peer dead.
    void expect_dead(double share)
    {
        const lawn_time_t sent_at = sent_at_;
        const lawn_time_t wait = lawn_timer_deadline(&conn_.retransmit) - now_;
        go_on_until(now_ + static_cast<lawn_time_t>(
                               share * static_cast<double>(wait - 1)));
        ASSERT_EQ(died_at_, 0U);
        stop();
        go_on_until(now_ + 3 * params_.peer_timeout);
        ASSERT_NE(died_at_, 0U);
        // It was given the chance to answer.
        EXPECT_GE(transmissions_, 1U);
        const lawn_time_t backed_off = lawn_conn_rto(&conn_);
        EXPECT_LE(died_at_ - sent_at - pause_,
                  params_.peer_timeout + 2 * backed_off)
            << take_log();
    }

    struct Arrival {
        lawn_time_t at;
        lawn_time_t sent_at;
        bool is_probe;
    };

    static constexpr lawn_time_t round_trip = msec;

    const unsigned losses_;
    const lawn_time_t pause_;
    const Answers answers_;
    std::deque<Arrival> arrivals_;
    bool is_alive_ = true;
    unsigned to_lose_ = 0;
    unsigned answered_ = 0;
    size_t transmissions_ = 0; // probes included
    lawn_time_t send_at_ = 0;  // INFINITY: a message is outstanding
    lawn_time_t sent_at_ = 0;  // for the first time
    lawn_time_t died_at_ = 0;
};

TEST_P(Paused, FindsThePeerDeadIfItIs)
{
    for (const bool probes : {false, true}) {
        keep_alive(probes ? 5 * sec : 0, sec, 3);
        for (const bool knows : {false, true}) {
            if (answers_ != Answers::are_none) {
                begin(knows);
                expect_alive();
                continue;
            }
            for (const double share : {0., .5, 1.}) {
                begin(knows);
                expect_dead(share);
            }
        }
    }
}

std::string name_of(const testing::TestParamInfo<Pause> &info)
{
    const auto &[losses, pause, timeout, answers] = info.param;
    constexpr const char *names[] = {"AnswersWait", "AnswersAreLost", "Dead"};
    return "Losses" + std::to_string(losses) + "Pause" +
           std::to_string(pause / msec) + "msTimeout" +
           std::to_string(timeout / msec) + "ms" +
           names[static_cast<int>(answers)];
}

INSTANTIATE_TEST_SUITE_P(
    All, Paused,
    testing::Combine(testing::Range(0U, 5U),
                     testing::Values(1500 * msec, 31 * sec),
                     testing::Values(1 * sec, 30 * sec),
                     testing::Values(Answers::wait, Answers::are_lost,
                                     Answers::are_none)),
    name_of);

} // namespace
