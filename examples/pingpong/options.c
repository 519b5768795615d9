/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The options of all ping-pongs, in one table. A program accepts and shows only
 * the common options and those of its transport.
 */
#include "option_spec.h"

#include "session.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(options_t, field)
#define TIMER(field) offsetof(options_t, timers.field)

static const option_spec_t specs[] = {
    {"device", 'd', OPTIONS_OF_VERBS, TEXT, AT(device), 0, 0,
     "NAME       RDMA device (the first with an active port)"},
    {"ib-port", 'i', OPTIONS_OF_VERBS, NUMBER32, AT(ib_port), 1, 255,
     "N          its port (1)"},
    {"gid-index", 'g', OPTIONS_OF_VERBS, NUMBER32, AT(gid_index), 0, 65535,
     "N          its GID (0)"},
    {"mode", 'm', OPTIONS_OF_VERBS, MODE, 0, 0, 0,
     "ud|rc      kind of queue pair (ud)"},
    {"iters", 'n', 0, NUMBER32, AT(iters), 1, SESSION_MAX_ITERS,
     "N          messages per connection and direction (20)"},
    {"size", 's', 0, NUMBER32, AT(size), 0, 1 << 20,
     "BYTES      payload of a message (64)"},
    {"connections", 'c', 0, NUMBER32, AT(connections), 1,
     SESSION_MAX_CONNECTIONS,
     "N          logical connections over one pair of queues (1)"},
    {"window", 0, 0, NUMBER32, AT(window), 1, SESSION_MAX_WINDOW,
     "N          messages under way on a connection (1)"},
    {"rate", 0, 0, NUMBER64, AT(rate), 0, 1e12,
     "BYTES      of own messages in a second; 0: no limit (0)"},
    {"rto", 'r', 0, DURATION, TIMER(rto_initial), 1, OPTION_YEAR_NS,
     "DUR        RTO until a round trip is measured (100ms)"},
    {"rto-min", 0, 0, DURATION, TIMER(rto_min), 0, OPTION_YEAR_NS,
     "DUR        least RTO (0: what the path needs)"},
    {"rto-max", 0, 0, DURATION, TIMER(rto_max), 1, OPTION_YEAR_NS,
     "DUR        largest RTO (1s)"},
    {"rto-fixed", 0, 0, DURATION, TIMER(rto_fixed), 1, OPTION_YEAR_NS,
     "DUR        the RTO, whatever is measured"},
    {"max-retries", 0, 0, NUMBER32, TIMER(max_retries), 0, 1e6,
     "N          dead after as many; 0: no limit (0)"},
    {"peer-timeout", 0, 0, DURATION, TIMER(peer_timeout), 0, OPTION_YEAR_NS,
     "DUR        dead when a send waits as long; 0: no limit (10s)"},
    {"keepalive", 'k', 0, KEEPALIVE, 0, 0, 0,
     "IDLE[,INTERVAL[,PROBES]]  when to probe; 0: never (2s,500ms,3)"},
    {"keepalive-jitter", 0, 0, DURATION, TIMER(keepalive_jitter), 0,
     OPTION_YEAR_NS, "DUR        spread of IDLE over the connections (500ms)"},
    {"drop", 'D', 0, PERCENT, AT(drop), 0, 100,
     "PERCENT    share of own sends lost on purpose (0)"},
    {"seed", 0, 0, NUMBER64, AT(seed), 0, 18446744073709551615.0,
     "N          of the losses (1)"},
    {"port", 'p', 0, NUMBER32, AT(port), 1, 65535,
     "N          TCP port of the exchange (7471)"},
    {"wait", 'w', 0, DURATION, AT(wait), 0, OPTION_YEAR_NS,
     "DUR        try as long to reach the server (0)"},
    {"timeout", 't', 0, DURATION, AT(timeout), 0, OPTION_YEAR_NS,
     "DUR        give up after as long; 0: never (0)"},
    {"oneway", 'o', 0, FLAG, AT(oneway), 0, 0,
     "           the client sends, the server receives"},
    {"idle", 0, 0, DURATION, AT(idle), 0, OPTION_YEAR_NS,
     "DUR        stay connected for as long before anything is sent (0)"},
    {"cm", 0, OPTIONS_OF_VERBS, FLAG, AT(cm), 0, 0,
     "           meet by rdma_cm at --port, not TCP; HOST says which device"},
    {"events", 'e', OPTIONS_OF_VERBS | OPTIONS_OF_UCX, FLAG, AT(events), 0, 0,
     "           sleep until something comes or is due, instead of polling"},
    {"quiet", 'q', 0, FLAG, AT(quiet), 0, 0,
     "           print the summary only"},
    {"help", 'h', 0, HELP, 0, 0, 0, "           this"},
};

