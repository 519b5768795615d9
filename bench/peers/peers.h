// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timers of other libraries, each in a file of its own, built where the
// library is found, or where an option points to its sources. They are used as
// a program would use them, through the functions that the library documents
// for it; where that must be departed from, the file's head says so. Libraries
// that read the clock themselves are given virtual time (virtual_clock.h), but
// for DPDK, which lives in real time.

#ifndef LAWN_BENCH_PEERS_H
#define LAWN_BENCH_PEERS_H

#include "contender.h"

#include <cstdio>

namespace bench
{

// Those of this build.
std::vector<Contender> peers();

// Each is defined where its library is found.
Contender ucs_twheel();
Contender ucs_timerq();
Contender rte_timers();
Contender libev();
Contender libuv();
Contender libevent();
Contender libevent_common();
Contender asio();
Contender lawn2_store();
Contender wahern_timeouts();

// A contender from a class as schemes/scheme.h describes it, with besides
//
//     static constexpr bool no_budget;
//     const char *defect() const;    // why it cannot be used; null: it can
//
// advance() may ignore what it is to call: the callbacks of a library in C push
// to `expired` by themselves, as the functor would.
template <class Scheme> Contender peer_of()
{
    Contender c = contender_of<Scheme>();
    c.create = [](const Config &config) -> void * {
        Scheme *const scheme = new Scheme(config);
        const char *const defect = scheme->defect();
        if (!defect) {
            return scheme;
        }
        static bool is_told = false;
        if (!is_told) {
            is_told = true;
            fprintf(stderr, "lawn_bench: no %s: %s\n", Scheme::traits.name,
                    defect);
        }
        delete scheme;
        return nullptr;
    };
    c.no_budget = Scheme::no_budget;
    return c;
}

// Runs one pass of a library: the number of timers that it fired.
template <class Pass> unsigned fired_by(Pass &&pass)
{
    const size_t before = expired.size();
    pass();
    return static_cast<unsigned>(expired.size() - before);
}

} // namespace bench

#endif
