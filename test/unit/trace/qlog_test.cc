// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_trace --qlog: records, their order, and what each event becomes.

#include "trace_fixture.h"

#include "qlog.h"

using namespace lawn_test;

namespace
{

class TraceQlog : public Trace
{
protected:
    // The records behind the header, without the time_format and the like.
    std::vector<std::string> records(const std::string &events,
                                     uint64_t connection = 0,
                                     const std::string &first = header) const
    {
        const std::string path = write("text", first + events);
        const std::string qlog = trace_file::qlog_of(
            trace_file::read_model(path.c_str()), "a\"b", connection);
        std::vector<std::string> all;
        for (size_t begin = 0; begin < qlog.size();) {
            EXPECT_EQ(qlog[begin], '\x1e');
            const size_t end = qlog.find('\n', begin);
            all.push_back(qlog.substr(begin + 1, end - begin - 1));
            begin = end + 1;
        }
        EXPECT_EQ(qlog.back(), '\n');
        return all;
    }

    static std::string event(const std::string &time, const std::string &name,
                             const std::string &data,
                             const std::string &group = "a")
    {
        return "{\"time\":" + time + ",\"name\":\"" + name +
               "\",\"group_id\":\"" + group + "\",\"data\":{" + data + "}}";
    }

    static std::string number(const std::string &n)
    {
        return "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":" + n +
               "}";
    }
};

TEST_F(TraceQlog, BeginsWithTheTrace)
{
    EXPECT_EQ(
        records("").front(),
        "{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":"
        "\"a\\u0022b\",\"trace\":{\"common_fields\":{\"protocol_type\":["
        "\"QUIC\"],\"time_format\":\"relative\",\"reference_time\":0},"
        "\"vantage_point\":{\"name\":\"lawn\",\"type\":\"unknown\"}}}");
}

TEST_F(TraceQlog, HasAMessageAndItsAck)
{
    const std::vector<std::string> all =
        records("1000 start a 2500000\n0 conn a 1000 0 - 2500000 0 0\n"
                "2000000 pause a\n0 conn a 0 - 2000000 2100000 2000000 500\n");
    const std::string timer = "recovery:loss_timer_updated";
    EXPECT_EQ((std::vector<std::string>(all.begin() + 1, all.end())),
              (std::vector<std::string>{
                  event("0.001000", "transport:packet_sent", number("0")),
                  event("0.001000", timer,
                        "\"timer_type\":\"pto\",\"event_type\":\"set\","
                        "\"delta\":2.500000"),
                  event("2.001000", "transport:packet_received",
                        number("0") + ",\"frames\":[{\"frame_type\":\"ack\","
                                      "\"acked_ranges\":[[0,0]]}]"),
                  event("2.001000", timer,
                        "\"timer_type\":\"pto\",\"event_type\":\"cancelled\""),
                  event("2.001000", "recovery:metrics_updated",
                        "\"smoothed_rtt\":2.000000,\"rtt_variance\":0.000500,"
                        "\"latest_rtt\":2.000000,\"min_rtt\":2.000000"),
              }));
}

// A burst gives each message a tick, and here three ticks are a nanosecond.
TEST_F(TraceQlog, TellsMessagesApartByTheirTicks)
{
    std::string packets;
    for (const std::string &record :
         records("300 start a 900\n0 conn a 300 0 - 900 0 0\n"
                 "2700 start a 900\n0 conn a 0 2699 2700 900 2700 0\n"
                 "300 pause a\n0 conn a 0 - 2999 900 2700 0\n",
                 0, "lawn-trace 2 ticks_per_sec 3000000000 budget 64\n")) {
        for (const char *what : {"packet_sent", "\"acked_ranges\":"}) {
            const size_t at = record.find(what);
            packets += at == record.npos ? "" : record.substr(at) + "\n";
        }
    }
    const std::string sent = "packet_sent\",\"group_id\":\"a\",\"data\":{";
    const std::string acked = "\"acked_ranges\":[[";
    EXPECT_EQ(packets, sent + number("0") + "}}\n" + sent + number("1") +
                           "}}\n" + acked + "0,0]]}]}}\n" + acked +
                           "1,1]]}]}}\n");
}

// 2^64 ticks, which stand for it, are less than the longest time there.
TEST_F(TraceQlog, WhatIsUnknownIsNoTimeOnAFastClock)
{
    const std::string fast =
        "lawn-trace 2 ticks_per_sec 4500000000 budget 64\n";
    for (const std::string &first : {header, fast}) {
        EXPECT_EQ(records("1000 start a 2500000\n"
                          "0 conn a 1000 0 - 2500000 0 0\n"
                          "2000000 pause a\n"
                          "0 conn a 0 - 2000000 2100000 2000000 500\n",
                          0, first)
                      .size(),
                  6U);
    }
}

TEST_F(TraceQlog, ATimerThatWasDueAlreadyIsSetToNow)
{
    const std::vector<std::string> all =
        records("0 start a 5\n100 conn a 0 100 - 1000 0 0\n");
    EXPECT_NE(all.back().find("\"delta\":0.000000"), std::string::npos)
        << all.back();
}

TEST_F(TraceQlog, ATimerThatNeverEndsIsSet)
{
    const std::vector<std::string> all =
        records("0 start a inf\n0 conn a 0 - - 5 0 0\n");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_NE(all[1].find("\"event_type\":\"set\""), std::string::npos);
}

TEST_F(TraceQlog, SaysWhyAPacketIsLost)
{
    const std::string first = "0 start a 10\n0 conn a 0 0 - 10 0 0\n";
    const auto lost = [&](const std::string &why) {
        std::string text;
        for (const std::string &record :
             records("5 poll 1\n" + first + "10 poll 1\n0 fire a\n" + why +
                     "0 resend a\n0 start a 10\n0 conn a 10 0 - 10 0 0\n")) {
            const bool is_lost = record.find("lost") != std::string::npos ||
                                 record.find("\"trigger\"") != record.npos;
            text += is_lost ? record + "\n" : "";
        }
        return text;
    };
    const std::string packet = "transport:packet_sent";
    EXPECT_EQ(lost(""), event("0.000015", "recovery:packet_lost",
                              number("0") + ",\"trigger\":\"pto_expired\"") +
                            "\n" +
                            event("0.000015", packet,
                                  number("1") + ",\"trigger\":\"pto_probe\"") +
                            "\n");
    EXPECT_EQ(lost("0 evidence a\n"),
              event("0.000015", "recovery:packet_lost",
                    number("0") + ",\"trigger\":\"time_threshold\"") +
                  "\n" +
                  event("0.000015", packet,
                        number("1") + ",\"trigger\":\"retransmit_timeout\"") +
                  "\n");
}

TEST_F(TraceQlog, HasAllElseInTheOrderOfTime)
{
    std::string names;
    for (const std::string &record :
         records("1 ask a\n1 probe b\n1 excuse a\n1 undo b\n1 dead a 1\n")) {
        const size_t name = record.find("\"name\":\"");
        names += record.substr(name + 8, record.find('"', name + 8) - name - 8);
        names += " ";
    }
    EXPECT_EQ(names, "lawn transport:packet_sent transport:packet_sent "
                     "generic:info generic:info "
                     "connectivity:connection_closed ");
}

TEST_F(TraceQlog, HasOneConnectionAlone)
{
    const std::vector<std::string> all = records("1 ask a\n1 ask b\n", 0xb);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1], event("0.000002", "transport:packet_sent",
                            number("0") + ",\"frames\":[{\"frame_type\":"
                                          "\"ping\"}]",
                            "b"));
}

} // namespace
