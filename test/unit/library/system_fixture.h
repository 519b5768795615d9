// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A system that refuses: the calls of the system that the library makes fail
// when the test says so. (Linked with --wrap, see system_calls.cc.)

#ifndef LAWN_TEST_UNIT_SYSTEM_FIXTURE_H
#define LAWN_TEST_UNIT_SYSTEM_FIXTURE_H

#include <lawn/engine.h>
#include <lawn/time.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <string>

#include <dirent.h>
#include <unistd.h>

namespace lawn_test
{

struct Refusal {
    int error = EIO;
    unsigned number = 0; // of the call that fails; 0: none
    unsigned calls = 0;
    const char *name = nullptr; // of the call that failed
    const char *only = nullptr; // the calls that count; NULL: all
};

extern thread_local Refusal refusal;

// What calls of the system tell instead of the truth, if a test says so.
struct Pretence {
    const char *text = nullptr; // that read() reads
    const int *node = nullptr;  // that a page is on
    int waited_msec = -2;       // the latest poll()
};

extern thread_local Pretence pretence;

inline lawn_time_t still(void *)
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
        lawn_get_time(); // chooses the clock, which reads files, too
        engine_params_.clock = still;
        engine_params_.ticks_per_sec = 1e9;
    }

    ~System() override
    {
        EXPECT_EQ(entries_of(directory_), 0U);
        rmdir(directory_.c_str());
    }

    static size_t entries_of(const std::string &path,
                             const std::string &beginning = "")
    {
        size_t count = 0;
        DIR *const directory = opendir(path.c_str());
        while (const dirent *const entry = readdir(directory)) {
            count += entry->d_name[0] != '.' &&
                     std::string(entry->d_name).rfind(beginning, 0) == 0;
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
            refusal = {EIO, number, 0, nullptr, nullptr};
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
            refused_.insert(refusal.name);
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

    // Calls `attempt` with the first call of `name` failing.
    template <class Attempt>
    static lawn_status_t refuse(const char *name, int error, Attempt attempt)
    {
        refusal = {error, 1, 0, nullptr, name};
        errno = 0;
        const lawn_status_t status = attempt();
        refusal.number = 0;
        EXPECT_STREQ(refusal.name, name);
        return status;
    }

    lawn_engine_t *create_engine()
    {
        lawn_engine_t *engine = nullptr;
        EXPECT_EQ(lawn_engine_create(&engine_params_, &engine), LAWN_OK);
        return engine;
    }

    std::set<std::string> refused_; // the calls that refuse_each() has met
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

} // namespace lawn_test

#endif
