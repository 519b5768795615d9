// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_top: what it prints of an engine, and what it asks of it.

#include "page_fixture.h"

#include <lawn/conn.h>

#include <algorithm>

#include <regex.h>

using namespace lawn_test;

namespace
{

// By the C library: std::regex is half in a header and half in libstdc++, which
// MemorySanitizer does not see.
bool matches(const std::string &text, const std::string &pattern)
{
    regex_t regex;
    EXPECT_EQ(regcomp(&regex, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0);
    const bool found = !regexec(&regex, text.c_str(), 0, nullptr, 0);
    regfree(&regex);
    return found;
}

// 100,000 timers due at once, and passes of 9 ms that do 64 of them. As
// lawn_top waits for 300 ms until the engine has counted, they take 5 ms here.
TEST_F(Page, TopShowsLatenessAndBacklogWhileTheyHappen)
{
    start_timers(100'000, 1);
    for (unsigned i = 0; i < 20; ++i) {
        pass_at(now_ + 9 * msec);
    }
    const std::string text =
        top_while_passing("--once --json --pid " + std::to_string(getpid()), 5);
    EXPECT_EQ(status_, 0) << text;
    EXPECT_NE(text.find("\"name\": \"page \\\"test\\\"\""), text.npos);
    EXPECT_EQ(number_after(text, "\"stalls\": "), 0);
    const double backlog = number_after(text, "\"backlog\": ");
    const double fired = number_after(text, "\"fired\": ");
    EXPECT_GT(backlog, 0);
    EXPECT_LT(backlog, 100'000 - 20 * 64);
    EXPECT_GE(fired, 20 * 64);
    EXPECT_EQ(number_after(text, "\"budget_ends\": ") * 64, fired);
    EXPECT_GE(number_after(text, "\"max\": "), 19 * 9000); // microseconds
    EXPECT_GE(number_after(text, "\"p50\": "), 9 * 9000);
}

TEST_F(Page, TopPrintsForPeopleAndForPrometheus)
{
    start_timers(100, 1);
    pass_at(now_ + interval);
    const std::string pid = std::to_string(getpid());
    const std::string table =
        top_while_passing("--once --histogram --pid " + pid);
    EXPECT_EQ(status_, 0) << table;
    EXPECT_NE(table.find(pid + " page \"test\""), table.npos) << table;
    EXPECT_NE(table.find("lateness of page"), table.npos);
    const std::string text =
        top_while_passing("--once --prometheus --pid " + pid);
    EXPECT_EQ(status_, 0) << text;
    EXPECT_NE(text.find("# TYPE lawn_lateness_seconds histogram"), text.npos);
    EXPECT_EQ(number_after(text, "name=\"page \\\"test\\\"\",le=\"+Inf\"} "),
              100);
}

// Each number is another one, so none is taken for its neighbour. The engine
// makes no pass, so its page stays as the test has written it.
TEST_F(Page, TopShowsWhatConnectionsHaveCounted)
{
    ASSERT_EQ(open(), 1U);
    lawn_page_state_t *const shared = &pages_.pages[0].shared->state;
    shared->asleep = 1; // nobody waits for it
    const std::string pid = std::to_string(getpid());
    EXPECT_EQ(top("--once --pid " + pid).find("CONNECTIONS"),
              std::string::npos);
    EXPECT_NE(top("--once --json --pid " + pid).find("\"conn_dead\": 0,"),
              std::string::npos);
    EXPECT_NE(top("--once --prometheus --pid " + pid)
                  .find("# TYPE lawn_conn_dead_total counter\n"),
              std::string::npos);
    lawn_engine_stats_t *const stats = &shared->stats;
    const std::pair<std::string, uint64_t *> counts[] = {
        {"retransmissions", &stats->conn_retransmissions},
        {"by_evidence", &stats->conn_by_evidence},
        {"spurious", &stats->conn_spurious},
        {"undone", &stats->conn_undone},
        {"asked", &stats->conn_asked},
        {"excused", &stats->conn_excused},
        {"probes", &stats->conn_probes},
        {"dead", &stats->conn_dead}};
    uint64_t next = 1001;
    std::string row = pid + " page \"test\" +-";
    for (const auto &count : counts) {
        *count.second = next++;
        row += " +" + std::to_string(*count.second);
    }
    const std::string table = top("--once --pid " + pid);
    EXPECT_NE(table.find("RESENT BY EVIDENCE"), table.npos) << table;
    EXPECT_TRUE(matches(table, row + "\n")) << table;
    const std::string json = top("--once --json --pid " + pid);
    const std::string prometheus = top("--once --prometheus --pid " + pid);
    for (const auto &count : counts) {
        const double value = static_cast<double>(*count.second);
        const std::string name = "conn_" + count.first;
        EXPECT_EQ(number_after(json, '"' + name + "\": "), value);
        const size_t at = prometheus.find("\nlawn_" + name + "_total{");
        ASSERT_NE(at, prometheus.npos) << name;
        EXPECT_EQ(number_after(prometheus.substr(at), "} "), value);
    }
}

// One count is enough for a line, and an engine without has none.
TEST_F(Page, TopLeavesOutEnginesWhoseConnectionsHaveCountedNothing)
{
    lawn_engine_t *engine = nullptr;
    params_.stats_name = "other";
    ASSERT_EQ(lawn_engine_create(&params_, &engine), LAWN_OK);
    ASSERT_EQ(open(), 2U);
    for (size_t i = 0; i < 2; ++i) {
        pages_.pages[i].shared->state.asleep = 1;
    }
    const std::string own = "page \"test\"";
    const bool is_first = own == pages_.pages[0].shared->owner.name;
    pages_.pages[is_first ? 0 : 1].shared->state.stats.conn_dead = 1;
    const std::string table = top("--once --pid " + std::to_string(getpid()));
    const size_t at = table.find("CONNECTIONS OF");
    ASSERT_NE(at, table.npos) << table;
    EXPECT_NE(table.find(own, at), table.npos) << table;
    EXPECT_EQ(table.find("other", at), table.npos) << table;
    lawn_engine_destroy(engine);
}

// A pass sends again each time. The second report and the next ones know how
// often.
TEST_F(Page, TopShowsHowOftenConnectionsSendAgain)
{
    lawn_conn_params_t params = {};
    params.rto_fixed = msec;
    params.backoff = 1;
    const lawn_conn_ops_t ops = {};
    lawn_conn_t conn = {};
    ASSERT_EQ(lawn_conn_open(engine_, &params, &ops, &conn), LAWN_OK);
    lawn_conn_on_send(&conn, now_);
    const std::string text = top_while_passing(
        "--interval 0.02 --pid " + std::to_string(getpid()) + " | head -n 60");
    EXPECT_TRUE(matches(text, "page \"test\" +[1-9][0-9]* +[1-9][0-9]* +0 "))
        << text;
    lawn_conn_close(&conn);
}

// A terminal would obey them.
TEST_F(Page, TopShowsControlCharactersOfANameAsText)
{
    params_.stats_name = "a\nb\033[2J\x7f\xc2\x9b\\\xc3\xa4";
    create();
    pass();
    const std::string pid = std::to_string(getpid());
    const std::string table =
        top_while_passing("--once --histogram --pid " + pid);
    EXPECT_EQ(status_, 0) << table;
    const std::string shown = "a\\x0ab\\x1b[2J\\x7f\xc2\\x9b\\\\\xc3\xa4";
    EXPECT_NE(table.find(pid + ' ' + shown.substr(0, 16) + ' '), table.npos)
        << table;
    EXPECT_NE(table.find("lateness of " + shown + ' '), table.npos) << table;
    EXPECT_EQ(table.find('\033'), table.npos);
}

// A name is cut at 63 bytes, wherever this is. The parsers refuse all of a
// report that is not UTF-8.
TEST_F(Page, TopPrintsUtf8ForPrograms)
{
    const std::string broken = "\xef\xbf\xbd";
    const std::string good = "\xc2\xa2\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
                             "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
    const std::string pid = std::to_string(getpid());
    for (const std::string bad :
         {"\x80", "\xc1", "\xf5", "\xc3", "\xe2\x82", "\xf0\x90\x80"}) {
        const std::string name = good + bad + "x";
        params_.stats_name = name.c_str();
        create();
        pass();
        std::string shown = good;
        for (size_t i = 0; i < bad.size(); ++i) {
            shown += broken;
        }
        for (const char *format : {"--json", "--prometheus"}) {
            const std::string text = top_while_passing(
                std::string("--once ") + format + " --pid " + pid);
            EXPECT_NE(text.find('"' + shown + "x\""), text.npos);
        }
    }
    for (const std::string bad : {"\xe0\x9f\xbf", "\xed\xa0\x80",
                                  "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80"}) {
        params_.stats_name = bad.c_str();
        create();
        pass();
        const std::string text =
            top_while_passing("--once --json --pid " + pid);
        EXPECT_EQ(text.find(bad), text.npos);
        EXPECT_NE(text.find("\"name\": \"" + broken), text.npos);
    }
    const std::string cut = std::string(62, 'a') + "\xc3\xa4";
    params_.stats_name = cut.c_str();
    create();
    pass();
    const std::string text = top_while_passing("--once --json --pid " + pid);
    EXPECT_NE(text.find("a" + broken + "\""), text.npos);
}

TEST_F(Page, TopFailsIfItsOutputIsCutShort)
{
    const std::string pid = std::to_string(getpid());
    const std::string reports[] = {"--once --pid " + pid,
                                   "--once --json --pid " + pid,
                                   "--pid " + pid,
                                   "--trace " + pid + " /dev/null",
                                   "--help",
                                   "--version"};
    for (const std::string &arguments : reports) {
        const std::string text = top_while_passing(arguments + " >/dev/full");
        EXPECT_EQ(status_, 1) << arguments;
        EXPECT_EQ(text, "lawn_top: standard output: No space left on device\n")
            << arguments;
    }
    top_while_passing("--end-trace " + pid);
}

// There is no file to name when a trace ends.
TEST_F(Page, TopNamesTheProcessThatDoesNotAnswer)
{
    const std::string pid = std::to_string(getpid());
    EXPECT_EQ(top("--end-trace " + pid),
              "lawn_top: process " + pid +
                  ": the engine makes no pass, and does not answer\n");
    EXPECT_EQ(status_, 1);
    pass_at(now_ + interval);
    EXPECT_EQ(open(), 1U);
    EXPECT_EQ(pages_.pages[0].shared->trace_status, LAWN_ERR_TIMED_OUT)
        << "it was withdrawn";
}

TEST_F(Page, TopRefusesWhatItDoesNotKnow)
{
    for (const char *wrong :
         {"--pid", "--pid x", "--pid 0", "--interval 0", "--interval x",
          "--trace", "--trace 1", "--end-trace -3", "--nothing", "word"}) {
        const std::string text = top(wrong);
        EXPECT_EQ(status_, 2) << wrong;
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    }
    EXPECT_NE(top("--help").find("usage: lawn_top"), std::string::npos);
    EXPECT_EQ(status_, 0);
    EXPECT_EQ(top("--version"),
              std::string("lawn_top ") + lawn_version() + '\n');
    EXPECT_EQ(status_, 0);
    params_.stats_name = nullptr;
    create();
    EXPECT_NE(top("--once --pid " + std::to_string(getpid())).find("no engine"),
              std::string::npos);
    EXPECT_EQ(status_, 1);
}

} // namespace
