// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Command lines; see arguments.h.

#include "arguments.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <getopt.h>

namespace bench
{

namespace
{

constexpr double greatest_number = 1e8;

// What getopt_long() returns for the first name: no letter.
constexpr int long_option = 256;

// getopt_long() may stay at an argument of which one letter is unknown, and
// goes on from any other.
std::string unknown_option(char **argv)
{
    return optopt > 0 && optopt < long_option
               ? std::string("-") + static_cast<char>(optopt)
               : argv[optind - 1];
}

} // namespace

[[noreturn]] void refuse(const std::string &why)
{
    fprintf(stderr, "%s: %s; see --help\n", program_invocation_short_name,
            why.c_str());
    exit(bad_usage);
}

std::vector<GivenOption> given_options(int argc, char **argv,
                                       const std::vector<const char *> &names,
                                       size_t with_argument)
{
    std::vector<option> known;
    for (size_t i = 0; i < names.size(); ++i) {
        known.push_back({names[i],
                         i < with_argument ? required_argument : no_argument,
                         nullptr, long_option + static_cast<int>(i)});
    }
    known.push_back({});
    std::vector<GivenOption> given;
    opterr = 0;
    for (;;) {
        const int which = getopt_long(argc, argv, ":", known.data(), nullptr);
        if (which == -1) {
            return given;
        }
        if (which == ':') {
            refuse(std::string(argv[optind - 1]) + " needs an argument");
        }
        if (which == '?') {
            refuse("unknown option " + unknown_option(argv));
        }
        given.push_back({which - long_option, optarg});
    }
}

bool parse_quick(int argc, char **argv, const char *help, bool *is_quick)
{
    for (const auto &[which, argument] :
         given_options(argc, argv, {"quick", "help"}, 0)) {
        if (which == 1) {
            fputs(help, stdout);
            return false;
        }
        *is_quick = true;
    }
    if (optind != argc) {
        refuse("unexpected argument '" + std::string(argv[optind]) + "'");
    }
    return true;
}

size_t number(const std::string &text, const char *option)
{
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 1) ||
        value > greatest_number || value != std::floor(value)) {
        refuse(std::string(option) +
               " takes whole numbers from 1 to 1e8, not '" + text + "'");
    }
    return static_cast<size_t>(value);
}

double seconds(const std::string &text, const char *option)
{
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0.001) || value > 60) {
        refuse(std::string(option) +
               " takes a number of seconds from 0.001 to 60, not '" + text +
               "'");
    }
    return value;
}

std::vector<std::string> split(const std::string &list)
{
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t comma = 0; comma != std::string::npos; from = comma + 1) {
        comma = list.find(',', from);
        parts.push_back(list.substr(from, comma - from));
    }
    return parts;
}

std::vector<size_t> numbers(const std::string &list, const char *option)
{
    std::vector<size_t> values;
    for (const std::string &part : split(list)) {
        values.push_back(number(part, option));
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

std::vector<size_t> decades(size_t from, size_t to)
{
    std::vector<size_t> values;
    for (size_t value = from; value <= to; value *= 10) {
        values.push_back(value);
    }
    return values;
}

} // namespace bench
