// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Weather on a wire; see weather.h.

#include "weather.h"

#include "pingpong_process.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <thread>

namespace e2e
{

namespace
{

std::string format(const char *how, ...) __attribute__((format(printf, 1, 2)));

std::string format(const char *how, ...)
{
    char text[128];
    va_list values;
    va_start(values, how);
    vsnprintf(text, sizeof(text), how, values);
    va_end(values);
    return text;
}

// One process for all of it: each costs a tenth of a second where it is
// emulated.
void tc(const std::string &commands)
{
    shell("tc -batch - <<END\n" + commands + "END");
}

// Uniform in its logarithm: a little is as likely as a lot.
double draw_magnitude(Random &random, double least, double most)
{
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    return least * std::pow(most / least, share);
}

} // namespace

// The queue is short: behind the slowest link it holds a sixth of a second.
// What waits there outlives the process that sent it, and a queue pair cannot
// be destroyed before.
std::string Weather::draw_netem(const Climate &climate)
{
    std::string how = "netem limit 200";
    if (draw(random_, 0, 3) != 0) {
        how += format(" loss %.2f%%",
                      draw_magnitude(random_, 0.1, climate.loss_percent));
    }
    if (draw(random_, 0, 2) != 0) {
        const double delay = draw_magnitude(random_, 0.1, climate.delay_msec);
        // Jitter alone reorders too: netem sends by time.
        how += format(" delay %.2fms %.2fms", delay,
                      draw(random_, 0, 1) ? draw_magnitude(random_, 0.01, delay)
                                          : 0);
        if (climate.reorder_percent > 0 && draw(random_, 0, 1) != 0) {
            how += format(" reorder %.2f%%",
                          draw_magnitude(random_, 1, climate.reorder_percent));
        }
    }
    if (draw(random_, 0, 1) != 0) {
        how += format(" duplicate %.2f%%",
                      draw_magnitude(random_, 0.1, climate.duplicate_percent));
    }
    if (draw(random_, 0, 2) == 0) {
        how += format(" rate %.2fmbit",
                      draw_magnitude(random_, climate.least_rate_mbit, 100));
    }
    return how;
}

// A netem that is changed keeps what the change does not name.
std::string Weather::change(const Climate &climate)
{
    clear();
    const std::string there = draw_netem(climate);
    const std::string back = draw_netem(climate);
    tc("qdisc add dev v0 root " + there + "\nqdisc add dev v1 root " + back +
       "\n");
    is_clear_ = false;
    return "v0 " + there + ", v1 " + back;
}

void Weather::clear()
{
    if (!is_clear_) {
        is_clear_ = true;
        tc("qdisc del dev v0 root\nqdisc del dev v1 root\n");
    }
}

void Weather::flap(std::chrono::milliseconds outage)
{
    const char *const end = draw(random_, 0, 1) ? "v0" : "v1";
    shell(format("ip link set %s down", end));
    std::this_thread::sleep_for(outage);
    shell(format("ip link set %s up", end));
}

} // namespace e2e
