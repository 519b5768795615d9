// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the pages of the timers' memory cost: the first touch, when the kernel
// finds a page and clears it, and the size of a page, which decides how many
// of them a processor knows where to find. The paper does not say how its
// memory was set up. All other experiments here touch it first, and leave the
// size of pages to the system.

#include "evaluation/experiments.h"
#include "evaluation/latency.h"

#include "arena.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <sys/mman.h>

namespace bench
{

namespace
{

constexpr size_t huge_page = size_t{1} << 21;

// Fresh memory, for which huge pages are asked for, or refused.
class Mapping
{
public:
    Mapping(size_t size, bool wants_huge)
        : size_((size + huge_page - 1) / huge_page * huge_page),
          mapped_(mmap(nullptr, size_ + huge_page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        if (mapped_ == MAP_FAILED) {
            throw std::bad_alloc();
        }
        const auto address = reinterpret_cast<uintptr_t>(mapped_);
        begin_ = static_cast<char *>(mapped_) + (-address & (huge_page - 1));
        error_ = madvise(begin_, size_,
                         wants_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0
                     ? 0
                     : errno;
    }

    ~Mapping()
    {
        munmap(mapped_, size_ + huge_page);
    }

    Mapping(const Mapping &) = delete;
    Mapping &operator=(const Mapping &) = delete;

    void touch()
    {
        memset(begin_, 0, size_);
    }

    char *begin() const
    {
        return begin_;
    }

    size_t size() const
    {
        return size_;
    }

    // Why the system did not take the advice; 0: it did.
    int error() const
    {
        return error_;
    }

    // Bytes of it that are in huge pages, by the kernel's account.
    size_t in_huge_pages() const
    {
        const auto address = reinterpret_cast<unsigned long>(begin_);
        std::ifstream file("/proc/self/smaps");
        bool is_here = false;
        for (std::string line; std::getline(file, line);) {
            unsigned long begin = 0;
            unsigned long end = 0;
            size_t kib = 0;
            if (sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
                is_here = begin <= address && address < end;
            } else if (is_here &&
                       sscanf(line.c_str(), "AnonHugePages: %zu", &kib) == 1) {
                return 1024 * kib;
            }
        }
        return 0;
    }

private:
    const size_t size_;
    void *const mapped_;
    char *begin_;
    int error_;
};

struct Kind {
    const char *name;
    bool is_touched;
    bool is_huge;
};

constexpr Kind kinds[] = {
    {"touched", true, false},
    {"untouched", false, false},
    {"touched, huge", true, true},
    {"untouched, huge", false, true},
};

constexpr size_t kind_count = std::size(kinds);

struct Figures {
    Result start;
    Result restart;
    size_t size;
    size_t in_huge_pages;
    int error;
};

// All timers are initialised and started, in a random order, and then stopped
// and started at random.
Figures measure(const Contender &contender, const Load &load, const Kind &kind)
{
    const Time base = sec + usec * load.timers;
    const Ttls ttls(base, base, load.ttls);
    const std::vector<uint32_t> &order = shuffled(load.timers, load.seed);
    Mapping memory(load.timers * contender.node_size, kind.is_huge);
    if (kind.is_touched) {
        memory.touch();
    }
    Config config;
    config.tick = contender_tick;
    config.capacity = load.timers;
    config.longest_ttl = 2 * base;
    void *const scheme = contender.create(config);
    Time now = sec;
    contender.advance(scheme, now, 0);
    Random random(load.seed);
    const auto node = [&](size_t index) {
        return memory.begin() + index * contender.node_size;
    };
    const auto start = [&](size_t index) {
        contender.start(scheme, node(index), now, ttls.at(random()));
    };

    Latency starting;
    Stopwatch watch(load.limit_sec, true);
    for (const uint32_t index : order) {
        now += 100;
        watch.time(starting, [&] {
            contender.make_nodes(node(index), 1);
            start(index);
        });
    }
    Latency restarting;
    Stopwatch rewatch(load.limit_sec, true);
    while (!rewatch.is_over()) {
        now += 100;
        const size_t index = random.below(load.timers);
        rewatch.time(restarting, [&] {
            contender.stop(scheme, node(index));
            start(index);
        });
    }
    const Figures figures = {starting.result(), restarting.result(),
                             memory.size(), memory.in_huge_pages(),
                             memory.error()};

    expired.clear();
    const unsigned fired = contender.advance(scheme, now + 3 * base, 0);
    expired.clear();
    contender.destroy(scheme);
    contender.end_nodes(memory.begin(), load.timers);
    if (fired != load.timers) {
        throw std::runtime_error(std::string(contender.traits.name) +
                                 ": not every timer has expired");
    }
    return figures;
}

void print(const std::string &what, const std::vector<Cell> &cells,
           bool is_restart)
{
    print_distribution_head(("pages: " + what).c_str(), "/ touched");
    for (size_t k = 0; k < kind_count; ++k) {
        // At a restart, all memory has been touched.
        if (!is_restart || kinds[k].is_touched) {
            print_distribution(kinds[k].name, cells[k],
                               divisor(cells[k], cells[0]));
        }
    }
}

// What the system made of the advice.
void print_given(const Figures &last)
{
    if (last.error != 0) {
        printf("\npages: the system refuses to choose their size: %s\n",
               strerror(last.error));
    } else {
        printf("\npages: of memory for which huge pages were asked, the system "
               "has %zu of %zu MiB in them%s\n",
               last.in_huge_pages >> 20, last.size >> 20,
               last.in_huge_pages == 0 ? ", so the rows do not differ" : "");
    }
}

} // namespace

bool compare_pages(const Settings &settings)
{
    const size_t timers =
        settings.sizes.empty() ? 1'000'000 : settings.sizes.back();
    Figures last = {};
    const std::vector<const Contender *> contenders = few(settings, "pages");
    for (const Contender *contender : contenders) {
        std::vector<Cell> starts(kind_count);
        std::vector<Cell> restarts(kind_count);
        for (unsigned repetition = 0; repetition < settings.repetitions;
             ++repetition) {
            const Load load = {timers, 10, settings.seed + repetition + 1,
                               settings.limit_sec};
            for (size_t turn = 0; turn < kind_count; ++turn) {
                const size_t k = (turn + repetition) % kind_count;
                const Figures figures = measure(*contender, load, kinds[k]);
                starts[k].results.push_back(figures.start);
                restarts[k].results.push_back(figures.restart);
                last = kinds[k].is_huge ? figures : last;
            }
        }
        const std::string of = ", 10 TTLs, " + std::to_string(timers) +
                               " timers, " + contender->traits.name;
        print("a timer is initialised and started" + of, starts, false);
        print("a stop and a start at random" + of, restarts, true);
        fflush(stdout);
    }
    if (!contenders.empty()) {
        print_given(last);
    }
    return true;
}

} // namespace bench
