// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Ways to time the retransmissions and the keepalive of many connections, as
// lawn_bench conn compares them. Time is virtual, and a tick is a nanosecond.

#ifndef LAWN_BENCH_CONNS_CONNS_H
#define LAWN_BENCH_CONNS_CONNS_H

#include <lawn/time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bench
{

constexpr lawn_time_t conn_msec = 1'000'000;
constexpr lawn_time_t keepalive_idle = 5000 * conn_msec;

class Conns
{
public:
    Conns(const char *name, size_t bytes) : name(name), bytes(bytes)
    {
    }

    virtual ~Conns() = default;

    Conns(const Conns &) = delete;
    Conns &operator=(const Conns &) = delete;

    virtual void open(size_t i, lawn_time_t now) = 0;
    virtual void send(size_t i, lawn_time_t now) = 0;
    // Of all that was sent, the latest at `sent_at`.
    virtual void ack(size_t i, lawn_time_t now, lawn_time_t sent_at) = 0;
    // Runs what is due by now, or a part of it. Returns whether more is.
    virtual bool pass(lawn_time_t now) = 0;
    virtual void close(size_t i) = 0;

    const char *const name;
    const size_t bytes; // that a connection takes for this
    uint64_t retransmissions = 0;
    uint64_t probes = 0;
};

// Each with memory for `count` connections.
using ConnMaker = std::unique_ptr<Conns> (*)(size_t count);

std::unique_ptr<Conns> make_lawn_conns(size_t count);
std::unique_ptr<Conns> make_bare_timers(size_t count);
std::unique_ptr<Conns> make_ud_wheel(size_t count);
std::unique_ptr<Conns> make_slow_tick(size_t count);

// lawn_bench conn [--quick]: the exit status.
int run_conns(int argc, char **argv);

} // namespace bench

#endif
