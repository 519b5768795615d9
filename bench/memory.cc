// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Heap in use, as malloc counts it: its own overhead is part of what a timer
// costs. operator new and every library come to the same malloc. What a
// contender takes from elsewhere (DPDK: its own pages, once) is not seen.
//
// malloc keeps freed chunks for the thread that freed them, and counts them as
// in use. A thread of its own begins with none.

#include "memory.h"

#include "arena.h"
#include "child.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

namespace bench
{

#ifdef __GLIBC__

double heap_in_use()
{
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks) +
           static_cast<double>(info.hblkhd);
}

#else

double heap_in_use()
{
    return 0;
}

#endif

double resident()
{
    std::ifstream file("/proc/self/statm");
    double size = 0;
    double pages = 0;
    file >> size >> pages;
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double available_memory()
{
    std::ifstream file("/proc/meminfo");
    double kib = 0;
    for (std::string name; file >> name;) {
        if (name == "MemAvailable:" && file >> kib) {
            return kib * 1024;
        }
    }
    return INFINITY;
}

namespace
{

struct Usage {
    double nodes = 0;
    double empty = 0;    // the scheme
    double running = 0;  // the scheme with all timers
    double resident = 0; // all of it
};

// False when it takes too long.
bool start_all(const Contender &contender, const Load &load, void *scheme,
               void *nodes)
{
    Random random(load.seed);
    const Ttls ttls(sec, sec, load.ttls);
    const auto begin = Clock::now();
    Time now = sec;
    for (size_t i = 0; i < load.timers; ++i) {
        contender.start(scheme,
                        static_cast<char *>(nodes) + i * contender.node_size,
                        now++, ttls.at(random()));
        if (i % 256 == 0 && seconds_since(begin) > patience(load)) {
            return false;
        }
    }
    return true;
}

// False when it takes too long.
bool measure_here(const Contender &contender, const Load &load, Usage &usage)
{
    Config config;
    config.tick = contender_tick;
    config.capacity = load.timers;
    config.longest_ttl = 2 * sec;
    // The first call allocates what malloc needs for a thread, and what others
    // left becomes one piece.
    void *volatile first = malloc(4096);
    free(first);
    malloc_trim(0);
    const double resident_before = resident();
    const double before = heap_in_use();
    const Nodes nodes(contender, load.timers);
    const double with_nodes = heap_in_use();
    void *const scheme = contender.create(config);
    const double with_scheme = heap_in_use();
    const bool is_running = start_all(contender, load, scheme, nodes.begin());
    const double with_all = heap_in_use();
    usage.resident = resident() - resident_before;
    contender.destroy(scheme);
    usage.nodes = with_nodes - before;
    usage.empty = with_scheme - with_nodes;
    usage.running = with_all - with_nodes;
    return is_running;
}

// One with a clock of its own may know no thread but the first, and its count
// is some hundred bytes off.
bool measure(const Contender &contender, const Load &load, Usage &usage)
{
    if (contender.wait) {
        return measure_here(contender, load, usage);
    }
    bool is_running = false;
    std::thread([&] {
        is_running = measure_here(contender, load, usage);
    }).join();
    return is_running;
}

// Under a sanitizer the heap is another one. The TTLs cannot be declared, and
// the floor keeps nothing.
bool can_measure(const Contender &contender)
{
    return heap_in_use() > 0 && !contender.declare && !contender.is_floor;
}

} // namespace

Result memory_per_timer(const Contender &contender, const Load &load)
{
    if (!can_measure(contender)) {
        return Result::unavailable();
    }
    Usage usage;
    if (!measure(contender, load, usage)) {
        return {};
    }
    const auto timers = static_cast<double>(load.timers);
    // Of the array, what is a timer's and not its object's.
    const double beside = std::max(
        0.0, usage.nodes - timers * static_cast<double>(contender.node_size));
    const double nodes =
        beside + timers * static_cast<double>(contender.node_bytes);
    return (nodes + usage.running) / timers;
}

// In a process of its own and its first thread, whose malloc gives back all
// that is free before the measuring.
Result resident_per_timer(const Contender &contender, const Load &load)
{
    if (!can_measure(contender) || resident() == 0) {
        return Result::unavailable();
    }
    const std::optional<double> bytes = in_child([&] {
        Usage usage;
        return measure_here(contender, load, usage) ? usage.resident
                                                    : double{NAN};
    });
    if (!bytes) {
        return Result::unavailable();
    }
    const auto beside =
        static_cast<double>(contender.node_size - contender.node_bytes);
    return *bytes / static_cast<double>(load.timers) - beside;
}

Result memory_empty(const Contender &contender, const Load &load)
{
    if (!can_measure(contender)) {
        return Result::unavailable();
    }
    Usage usage;
    return measure(contender, load, usage) ? Result(usage.empty) : Result();
}

} // namespace bench
