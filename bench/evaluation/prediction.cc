// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The prediction, and the paper's; see prediction.h.

#include "evaluation/prediction.h"

#include "evaluation/journey.h"
#include "evaluation/lateness.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace evaluation
{

namespace
{

using Rates = std::vector<double>; // by phase, see deadline_rates()

// The deadlines of all groups.
std::vector<double> all_expire_after(const Journey &life)
{
    std::vector<double> all(phases);
    for (const std::vector<double> &after : life.expires_after) {
        for (unsigned i = 0; i < phases; ++i) {
            all[i] += after[i];
        }
    }
    return all;
}

// The distance of passes as timers see it: most see passes of busy phases. The
// program is busy for this share of the time, in the mean.
double distance_seen(const Load &load, const Rates &rates, double use)
{
    const double pass_cost = static_cast<double>(load.pass_cost);
    double sum = 0;
    for (const double rate : rates) {
        // Beyond, a phase leaves work to the next one.
        sum += rate * pass_cost / (1 - std::min(use * rate, 0.97));
    }
    return sum / phases;
}

struct Steady {
    Journey life;
    Rates rates;
    double use; // share of the time in which timers are touched
};

Steady steady(const Load &load, const Journeys &journeys)
{
    Steady s = {{}, {}, 0};
    double distance = static_cast<double>(load.pass_cost);
    for (unsigned i = 0; i < 30; ++i) {
        s.life = journeys.at(distance);
        s.rates = deadline_rates(load, all_expire_after(s.life));
        s.use = std::min(load.rate * s.life.touched *
                             static_cast<double>(load.touch_cost),
                         0.999);
        distance = distance_seen(load, s.rates, s.use);
    }
    return s;
}

// Of a Poisson number of timers for each TTL, at least one runs. Where TTLs are
// many, all of a small interval are taken to have the same number.
double distinct_ttls(const Load &load, const Journey &life)
{
    if (load.ttls == Ttls::fixed || load.ttls == Ttls::ten) {
        return groups(load.ttls);
    }
    // The time that a timer runs, in parts of its TTL.
    const Fates &fates = load.fates;
    const double share =
        (fates.expire() + (1 - fates.expire()) / 2) / (1 - fates.rearm);
    constexpr unsigned parts = 10'000;
    const auto ttl_before = [&load](unsigned part) {
        return static_cast<double>(
            ttl_at(load.ttls, (part - 1e-9) / parts).ttl);
    };
    double sum = 0;
    for (unsigned i = 0; i < parts;) {
        const unsigned begin = i++;
        const double from =
            static_cast<double>(ttl_at(load.ttls, double(begin) / parts).ttl);
        // A value that many timers have is one, however many parts it has.
        while (i < parts && ttl_before(i + 1) == from) {
            ++i;
        }
        const double to = ttl_before(i);
        const double values = std::max(to - from, 1.0);
        const double timers =
            load.rate * (i - begin) / parts * share * (from + to) / 2;
        sum += values * (1 - std::exp(-timers / values));
    }
    return std::min(sum, load.rate * life.runs);
}

// At this rate of deadlines, relative to the mean.
Flow flow_of(const Load &load, const Journeys &journeys, double relative)
{
    Flow flow = {};
    flow.pass_cost = static_cast<double>(load.pass_cost);
    flow.touch_cost = static_cast<double>(load.touch_cost);
    flow.touches = [&load, &journeys, relative](double length) {
        const Journey life = journeys.at(length);
        Touches touches = {0, {}};
        for (unsigned c = 0; c < classes; ++c) {
            const double rate = load.rate * relative * life.touched_in[c];
            const double in_slot = rate * slot_width(c);
            if (slot_width(c) <= length || in_slot < 1) {
                touches.rate += rate;
            } else {
                touches.batches.push_back({slot_width(c), in_slot});
            }
        }
        return touches;
    };
    const bool is_alone = load.ttls == Ttls::fixed;
    flow.is_regular = load.arrivals == Arrivals::periodic && is_alone &&
                      load.fates.expire() == 1;
    flow.is_fifo = load.filing == Filing::queues && is_alone;
    return flow;
}

void predict_lateness(const Load &load, const Journeys &journeys, Rates rates,
                      Prediction *p)
{
    Lateness late;
    bool is_stable = true;
    // Phases of nearly one rate are done together.
    std::sort(rates.begin(), rates.end());
    for (unsigned i = 0; i < phases && is_stable;) {
        unsigned end = i + 1;
        while (end < phases && rates[end] < rates[i] + 0.1) {
            ++end;
        }
        double sum = 0;
        for (unsigned j = i; j < end; ++j) {
            sum += rates[j];
        }
        if (sum > 0) {
            is_stable = late.add(flow_of(load, journeys, sum / (end - i)), sum);
        }
        i = end;
    }
    p->late_mean = is_stable ? late.mean() : NAN;
    p->late_p50 = is_stable ? late.quantile(0.5) : NAN;
    p->late_p99 = is_stable ? late.quantile(0.99) : NAN;
}

} // namespace

Prediction predict(const Load &load)
{
    const Journeys journeys(load);
    const Steady s = steady(load, journeys);
    Prediction p;
    p.population = load.rate * s.life.runs;
    for (unsigned i = 0; i < most_groups; ++i) {
        p.by_group[i] = load.rate * s.life.by_group[i];
    }
    p.distinct_ttls = distinct_ttls(load, s.life);
    p.touched = load.rate * s.life.touched *
                static_cast<double>(load.pass_cost) / (1 - s.use);
    predict_lateness(load, journeys, s.rates, &p);
    return p;
}

// When due timers are many and late, each is due when it is first looked at, so
// no timer moves. What is left is one touch for each timer that expires, or is
// paused and must be forgotten.
double highest_rate(const Load &load)
{
    const double budget = load.budget;
    const double full_pass = static_cast<double>(load.pass_cost) +
                             budget * static_cast<double>(load.touch_cost);
    const double touched_lives =
        (load.fates.expire() + load.fates.pause) / (1 - load.fates.rearm);
    return budget / full_pass / touched_lives;
}

namespace paper
{

namespace
{

double service(const Load &load)
{
    return 1 / static_cast<double>(load.touch_cost);
}

} // namespace

double population(const Load &load, double ttls)
{
    const double rate = load.rate / ttls;
    return rate / (service(load) - rate);
}

double wait(const Load &load, double ttls)
{
    return 1 / (service(load) - load.rate / ttls);
}

double batch_wait(const Load &load, double ttls, double batch)
{
    return batch / (2 * service(load)) + wait(load, ttls);
}

double buckets(const Load &load)
{
    return static_cast<double>(possible_ttls(load.ttls));
}

double timers_per_bucket(double timers, double ttls)
{
    return timers / ttls;
}

double highest_rate(const Load &load, double ttls)
{
    return ttls * service(load);
}

} // namespace paper

} // namespace evaluation
