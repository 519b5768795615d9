// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How late a program wakes up that sleeps until its next deadline. The kernel
// may wake it later by the thread's timer slack, 50 us by default, so as to
// wake several at once. It does so for poll(), whose timeout is the thread's
// own. An engine of this library waits for a timerfd instead.

#include "evaluation/experiments.h"
#include "evaluation/latency.h"

#include "arena.h"

#include <lawn/engine.h>

#include <cstdio>
#include <ctime>

#include <poll.h>
#include <sys/prctl.h>

namespace bench
{

namespace
{

// Until the engine's next deadline.
void wait_by_engine(lawn_engine_t *engine)
{
    lawn_engine_wait(engine, LAWN_TIME_INFINITY);
}

void wait_by_poll(lawn_engine_t *engine)
{
    const lawn_time_t now = lawn_engine_time(engine);
    const lawn_time_t next = lawn_engine_next(engine);
    if (next > now) {
        // No deadline here is a second away.
        const timespec timeout = {
            0, static_cast<long>(lawn_time_to_nsec(next - now)) + 1};
        ppoll(nullptr, 0, &timeout, nullptr);
    }
}

struct Way {
    const char *name;
    void (*wait)(lawn_engine_t *engine);
    int slack; // ns; 0: the default
};

constexpr Way ways[] = {
    {"engine", wait_by_engine, 0},
    {"engine, 1 ns", wait_by_engine, 1},
    {"ppoll", wait_by_poll, 0},
    {"ppoll, 1 ns", wait_by_poll, 1},
};

struct Sleeper {
    lawn_timer_t timer; // first: on_expired() casts
    lawn_engine_t *engine;
    Latency late;
    bool has_fired;
};

void on_expired(lawn_timer_t *timer, lawn_time_t)
{
    auto *const sleeper = reinterpret_cast<Sleeper *>(timer);
    sleeper->late.add(lawn_engine_time(sleeper->engine) -
                      lawn_timer_deadline(timer));
    sleeper->has_fired = true;
}

Result sleep_and_wake(const Way &way, double limit_sec, uint64_t seed)
{
    constexpr size_t least_sleeps = 10;
    Sleeper sleeper = {};
    if (lawn_engine_create(nullptr, &sleeper.engine) != LAWN_OK) {
        throw std::bad_alloc();
    }
    lawn_timer_init(&sleeper.timer, on_expired);
    Random random(seed);
    const auto begin = Clock::now();
    while (sleeper.late.count() < least_sleeps ||
           seconds_since(begin) < limit_sec) {
        sleeper.has_fired = false;
        lawn_engine_start(
            sleeper.engine, &sleeper.timer,
            lawn_time_from_usec(200 + static_cast<double>(random.below(300))));
        while (!sleeper.has_fired) {
            way.wait(sleeper.engine);
            lawn_engine_progress(sleeper.engine);
        }
    }
    lawn_engine_destroy(sleeper.engine);
    return sleeper.late.result();
}

} // namespace

bool compare_slack(const Settings &settings)
{
    const int before = prctl(PR_GET_TIMERSLACK);
    std::vector<Cell> cells(std::size(ways));
    int defaults = 0;
    int least = 0;
    for (unsigned repetition = 0; repetition < settings.repetitions;
         ++repetition) {
        for (size_t turn = 0; turn < std::size(ways); ++turn) {
            const size_t w = (turn + repetition) % std::size(ways);
            prctl(PR_SET_TIMERSLACK, ways[w].slack);
            (ways[w].slack == 0 ? defaults : least) = prctl(PR_GET_TIMERSLACK);
            cells[w].results.push_back(sleep_and_wake(
                ways[w], settings.limit_sec, settings.seed + repetition));
        }
    }
    prctl(PR_SET_TIMERSLACK, before);
    print_distribution_head("slack: how late a program wakes up for a deadline "
                            "in 200 to 500 us",
                            "/ engine");
    for (size_t w = 0; w < std::size(ways); ++w) {
        print_distribution(ways[w].name, cells[w], divisor(cells[w], cells[0]));
    }
    printf("\nslack: the default is %d ns%s\n", defaults,
           least == 1 ? ""
                      : "; the system refuses 1 ns, so the rows do not differ");
    fflush(stdout);
    return true;
}

} // namespace bench
