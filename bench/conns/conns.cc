// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_bench conn: what the timers of connections cost. All ways take turns
// within each repetition; what is printed is the median, in nanoseconds, and
// only ratios within one run mean anything.

#include "conns/conns.h"

#include "arguments.h"
#include "cpu_time.h"
#include "median.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

namespace bench
{

namespace
{

constexpr ConnMaker makers[] = {make_lawn_conns, make_bare_timers,
                                make_ud_wheel, make_slow_tick};

// What is measured: of each connection, but the last two of a pass.
enum Phase {
    opening,
    exchange,
    loss,
    silence,
    closing,
    idle,
    longest,
    phase_count
};
constexpr const char *phase_names[] = {"open",      "send + ACK", "retransmit",
                                       "keepalive", "close",      "idle pass",
                                       "worst pass"};

constexpr lawn_time_t round_trip = 10'000;
constexpr unsigned idle_passes = 10'000;

using Figures = std::vector<double>; // of the repetitions

// One way with so many connections, from the opening to the closing.
class Run
{
public:
    Run(Conns *conns, size_t count) : conns_(conns), count_(count)
    {
    }

    void measure(Figures *figures)
    {
        figures[opening].push_back(each([this](size_t i) { open(i); }));
        exchange_all(); // so that all have measured a round trip
        figures[exchange].push_back(timed([this] { exchange_all(); }) /
                                    double(count_));
        figures[idle].push_back(timed([this] { be_idle(); }) / idle_passes);
        figures[loss].push_back(
            timed([this] { lose_all([this] { return conns_->pass(now_); }); }) /
            double(count_));
        exchange_all(); // ends the losses
        figures[longest].push_back(longest_pass());
        figures[silence].push_back(timed([this] { be_silent(); }) /
                                   double(count_));
        figures[closing].push_back(
            each([this](size_t i) { conns_->close(i); }));
    }

private:
    template <class Function> static double timed(Function function)
    {
        const lawn_time_t begin = lawn_get_time();
        function();
        return lawn_time_to_nsec(lawn_get_time() - begin);
    }

    template <class Function> double each(Function function)
    {
        return timed([&] {
                   for (size_t i = 0; i < count_; ++i) {
                       function(i);
                   }
               }) /
               double(count_);
    }

    void open(size_t i)
    {
        conns_->open(i, now_);
    }

    // A message of each and its ACK, and a pass after 64 of them.
    void exchange_all()
    {
        for (size_t i = 0; i < count_; ++i) {
            now_ += 100;
            conns_->send(i, now_ - round_trip);
            conns_->ack(i, now_, now_ - round_trip);
            if (i % 64 == 0) {
                run_due();
            }
        }
    }

    void run_due()
    {
        while (conns_->pass(now_)) {
        }
    }

    // The processor's time, for a pass may be interrupted. Of another round of
    // losses, as to look at it takes long.
    double longest_pass()
    {
        double most = 0;
        lose_all([&] {
            const double begin = cpu_nsec();
            const bool has_more = conns_->pass(now_);
            most = std::max(most, cpu_nsec() - begin);
            return has_more;
        });
        exchange_all();
        return most;
    }

    void be_idle()
    {
        for (unsigned i = 0; i < idle_passes; ++i) {
            now_ += 100;
            run_due();
        }
    }

    // All messages are lost, and sent again once or more. pass() returns
    // whether more is due.
    template <class Pass> void lose_all(Pass pass)
    {
        for (size_t i = 0; i < count_; ++i) {
            conns_->send(i, now_);
        }
        const uint64_t before = conns_->retransmissions;
        while (conns_->retransmissions < before + count_) {
            now_ += conn_msec;
            while (pass()) {
            }
        }
    }

    // Nothing is heard from anybody, until all have been asked once or more.
    void be_silent()
    {
        const uint64_t before = conns_->probes;
        while (conns_->probes < before + count_) {
            now_ += 10 * conn_msec;
            run_due();
        }
    }

    Conns *conns_;
    size_t count_;
    lawn_time_t now_ = 1000 * conn_msec;
};

// The median; but of the worst passes the least, as an interrupt may have added
// to the one of a repetition.
double figure_of(size_t phase, const Figures &figures)
{
    return phase == longest ? *std::min_element(figures.begin(), figures.end())
                            : median(figures);
}

void print_table(size_t count, unsigned repetitions)
{
    std::map<std::string, std::vector<Figures>> rows;
    std::vector<std::pair<std::string, size_t>> names;
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        for (const ConnMaker make : makers) {
            const std::unique_ptr<Conns> conns = make(count);
            std::vector<Figures> &row = rows[conns->name];
            row.resize(phase_count);
            Run(conns.get(), count).measure(row.data());
            if (repetition == 0) {
                names.emplace_back(conns->name, conns->bytes);
            }
        }
    }
    std::printf("\n%zu connections; ns\n%-16s %6s", count, "", "bytes");
    for (const char *name : phase_names) {
        std::printf(" %11s", name);
    }
    std::printf("\n");
    for (const auto &[name, bytes] : names) {
        std::printf("%-16s %6zu", name.c_str(), bytes);
        for (size_t phase = 0; phase < phase_count; ++phase) {
            std::printf(" %11.1f", figure_of(phase, rows[name][phase]));
        }
        std::printf("\n");
    }
}

} // namespace

int run_conns(int argc, char **argv)
{
    bool is_quick = false;
    if (!parse_quick(argc, argv,
                     "usage: lawn_bench conn [--quick]\n\n"
                     "Compares ways to time the retransmissions and the "
                     "keepalive of connections, in\nnanoseconds of each "
                     "connection; of an idle and of the worst pass, of "
                     "all.\n\n"
                     "  --quick  small and once\n"
                     "  --help\n",
                     &is_quick)) {
        return 0;
    }
    std::printf("round trip 10 us; in the phases of losses, a pass each ms; of "
                "silence, each 10 ms\n");
    for (size_t count = 100; count <= (is_quick ? 1000U : 1000000U);
         count *= 10) {
        print_table(count, is_quick ? 1 : 7);
    }
    return 0;
}

} // namespace bench
