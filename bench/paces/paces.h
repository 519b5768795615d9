// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Ways to pace many flows, as lawn_bench pacing compares them. Each flow always
// has packets of 1,500 bytes, and a gap from one to the next. Time is virtual,
// and a tick is a nanosecond.

#ifndef LAWN_BENCH_PACES_PACES_H
#define LAWN_BENCH_PACES_PACES_H

#include <lawn/time.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace bench
{

constexpr uint64_t packet_bytes = 1500;
constexpr lawn_time_t pass_interval = 10'000;
// What a late pass has missed counts up to this.
constexpr lawn_time_t most_behind = 2 * pass_interval;

class Paces
{
public:
    Paces(const char *name, size_t bytes) : name(name), bytes(bytes)
    {
    }

    virtual ~Paces() = default;

    Paces(const Paces &) = delete;
    Paces &operator=(const Paces &) = delete;

    // Flow `i` sends its first packet at `now` + `phase` gaps.
    virtual void begin(size_t i, lawn_time_t now, double gap, double phase) = 0;
    // Sends all that may go by now.
    virtual void pass(lawn_time_t now) = 0;
    virtual uint64_t sent(size_t i) const = 0; // packets

    const char *const name;
    const size_t bytes; // that a flow takes for this
    uint64_t packets = 0;
};

// Each with memory for `count` flows.
using PaceMaker = std::unique_ptr<Paces> (*)(size_t count);

std::unique_ptr<Paces> make_lawn_pacers(size_t count);
std::unique_ptr<Paces> make_carousel(size_t count);
std::unique_ptr<Paces> make_pace_heap(size_t count);
std::unique_ptr<Paces> make_pace_list(size_t count);

// lawn_bench pacing [--quick]: the exit status.
int run_paces(int argc, char **argv);

} // namespace bench

#endif
