// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_trace: what it finds in a trace, and the page that it writes. A browser
// looks at the page in test/browser.

#include "trace_fixture.h"

#include "json.h"
#include "page.h"

#include <stdexcept>

using namespace lawn_test;

namespace
{

using trace_file::Mark;
using trace_file::Model;

class TracePage : public Trace
{
protected:
    Model model(const std::string &text) const
    {
        return trace_file::read_model(write("text", header + text).c_str());
    }

    std::string refusal_of(const std::string &text) const
    {
        try {
            model(text);
        } catch (const std::runtime_error &error) {
            const std::string message = error.what();
            return message.substr(path_of("text").size() + 1);
        }
        return "accepted";
    }

    // What lawn_trace prints; its status is in status_.
    std::string tool(const std::string &arguments)
    {
        const char *const program = getenv("LAWN_TRACE_TOOL");
        if (program == nullptr) {
            ADD_FAILURE() << "LAWN_TRACE_TOOL is to be the path of lawn_trace";
            return {};
        }
        const std::string command =
            "{ " + std::string(program) + " " + arguments + "; } 2>&1";
        FILE *const pipe = popen(command.c_str(), "r");
        std::string said;
        for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) {
            said += static_cast<char>(c);
        }
        status_ = WEXITSTATUS(pclose(pipe));
        return said;
    }

    int status_ = -1;
};

// As "send 5, ack 30".
std::string marks_of(const Model &model)
{
    std::string text;
    for (const trace_file::Connection &connection : model.connections) {
        for (const trace_file::Marked &mark : connection.marks) {
            text += text.empty() ? "" : ", ";
            text += trace_file::name_of(mark.mark);
            text += " " + std::to_string(mark.time);
            text += mark.value != 0 ? "/" + std::to_string(mark.value) : "";
        }
    }
    return text;
}

std::string points_of(const std::vector<trace_file::Point> &points)
{
    std::string text;
    for (const trace_file::Point &point : points) {
        text += text.empty() ? "" : ", ";
        text += std::to_string(point.time) + ":" + std::to_string(point.value);
    }
    return text;
}

TEST_F(TracePage, FindsSendsAndAcks)
{
    // Two messages are sent at 5 and 6, and both are acknowledged at 30.
    const Model found = model("5 start a 100\n"
                              "0 conn a 5 0 - 100 0 0\n"
                              "25 start a 80\n"
                              "0 conn a 0 24 25 90 25 12\n"
                              "0 pause a\n"
                              "0 conn a 0 - 24 80 24 11\n");
    EXPECT_EQ(marks_of(found), "send 5, send 6, ack 30/25, ack 30/24");
    ASSERT_EQ(found.connections.size(), 1U);
    EXPECT_EQ(found.connections[0].metrics.size(), 3U);
    EXPECT_EQ(found.connections[0].metrics[1].rto, 90U);
    EXPECT_EQ(found.connections[0].metrics[1].rtt, 25U);
    EXPECT_EQ(points_of(found.connections[0].timer), "5:105, 30:110, 30:0");
    EXPECT_TRUE(found.timers.empty());
}

// What was heard before the send is no ACK of it, nor is a re-arm.
TEST_F(TracePage, FindsNoAckWhereThereIsNone)
{
    EXPECT_EQ(marks_of(model("5 start a 100\n"
                             "0 conn a 2 0 - 100 0 0\n"
                             "10 start a 90\n"
                             "0 conn a 12 10 - 100 0 0\n")),
              "send 5");
}

TEST_F(TracePage, TellsOneResendingFromAnother)
{
    const auto again = [](const std::string &age) {
        return "0 start a 100\n0 conn a " + age + " 0 - 100 0 0\n";
    };
    EXPECT_EQ(marks_of(model("0 start a 10\n0 conn a 0 0 - 10 0 0\n"
                             "10 poll 1\n0 fire a\n0 resend a\n" +
                             again("10") + //
                             "10 evidence a\n0 resend a\n" + again("20") +
                             "10 resend a\n" + again("30") + //
                             "7 needless a\n")),
              "silence 10, evidence 20, needless 30/7");
}

