// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The system refuses what owners and clients of shared memory ask of it.

#include "system_fixture.h"

#include "shm/layout.h"

#include <lawn/shm.h>

#include <fcntl.h>
#include <sys/stat.h>

using namespace lawn_test;

namespace
{

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
        {"pread64", "open64", "read"}); // of a dead owner, and of /proc
    lawn_engine_destroy(engine);
}

// The owner finds no file, and then cannot make it, because it is there now.
TEST_F(System, AFileThatSomebodyMakesMeanwhileIsUsed)
{
    lawn_engine_t *const engine = create_engine();
    close(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    lawn_shm_t *shm = nullptr;
    EXPECT_EQ(refuse("open64", ENOENT,
                     [&] {
                         return lawn_shm_create(engine, path_.c_str(), nullptr,
                                                &shm);
                     }),
              LAWN_OK);
    lawn_shm_destroy(shm);
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
        {"open64", "read", "poll", "write"}); // of /proc, and the bell
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
        refusal = {EMFILE, number, 0, nullptr, nullptr};
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
    EXPECT_EQ(incomplete, 4U); // no pidfd, not in epoll, no FIFO or not known
    lawn_shm_stats_t stats;
    lawn_shm_query(shm, &stats);
    EXPECT_EQ(stats.deaths, 0U);
    EXPECT_EQ(stats.clients, 0U);
    lawn_shm_destroy(shm);
    lawn_engine_destroy(engine);
}

// Another process has removed the file between the two calls.
TEST_F(System, AnOwnerThatHasLockedAFileThatIsGoneTakesTheNext)
{
    lawn_engine_t *const engine = create_engine();
    lawn_shm_t *shm = nullptr;
    EXPECT_EQ(refuse("stat64", ENOENT,
                     [&] {
                         return lawn_shm_create(engine, path_.c_str(), nullptr,
                                                &shm);
                     }),
              LAWN_OK);
    EXPECT_EQ(entries_of(directory_), 2U); // the memory and the bell
    lawn_shm_destroy(shm);
    lawn_engine_destroy(engine);
}

// There is no room; and what a dead owner has left stays for another try.
TEST_F(System, AnOwnerWithoutRoomLeavesWhatItHasFound)
{
    lawn_engine_t *const engine = create_engine();
    lawn_shm_t *shm = nullptr;
    const auto create = [&] {
        return lawn_shm_create(engine, path_.c_str(), nullptr, &shm);
    };
    EXPECT_EQ(refuse("posix_fallocate64", ENOSPC, create), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(entries_of(directory_), 0U);
    const int fd = open(path_.c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(write(fd, &lawn::shm::magic, sizeof(lawn::shm::magic)),
              ssize_t{sizeof(lawn::shm::magic)});
    close(fd);
    EXPECT_EQ(refuse("posix_fallocate64", ENOSPC, create), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(entries_of(directory_), 1U);
    EXPECT_EQ(shm, nullptr);
    EXPECT_EQ(create(), LAWN_OK);
    lawn_shm_destroy(shm);
    lawn_engine_destroy(engine);
}

// Which parts of /proc/PID/stat are a name, and what it may say instead.
TEST_F(System, AProcessIsKnownByItsStart)
{
    const uint64_t birth = lawn::shm::birth_of(getpid());
    EXPECT_NE(birth, 0U);
    EXPECT_EQ(lawn::shm::birth_of(getpid()), birth);
    const std::string fields = " S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
                               "20 21 987654 23 24";
    const auto born = [](const std::string &text) {
        pretence.text = text.c_str();
        const uint64_t when = lawn::shm::birth_of(getpid());
        pretence.text = nullptr;
        return when;
    };
    EXPECT_EQ(born("123 (name)" + fields), 987654U);
    EXPECT_EQ(born("123 (a) S 1 2 (b) c)" + fields), 987654U);
    EXPECT_EQ(born("123 (name) S 4 5 6"), 0U);
    EXPECT_EQ(born("123 name"), 0U);
    EXPECT_EQ(born(""), 0U);
}

class SystemClient : public System
{
protected:
    SystemClient()
    {
        engine_ = create_engine();
        EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), nullptr, &shm_),
                  LAWN_OK);
    }

    ~SystemClient() override
    {
        lawn_shm_destroy(shm_);
        lawn_engine_destroy(engine_);
    }

    lawn_status_t open_client()
    {
        return lawn_shm_open(path_.c_str(), still, nullptr, &client_);
    }

    lawn_engine_t *engine_ = nullptr;
    lawn_shm_t *shm_ = nullptr;
    lawn_shm_client_t *client_ = nullptr;
};

TEST_F(SystemClient, IsRefusedWhenItsOwnerDiesAsItComes)
{
    EXPECT_EQ(refuse("syscall", ESRCH, [&] { return open_client(); }),
              LAWN_ERR_NO_ELEM);
    EXPECT_EQ(client_, nullptr);
}

TEST_F(SystemClient, WaitsInMilliseconds)
{
    ASSERT_EQ(open_client(), LAWN_OK);
    const auto wait = [&](lawn_time_t ticks) {
        EXPECT_EQ(refuse("poll", EINTR,
                         [&] { return lawn_shm_wait(client_, ticks); }),
                  LAWN_ERR_IO);
        EXPECT_EQ(errno, EINTR);
        return pretence.waited_msec;
    };
    const lawn_time_t day = lawn_time_from_sec(86400);
    EXPECT_EQ(wait(0), 0);
    EXPECT_EQ(wait(1), 1) << "rounded up";
    EXPECT_EQ(wait(lawn_time_from_usec(1500)), 2);
    EXPECT_GE(wait(24 * day), 24 * 86'400'000);
    EXPECT_EQ(wait(25 * day), -1);
    EXPECT_EQ(wait(LAWN_TIME_INFINITY), -1);
    lawn_shm_close(client_);
}

} // namespace
