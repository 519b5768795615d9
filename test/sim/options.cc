// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line; see options.h.

#include "options.h"

#include "arguments.h"

#include <cctype>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <getopt.h>

namespace sim
{

namespace
{

using bench::refuse;

constexpr uint64_t most_connections = 10000000;
constexpr uint64_t most_hosts = 256;
constexpr double most_hours = 1000;

uint64_t number(const char *option, const std::string &text, uint64_t least,
                uint64_t most)
{
    errno = 0;
    char *end = nullptr;
    const uint64_t value = strtoull(text.c_str(), &end, 10);
    if (text.empty() || !isdigit(static_cast<unsigned char>(text[0])) ||
        *end != '\0' || errno != 0 || value < least || value > most) {
        refuse(std::string("--") + option + " takes a whole number from " +
               std::to_string(least) + " to " + std::to_string(most) +
               ", not '" + text + "'");
    }
    return value;
}

Nsec hours(const std::string &text)
{
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value > 0) || value > most_hours) {
        refuse("--hours takes a number above 0, up to 1000, not '" + text +
               "'");
    }
    return static_cast<Nsec>(value * static_cast<double>(hour));
}

void take_seeds(const char *option, const std::string &text, Options &options)
{
    const size_t dots = text.find("..");
    options.first_seed = number(option, text.substr(0, dots), 0, UINT64_MAX);
    options.last_seed = dots == std::string::npos
                            ? options.first_seed
                            : number(option, text.substr(dots + 2),
                                     options.first_seed, UINT64_MAX);
}

void print_help()
{
    printf(
        "usage: lawn_sim [OPTION]...\n\n"
        "Simulates connections over lawn/conn.h between hosts with clocks of\n"
        "their own, over a network that loses, duplicates, delays and cuts,\n"
        "with stalls and deaths; and checks what the headers promise. The\n"
        "seed decides everything: the same options are the same run.\n\n"
        "  --seed S         (1); decides also the network, the parameters of\n"
        "                   connections and which faults there are\n"
        "  --seeds A..B     several runs, one after the other\n"
        "  --connections N  up to 1e7 (2000)\n"
        "  --hosts K        2 to 256 (16)\n"
        "  --hours H        of faults, in the world's time (1); some\n"
        "                   minutes of calm follow, in which all must recover\n"
        "  --all-kinds      fail if a kind of fault or death did not occur\n"
        "  --quiet          a line for each seed instead of the summary\n"
        "  --verbose        tell each fault, too\n"
        "  --help\n\n"
        "Exit status: 0; 1 when a promise was broken; 2 for a wrong option.\n");
}

enum Option {
    seed,
    seeds,
    connections,
    hosts,
    duration,
    all_kinds,
    quiet,
    verbose,
    help
};

constexpr size_t with_argument = all_kinds; // the options before it

const std::vector<const char *> names = {"seed",  "seeds",   "connections",
                                         "hosts", "hours",   "all-kinds",
                                         "quiet", "verbose", "help"};

void take(int choice, const char *argument, Options &options)
{
    const char *const name = names[static_cast<size_t>(choice)];
    switch (choice) {
    case seed:
        options.first_seed = number(name, argument, 0, UINT64_MAX);
        options.last_seed = options.first_seed;
        break;
    case seeds:
        take_seeds(name, argument, options);
        break;
    case connections:
        options.connections =
            static_cast<uint32_t>(number(name, argument, 1, most_connections));
        break;
    case hosts:
        options.hosts =
            static_cast<uint32_t>(number(name, argument, 2, most_hosts));
        break;
    case duration:
        options.duration = hours(argument);
        break;
    case all_kinds:
        options.wants_all_kinds = true;
        break;
    case quiet:
        options.is_quiet = true;
        break;
    case verbose:
        options.is_verbose = true;
        break;
    default:
        print_help();
        exit(0);
    }
}

} // namespace

Options parse_options(int argc, char **argv)
{
    Options options;
    for (const auto &[choice, argument] :
         bench::given_options(argc, argv, names, with_argument)) {
        take(choice, argument, options);
    }
    if (optind < argc) {
        refuse(std::string("unexpected argument '") + argv[optind] + "'");
    }
    if (options.is_quiet && options.is_verbose) {
        refuse("--quiet and --verbose exclude each other");
    }
    return options;
}

} // namespace sim
