// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the workloads are made of: a contender with its nodes, a virtual clock,
// random numbers, and a stopwatch. For one seed every contender meets the same
// operations in the same order, more or fewer of them by its speed.
//
// Random numbers are drawn as they are needed, at 2 ns each: a table of them
// would come round after some thousand draws, and no more than as many timers
// of a million would ever be touched. Timers are started in a random order of
// their nodes, since objects in a program's memory lie in no order of time.

#ifndef LAWN_BENCH_ARENA_H
#define LAWN_BENCH_ARENA_H

#include "workloads.h"

#include <chrono>
#include <stdexcept>
#include <string>

namespace bench
{

using Clock = std::chrono::steady_clock;

constexpr Time usec = 1000;
constexpr Time msec = 1000 * usec;
constexpr Time sec = 1000 * msec;

inline double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Steele, Lea and Flood's SplitMix64: any number to a random one.
inline uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

class Random
{
public:
    explicit Random(uint64_t seed) : state_(mix(seed))
    {
    }

    uint64_t operator()()
    {
        return mix(state_++);
    }

    // 0 to count - 1, for counts below 2^32.
    size_t below(size_t count)
    {
        return ((*this)() >> 32) * count >> 32;
    }

    // 0 to 1, without the 1.
    double share()
    {
        return static_cast<double>((*this)() >> 11) * 0x1p-53;
    }

private:
    uint64_t state_;
};

// TTLs of `distinct` values, evenly over [low, low + span), each the middle of
// its part; as many values as there are nanoseconds when `distinct` is 0.
class Ttls
{
public:
    Ttls(Time low, Time span, size_t distinct)
        : low_(low), distinct_(distinct),
          step_(static_cast<double>(span) /
                static_cast<double>(distinct ? distinct : 1))
    {
    }

    // One of them, or what a contender wants instead.
    Time at(uint64_t draw) const
    {
        if (distinct_ == 0) {
            return low_ + static_cast<Time>(static_cast<double>(draw >> 11) *
                                            0x1p-53 * step_);
        }
        const size_t which = (draw >> 32) * distinct_ >> 32;
        return declared_.empty() ? ttl(which) : declared_[which];
    }

    // False if there are too many for a program to know them.
    template <class Declare> bool declare(Declare &&declare)
    {
        constexpr size_t most_declared = 1000;
        if (distinct_ == 0 || distinct_ > most_declared) {
            return false;
        }
        for (size_t which = 0; which < distinct_; ++which) {
            declared_.push_back(declare(ttl(which)));
        }
        return true;
    }

private:
    Time ttl(size_t which) const
    {
        return low_ +
               static_cast<Time>((static_cast<double>(which) + 0.5) * step_);
    }

    Time low_;
    size_t distinct_;
    double step_;
    std::vector<Time> declared_; // by TTL, instead of it; or empty
};

// The numbers below `count` in a random order, the same for a seed.
const std::vector<uint32_t> &shuffled(size_t count, uint64_t seed);

// Seconds that setting up, or emptying, may take before the contender is too
// slow for the load.
double patience(const Load &load);

class Arena
{
public:
    // No TTL may be above `longest_ttl`.
    Arena(const Contender &contender, const Load &load, size_t nodes,
          Time longest_ttl);
    ~Arena();

    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    void *node(size_t index)
    {
        return nodes_.begin() + index * contender_.node_size;
    }

    size_t index_of(const void *node) const
    {
        return static_cast<size_t>(static_cast<const char *>(node) -
                                   nodes_.begin()) /
               contender_.node_size;
    }

    // Before the first start, for contenders that must know the TTLs: each is
    // replaced by what they want instead. False if they cannot.
    bool declare(Ttls &ttls)
    {
        return !contender_.declare || ttls.declare([this](Time ttl) {
            return contender_.declare(scheme_, ttl);
        });
    }

    void declare(Time &ttl)
    {
        if (contender_.declare) {
            ttl = contender_.declare(scheme_, ttl);
        }
    }

    void start(size_t index, Time ttl)
    {
        contender_.start(scheme_, node(index), now, ttl);
    }

    bool stop(size_t index)
    {
        return contender_.stop(scheme_, node(index));
    }

    // What has fired is in `expired` until forget().
    unsigned advance(unsigned budget = 0)
    {
        const unsigned fired = contender_.advance(scheme_, now, budget);
        if (fired != expired.size()) {
            broken("wrong number of expired timers");
        }
        return fired;
    }

    // After an advance with a budget: it must be called again.
    bool has_more()
    {
        return contender_.has_more && contender_.has_more(scheme_, now);
    }

    // Whether measuring goes on, when it has lasted for `seconds`.
    bool may_continue(double seconds)
    {
        return seconds < load_.limit_sec &&
               !(contender_.is_over && contender_.is_over(scheme_));
    }

    static void forget()
    {
        expired.clear();
    }

    // Each timer that the advance before fired is started anew, by
    // do_start(index, ttl), with a TTL that only the timer and the time decide:
    // in which order they fire is the contender's affair.
    template <class Start>
    void restart_expired(const Ttls &ttls, Start &&do_start)
    {
        for (const void *node : expired) {
            const size_t index = index_of(node);
            do_start(index, ttls.at(mix(now ^ mix(index))));
        }
        forget();
    }

    void advance_and_restart(const Ttls &ttls)
    {
        advance();
        restart_expired(ttls,
                        [this](size_t index, Time ttl) { start(index, ttl); });
    }

    // Lets time pass, real time for those that live in it.
    void pass(Time time);

    // False when it takes too long. Each has its `ttl(index)` from now, which
    // goes on by `stagger` with every start.
    template <class Ttl> bool start_all(Time stagger, Ttl &&ttl)
    {
        return for_all(stagger,
                       [&](size_t index) { start(index, ttl(index)); });
    }

    // Each node once, in the same order; false when it takes too long.
    template <class Operation> bool for_all(Time stagger, Operation &&operation)
    {
        const auto begin = Clock::now();
        size_t count = 0;
        for (const uint32_t index : order_) {
            now += stagger;
            operation(index);
            if (++count % 256 == 0 && seconds_since(begin) > patience_) {
                return false;
            }
        }
        return true;
    }

    // Runs `operation` until the time is up: ns for one.
    template <class Operation> double measure(Operation &&operation)
    {
        // The clock is read once in many operations, if they are short.
        constexpr size_t most = 64;
        size_t batch = 1;
        size_t count = 0;
        double seconds = 0;
        const auto begin = Clock::now();
        do {
            for (size_t i = 0; i < batch; ++i) {
                operation();
            }
            count += batch;
            batch = batch < most ? 2 * batch : most;
            seconds = seconds_since(begin);
        } while (may_continue(seconds));
        return seconds * 1e9 / static_cast<double>(count);
    }

    [[noreturn]] void broken(const char *why) const
    {
        throw std::runtime_error(std::string(contender_.traits.name) + ": " +
                                 why);
    }

    Time now = sec;
    Random random;

private:
    const Contender &contender_;
    const Load load_;
    const double patience_;
    const std::vector<uint32_t> &order_;
    void *scheme_;
    const Nodes nodes_;
};

} // namespace bench

#endif
