// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What one contender costs on one path; see measure.h.

#include "rto/measure.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace bench::rto
{

namespace
{

using Make = std::function<std::unique_ptr<Contender>()>;

constexpr double oracle_spurious = 5e-4; // of the messages

// A new connection sends so many at most until the first has got through.
constexpr uint32_t messages_of_new = 1'000;

// Sorts a part of `values`. Returns 0 if there are none.
double quantile(std::vector<double> &values, double share)
{
    if (values.empty()) {
        return 0;
    }
    const auto place =
        values.begin() +
        static_cast<long>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

Setting setting_of(const Plan &plan, const Cell &cell, unsigned run, bool loses)
{
    Setting setting = plan.setting;
    setting.round_trip = cell.round_trip;
    setting.window = cell.window;
    setting.seed = plan.setting.seed + run;
    setting.loss = loses ? plan.setting.loss : 0;
    return setting;
}

double counted(const Plan &plan)
{
    return plan.setting.messages - plan.setting.warm_up;
}

Figures figures_of(const Plan &plan, Flow &flow, const Cell &cell,
                   const Make &make)
{
    Figures sum;
    const double seeds = plan.seeds;
    const double per_10_000 = 1e4 / counted(plan) / seeds;
    const double messages = plan.setting.messages;
    for (unsigned run = 0; run < plan.seeds; ++run) {
        const Outcome clean = flow.run(
            *cell.variant, setting_of(plan, cell, run, false), *make());
        Outcome lossy =
            flow.run(*cell.variant, setting_of(plan, cell, run, true), *make());
        sum.spurious += static_cast<double>(clean.spurious) * per_10_000;
        sum.spurious_lossy += static_cast<double>(lossy.spurious) * per_10_000;
        sum.asks += static_cast<double>(lossy.asks) * 1e4 / messages / seeds;
        sum.packets +=
            static_cast<double>(lossy.transmissions) / messages / seeds;
        sum.took += static_cast<double>(lossy.took) /
                    static_cast<double>(cell.round_trip) / seeds;
        sum.p50 += quantile(lossy.stalls, .5) / seeds;
        sum.p99 += quantile(lossy.stalls, .99) / seeds;
        sum.attempts =
            std::max({sum.attempts, static_cast<double>(clean.attempts),
                      static_cast<double>(lossy.attempts)});
        sum.is_stuck = sum.is_stuck || clean.is_stuck || lossy.is_stuck;
    }
    return sum;
}

// Whether a fixed RTO is spurious seldom enough.
bool is_long_enough(const Plan &plan, Flow &flow, const Cell &cell, double rto)
{
    const auto most =
        static_cast<uint64_t>(oracle_spurious * counted(plan) * plan.seeds);
    uint64_t spurious = 0;
    for (unsigned run = 0; run < plan.seeds; ++run) {
        Setting setting = setting_of(plan, cell, run, false);
        setting.most_spurious = most - spurious;
        const std::unique_ptr<Contender> fixed = make_fixed(
            static_cast<Tick>(rto * static_cast<double>(cell.round_trip)));
        spurious += flow.run(*cell.variant, setting, *fixed).spurious;
        if (spurious > most) {
            return false;
        }
    }
    return true;
}

// The least fixed RTO that is long enough, in round trips, to a percent.
double find_oracle(const Plan &plan, Flow &flow, const Cell &cell)
{
    constexpr double longest = 16'384;
    double low = 1;
    double high = 2;
    while (high < longest && !is_long_enough(plan, flow, cell, high)) {
        low = high;
        high *= 2;
    }
    while (high / low > 1.01) {
        const double middle = std::sqrt(low * high);
        (is_long_enough(plan, flow, cell, middle) ? high : low) = middle;
    }
    return high;
}

Figures oracle_figures(const Plan &plan, Flow &flow, const Cell &cell)
{
    const double rto = find_oracle(plan, flow, cell);
    const auto ticks =
        static_cast<Tick>(rto * static_cast<double>(cell.round_trip));
    Figures figures =
        figures_of(plan, flow, cell, [&] { return make_fixed(ticks); });
    figures.rto = rto;
    return figures;
}

FirstStall first_stall(std::vector<double> &stalls)
{
    return {quantile(stalls, .5), quantile(stalls, .99)};
}

} // namespace

void measure(const Plan &plan, Flow &flow, Cell &cell)
{
    Figures oracle;
    if (plan.needs_oracle) {
        oracle = oracle_figures(plan, flow, cell);
        cell.oracle_p50 = oracle.p50;
    }
    for (const Kind *const kind : plan.kinds) {
        cell.figures.push_back(
            kind->make ? figures_of(plan, flow, cell, kind->make) : oracle);
    }
}

void measure_first(const Plan &plan, unsigned connections, Flow &flow,
                   FirstCell &cell)
{
    Setting setting = plan.setting;
    setting.round_trip = cell.round_trip;
    setting.window = cell.window;
    setting.start = 100 * cell.round_trip;
    const std::unique_ptr<Contender> known = make_lawn();
    const Tick end =
        setting.start + flow.run(*cell.variant, setting, *known).took;
    setting.loses_first = true;
    setting.loss = 0;
    setting.messages = messages_of_new;
    setting.warm_up = 0;
    std::vector<double> alone;
    std::vector<double> inherited;
    std::vector<double> asking;
    Random random(setting.seed);
    const auto run = [&](Contender &taking_part, std::vector<double> &stalls) {
        const Outcome outcome = flow.run(*cell.variant, setting, taking_part);
        stalls.push_back(outcome.is_stuck ? HUGE_VAL : outcome.stalls.at(0));
    };
    for (unsigned i = 0; i < connections; ++i) {
        const double later = random.uniform() * 2'000;
        setting.seed++;
        setting.start = end + static_cast<Tick>(
                                  later * static_cast<double>(cell.round_trip));
        run(*make_lawn(), alone);
        run(*make_lawn_heir(*known, false), inherited);
        run(*make_lawn_heir(*known, true), asking);
    }
    cell.alone = first_stall(alone);
    cell.inherited = first_stall(inherited);
    cell.asking = first_stall(asking);
}

} // namespace bench::rto
