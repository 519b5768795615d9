// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn/shm.h refuses.

#include "../../misuse.h"
#include "shm_fixture.h"

#include <cerrno>
#include <climits>
#include <functional>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

    static unsigned mode_of(const std::string &name)
    {
        struct stat about = {};
        EXPECT_EQ(stat(name.c_str(), &about), 0) << name;
        return about.st_mode & 0777;
    }
};

using ShmRefusalDeathTest = ShmRefusal;

TEST_F(ShmRefusal, RefusesBadInput)
{
    lawn_shm_t *shm = nullptr;
    lawn_shm_client_t *client = nullptr;
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM);
    const std::string too_long = '/' + std::string(8000, 'x');
    EXPECT_EQ(lawn_shm_open(too_long.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_IO);
    EXPECT_EQ(errno, ENAMETOOLONG);
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

TEST_F(ShmRefusal, TheFilesAreOpenToWhomTheProgramSays)
{
    params_.mode = 0640;
    own();
    const unsigned mode = 0640U & ~mask();
    EXPECT_EQ(mode_of(path_), mode);
    EXPECT_EQ(mode_of(fifo_name(0)), mode);
    const mode_t before = umask(0077); // does not matter to the owner
    open_client();
    umask(before);
    EXPECT_EQ(mode_of(fifo_name(1)), mode);
}

// Here the owner is nobody in particular, and the client may do everything.
TEST_F(ShmRefusal, AClientOfAnotherUserCanBeWoken)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can be several users";
    }
    constexpr uid_t user = 65534;
    ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
    ASSERT_EQ(seteuid(user), 0);
    own();
    ASSERT_EQ(seteuid(0), 0);
    lawn_shm_client_t *const client = open_client();
    ASSERT_EQ(seteuid(user), 0);
    lawn_engine_progress(engine_);
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_OK) << "woken when it was seen";
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY);
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    EXPECT_EQ(files(), 0U);
    ASSERT_EQ(seteuid(0), 0);
}

// In a directory where only that user may remove it.
TEST_F(ShmRefusal, AFifoThatAnotherUserHasLeftIsUsedAgain)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can be several users";
    }
    const mode_t before = umask(0);
    ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
    params_.mode = 0666;
    own();
    const std::string name = fifo_name(1);
    ASSERT_EQ(mkfifo(name.c_str(), 0666), 0);
    ASSERT_EQ(seteuid(65534), 0);
    open_client();
    lawn_shm_close(clients_[0]);
    clients_.clear();
    ASSERT_EQ(seteuid(0), 0);
    lawn_engine_progress(engine_);
    EXPECT_EQ(files(), 2U);
    // If it is no FIFO, it stays as it is.
    close(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0606));
    ASSERT_EQ(seteuid(65534), 0);
    lawn_shm_client_t *client = nullptr;
    EXPECT_EQ(
        lawn_shm_open(path_.c_str(), engine_params_.clock, nullptr, &client),
        LAWN_ERR_IO);
    EXPECT_EQ(errno, EACCES);
    ASSERT_EQ(seteuid(0), 0);
    umask(before);
    EXPECT_EQ(mode_of(fifo_name(1)), 0606U);
    lawn_engine_progress(engine_);
}

// In such a directory, the owner may not remove it.
TEST_F(ShmRefusal, AClientThatClosesRemovesItsFifo)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can be several users";
    }
    constexpr uid_t owner = 65533;
    constexpr uid_t user = 65534;
    const mode_t before = umask(0);
    ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
    params_.mode = 0666;
    ASSERT_EQ(seteuid(owner), 0);
    own();
    ASSERT_EQ(seteuid(0), 0);
    ASSERT_EQ(seteuid(user), 0);
    open_client();
    EXPECT_EQ(files(), 3U);
    lawn_shm_close(clients_[0]);
    clients_.clear();
    ASSERT_EQ(seteuid(0), 0);
    EXPECT_EQ(files(), 2U);
    ASSERT_EQ(seteuid(owner), 0);
    lawn_engine_progress(engine_);
    EXPECT_EQ(stats().clients, 0U);
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    ASSERT_EQ(seteuid(0), 0);
    umask(before);
}

// The process of the owner has been that of another one since, say by exec().
TEST_F(ShmRefusal, AClientThatClosesRemovesNoOtherFifo)
{
    own();
    open_client();
    lawn_shm_destroy(shm_);
    ASSERT_EQ(lawn_shm_create(engine_, path_.c_str(), &params_, &shm_),
              LAWN_OK);
    open_client();
    EXPECT_EQ(files(), 3U);
    lawn_shm_close(clients_[0]);
    clients_.erase(clients_.begin());
    EXPECT_EQ(files(), 3U);
}

// It may read and write the file, but the owner could not open its FIFO.
TEST_F(ShmRefusal, AClientThatCouldNotBeWokenIsRefused)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can be several users";
    }
    ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
    own();
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
        data[0].effective = data[0].permitted = 1U << CAP_DAC_OVERRIDE;
        lawn_shm_client_t *client = nullptr;
        exit(syscall(SYS_capset, &header, data) == 0 &&
                     lawn_shm_open(path_.c_str(), engine_params_.clock, nullptr,
                                   &client) == LAWN_ERR_IO &&
                     errno == EACCES
                 ? 0
                 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    lawn_engine_progress(engine_);
    EXPECT_EQ(stats().clients, 0U);
    EXPECT_EQ(files(), 2U);
}

TEST_F(ShmRefusal, APathStaysGoodInAnotherDirectory)
{
    const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(chdir(directory_.c_str()), 0);
    const std::string path = path_;
    path_ = "timers";
    own();
    open_client();
    path_ = path;
    const std::string gone = directory_ + "/gone";
    ASSERT_EQ(mkdir(gone.c_str(), 0700), 0);
    ASSERT_EQ(chdir(gone.c_str()), 0);
    ASSERT_EQ(rmdir(gone.c_str()), 0);
    lawn_shm_t *shm = nullptr;
    EXPECT_EQ(lawn_shm_create(engine_, "timers", nullptr, &shm), LAWN_ERR_IO);
    EXPECT_EQ(errno, ENOENT);
    ASSERT_EQ(fchdir(before), 0);
    close(before);
    lawn_shm_close(clients_[0]); // its FIFO goes with it
    clients_.clear();
    EXPECT_EQ(files(), 2U);
    lawn_engine_progress(engine_);
    lawn_shm_client_t *const client = open_client();
    lawn_engine_progress(engine_);
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_OK) << "woken when it was seen";
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    EXPECT_EQ(files(), 0U);
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
    ASSERT_EQ(lawn_engine_create(&engine_params_, &engine_), LAWN_OK);
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), nullptr, &shm_),
              LAWN_ERR_BUSY);
    lawn_engine_destroy(engine_);
    ASSERT_EQ(ftruncate(fd, 100), 0);
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM)
        << "its owner still makes it";
    close(fd);
    // It may be nobody's, but it is no memory.
    ASSERT_EQ(lawn_engine_create(&engine_params_, &engine_), LAWN_OK);
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), nullptr, &shm_),
              LAWN_ERR_IO);
    EXPECT_EQ(errno, EEXIST);
    lawn_engine_destroy(engine_);
    ASSERT_EQ(truncate(path_.c_str(), 0), 0);
    own();
    open_client();
}

} // namespace
