// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Transports of each kind that lawn/conn.h names, each written as a user of the
// library would, on a network that loses packets. Nothing may hang, nothing may
// be sent without bound, and a peer must be found dead if it is, and only then.
//
// The bounds are about one and a half times the worst of 60 seeds.

#include "transport_cumulative.h"
#include "transport_other.h"
#include "transport_single.h"

#include <ostream>
#include <string>

namespace lawn_transport
{

constexpr uint32_t messages = 1000;
constexpr lawn_time_t peer_timeout = 30 * sec;
constexpr lawn_time_t rto_max = 1 * sec;
constexpr lawn_time_t keepalive_timeout = 25 * sec;

// How the ACKs of a kind are answered, and what it may cost. Shares are packets
// of the program, of all kinds, for each message.
struct Kind {
    const char *name;
    std::unique_ptr<Transport> (*make)();
    uint32_t window;
    bool has_echo; // without one, a back-off lasts (Karn)
    bool takes_any_order;
    uint32_t needless; // packets in 2,000 messages without loss, in any order
    double at_1;       // share at a loss of 1 %
    double at_5;
    double at_30;
    // Packets of a message that never gets through, besides those that are
    // backed off.
    uint32_t hole;
    enum { stops, passes, gives_up } at_hole; // what is behind the hole
};

template <class T, bool... options> std::unique_ptr<Transport> make()
{
    return std::make_unique<T>(options...);
}

template <size_t window> std::unique_ptr<Transport> make_requests()
{
    return std::make_unique<Requests>(window);
}

// A flight sends a hole only the 1st to 7th, 16th, 32nd, ... time that evidence
// says so. By hand, it is sent in each round trip of the others.
const Kind kinds[] = {
    {"SingleFlight", make<SingleFlight, false, false>, 16, true, true, 10, 1.1,
     1.25, 2.5, 15, Kind::passes},
    {"SingleFlightAsks", make<SingleFlight, true, false>, 16, true, true, 10,
     1.1, 1.25, 2.5, 15, Kind::passes},
    {"SingleFlightGivesUp", make<SingleFlight, true, true>, 16, true, true, 10,
     1.1, 1.25, 2.5, 8, Kind::gives_up},
    {"SingleFlightBare", make<SingleFlightBare>, 16, false, true, 60, 1.1, 1.25,
     2.5, 15, Kind::passes},
    {"SingleByHand", make<SingleByHand, true>, 16, true, true, 10, 1.1, 1.25,
     2.5, 50, Kind::passes},
    {"SingleByHandBare", make<SingleByHand, false>, 16, false, true, 60, 1.1,
     1.25, 2.5, 50, Kind::passes},
    {"CumulativeFlight", make<CumulativeFlight, true>, 16, true, true, 10, 1.1,
     1.2, 2, 4, Kind::stops},
    {"CumulativeFlightBare", make<CumulativeFlight, false>, 16, false, true, 10,
     1.1, 1.2, 2, 4, Kind::stops},
    {"CumulativeByHand", make<CumulativeByHand, true>, 16, true, true, 10, 1.1,
     1.2, 2, 4, Kind::stops},
    {"CumulativeByHandBare", make<CumulativeByHand, false>, 16, false, true, 10,
     1.1, 1.2, 2, 4, Kind::stops},
    // What comes early is asked for again, so order matters.
    {"Nacks", make<Nacks>, 16, true, true, 1500, 1.5, 2, 2.75, 6, Kind::stops},
    {"GoBackNFlight", make<GoBackNFlight>, 16, true, false, 5, 1.5, 2.5, 12, 4,
     Kind::stops},
    {"GoBackNByHand", make<GoBackNByHand, true>, 16, true, false, 5, 1.5, 2.5,
     12, 4, Kind::stops},
    {"GoBackNByHandBare", make<GoBackNByHand, false>, 16, false, false, 5, 1.5,
     2.5, 12, 4, Kind::stops},
    {"RequestsOneByOne", make_requests<1>, 1, true, true, 10, 1.1, 1.3, 3, 4,
     Kind::stops},
    {"Requests", make_requests<16>, 16, true, true, 10, 1.1, 1.25, 2.5, 50,
     Kind::passes},
    {"OnAckOf", make<Plain, true>, 16, true, true, 5, 1.1, 1.2, 2.25, 4,
     Kind::stops},
    {"OnAck", make<Plain, false>, 16, false, true, 5, 1.1, 1.2, 2.25, 4,
     Kind::stops},
};

struct Case {
    const Kind *kind;
    lawn_time_t round_trip;
    bool keeps_order;
};

std::string name_of(const Case &c)
{
    return std::string(c.kind->name) +
           (c.round_trip == 10 * usec ? "_10us" : "_20ms") +
           (c.keeps_order ? "_InOrder" : "_AnyOrder");
}

std::ostream &operator<<(std::ostream &out, const Case &c)
{
    return out << name_of(c);
}

std::vector<Case> cases()
{
    std::vector<Case> cases;
    for (const Kind &kind : kinds) {
        for (const lawn_time_t round_trip : {10 * usec, 20 * msec}) {
            cases.push_back({&kind, round_trip, true});
            if (kind.takes_any_order) {
                cases.push_back({&kind, round_trip, false});
            }
        }
    }
    return cases;
}

class TransportTest : public testing::TestWithParam<Case>
{
protected:
    // A connection's share of a jitter depends on its address, so there is
    // none.
    TransportTest()
    {
        weather_.round_trip = round_trip_;
        weather_.keeps_order = GetParam().keeps_order;
        params_.rto_initial = 10 * round_trip_;
        params_.rto_max = rto_max;
        params_.backoff = 2;
        params_.peer_timeout = peer_timeout;
        params_.keepalive_idle = 10 * sec;
        params_.keepalive_interval = 5 * sec;
        params_.keepalive_probes = 3;
        plan_.messages = messages;
        plan_.most_time = 2000 * sec;
    }