TEST_F(TracePage, FindsWhatElseHappens)
{
    EXPECT_EQ(marks_of(model("1 ask a\n1 probe a\n1 excuse a\n1 undo a\n"
                             "1 dead a 2\n")),
              "ask 1, probe 2, excuse 3, undo 4, dead 5/2");
    EXPECT_EQ(points_of(model("90 stall 80\n").stalls), "90:80");
}

TEST_F(TracePage, CountsWhatIsLateAndWaits)
{
    const Model found = model("0 start a 10\n0 start b 10\n0 start c 11\n"
                              "5 poll 1\n"
                              "10 poll 1\n0 fire a\n0 start a 50\n"
                              "5 poll 1\n0 fire b\n0 fire c\n"
                              "30 poll 3\n");
    EXPECT_EQ(points_of(found.late), "15:5, 20:10, 20:9");
    EXPECT_EQ(points_of(found.backlog), "5:0, 15:2, 20:0");
    EXPECT_EQ(points_of(found.gaps), "15:10, 20:5, 50:10");
    ASSERT_EQ(found.timers.size(), 3U);
    EXPECT_EQ(found.timers[0].runs.size(), 2U);
    EXPECT_TRUE(found.timers[0].runs[0].fired);
    EXPECT_EQ(found.timers[0].runs[1].end, trace_file::never);
}

TEST_F(TracePage, AKeepaliveIsNoTimerOfItsOwn)
{
    const Model found = model("0 start b 10\n0 keepalive a b\n"
                              "0 start b 10\n0 keepalive a b\n");
    EXPECT_TRUE(found.timers.empty());
    ASSERT_EQ(found.connections.size(), 1U);
    EXPECT_EQ(found.connections[0].keepalive, 0xbU);
}

TEST_F(TracePage, RefusesWhatIsNotDescribed)
{
    EXPECT_EQ(refusal_of("0 conn a 1 1 1 1 1\n"),
              "2: wrong number of fields for 'conn'");
    EXPECT_EQ(refusal_of("0 conn a inf 1 1 1 1 1\n"), "2: bad age 'inf'");
    EXPECT_EQ(refusal_of("0 conn a 1 1 1 1 1 -\n"), "2: bad span '-'");
    EXPECT_EQ(refusal_of("0 dead a 4\n"), "2: bad reason '4'");
    EXPECT_EQ(refusal_of("0 dead a 0\n"), "2: bad reason '0'");
    EXPECT_EQ(refusal_of("0 resend\n"),
              "2: wrong number of fields for 'resend'");
    EXPECT_EQ(refusal_of("0 resend x\n"), "2: bad timer 'x'");
    EXPECT_EQ(refusal_of("0 conn a - - - 1 1 1\n"), "accepted");
}

TEST_F(TracePage, QuotesWhatCouldEndTheScript)
{
    std::string text;
    trace_file::append_quoted(&text, "</script>&\"\\\n\xc3\xa9");
    EXPECT_EQ(text, "\"\\u003c/script\\u003e\\u0026\\u0022\\u005c\\u000a"
                    "\\u00c3\\u00a9\"");
}

TEST_F(TracePage, IsWholeWhateverTheNameOfTheFile)
{
    const std::string name = "</script><script>alert(1)//DATA_OF_THE_TRACE";
    const std::string page = trace_file::page_of(model("1 poll 1\n"), name);
    EXPECT_EQ(page.rfind("<!DOCTYPE html>\n", 0), 0U);
    EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
    EXPECT_EQ(page.find("alert(1)"), page.rfind("alert(1)"));
    EXPECT_EQ(page.find("<script>alert"), std::string::npos);
    EXPECT_NE(page.find("{\"title\":\"\\u003c/script\\u003e\\u003cscript"),
              std::string::npos);
    EXPECT_EQ(page.find("/* scripts */"), std::string::npos);
    EXPECT_EQ(page.find("/* page.css */"), std::string::npos);
    EXPECT_EQ(page.find("http:"), std::string::npos);
    EXPECT_EQ(page.find("https:"), std::string::npos);
}

