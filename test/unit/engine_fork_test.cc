// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Forks: a child has a copy of the engine's memory but the very descriptors of
// its parent. It may use both or throw them away; the parent feels nothing.

#include "engine_fixture.h"

#include <sys/wait.h>

using namespace lawn_test;

namespace
{

// Runs `work` in a child, from which it does not return; true if it did well.
bool does_well_in_a_child(const std::function<bool()> &work)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);            // rather than to wait for ever
        exit(work() ? 0 : 1); // not _exit(): instruments have their say
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

void signal_fd(int fd)
{
    const uint64_t one = 1;
    EXPECT_EQ(write(fd, &one, sizeof(one)), ssize_t{sizeof(one)});
}

TEST_F(Engine, ChildThatDestroysItDisturbsNothing)
{
    const int fd = event_fd(0);
    lawn_source_t *const source = add('a', fd);
    start_timer(3600 * sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    for (const bool removes : {false, true}) {
        EXPECT_TRUE(does_well_in_a_child([&] {
            if (removes) {
                lawn_engine_remove(engine_, source);
            }
            lawn_engine_destroy(engine_);
            return true;
        }));
    }
    EXPECT_FALSE(is_readable(0));
    signal_fd(fd);
    EXPECT_TRUE(is_readable(0));
    lawn_engine_remove(engine_, source);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 1U);
    start_timer(msec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
}

TEST_F(Engine, ChildHasAnEngineOfItsOwn)
{
    const int shared = event_fd(0);
    const int own = event_fd(1);
    const int removed = event_fd(0);
    add('a', shared);
    lawn_source_t *const gone = add('r', removed);
    add('n'); // without an fd
    start_timer(3600 * sec);
    const lawn_time_t deadline = now_ + 3600 * sec;
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(does_well_in_a_child([&] {
        lawn_engine_remove(engine_, gone);
        const bool fires = pass_at(deadline) == "ant";
        start_timer(msec);
        const bool wakes =
            lawn_engine_arm(engine_) == LAWN_OK && is_readable(long_msec);
        signal_fd(shared); // the parent's as well
        const bool sees_source = lawn_engine_arm(engine_) == LAWN_ERR_BUSY;
        add('o', own);
        lawn_engine_destroy(engine_);
        return fires && wakes && sees_source && !HasFailure();
    }));
    EXPECT_TRUE(is_readable(0)); // for what the child has done to `shared`
    uint64_t count = 0;
    EXPECT_EQ(read(shared, &count, sizeof(count)), ssize_t{sizeof(count)});
    // And for nothing else: not the child's timer, nor its source.
    EXPECT_FALSE(is_readable(2));
    signal_fd(removed);
    EXPECT_TRUE(is_readable(0));
    EXPECT_EQ(lawn_engine_next(engine_), deadline);
    EXPECT_EQ(pass_at(deadline), "arnt");
}

// Daemons close what they have inherited, and open other files instead.
TEST_F(Engine, ChildMayHaveClosedTheSources)
{
    const int fds[] = {event_fd(1), event_fd(1)};
    add('a', fds[0]);
    add('b', fds[1]);
    EXPECT_TRUE(does_well_in_a_child([&] {
        close(fds[0]);
        close(fds[1]);
        const bool is_quiet =
            open("/proc/self/exe", O_RDONLY) == fds[0] &&
            lawn_engine_arm(engine_) == LAWN_OK &&
            lawn_engine_wait(engine_, msec) == LAWN_ERR_TIMED_OUT;
        lawn_engine_destroy(engine_);
        return is_quiet;
    }));
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
}

TEST_F(Engine, ChildWhoseSourcesShareAnFd)
{
    const int fd = event_fd(0);
    lawn_source_t *const a = add('a', fd);
    add('b', fd);
    EXPECT_TRUE(does_well_in_a_child([&] {
        const bool is_quiet = lawn_engine_arm(engine_) == LAWN_OK;
        lawn_engine_remove(engine_, a);
        signal_fd(fd);
        const bool wakes = lawn_engine_arm(engine_) == LAWN_ERR_BUSY;
        lawn_engine_destroy(engine_);
        return is_quiet && wakes;
    }));
}

} // namespace
