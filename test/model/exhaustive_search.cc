// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The search, and what it tells when it fails.

#include "exhaustive_search.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

namespace exhaustive
{

namespace
{

// The key of the sequence that is being tried, for a death by signal.
std::string key;

std::string key_of(const Scenario &scenario, const std::vector<uint8_t> &path)
{
    std::string text = "LAWN_TEST_SEQUENCE=" + scenario.name + ':';
    for (size_t i = 0; i < path.size(); ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(path[i]);
    }
    return text + '\n';
}

// What LAWN_TEST_SEQUENCE says of a scenario: true, and the path, if it is the
// one to replay.
bool parse_key(const char *text, const Scenario &scenario,
               std::vector<uint8_t> *path)
{
    const std::string name = scenario.name + ':';
    if (std::string(text).compare(0, name.size(), name) != 0) {
        return false;
    }
    char *rest = const_cast<char *>(text) + name.size();
    while (*rest != '\0') {
        const unsigned long op = strtoul(rest, &rest, 10);
        if (op >= scenario.alphabet.size()) {
            return false;
        }
        path->push_back(static_cast<uint8_t>(op));
        rest += *rest == ',';
    }
    return true;
}

constexpr int deadly[] = {SIGABRT, SIGSEGV, SIGTERM};
struct sigaction actions_before[NSIG];

// Then dies as it would have.
void on_death(int signal)
{
    if (write(STDERR_FILENO, key.data(), key.size()) < 0) {
        _exit(1);
    }
    sigaction(signal, &actions_before[signal], nullptr);
    raise(signal);
}

class TellAtDeath
{
public:
    TellAtDeath()
    {
        struct sigaction action = {};
        action.sa_handler = on_death;
        for (const int signal : deadly) {
            sigaction(signal, &action, &actions_before[signal]);
        }
    }

    ~TellAtDeath()
    {
        for (const int signal : deadly) {
            sigaction(signal, &actions_before[signal], nullptr);
        }
    }

    TellAtDeath(const TellAtDeath &) = delete;
    TellAtDeath &operator=(const TellAtDeath &) = delete;
};

} // namespace

bool Search::run(const Scenario &scenario)
{
    const char *const only = getenv("LAWN_TEST_SEQUENCE");
    std::vector<uint8_t> path;
    if (only) {
        return !parse_key(only, scenario, &path) || replay(scenario, path);
    }
    const TellAtDeath guard;
    key = key_of(scenario, path);
    world_.open(scenario);
    path_.clear();
    if (const char *const failure = world_.check()) {
        return fail(scenario, failure);
    }
    nodes_.assign(1, {world_.image().hash(), 0, 0});
    seen_.clear();
    seen_.insert(world_.image().hash());
    from_root_.clear();
    size_t begin = 0;
    for (unsigned depth = 1; depth <= scenario.depth; ++depth) {
        const size_t end = nodes_.size();
        for (size_t node = begin; node < end; ++node) {
            if (!expand(scenario, static_cast<uint32_t>(node),
                        depth == scenario.depth)) {
                return false;
            }
        }
        begin = end;
    }
    ++totals_.scenarios;
    totals_.sequences += pow(static_cast<double>(scenario.alphabet.size()),
                             static_cast<double>(scenario.depth));
    totals_.states += seen_.size();
    return true;
}

// Tries every operation in a state.
bool Search::expand(const Scenario &scenario, uint32_t node, bool is_last)
{
    if (!go_to(scenario, node)) {
        return false;
    }
    for (size_t op = 0; op < scenario.alphabet.size(); ++op) {
        path_.push_back(static_cast<uint8_t>(op));
        key = key_of(scenario, path_);
        const char *failure = world_.apply(scenario.alphabet[op]);
        world_.image().record(&changes_);
        ++totals_.operations;
        const uint64_t hash = world_.image().hash();
        if (!failure && seen_.insert(hash).second) {
            failure = world_.check();
            if (!is_last) {
                nodes_.push_back({hash, node, static_cast<uint8_t>(op)});
            }
        }
        if (failure) {
            return fail(scenario, failure);
        }
        path_.pop_back();
        world_.image().undo(changes_);
    }
    return true;
}

// By the operations that led there first: that must be the same state again.
bool Search::go_to(const Scenario &scenario, uint32_t node)
{
    world_.image().undo(from_root_);
    path_.clear();
    for (uint32_t i = node; i != 0; i = nodes_[i].parent) {
        path_.insert(path_.begin(), nodes_[i].op);
    }
    key = key_of(scenario, path_);
    for (const uint8_t op : path_) {
        world_.apply(scenario.alphabet[op]);
    }
    world_.image().record(&from_root_);
    return world_.image().hash() == nodes_[node].hash ||
           fail(scenario, "depends on more than the bytes of the lawn");
}

// Writes the calls as they are made.
bool Search::replay(const Scenario &scenario, const std::vector<uint8_t> &path)
{
    world_.write_to(stderr);
    world_.open(scenario);
    const char *failure = world_.check();
    for (size_t i = 0; i < path.size() && !failure; ++i) {
        failure = world_.apply(scenario.alphabet[path[i]]);
        failure = failure ? failure : world_.check();
    }
    world_.write_to(nullptr);
    return !failure;
}

bool Search::fail(const Scenario &scenario, const char *what)
{
    const std::string failed_at = key_of(scenario, path_);
    fprintf(stderr, "%s: %s\n", scenario.name.c_str(), what);
    if (replay(scenario, path_)) {
        fprintf(stderr, "not so when replayed\n");
    }
    fprintf(stderr, "%s", failed_at.c_str());
    return false;
}

} // namespace exhaustive
