// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Reading and replaying traces: a recorded run fires again what it fired, when
// it did, and what is no trace is refused.

#include "trace_fixture.h"

#include "replay.h"

#include <lawn/conn.h>

#include <algorithm>
#include <random>
#include <set>
#include <stdexcept>

std::vector<void *> bench::expired;

using namespace lawn_test;

namespace
{

using Call = bench::Trace::Call;

struct Fire {
    bench::Time now; // of the poll
    size_t timer;

    bool operator==(const Fire &other) const
    {
        return now == other.now && timer == other.timer;
    }
};

void PrintTo(const Fire &fire, std::ostream *out)
{
    *out << fire.timer << " at " << fire.now;
}

// What the contender below has seen.
struct Seen {
    lawn_timer_t *nodes;
    std::vector<bench::Time> polls;
    std::vector<bench::Time> ttls;
    std::vector<Fire> fires;
    bench::Config config;
    unsigned stops = 0;
} seen;

constexpr bench::Time origin = 1'000'000'000; // of a replay

// Lawn, watched.
bench::Contender contender()
{
    bench::Contender c = {};
    c.traits.name = "lawn";
    c.node_size = sizeof(lawn_timer_t);
    c.create = [](const bench::Config &config) -> void * {
        lawn_t *lawn = nullptr;
        lawn_create(nullptr, &lawn);
        seen.config = config;
        return lawn;
    };
    c.destroy = [](void *lawn) { lawn_destroy(static_cast<lawn_t *>(lawn)); };
    c.make_nodes = [](void *memory, size_t count) {
        seen = {};
        seen.nodes = static_cast<lawn_timer_t *>(memory);
        for (size_t i = 0; i < count; ++i) {
            lawn_timer_init(&seen.nodes[i], [](lawn_timer_t *t, lawn_time_t) {
                bench::expired.push_back(t);
            });
        }
    };
    c.end_nodes = [](void *, size_t) {};
    c.start = [](void *lawn, void *node, bench::Time now, bench::Time ttl) {
        seen.ttls.push_back(ttl);
        lawn_timer_start(static_cast<lawn_t *>(lawn),
                         static_cast<lawn_timer_t *>(node), now, ttl);
    };
    c.stop = [](void *lawn, void *node) {
        ++seen.stops;
        return lawn_timer_stop(static_cast<lawn_t *>(lawn),
                               static_cast<lawn_timer_t *>(node));
    };
    c.advance = [](void *lawn, bench::Time now, unsigned budget) {
        const unsigned fired =
            lawn_advance(static_cast<lawn_t *>(lawn), now, budget);
        seen.polls.push_back(now - origin);
        for (const void *node : bench::expired) {
            const auto *const timer = static_cast<const lawn_timer_t *>(node);
            seen.fires.push_back(
                {now - origin, static_cast<size_t>(timer - seen.nodes)});
        }
        return fired;
    };
    return c;
}

// Once, after a poll at 0, and whole: a replay looks at the clock at every
// 4096th event.
bench::Result replay_once(const bench::Trace &trace)
{
    return bench::replay(trace, contender(), bench::Load());
}

// Those of one poll in the order of the timers: how they fire is Lawn's affair.
std::vector<Fire> sorted(std::vector<Fire> fires)
{
    std::sort(fires.begin(), fires.end(), [](const Fire &a, const Fire &b) {
        return a.now != b.now ? a.now < b.now : a.timer < b.timer;
    });
    return fires;
}

std::vector<Fire> recorded_fires(const bench::Trace &trace)
{
    std::vector<Fire> fires;
    bench::Time poll = 0;
    for (const bench::Trace::Event &event : trace.events) {
        if (event.call == Call::poll) {
            poll = event.now;
        } else if (event.call == Call::fire) {
            fires.push_back({poll, event.timer});
        }
    }
    return fires;
}

class Replay : public Trace
{
protected:
    bench::Trace read(const std::string &text) const
    {
        return bench::read_trace(write("text", text).c_str());
    }