    Outcome run()
    {
        const std::unique_ptr<Transport> transport = kind_.make();
        return World(transport.get(), weather_, params_, plan_).run();
    }

    // All got through, in this time, with so many packets for each message.
    void expect_delivered(const Outcome &outcome, double share,
                          lawn_time_t time)
    {
        const uint32_t packets = outcome.data + outcome.others;
        EXPECT_EQ(outcome.done, plan_.messages);
        EXPECT_EQ(outcome.deaths, 0U);
        EXPECT_LE(packets, share * plan_.messages);
        EXPECT_LE(outcome.most, 45U);
        EXPECT_LE(outcome.took, time);
    }

    // So many times what it takes if each window takes one round trip.
    lawn_time_t rounds(lawn_time_t factor) const
    {
        return factor * round_trip_ * (plan_.messages / kind_.window + 1);
    }

    // A few losses. Without an echo, some wait for a back-off that lasts.
    lawn_time_t usual_time() const
    {
        return kind_.has_echo ? rounds(5) : rounds(40) + 4 * rto_max;
    }

    // The peer is found dead within `timeout` and two RTOs after the latest ACK
    // that can have come from it.
    void expect_dead(const Outcome &outcome, lawn_conn_reason_t reason,
                     lawn_time_t timeout)
    {
        ASSERT_EQ(outcome.deaths, 1U);
        EXPECT_EQ(outcome.reason, reason);
        EXPECT_GE(outcome.died_at - outcome.half_at, timeout - round_trip_);
        EXPECT_LE(outcome.died_at - outcome.half_at,
                  timeout + round_trip_ * 5 / 4 + 2 * outcome.rto_at_half);
        EXPECT_LE(outcome.data, kind_.at_5 * messages);
        EXPECT_LE(outcome.others, 10U);
    }

