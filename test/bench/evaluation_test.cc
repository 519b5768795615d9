// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The queueing model of bench/evaluation against a real lawn on virtual time:
// it is right within 10 %, and the comparison notices a model that is not.

#include "evaluation/measurement.h"
#include "evaluation/prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace
{

using namespace evaluation;

constexpr Time length = 40'000'000;
constexpr uint64_t seed = 1;
constexpr double most_error = 0.1;
constexpr Fates mixed = {0.2, 0.2, 0.4};

double error(double predicted, double measured)
{
    return std::fabs(predicted / measured - 1);
}

Load load_of(Arrivals arrivals, Ttls ttls, Filing filing, const Fates &fates)
{
    Load load;
    load.arrivals = arrivals;
    load.ttls = ttls;
    load.filing = filing;
    load.fates = fates;
    load.rate = 0.002;
    return load;
}

std::vector<Load> grid()
{
    std::vector<Load> loads;
    for (const Fates &fates : {Fates{}, mixed}) {
        for (const Arrivals arrivals :
             {Arrivals::poisson, Arrivals::bursty, Arrivals::periodic}) {
            for (const Ttls ttls : {Ttls::fixed, Ttls::ten, Ttls::uniform,
                                    Ttls::pareto, Ttls::rto}) {
                loads.push_back(load_of(arrivals, ttls, Filing::slots, fates));
            }
            loads.push_back(
                load_of(arrivals, Ttls::ten, Filing::queues, fates));
        }
    }
    return loads;
}

std::string describe(const Load &load)
{
    return std::string(name_of(load.arrivals)) + " " + name_of(load.ttls) +
           " " + name_of(load.filing) +
           (load.fates.expire() < 1 ? " mixed" : "");
}

TEST(Evaluation, PopulationAndWorkAreWithinTenPerCent)
{
    for (const Load &load : grid()) {
        SCOPED_TRACE(describe(load));
        const Prediction p = predict(load);
        const Measurement m = measure(load, length, seed);
        EXPECT_TRUE(m.is_consistent);
        EXPECT_LT(error(p.population, m.population), most_error);
        EXPECT_LT(error(p.touched, m.touched), most_error);
        for (unsigned i = 0; i < groups(load.ttls); ++i) {
            EXPECT_LT(error(p.by_group[i], m.by_group[i]), most_error)
                << "group " << i;
        }
    }
}

// What follows shows that the comparison above can fail: each takes one thing
// out of the model.
TEST(Evaluation, NoticesThatFatesAreLeftOut)
{
    for (const Filing filing : {Filing::slots, Filing::queues}) {
        for (const Fates fates :
             {Fates{0.4, 0, 0}, Fates{0, 0.4, 0}, Fates{0, 0, 0.4}}) {
            const Load load =
                load_of(Arrivals::poisson, Ttls::ten, filing, fates);
            SCOPED_TRACE(describe(load));
            const Measurement m = measure(load, length, seed);
            const Prediction whole = predict(load);
            EXPECT_LT(error(whole.population, m.population), most_error);
            EXPECT_LT(error(whole.touched, m.touched), most_error);
            Load all_expire = load;
            all_expire.fates = {};
            const Prediction less = predict(all_expire);
            EXPECT_GT(error(less.population, m.population), most_error);
        }
    }
}

TEST(Evaluation, NoticesThatAPausedTimerIsTouched)
{
    const Load paused =
        load_of(Arrivals::poisson, Ttls::fixed, Filing::slots, {0, 0.4, 0});
    Load stopped = paused;
    stopped.fates = {0.4, 0, 0};
    const Measurement m = measure(paused, length, seed);
    EXPECT_LT(error(predict(paused).touched, m.touched), most_error);
    EXPECT_GT(error(predict(stopped).touched, m.touched), most_error);
}

TEST(Evaluation, NoticesThatTimersMoveBetweenSlots)
{
    const Load load =
        load_of(Arrivals::poisson, Ttls::fixed, Filing::slots, {});
    Load queue = load;
    queue.filing = Filing::queues; // no timer moves
    const Measurement m = measure(load, length, seed);
    EXPECT_LT(error(predict(load).touched, m.touched), most_error);
    EXPECT_GT(error(predict(queue).touched, m.touched), most_error);
}

TEST(Evaluation, LatenessOfPoissonStartsIsWithinTenPerCent)
{
    for (const Filing filing : {Filing::slots, Filing::queues}) {
        for (const Ttls ttls : {Ttls::fixed, Ttls::ten}) {
            const Load load = load_of(Arrivals::poisson, ttls, filing, {});
            SCOPED_TRACE(describe(load));
            const Prediction p = predict(load);
            const Measurement m = measure(load, length, seed);
            EXPECT_LT(error(p.late_p50, m.late_p50), most_error);
            EXPECT_LT(error(p.late_p99, m.late_p99), most_error);
        }
    }
}

TEST(Evaluation, ThePapersModelIsFarFromThePopulation)
{
    const Load load =
        load_of(Arrivals::poisson, Ttls::fixed, Filing::slots, {});
    const Measurement m = measure(load, length, seed);
    EXPECT_GT(m.population, 1000 * paper::population(load, 1));
}

TEST(Evaluation, TimersPileUpAboveTheHighestRateOnly)
{
    Load load = load_of(Arrivals::poisson, Ttls::ten, Filing::queues, {});
    load.budget = 64;
    const double highest = highest_rate(load);
    load.rate = 0.9 * highest;
    EXPECT_LT(measure(load, length / 10, seed).overdue_growth, 0.01);
    load.rate = 1.1 * highest;
    EXPECT_GT(measure(load, length / 10, seed).overdue_growth, 0.01);
    // A tenth of what the paper has for ten TTLs would do.
    EXPECT_LT(highest, paper::highest_rate(load, 10) / 10);
}

TEST(Evaluation, RepeatsExactly)
{
    const Load load =
        load_of(Arrivals::bursty, Ttls::rto, Filing::slots, mixed);
    const Measurement first = measure(load, length / 10, seed);
    const Measurement again = measure(load, length / 10, seed);
    EXPECT_EQ(first.population, again.population);
    EXPECT_EQ(first.touched, again.touched);
    EXPECT_EQ(first.late_p99, again.late_p99);
    EXPECT_NE(first.population,
              measure(load, length / 10, seed + 1).population);
}

} // namespace
