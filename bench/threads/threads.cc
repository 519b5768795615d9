// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_bench threads: what timers cost that threads share. All ways take turns
// within each repetition; what is printed is the median, in nanoseconds, and
// only ratios within one run mean anything. On a machine with fewer processors
// than threads a figure is that of threads which take turns.

#include "arguments.h"
#include "median.h"
#include "threads/group.h"
#include "threads/sharing.h"

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>

namespace bench
{

namespace
{

// What the other threads do, each to timers of its own.
enum Operation { later, earlier, stop_start, stop, start };
constexpr Operation operations[] = {later, earlier, stop_start, stop, start};
constexpr const char *names[] = {"later", "earlier", "stop+start", "stop",
                                 "start"};
constexpr size_t operation_count = std::size(operations);

// Far enough never to come.
const lawn_time_t far = lawn_time_from_sec(3600);

// One thread's share: timers first, first + step, ... The part that is not
// timed brings them where the operation begins. Returns the ticks that the
// operations took.
class Client
{
public:
    Client(Sharing *sharing, Operation operation, size_t first, size_t step)
        : sharing_(sharing), operation_(operation), first_(first), step_(step)
    {
    }

    // Of all of its timers, once.
    lawn_time_t round(lawn_time_t rounds_before)
    {
        prepare();
        const lawn_time_t begin = lawn_get_time();
        for (size_t i = first_; i < timer_count; i += step_) {
            const lawn_time_t now = lawn_get_time();
            if (operation_ == stop || operation_ == stop_start) {
                sharing_->stop(i);
            }
            if (operation_ == earlier) {
                // By a little each time, so that it stays far.
                sharing_->start(
                    i, now, now + far - (rounds_before + 1) * far / 1000000);
            } else if (operation_ != stop) {
                sharing_->start(i, now, now + far);
            }
        }
        return lawn_get_time() - begin;
    }

    size_t count() const
    {
        return (timer_count - first_ + step_ - 1) / step_;
    }

private:
    void prepare()
    {
        for (size_t i = first_; i < timer_count; i += step_) {
            if (operation_ == start) {
                sharing_->stop(i);
            } else if (operation_ == stop) {
                const lawn_time_t now = lawn_get_time();
                sharing_->start(i, now, now + far);
            }
        }
    }

    Sharing *sharing_;
    Operation operation_;
    size_t first_;
    size_t step_;
};

// Nanoseconds of one operation by each of `clients` threads, while the owner
// passes without end.
double remote_nsec(Sharing *sharing, Operation operation, unsigned clients,
                   unsigned rounds)
{
    std::atomic<bool> is_over{false};
    std::atomic<bool> is_up{false};
    std::atomic<uint64_t> ticks{0};
    std::atomic<uint64_t> count{0};
    const auto own = [&] {
        while (!is_over.load(std::memory_order_relaxed)) {
            sharing->pass(lawn_get_time());
            is_up.store(true, std::memory_order_relaxed);
        }
    };
    const auto use = [&](size_t first) {
        Client client(sharing, operation, first, clients);
        for (unsigned i = 0; i < rounds; ++i) {
            ticks += client.round(i);
            count += client.count();
        }
    };
    sharing->with_owner(own, [&] {
        while (!is_up) {
            std::this_thread::yield();
        }
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < clients; ++i) {
            threads.emplace_back(use, i);
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
        is_over = true;
    });
    return lawn_time_to_nsec(ticks) / static_cast<double>(count);
}

// The owner's own re-arm, while another thread re-arms all the time or not.
double own_nsec(Sharing *sharing, bool is_loaded, unsigned rounds)
{
    std::atomic<bool> is_over{false};
    double nsec = 0;
    const auto own = [&] {
        const lawn_time_t begin = lawn_get_time();
        for (unsigned round = 0; round < rounds; ++round) {
            for (size_t i = 0; i < timer_count; ++i) {
                const lawn_time_t now = lawn_get_time();
                if (i % 16 == 0) {
                    sharing->pass(now);
                }
                sharing->start_own(i, now, now + far);
            }
        }
        nsec = lawn_time_to_nsec(lawn_get_time() - begin) /
               (double(rounds) * timer_count);
        is_over = true;
    };
    sharing->with_owner(own, [&] {
        std::thread other([&] {
            Client client(sharing, later, 0, 1);
            while (is_loaded && !is_over) {
                client.round(0);
            }
        });
        other.join();
    });
    return nsec;
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
            sharing->start(i, now, now + far);
        }
        for (size_t i = 0; i < timer_count; ++i) {
            is_good = sharing->stop(i) && !sharing->stop(i) && is_good;
        }
        is_over = true;
    });
    return is_good;
}

void print_row(const char *name, const std::vector<std::vector<double>> &row)
{
    std::printf("%-20s", name);
    for (const std::vector<double> &figure : row) {
        std::printf(" %11.1f", median(figure));
    }
    std::printf("\n");
}

using Rows = std::vector<std::vector<std::vector<double>>>;

void print_remote(const Sharings &all, unsigned clients, unsigned repetitions,
                  unsigned rounds)
{
    Rows rows(all.size(), std::vector<std::vector<double>>(operation_count));
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        for (size_t s = 0; s < all.size(); ++s) {
            for (size_t o = 0; o < operation_count; ++o) {
                rows[s][o].push_back(
                    remote_nsec(all[s].get(), operations[o], clients, rounds));
            }
        }
    }
    std::printf("\n%u other thread%s; ns\n%-20s", clients,
                clients == 1 ? "" : "s", "");
    for (const char *name : names) {
        std::printf(" %11s", name);
    }
    std::printf("\n");
    for (size_t s = 0; s < all.size(); ++s) {
        print_row(all[s]->name, rows[s]);
    }
}

void print_own(const Sharings &all, unsigned repetitions, unsigned rounds)
{
    Rows rows(all.size(), std::vector<std::vector<double>>(2));
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        for (size_t s = 0; s < all.size(); ++s) {
            for (const bool is_loaded : {false, true}) {
                rows[s][is_loaded].push_back(
                    own_nsec(all[s].get(), is_loaded, rounds));
            }
        }
    }
    std::printf("\nthe owner's re-arm, alone and while another thread re-arms; "
                "ns\n%-20s %11s %11s\n",
                "", "alone", "loaded");
    for (size_t s = 0; s < all.size(); ++s) {
        print_row(all[s]->name, rows[s]);
    }
}

} // namespace

int run_threads(int argc, char **argv)
{
    bool is_quick = false;
    if (!parse_quick(argc, argv,
                     "usage: lawn_bench threads [--quick]\n\n"
                     "Compares ways in which threads share timers: what an "
                     "operation costs the threads\nand the owner of the "
                     "timers, in nanoseconds.\n\n"
                     "  --quick  small and once\n"
                     "  --help\n",
                     &is_quick)) {
        return 0;
    }
    const Sharings all = all_sharings();
    for (const auto &sharing : all) {
        if (!is_whole(sharing.get())) {
            std::fprintf(stderr, "lawn_bench: %s is broken\n", sharing->name);
            return 1;
        }
    }
    const unsigned repetitions = is_quick ? 1 : 5;
    const unsigned rounds = is_quick ? 5 : 100;
    std::printf("%zu timers, %u processors\n", timer_count,
                std::thread::hardware_concurrency());
    for (const unsigned clients : {1U, 2U, 4U, 8U}) {
        print_remote(all, clients, repetitions, rounds);
    }
    print_own(all, repetitions, rounds);
    print_groups(is_quick);
    return 0;
}

} // namespace bench
