// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The file of a trace: whose it is, among engines, children and processes, and
// that the trace touches no other. And pipes, whose readers are slow or absent.

#include "../../hang.h"
#include "trace_fixture.h"

#include <algorithm>
#include <cerrno>

#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace lawn_test;

namespace
{

// Its reader may come later, or not at all; the program does not wait for it.
TEST_F(Trace, DoesNotWaitForTheReaderOfAPipe)
{
    const std::string path = path_of("trace");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    alarm(60); // rather than to wait for ever
    EXPECT_EQ(lawn_engine_trace(engine_, path.c_str()), LAWN_ERR_IO);
    EXPECT_EQ(errno, ENXIO);
    alarm(0);
}

TEST_F(Trace, LosesNothingToASlowReader)
{
    const std::string path = path_of("trace");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
    EXPECT_GT(fcntl(reader, F_SETPIPE_SZ, 4096), 0); // less than the buffer
    std::string recorded;
    record();
    Thread reading("the reader", [&] {
        char buffer[512];
        for (ssize_t n; (n = read(reader, buffer, sizeof(buffer))) > 0;) {
            recorded.append(buffer, static_cast<size_t>(n));
        }
    });
    run_much(engine_);
    lawn_engine_destroy(engine_);
    engine_ = nullptr;
    reading.join();
    close(reader);
    EXPECT_EQ(std::count(recorded.begin(), recorded.end(), '\n'), 40'002);
}

// What the child does must not show in the parent's file, nor end it.
TEST_F(Trace, ChildWritesNothing)
{
    record();
    start_timer(1000);
    ASSERT_TRUE(does_well_in_a_child([this] {
        run_much(engine_);
        lawn_engine_destroy(engine_);
        engine_ = nullptr;
        return true;
    }));
    pass_at(start + 3);
    EXPECT_EQ(named(finish()), header + "0 start A 1000\n"
                                        "3 poll 1\n");
}

TEST_F(Trace, EnginesShareNoFile)
{
    record();
    start_timer(500);
    lawn_engine_t *other = nullptr;
    ASSERT_EQ(lawn_engine_create(&params_, &other), LAWN_OK);
    for (int i = 0; i < 2; ++i) { // a refusal leaves the file its owner
        EXPECT_EQ(lawn_engine_trace(other, path_of("trace").c_str()),
                  LAWN_ERR_IO);
        EXPECT_EQ(errno, EAGAIN);
    }
    EXPECT_EQ(lawn_engine_trace(other, path_of("trace.1").c_str()), LAWN_OK);
    set_trace("trace");
    lawn_engine_t *third = nullptr; // takes the next number
    ASSERT_EQ(lawn_engine_create(&params_, &third), LAWN_OK);
    set_trace(nullptr);
    lawn_engine_destroy(third);
    EXPECT_EQ(text("trace.2"), header);
    EXPECT_EQ(named(finish()), header + "0 start A 500\n");
    // It is free again.
    EXPECT_EQ(lawn_engine_trace(other, path_of("trace").c_str()), LAWN_OK);
    EXPECT_EQ(lawn_engine_trace(other, path_of("trace").c_str()), LAWN_OK);
    lawn_engine_destroy(other);
    EXPECT_EQ(text("trace"), header);
}

// A child has a copy of the descriptor, and with it of the lock.
TEST_F(Trace, AChildDoesNotKeepTheFile)
{
    int done[2];
    ASSERT_EQ(pipe(done), 0);
    record();
    pass();
    const pid_t child = fork();
    if (child == 0) {
        close(done[1]);
        char byte = 0;
        const bool is_good = read(done[0], &byte, 1) == 0;
        lawn_engine_destroy(engine_);
        _exit(is_good ? 0 : 1);
    }
    const std::string path = path_of("trace");
    EXPECT_EQ(lawn_engine_trace(engine_, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_engine_trace(engine_, path.c_str()), LAWN_OK);
    start_timer(7);
    EXPECT_EQ(named(finish()), header + "0 start A 7\n");
    close(done[0]);
    close(done[1]);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(Trace, ProcessesShareNoFile)
{
    set_trace("trace");
    int ready[2];
    int done[2];
    ASSERT_EQ(pipe(ready), 0);
    ASSERT_EQ(pipe(done), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(done[1]);
        create();
        char byte = 0;
        const bool good =
            ::write(ready[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 0;
        lawn_timer_t timer = {};
        lawn_engine_start(engine_, &timer, 9);
        lawn_engine_destroy(engine_);
        _exit(good && !HasFailure() ? 0 : 1);
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    // The same name as the child's, whose file it is.
    EXPECT_EQ(lawn_engine_trace(engine_, path_of("trace").c_str()),
              LAWN_ERR_IO);
    EXPECT_TRUE(errno == EACCES || errno == EAGAIN);
    record();
    for (const int fd : {ready[0], ready[1], done[0], done[1]}) {
        close(fd);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    lawn_engine_destroy(engine_);
    engine_ = nullptr;
    EXPECT_EQ(named(text("trace")), header + "0 start A 9\n");
    EXPECT_EQ(text("trace.1"), header);
}

// Daemons close all descriptors, and their own files get the numbers.
class TraceLosesFile : public Trace
{
protected:
    // Loses the file, does `act`, and ends. False if the program's file was
    // touched.
    bool survives(const std::function<void()> &act)
    {
        const int fd = descriptor_of("trace");
        const std::string path = write("own", "precious\n");
        const int own = open(path.c_str(), O_RDWR);
        dup2(own, fd); // closes what had it
        close(own);
        start_timer(LAWN_TIME_INFINITY);
        act();
        lawn_engine_destroy(engine_);
        engine_ = nullptr;
        const bool is_open = lseek(fd, 0, SEEK_CUR) == 0;
        return is_open && close(fd) == 0 && text("own") == "precious\n";
    }

    // In a child and here.
    void expect_survival(const std::function<void()> &act)
    {
        record();
        EXPECT_TRUE(does_well_in_a_child(
            [&] { return survives(act) && !HasFailure(); }));
        EXPECT_TRUE(survives(act));
        EXPECT_EQ(text("trace"), header);
    }

    int descriptor_of(const std::string &name) const
    {
        // Not by std::filesystem, which MemorySanitizer does not see into.
        for (int fd = 0; fd < 1024; ++fd) {
            const std::string link = "/proc/self/fd/" + std::to_string(fd);
            char target[PATH_MAX] = "";
            if (readlink(link.c_str(), target, sizeof(target) - 1) > 0 &&
                target == path_of(name)) {
                return fd;
            }
        }
        ADD_FAILURE() << name << " is not open";
        return -1;
    }
};

TEST_F(TraceLosesFile, Destroy)
{
    expect_survival([] {});
}

TEST_F(TraceLosesFile, FillTheBuffer)
{
    expect_survival([this] { run_much(engine_); });
}

TEST_F(TraceLosesFile, ASecondPasses)
{
    expect_survival([this] {
        pass_at(now_ + 2 * sec);
        pass_at(now_ + 2 * sec);
    });
}

TEST_F(TraceLosesFile, End)
{
    expect_survival(
        [this] { EXPECT_EQ(lawn_engine_trace(engine_, nullptr), LAWN_OK); });
}

TEST_F(TraceLosesFile, BeginAnother)
{
    expect_survival([this] {
        EXPECT_EQ(lawn_engine_trace(engine_, path_of("other").c_str()),
                  LAWN_OK);
        start_timer(5);
        lawn_engine_trace(engine_, nullptr);
        EXPECT_NE(text("other").find(" start "), std::string::npos);
    });
}

TEST_F(TraceLosesFile, ToNobody)
{
    record();
    close(descriptor_of("trace"));
    errno = 0;
    run_much(engine_);
    EXPECT_EQ(errno, 0);
    EXPECT_EQ(finish(), header);
}

} // namespace
