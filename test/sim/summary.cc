// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The figures of a run; see summary.h.

#include "summary.h"

#include <lawn/conn.h>

#include <cinttypes>
#include <cstdio>

namespace sim
{

namespace
{

double in(Nsec span, Nsec unit)
{
    return static_cast<double>(span) / static_cast<double>(unit);
}

void print_faults(const Counters &counters)
{
    const char *separator = "faults:";
    for (size_t i = 0; i < fault_count; ++i) {
        printf("%s %" PRIu64 " %s", separator, counters.faults[i],
               fault_name(i));
        separator = ",";
    }
    printf("\n");
}

void print_deaths(const Counters &c)
{
    printf("lost peers: %" PRIu64 ", found %" PRIu64 " (at most %" PRIu64
           " %% of the bound), %" PRIu64 " ends went before they could\n",
           c.orphans, c.found, c.worst_share, c.moot);
    const char *separator = "deaths:";
    for (unsigned i = LAWN_CONN_RETRY_EXCEEDED; i <= LAWN_CONN_KEEPALIVE; ++i) {
        printf("%s %" PRIu64 " %s", separator, c.deaths[i],
               lawn_conn_reason_string(static_cast<lawn_conn_reason_t>(i)));
        separator = ",";
    }
    printf("; of peers that lived, but %" PRIu64
           " after losses or a stall of theirs, %" PRIu64
           " after a jump of the own clock; %" PRIu64
           " stalls of the own host excused\n",
           c.unlucky, c.jumped, c.excused);
}

} // namespace

void print_summary(const Shared &shared, Nsec lived)
{
    const Scenario &s = shared.scenario;
    const Counters &c = shared.counters;
    const NetworkStats &n = shared.network.stats();
    printf("lawn_sim: seed %" PRIu64 ", %u connections, %u hosts, %.2f h of "
           "faults, %.2f h in all\n",
           s.seed, s.connections, s.hosts, in(s.duration, hour),
           in(lived, hour));
    printf("network: loss %.2f %%, duplicates %.1f %%, reordering %.1f %%, "
           "delays from %.2f ms to %.2f ms\n",
           s.weather.loss_ppm / 1e4, s.weather.duplicate_ppm / 1e4,
           s.weather.reorder_ppm / 1e4, in(s.weather.delay_min, msec),
           in(2 * s.weather.delay_max + s.weather.reorder_max, msec));
    print_faults(c);
    printf("packets: %" PRIu64 " sent, %" PRIu64 " lost, %" PRIu64
           " cut, %" PRIu64 " duplicated, %" PRIu64 " reordered, %" PRIu64
           " without room, %" PRIu64 " stale\n",
           n.sent, n.lost, n.cut, n.duplicated, n.reordered, c.overflows,
           c.stale);
    printf("messages: %" PRIu64 " sent, %" PRIu64 " delivered; %" PRIu64
           " retransmissions (%" PRIu64 " with nothing lost; at most %" PRIu64
           " in a row), %" PRIu64 " probes\n",
           c.messages, c.delivered, c.retransmissions, c.spurious,
           c.most_retransmissions, c.probes);
    printf("passes: %" PRIu64 ", %" PRIu64 " late, %" PRIu64 " full, %" PRIu64
           " idle; timers: %" PRIu64 " expired, %" PRIu64
           " moved, at most %" PRIu64 " touched in a pass (budget %u)\n",
           c.passes, c.stalled_passes, c.full_passes, c.idle_passes, c.fired,
           c.moved, c.most_touched, s.budget);
    print_deaths(c);
    printf("digest: %016" PRIx64 "\n", shared.checker.digest());
}

void print_line(const Shared &shared)
{
    const Counters &c = shared.counters;
    printf("seed %" PRIu64 ": %" PRIu64 " messages, %" PRIu64
           " retransmissions, %" PRIu64 " timers, %" PRIu64 " of %" PRIu64
           " lost peers found, digest %016" PRIx64 "\n",
           shared.scenario.seed, c.delivered, c.retransmissions, c.fired,
           c.found, c.orphans, shared.checker.digest());
}

} // namespace sim
