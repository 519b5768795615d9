// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The system refuses: what opens files, maps memory or starts threads is called
// with its first call of the system failing, then with its second, and so on
// until none fails. (Linked with --wrap: the C library's functions fail.) Each
// failure is told with its errno, and leaves no file and no descriptor behind.

#include <lawn/engine.h>
#include <lawn/group.h>
#include <lawn/numa.h>
#include <lawn/service.h>
#include <lawn/shm.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace
{

struct Refusal {
    int error = EIO;
    unsigned number = 0; // of the call that fails; 0: none
    unsigned calls = 0;
    const char *name = nullptr; // of the call that failed
};

thread_local Refusal refusal;

bool is_refused(const char *name)
{
    if (refusal.number == 0 || ++refusal.calls != refusal.number) {
        return false;
    }
    refusal.name = name;
    errno = refusal.error;
    return true;
}

} // namespace

// Functions that return a result and set errno.
#define LAWN_WRAP(result, failed, name, parameters, arguments)                 \
    result __real_##name parameters;                                           \
    result __wrap_##name parameters                                            \
    {                                                                          \
        return is_refused(#name) ? (failed) : __real_##name arguments;         \
    }

// Functions that return an error number.
#define LAWN_WRAP_STATUS(name, parameters, arguments)                          \
    LAWN_WRAP(int, refusal.error, name, parameters, arguments)

extern "C" {

LAWN_WRAP(int, -1, open64, (const char *path, int flags, mode_t mode),
          (path, flags, mode))
LAWN_WRAP(int, -1, fstat64, (int fd, void *about), (fd, about))
LAWN_WRAP(int, -1, stat64, (const char *path, void *about), (path, about))
LAWN_WRAP(int, -1, fcntl64, (int fd, int command, void *arg),
          (fd, command, arg))
LAWN_WRAP(int, -1, ftruncate64, (int fd, off_t size), (fd, size))
LAWN_WRAP(ssize_t, -1, read, (int fd, void *bytes, size_t size),
          (fd, bytes, size))
LAWN_WRAP(ssize_t, -1, pread64, (int fd, void *bytes, size_t size, off_t at),
          (fd, bytes, size, at))
LAWN_WRAP(void *, MAP_FAILED, mmap64,
          (void *at, size_t size, int access, int flags, int fd, off_t from),
          (at, size, access, flags, fd, from))
LAWN_WRAP(int, -1, rename, (const char *from, const char *to), (from, to))
LAWN_WRAP(int, -1, mkfifo, (const char *path, mode_t mode), (path, mode))
LAWN_WRAP(int, -1, poll, (pollfd * fds, nfds_t count, int msec),
          (fds, count, msec))
LAWN_WRAP(int, -1, epoll_create1, (int flags), (flags))
// The other operations fail only for a descriptor that is not the engine's.
int __real_epoll_ctl(int epoll, int operation, int fd, epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event *event)
{
    return operation == EPOLL_CTL_ADD && is_refused("epoll_ctl")
               ? -1
               : __real_epoll_ctl(epoll, operation, fd, event);
}

LAWN_WRAP(int, -1, timerfd_create, (int clock, int flags), (clock, flags))
LAWN_WRAP(long, -1, syscall,
          (long number, long a, long b, long c, long d, long e, long f),
          (number, a, b, c, d, e, f))
LAWN_WRAP_STATUS(posix_fallocate64, (int fd, off_t from, off_t size),
                 (fd, from, size))
LAWN_WRAP_STATUS(pthread_create,
                 (pthread_t * thread, const pthread_attr_t *how,
                  void *(*run)(void *), void *arg),
                 (thread, how, run, arg))
LAWN_WRAP_STATUS(pthread_atfork,
                 (void (*before)(), void (*parent)(), void (*child)()),
                 (before, parent, child))
}

namespace
{

lawn_time_t still(void *)
{
    return 1;
}

class System : public testing::Test
{
protected:
    System()
    {
        char name[] = "/tmp/lawn-system.XXXXXX";
        directory_ = mkdtemp(name);
        path_ = directory_ + "/timers";
        engine_params_.clock = still;
        engine_params_.ticks_per_sec = 1e9;
    }

    ~System() override
    {
        EXPECT_EQ(entries_of(directory_), 0U);
        rmdir(directory_.c_str());
    }

    static size_t entries_of(const std::string &path)
    {
        size_t count = 0;
        DIR *const directory = opendir(path.c_str());
        while (const dirent *const entry = readdir(directory)) {
            count += entry->d_name[0] != '.';
        }
        closedir(directory);
        return count;
    }

    // Calls `attempt` with each of its calls failing in turn. It returns the
    // status, and undoes what it has done. `harmless` are the calls that may
    // fail without a failure of the whole.
    template <class Attempt>
    void refuse_each(Attempt attempt, const std::set<std::string> &harmless)
    {
        for (unsigned number = 1;; ++number) {
            const size_t fds = entries_of("/proc/self/fd");
            const size_t files = entries_of(directory_);
            refusal = {EIO, number, 0, nullptr};
            errno = 0;
            const lawn_status_t status = attempt();
            const int error = errno;
            refusal.number = 0;
            if (!refusal.name) {
                EXPECT_EQ(status, LAWN_OK);
                EXPECT_GT(number, 1U);
                return;
            }
            SCOPED_TRACE(refusal.name);
            if (status == LAWN_OK) {
                EXPECT_EQ(harmless.count(refusal.name), 1U);
            } else {
                EXPECT_EQ(status, LAWN_ERR_IO);
                EXPECT_EQ(error, EIO);
            }
            EXPECT_EQ(entries_of("/proc/self/fd"), fds);
            EXPECT_EQ(entries_of(directory_), files);
        }
    }

    lawn_engine_t *create_engine()
    {
        lawn_engine_t *engine = nullptr;
        EXPECT_EQ(lawn_engine_create(&engine_params_, &engine), LAWN_OK);
        return engine;
    }

    std::string directory_;
    std::string path_;
    lawn_engine_params_t engine_params_ = {};
};

// Undoes with no call failing, and keeps the errno of what failed.
template <class Undo> void undo(Undo undo)
{
    const int error = errno;
    const unsigned number = refusal.number;
    refusal.number = 0;
    undo();
    refusal.number = number;
    errno = error;
}

// The first, because what counts forks is registered once in a process.
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
}

TEST_F(System, AnEngineWithoutItsPageIsNotMade)
{
    engine_params_.stats_name = "system_test";
    testing::internal::CaptureStderr();
    const size_t pages = entries_of("/dev/shm");
    refuse_each(
        [&] {
            lawn_engine_t *engine = nullptr;
            const lawn_status_t status =
                lawn_engine_create(&engine_params_, &engine);
            undo([=] { lawn_engine_destroy(engine); });
            return status;
        },
        {});
    EXPECT_EQ(entries_of("/dev/shm"), pages);
    EXPECT_NE(testing::internal::GetCapturedStderr().find(strerror(EIO)),
              std::string::npos);
}

TEST_F(System, AnOwnerOfSharedMemoryTellsWhatFailed)
{
    lawn_engine_t *const engine = create_engine();
    ASSERT_GE(lawn_engine_fd(engine), 0);
    refuse_each(
        [&] {
            lawn_shm_t *shm = nullptr;
            const lawn_status_t status =
                lawn_shm_create(engine, path_.c_str(), nullptr, &shm);
            undo([&] {
                lawn_shm_destroy(shm);
                struct stat about = {};
                if (stat(path_.c_str(), &about) == 0) {
                    const std::set<std::string> early = {"fcntl64", "fstat64",
                                                         "stat64"};
                    EXPECT_EQ(early.count(refusal.name), 1U);
                    EXPECT_EQ(about.st_size, 0);
                    unlink(path_.c_str());
                }
            });
            return status;
        },
        {"pread64"}); // there may be nothing of a dead owner
    lawn_engine_destroy(engine);
}

TEST_F(System, AClientOfSharedMemoryTellsWhatFailed)
{
    lawn_engine_t *const engine = create_engine();
    lawn_shm_t *shm = nullptr;
    ASSERT_EQ(lawn_shm_create(engine, path_.c_str(), nullptr, &shm), LAWN_OK);
    lawn_engine_progress(engine); // opens what it watches
    refuse_each(
        [&] {
            lawn_shm_client_t *client = nullptr;
            const lawn_status_t status =
                lawn_shm_open(path_.c_str(), still, nullptr, &client);
            undo([=] {
                lawn_shm_close(client);
                lawn_engine_progress(engine);
            });
            return status;
        },
        {"open64", "read"}); // of /proc
    lawn_shm_destroy(shm);
    lawn_engine_destroy(engine);
}

// If an owner has no descriptor left for a client, it looks at the client again
// later. It does not take the client for dead.
TEST_F(System, AClientThatCannotBeWatchedIsLookedAtAgain)
{
    lawn_time_t now = 1;
    engine_params_.clock = [](void *arg) {
        return *static_cast<lawn_time_t *>(arg);
    };
    engine_params_.clock_arg = &now;
    lawn_engine_t *const engine = create_engine();
    lawn_shm_t *shm = nullptr;
    ASSERT_EQ(lawn_shm_create(engine, path_.c_str(), nullptr, &shm), LAWN_OK);
    unsigned incomplete = 0;
    for (unsigned number = 1;; ++number) {
        lawn_shm_client_t *client = nullptr;
        ASSERT_EQ(
            lawn_shm_open(path_.c_str(), engine_params_.clock, &now, &client),
            LAWN_OK);
        const uint64_t id = lawn_shm_id(client);
        refusal = {EMFILE, number, 0, nullptr};
        lawn_engine_progress(engine);
        refusal.number = 0;
        EXPECT_TRUE(lawn_shm_is_open(client, id));
        incomplete += lawn_engine_next(engine) <= now + 1000000;
        now += 1000000; // a millisecond: the next look
        lawn_engine_progress(engine);
        EXPECT_EQ(lawn_engine_next(engine), LAWN_TIME_INFINITY);
        EXPECT_TRUE(lawn_shm_is_open(client, id));
        lawn_shm_close(client);
        lawn_engine_progress(engine);
        if (!refusal.name) {
            break;
        }
    }
    EXPECT_EQ(incomplete, 3U); // no pidfd, not in epoll, no FIFO
    lawn_shm_stats_t stats;
    lawn_shm_query(shm, &stats);
    EXPECT_EQ(stats.deaths, 0U);
    EXPECT_EQ(stats.clients, 0U);
    lawn_shm_destroy(shm);
    lawn_engine_destroy(engine);
}

TEST_F(System, AServiceTellsWhatFailed)
{
    refuse_each(
        [&] {
            lawn_service_t *service = nullptr;
            const lawn_status_t status = lawn_service_create(nullptr, &service);
            undo([=] { lawn_service_destroy(service); });
            return status;
        },
        {});
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

TEST_F(System, MemoryStaysWhereItIsIfItCannotMove)
{
    const size_t size = 3 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *const memory = lawn_numa_alloc(size, -1);
    ASSERT_NE(memory, nullptr);
    for (const int error : {ENOSYS, EINVAL, EPERM, EIO, ENOMEM}) {
        refusal = {error, 1, 0, nullptr};
        const lawn_status_t status = lawn_numa_move(memory, size, 0);
        EXPECT_EQ(status, error == EIO || error == ENOMEM
                              ? LAWN_ERR_IO
                              : LAWN_ERR_UNSUPPORTED);
        refusal = {error, 1, 0, nullptr};
        EXPECT_EQ(lawn_numa_node_of(memory), -1);
        refusal = {error, 1, 0, nullptr};
        EXPECT_EQ(lawn_numa_node(), 0);
        refusal = {error, 2, 0, nullptr}; // mmap is the first
        errno = 0;
        void *const other = lawn_numa_alloc(size, 0);
        EXPECT_NE(other, nullptr);
        EXPECT_EQ(errno, 0);
        refusal = {error, 1, 0, nullptr};
        EXPECT_EQ(lawn_numa_alloc(size, 0), nullptr);
        refusal = {};
        lawn_numa_free(other, size);
    }
    lawn_numa_free(memory, size);
}

} // namespace
