// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The distribution of times; see latency.h.

#include "evaluation/latency.h"

#include <algorithm>

#include <sys/resource.h>

namespace bench
{

void Latency::add(const Latency &other)
{
    for (size_t i = 0; i < classes; ++i) {
        counts_[i] += other.counts_[i];
    }
    count_ += other.count_;
    sum_ += other.sum_;
    squares_ += other.squares_;
    longest_ = std::max(longest_, other.longest_);
    left_out_ += other.left_out_;
}

double Latency::mean() const
{
    return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double Latency::deviation() const
{
    if (count_ == 0) {
        return 0;
    }
    const double variance =
        squares_ / static_cast<double>(count_) - mean() * mean();
    return std::sqrt(std::max(0.0, variance));
}

double Latency::quantile(double share) const
{
    const double wanted = share * static_cast<double>(count_);
    double seen = 0;
    for (size_t i = 0; i < classes; ++i) {
        seen += static_cast<double>(counts_[i]);
        if (counts_[i] != 0 && seen >= wanted) {
            return static_cast<double>(least_of(i));
        }
    }
    return 0;
}

double Latency::longest() const
{
    return static_cast<double>(longest_);
}

lawn_time_t Latency::least_of(size_t which)
{
    if (which >> bits <= 1) {
        return which;
    }
    const size_t shift = (which >> bits) - 1;
    return (which - (shift << bits)) << shift;
}

Result Latency::result() const
{
    const double ns = lawn_time_to_nsec(1'000'000) / 1e6;
    const auto without = [ns](double ticks) {
        return std::max(0.0, ticks - resolution().overhead) * ns;
    };
    Result result(without(mean()));
    result.deviation = deviation() * ns;
    result.p50 = without(quantile(0.5));
    result.p99 = without(quantile(0.99));
    result.p999 = without(quantile(0.999));
    result.longest = without(longest());
    result.left_out = static_cast<double>(left_out_);
    return result;
}

namespace
{

Resolution find_resolution()
{
    std::vector<double> taken(100'001);
    for (double &ticks : taken) {
        const lawn_time_t begin = stamp();
        ticks = static_cast<double>(stamp() - begin);
    }
    std::sort(taken.begin(), taken.end());
    // The slowest hundredth was interrupted.
    const size_t count = taken.size() - taken.size() / 100;
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
        sum += taken[i];
    }
    lawn_time_t step = LAWN_TIME_INFINITY;
    for (lawn_time_t last = lawn_get_time(), i = 0; i < count; ++i) {
        const lawn_time_t next = lawn_get_time();
        step = next > last ? std::min(step, next - last) : step;
        last = next;
    }
    return {sum / static_cast<double>(count), static_cast<double>(step)};
}

// How often this thread had to give way to another.
long switches()
{
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

} // namespace

const Resolution &resolution()
{
    static const Resolution found = find_resolution();
    return found;
}

Stopwatch::Stopwatch(double limit_sec)
    : limit_(lawn_time_from_sec(limit_sec)), switches_(switches())
{
}

bool Stopwatch::was_switched(lawn_time_t taken)
{
    const long before = switches_;
    switches_ = switches();
    return taken > long_ && switches_ != before;
}

} // namespace bench
