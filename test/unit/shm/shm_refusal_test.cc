// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn/shm.h refuses.

#include "../../misuse.h"
#include "shm_fixture.h"

#include <cerrno>
#include <climits>
#include <functional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace
{

class ShmRefusal : public ShmOwner
{
protected:
    ShmRefusal()
    {
        engine_params_.clock = [](void *) -> lawn_time_t { return 1; };
        engine_params_.ticks_per_sec = 1e9;
        params_.timers = 8;
        params_.clients = 3;
    }

    static unsigned mask()
    {
        const mode_t mask = umask(0);
        umask(mask);
        return mask;
    }
};

using ShmRefusalDeathTest = ShmRefusal;

TEST_F(ShmRefusal, RefusesBadInput)
{
    lawn_shm_t *shm = nullptr;
    lawn_shm_client_t *client = nullptr;
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM);
    own();
    EXPECT_EQ(lawn_shm_create(nullptr, path_.c_str(), nullptr, &shm),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_shm_create(engine_, nullptr, nullptr, &shm),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(
        lawn_shm_create(engine_, std::string(5000, 'a').c_str(), nullptr, &shm),
        LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(
        lawn_shm_create(engine_, std::string(4090, 'a').c_str(), nullptr, &shm),
        LAWN_ERR_IO);
    EXPECT_EQ(lawn_shm_create(engine_, "/nowhere/timers", nullptr, &shm),
              LAWN_ERR_IO);
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), nullptr, &shm),
              LAWN_ERR_BUSY);
    lawn_shm_params_t params = {};
    params.timers = UINT32_MAX;
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), &params, &shm),
              LAWN_ERR_INVALID_PARAM);
    params = {};
    params.clients = UINT32_MAX;
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), &params, &shm),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_shm_open(nullptr, nullptr, nullptr, &client),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_shm_open("/nowhere/timers", nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_UNSUPPORTED); // another clock
    EXPECT_EQ(lawn_shm_open("/tmp", nullptr, nullptr, &client), LAWN_ERR_IO);
    EXPECT_EQ(client, nullptr);
    EXPECT_EQ(shm, nullptr);
    lawn_shm_close(nullptr);
    lawn_shm_destroy(nullptr);
    EXPECT_EQ(files(), 2U); // the memory and the bell
    struct stat about = {};
    ASSERT_EQ(stat(path_.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U);
}

// The files beside the memory need longer names than it.
TEST_F(ShmRefusal, LeavesNothingAtAPathThatIsTooLong)
{
    const size_t slash = path_.rfind('/');
    std::string path = path_;
    while (path.size() + 2 < PATH_MAX) {
        path.insert(slash, "/.");
    }
    ASSERT_EQ(lawn_engine_create(nullptr, &engine_), LAWN_OK);
    lawn_shm_t *shm = nullptr;
    errno = 0;
    EXPECT_EQ(lawn_shm_create(engine_, path.c_str(), nullptr, &shm),
              LAWN_ERR_IO);
    EXPECT_EQ(errno, ENAMETOOLONG);
    if (path.size() + 1 < PATH_MAX) {
        path.insert(slash, "/");
    }
    EXPECT_EQ(lawn_shm_create(engine_, path.c_str(), nullptr, &shm),
              LAWN_ERR_IO);
    EXPECT_EQ(errno, ENAMETOOLONG);
    EXPECT_EQ(files(), 0U);
    // The path is short enough, but not the names beside it.
    path = directory_ + "/" + std::string(NAME_MAX, 'a');
    EXPECT_EQ(lawn_shm_create(engine_, path.c_str(), nullptr, &shm),
              LAWN_ERR_IO);
    EXPECT_EQ(errno, ENAMETOOLONG);
    EXPECT_EQ(files(), 0U);
}

TEST_F(ShmRefusal, TheFileIsOpenToWhomTheProgramSays)
{
    params_.mode = 0640;
    own();
    struct stat about = {};
    ASSERT_EQ(stat(path_.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0640U & ~mask());
}

// A callback of the engine neither makes nor ends what runs on it.
TEST_F(ShmRefusalDeathTest, NothingIsMadeOrEndedInsideAPass)
{
    own();
    struct Inside {
        lawn_timer_t timer; // first
        std::function<void()> run;
    } inside = {};
    unsigned runs = 0;
    inside.run = [&] {
        lawn_shm_t *shm = nullptr;
        const std::string other = path_ + "2";
        EXPECT_EQ(lawn_shm_create(engine_, other.c_str(), nullptr, &shm),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(shm, nullptr);
        EXPECT_MISUSE(lawn_shm_destroy(shm_), "is_inside");
        ++runs;
    };
    lawn_timer_init(&inside.timer, [](lawn_timer_t *timer, lawn_time_t) {
        reinterpret_cast<Inside *>(timer)->run();
    });
    lawn_engine_start(engine_, &inside.timer, 0);
    lawn_engine_progress(engine_);
    EXPECT_EQ(runs, 1U);
    EXPECT_EQ(files(), 2U);
    open_client();
}

TEST_F(ShmRefusal, WhatIsNoneIsNotMapped)
{
    // A file that somebody has locked, and that is something else.
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_GE(fd, 0);
    const std::vector<char> bytes(100'000, 'x');
    ASSERT_EQ(write(fd, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    lawn_shm_client_t *client = nullptr;
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM);
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &lock), 0);
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_UNSUPPORTED);
    ASSERT_EQ(ftruncate(fd, 100), 0);
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM)
        << "its owner still makes it";
    close(fd);
    // An owner may replace it when it is nobody's.
    own();
    open_client();
}

} // namespace
