// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_sim - clusters of connections in virtual time.
//
// Hosts, each with an engine and a clock that is not quite right, hold
// connections to each other over a network that does what networks do. The
// world goes from event to event, so that hours pass in seconds, and
// everything is drawn from one seed, so that a failure can be seen again:
//
//     options -> scenario -> world -> { host -> end -> witness, fault }
//                                        |
//                                     network, clock
//
// What is checked, at every event:
//   - each message is delivered exactly once, in order (end.cc);
//   - each timer fires at the first pass at or after its deadline, both of
//     them in the ticks of the host's clock, and never before (witness.cc);
//   - retransmissions are spaced by the RTO of RFC 6298 and its backoff, one
//     after a stall (witness.cc), and round trips are measured right (end.cc);
//   - no end dies without its reason, nor while an answer waits, nor when the
//     network and the peer did nothing wrong (witness.cc, end.cc);
//   - every end whose peer is gone finds it out within the bound that
//     lawn/conn.h states, and once (witness.cc, world.cc);
//   - a pass polls as often and fires as many as lawn/engine.h says, and
//     nobody is woken for nothing too often (host.cc, world.cc).
// And at the end, after a calm: all are connected, all that was sent is there.

#include "options.h"
#include "scenario.h"
#include "summary.h"
#include "world.h"

#include <cinttypes>
#include <cstdio>

namespace
{

struct Total {
    uint64_t seeds = 0;
    uint64_t violations = 0;
    std::array<uint64_t, sim::fault_count> faults = {};
    std::array<uint64_t, 4> deaths = {};
};

void run(const sim::Options &options, uint64_t seed, Total &total)
{
    const sim::Scenario scenario = sim::draw_scenario(
        seed, options.connections, options.hosts, options.duration);
    sim::World world(scenario, options.is_verbose);
    world.run();
    const sim::Shared &shared = world.shared();
    if (options.is_quiet) {
        print_line(shared);
    } else {
        print_summary(shared, world.lived());
    }
    const uint64_t violations = shared.checker.violations();
    if (violations != 0) {
        printf("%" PRIu64 " violations; replay: lawn_sim --seed %" PRIu64
               " --connections %u --hosts %u --hours %.17g\n",
               violations, seed, options.connections, options.hosts,
               static_cast<double>(options.duration) / sim::hour);
    }
    ++total.seeds;
    total.violations += violations;
    for (size_t i = 0; i < total.faults.size(); ++i) {
        total.faults[i] += shared.counters.faults[i];
    }
    for (size_t i = 0; i < total.deaths.size(); ++i) {
        total.deaths[i] += shared.counters.deaths[i];
    }
    fflush(stdout);
}

unsigned count_missing(const Total &total)
{
    unsigned missing = 0;
    for (size_t i = 0; i < total.faults.size(); ++i) {
        if (total.faults[i] == 0) {
            printf("there were no %s\n", sim::fault_name(i));
            ++missing;
        }
    }
    for (unsigned i = LAWN_CONN_RETRY_EXCEEDED; i <= LAWN_CONN_KEEPALIVE; ++i) {
        if (total.deaths[i] == 0) {
            printf("nobody died of: %s\n",
                   lawn_conn_reason_string(static_cast<lawn_conn_reason_t>(i)));
            ++missing;
        }
    }
    return missing;
}

} // namespace

int main(int argc, char **argv)
{
    const sim::Options options = sim::parse_options(argc, argv);
    Total total;
    uint64_t seed = options.first_seed;
    for (;;) {
        run(options, seed, total);
        if (seed == options.last_seed) {
            break;
        }
        ++seed;
    }
    const unsigned missing = options.wants_all_kinds ? count_missing(total) : 0;
    printf("lawn_sim: %" PRIu64 " seeds, %" PRIu64 " violations\n", total.seeds,
           total.violations);
    return total.violations == 0 && missing == 0 ? 0 : 1;
}
