// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The files of shared memory: which ones an owner replaces and removes, and in
// which order; and owners that are dead.

#include "shm_fixture.h"

#include "shm/layout.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
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
    // An empty one may be left of an owner that was killed in its beginning,
    // and one of another version when the library was updated.
    for (const char *const text : {"", "lawnshm0", "lawnshm2 of tomorrow"}) {
        write_file(text);
        EXPECT_EQ(try_to_own(), LAWN_OK);
        lawn_shm_destroy(shm_);
        shm_ = nullptr;
    }
    EXPECT_EQ(files(), 0U);
}

// The bell cannot be made. An empty file was there before, so it stays.
TEST_F(ShmFiles, AnOwnerThatFailsRemovesOnlyWhatItHasMade)
{
    ASSERT_EQ(lawn_engine_create(nullptr, &engine_), LAWN_OK);
    const std::string bell = path_ + "." + std::to_string(getpid()) + ".0";
    ASSERT_EQ(mkdir(bell.c_str(), 0700), 0);
    EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
    EXPECT_EQ(files(), 1U);
    write_file("");
    EXPECT_EQ(try_to_own(), LAWN_ERR_IO);
    EXPECT_EQ(files(), 2U);
    ASSERT_EQ(unlink(path_.c_str()), 0);
    ASSERT_EQ(rmdir(bell.c_str()), 0);
}

// The owner may have opened it already.
TEST_F(ShmFiles, AClientUsesAFifoThatIsThere)
{
    own();
    const std::string name = path_ + "." + std::to_string(getpid()) + ".1";
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
    const std::string second = path_ + "." + std::to_string(getpid()) + ".2";
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

} // namespace
