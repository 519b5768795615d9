// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_model - the work of a polling program as queueing theory predicts it,
// beside what the program measures on virtual time, and beside the formulas of
// the paper (A. Lev-Libfeld, "Timer Lawn", 2025, section IV.B.4). The figures
// are the same in every run, on every machine.

#include "evaluation/measurement.h"
#include "evaluation/prediction.h"

#include "finish.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

namespace
{

using namespace evaluation;

constexpr double per_usec = 1000; // of a rate per ns
constexpr double most_error = 10; // per cent
constexpr Fates mixed = {0.2, 0.2, 0.4};

struct Options {
    bool is_quick = false;
    uint64_t seed = 1;
};

struct Point {
    Load load;
    Prediction predicted;
    Measurement measured;
};

double error(double predicted, double measured)
{
    return 100 * (predicted / measured - 1);
}

// Per cent, of the group whose error is largest.
double group_error(const Point &point)
{
    double worst = 0;
    for (unsigned i = 0; i < groups(point.load.ttls); ++i) {
        const double e =
            error(point.predicted.by_group[i], point.measured.by_group[i]);
        worst = std::fabs(e) > std::fabs(worst) ? e : worst;
    }
    return worst;
}

// Of how many TTLs the paper's formulas are told.
double ttls_of(const Load &load)
{
    return static_cast<double>(possible_ttls(load.ttls));
}

void print_load(const Load &load)
{
    printf("%-9s%-8s%-7s%-7s%5.1f", name_of(load.arrivals), name_of(load.ttls),
           name_of(load.filing), load.fates.expire() < 1 ? "mixed" : "expire",
           load.rate * per_usec);
}

void print_head(const char *title, const char *columns)
{
    printf("\n%s\n%-9s%-8s%-7s%-7s%5s%s\n", title, "starts", "TTLs", "filed",
           "fates", "rate", columns);
}

std::vector<Load> grid(const Options &options)
{
    std::vector<double> rates = {0.002};
    if (!options.is_quick) {
        rates.insert(rates.begin(), 0.0005);
    }
    std::vector<Load> loads;
    for (const Filing filing : {Filing::slots, Filing::queues}) {
        for (const Fates &fates : {Fates{}, mixed}) {
            for (const Arrivals arrivals :
                 {Arrivals::poisson, Arrivals::bursty, Arrivals::periodic}) {
                for (const Ttls ttls : {Ttls::fixed, Ttls::ten, Ttls::uniform,
                                        Ttls::pareto, Ttls::rto}) {
                    // A program declares a queue for a TTL that it knows.
                    if (filing == Filing::queues && ttls != Ttls::fixed &&
                        ttls != Ttls::ten) {
                        continue;
                    }
                    for (const double rate : rates) {
                        Load load;
                        load.arrivals = arrivals;
                        load.ttls = ttls;
                        load.filing = filing;
                        load.fates = fates;
                        load.rate = rate;
                        loads.push_back(load);
                    }
                }
            }
        }
    }
    return loads;
}

void print_population(const std::vector<Point> &points)
{
    print_head(
        "Running timers, in the mean. The worst group is one TTL of ten, "
        "or a quarter of the others. (2): of all TTLs",
        "  predicted  measured  error %  worst %       (2)");
    for (const Point &p : points) {
        const double ttls = ttls_of(p.load);
        print_load(p.load);
        printf("%11.1f%10.1f%9.1f%9.1f%10.2f\n", p.predicted.population,
               p.measured.population,
               error(p.predicted.population, p.measured.population),
               group_error(p), ttls * paper::population(p.load, ttls));
    }
}

void print_work(const std::vector<Point> &points)
{
    print_head("Timers touched by a pass, in the mean; and how many of them "
               "fired",
               "  predicted  measured  error %     fired");
    for (const Point &p : points) {
        print_load(p.load);
        printf("%11.3f%10.3f%9.1f%10.3f\n", p.predicted.touched,
               p.measured.touched,
               error(p.predicted.touched, p.measured.touched),
               p.measured.fired);
    }
}

void print_lateness(const std::vector<Point> &points)
{
    print_head("Lateness of callbacks, ns. (3) and (4) are means; (4) for the "
               "batch that was measured",
               "     p50  measured  error %       p99  measured  error %      "
               "mean  measured   (3)   (4)");
    for (const Point &p : points) {
        const Prediction &predicted = p.predicted;
        const Measurement &measured = p.measured;
        const double ttls = ttls_of(p.load);
        print_load(p.load);
        printf("%8.0f%10.0f%9.1f%10.0f%10.0f%9.1f%10.0f%10.0f%6.0f%6.0f\n",
               predicted.late_p50, measured.late_p50,
               error(predicted.late_p50, measured.late_p50), predicted.late_p99,
               measured.late_p99, error(predicted.late_p99, measured.late_p99),
               predicted.late_mean, measured.late_mean,
               paper::wait(p.load, ttls),
               paper::batch_wait(p.load, ttls, measured.touched));
    }
}

// Starts at a steady rate, filed in slots, which all expire: the rest tells
// nothing new about TTLs.
bool is_plain(const Load &load)
{
    return load.arrivals == Arrivals::poisson && load.filing == Filing::slots &&
           load.fates.expire() == 1;
}

void print_ttls(const std::vector<Point> &points)
{
    print_head("Distinct TTLs among running timers, in the mean",
               "  predicted  measured  error %       (5)");
    for (const Point &p : points) {
        if (is_plain(p.load)) {
            print_load(p.load);
            printf("%11.1f%10.1f%9.1f%10.0f\n", p.predicted.distinct_ttls,
                   p.measured.distinct_ttls,
                   error(p.predicted.distinct_ttls, p.measured.distinct_ttls),
                   paper::buckets(p.load));
        }
    }
}

void print_each_ttl(const Point &p)
{
    const double ttls = ttls_of(p.load);
    printf("\nRunning timers of each TTL, %.1f starts per us. (6) is told how "
           "many run in all\n%-9s  predicted  measured  error %%       (2)"
           "       (6)  error %%\n",
           p.load.rate * per_usec, "TTL, us");
    for (unsigned i = 0; i < groups(p.load.ttls); ++i) {
        const double equal =
            paper::timers_per_bucket(p.measured.population, ttls);
        printf("%-9u%11.1f%10.1f%9.1f%10.4f%10.1f%9.1f\n", (i + 1) * 100,
               p.predicted.by_group[i], p.measured.by_group[i],
               error(p.predicted.by_group[i], p.measured.by_group[i]),
               paper::population(p.load, ttls), equal,
               error(equal, p.measured.by_group[i]));
    }
}

void print_limit(Load load, Time length, uint64_t seed)
{
    const double highest = highest_rate(load);
    const double measured = measure_highest_rate(load, highest, length, seed);
    load.rate = highest / 2;
    const Measurement half = measure(load, length, seed);
    load.rate = highest * 0.9;
    const Measurement most = measure(load, length, seed);
    print_load(load);
    printf("%11.2f%10.2f%9.1f%10.0f%8.1f%10.1f%8.1f%10.1f\n",
           highest * per_usec, measured * per_usec, error(highest, measured),
           paper::highest_rate(load, ttls_of(load)) * per_usec, half.touched,
           half.late_p99 / per_usec, most.touched, most.late_p99 / per_usec);
    fflush(stdout);
}

void print_limits(const Options &options)
{
    print_head("Rate above which due timers pile up, with a budget of 64; and "
               "timers touched by a pass and p99 of lateness, us, measured at "
               "0.5 and (rate) 0.9 of it",
               "  predicted  measured  error %       (7)  at 0.5  p99       "
               "at 0.9  p99");
    const Time length = options.is_quick ? 2'000'000 : 10'000'000;
    for (const Fates &fates : {Fates{}, mixed}) {
        for (const Filing filing : {Filing::slots, Filing::queues}) {
            for (const Ttls ttls : {Ttls::fixed, Ttls::ten, Ttls::uniform}) {
                const bool is_known = ttls != Ttls::uniform;
                const bool is_asked =
                    !options.is_quick ||
                    (ttls == Ttls::fixed && fates.expire() == 1);
                if (is_asked && (is_known || filing == Filing::slots)) {
                    Load load;
                    load.ttls = ttls;
                    load.filing = filing;
                    load.fates = fates;
                    load.budget = 64;
                    print_limit(load, length, options.seed);
                }
            }
        }
    }
}

// The points that miss, on stdout.
unsigned judge(const std::vector<Point> &points)
{
    unsigned outside = 0;
    printf("\n");
    for (const Point &p : points) {
        const double worst = std::fmax(
            std::fabs(group_error(p)),
            std::fmax(
                std::fabs(error(p.predicted.population, p.measured.population)),
                std::fabs(error(p.predicted.touched, p.measured.touched))));
        if (!p.measured.is_consistent || !(worst <= most_error)) {
            ++outside;
            print_load(p.load);
            printf("  %s\n", p.measured.is_consistent
                                 ? "is predicted by more than 10 % wrong"
                                 : "finds the lawn inconsistent");
        }
    }
    printf("%zu of %zu loads: running timers, those of each group, and timers "
           "touched are within 10 %% of the prediction\n",
           points.size() - outside, points.size());
    return outside;
}

int run(const Options &options)
{
    const Time length = options.is_quick ? 40'000'000 : 160'000'000;
    std::vector<Point> points;
    for (const Load &load : grid(options)) {
        points.push_back(
            {load, predict(load), measure(load, length, options.seed)});
    }
    const Load any;
    printf(
        "A pass takes %u ns, and %u ns for each timer that it touches. Rates "
        "are starts per us.\nFates: all expire, or of 10 that are armed 2 "
        "are stopped, 2 paused, 4 re-armed (mixed).\n",
        static_cast<unsigned>(any.pass_cost),
        static_cast<unsigned>(any.touch_cost));
    print_population(points);
    for (const Point &p : points) {
        if (is_plain(p.load) && p.load.ttls == Ttls::ten &&
            p.load.rate == points.back().load.rate) {
            print_each_ttl(p);
        }
    }
    print_ttls(points);
    print_work(points);
    print_lateness(points);
    print_limits(options);
    return judge(points) == 0 ? 0 : 1;
}

// False if the command line cannot be understood.
bool parse(int argc, char **argv, Options *options)
{
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--quick") == 0) {
            options->is_quick = true;
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            char *end = nullptr;
            options->seed = strtoull(argv[++i], &end, 10);
            if (end == argv[i] || *end != '\0') {
                return false;
            }
        } else {
            return false;
        }
    }
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    const char *const usage =
        "usage: lawn_model [OPTION]...\n\n"
        "  --quick   half of the loads, for a shorter time\n"
        "  --seed N  of the random numbers\n"
        "  --help";
    if (bench::print_usage(argc, argv, usage)) {
        return bench::finish_output(0);
    }
    Options options;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "lawn_model: bad arguments; see --help\n");
        return 2;
    }
    try {
        return bench::finish_output(run(options));
    } catch (const std::exception &failure) {
        fprintf(stderr, "lawn_model: %s\n", failure.what());
        return 1;
    }
}