    std::string refusal(const std::string &text) const
    {
        try {
            read(text);
        } catch (const std::runtime_error &error) {
            return error.what();
        }
        return "accepted";
    }
};

constexpr char trace_header[] = "lawn-trace 1 ticks_per_sec 1e9 budget 64\n";

// Connections on a lossy network, some of which lose their peer.
void run_connections(lawn_engine_t *engine, lawn_time_t *now)
{
    lawn_conn_params_t params = {};
    params.rto_initial = 20 * msec;
    params.rto_min = msec;
    params.rto_max = 100 * msec;
    params.backoff = 2;
    params.peer_timeout = 300 * msec;
    params.keepalive_idle = 100 * msec;
    params.keepalive_interval = 50 * msec;
    params.keepalive_probes = 3;
    lawn_conn_ops_t ops = {};
    std::vector<lawn_conn_t> conns(20);
    for (lawn_conn_t &conn : conns) {
        ASSERT_EQ(lawn_conn_open(engine, &params, &ops, &conn), LAWN_OK);
    }
    std::mt19937_64 random(1);
    *now += msec; // as long as a round trip takes at most
    for (int i = 0; i < 700; ++i) {
        lawn_conn_t *const conn = &conns[random() % conns.size()];
        const bool is_dead = conn < &conns[5] && i > 200;
        if (i % 2 == 0) {
            lawn_conn_on_send(conn, *now);
        } else if (!is_dead && random() % 10 != 0) {
            lawn_conn_on_ack(conn, *now, random() % msec, random() % 2 == 0);
        }
        *now += random() % (2 * msec);
        lawn_engine_progress(engine);
    }
    for (lawn_conn_t &conn : conns) {
        lawn_conn_close(&conn);
    }
}

TEST_F(Replay, FiresWhatWasFiredWhenItWas)
{
    record();
    run_connections(engine_, &now_);
    const uint64_t passes = stats().passes;
    const uint64_t fired = stats().fired;
    finish();
    const bench::Trace trace = bench::read_trace(path_of("trace").c_str());
    EXPECT_EQ(trace.timers, 40U);
    const std::vector<Fire> fires = recorded_fires(trace);
    EXPECT_EQ(fires.size(), fired);
    EXPECT_GT(fires.size(), 100U);

    ASSERT_LT(trace.events.size() + passes, 4096U);
    const bench::Result result = replay_once(trace);
    ASSERT_TRUE(result);
    EXPECT_GT(*result, 0);
    EXPECT_EQ(sorted(seen.fires), sorted(fires));
    EXPECT_EQ(seen.polls.size(), 1 + passes);
    EXPECT_EQ(seen.config.capacity, 40U);
    EXPECT_EQ(seen.config.longest_ttl, trace.longest_ttl);
}

TEST_F(Replay, SpreadsPollsEvenly)
{
    const bench::Trace trace =
        read(std::string(trace_header) + "0 start a 60\n"
                                         "10 poll 1\n"
                                         "47 poll 4\n"
                                         "3 poll 1\n"
                                         "0 fire a\n"
                                         "0 poll 2\n"
                                         "5 start b inf\n");
    ASSERT_TRUE(replay_once(trace));
    EXPECT_EQ(seen.polls,
              (std::vector<bench::Time>{0, 10, 21, 32, 43, 57, 60, 60, 60}));
    EXPECT_EQ(seen.fires, (std::vector<Fire>{{60, 0}}));
    EXPECT_EQ(seen.ttls, (std::vector<bench::Time>{60, bench::never}));
}

TEST_F(Replay, PollsHaveTheBudget)
{
    const bench::Trace trace =
        read("lawn-trace 1 ticks_per_sec 1e9 budget 2\n"
             "0 start a 5\n0 start b 5\n0 start c 5\n5 poll 1\n3 poll 1\n");
    ASSERT_TRUE(replay_once(trace));
    // Which of them come first is not said.
    std::vector<bench::Time> times;
    std::set<size_t> timers;
    for (const Fire &fire : seen.fires) {
        times.push_back(fire.now);
        timers.insert(fire.timer);
    }
    EXPECT_EQ(times, (std::vector<bench::Time>{5, 5, 8}));
    EXPECT_EQ(timers, (std::set<size_t>{0, 1, 2}));
}

TEST_F(Replay, PauseAndStopAreStops)
{
    ASSERT_TRUE(replay_once(read(std::string(trace_header) + "0 start 1 5\n"
                                                             "0 pause 1\n"
                                                             "0 stop 1\n"
                                                             "9 poll 1\n")));
    EXPECT_EQ(seen.stops, 2U);
    EXPECT_EQ(seen.fires.size(), 0U);
}

TEST_F(Replay, BoundedSchemesGetBoundedTtls)
{
    const bench::Trace trace =
        read(std::string(trace_header) + "0 start 1 500\n"
                                         "0 start 2 inf\n");
    bench::Contender bounded = contender();
    bounded.traits.bounded_ttl = true;
    ASSERT_TRUE(bench::replay(trace, bounded, bench::Load()));
    EXPECT_EQ(seen.ttls, (std::vector<bench::Time>{500, 500}));
    EXPECT_EQ(seen.config.longest_ttl, 500U);
}

TEST_F(Replay, GivesNothingWhereThereIsNothingToMeasure)
{
    const bench::Trace trace = read(std::string(trace_header) + "1 poll 1\n");
    EXPECT_TRUE(replay_once(trace));
    EXPECT_FALSE(replay_once(read(trace_header)).is_available);

    bench::Contender with_clock = contender();
    with_clock.wait = [](void *, bench::Time) {};
    EXPECT_FALSE(bench::replay(trace, with_clock, bench::Load()).is_available);

    bench::Contender not_here = contender();
    not_here.create = [](const bench::Config &) -> void * { return nullptr; };
    EXPECT_FALSE(bench::replay(trace, not_here, bench::Load()).is_available);

    bench::Contender wrong = contender();
    wrong.advance = [](void *, bench::Time, unsigned) { return 1U; };
    EXPECT_THROW(bench::replay(trace, wrong, bench::Load()),
                 std::runtime_error);
}

TEST_F(Replay, ConvertsTicks)
{
    const bench::Trace fast = read("lawn-trace 1 ticks_per_sec 2.5e9 budget 0\n"
                                   "0 start 7f00 250\n"
                                   "125 poll 1\n"
                                   "125 start 7f00 inf\n");
    ASSERT_EQ(fast.events.size(), 3U);
    EXPECT_EQ(fast.events[0].value, 100U);
    EXPECT_EQ(fast.events[1].now, 50U);
    EXPECT_EQ(fast.events[2].now, 100U);
    EXPECT_EQ(fast.events[2].value, bench::never);
    EXPECT_EQ(fast.events[2].timer, fast.events[0].timer);
    EXPECT_EQ(fast.longest_ttl, 100U);

    const bench::Trace slow =
        read("lawn-trace 1 ticks_per_sec 1000 budget 0\n"
             "3 start ffffffffffffffff 18446744073709551614\n");
    EXPECT_EQ(slow.events[0].now, 3 * msec);
    EXPECT_EQ(slow.events[0].value, bench::never); // after some centuries
    EXPECT_EQ(slow.longest_ttl, 0U);
}

TEST_F(Replay, AcceptsComments)
{
    const bench::Trace trace = read(
        std::string(trace_header) + "# of any length and kind \xff\n#" +
        std::string(10'000, 'x') + "\n#\n1 poll 18446744073709551615\n#end\n");
    ASSERT_EQ(trace.events.size(), 1U);
    EXPECT_EQ(trace.events[0].value, UINT64_MAX);
}

TEST_F(Replay, RefusesFilesThatCannotBeRead)
{
    for (const std::string &path : {path_of("none"), directory_}) {
        try {
            bench::read_trace(path.c_str());
            ADD_FAILURE() << path;
        } catch (const std::runtime_error &error) {
            EXPECT_EQ(std::string(error.what()).find(path + ": "), 0U);
        }
    }
    EXPECT_THROW(bench::read_trace("/dev/zero"), std::runtime_error);
}

TEST_F(Replay, RefusesWhatIsNoTrace)
{
    struct Case {
        std::string text;
        std::string message;
    };
    const std::string first = trace_header;
    const Case cases[] = {
        {"", "1: empty, without the header of a trace"},
        {"\n", "1: the line is empty"},
        {"1 poll 1\n", "1: not the header of a trace"},
        {"lawn-trace", "1: the last line is incomplete"},
        {"lawn-trace 3 new\n",
         "1: a version that is not known here; these are 1 and 2"},
        {"lawn-trace 1 ticks_per_sec 1e9\n", "1: the header has other fields"},
        {"lawn-trace 1 ticks_per_sec 0 budget 1\n", "1: bad ticks_per_sec '0'"},
        {"lawn-trace 1 ticks_per_sec nan budget 1\n",
         "1: bad ticks_per_sec 'nan'"},
        {"lawn-trace 1 ticks_per_sec 1e9x budget 1\n",
         "1: bad ticks_per_sec '1e9x'"},
        {"lawn-trace 1 ticks_per_sec 1e9 budget -1\n", "1: bad budget '-1'"},
        {first + "#\n\n", "3: the line is empty"},
        {first + "7\n", "2: no event"},
        {first + "7 jump 1\n", "2: unknown event 'jump'"},
        {first + "7 stall 1\n", "2: unknown event 'stall'"},
        {first + "7 poll\n", "2: wrong number of fields for 'poll'"},
        {first + "7 start 1\n", "2: wrong number of fields for 'start'"},
        {first + "7 stop 1 2\n", "2: wrong number of fields for 'stop'"},
        {first + "7 stop 1 \n", "2: wrong number of fields for 'stop'"},
        {first + "7  stop 1\n", "2: unknown event ''"},
        {first + " 7 stop 1\n", "2: unknown event '7'"},
        {first + "-7 stop 1\n", "2: bad time '-7'"},
        {first + "1.5 stop 1\n", "2: bad time '1.5'"},
        {first + "7 stop 0x1\n", "2: bad timer '0x1'"},
        {first + "7 stop 11111111111111111\n",
         "2: bad timer '11111111111111111'"},
        {first + "7 start 1 infinite\n", "2: bad TTL 'infinite'"},
        {first + "7 start 1 18446744073709551616\n",
         "2: bad TTL '18446744073709551616'"},
        {first + "7 poll 0\n", "2: bad count '0'"},
        {first + "7 poll ff\n", "2: bad count 'ff'"},
        {first + "7 fire 1\n", "2: a timer fires before any poll"},
        {first + "18446744073709551615 poll 1\n",
         "2: the trace is too long a time"},
        {first + "1 poll 1\n18446744073709551615 poll 1\n",
         "3: the trace is too long a time"},
        {first + "1 poll 1\n1 poll 1", "3: the last line is incomplete"},
        {first + "1 poll 1\r\n", "2: not text"},
        {first + "1\tpoll 1\n", "2: not text"},
        {first + std::string(1, '\0') + "\n", "2: not text"},
        {first + "1 poll \xff\n", "2: not text"},
        {first + std::string(1'000, '7') + "\n", "2: the line is too long"},
    };
    for (const Case &c : cases) {
        EXPECT_EQ(refusal(c.text), path_of("text") + ":" + c.message);
    }
}

} // namespace
