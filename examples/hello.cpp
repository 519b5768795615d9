// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The program of hello.c in C++. It uses lawn.hpp, and an engine that reads the
// clock.

#include <lawn/lawn.hpp>

#include <chrono>
#include <cstdio>

int main()
{
    using namespace std::chrono_literals;
    bool is_over = false;
    lawn::engine engine = lawn::make_engine();
    if (!engine) {
        return 1;
    }
    lawn::timer ping([&is_over](lawn_time_t) {
        std::puts("ping: no answer");
        is_over = true;
    });
    ping.start(engine, 5ms);
    while (!is_over) {
        engine.progress();
    }
}
