// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How long single operations take, as a distribution. An operation lies between
// two readings of the counter. On x86 a fence stands on both sides of each, so
// that an operation's loads end before the second reading; what it stores may
// still be on its way to memory. What two readings take by themselves is
// measured first and subtracted. The counter may go in steps: of a virtual
// machine we saw steps of 10 ns. Then a quantile is exact to a step, while the
// mean of many operations is much finer, as steps fall at random.
//
// Machines are shared. An operation that takes long while the kernel gives its
// processor to another thread says nothing of the contender: it is left out,
// and counted.

#ifndef LAWN_BENCH_EVALUATION_LATENCY_H
#define LAWN_BENCH_EVALUATION_LATENCY_H

#include "workloads.h"

#include <lawn/time.h>

#include <vector>

namespace bench
{

// Ticks of the counter, counted in classes that are at most 1.6 % wide. Mean,
// standard deviation and maximum are exact.
class Latency
{
public:
    Latency() : counts_(classes)
    {
    }

    void add(lawn_time_t ticks)
    {
        const auto value = static_cast<double>(ticks);
        ++counts_[class_of(ticks)];
        ++count_;
        sum_ += value;
        squares_ += value * value;
        longest_ = ticks > longest_ ? ticks : longest_;
    }

    void add(const Latency &other);

    void leave_out()
    {
        ++left_out_;
    }

    size_t count() const
    {
        return count_;
    }

    // In ticks, as they were added; 0 if it is empty. A quantile is the lower
    // end of its class.
    double mean() const;
    double deviation() const;
    double quantile(double share) const;
    double longest() const;

    // In nanoseconds, without the readings of the counter; the figure is the
    // mean.
    Result result() const;

private:
    static constexpr unsigned bits = 6; // of a value that its class keeps
    static constexpr size_t classes = (64 - bits + 1) << bits;

    static size_t class_of(lawn_time_t ticks)
    {
        if (ticks >> bits == 0) {
            return ticks;
        }
        const unsigned shift =
            63 - bits - static_cast<unsigned>(__builtin_clzll(ticks));
        return (static_cast<size_t>(shift) << bits) + (ticks >> shift);
    }

    static lawn_time_t least_of(size_t which);

    std::vector<uint64_t> counts_;
    size_t count_ = 0;
    double sum_ = 0;
    double squares_ = 0;
    lawn_time_t longest_ = 0;
    size_t left_out_ = 0;
};

inline lawn_time_t stamp()
{
#ifdef __SSE2__
    __builtin_ia32_lfence();
    const lawn_time_t time = lawn_get_time();
    __builtin_ia32_lfence();
    return time;
#else
    return lawn_get_time();
#endif
}

// Of the counter, in ticks.
struct Resolution {
    double overhead; // of two readings with nothing between them, mean
    double step;     // the least that two readings in a row differ by
};

const Resolution &resolution();

// Times single operations of one thread, and knows how long all of them took.
class Stopwatch
{
public:
    explicit Stopwatch(double limit_sec);

    template <class Operation>
    void time(Latency &latency, Operation &&operation)
    {
        const lawn_time_t begin = stamp();
        operation();
        const lawn_time_t taken = stamp() - begin;
        if (is_interrupted(taken)) {
            latency.leave_out();
            return;
        }
        elapsed_ += taken;
        latency.add(taken);
    }

    bool is_over() const
    {
        return elapsed_ >= limit_;
    }

private:
    // The kernel is asked after a long operation, and often enough besides that
    // it seldom tells of an interruption long before.
    bool is_interrupted(lawn_time_t taken)
    {
        constexpr unsigned often = 256;
        return (taken > long_ || ++count_ % often == 0) && was_switched(taken);
    }

    bool was_switched(lawn_time_t taken);

    const lawn_time_t limit_;
    const lawn_time_t long_ = lawn_time_from_usec(20);
    lawn_time_t elapsed_ = 0;
    unsigned count_ = 0;
    long switches_;
};

} // namespace bench

#endif
