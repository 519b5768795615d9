// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is told of what was explored (explorer.h).

#include "explorer.h"

#include "places.h"

#include <inttypes.h>
#include <stdio.h>

namespace explore
{

std::string Result::report() const
{
    std::string text = violation + "\n";
    for (const std::string &step : steps_to_it) {
        text += step + "\n";
    }
    return text;
}

std::string Result::summary() const
{
    return std::to_string(states) + " states, " + std::to_string(runs) +
           " runs, " + std::to_string(steps) + " steps, " +
           std::to_string(stale) + " loads of several values";
}

std::string Explorer::describe_hang() const
{
    std::string text = "nobody goes on:";
    for (unsigned i = 0; i < thread_count_; ++i) {
        text += " thread " + std::to_string(i) + " " + threads_[i]->what + ";";
    }
    return text;
}

std::vector<std::string> Explorer::report() const
{
    std::vector<const void *> places;
    for (const Step &i : steps_) {
        places.push_back(i.pc);
    }
    const std::vector<std::string> names = lines_of(places);
    std::vector<std::string> lines;
    for (size_t i = 0; i < steps_.size(); ++i) {
        const Step &step = steps_[i];
        char line[512];
        snprintf(line, sizeof(line),
                 "%u: %-8s %#14" PRIxPTR " %#" PRIx64 "%s %s", step.thread,
                 step.what, reinterpret_cast<uintptr_t>(step.at), step.value,
                 step.back
                     ? (" (" + std::to_string(step.back) + " back)").c_str()
                     : "",
                 names[i].c_str());
        lines.push_back(line);
    }
    return lines;
}

} // namespace explore
