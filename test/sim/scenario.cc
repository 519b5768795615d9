// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The draws; see scenario.h. They keep one promise that makes "healthy" mean
// something: a connection gives up no sooner than after several times the
// longest round trip, 2 * (2 * delay_max + reorder_max).

#include "scenario.h"

#include <algorithm>

namespace sim
{

namespace
{

constexpr Nsec longest_delay = 20 * msec;
constexpr Nsec longest_reorder = 100 * msec;
constexpr Nsec longest_round_trip = 2 * (2 * longest_delay + longest_reorder);

Weather draw_weather(Random &random)
{
    static constexpr uint32_t losses[] = {0, 100, 2000, 10000, 50000};
    static constexpr uint32_t rare[] = {0, 1000, 10000, 50000};
    Weather weather = {};
    weather.loss_ppm = losses[random.below(5)];
    weather.duplicate_ppm = rare[random.below(4)];
    weather.reorder_ppm = rare[random.below(4)];
    weather.delay_max = random.magnitude(100 * usec, longest_delay);
    weather.delay_min = random.magnitude(10 * usec, weather.delay_max);
    weather.reorder_max = random.magnitude(msec, longest_reorder);
    return weather;
}

Timing draw_timing(Random &random)
{
    static constexpr unsigned backoffs[] = {100, 150, 200, 200, 300};
    Timing timing = {};
    timing.rto_initial = random.magnitude(50 * msec, 2 * sec);
    timing.rto_min = random.magnitude(msec, 200 * msec);
    timing.rto_max = random.between(sec, 10 * sec);
    timing.backoff_percent = backoffs[random.below(5)];
    if (random.one_in(4)) {
        timing.rto_fixed = random.magnitude(150 * msec, sec);
    }
    if (random.one_in(3)) {
        // The fewest and shortest retries outlast a few round trips.
        timing.max_retries = static_cast<unsigned>(random.between(8, 16));
        timing.rto_min = std::max(timing.rto_min, longest_round_trip / 4);
    }
    if (!random.one_in(4)) {
        timing.peer_timeout = random.magnitude(3 * sec, 40 * sec);
    }
    timing.think = random.between(40 * sec, 200 * sec);
    timing.window = static_cast<unsigned>(random.between(1, max_window));
    timing.burst = static_cast<unsigned>(random.between(1, timing.window));
    if (timing.peer_timeout != 0 && random.one_in(6)) {
        return timing; // no keepalive; both ends talk
    }
    timing.idle = random.between(40 * sec, 120 * sec);
    timing.idle_spread = random.one_in(2) ? random.below(10 * sec) : 0;
    timing.interval = random.between(sec, 5 * sec);
    timing.probes = static_cast<unsigned>(random.between(2, 6));
    timing.one_sided = random.one_in(3);
    return timing;
}

} // namespace

Scenario draw_scenario(uint64_t seed, uint32_t connections, uint32_t hosts,
                       Nsec duration)
{
    static constexpr unsigned budgets[] = {1, 8, 64, 64, 256};
    Random random(lawn::mix64(seed + 1));
    Scenario scenario = {};
    scenario.seed = seed;
    scenario.connections = connections;
    scenario.hosts = hosts;
    scenario.duration = duration;
    scenario.weather = draw_weather(random);
    for (Timing &timing : scenario.timing) {
        timing = draw_timing(random);
    }
    static constexpr Nsec means[] = {
        2 * minute, 10 * minute, 15 * minute, 5 * minute, 5 * minute,
        minute,     5 * minute,  30 * minute, 4 * hour,   40 * minute};
    static_assert(std::size(means) == fault_count, "one for each");
    for (size_t i = 0; i < fault_count; ++i) {
        scenario.gaps[i] = random.one_in(8)
                               ? never
                               : random.magnitude(means[i] / 2, means[i] * 2);
    }
    scenario.budget = budgets[random.below(5)];
    scenario.stall_threshold = random.magnitude(20 * msec, 80 * msec);
    return scenario;
}

Nsec horizon(const Scenario &scenario)
{
    Nsec longest = 0;
    for (const Timing &t : scenario.timing) {
        const Nsec silence =
            t.idle + t.idle_spread + t.interval * (t.probes + 1);
        const Nsec gap = std::max(t.rto_max, t.rto_fixed);
        longest = std::max({longest, silence, t.peer_timeout + gap, 2 * gap});
    }
    return longest + longest / 1000 + longest_round_trip + sec;
}

Nsec longest_think(const Scenario &scenario)
{
    Nsec longest = 0;
    for (const Timing &t : scenario.timing) {
        longest = std::max(longest, t.think / 5 * 9);
    }
    return longest + longest / 1000;
}

const char *fault_name(size_t kind)
{
    static constexpr const char *names[] = {
        "stalls", "suspensions", "jumps",      "steps back", "freezes",
        "drifts", "bursts",      "partitions", "kills",      "crashes"};
    static_assert(std::size(names) == fault_count, "one for each");
    return names[kind];
}

} // namespace sim
