// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The system refuses: what opens files, maps memory or starts threads is called
// with its first call of the system failing, then with its second, and so on
// until none fails. (Linked with --wrap: the C library's functions fail.) Each
// failure is told with its errno, and leaves no file and no descriptor behind.

#include "system_fixture.h"

#include "engine/page_layout.h"

#include <lawn/group.h>
#include <lawn/numa.h>
#include <lawn/service.h>
#include <lawn/shm.h>

#include <cstring>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

using namespace lawn_test;

namespace
{

lawn_status_t create_service()
{
    lawn_service_t *service = nullptr;
    const lawn_status_t status = lawn_service_create(nullptr, &service);
    undo([=] { lawn_service_destroy(service); });
    return status;
}

// These two come first, because what counts forks is registered once in a
// process, by the first box, client or engine that sleeps.
TEST_F(System, ABoxIsNotMadeIfForksCannotBeCounted)
{
    lawn_shm_client_t *client = nullptr;
    EXPECT_EQ(refuse("pthread_atfork", ENOMEM,
                     [&] {
                         return lawn_shm_open(path_.c_str(), nullptr, nullptr,
                                              &client);
                     }),
              LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(refuse("pthread_atfork", ENOMEM, create_service),
              LAWN_ERR_NO_MEMORY);
}

TEST_F(System, AnEngineThatCannotSleepTellsWhy)
{
    refuse_each(
        [&] {
            lawn_engine_t *engine = nullptr;
            undo([&] { engine = create_engine(); });
            const bool is_open = lawn_engine_fd(engine) >= 0;
            undo([=] { lawn_engine_destroy(engine); });
            return is_open ? LAWN_OK : LAWN_ERR_IO;
        },
        {});
    EXPECT_EQ(refused_.count("pthread_atfork"), 1U) << "is not the first";
}

TEST_F(System, AnEngineWithoutItsPageIsNotMade)
{
    engine_params_.stats_name = "system_test";
    testing::internal::CaptureStderr();
    // Other programs have pages, too, which come and go.
    const std::string own = LAWN_PAGE_PREFIX + std::to_string(getpid()) + ".";
    refuse_each(
        [&] {
            lawn_engine_t *engine = nullptr;
            const lawn_status_t status =
                lawn_engine_create(&engine_params_, &engine);
            undo([=] { lawn_engine_destroy(engine); });
            return status;
        },
        {"stat64"}); // a page may do without its PID namespace
    EXPECT_EQ(entries_of(LAWN_PAGE_DIRECTORY, own), 0U);
    EXPECT_NE(testing::internal::GetCapturedStderr().find(strerror(EIO)),
              std::string::npos);
}

TEST_F(System, AServiceTellsWhatFailed)
{
    EXPECT_EQ(create_service(), LAWN_OK);
    refuse_each(create_service, {});
}

TEST_F(System, AGroupTellsWhyAWorkerCannotJoin)
{
    lawn_group_t *group = nullptr;
    ASSERT_EQ(lawn_group_create(nullptr, &group), LAWN_OK);
    refuse_each(
        [&] {
            lawn_worker_t *worker = nullptr;
            const lawn_status_t status = lawn_group_add_thread(group, &worker);
            undo([=] {
                if (worker) {
                    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr),
                              LAWN_OK);
                }
            });
            return status;
        },
        {});
    engine_params_.clock = lawn_group_time;
    engine_params_.clock_arg = group;
    refuse_each(
        [&] {
            lawn_engine_t *engine = nullptr;
            undo([&] { engine = create_engine(); });
            lawn_worker_t *worker = nullptr;
            const lawn_status_t status =
                lawn_group_add_engine(group, engine, &worker);
            undo([=] {
                if (worker) {
                    EXPECT_EQ(lawn_group_remove_worker(worker, nullptr),
                              LAWN_OK);
                }
                lawn_engine_destroy(engine);
            });
            return status;
        },
        {});
    lawn_group_destroy(group);
}

// Each shard's lawn and box are in pages of their own.
TEST_F(System, AGroupWithoutPagesIsNotMade)
{
    lawn_group_params_t params = {};
    params.shards = 2;
    params.moves_memory = true;
    lawn_group_t *group = nullptr;
    for (unsigned number = 1; number <= 4; ++number) {
        refusal = {ENOMEM, number, 0, nullptr, "mmap64"};
        EXPECT_EQ(lawn_group_create(&params, &group), LAWN_ERR_NO_MEMORY);
        EXPECT_EQ(group, nullptr);
    }
    refusal = {};
    ASSERT_EQ(lawn_group_create(&params, &group), LAWN_OK);
    lawn_group_destroy(group);
}

// A source of which the kernel has no room to be told would not wake the
// engine. One that is closed does not matter.
TEST_F(System, AnEngineThatOpensItsFilesAgainNeedsItsSources)
{
    lawn_engine_t *const engine = create_engine();
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    EXPECT_EQ(lawn_engine_add(
                  engine, [](void *) { return 0U; }, nullptr, fds[0], nullptr),
              LAWN_OK);
    const auto open_again = [&](int error) {
        undo([&] { close(lawn_engine_fd(engine)); });
        refusal = {error, 2, 0, nullptr, "epoll_ctl"}; // the timerfd is first
        const int fd = lawn_engine_fd(engine);
        EXPECT_TRUE(fd >= 0 || errno == error);
        refusal = {};
        return fd >= 0;
    };
    EXPECT_FALSE(open_again(ENOMEM));
    EXPECT_FALSE(open_again(ENOSPC));
    EXPECT_TRUE(open_again(EBADF));
    lawn_engine_destroy(engine);
    close(fds[0]);
    close(fds[1]);
}

