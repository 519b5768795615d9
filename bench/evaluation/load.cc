// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The distributions of a load; see load.h.

#include "evaluation/load.h"

#include <algorithm>
#include <cmath>

namespace evaluation
{

namespace
{

constexpr double usec = 1000;

double pareto_at(double at)
{
    constexpr double least = 200 * usec;
    constexpr double exponent = 1.5;
    const double cut =
        1 - std::pow(least / static_cast<double>(longest_ttl), exponent);
    return least / std::pow(1 - at * cut, 1 / exponent);
}

// RFC 6298: a smoothed round trip and four times its variation, doubled for a
// tenth of the timers and doubled twice for a hundredth.
double rto_at(double at)
{
    const double backoff = at < 0.9 ? 1 : at < 0.99 ? 2 : 4;
    const double share = at < 0.9    ? at / 0.9
                         : at < 0.99 ? (at - 0.9) / 0.09
                                     : (at - 0.99) / 0.01;
    const double queueing = -100 * usec * std::log(1 - share);
    const double round_trip = 100 * usec + queueing;
    const double variation = queueing / 4;
    return backoff * std::max(200 * usec, round_trip + 4 * variation);
}

} // namespace

unsigned groups(Ttls ttls)
{
    return ttls == Ttls::fixed ? 1 : ttls == Ttls::ten ? 10 : 4;
}

Ttl ttl_at(Ttls ttls, double at)
{
    const unsigned group =
        static_cast<unsigned>(at * static_cast<double>(groups(ttls)));
    double ttl = 0;
    switch (ttls) {
    case Ttls::fixed:
        ttl = 1000 * usec;
        break;
    case Ttls::ten:
        ttl = (group + 1) * 100 * usec;
        break;
    case Ttls::uniform:
        ttl = (100 + at * 1800) * usec;
        break;
    case Ttls::pareto:
        ttl = pareto_at(at);
        break;
    case Ttls::rto:
        ttl = rto_at(at);
        break;
    }
    return {std::min(static_cast<Time>(ttl), longest_ttl), group};
}

Time longest(Ttls ttls)
{
    return ttl_at(ttls, 1 - 1e-12).ttl;
}

Time possible_ttls(Ttls ttls)
{
    return ttls == Ttls::fixed || ttls == Ttls::ten
               ? groups(ttls)
               : longest(ttls) - ttl_at(ttls, 0).ttl;
}

const char *name_of(Arrivals arrivals)
{
    constexpr const char *names[] = {"Poisson", "bursty", "periodic"};
    return names[static_cast<unsigned>(arrivals)];
}

const char *name_of(Ttls ttls)
{
    constexpr const char *names[] = {"fixed", "ten", "uniform", "Pareto",
                                     "RTO"};
    return names[static_cast<unsigned>(ttls)];
}

const char *name_of(Filing filing)
{
    return filing == Filing::slots ? "slots" : "queues";
}

Random::Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 | 1)
{
    next();
}

// xorshift64*, Marsaglia and Vigna.
uint64_t Random::next()
{
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
}

double Random::uniform()
{
    return static_cast<double>(next() >> 11) * 0x1p-53;
}

double Random::exponential(double mean)
{
    return -mean * std::log(1 - uniform());
}

Fate draw(const Fates &fates, Random &random)
{
    const double at = random.uniform();
    if (at < fates.stop) {
        return Fate::stop;
    }
    if (at < fates.stop + fates.pause) {
        return Fate::pause;
    }
    return at < fates.stop + fates.pause + fates.rearm ? Fate::rearm
                                                       : Fate::expire;
}

} // namespace evaluation
