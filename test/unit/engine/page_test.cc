// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics page of an engine on virtual time, as lawn_top reads it, and
// lawn_top itself.

#include "engine_fixture.h"

#include "pages.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include <sys/wait.h>

using namespace lawn_test;

namespace
{

constexpr lawn_time_t interval = 10 * msec;

class Page : public Engine
{
protected:
    Page()
    {
        params_.stats_name = "page \"test\"";
        create();
        pass();
    }

    ~Page() override
    {
        pages_close(&pages_);
    }

    // The pages of this process, as they are now.
    size_t open()
    {
        pages_close(&pages_);
        EXPECT_TRUE(pages_open(&pages_, getpid()));
        pages_read(&pages_);
        return pages_.count;
    }

    const lawn_page_state_t &state()
    {
        EXPECT_EQ(open(), 1U);
        return pages_.pages[0].state;
    }

    void start_timers(unsigned count, lawn_time_t ttl)
    {
        for (unsigned i = 0; i < count; ++i) {
            start_timer(ttl);
        }
    }

    // Makes passes of 9 ms, which are no stalls, until `work`, which another
    // thread does, has ended. Waits `pause_ms` after each.
    template <class Work> void pass_while(Work work, long pause_ms = 1)
    {
        std::atomic<bool> is_over = false;
        std::thread thread([&] {
            work();
            is_over = true;
        });
        while (!is_over) {
            pass_at(now_ + 9 * msec);
            sleep_msec(pause_ms);
        }
        thread.join();
    }

    // What lawn_top prints; its status is in status_.
    std::string top(const std::string &arguments)
    {
        const char *const program = getenv("LAWN_TOP");
        if (program == nullptr) {
            ADD_FAILURE() << "LAWN_TOP is to be the path of lawn_top";
            return {};
        }
        const std::string command =
            "{ " + std::string(program) + " " + arguments + "; } 2>&1";
        FILE *const pipe = popen(command.c_str(), "r");
        std::string text;
        for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) {
            text += static_cast<char>(c);
        }
        status_ = WEXITSTATUS(pclose(pipe));
        return text;
    }

    // Writes the page of a process that no longer exists, of the PID namespace
    // `where`. Returns its path.
    std::string leave_page(uint64_t where, pid_t *pid_p)
    {
        const pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        EXPECT_EQ(waitpid(child, nullptr, 0), child);
        EXPECT_EQ(open(), 1U);
        lawn_page_t page = *pages_.pages[0].shared;
        page.owner.pid = child;
        page.owner.pid_namespace = where;
        const std::string path = LAWN_PAGE_DIRECTORY "/" LAWN_PAGE_PREFIX +
                                 std::to_string(child) + ".0";
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char *>(&page), sizeof(page));
        EXPECT_TRUE(file.flush().good());
        *pid_p = child;
        return path;
    }

    std::string top_while_passing(const std::string &arguments,
                                  long pause_ms = 1)
    {
        std::string text;
        pass_while([&] { text = top(arguments); }, pause_ms);
        return text;
    }

    static double number_after(const std::string &text, const std::string &key)
    {
        const size_t at = text.find(key);
        EXPECT_NE(at, std::string::npos) << key;
        return at == std::string::npos ? -1
                                       : atof(text.c_str() + at + key.size());
    }

    pages_t pages_ = {};
    int status_ = -1;
};

