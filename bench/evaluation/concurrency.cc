// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The concurrent experiment: threads start and stop timers of their own, as
// often the one as the other, while an owner ticks without end and the timers
// expire. Each operation is measured by itself. On a machine with fewer
// processors than threads, the longest times are those of a thread that waits
// for its turn.

#include "evaluation/experiments.h"
#include "evaluation/latency.h"

#include "arena.h"
#include "threads/sharing.h"

#include <atomic>
#include <cstdio>

namespace bench
{

namespace
{

constexpr unsigned client_counts[] = {1, 2, 4, 8};

struct Mix {
    Latency operations; // of all clients
    Latency ticks;
};

// One thread's timers are first, first + step, ...
void operate(Sharing *sharing, size_t first, size_t step, uint64_t seed,
             double limit_sec, Latency *latency)
{
    const lawn_time_t msec_ticks = lawn_time_from_msec(1);
    const lawn_time_t end = lawn_get_time() + lawn_time_from_sec(limit_sec);
    const size_t count = (timer_count - first + step - 1) / step;
    Random random(seed + first);
    Stopwatch watch(limit_sec, false);
    for (lawn_time_t now = lawn_get_time(); now < end; now = lawn_get_time()) {
        const size_t i = first + step * random.below(count);
        if (random.below(2) == 0) {
            watch.time(*latency, [&] { sharing->stop(i); });
        } else {
            const lawn_time_t ttl = msec_ticks * (1 + random.below(10));
            watch.time(*latency, [&] { sharing->start(i, now, now + ttl); });
        }
    }
}

Mix run_mix(Sharing *sharing, unsigned clients, uint64_t seed, double limit_sec)
{
    Mix mix;
    std::atomic<bool> is_over{false};
    std::atomic<bool> is_up{false};
    const auto own = [&] {
        Stopwatch watch(limit_sec, false);
        while (!is_over.load(std::memory_order_relaxed)) {
            const lawn_time_t now = lawn_get_time();
            watch.time(mix.ticks, [&] { sharing->pass(now); });
            is_up.store(true, std::memory_order_relaxed);
        }
    };
    sharing->with_owner(own, [&] {
        while (!is_up) {
            std::this_thread::yield();
        }
        std::vector<Latency> latencies(clients);
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < clients; ++i) {
            threads.emplace_back(operate, sharing, i, clients, seed, limit_sec,
                                 &latencies[i]);
        }
        for (unsigned i = 0; i < clients; ++i) {
            threads[i].join();
            mix.operations.add(latencies[i]);
        }
        is_over = true;
    });
    return mix;
}

// What was started, far from now, runs until it is stopped, and then no more.
bool is_whole(Sharing *sharing)
{
    bool is_good = true;
    std::atomic<bool> is_over{false};
    const auto own = [&] {
        while (!is_over) {
            sharing->pass(lawn_get_time());
        }
    };
    sharing->with_owner(own, [&] {
        for (size_t i = 0; i < timer_count; ++i) {
            const lawn_time_t now = lawn_get_time();
            sharing->stop(i);
            sharing->start(i, now, now + lawn_time_from_sec(3600));
        }
        for (size_t i = 0; i < timer_count; ++i) {
            is_good = sharing->stop(i) && !sharing->stop(i) && is_good;
        }
        is_over = true;
    });
    return is_good;
}

struct Row {
    Cell operations;
    Cell ticks;
};

void print_rows(const Sharings &all, const std::vector<Row> &rows,
                const std::string &what, Cell Row::*cell)
{
    Cell base;
    for (size_t s = 0; s < all.size(); ++s) {
        if (std::string(all[s]->name) == "mutex + wheel") {
            base = rows[s].*cell;
        }
    }
    print_distribution_head(what.c_str(), "/ mutex + wheel");
    for (size_t s = 0; s < all.size(); ++s) {
        print_distribution(all[s]->name, rows[s].*cell,
                           divisor(rows[s].*cell, base));
    }
}

} // namespace

bool run_concurrently(const Settings &settings)
{
    const Sharings all = all_sharings();
    bool is_good = true;
    for (const auto &sharing : all) {
        if (!is_whole(sharing.get())) {
            fprintf(stderr, "lawn_evaluate: %s is broken\n", sharing->name);
            is_good = false;
        }
    }
    for (const unsigned clients : client_counts) {
        std::vector<Row> rows(all.size());
        for (unsigned repetition = 0; repetition < settings.repetitions;
             ++repetition) {
            for (size_t turn = 0; turn < all.size(); ++turn) {
                const size_t s = (turn + repetition) % all.size();
                const Mix mix =
                    run_mix(all[s].get(), clients, settings.seed + repetition,
                            settings.limit_sec);
                rows[s].operations.results.push_back(mix.operations.result());
                rows[s].ticks.results.push_back(mix.ticks.result());
            }
        }
        const std::string threads = std::to_string(clients) +
                                    (clients == 1 ? " thread" : " threads") +
                                    " and the owner, 1000 timers";
        print_rows(all, rows, "concurrency: a start or stop, " + threads,
                   &Row::operations);
        print_rows(all, rows, "concurrency: a tick of the owner, " + threads,
                   &Row::ticks);
        fflush(stdout);
    }
    return is_good;
}

} // namespace bench