    const Kind &kind_ = *GetParam().kind;
    const lawn_time_t round_trip_ = GetParam().round_trip;
    Weather weather_;
    lawn_conn_params_t params_ = {};
    Plan plan_;
};

TEST_P(TransportTest, SendsNothingTwiceWithoutALoss)
{
    plan_.messages = 2 * messages;
    const uint32_t most = weather_.keeps_order ? 5 : kind_.needless;
    for (const bool is_at_once : {false, true}) {
        plan_.is_at_once = is_at_once;
        const Outcome outcome = run();
        expect_delivered(outcome, 2, rounds(3) / 2);
        EXPECT_LE(outcome.data - plan_.messages, most);
        EXPECT_LE(outcome.others, 15U);
    }
}

TEST_P(TransportTest, DeliversAtFewLosses)
{
    for (weather_.seed = 1; weather_.seed <= 2; ++weather_.seed) {
        weather_.loss = 0.01;
        expect_delivered(run(), kind_.at_1, usual_time());
        weather_.loss = 0.05;
        expect_delivered(run(), kind_.at_5, usual_time());
    }
}

// Here it takes seconds when one message is lost 15 times. Without an echo, the
// RTO hardly ever comes back from rto_max. With the 10 s that are the default,
// the peer timeout would be four attempts, and too short.
TEST_P(TransportTest, DeliversAtManyLosses)
{
    weather_.loss = 0.3;
    expect_delivered(run(), kind_.at_30,
                     kind_.has_echo ? rounds(100) + 4 * rto_max
                                    : messages * rto_max);
}

TEST_P(TransportTest, DeliversWindowsThatAreSentAtOnce)
{
    plan_.is_at_once = true;
    weather_.loss = 0.05;
    expect_delivered(run(), kind_.at_5, usual_time());
}

// It goes on when the outage is over, at the latest after as long again. Where
// a back-off lasts, each message of the window may wait for it.
TEST_P(TransportTest, GoesOnAfterAnOutage)
{
    plan_.outage = 1000 * round_trip_;
    const lawn_time_t more = kind_.has_echo ? 0 : 16 * rto_max;
    expect_delivered(run(), kind_.at_5, 2 * plan_.outage + rounds(5) + more);
}

TEST_P(TransportTest, FindsADeadPeerByItsTimeout)
{
    params_.keepalive_idle = 0;
    plan_.outage = never;
    for (const double loss : {0.0, 0.01}) {
        weather_.loss = loss;
        expect_dead(run(), LAWN_CONN_PEER_TIMEOUT, peer_timeout);
    }
}

TEST_P(TransportTest, FindsADeadPeerByKeepalive)
{
    plan_.outage = never;
    expect_dead(run(), LAWN_CONN_KEEPALIVE, keepalive_timeout);
}

// Nothing is outstanding when it dies.
TEST_P(TransportTest, FindsADeadPeerWhileIdle)
{
    plan_.is_at_once = true;
    plan_.outage = never;
    plan_.idle = 1000 * sec;
    plan_.messages = messages / 32 * 32; // the first half is whole windows
    expect_dead(run(), LAWN_CONN_KEEPALIVE, keepalive_timeout);
}

TEST_P(TransportTest, AnIdlePeerLives)
{
    plan_.is_at_once = true;
    plan_.idle = 200 * sec;
    plan_.messages = messages / 32 * 32;
    weather_.loss = 0.01;
    expect_delivered(run(), kind_.at_5, plan_.idle + usual_time());
}

INSTANTIATE_TEST_SUITE_P(, TransportTest, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case> &info) {
                             return name_of(info.param);
                         });

class TransportHole : public TransportTest
{
protected:
    // Packets of a silence that lasts for the peer timeout: the RTO doubles up
    // to its greatest, and stays there.
    uint32_t backed_off() const
    {
        uint32_t count = peer_timeout / rto_max;
        for (lawn_time_t rto = round_trip_; rto < rto_max; rto *= 2) {
            ++count;
        }
        return count;
    }
};

// One message never gets through, and no number of retries is too great. The
// peer timeout begins with the latest ACK of another.
TEST_P(TransportHole, IsNotSentForEver)
{
    weather_.hole = messages / 2;
    const Outcome outcome = run();
    EXPECT_LE(outcome.data - outcome.of_hole, kind_.at_5 * messages);
    EXPECT_LE(outcome.others, 20U);
    EXPECT_FALSE(outcome.is_flood);
    if (kind_.at_hole == Kind::gives_up) {
        expect_delivered(outcome, kind_.at_1, rounds(2));
        EXPECT_EQ(outcome.of_hole, kind_.hole);
        return;
    }
    EXPECT_LE(outcome.of_hole, kind_.hole + backed_off());
    // Where the hole stops what is behind it, the rest of its window may pass.
    const bool passes = kind_.at_hole == Kind::passes;
    EXPECT_GE(outcome.done, passes ? messages - 1 : weather_.hole);
    EXPECT_LT(outcome.done, passes ? messages : weather_.hole + kind_.window);
    EXPECT_EQ(outcome.deaths, 1U);
    EXPECT_EQ(outcome.reason, LAWN_CONN_PEER_TIMEOUT);
    EXPECT_LE(outcome.took,
              rounds(3) / 2 + peer_timeout + 2 * outcome.rto_at_half);
}

INSTANTIATE_TEST_SUITE_P(, TransportHole, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case> &info) {
                             return name_of(info.param);
                         });

} // namespace lawn_transport
