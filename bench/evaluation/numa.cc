// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What it costs that a worker's timers, and what they are started in, are on
// another NUMA node than the worker. Built where libnuma is found.
//
// Each measurement is in a process of its own, whose memory prefers one node.
// So all pages that it writes are its own, and on that node. That they are is
// checked, page by page (move_pages).

#include "evaluation/experiments.h"

#include "arena.h"
#include "child.h"

#include <lawn/numa.h>

#include <cstdio>

#include <numa.h>
#include <sched.h>
#include <unistd.h>

namespace bench
{

namespace
{

// The node with memory that is farthest from `node`; -1: there is no other.
int farthest_from(int node)
{
    int farthest = -1;
    for (int other = 0; other <= numa_max_node(); ++other) {
        if (other != node &&
            numa_bitmask_isbitset(numa_all_nodes_ptr,
                                  static_cast<unsigned>(other)) != 0 &&
            (farthest < 0 ||
             numa_distance(node, other) > numa_distance(node, farthest))) {
            farthest = other;
        }
    }
    return farthest;
}

// Pages, and how many of them are on the node.
struct Pages {
    size_t all = 0;
    size_t there = 0;

    void add(const void *memory, size_t size, int node)
    {
        const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        const auto begin = reinterpret_cast<uintptr_t>(memory);
        for (uintptr_t at = begin & ~(page - 1); at < begin + size;
             at += page) {
            ++all;
            there +=
                lawn_numa_node_of(reinterpret_cast<const void *>(at)) == node;
        }
    }
};

// The contender that is measured, and where its nodes are.
struct Watched {
    Contender contender;
    const void *nodes = nullptr;
    size_t size = 0;
    int node = 0;
    Pages pages;
} watched;

// It, with its pages counted when all timers have been in use.
Contender watching()
{
    Contender c = watched.contender;
    c.make_nodes = [](void *memory, size_t count) {
        watched.contender.make_nodes(memory, count);
        watched.nodes = memory;
        watched.size = count * watched.contender.node_size;
    };
    c.destroy = [](void *scheme) {
        watched.pages.add(watched.nodes, watched.size, watched.node);
        watched.pages.add(scheme, 1, watched.node);
        watched.contender.destroy(scheme);
    };
    return c;
}

struct Outcome {
    Result result;
    Pages pages;
};

using Run = Result (*)(const Contender &contender, const Load &load);

// With the memory on `node`. The child inherits what this process prefers, or
// its first pages would be elsewhere.
Outcome measure_on(int node, Run run, const Contender &contender,
                   const Load &load)
{
    watched = {};
    watched.contender = contender;
    watched.node = node;
    numa_set_preferred(node);
    const std::optional<Outcome> outcome = in_child([&] {
        const Result result = run(watching(), load);
        return Outcome{result, watched.pages};
    });
    numa_set_localalloc();
    if (!outcome) {
        throw std::runtime_error(std::string(contender.traits.name) +
                                 ": its process has failed");
    }
    return *outcome;
}

struct Operation {
    const char *name;
    Run run;
};

constexpr Operation operations[] = {
    {"start of an idle timer", start_each},
    {"a tick each us, one expiry in it", tick_each},
};

class Comparison
{
public:
    Comparison(const Settings &settings,
               const std::vector<const Contender *> &contenders, int worker,
               int other)
        : settings_(settings), contenders_(contenders), worker_(worker),
          other_(other)
    {
    }

    void run(const Operation &operation, size_t timers)
    {
        std::vector<Cell> local(contenders_.size());
        std::vector<Cell> remote(contenders_.size());
        for (unsigned repetition = 0; repetition < settings_.repetitions;
             ++repetition) {
            const Load load = {timers, 10, settings_.seed + repetition + 1,
                               settings_.limit_sec};
            // Made here, they are on the worker's node.
            shuffled(timers, load.seed);
            shuffled(timers, load.seed + 1);
            for (size_t c = 0; c < contenders_.size(); ++c) {
                // Who is first takes turns.
                for (unsigned turn = 0; turn < 2; ++turn) {
                    const bool is_local = (turn + repetition) % 2 == 0;
                    add((is_local ? local : remote)[c],
                        measure_on(is_local ? worker_ : other_, operation.run,
                                   *contenders_[c], load));
                }
            }
        }
        print(operation, timers, local, remote);
    }

    const Pages &pages() const
    {
        return pages_;
    }

private:
    void add(Cell &cell, const Outcome &outcome)
    {
        cell.results.push_back(outcome.result);
        pages_.all += outcome.pages.all;
        pages_.there += outcome.pages.there;
    }

    void print(const Operation &operation, size_t timers,
               const std::vector<Cell> &local,
               const std::vector<Cell> &remote) const
    {
        const std::string what = std::string("numa: ") + operation.name +
                                 ", 10 TTLs, " + std::to_string(timers) +
                                 " timers";
        print_distribution_head(what.c_str(), "/ local");
        for (size_t c = 0; c < contenders_.size(); ++c) {
            const std::string name = contenders_[c]->traits.name;
            print_distribution((name + ", local").c_str(), local[c],
                               divisor(local[c], local[c]));
            print_distribution((name + ", remote").c_str(), remote[c],
                               divisor(remote[c], local[c]));
        }
        fflush(stdout);
    }

    const Settings &settings_;
    const std::vector<const Contender *> &contenders_;
    const int worker_;
    const int other_;
    Pages pages_;
};

bool compare(const Settings &settings, int worker, int other)
{
    const std::vector<const Contender *> contenders = few(settings, "numa");
    if (contenders.empty()) {
        return true;
    }
    const std::vector<size_t> sizes =
        settings.sizes.empty() ? std::vector<size_t>{1000, 100'000, 1'000'000}
                               : settings.sizes;
    Comparison comparison(settings, contenders, worker, other);
    for (const Operation &operation : operations) {
        for (const size_t timers : sizes) {
            comparison.run(operation, timers);
        }
    }
    const Pages &pages = comparison.pages();
    printf("\nnuma: the worker ran on node %d; its memory was on it, or on "
           "node %d at a distance\nof %d (%d is its own); of %zu pages with "
           "timers and schemes, %zu were on their node\n",
           worker, other, numa_distance(worker, other),
           numa_distance(worker, worker), pages.all, pages.there);
    return pages.all != 0 && pages.there == pages.all;
}

} // namespace

bool compare_nodes(const Settings &settings)
{
    if (numa_available() < 0) {
        printf("\nnuma: the kernel knows no nodes, so there is nothing to "
               "measure\n");
        return true;
    }
    const int worker = lawn_numa_node();
    const int other = farthest_from(worker);
    if (other < 0) {
        printf("\nnuma: this machine has one node, so there is nothing to "
               "measure\n");
        return true;
    }
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    numa_run_on_node(worker);
    const bool is_good = compare(settings, worker, other);
    sched_setaffinity(0, sizeof(allowed), &allowed);
    if (!is_good) {
        fprintf(stderr, "lawn_evaluate: memory is not on its node\n");
    }
    return is_good;
}

} // namespace bench
