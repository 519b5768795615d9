// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The choice of the clock, once per process, from outside: by running
// lawn_info (its path is in $LAWN_INFO), and this program again, where the
// first use is still to come.

#include "../../hang.h"

#include <lawn/lawn.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using lawn_test::Thread;
using lawn_test::Waiting;

// ---- the first use in a process: ClockProcess runs these where it is so

TEST(ClockFirstUse, FromManyThreads)
{
    constexpr int count = 8;
    std::atomic<int> ready{0};
    double rates[count];
    lawn_time_t times[count];
    std::vector<Thread> threads;
    threads.reserve(count);
    for (int i = 0; i < count; ++i) {
        threads.emplace_back("one of all", [&, i] {
            ++ready;
            {
                // No yield: all at the same time.
                const Waiting waiting("all", "to begin");
                while (ready < count) {
                }
            }
            times[i] = lawn_get_time();
            rates[i] = lawn_time_sec_value();
        });
    }
    for (Thread &thread : threads) {
        thread.join();
    }
    const lawn_time_t now = lawn_get_time();
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(rates[i], rates[0]);
        // All on one clock: a mixture would be years apart.
        EXPECT_LT(now - times[i] + lawn_time_from_sec(1),
                  lawn_time_from_sec(3600));
    }
}

TEST(ClockFirstUse, InterruptedByFork)
{
    std::atomic<bool> begun{false};
    std::thread thread([&] {
        begun = true;
        (void)lawn_get_time();
    });
    while (!begun) {
    }
    // The choice takes long enough for some of these to interrupt it.
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(60); // ends a child that waits for a thread it has not got
            // Not _exit(): the thread sanitizer would miss the thread there.
            syscall(SYS_exit_group, lawn_time_sec_value() > 0 ? 0 : 1);
        }
        children.push_back(child);
    }
    thread.join();
    for (pid_t child : children) {
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
}

// ---- other processes

struct Result {
    int exit_code = -1; // -1: did not exit
    std::string output;
    std::string errors;
};

std::string read_all(int fd)
{
    std::string text;
    char part[4096];
    for (ssize_t n; (n = read(fd, part, sizeof(part))) > 0;) {
        text.append(part, static_cast<size_t>(n));
    }
    close(fd);
    return text;
}

// In a cross build, meson tells what runs the target's programs here.
std::vector<std::string> wrapped(std::vector<std::string> words)
{
    const char *const wrapper = getenv("MESON_EXE_WRAPPER");
    std::istringstream stream(wrapper ? wrapper : "");
    words.insert(words.begin(), std::istream_iterator<std::string>(stream), {});
    return words;
}

// Runs a program with LAWN_CLOCK set to `clock`, or unset.
Result run(std::vector<std::string> words, const char *clock)
{
    Result result;
    words = wrapped(std::move(words));
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);

    std::string setting = std::string("LAWN_CLOCK=") + (clock ? clock : "");
    std::vector<char *> environment;
    for (char **entry = environ; *entry; ++entry) {
        if (std::string(*entry).rfind("LAWN_CLOCK=", 0) != 0) {
            environment.push_back(*entry);
        }
    }
    if (clock) {
        environment.push_back(setting.data());
    }
    environment.push_back(nullptr);

    int out[2];
    int err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        ADD_FAILURE() << "pipe2";
        return result;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    pid_t child = -1;
    const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                    arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    // What these programs say on stderr is far below a pipe's capacity.
    result.output = read_all(out[0]);
    result.errors = read_all(err[0]);
    if (failed) {
        ADD_FAILURE() << arguments[0] << ": " << strerror(failed);
        return result;
    }
    int status = -1;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status)) {
        result.exit_code = WEXITSTATUS(status);
    }
    return result;
}

Result run_info(std::vector<std::string> options, const char *clock = nullptr)
{
    const char *path = getenv("LAWN_INFO");
    if (!path) {
        ADD_FAILURE() << "LAWN_INFO is to be the path of lawn_info";
        return {};
    }
    options.insert(options.begin(), path);
    return run(options, clock);
}

