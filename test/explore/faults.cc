// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Faults of all atomic steps (faults.h). Each is tried in a process of its own:
// what it does to the library may be anything.

#include "faults.h"

#include "places.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

namespace explore
{

namespace
{

constexpr int failure = 1;

// Of a scenario: nearly all that the tests do.
constexpr uint64_t most_runs = 200'000;

int report_fd;
uint64_t steps_before;

void report(const std::string &text)
{
    if (write(report_fd, text.data(), text.size()) < 0) {
        _exit(failure);
    }
}

// The thread is in a loop without any step, which nothing else can end.
void on_timer(int)
{
    if (explorer().all_steps() == steps_before) {
        report("no step any more: " + explorer().describe_hang());
        _exit(0);
    }
    steps_before = explorer().all_steps();
}

void watch_progress()
{
    signal(SIGVTALRM, on_timer);
    const itimerval often = {{2, 0}, {2, 0}};
    setitimer(ITIMER_VIRTUAL, &often, nullptr);
}

Result explore_for(uint64_t runs, const Scenario &scenario)
{
    Limits limits = usual_limits(scenario.threads);
    limits.most_runs = runs;
    return explore(scenario, limits);
}

void try_here(const LineFault &line)
{
    watch_progress();
    explorer().set_fault(line.fault);
    for (const Scenario *const i : line.scenarios) {
        const Result result = explore_for(most_runs, *i);
        if (!result.violation.empty()) {
            report(std::string(i->name) + ": " + result.violation);
            _exit(0);
        }
    }
    _exit(0);
}

std::vector<std::pair<const char *, Fault::Kind>> kinds_of(const Site &site)
{
    std::vector<std::pair<const char *, Fault::Kind>> kinds;
    if (site.stores) {
        kinds.emplace_back("left out", Fault::left_out);
    }
    if (site.stores && !site.loads) {
        kinds.emplace_back("later", Fault::later);
    }
    if (site.loads && !site.stores) {
        kinds.emplace_back("stale", Fault::stale);
    }
    if (site.order != Order::relaxed) {
        kinds.emplace_back("weaker", Fault::weaker);
    }
    return kinds;
}

// What is explored for the files of a folder. A timer of a service is shared,
// too, but what is wrong with that shows in smaller programs.
struct Room {
    const char *folder;
    std::vector<Scenario> scenarios;
};

const std::vector<Room> &rooms()
{
    const auto both = [](std::vector<Scenario> one,
                         const std::vector<Scenario> &other) {
        one.insert(one.end(), other.begin(), other.end());
        return one;
    };
    static const std::vector<Room> all = {
        {"engine/", both(engine_scenarios(), service_scenarios())},
        {"group/", group_scenarios()},
        {"service/", service_scenarios()},
        {"shared/", both(shared_scenarios(), engine_scenarios())},
        {"shm/", shm_scenarios()}};
    return all;
}

bool begins_with(const std::string &text, const std::string &begin)
{
    return text.compare(0, begin.size(), begin) == 0;
}

bool is_of(const std::string &line, const std::vector<std::string> &files)
{
    return std::any_of(files.begin(), files.end(), [&](const auto &file) {
        return begins_with(line, file);
    });
}

bool is_asked_for(const Room &room, const std::vector<std::string> &files)
{
    return std::any_of(files.begin(), files.end(), [&](const auto &file) {
        return begins_with(file, room.folder);
    });
}

// By line and kind.
using Found = std::map<std::pair<std::string, std::string>, LineFault>;

// A few runs tell where a scenario comes to.
std::map<const void *, Site> sites_of(const Scenario &scenario)
{
    constexpr uint64_t some_runs = 10'000;
    explorer().forget_sites();
    const Result result = explore_for(some_runs, scenario);
    if (!result.violation.empty()) {
        fprintf(stderr, "explore_faults: without any fault, %s: %s\n",
                scenario.name, result.violation.c_str());
        exit(2);
    }
    return explorer().sites();
}

void add_faults(const Scenario &scenario, const Room &room,
                const std::vector<std::string> &files, Found *found)
{
    const std::map<const void *, Site> sites = sites_of(scenario);
    std::vector<const void *> places;
    for (const auto &[place, site] : sites) {
        places.push_back(place);
    }
    const std::vector<std::string> lines = lines_of(places);
    for (size_t i = 0; i < places.size(); ++i) {
        if (!begins_with(lines[i], room.folder) || !is_of(lines[i], files)) {
            continue;
        }
        for (const auto &[name, kind] : kinds_of(sites.at(places[i]))) {
            LineFault &one = (*found)[{lines[i], name}];
            one.line = lines[i];
            one.kind = name;
            one.fault.kind = kind;
            one.fault.places.insert(places[i]);
            if (one.scenarios.empty() || one.scenarios.back() != &scenario) {
                one.scenarios.push_back(&scenario);
            }
        }
    }
}

} // namespace

std::vector<LineFault> find_faults(const std::vector<std::string> &files)
{
    Found found;
    for (const Room &room : rooms()) {
        if (is_asked_for(room, files)) {
            for (const Scenario &scenario : room.scenarios) {
                add_faults(scenario, room, files, &found);
            }
        }
    }
    std::vector<LineFault> faults;
    for (auto &[key, one] : found) {
        faults.push_back(std::move(one));
    }
    return faults;
}

std::string try_fault(const LineFault &fault)
{
    int fds[2];
    require(pipe(fds) == 0);
    fflush(nullptr);
    const pid_t child = fork();
    require(child >= 0);
    if (child == 0) {
        report_fd = fds[1];
        try_here(fault);
    }
    close(fds[1]);
    std::string noticed;
    char text[4096];
    ssize_t size;
    while ((size = read(fds[0], text, sizeof(text))) > 0) {
        noticed.append(text, static_cast<size_t>(size));
    }
    close(fds[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        return std::string("ends by ") + strsignal(WTERMSIG(status));
    }
    return noticed;
}

} // namespace explore
