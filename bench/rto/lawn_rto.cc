// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_rto - retransmission timers side by side on virtual time. A seed repeats
// a run exactly, so figures of two runs may be compared. On another machine,
// libm may round logarithms in another way, and the figures differ a little.

#include "rto/report.h"

#include "finish.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace
{

using namespace bench;
using namespace bench::rto;

// Measures the cells from `first` on, in several threads, and prints each as
// soon as all before it are printed.
template <class AnyCell, class Measure>
void measure_all(unsigned jobs, std::vector<AnyCell> &cells, size_t first,
                 const Measure &measure_one)
{
    std::atomic<size_t> next{first};
    std::mutex mutex;
    std::condition_variable is_done;
    std::vector<bool> done(cells.size());
    const auto work = [&] {
        Flow flow;
        for (size_t i = next++; i < cells.size(); i = next++) {
            measure_one(flow, cells[i]);
            const std::lock_guard<std::mutex> lock(mutex);
            done[i] = true;
            is_done.notify_one();
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < jobs; ++i) {
        threads.emplace_back(work);
    }
    for (size_t i = first; i < cells.size(); ++i) {
        std::unique_lock<std::mutex> lock(mutex);
        is_done.wait(lock, [&] { return done[i]; });
        lock.unlock();
        print_row(cells[i]);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

int run(const Options &options)
{
    Csv csv(options.csv);
    std::vector<Cell> cells;
    for (const Tick round_trip : options.round_trips) {
        for (const size_t window : options.windows) {
            const size_t first = cells.size();
            for (const Variant *const variant : options.variants) {
                cells.push_back({variant,
                                 round_trip,
                                 static_cast<uint32_t>(window),
                                 {},
                                 0});
            }
            print_head(options, round_trip, static_cast<uint32_t>(window));
            measure_all(options.jobs, cells, first,
                        [&](Flow &flow, Cell &cell) {
                            measure(options.plan, flow, cell);
                        });
        }
    }
    csv.write(options.plan, cells);
    return options.is_check && print_misses(options.plan, cells) != 0 ? 1 : 0;
}

int run_first(const Options &options)
{
    for (const Tick round_trip : options.round_trips) {
        for (const size_t size : options.windows) {
            const auto window = static_cast<uint32_t>(size);
            std::vector<FirstCell> cells;
            for (const Variant *const variant : options.variants) {
                cells.push_back({variant, round_trip, window, {}, {}, {}});
            }
            print_first_head(options, round_trip, window);
            measure_all(options.jobs, cells, 0,
                        [&](Flow &flow, FirstCell &cell) {
                            measure_first(options.plan, options.first_losses,
                                          flow, cell);
                        });
        }
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = bench::rto::parse_options(argc, argv);
    try {
        return finish_output(options.first_losses != 0 ? run_first(options)
                                                       : run(options));
    } catch (const std::exception &error) {
        fprintf(stderr, "lawn_rto: %s\n", error.what());
        return 1;
    }
}
