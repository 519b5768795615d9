// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What goes wrong on the wire between rxe0 and rxe1: netem settings drawn at
// random, for each direction its own, and a cable that comes loose. All draws
// follow from the seed.

#ifndef LAWN_TEST_E2E_WEATHER_H
#define LAWN_TEST_E2E_WEATHER_H

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

namespace e2e
{

// The worst that may be drawn.
struct Climate {
    double loss_percent;
    double delay_msec; // and as much jitter
    double duplicate_percent;
    double reorder_percent;
    double least_rate_mbit;
};

using Random = std::mt19937_64;

// Uniform, both ends included.
inline unsigned draw(Random &random, unsigned least, unsigned most)
{
    return least + static_cast<unsigned>(random() % (most - least + 1));
}

class Weather
{
public:
    explicit Weather(Random &random) : random_(random)
    {
    }

    ~Weather()
    {
        clear();
    }

    Weather(const Weather &) = delete;
    Weather &operator=(const Weather &) = delete;

    // Spoils each direction anew; returns how. What is on its way is lost.
    std::string change(const Climate &climate);

    void clear();

    // Takes the link down for as long.
    void flap(std::chrono::milliseconds outage);

private:
    std::string draw_netem(const Climate &climate);

    Random &random_;
    bool is_clear_ = true;
};

} // namespace e2e

#endif