bool contains(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

TEST(ClockProcess, FirstUse)
{
    // Not /proc/self/exe, which to a wrapper is the wrapper.
    char self[PATH_MAX] = "";
    ASSERT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
    for (const char *clock : {"", "clock_gettime"}) {
        for (const char *filter : {"ClockFirstUse.FromManyThreads",
                                   "ClockFirstUse.InterruptedByFork"}) {
            const Result result =
                run({self, std::string("--gtest_filter=") + filter}, clock);
            EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
            EXPECT_TRUE(contains(result.output, "[  PASSED  ] 1 test."));
        }
    }
}

TEST(ClockProcess, EnvironmentForcesTheFallback)
{
    const Result result = run_info({"-c"}, "clock_gettime");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_TRUE(contains(result.output, "source:     clock_gettime\n"));
    EXPECT_TRUE(contains(result.output, "frequency:  1000.000000 MHz\n"));
    EXPECT_TRUE(contains(result.output, "found by:   definition\n"));
}

TEST(ClockProcess, OtherSettingsAreIgnored)
{
    const std::string unset = run_info({"-c"}).output;
    const std::string source = unset.substr(0, unset.find("  invariant:"));
    EXPECT_TRUE(contains(source, "source: "));
    for (const char *clock : {"", "hpet", "CLOCK_GETTIME"}) {
        const std::string output = run_info({"-c"}, clock).output;
        EXPECT_EQ(output.substr(0, source.size()), source) << clock;
    }
}

// ---- lawn_info

TEST(LawnInfo, TellsAll)
{
    const Result result = run_info({});
    EXPECT_EQ(result.exit_code, 0);
    for (const char *part : {LAWN_VERSION_STRING, "\nclock\n", "\nbuild\n",
                             "timer size: ", "\ndevices\n"}) {
        EXPECT_TRUE(contains(result.output, part)) << part;
    }
}

TEST(LawnInfo, TellsWhatIsAsked)
{
    for (const char *option : {"-v", "--version"}) {
        const Result result = run_info({option});
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_EQ(result.output, "lawn_info " LAWN_VERSION_STRING "\n");
    }
    for (const char *option : {"-h", "--help"}) {
        const Result result = run_info({option});
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_EQ(result.output.rfind("usage: lawn_info", 0), 0U);
    }
    const Result build = run_info({"-b"});
    EXPECT_EQ(build.exit_code, 0);
    EXPECT_EQ(build.output.rfind("build\n", 0), 0U);
    EXPECT_FALSE(contains(build.output, "clock\n"));
    EXPECT_FALSE(contains(build.output, "devices\n"));
    const Result devices = run_info({"--devices"});
    EXPECT_EQ(devices.exit_code, 0);
    EXPECT_EQ(devices.output.rfind("devices\n  ", 0), 0U);
    EXPECT_FALSE(contains(devices.output, "build\n"));
}

// What it is built with, as the build says it.
TEST(LawnInfo, TellsWhatIsBuilt)
{
    const char *const has = getenv("LAWN_HAS");
    ASSERT_NE(has, nullptr);
    std::string said = run_info({"-b"}).output;
    said.erase(std::remove(said.begin(), said.end(), ' '), said.end());
    std::istringstream parts(has);
    for (std::string part; parts >> part;) {
        EXPECT_TRUE(contains(said, part.c_str())) << part;
    }
}

TEST(LawnInfo, RefusesWhatItDoesNotKnow)
{
    for (const char *word : {"-x", "--nonsense", "stray", "--clock=tsc", "-"}) {
        SCOPED_TRACE(word);
        const Result result = run_info({word});
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_EQ(result.output, "");
        EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'),
                  1);
        EXPECT_EQ(result.errors.find('\n'), result.errors.size() - 1);
    }
}

} // namespace
