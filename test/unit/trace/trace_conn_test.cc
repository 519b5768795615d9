// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a trace tells of connections and stalls: what a connection knows at each
// start and pause of its timer, and what happens to it.

#include "trace_fixture.h"

#include <lawn/conn.h>

using namespace lawn_test;

namespace
{

class TraceConn : public Trace
{
protected:
    TraceConn()
    {
        params_of_conn_.rto_initial = 20 * msec;
        params_of_conn_.rto_max = sec;
        params_of_conn_.backoff = 2;
        params_of_conn_.peer_timeout = 100 * msec;
    }

    ~TraceConn() override
    {
        if (engine_) {
            lawn_conn_close(&conn_);
        }
    }

    void open_conn()
    {
        ASSERT_EQ(lawn_conn_open(engine_, &params_of_conn_, &ops_, &conn_),
                  LAWN_OK);
    }

    // Without what comes before the first line that ends with `end`.
    std::string after(const std::string &end)
    {
        const std::string trace = finish();
        const size_t at = trace.find(end);
        EXPECT_NE(at, std::string::npos) << trace;
        return at == std::string::npos ? trace : trace.substr(at + end.size());
    }

    std::string name() const
    {
        return name_of(&conn_.retransmit);
    }

    static std::string name_of(const lawn_timer_t *timer)
    {
        std::ostringstream text;
        text << std::hex << reinterpret_cast<uintptr_t>(timer);
        return text.str();
    }

    lawn_conn_params_t params_of_conn_ = {};
    lawn_conn_ops_t ops_ = {};
    lawn_conn_t conn_ = {};
};

TEST_F(TraceConn, TellsWhatAConnectionKnows)
{
    record();
    open_conn();
    now_ += 5;
    lawn_conn_on_send(&conn_, now_);
    now_ += 1000;
    lawn_conn_on_ack_oldest(&conn_, now_, now_ - 1000, LAWN_TIME_INFINITY);
    const std::string c = name();
    const std::string keepalive = name_of(&conn_.keepalive);
    lawn_conn_close(&conn_);
    EXPECT_EQ(finish(), header + "0 start " + c + " 20000000\n" + //
                            "0 conn " + c + " 5 0 - 20000000 0 0\n" +
                            "0 pause " + c + "\n" + //
                            "1000 conn " + c + " 0 - 1000 3000 1000 500\n" +
                            "0 stop " + c + "\n0 stop " + keepalive + "\n");
}

TEST_F(TraceConn, TellsWhoseKeepaliveATimerIs)
{
    params_of_conn_.keepalive_idle = 50 * msec;
    params_of_conn_.keepalive_interval = 10 * msec;
    params_of_conn_.keepalive_probes = 1;
    record();
    open_conn();
    const std::string pair = name() + " " + name_of(&conn_.keepalive) + "\n";
    pass_at(start + 50 * msec);
    pass_at(start + 59 * msec); // no stall
    pass_at(start + 68 * msec);
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
    const std::string trace = finish();
    const size_t first = trace.find("0 keepalive " + pair);
    const size_t probe = trace.find("0 probe " + name() + "\n");
    const size_t second = trace.find("0 keepalive " + pair, probe);
    const size_t dead = trace.find("0 dead " + name() + " 3\n");
    EXPECT_LT(first, probe);
    EXPECT_LT(probe, second);
    EXPECT_LT(second, dead);
    EXPECT_LT(dead, trace.size());
}

TEST_F(TraceConn, TellsWhyItIsSentAgain)
{
    record();
    open_conn();
    const lawn_time_t first = now_ += 5;
    lawn_conn_on_send(&conn_, first);
    now_ += 10;
    lawn_conn_on_send(&conn_, now_);
    const lawn_time_t second = now_;
    now_ += 1000;
    lawn_conn_on_ack_oldest(&conn_, now_, second, first); // overtakes
    pass_at(now_ + msec);
    const lawn_time_t again = now_;
    pass_at(again + 9 * msec); // and silence
    const std::string c = name();
    lawn_conn_close(&conn_);
    const std::string trace = finish();
    const size_t evidence = trace.find("\n0 evidence " + c + //
                                       "\n0 resend " + c + "\n0 start " + c);
    EXPECT_NE(evidence, std::string::npos) << trace;
    const size_t silence =
        trace.find("\n0 fire " + c + "\n0 resend " + c + "\n0 start " + c);
    EXPECT_NE(silence, std::string::npos) << trace;
    EXPECT_LT(evidence, silence);
}

TEST_F(TraceConn, TellsWhatWasNotNeeded)
{
    record();
    open_conn();
    const lawn_time_t sent = now_ += 5;
    lawn_conn_on_send(&conn_, sent);
    pass_at(now_ + 9 * msec);
    pass_at(now_ + 9 * msec);
    pass_at(now_ + 9 * msec);
    EXPECT_EQ(lawn_conn_rto(&conn_), 25 * msec);
    now_ += 5;
    lawn_conn_on_ack_oldest(&conn_, now_, sent, LAWN_TIME_INFINITY);
    lawn_conn_on_echo(&conn_, now_, sent);
    const std::string c = name();
    lawn_conn_close(&conn_);
    const std::string trace = after("resend " + c + "\n");
    EXPECT_NE(trace.find("undo " + c + "\n"), std::string::npos) << trace;
    EXPECT_NE(trace.find("0 needless " + c + "\n"), std::string::npos) << trace;
}

TEST_F(TraceConn, TellsOfAStallAndItsExcuse)
{
    params_of_conn_.peer_timeout = 20 * msec;
    record();
    open_conn();
    pass_at(start + 5 * msec);
    lawn_conn_on_send(&conn_, now_);
    pass_at(now_ + 50 * msec);
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
    const std::string c = name();
    lawn_conn_close(&conn_);
    const std::string trace = finish();
    const size_t stall = trace.find("\n50000000 stall 50000000\n0 poll 1\n");
    const size_t excuse = trace.find("\n0 excuse " + c + "\n0 resend " + c);
    EXPECT_LT(stall, excuse) << trace;
    EXPECT_LT(excuse, trace.size()) << trace;
}

TEST_F(TraceConn, TellsOfConnectionsThatAreOpenAlready)
{
    params_of_conn_.keepalive_idle = 50 * msec;
    params_of_conn_.keepalive_interval = 10 * msec;
    params_of_conn_.keepalive_probes = 1;
    open_conn();
    lawn_conn_on_send(&conn_, now_);
    ASSERT_EQ(lawn_engine_trace(engine_, path_of("trace").c_str()), LAWN_OK);
    const std::string c = name();
    const std::string trace = after(" budget 64\n");
    EXPECT_NE(trace.find("0 start " + c + " 20000000\n0 conn " + c + " 0 0 - "),
              std::string::npos)
        << trace;
    EXPECT_NE(trace.find("0 keepalive " + c), std::string::npos) << trace;
}

} // namespace
