// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line; see options.h.

#include "rto/options.h"

#include "arguments.h"
#include "finish.h"

#include <cstdlib>
#include <thread>

#include <fnmatch.h>
#include <getopt.h>

namespace bench::rto
{

namespace
{

void print_help()
{
    printf(
        "usage: lawn_rto [OPTION]...\n\n"
        "Compares retransmission timers on virtual time: what they send\n"
        "needlessly where nothing is lost, and how long a loss stalls. One "
        "flow\n"
        "with a window of messages; R is the round trip of an idle path.\n\n"
        "  --paths PATTERN,...   of names, such as 'jitter*' or '*/any' "
        "(all);\n"
        "                        -PATTERN leaves out what others chose; /any:\n"
        "                        what is late does not hold up others\n"
        "  --rtt T,...           round trips: 10us, 100us, 1ms, 20ms (10us)\n"
        "  --windows N,...       messages that may be unacknowledged (1,8)\n"
        "  --acks KIND           single; cumulative, with an echo; or bare,\n"
        "                        cumulative without an echo (single)\n"
        "  --contenders C,...    those marked in --list\n"
        "  --messages N          of each run (40000)\n"
        "  --warm-up N           of them that do not count (1000)\n"
        "  --loss P              share of packets (0.01)\n"
        "  --seeds N             runs, of which the means are printed (10)\n"
        "  --seed N              the first seed (1)\n"
        "  --jobs N              threads (as many as processors)\n"
        "  --quick               6000 messages and two seeds\n"
        "  --csv FILE            all figures\n"
        "  --check               whether lawn meets the targets\n"
        "  --inherit             instead of all this: the first loss of "
        "1,000\n"
        "                        new connections that know nothing, of 1,000 "
        "that\n"
        "                        know what another one has measured, and of "
        "1,000\n"
        "                        that may also ask the peer\n"
        "  --list                of paths and contenders\n"
        "  --help\n\n"
        "Printed is, for example, 2.1/3.0(4.5)+12: spurious retransmissions "
        "per\n"
        "10,000 messages without loss; with it the median (p99) time to the "
        "ACK\n"
        "of a message that was lost, in round trips; and how often the peer "
        "was\n"
        "asked, per 10,000 messages. Below an outage: the most "
        "retransmissions\n"
        "with nothing heard between them.\n\n"
        "Exit status: 0; 1 when a target is missed or an output cannot be "
        "written;\n2 for a wrong option.\n");
}

void print_list()
{
    printf("contenders (* by default):\n");
    for (const Kind &kind : kinds()) {
        printf("  %c %-14s %s\n", kind.by_default ? '*' : ' ', kind.name,
               kind.what);
    }
    printf("\npaths:\n");
    for (const Variant &variant : variants()) {
        printf("    %-18s %s\n", variant.name.c_str(), variant.path->what);
    }
}

const std::vector<const char *> option_names = {
    "paths",   "rtt",   "windows", "acks", "contenders", "messages",
    "warm-up", "loss",  "seeds",   "seed", "jobs",       "csv",
    "quick",   "check", "inherit", "list", "help"};

enum Option {
    chosen_paths,
    round_trips,
    windows,
    acks,
    contenders,
    messages,
    warm_up,
    loss,
    seeds,
    seed,
    jobs,
    csv,
    quick, // takes no argument, as all that follow
    check,
    inherit,
    list,
    help
};

// Those that the last pattern which they match does not leave out.
std::vector<const Variant *> matching(const std::string &patterns)
{
    std::vector<bool> is_chosen(variants().size());
    for (std::string pattern : split(patterns)) {
        const bool leaves_out = pattern.rfind('-', 0) == 0;
        pattern.erase(0, leaves_out ? 1 : 0);
        bool is_known = false;
        for (size_t i = 0; i < is_chosen.size(); ++i) {
            if (fnmatch(pattern.c_str(), variants()[i].name.c_str(), 0) == 0) {
                is_known = true;
                is_chosen[i] = !leaves_out;
            }
        }
        if (!is_known) {
            refuse("--paths: there is no '" + pattern + "'");
        }
    }
    std::vector<const Variant *> chosen;
    for (size_t i = 0; i < is_chosen.size(); ++i) {
        if (is_chosen[i]) {
            chosen.push_back(&variants()[i]);
        }
    }
    if (chosen.empty()) {
        refuse("--paths: '" + patterns + "' leaves out all");
    }
    return chosen;
}

Tick duration(const std::string &text)
{
    char *unit = nullptr;
    const double value = strtod(text.c_str(), &unit);
    const std::string name = unit;
    const double scale = name == "us"   ? 1e3
                         : name == "ms" ? 1e6
                         : name == "s"  ? 1e9
                                        : 0;
    if (scale == 0 || !(value * scale >= 1e3) || !(value * scale <= 1e9)) {
        refuse("--rtt takes times from 1us to 1s, such as 10us, not '" + text +
               "'");
    }
    return static_cast<Tick>(value * scale);
}

std::vector<Tick> durations(const std::string &text)
{
    std::vector<Tick> times;
    for (const std::string &part : split(text)) {
        times.push_back(duration(part));
    }
    return times;
}

Acks kind_of_acks(const std::string &text)
{
    constexpr const char *names[] = {"single", "cumulative", "bare"};
    for (int i = 0; i < 3; ++i) {
        if (text == names[i]) {
            return static_cast<Acks>(i);
        }
    }
    refuse("--acks takes single, cumulative or bare, not '" + text + "'");
}

double probability(const std::string &text)
{
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value > 0) || !(value <= .5)) {
        refuse("--loss takes a share above 0, up to 0.5, not '" + text + "'");
    }
    return value;
}