// As a daemon does that closes all that it has. The epoll descriptor cannot be
// told from a foreign one without the timerfd, and stays open.
TEST_F(System, AnEngineWhoseTimerfdWasClosedOpensAnother)
{
    lawn_engine_t *const engine = create_engine();
    const int fd = lawn_engine_fd(engine);
    ASSERT_GE(fd, 0);
    unsigned closed = 0;
    for (int i = 0; i < fd + 10; ++i) {
        char file[64] = {};
        const std::string link = "/proc/self/fd/" + std::to_string(i);
        if (readlink(link.c_str(), file, sizeof(file) - 1) > 0 &&
            strstr(file, "[timerfd]")) {
            close(i);
            ++closed;
        }
    }
    EXPECT_EQ(closed, 1U);
    EXPECT_EQ(lawn_engine_arm(engine), LAWN_OK);
    EXPECT_NE(lawn_engine_fd(engine), fd);
    lawn_engine_destroy(engine);
    EXPECT_EQ(close(fd), 0);
}

// What goes wrong with the file of a trace disturbs nobody, once it is open.
TEST_F(System, ATraceTellsThatItCannotBeOpened)
{
    lawn_engine_t *const engine = create_engine();
    refuse_each(
        [&] {
            const lawn_status_t status =
                lawn_engine_trace(engine, path_.c_str());
            undo([=] {
                lawn_engine_trace(engine, nullptr);
                unlink(path_.c_str());
            });
            return status;
        },
        {"fcntl64", "ftruncate64", "fstat64", "write"});
    // A file that cannot be told from others is not written to.
    EXPECT_EQ(refuse("fstat64", EIO,
                     [&] { return lawn_engine_trace(engine, path_.c_str()); }),
              LAWN_ERR_IO);
    unlink(path_.c_str());
    lawn_engine_destroy(engine);
}

// On some file systems, EACCES says that another process has the file.
TEST_F(System, ATraceLeavesAFileThatIsAnothers)
{
    lawn_engine_t *const engine = create_engine();
    const auto record = [&] {
        return lawn_engine_trace(engine, path_.c_str());
    };
    for (const int error : {EACCES, EAGAIN}) {
        EXPECT_EQ(refuse("fcntl64", error, record), LAWN_ERR_IO);
        EXPECT_EQ(errno, error);
    }
    EXPECT_EQ(refuse("fcntl64", ENOLCK, record), LAWN_OK) << "has no locks";
    lawn_engine_destroy(engine);
    unlink(path_.c_str());
}

TEST_F(System, ATraceIsWrittenOverASignal)
{
    lawn_engine_t *const engine = create_engine();
    EXPECT_EQ(refuse("write", EINTR,
                     [&] { return lawn_engine_trace(engine, path_.c_str()); }),
              LAWN_OK);
    lawn_engine_destroy(engine);
    struct stat about = {};
    EXPECT_EQ(stat(path_.c_str(), &about), 0);
    EXPECT_GT(about.st_size, 0);
    unlink(path_.c_str());
}

TEST_F(System, ThePageKnowsItsNode)
{
    int node = 3;
    pretence.node = &node;
    EXPECT_EQ(lawn_numa_node_of(&node), 3);
    node = -ENOENT; // nobody has touched it
    EXPECT_EQ(lawn_numa_node_of(&node), -1);
    pretence.node = nullptr;
}

TEST_F(System, MemoryStaysWhereItIsIfItCannotMove)
{
    const size_t size = 3 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *const memory = lawn_numa_alloc(size, -1);
    ASSERT_NE(memory, nullptr);
    for (const int error : {ENOSYS, EINVAL, EPERM, EIO, ENOMEM}) {
        refusal = {error, 1, 0, nullptr, nullptr};
        const lawn_status_t status = lawn_numa_move(memory, size, 0);
        EXPECT_EQ(status, error == EIO || error == ENOMEM
                              ? LAWN_ERR_IO
                              : LAWN_ERR_UNSUPPORTED);
        refusal = {error, 1, 0, nullptr, nullptr};
        EXPECT_EQ(lawn_numa_node_of(memory), -1);
        refusal = {error, 1, 0, nullptr, nullptr};
        EXPECT_EQ(lawn_numa_node(), 0);
        refusal = {error, 2, 0, nullptr, nullptr}; // mmap is the first
        errno = 0;
        void *const other = lawn_numa_alloc(size, 0);
        EXPECT_NE(other, nullptr);
        EXPECT_EQ(errno, 0);
        refusal = {error, 1, 0, nullptr, nullptr};
        EXPECT_EQ(lawn_numa_alloc(size, 0), nullptr);
        refusal = {};
        lawn_numa_free(other, size);
    }
    lawn_numa_free(memory, size);
}

} // namespace
