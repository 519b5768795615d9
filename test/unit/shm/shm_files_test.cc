// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The files of shared memory: which ones an owner replaces and removes, and in
// which order; and owners that are dead.

#include "shm_fixture.h"

#include "shm/owner.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace
{

class ShmFiles : public ShmOwner
{
protected:
    ShmFiles()
    {
        params_.timers = 8;
        params_.clients = 3;
    }

    lawn_status_t try_to_own()
    {
        errno = 0;
        return lawn_shm_create(engine_, path_.c_str(), &params_, &shm_);
    }

    // It opens the memory's file by the first of them.
    lawn_status_t try_to_own_with(unsigned descriptors)
    {
        const int free = dup(0);
        EXPECT_EQ(close(free), 0);
        rlimit before;
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit few = {static_cast<rlim_t>(free) + descriptors,
                            before.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        const lawn_status_t status = try_to_own();
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        return status;
    }

    void write_file(const std::string &text) const
    {
        std::ofstream(path_) << text;
    }

    std::string read_file() const
    {
        std::ifstream file(path_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
};

TEST_F(ShmFiles, AFileOfAnotherKindIsNotReplaced)
{
    ASSERT_EQ(lawn_engine_create(nullptr, &engine_), LAWN_OK);
    for (const char *const text : {"x", "lawnshm", "a file of somebody else"}) {
        write_file(text);
        EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
        EXPECT_EQ(errno, EEXIST);
        EXPECT_EQ(read_file(), text);
    }
    ASSERT_EQ(unlink(path_.c_str()), 0);
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
    EXPECT_EQ(errno, EEXIST);
    EXPECT_EQ(files(), 1U);
    ASSERT_EQ(unlink(path_.c_str()), 0);
    ASSERT_EQ(mknod(path_.c_str(), S_IFSOCK | 0600, 0), 0);
    EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
    EXPECT_EQ(errno, EEXIST) << "a socket";
    ASSERT_EQ(unlink(path_.c_str()), 0);
    ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
    EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
    EXPECT_EQ(errno, EEXIST) << "a directory";
    ASSERT_EQ(rmdir(path_.c_str()), 0);
    ASSERT_EQ(symlink("nowhere", path_.c_str()), 0);
    EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
    EXPECT_EQ(errno, EEXIST) << "a link to nothing";
    EXPECT_EQ(files(), 1U);
    ASSERT_EQ(unlink(path_.c_str()), 0);
    // An empty one may be left of an owner that was killed in its beginning,
    // and one of another version when the library was updated.
    for (const char *const text : {"", "lawnshm0", "lawnshm3 of tomorrow"}) {
        write_file(text);
        EXPECT_EQ(try_to_own(), LAWN_OK);
        lawn_shm_destroy(shm_);
        shm_ = nullptr;
    }
    EXPECT_EQ(files(), 0U);
}

TEST_F(ShmFiles, TheOwnerMayBeAnotherProcess)
{
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        own(); // with an engine that is not its parent's
        const bool is_own = shm_ != nullptr;
        (void)!write(ready[1], &is_own, 1);
        pause();
        _exit(0);
    }
    bool is_own = false;
    ASSERT_EQ(read(ready[0], &is_own, 1), 1);
    EXPECT_TRUE(is_own);
    ASSERT_EQ(lawn_engine_create(&engine_params_, &engine_), LAWN_OK);
    EXPECT_EQ(try_to_own(), LAWN_ERR_BUSY);
    kill(pid, SIGKILL);
    EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
    EXPECT_EQ(try_to_own(), LAWN_OK);
    close(ready[0]);
    close(ready[1]);
}

// There is no descriptor left for the bell, for the epoll set, or for the new
// memory. An empty file was there before, so it stays.
TEST_F(ShmFiles, AnOwnerThatFailsRemovesOnlyWhatItHasMade)
{
    ASSERT_EQ(lawn_engine_create(nullptr, &engine_), LAWN_OK);
    for (const unsigned descriptors : {1U, 2U, 3U}) {
        EXPECT_EQ(try_to_own_with(descriptors), LAWN_ERR_IO) << descriptors;
        EXPECT_EQ(files(), 0U) << descriptors;
        write_file("");
        EXPECT_EQ(try_to_own_with(descriptors), LAWN_ERR_IO) << descriptors;
        EXPECT_EQ(files(), 1U) << descriptors;
        ASSERT_EQ(unlink(path_.c_str()), 0);
    }
}

// The owner may have opened it already.
TEST_F(ShmFiles, AClientUsesAFifoThatIsThere)
{
    own();
    const std::string name = fifo_name(1);
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
    const int fifo = open(name.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(fifo, 0);
    open_client();
    struct stat before = {};
    struct stat now = {};
    ASSERT_EQ(fstat(fifo, &before), 0);
    ASSERT_EQ(stat(name.c_str(), &now), 0);
    EXPECT_EQ(now.st_ino, before.st_ino);
    close(fifo);
    // What is none is replaced.
    const std::string second = fifo_name(2);
    std::ofstream(second) << "text";
    open_client();
    ASSERT_EQ(stat(second.c_str(), &now), 0);
    EXPECT_TRUE(S_ISFIFO(now.st_mode));
}

// Somebody has removed the memory's file, and made another one.
TEST_F(ShmFiles, AFileOfSomebodyElseIsNotRemoved)
{
    own();
    ASSERT_EQ(unlink(path_.c_str()), 0);
    write_file("mine");
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    EXPECT_EQ(files(), 1U);
    EXPECT_EQ(read_file(), "mine");
    unlink(path_.c_str());
}

TEST_F(ShmFiles, WhatSomebodyHasRemovedIsNotMissed)
{
    own();
    EXPECT_EQ(unlink(path_.c_str()), 0);
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    EXPECT_EQ(files(), 0U);
}

// If the owner is killed meanwhile, the memory tells the next one what to
// remove.
TEST_F(ShmFiles, TheMemoryIsRemovedLast)
{
    own();
    open_client();
    lawn_engine_progress(engine_);
    const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(events, directory_.c_str(), IN_DELETE), 0);
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    alignas(inotify_event) char bytes[4096];
    const ssize_t size = read(events, bytes, sizeof(bytes));
    std::vector<std::string> removed;
    for (ssize_t at = 0; at < size;) {
        const inotify_event *const event =
            reinterpret_cast<const inotify_event *>(bytes + at);
        removed.emplace_back(event->name);
        at += static_cast<ssize_t>(sizeof(*event) + event->len);
    }
    close(events);
    ASSERT_EQ(removed.size(), 3U);
    EXPECT_EQ(removed.back(), "timers");
}

// Its parent has not waited for it yet, and a child of it still has the lock of
// the file.
TEST_F(ShmFiles, AnOwnerThatIsDeadButNotReapedIsGone)
{
    int up[2];
    int end[2];
    ASSERT_EQ(pipe(up), 0);
    ASSERT_EQ(pipe(end), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        own();
        char byte = 0;
        if (fork() == 0) {
            close(end[1]);
            close(up[0]);
            close(up[1]);
            _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
        }
        if (write(up[1], "", 1) == 1) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    close(end[0]);
    close(up[1]);
    char byte;
    ASSERT_EQ(read(up[0], &byte, 1), 1);
    siginfo_t about = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &about, WEXITED | WNOWAIT),
              0);
    EXPECT_EQ(try_to_open(), LAWN_ERR_NO_ELEM);
    own();
    EXPECT_EQ(try_to_open(), LAWN_OK);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    for (const int fd : {up[0], end[1]}) {
        close(fd); // the child ends
    }
}

// exec() has closed what the owner had open, and its process goes on, as its
// child does, which still has the lock. A client sleeps.
TEST_F(ShmFiles, AnOwnerThatIsAnotherProgramNowIsGone)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    const std::string name = fifo_name(1);
    const int fifo = open(name.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(fifo, 0);
    int end[2];
    ASSERT_EQ(pipe(end), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char byte = 0;
        close(end[1]);
        _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    lawn_shm_t *const before = shm_;
    EXPECT_EQ(try_to_own(), LAWN_ERR_BUSY) << "it is the owner";
    shm_ = before;
    const int file = shm_->file;
    shm_->file = -1;
    ASSERT_EQ(close(file), 0);
    EXPECT_EQ(try_to_own_with(1), LAWN_ERR_BUSY) << "who knows";
    shm_ = before;
    EXPECT_TRUE(lawn_shm_start(client, timer, LAWN_TIME_INFINITY));
    char byte;
    EXPECT_EQ(read(fifo, &byte, 1), -1);
    shm_ = nullptr;
    EXPECT_EQ(try_to_own(), LAWN_OK);
    EXPECT_EQ(read(fifo, &byte, 1), 1) << "it is woken";
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_ERR_NO_ELEM);
    EXPECT_FALSE(lawn_shm_is_open(client, 0)) << "the owner";
    EXPECT_FALSE(lawn_shm_start(client, timer, LAWN_TIME_INFINITY));
    EXPECT_EQ(try_to_open(), LAWN_OK);
    lawn_shm_destroy(before);
    for (const int fd : {fifo, end[0], end[1]}) {
        close(fd); // the child ends
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
}

// The main thread's descriptors are gone with it, and the process is not.
TEST_F(ShmFiles, AnOwnerLivesOnWithoutItsMainThread)
{
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60); // rather than to wait for ever
        own();
        std::thread([this] {
            char state = 0;
            while (state != 'Z') {
                std::ifstream stat("/proc/self/stat");
                std::string word;
                stat >> word >> word >> state;
            }
            _exit(try_to_own() == LAWN_ERR_BUSY ? 0 : 1);
        }).detach();
        syscall(SYS_exit, 0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    own();
}

// As daemons do, it has closed all descriptors and opened others.
TEST_F(ShmFiles, TheChildOfAForkClosesNoFileOfItsOwnWithItsParents)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_engine_progress(engine_); // opens what it watches
    const pid_t pid = fork();
    if (pid == 0) {
        constexpr int last = 63;
        for (int fd = 3; fd <= last; ++fd) {
            close(fd);
            if (dup2(0, fd) != fd) {
                _exit(1);
            }
        }
        lawn_shm_close(client);
        lawn_shm_destroy(shm_);
        lawn_engine_destroy(engine_);
        int fd = 3;
        while (fd <= last && fcntl(fd, F_GETFD) != -1) {
            ++fd;
        }
        _exit(fd > last ? 0 : 2);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

} // namespace