unsigned small(const std::string &text, const char *option, size_t most)
{
    const size_t value = number(text, option);
    if (value > most) {
        refuse(std::string(option) + " takes numbers up to " +
               std::to_string(most) + ", not '" + text + "'");
    }
    return static_cast<unsigned>(value);
}

// What concerns the runs. Returns false for what does not.
bool apply_to_plan(int choice, const char *argument, Plan &plan)
{
    Setting &setting = plan.setting;
    switch (choice) {
    case acks:
        setting.acks = kind_of_acks(argument);
        return true;
    case contenders:
        plan.kinds = choose<Kind>(kinds(), argument, "--contenders",
                                  [](const Kind &kind) { return kind.name; });
        return true;
    case messages:
        setting.messages = small(argument, "--messages", 10'000'000);
        return true;
    case warm_up:
        setting.warm_up = small(argument, "--warm-up", 10'000'000);
        return true;
    case loss:
        setting.loss = probability(argument);
        return true;
    case seeds:
        plan.seeds = small(argument, "--seeds", 10'000);
        return true;
    case seed:
        setting.seed = number(argument, "--seed");
        return true;
    case quick:
        setting.messages = 6'000;
        plan.seeds = 2;
        return true;
    default:
        return false;
    }
}

void apply(int choice, const char *argument, Options &options)
{
    switch (choice) {
    case chosen_paths:
        options.variants = matching(argument);
        break;
    case round_trips:
        options.round_trips = durations(argument);
        break;
    case windows:
        options.windows = numbers(argument, "--windows");
        if (options.windows.back() > 4096) {
            refuse("--windows takes numbers up to 4096");
        }
        break;
    case jobs:
        options.jobs = small(argument, "--jobs", 1024);
        break;
    case csv:
        options.csv = argument;
        break;
    case check:
        options.is_check = true;
        break;
    case inherit:
        options.first_losses = 1'000;
        break;
    case list:
        print_list();
        exit(finish_output(0));
    case help:
        print_help();
        exit(finish_output(0));
    default:
        apply_to_plan(choice, argument, options.plan);
        break;
    }
}

bool has(const Plan &plan, const std::string &name)
{
    return std::any_of(plan.kinds.begin(), plan.kinds.end(),
                       [&](const Kind *kind) { return kind->name == name; });
}

} // namespace

Options parse_options(int argc, char **argv)
{
    Options options;
    options.plan.setting.loss = .01;
    options.plan.setting.seed = 1;
    options.jobs = std::max(1U, std::thread::hardware_concurrency());
    options.variants = matching("*");
    for (const auto &[which, argument] :
         given_options(argc, argv, option_names, quick)) {
        apply(which, argument, options);
    }
    if (optind != argc) {
        refuse("unexpected argument '" + std::string(argv[optind]) + "'");
    }
    Plan &plan = options.plan;
    if (plan.kinds.empty()) {
        for (const Kind &kind : kinds()) {
            if (kind.by_default) {
                plan.kinds.push_back(&kind);
            }
        }
    }
    plan.needs_oracle = options.is_check || has(plan, "oracle");
    if (plan.setting.warm_up >= plan.setting.messages) {
        refuse("--messages takes more than --warm-up");
    }
    if (options.is_check && !has(plan, "lawn")) {
        refuse("--check is for lawn, which --contenders leaves out");
    }
    if (options.is_check && plan.setting.acks == Acks::bare) {
        refuse("--check is not for bare ACKs, which say too little");
    }
    if (options.first_losses != 0 && (options.is_check || options.csv)) {
        refuse("--inherit has no --check or --csv");
    }
    return options;
}

} // namespace bench::rto