#define SPECS (sizeof(specs) / sizeof(specs[0]))
/* What getopt_long() returns for the first one's name: no letter. */
#define LONG_OPTION 256

static bool is_of(const option_spec_t *spec, options_of_t of)
{
    return spec->of == 0 || (spec->of & of) != 0;
}

static void print_help(options_of_t of)
{
    printf("Usage: %s [OPTION]... [HOST]\n"
           "Ping-pong whose losses and dead peers Lawn's timers find. Without "
           "HOST be the\nserver, with it the client of that server. Durations "
           "are in ns, us, ms or s\n(ms without a unit).\n\n",
           program_name);
    for (size_t i = 0; i < SPECS; ++i) {
        char letter[8] = "   ";
        if (!is_of(&specs[i], of)) {
            continue;
        }
        if (specs[i].letter) {
            snprintf(letter, sizeof(letter), "-%c,", specs[i].letter);
        }
        printf("  %s --%-17s %s\n", letter, specs[i].name, specs[i].help);
    }
    printf("\nExit status: 0 all delivered; 1 failed at run time; 2 bad "
           "command line; 3 peer\ndeclared dead; 4 delivery violated; 5 "
           "--timeout; 130, 143 interrupted.\n");
}

static void set_defaults(options_t *options)
{
    memset(options, 0, sizeof(*options));
    options->ib_port = 1;
    options->iters = 20;
    options->size = 64;
    options->connections = 1;
    options->window = 1;
    options->port = 7471;
    options->seed = 1;
    lawn_conn_params_t *timers = &options->timers;
    lawn_conn_params_init(timers);
    timers->rto_max = lawn_time_from_sec(1);
    timers->peer_timeout = lawn_time_from_sec(10);
    timers->keepalive_idle = lawn_time_from_sec(2);
    timers->keepalive_interval = lawn_time_from_msec(500);
    timers->keepalive_probes = 3;
    timers->keepalive_jitter = lawn_time_from_msec(500);
}

/* Checks what depends on several options. */
static bool finish(const options_t *options)
{
    const lawn_conn_params_t *timers = &options->timers;
    if (timers->rto_min > timers->rto_max) {
        complain("--rto-min is above --rto-max");
        return false;
    }
    if (options->is_rc && options->drop > 0) {
        complain("--drop needs --mode ud: rc does not lose anything");
        return false;
    }
    if (options->cm &&
        (options->device || options->ib_port != 1 || options->gid_index != 0)) {
        complain("--cm finds the device by HOST: give no --device, --ib-port "
                 "or --gid-index");
        return false;
    }
    return true;
}

/* Writes the options in the form that getopt_long() takes. */
static void describe(options_of_t of, struct option *names, char *letters)
{
    size_t used = 0;
    letters[used++] = ':';
    for (size_t i = 0; i < SPECS; ++i) {
        bool takes_value = specs[i].kind != FLAG && specs[i].kind != HELP;
        if (!is_of(&specs[i], of)) {
            continue;
        }
        names->name = specs[i].name;
        names->has_arg = takes_value ? required_argument : no_argument;
        names->val = LONG_OPTION + (int)i;
        ++names;
        if (specs[i].letter) {
            letters[used++] = specs[i].letter;
            letters[used] = ':';
            used += takes_value;
        }
    }
    letters[used] = '\0';
}

/* getopt_long() may stay at an argument of which one letter is bad, and goes on
 * from any other. */
static void complain_option(int found, char **argv)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    const bool is_letter = optopt > 0 && optopt < LONG_OPTION;
    complain(found == ':' ? "%s needs a value (see --help)"
                          : "bad option %s (see --help)",
             is_letter ? letter : argv[optind - 1]);
}

options_result_t options_parse(int argc, char **argv, options_of_t of,
                               options_t *options)
{
    struct option names[SPECS + 1];
    char letters[2 * SPECS + 2];
    memset(names, 0, sizeof(names));
    describe(of, names, letters);
    set_defaults(options);
    opterr = 0;
    int found;
    while ((found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        size_t i = 0;
        while (i < SPECS && found != LONG_OPTION + (int)i &&
               found != specs[i].letter) {
            ++i;
        }
        if (i == SPECS) {
            complain_option(found, argv);
            return OPTIONS_BAD;
        }
        if (specs[i].kind == HELP) {
            print_help(of);
            return OPTIONS_HELP;
        }
        if (!option_parse(&specs[i], optarg, options)) {
            return OPTIONS_BAD;
        }
    }
    if (argc - optind > 1) {
        complain("more than one HOST: %s", argv[optind + 1]);
        return OPTIONS_BAD;
    }
    options->host = argv[optind];
    return finish(options) ? OPTIONS_RUN : OPTIONS_BAD;
}