TEST_F(TracePage, HasTheEventsAsDifferences)
{
    const std::string json = trace_file::json_of(
        model("5 start a 100\n0 conn a 5 0 - 100 0 0\n"
              "25 pause a\n0 conn a 0 - 25 90 25 12\n0 start b 7\n"),
        "t");
    EXPECT_NE(json.find("\"name\":\"a\",\"keepalive\":\"0\","
                        "\"marks\":[[5,25],[0,1],[0,25]],"
                        "\"metrics\":[[5,25],[100,90],[0,25]]"),
              std::string::npos)
        << json;
    EXPECT_NE(json.find("{\"name\":\"b\",\"runs\":[[30],[0],[-1]]}"),
              std::string::npos)
        << json;
}

TEST_F(TracePage, TheProgramSaysWhatIsWrong)
{
    const std::string none = path_of("none");
    EXPECT_EQ(tool(none), "lawn_trace: " + none + //
                              ": No such file or directory\n");
    EXPECT_EQ(status_, 1);
    const std::string bad = write("bad", "hello\n");
    EXPECT_EQ(tool(bad + " --html " + none),
              "lawn_trace: " + bad + ":1: not the header of a trace\n");
    EXPECT_EQ(status_, 1);
    EXPECT_FALSE(std::filesystem::exists(none));
    const std::string good = write("good", header);
    const std::string page = path_of("no/page");
    EXPECT_EQ(tool(good + " --html " + page),
              "lawn_trace: " + page + ": No such file or directory\n");
    EXPECT_EQ(tool(good + " --html /dev/full"),
              "lawn_trace: /dev/full: No space left on device\n");
    EXPECT_EQ(status_, 1);
    EXPECT_EQ(tool(good + " --qlog - --connection 7f"),
              "lawn_trace: " + good + ": no connection 7f\n");
    EXPECT_EQ(status_, 1);
}

TEST_F(TracePage, TheProgramRefusesOtherArguments)
{
    EXPECT_EQ(tool(""), "lawn_trace: no FILE (see --help)\n");
    EXPECT_EQ(status_, 2);
    EXPECT_EQ(tool("a b"),
              "lawn_trace: unexpected argument 'b' (see --help)\n");
    EXPECT_EQ(tool("a -c x"), "lawn_trace: bad connection 'x' (see --help)\n");
    EXPECT_EQ(tool("a -c 1"),
              "lawn_trace: --connection is for --qlog (see --help)\n");
    EXPECT_EQ(status_, 2);
    tool("--no");
    EXPECT_EQ(status_, 2);
    EXPECT_EQ(tool("--help").rfind("usage: lawn_trace FILE", 0), 0U);
    EXPECT_EQ(status_, 0);
    EXPECT_EQ(tool("--version").rfind("lawn_trace ", 0), 0U);
}

TEST_F(TracePage, TheProgramWritesThePageOrASummary)
{
    const std::string trace = write("a.trace", header + "5 start a 9\n"
                                                        "0 conn a 5 0 - 9 0 0\n"
                                                        "2000 stall 10\n");
    EXPECT_EQ(tool(trace).rfind("3 events in 0.000 s, 1 connections, 0 other "
                                "timers, 1 stalls\nsend      1\n",
                                0),
              0U);
    const std::string page = path_of("page");
    EXPECT_EQ(tool(trace + " --html " + page), "");
    EXPECT_EQ(status_, 0);
    EXPECT_EQ(
        text("page"),
        trace_file::page_of(trace_file::read_model(trace.c_str()), "a.trace"));
    EXPECT_EQ(tool(trace + " --html -"), text("page"));
}

} // namespace
