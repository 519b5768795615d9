// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Ends a test whose threads do not get on any more, and says who waits for
// whom:
//
//     Thread owner("owner", [&] { poll(); });
//     wait_for("owner", "to have polled", [&] { return has_polled; });
//     owner.join();
//
// Time alone tells nothing, as a machine may be slow and a thread may get no
// processor. A test hangs if somebody waits, no wait begins or ends, nobody
// calls got_on(), and meanwhile
//
//   - the process uses 100 seconds of processor time, or
//   - all of its threads sleep at each of 60 looks, a second apart.
//
// None of this orders what threads do: the thread sanitizer and helgrind would
// not see a race that it hides. The watch is a thread; a child of a fork has
// one of its own only if its parent had none.

#ifndef LAWN_TEST_HANG_H
#define LAWN_TEST_HANG_H

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <dirent.h>
#include <unistd.h>

namespace lawn_test
{

// What a thread of a test does, as others see it: each word by itself, and in
// no order. The texts are literals.
struct Doing {
    std::atomic<const char *> name{nullptr}; // NULL: nobody's
    std::atomic<const char *> whom{nullptr}; // NULL: it waits for nobody
    std::atomic<const char *> what{nullptr};
    std::atomic<const char *> file{
        nullptr}; // of the wait, or of the one before
    std::atomic<int> line{0};
    std::atomic<uint64_t> steps{0};
};

inline std::array<Doing, 64> all_doing;

// Looks at what the threads do from the first wait on, until the program ends.
class Watch
{
public:
    // Changed only by the test of this header.
    inline static double most_processor_sec = 100;
    inline static unsigned most_looks = 60;
    inline static std::chrono::milliseconds between{1000};

    static void begin()
    {
        // Kept: in the child of a fork, its thread would never let go of it.
        static Watch *const watch = new Watch;
        static const int is_registered = atexit([] { watch->end(); });
        (void)is_registered;
    }

private:
    Watch() : thread_([this] { run(); })
    {
    }

    void end()
    {
        if (process_ != getpid()) {
            return;
        }
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            is_over_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }

    void run()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        uint64_t before = 0;
        double since = 0;
        unsigned asleep = 0;
        while (!changed_.wait_for(lock, between, [this] { return is_over_; })) {
            const uint64_t steps = count_steps();
            if (steps != before || !does_anybody_wait()) {
                before = steps;
                since = processor_sec();
                asleep = 0;
                continue;
            }
            asleep = do_all_sleep() ? asleep + 1 : 0;
            if (asleep == most_looks) {
                tell("all threads sleep");
            }
            if (processor_sec() - since > most_processor_sec) {
                tell("threads work, but do not get on");
            }
        }
    }

    static uint64_t count_steps()
    {
        uint64_t sum = 0;
        for (const Doing &i : all_doing) {
            sum += i.steps.load(std::memory_order_relaxed);
        }
        return sum;
    }

    static bool does_anybody_wait()
    {
        return std::any_of(all_doing.begin(), all_doing.end(), [](auto &i) {
            return i.whom.load(std::memory_order_relaxed) != nullptr;
        });
    }

    static double processor_sec()
    {
        timespec used = {};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        return double(used.tv_sec) + double(used.tv_nsec) / 1e9;
    }

    // All but this one, which looks. By the C library alone, into which the
    // memory sanitizer sees.
    static bool do_all_sleep()
    {
        const std::string own = std::to_string(gettid());
        DIR *const tasks = opendir("/proc/self/task");
        bool is_so = tasks != nullptr;
        while (const dirent *const task = is_so ? readdir(tasks) : nullptr) {
            if (task->d_name[0] != '.' && task->d_name != own) {
                is_so = state_of(task->d_name) == 'S';
            }
        }
        if (tasks) {
            closedir(tasks);
        }
        return is_so;
    }

    // As the kernel tells it, behind the name in brackets. One that has ended
    // meanwhile sleeps.
    static char state_of(const std::string &task)
    {
        char stat[256] = "";
        FILE *const file =
            fopen(("/proc/self/task/" + task + "/stat").c_str(), "re");
        if (file) {
            (void)!fgets(stat, sizeof(stat), file);
            fclose(file);
        }
        const char *const name_ends = strrchr(stat, ')');
        return name_ends && name_ends[1] == ' ' ? name_ends[2] : 'S';
    }

