// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a pass of an idle engine costs beside a reading of the clock, which it
// cannot do without: both in turns, in ticks, medians. A thousand timers run.

#include "finish.h"
#include "median.h"

#include <lawn/engine.h>

#include <cstdio>
#include <vector>

namespace
{

using bench::median;

constexpr int rounds = 51;
constexpr int passes = 100'000;

template <class Pass> double ticks_of(Pass pass)
{
    const lawn_time_t begin = lawn_get_time();
    for (int i = 0; i < passes; ++i) {
        pass();
    }
    return static_cast<double>(lawn_get_time() - begin) / passes;
}

} // namespace

int main(int argc, char **argv)
{
    if (bench::print_usage(argc, argv, "usage: lawn_idle")) {
        return bench::finish_output(0);
    }
    if (argc > 1) {
        std::fprintf(stderr, "lawn_idle: unexpected argument '%s'\n", argv[1]);
        return 2;
    }
    lawn_engine_t *bare = nullptr;
    lawn_engine_t *engine = nullptr;
    if (lawn_engine_create(nullptr, &bare) != LAWN_OK ||
        lawn_engine_create(nullptr, &engine) != LAWN_OK ||
        lawn_engine_add(
            engine, [](void *) { return 0U; }, nullptr, -1, nullptr) !=
            LAWN_OK) {
        std::fprintf(stderr, "lawn_idle: cannot make an engine\n");
        return 1;
    }
    std::vector<lawn_timer_t> timers(2000);
    for (size_t i = 0; i < timers.size(); ++i) {
        lawn_engine_start(i % 2 ? bare : engine, &timers[i],
                          lawn_time_from_sec(1000));
    }
    std::vector<double> clock;
    std::vector<double> without;
    std::vector<double> with;
    for (int round = 0; round < rounds; ++round) {
        clock.push_back(ticks_of([] {
            const lawn_time_t now = lawn_get_time();
            __asm__ volatile("" ::"r"(now));
        }));
        without.push_back(ticks_of([&] { lawn_engine_progress(bare); }));
        with.push_back(ticks_of([&] { lawn_engine_progress(engine); }));
    }
    const double least = median(clock);
    std::printf("reading the clock         %5.1f ticks\n", least);
    std::printf("idle pass, no source      %5.1f ticks, %.2f times that\n",
                median(without), median(without) / least);
    std::printf("idle pass, one source     %5.1f ticks, %.2f times that\n",
                median(with), median(with) / least);
    lawn_engine_destroy(engine);
    lawn_engine_destroy(bare);
    return bench::finish_output(0);
}
