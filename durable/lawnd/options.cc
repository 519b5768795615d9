// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See options.h.

#include "options.h"

#include "src/url.h"

#include <lawn/durable.h>

#include <getopt.h>

#include <cstdlib>

namespace lawnd
{

namespace
{

constexpr uint64_t longest_prefetch_us = 10000000;

// For messages of one line.
std::string quoted(const std::string &text)
{
    std::string out = "'";
    for (const char c : text.substr(0, 60)) {
        out += c >= ' ' && c <= '~' ? c : '?';
    }
    return out + (text.size() > 60 ? "...'" : "'");
}

bool parse_shards(const std::string &text, unsigned *shards, std::string *error)
{
    const bool is_number =
        !text.empty() && text.size() <= 4 &&
        text.find_first_not_of("0123456789") == std::string::npos;
    const unsigned long value =
        is_number ? strtoul(text.c_str(), nullptr, 10) : 0;
    if (value < 1 || value > LAWN_DURABLE_MAX_SHARDS) {
        *error = "not a number of shards from 1 to " +
                 std::to_string(LAWN_DURABLE_MAX_SHARDS) + ": " + quoted(text);
        return false;
    }
    *shards = static_cast<unsigned>(value);
    return true;
}

bool parse_prefetch(const std::string &text, uint64_t *usec, std::string *error)
{
    if (!lawn::durable::parse_duration(text, usec, error)) {
        return false;
    }
    if (*usec < 1 || *usec > longest_prefetch_us) {
        *error = "--prefetch must be from 1us to 10s: " + quoted(text);
        return false;
    }
    return true;
}

bool take(int option, const char *value, Options *options, std::string *error)
{
    lawn::durable::Url url;
    switch (option) {
    case 'r':
        options->url = value;
        return lawn::durable::parse_url(value, &url, error);
    case 'n':
        options->name_space = value;
        return lawn::durable::check_name_space(value, error);
    case 's':
        return parse_shards(value, &options->shards, error);
    case 'l':
        options->listen = value;
        if (options->listen.empty()) {
            *error = "--http-listen needs HOST:PORT";
        }
        return !options->listen.empty();
    case 'p':
        return parse_prefetch(value, &options->prefetch_us, error);
    case 'S':
        options->require_safe_store = true;
        return true;
    case 'h':
        options->asks_for_help = true;
        return true;
    case 'V':
        options->asks_for_version = true;
        return true;
    default:
        return false;
    }
}

} // namespace

const char *const help_text =
    "usage: lawnd --redis URL --namespace NS [--shards N]\n"
    "             [--http-listen HOST:PORT] [--prefetch DURATION]\n"
    "             [--require-safe-store]\n"
    "\n"
    "Fires the durable timers of a namespace when they are due, and delivers\n"
    "those that have a target. Any number of daemons may do so at a time.\n"
    "\n"
    "  --redis URL               the store\n"
    "  --namespace NS            whose timers\n"
    "  --shards N                refuse to run if it has another number of\n"
    "                            shards; a new namespace gets this number\n"
    "  --http-listen HOST:PORT   serve /metrics and /healthz\n"
    "  --prefetch DURATION       how far ahead due times are fetched; 100ms\n"
    "                            by default\n"
    "  --require-safe-store      refuse a store that may drop timers when its\n"
    "                            memory is full, or keeps nothing on its disk\n"
    "  -h, --help                print this\n"
    "  -V, --version             print the version\n"
    "\n"
    "URLs:\n"
    "  redis://[[user]:password@]host[:port][/db]\n"
    "  unix:/path[?db=N]\n"
    "  sentinel://[[user]:password@]host:port[,host:port...]/master[/db]\n"
    "\n"
    "SIGTERM ends it when the deliveries under way have ended. It exits with\n"
    "0 then, and with 1 after one line on stderr if the command line is wrong\n"
    "or the store cannot be reached at the start.\n";

bool parse_options(int argc, char **argv, Options *options, std::string *error)
{
    static const option known[] = {
        {"redis", required_argument, nullptr, 'r'},
        {"namespace", required_argument, nullptr, 'n'},
        {"shards", required_argument, nullptr, 's'},
        {"http-listen", required_argument, nullptr, 'l'},
        {"prefetch", required_argument, nullptr, 'p'},
        {"require-safe-store", no_argument, nullptr, 'S'},
        {"help", no_argument, nullptr, 'h'},
        {"version", no_argument, nullptr, 'V'},
        {nullptr, 0, nullptr, 0}};
    opterr = 0;
    optind = 1;
    for (;;) {
        const int next = optind;
        const int option = getopt_long(argc, argv, ":hV", known, nullptr);
        if (option == -1) {
            break;
        }
        if (option == '?' || option == ':') {
            *error = std::string(option == ':' ? "a value is missing after "
                                               : "not an option: ") +
                     quoted(argv[next]) + "; see lawnd --help";
            return false;
        }
        if (!take(option, optarg, options, error)) {
            return false;
        }
    }
    if (options->asks_for_help || options->asks_for_version) {
        return true;
    }
    if (optind < argc) {
        *error = "not an option: " + quoted(argv[optind]);
    } else if (options->url.empty()) {
        *error = "--redis URL is missing; see lawnd --help";
    } else if (options->name_space.empty()) {
        *error = "--namespace NS is missing; see lawnd --help";
    } else {
        return true;
    }
    return false;
}

} // namespace lawnd
