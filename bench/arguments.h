// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What command lines of these programs consist of. What cannot be understood
// ends the program with one line on stderr and the status bad_usage.

#ifndef LAWN_BENCH_ARGUMENTS_H
#define LAWN_BENCH_ARGUMENTS_H

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace bench
{

// Exit status for what was asked for in a wrong way.
constexpr int bad_usage = 2;

[[noreturn]] void refuse(const std::string &why);

// An option of a command line, and its argument, if it takes one.
struct GivenOption {
    int which; // index of its name
    const char *argument;
};

// All options, in their order. Of `names`, the first `with_argument` take one.
// Other arguments begin at `optind` then.
std::vector<GivenOption> given_options(int argc, char **argv,
                                       const std::vector<const char *> &names,
                                       size_t with_argument);

// For a command whose only options are --quick and --help. Returns false after
// it has printed `help`.
bool parse_quick(int argc, char **argv, const char *help, bool *is_quick);

size_t number(const std::string &text, const char *option);
double seconds(const std::string &text, const char *option);

std::vector<std::string> split(const std::string &list);

// Ascending, each once: what is too slow for one is not tried with the next.
std::vector<size_t> numbers(const std::string &list, const char *option);

// From one to the other, ten times as many each time.
std::vector<size_t> decades(size_t from, size_t to);

template <class T> std::vector<const T *> pointers(const std::vector<T> &all)
{
    std::vector<const T *> list;
    for (const T &each : all) {
        list.push_back(&each);
    }
    return list;
}

// Chosen by name, each once; unknown names are refused.
template <class T>
std::vector<const T *> choose(const std::vector<T> &all,
                              const std::string &list, const char *option,
                              const char *(*name_of)(const T &))
{
    std::vector<const T *> chosen;
    for (const std::string &part : split(list)) {
        const auto found =
            std::find_if(all.begin(), all.end(),
                         [&](const T &each) { return part == name_of(each); });
        if (found == all.end()) {
            refuse(std::string(option) + ": there is no '" + part + "'");
        }
        if (std::find(chosen.begin(), chosen.end(), &*found) == chosen.end()) {
            chosen.push_back(&*found);
        }
    }
    return chosen;
}

} // namespace bench

#endif
