// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_bench pacing: what it costs to pace, and how well it is done. All ways
// take turns within each repetition; what is printed is the median, and only
// ratios within one run mean anything.

#include "paces/paces.h"

#include "arguments.h"
#include "cpu_time.h"
#include "median.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace bench
{

namespace
{

constexpr PaceMaker makers[] = {make_lawn_pacers, make_carousel, make_pace_heap,
                                make_pace_list};

// All flows together send a packet in this time.
constexpr double gap_of_all = 100;
// Of the processor: what takes longer is cut short, and says so.
constexpr double most_nsec = 2e9;
constexpr double most_error = .01; // of lawn_pacer

// The gaps of the flows, in nanoseconds, that add up to the rate of all.
std::vector<double> gaps_of(size_t count, bool is_mixed)
{
    std::vector<double> gaps(count, gap_of_all * double(count));
    if (!is_mixed) {
        return gaps;
    }
    // The rates of most differ by up to four orders of magnitude.
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> magnitude(0, 4);
    double rates = 0;
    for (double &gap : gaps) {
        gap = std::pow(10, magnitude(random));
        rates += 1 / gap;
    }
    for (double &gap : gaps) {
        gap *= gap_of_all * rates;
    }
    return gaps;
}

struct Figures {
    std::vector<double> cost;  // of a packet
    std::vector<double> worst; // pass
    double error = 0;          // of the rate, in the mean of the flows
    double most = 0;           // of any flow
    bool is_cut = false;
};

class Run
{
public:
    Run(Paces *paces, const std::vector<double> &gaps)
        : paces_(paces), gaps_(gaps)
    {
        std::mt19937_64 random(2);
        std::uniform_real_distribution<double> phase(0, 1);
        for (size_t i = 0; i < gaps.size(); ++i) {
            paces->begin(i, now_, gaps[i], phase(random));
        }
    }

    // Five packets of each flow in the mean, and no less than 20 ms.
    void measure(Figures *figures)
    {
        const auto length = static_cast<lawn_time_t>(
            std::max(2e7, 5 * gap_of_all * static_cast<double>(gaps_.size())));
        const lawn_time_t from = now_;
        const uint64_t before = paces_->packets;
        double spent = 0;
        double worst = 0;
        while (now_ < from + length && spent < most_nsec) {
            now_ += pass_interval;
            const double begin = cpu_nsec();
            paces_->pass(now_);
            const double took = cpu_nsec() - begin;
            worst = std::max(worst, took);
            spent += took;
        }
        figures->is_cut = figures->is_cut || now_ < from + length;
        figures->cost.push_back(spent /
                                std::max(1., double(paces_->packets - before)));
        figures->worst.push_back(worst);
        note_errors(figures, double(now_ - from));
    }

private:
    // A packet more or less says nothing about the rate.
    void note_errors(Figures *figures, double length)
    {
        double sum = 0;
        for (size_t i = 0; i < gaps_.size(); ++i) {
            const double expected = length / gaps_[i];
            const double wrong = std::fabs(double(paces_->sent(i)) - expected);
            const double error =
                std::max(0., wrong - 1) / std::max(1., expected);
            sum += error;
            figures->most = std::max(figures->most, error);
        }
        figures->error = sum / double(gaps_.size());
    }

    Paces *paces_;
    const std::vector<double> &gaps_;
    lawn_time_t now_ = pass_interval;
};

// Returns whether the error of this library's pacers is small.
bool print_table(size_t count, bool is_mixed, unsigned repetitions)
{
    const std::vector<double> gaps = gaps_of(count, is_mixed);
    Figures figures[std::size(makers)];
    const char *names[std::size(makers)] = {};
    size_t bytes[std::size(makers)] = {};
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        for (size_t i = 0; i < std::size(makers); ++i) {
            if (figures[i].is_cut) {
                continue; // once is long enough
            }
            const std::unique_ptr<Paces> paces = makers[i](count);
            names[i] = paces->name;
            bytes[i] = paces->bytes;
            Run(paces.get(), gaps).measure(&figures[i]);
        }
    }
    std::printf("\n%zu flows, %s rates\n%-16s %6s %10s %10s %10s %12s\n", count,
                is_mixed ? "mixed" : "equal", "", "bytes", "ns/packet",
                "error, %", "most, %", "worst, us");
    for (size_t i = 0; i < std::size(makers); ++i) {
        const Figures &of = figures[i];
        std::printf("%-16s %6zu %10.1f %10.3f %10.3f %12.1f%s\n", names[i],
                    bytes[i], median(of.cost), 100 * of.error, 100 * of.most,
                    *std::min_element(of.worst.begin(), of.worst.end()) / 1e3,
                    of.is_cut ? "  cut short" : "");
    }
    return figures[0].error <= most_error;
}

} // namespace

int run_paces(int argc, char **argv)
{
    bool is_quick = false;
    if (!parse_quick(argc, argv,
                     "usage: lawn_bench pacing [--quick]\n\n"
                     "Compares ways to pace flows: the cost of a packet, the "
                     "error of the rate beyond\none packet, in the mean and of "
                     "the worst flow, and the longest pass.\n\n"
                     "  --quick  few flows, and once\n"
                     "  --help\n",
                     &is_quick)) {
        return 0;
    }
    std::printf("ten million packets of 1,500 bytes a second in all, a pass "
                "each 10 us; mixed: rates\nover four orders of magnitude\n");
    for (size_t count = 100; count <= (is_quick ? 1000U : 1000000U);
         count *= 10) {
        for (const bool is_mixed : {false, true}) {
            if (!print_table(count, is_mixed, is_quick ? 1 : 5)) {
                std::fprintf(stderr, "lawn_bench: lawn_pacer's rates are "
                                     "wrong\n");
                return 1;
            }
        }
    }
    return 0;
}

} // namespace bench