    [[noreturn]] static void tell(const char *how)
    {
        fprintf(stderr, "The test hangs: %s.\n", how);
        for (const Doing &i : all_doing) {
            const char *const name = i.name.load(std::memory_order_relaxed);
            const char *const whom = i.whom.load(std::memory_order_relaxed);
            const char *const file = i.file.load(std::memory_order_relaxed);
            const int line = i.line.load(std::memory_order_relaxed);
            if (whom) {
                fprintf(stderr, "  %s waits for %s %s, %s:%d\n", name, whom,
                        i.what.load(std::memory_order_relaxed), file, line);
            } else if (name && file) {
                fprintf(stderr, "  %s works since its wait at %s:%d\n", name,
                        file, line);
            } else if (name) {
                fprintf(stderr, "  %s works, and has not waited\n", name);
            }
        }
        abort();
    }

    const pid_t process_ = getpid();
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::thread thread_; // the last: it uses the others
};

// The calling thread's place in all_doing, while the thread lives.
class Place
{
public:
    static Place &own()
    {
        static thread_local Place place;
        return place;
    }

    Doing *doing() const
    {
        return doing_;
    }

private:
    Place()
    {
        Watch::begin();
        const char *const name =
            gettid() == getpid() ? "the main thread" : "a thread";
        for (Doing &i : all_doing) {
            const char *nobodys = nullptr;
            if (i.name.compare_exchange_strong(nobodys, name,
                                               std::memory_order_relaxed)) {
                i.file.store(nullptr, std::memory_order_relaxed);
                doing_ = &i;
                return;
            }
        }
        fprintf(stderr, "hang.h has no place for so many threads.\n");
        abort();
    }

    ~Place()
    {
        doing_->steps.fetch_add(1, std::memory_order_relaxed);
        doing_->name.store(nullptr, std::memory_order_relaxed);
    }

    Doing *doing_ = nullptr;
};

// The calling thread has done something that a hanging test would not do. For
// work that is long and has no waits.
inline void got_on()
{
    Place::own().doing()->steps.fetch_add(1, std::memory_order_relaxed);
}

// While it lives, the calling thread waits for `whom` `what`, as in "owner",
// "to have polled". Waits may be nested.
class Waiting
{
public:
    Waiting(const char *whom, const char *what,
            const char *file = __builtin_FILE(), int line = __builtin_LINE())
        : doing_(Place::own().doing()),
          outer_whom_(doing_->whom.load(std::memory_order_relaxed)),
          outer_what_(doing_->what.load(std::memory_order_relaxed))
    {
        doing_->file.store(file, std::memory_order_relaxed);
        doing_->line.store(line, std::memory_order_relaxed);
        set(whom, what);
    }

    ~Waiting()
    {
        set(outer_whom_, outer_what_);
    }

    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

private:
    void set(const char *whom, const char *what)
    {
        doing_->what.store(what, std::memory_order_relaxed);
        doing_->whom.store(whom, std::memory_order_relaxed);
        got_on();
    }

    Doing *const doing_;
    const char *const outer_whom_;
    const char *const outer_what_;
};

// Waits for `whom` `what`, which is so when `is_so` returns true.
template <class IsSo>
void wait_for(const char *whom, const char *what, IsSo is_so,
              const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    const Waiting waiting(whom, what, file, line);
    while (!is_so()) {
        std::this_thread::yield();
    }
}

// A std::thread that has a name: a literal.
class Thread
{
public:
    Thread() = default;

    template <class Run> Thread(const char *name, Run run) : name_(name)
    {
        (void)Place::own(); // who makes it is told of first
        thread_ = std::thread([name, run = std::move(run)]() mutable {
            Place::own().doing()->name.store(name, std::memory_order_relaxed);
            run();
        });
    }

    void join(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        const Waiting waiting(name_, "to end", file, line);
        thread_.join();
    }

    bool joinable() const
    {
        return thread_.joinable();
    }

private:
    const char *name_ = nullptr;
    std::thread thread_;
};

} // namespace lawn_test

#endif
