// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a timer scheme must do, as a model that knows only deadlines:
//
//   - each timer fires once for each start, at the first advance at or
//     after its deadline;
//   - timers of one TTL fire in the order of their starts.
//
// Both rules hold except where the traits of the scheme say otherwise.
// lawn_bench compares everything that it measures with the model, because a
// comparison with a wrong wheel is useless. It starts and stops no timer in the
// middle of an advance.

#ifndef LAWN_BENCH_SCHEMES_MODEL_H
#define LAWN_BENCH_SCHEMES_MODEL_H

#include "scheme.h"
#include "ticks.h"

#include <map>
#include <random>
#include <set>
#include <vector>

namespace bench
{

// The random numbers that boundaries like.
class Dice
{
public:
    explicit Dice(uint64_t seed) : random_(seed)
    {
    }

    unsigned any_of(unsigned count)
    {
        return static_cast<unsigned>(random_() % count);
    }

    // 0 to 2^bits, each power of two and its neighbours as likely as the
    // numbers in between.
    Time magnitude(unsigned bits)
    {
        const Time power = Time{1} << any_of(bits + 1);
        switch (any_of(4)) {
        case 0:
            return power - 1 + any_of(3);
        case 1:
            return any_of(40);
        default:
            return power / 2 + random_() % (power / 2 + 1);
        }
    }

private:
    std::mt19937_64 random_;
};

inline Time round_up(Time time, Time unit)
{
    const Time over = time % unit;
    return over == 0 ? time : deadline_of(time, unit - over);
}

// The time by which a timer with this deadline must have fired, if the scheme
// was last advanced at `advanced` before it was started.
inline Time latest_firing(const Traits &traits, const Config &config,
                          Time advanced, Time deadline)
{
    Time latest = deadline;
    if (traits.late_divisor != 0) {
        const Time distance =
            round_up(deadline, config.tick) - advanced + config.tick;
        latest = deadline_of(latest, distance / traits.late_divisor);
    }
    return traits.rounds_to_tick ? round_up(latest, config.tick) : latest;
}

// Timers are numbers here. Whoever drives a scheme tells the model of each call
// and each timer fired; what is wrong comes back as a phrase, NULL if nothing.
class Model
{
public:
    // `now` is no later than the first start.
    Model(const Traits &traits, const Config &config, Time now, size_t timers)
        : traits_(traits), config_(config), now_(now), timers_(timers)
    {
    }

    bool is_running(size_t index) const
    {
        return timers_[index].is_running;
    }

    // Of running timers.
    size_t count() const
    {
        return by_latest_.size();
    }

    void start(size_t index, Time now, Time ttl)
    {
        stop(index);
        Timer &timer = timers_[index];
        timer.is_running = true;
        timer.ttl = ttl;
        timer.deadline = deadline_of(now, ttl);
        timer.sequence = ++sequence_;
        timer.place = by_latest_.emplace(
            latest_firing(traits_, config_, now_, timer.deadline), index);
        by_ttl_[ttl].insert(timer.sequence);
    }

    void stop(size_t index)
    {
        Timer &timer = timers_[index];
        if (timer.is_running) {
            by_latest_.erase(timer.place);
            const auto same_ttl = by_ttl_.find(timer.ttl);
            same_ttl->second.erase(timer.sequence);
            if (same_ttl->second.empty()) {
                by_ttl_.erase(same_ttl);
            }
            timer.is_running = false;
        }
    }

    void begin_pass(Time now)
    {
        now_ = now;
        fired_ = 0;
    }

    const char *fire(size_t index)
    {
        ++fired_;
        const Timer &timer = timers_[index];
        if (!timer.is_running) {
            return "a timer fired that was not running";
        }
        if (timer.deadline == never) {
            return "a timer fired that never expires";
        }
        if (!traits_.may_be_early && timer.deadline > now_) {
            return "a timer fired early";
        }
        if (!traits_.any_order &&
            *by_ttl_.at(timer.ttl).begin() != timer.sequence) {
            return "timers of one TTL fired out of order";
        }
        stop(index);
        return nullptr;
    }

    // `count` is what the advance returned, `budget` 0 if it has none.
    const char *end_pass(unsigned count, unsigned budget)
    {
        return end_pass(count, budget, budget != 0 && count == budget);
    }

    // The same of an advance that may also end before it has fired as much as
    // its budget, and tells so.
    const char *end_pass(unsigned count, unsigned budget, bool has_more)
    {
        if (count != fired_) {
            return "an advance returned a wrong count";
        }
        if (budget != 0 && count > budget) {
            return "an advance went beyond its budget";
        }
        // What may be early is no more exact the other way.
        if (traits_.may_be_early || has_more) {
            return nullptr;
        }
        const Time end = before_never(now_);
        return !by_latest_.empty() && by_latest_.begin()->first <= end
                   ? "a timer that is due did not fire"
                   : nullptr;
    }

private:
    struct Timer {
        bool is_running = false;
        Time ttl = 0;
        Time deadline = 0;
        uint64_t sequence = 0;
        std::multimap<Time, size_t>::iterator place;
    };

    Traits traits_;
    Config config_;
    Time now_;           // of the latest advance
    unsigned fired_ = 0; // in this pass
    uint64_t sequence_ = 0;
    std::vector<Timer> timers_;
    std::multimap<Time, size_t> by_latest_;     // running
    std::map<Time, std::set<uint64_t>> by_ttl_; // running, by start
};

} // namespace bench

#endif
