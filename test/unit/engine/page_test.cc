// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics page of an engine on virtual time, as lawn_top reads it.

#include "page_fixture.h"

#include <sys/stat.h>

using namespace lawn_test;

namespace
{

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

// Whoever reads pages removes it, so another process may have done it before.
TEST_F(Page, ThatADeadProcessHasLeftIsRemoved)
{
    const pid_t child = fork();
    if (child == 0) {
        lawn_engine_t *engine = nullptr;
        lawn_engine_create(&params_, &engine);
        raise(SIGSTOP);
        _exit(1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    ASSERT_TRUE(WIFSTOPPED(status));
    const std::string path =
        LAWN_PAGE_DIRECTORY "/" LAWN_PAGE_PREFIX + std::to_string(child);
    const auto is_left = [&] {
        return system(("ls " + path + ".* >/dev/null 2>&1").c_str()) == 0;
    };
    EXPECT_TRUE(is_left());
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
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

// Whoever has asked waits no longer.
TEST_F(Page, AnEngineDoesNotObeyWhatWasWithdrawn)
{
    char directory[] = "/tmp/lawn-page-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    const std::string path = std::string(directory) + "/trace";
    ASSERT_EQ(open(), 1U);
    lawn_page_t *const shared = pages_.pages[0].shared;
    snprintf(shared->trace_path, sizeof(shared->trace_path), "%s",
             path.c_str());
    const uint32_t asked = ++shared->trace_asked;
    EXPECT_TRUE(lawn_page_take_trace(shared, asked));
    pass_at(now_ + interval);
    EXPECT_EQ(shared->trace_answered, asked);
    EXPECT_EQ(shared->trace_status, LAWN_ERR_TIMED_OUT);
    EXPECT_NE(access(path.c_str(), F_OK), 0);
    shared->trace_asked = asked + 1;
    pass_at(now_ + interval);
    EXPECT_FALSE(lawn_page_take_trace(shared, asked + 1)) << "too late";
    EXPECT_EQ(shared->trace_answered, asked + 1);
    EXPECT_EQ(shared->trace_status, LAWN_OK);
    EXPECT_EQ(unlink(path.c_str()), 0);
    rmdir(directory);
}

TEST_F(Page, OfAnotherUserIsOnlyForRoot)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can be several users";
    }
    ASSERT_EQ(open(), 1U);
    pid_t pid = 0;
    const std::string path =
        leave_page(pages_.pages[0].shared->owner.pid_namespace + 1, &pid);
    ASSERT_EQ(chmod(path.c_str(), 0666), 0);
    const auto count = [&] {
        pages_close(&pages_);
        EXPECT_TRUE(pages_open(&pages_, pid));
        return pages_.count;
    };
    ASSERT_EQ(seteuid(65534), 0);
    EXPECT_EQ(count(), 0U);
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_EQ(count(), 1U);
    ASSERT_EQ(seteuid(65534), 0);
    EXPECT_EQ(count(), 1U) << "its own";
    ASSERT_EQ(seteuid(0), 0);
    EXPECT_EQ(unlink(path.c_str()), 0);
}

} // namespace
