// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One timer at a time, from its start to its end; see journey.h. The mean is
// over a sample of TTLs at equal shares of the distribution, with phases and
// fates at random.

#include "evaluation/journey.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace evaluation
{

namespace
{

constexpr unsigned sample_size = 20'000;
constexpr unsigned distances = 13; // up to 64 times that of empty passes

struct Slot {
    unsigned c;
    Time begin;
};

// Where a timer is filed at `now`: TTLs below 64 in class 0, each further class
// covers a factor of 8.
Slot slot_for(Time now, Time deadline)
{
    unsigned c = 0;
    for (Time ttl = deadline - now; ttl >= 64; ttl /= 8) {
        ++c;
    }
    return {c, deadline >> 3 * c << 3 * c};
}

// Passes at equal distances, with the first at any time.
class Passes
{
public:
    Passes(double distance, double first) : distance_(distance), first_(first)
    {
    }

    Time at_or_after(Time time) const
    {
        const double count =
            std::ceil((static_cast<double>(time) - first_) / distance_);
        return static_cast<Time>(std::ceil(first_ + count * distance_));
    }

private:
    double distance_;
    double first_;
};

struct Plan {
    Fate fate;
    Time at;
};

Plan plan(const Load &load, Time now, Time ttl, Random &random)
{
    const Fate fate = draw(load.fates, random);
    const double wait = random.uniform() * static_cast<double>(ttl);
    return {fate, now + static_cast<Time>(wait)};
}

class Lives
{
public:
    Lives(const Load &load, double distance)
        : load_(load), distance_(distance), random_(1)
    {
        mean_.expires_after.resize(groups(load.ttls));
        for (std::vector<double> &after : mean_.expires_after) {
            after.resize(phases);
        }
    }

    void follow(Ttl ttl)
    {
        const Time start = longest_ttl + random_.next() % (Time{1} << 40);
        const Passes passes(distance_, static_cast<double>(start) -
                                           random_.uniform() * distance_);
        const Time end = load_.filing == Filing::slots
                             ? in_slots(start, ttl, passes)
                             : in_queue(start, ttl);
        const double runs = static_cast<double>(end - start);
        mean_.runs += runs;
        mean_.by_group[ttl.group] += runs;
        ++count_;
    }

    Journey mean() const
    {
        Journey mean = mean_;
        const auto divide = [this](double &sum) { sum /= count_; };
        divide(mean.runs);
        divide(mean.expires);
        divide(mean.touched);
        std::for_each(mean.by_group.begin(), mean.by_group.end(), divide);
        std::for_each(mean.touched_in.begin(), mean.touched_in.end(), divide);
        for (std::vector<double> &after : mean.expires_after) {
            std::for_each(after.begin(), after.end(), divide);
        }
        return mean;
    }

private:
    // Each returns when the timer ends.
    Time in_slots(Time start, Ttl ttl, const Passes &passes)
    {
        Time deadline = start + ttl.ttl;
        Slot slot = slot_for(start, deadline);
        Plan next = plan(load_, start, ttl.ttl, random_);
        for (;;) {
            const Time pass = passes.at_or_after(slot.begin);
            if (next.fate != Fate::expire && next.at <= pass) {
                if (next.fate == Fate::rearm) {
                    deadline = next.at + ttl.ttl; // later: the slot stays
                    next = plan(load_, next.at, ttl.ttl, random_);
                    continue;
                }
                if (next.fate == Fate::pause) {
                    touch(slot.c); // to be forgotten
                }
                return next.at;
            }
            touch(slot.c);
            if (deadline <= pass) {
                expire(ttl.group, deadline - start);
                return deadline;
            }
            slot = slot_for(pass, deadline);
        }
    }

    // A paused timer is touched when it has come to the head.
    Time in_queue(Time start, Ttl ttl)
    {
        Time armed = start;
        for (;;) {
            const Plan next = plan(load_, armed, ttl.ttl, random_);
            if (next.fate == Fate::expire) {
                touch(0);
                expire(ttl.group, armed + ttl.ttl - start);
                return armed + ttl.ttl;
            }
            if (next.fate == Fate::pause) {
                touch(0);
            }
            if (next.fate != Fate::rearm) {
                return next.at;
            }
            armed = next.at;
        }
    }

    void touch(unsigned c)
    {
        mean_.touched += 1;
        mean_.touched_in[c] += 1;
    }

    void expire(unsigned group, Time after)
    {
        mean_.expires += 1;
        const Time phase = after % burst_period * phases / burst_period;
        mean_.expires_after[group][phase] += 1;
    }

    const Load &load_;
    double distance_;
    Random random_;
    double count_ = 0;
    Journey mean_; // sums, until it is asked for
};

// What an alarm knows of its queue.
struct Head {
    double arms; // per ns
    double ttl;
    const Fates &fates;

    // The time until the deadline of the first timer, for the share `at` of
    // all. Of those due in `x`, expire() + x / ttl of the rest still wait.
    double wait(double at) const
    {
        const double sum = -std::log(1 - at) / arms;
        const double stay = fates.expire();
        const double leave = (1 - stay) / (2 * ttl);
        // Solves leave x^2 + stay x = sum, also where leave is 0.
        return 2 * sum / (stay + std::sqrt(stay * stay + 4 * leave * sum));
    }

    // The share of those that are stopped or re-armed meanwhile: the alarm is
    // then touched for nothing.
    double leaves(double wait) const
    {
        const double left = std::min(wait / ttl, 1.0);
        return (fates.stop + fates.rearm) * left /
               (fates.expire() + (1 - fates.expire()) * left);
    }
};

// A queue's alarm is set in a pass, for the head's deadline, and touched in the
// slots of a timer with that deadline. The last touch is that of the head, if
// it is still there. Returns the other ones, per ns.
double alarm_touches(const Head &head, double distance)
{
    constexpr unsigned alarms = 400;
    Random random(1);
    double touched = 0;
    double time = 0;
    for (unsigned i = 0; i < alarms; ++i) {
        const double wait = head.wait((i + 0.5) / alarms);
        const double empty = std::max(wait - head.ttl, 0.0);
        const Time begin = longest_ttl + random.next() % (Time{1} << 40);
        const Passes passes(distance, static_cast<double>(begin));
        const Time set = begin + static_cast<Time>(empty);
        const Time deadline = begin + static_cast<Time>(wait) + 1;
        Time pass = passes.at_or_after(slot_for(set, deadline).begin);
        while (pass < deadline) {
            touched += 1;
            pass = passes.at_or_after(slot_for(pass, deadline).begin);
        }
        touched += head.leaves(wait);
        time += static_cast<double>(pass - begin);
    }
    return touched / time;
}

// Shares the touches of all queues' alarms among the lives.
void add_alarms(const Load &load, double distance, Journey *life)
{
    const double queues = groups(load.ttls);
    const double arms = load.rate / (1 - load.fates.rearm) / queues;
    double touches = 0; // per ns
    for (unsigned i = 0; i < groups(load.ttls); ++i) {
        const double ttl =
            static_cast<double>(ttl_at(load.ttls, (i + 0.5) / queues).ttl);
        double last = 0;
        double of_last = 0;
        for (const double rate : deadline_rates(load, life->expires_after[i])) {
            if (rate != last) {
                const Head head = {arms * rate, ttl, load.fates};
                of_last = rate > 0 ? alarm_touches(head, distance) : 0;
                last = rate;
            }
            touches += of_last / phases;
        }
    }
    life->touched += touches / load.rate;
    life->touched_in[0] += touches / load.rate;
}

} // namespace

double slot_width(unsigned c)
{
    return std::ldexp(1, static_cast<int>(3 * c));
}

std::vector<double> deadline_rates(const Load &load,
                                   const std::vector<double> &after)
{
    std::vector<double> rates(phases, 1);
    const double sum = std::accumulate(after.begin(), after.end(), 0.0);
    if (load.arrivals != Arrivals::bursty || sum == 0) {
        return rates;
    }
    constexpr unsigned on = phases * burst_on / burst_period;
    constexpr double height = static_cast<double>(burst_period) / burst_on;
    for (unsigned i = 0; i < phases; ++i) {
        double in_burst = 0;
        for (unsigned back = 0; back < on; ++back) {
            in_burst += after[(i + phases - back) % phases];
        }
        rates[i] = height * in_burst / sum;
    }
    return rates;
}

Journeys::Journeys(const Load &load)
    : pass_cost_(static_cast<double>(load.pass_cost))
{
    for (unsigned i = 0; i < distances; ++i) {
        const double distance = pass_cost_ * std::exp2(i / 2.0);
        Lives lives(load, distance);
        for (unsigned j = 0; j < sample_size; ++j) {
            lives.follow(ttl_at(load.ttls, (j + 0.5) / sample_size));
        }
        at_.push_back(lives.mean());
        if (load.filing == Filing::queues) {
            add_alarms(load, distance, &at_.back());
        }
    }
}

Journey Journeys::at(double distance) const
{
    const double place = std::min(2 * std::log2(distance / pass_cost_),
                                  static_cast<double>(distances - 1));
    const size_t before = std::min(static_cast<size_t>(place), at_.size() - 2);
    const double share = place - static_cast<double>(before);
    Journey mean = at_[before];
    const Journey &after = at_[before + 1];
    const auto mix = [share](double *to, double from) {
        *to += share * (from - *to);
    };
    mix(&mean.touched, after.touched);
    for (unsigned c = 0; c < classes; ++c) {
        mix(&mean.touched_in[c], after.touched_in[c]);
    }
    return mean;
}

} // namespace evaluation