TEST_F(Page, IsThereWhileItsEngineIs)
{
    ASSERT_EQ(open(), 1U);
    EXPECT_STREQ(pages_.pages[0].shared->owner.name, "page \"test\"");
    EXPECT_EQ(pages_.pages[0].shared->owner.budget, 64U);
    const std::string path = pages_.pages[0].path;
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
    params_.stats_name = nullptr;
    create();
    EXPECT_EQ(open(), 0U);
    EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(Page, TheEnvironmentNamesThoseThatHaveNoName)
{
    setenv("LAWN_STATS", "of the environment", 1);
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
    create();
    setenv("LAWN_STATS", "", 1);
    lawn_engine_t *without = nullptr;
    ASSERT_EQ(lawn_engine_create(nullptr, &without), LAWN_OK);
    unsetenv("LAWN_STATS");
    ASSERT_EQ(open(), 2U);
    EXPECT_STREQ(pages_.pages[0].shared->owner.name, "of the environment");
    EXPECT_STREQ(pages_.pages[1].shared->owner.name, "page \"test\"");
    lawn_engine_destroy(without);
    lawn_engine_destroy(engine);
}

TEST_F(Page, IsWrittenEveryTenMilliseconds)
{
    EXPECT_EQ(state().stats.passes, 0U);
    start_timers(2, msec);
    pass_at(start + interval - 1);
    EXPECT_EQ(state().stats.passes, 0U);
    EXPECT_EQ(state().now, start);
    pass_at(start + interval);
    EXPECT_EQ(state().stats.passes, 3U);
    EXPECT_EQ(state().stats.fired, 2U);
    EXPECT_EQ(state().stats.worst_late, 9 * msec - 1);
    EXPECT_EQ(lawn_histogram_count(&state().late), 2U);
    EXPECT_EQ(state().now, start + interval);
    EXPECT_EQ(state().asleep, 0U);
}

TEST_F(Page, TellsThatTheEngineSleeps)
{
    start_timers(3, sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(state().asleep, 1U);
    EXPECT_EQ(state().running, 3U);
    pass();
    EXPECT_EQ(state().asleep, 0U);
}

TEST_F(Page, AStallThatASleepEndsIsShownWhileTheEngineSleeps)
{
    start_timers(1, 10 * sec);
    now_ += sec;
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(state().asleep, 1U);
    EXPECT_EQ(state().stats.stalls, 1U);
}

TEST_F(Page, TheBacklogIsCountedWhenSomebodyAsks)
{
    start_timers(1000, 1);
    pass_at(now_ + interval);
    EXPECT_EQ(state().backlog, 0U);
    pages_ask_backlog(&pages_);
    pass_at(now_ + interval);
    EXPECT_EQ(state().backlog, 1000U - 2 * 64);
    pass_at(now_ + interval);
    EXPECT_EQ(state().backlog, 1000U - 2 * 64);
    pages_ask_backlog(&pages_);
    pass_at(now_ + interval);
    EXPECT_EQ(state().backlog, 1000U - 4 * 64);
}

TEST_F(Page, AChildLeavesTheParentsAlone)
{
    ASSERT_TRUE(does_well_in_a_child([this] {
        pass_at(now_ + sec);
        lawn_engine_arm(engine_);
        lawn_engine_destroy(engine_);
        engine_ = nullptr;
        return true;
    }));
    EXPECT_EQ(state().now, start);
    EXPECT_EQ(state().asleep, 0U);
}

TEST_F(Page, ThatADeadProcessHasLeftIsRemoved)
{
    const pid_t child = fork();
    if (child == 0) {
        lawn_engine_t *engine = nullptr;
        lawn_engine_create(&params_, &engine);
        raise(SIGKILL);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, SIGKILL);
    const std::string path =
        LAWN_PAGE_DIRECTORY "/" LAWN_PAGE_PREFIX + std::to_string(child);
    const auto is_left = [&] {
        return system(("ls " + path + ".* >/dev/null 2>&1").c_str()) == 0;
    };
    EXPECT_TRUE(is_left());
    EXPECT_EQ(open(), 1U);
    EXPECT_FALSE(is_left());
}

// Its pid is that of no process here, or of another one.
TEST_F(Page, OfAnotherNamespaceOrAnUnknownOneIsShownAndKept)
{
    ASSERT_EQ(open(), 1U);
    const uint64_t own = pages_.pages[0].shared->owner.pid_namespace;
    ASSERT_NE(own, 0U);
    for (const uint64_t where : {own + 1, uint64_t{0}}) {
        pid_t pid = 0;
        const std::string path = leave_page(where, &pid);
        const std::string text =
            top("--once --json --pid " + std::to_string(pid));
        EXPECT_EQ(status_, 0) << text;
        EXPECT_EQ(number_after(text, "\"pid\": "), pid);
        if (where != 0) {
            // PID means a process of here.
            EXPECT_EQ(top("--end-trace " + std::to_string(pid)),
                      "lawn_top: no engine publishes its statistics in this "
                      "process\n");
            EXPECT_EQ(status_, 1);
        }
        EXPECT_EQ(unlink(path.c_str()), 0);
    }
    pid_t pid = 0;
    const std::string path = leave_page(own, &pid);
    top("--once --pid " + std::to_string(pid));
    EXPECT_EQ(status_, 1);
    EXPECT_NE(unlink(path.c_str()), 0);
}

// A process that had the same pid was killed, and nobody has looked since.
TEST_F(Page, ANameThatIsTakenIsPassedOver)
{
    const auto name_of = [](unsigned number) {
        return LAWN_PAGE_DIRECTORY "/" LAWN_PAGE_PREFIX +
               std::to_string(getpid()) + "." + std::to_string(number);
    };
    unsigned number = 0; // of this engine's page
    while (access(name_of(number).c_str(), F_OK) != 0) {
        ++number;
    }
    const std::string taken = name_of(number + 1);
    ASSERT_TRUE(std::ofstream(taken).good());
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(&params_, &engine), LAWN_OK);
    EXPECT_EQ(access(name_of(number + 2).c_str(), F_OK), 0);
    lawn_engine_destroy(engine);
    EXPECT_EQ(unlink(taken.c_str()), 0) << "it is not this engine's";
}

TEST_F(Page, CreateSaysWhenItHasNoMemory)
{
    lawn_engine_t *engine = nullptr;
    const unsigned live = allocations_.live;
    allocations_.left = 2; // the engine and its lawn
    EXPECT_EQ(lawn_engine_create(&params_, &engine), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(allocations_.live, live);
    allocations_.left = 3;
    ASSERT_EQ(lawn_engine_create(&params_, &engine), LAWN_OK);
    lawn_engine_destroy(engine);
}

TEST_F(Page, HasATraceBeginAndEnd)
{
    char directory[] = "/tmp/lawn-page-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    const std::string path = std::string(directory) + "/trace";
    start_timer(sec);
    ASSERT_EQ(open(), 1U);
    lawn_status_t status = LAWN_ERR_IO;
    pass_while([&] { status = page_trace(&pages_.pages[0], path.c_str()); });
    EXPECT_EQ(status, LAWN_OK);
    start_timer(2 * sec);
    pass_while([&] { status = page_trace(&pages_.pages[0], ""); });
    EXPECT_EQ(status, LAWN_OK);
    start_timer(3 * sec);
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    size_t starts = 0;
    for (size_t at = 0; (at = text.find(" start ", at)) != text.npos; ++at) {
        ++starts;
    }
    EXPECT_EQ(starts, 2U); // the one that ran, and the one started meanwhile
    pass_while([&] { status = page_trace(&pages_.pages[0], directory); });
    EXPECT_EQ(status, LAWN_ERR_IO);
    unlink(path.c_str());
    rmdir(directory);
}

// 10,000 timers due at once, and passes of 9 ms that do 64 of them. They take
// even longer here, and lawn_top waits until the engine has counted.
TEST_F(Page, TopShowsLatenessAndBacklogWhileTheyHappen)
{
    start_timers(10'000, 1);
    for (unsigned i = 0; i < 20; ++i) {
        pass_at(now_ + 9 * msec);
    }
    const std::string text = top_while_passing(
        "--once --json --pid " + std::to_string(getpid()), 40);
    EXPECT_EQ(status_, 0) << text;
    EXPECT_NE(text.find("\"name\": \"page \\\"test\\\"\""), text.npos);
    EXPECT_EQ(number_after(text, "\"stalls\": "), 0);
    const double backlog = number_after(text, "\"backlog\": ");
    const double fired = number_after(text, "\"fired\": ");
    EXPECT_GT(backlog, 0);
    EXPECT_LT(backlog, 10'000 - 20 * 64);
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
