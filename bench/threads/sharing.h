// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Ways in which several threads may share timers, as lawn_bench threads
// compares them. One thread, the owner, passes without end, and calls back;
// others start and stop. A scheme has `timer_count` timers for these, and as
// many of the owner's own; deadlines are ticks of lawn_get_time().

#ifndef LAWN_BENCH_THREADS_SHARING_H
#define LAWN_BENCH_THREADS_SHARING_H

#include <lawn/time.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace bench
{

constexpr size_t timer_count = 1000;
constexpr unsigned pass_budget = 64;

class Sharing
{
public:
    explicit Sharing(const char *name) : name(name)
    {
    }

    virtual ~Sharing() = default;

    Sharing(const Sharing &) = delete;
    Sharing &operator=(const Sharing &) = delete;

    // Any thread; of one timer, one at a time. `now` was read just before.
    virtual void start(size_t i, lawn_time_t now, lawn_time_t deadline) = 0;
    virtual bool stop(size_t i) = 0;

    // The owner's.
    virtual void pass(lawn_time_t now) = 0;
    virtual void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) = 0;

    // Has a thread be the owner while run() runs in it, and `meanwhile` here.
    virtual void with_owner(const std::function<void()> &run,
                            const std::function<void()> &meanwhile)
    {
        std::thread owner(run);
        meanwhile();
        owner.join();
    }

    // NULL: it runs.
    virtual const char *defect() const
    {
        return nullptr;
    }

    const char *const name;
};

using Sharings = std::vector<std::unique_ptr<Sharing>>;

void add_lawns(Sharings *all);
void add_wheels(Sharings *all);
void add_dpdk(Sharings *all); // where it was found

// Those of this build that run here. What does not is told of on stderr.
Sharings all_sharings();

// lawn_bench threads [--quick]: the exit status.
int run_threads(int argc, char **argv);

} // namespace bench

#endif
