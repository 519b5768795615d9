/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Parsing from a table: each option has a kind, a range and a place in
 * options_t, and the help is printed from the same table. A number counts only
 * if all of it is one and it is in its range.
 */
#include "options.h"

#include "session.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FLAG,
    TEXT,
    NUMBER32,
    NUMBER64,
    DURATION,
    PERCENT,
    MODE,
    KEEPALIVE,
    HELP
} kind_t;

typedef struct {
    const char *name;
    char letter;
    kind_t kind;
    size_t offset;
    double min; /* durations: nanoseconds */
    double max;
    const char *help;
} option_spec_t;

#define AT(field) offsetof(options_t, field)
#define TIMER(field) offsetof(options_t, timers.field)
#define YEAR_NS (365.0 * 86400 * 1e9)

static const option_spec_t specs[] = {
    {"device", 'd', TEXT, AT(device), 0, 0,
     "NAME       RDMA device (the first with an active port)"},
    {"ib-port", 'i', NUMBER32, AT(ib_port), 1, 255, "N          its port (1)"},
    {"gid-index", 'g', NUMBER32, AT(gid_index), 0, 65535,
     "N          its GID (0)"},
    {"mode", 'm', MODE, 0, 0, 0, "ud|rc      kind of queue pair (ud)"},
    {"iters", 'n', NUMBER32, AT(iters), 1, SESSION_MAX_ITERS,
     "N          messages per connection and direction (20)"},
    {"size", 's', NUMBER32, AT(size), 0, 1 << 20,
     "BYTES      payload of a message (64)"},
    {"connections", 'c', NUMBER32, AT(connections), 1, SESSION_MAX_CONNECTIONS,
     "N          logical connections over the queue pair (1)"},
    {"rto", 'r', DURATION, TIMER(rto_initial), 1, YEAR_NS,
     "DUR        RTO until a round trip is measured (20ms)"},
    {"rto-min", 0, DURATION, TIMER(rto_min), 1, YEAR_NS,
     "DUR        least RTO (1ms, or --rto)"},
    {"rto-max", 0, DURATION, TIMER(rto_max), 1, YEAR_NS,
     "DUR        largest RTO (1s, or --rto)"},
    {"rto-fixed", 0, DURATION, TIMER(rto_fixed), 1, YEAR_NS,
     "DUR        the RTO, whatever is measured"},
    {"max-retries", 0, NUMBER32, TIMER(max_retries), 0, 1e6,
     "N          dead after as many; 0: no limit (0)"},
    {"peer-timeout", 0, DURATION, TIMER(peer_timeout), 0, YEAR_NS,
     "DUR        dead when a send waits as long; 0: no limit (10s)"},
    {"keepalive", 'k', KEEPALIVE, 0, 0, 0,
     "IDLE[,INTERVAL[,PROBES]]  when to probe; 0: never (2s,500ms,3)"},
    {"keepalive-jitter", 0, DURATION, TIMER(keepalive_jitter), 0, YEAR_NS,
     "DUR        spread of IDLE over the connections (500ms)"},
    {"drop", 'D', PERCENT, AT(drop), 0, 100,
     "PERCENT    share of own sends lost on purpose (0)"},
    {"seed", 0, NUMBER64, AT(seed), 0, 18446744073709551615.0,
     "N          of the losses (1)"},
    {"port", 'p', NUMBER32, AT(port), 1, 65535,
     "N          TCP port of the exchange (7471)"},
    {"wait", 'w', DURATION, AT(wait), 0, YEAR_NS,
     "DUR        try as long to reach the server (0)"},
    {"timeout", 't', DURATION, AT(timeout), 0, YEAR_NS,
     "DUR        give up after as long; 0: never (0)"},
    {"oneway", 'o', FLAG, AT(oneway), 0, 0,
     "           the client sends, the server receives"},
    {"quiet", 'q', FLAG, AT(quiet), 0, 0, "           print the summary only"},
    {"help", 'h', HELP, 0, 0, 0, "           this"},
};

#define SPECS (sizeof(specs) / sizeof(specs[0]))

const char *program_name = "pingpong";

void complain(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", program_name, line);
}

static bool complain_value(const option_spec_t *spec, const char *text)
{
    complain("--%s: bad value '%s' (see --help)", spec->name, text);
    return false;
}

static void print_help(void)
{
    printf("Usage: %s [OPTION]... [HOST]\n"
           "Ping-pong whose losses and dead peers Lawn's timers find. Without "
           "HOST be the\nserver, with it the client of that server. Durations "
           "are in ns, us, ms or s\n(ms without a unit).\n\n",
           program_name);
    for (size_t i = 0; i < SPECS; ++i) {
        char letter[8] = "   ";
        if (specs[i].letter) {
            snprintf(letter, sizeof(letter), "-%c,", specs[i].letter);
        }
        printf("  %s --%-17s %s\n", letter, specs[i].name, specs[i].help);
    }
    printf("\nExit status: 0 all delivered; 1 failed at run time; 2 bad "
           "command line; 3 peer\ndeclared dead; 4 delivery violated; 5 "
           "--timeout; 130, 143 interrupted.\n");
}

static bool parse_integer(const option_spec_t *spec, const char *text,
                          uint64_t *value_p)
{
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0') {
        return complain_value(spec, text);
    }
    errno = 0;
    uint64_t value = strtoull(text, NULL, 10);
    if (errno != 0 || (double)value < spec->min || (double)value > spec->max) {
        if (spec->kind == NUMBER64) {
            complain("--%s: %s does not fit into 64 bits", spec->name, text);
        } else {
            complain("--%s: %s is not within %.0f to %.0f", spec->name, text,
                     spec->min, spec->max);
        }
        return false;
    }
    *value_p = value;
    return true;
}

/* A decimal number, without the names and the hexadecimal that strtod takes.
 * Returns where it ends; NULL: there is none. */
static const char *parse_decimal(const char *text, double *value_p)
{
    size_t length = strspn(text, "0123456789.");
    char *end;
    *value_p = strtod(text, &end);
    return length != 0 && end == text + length ? end : NULL;
}

static bool parse_duration(const option_spec_t *spec, const char *text,
                           lawn_time_t *value_p)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1e6}};
    double value;
    const char *unit = parse_decimal(text, &value);
    for (size_t i = 0; unit && i < sizeof(units) / sizeof(units[0]); ++i) {
        if (strcmp(unit, units[i].name) == 0) {
            double ns = value * units[i].ns;
            if (ns < spec->min || ns > spec->max) {
                complain("--%s: %s is out of range", spec->name, text);
                return false;
            }
            *value_p = lawn_time_from_nsec(ns);
            return true;
        }
    }
    return complain_value(spec, text);
}

static bool parse_percent(const option_spec_t *spec, const char *text,
                          double *share_p)
{
    double value;
    const char *end = parse_decimal(text, &value);
    if (!end || *end != '\0' || !(value < spec->max)) {
        complain("--%s: '%s' is not a percentage below 100", spec->name, text);
        return false;
    }
    *share_p = value / 100;
    return true;
}

/* IDLE[,INTERVAL[,PROBES]] */
static bool parse_keepalive(const option_spec_t *spec, const char *text,
                            lawn_conn_params_t *timers)
{
    char copy[128];
    if (strlen(text) >= sizeof(copy)) {
        return complain_value(spec, text);
    }
    memcpy(copy, text, strlen(text) + 1);
    char *interval = strchr(copy, ',');
    char *probes = NULL;
    if (interval) {
        *interval++ = '\0';
        probes = strchr(interval, ',');
        if (probes) {
            *probes++ = '\0';
        }
    }
    option_spec_t range = *spec;
    range.max = YEAR_NS;
    if (!parse_duration(&range, copy, &timers->keepalive_idle)) {
        return false;
    }
    range.min = 1;
    if (interval &&
        !parse_duration(&range, interval, &timers->keepalive_interval)) {
        return false;
    }
    range.max = 1e6;
    uint64_t count = timers->keepalive_probes;
    if (probes && !parse_integer(&range, probes, &count)) {
        return false;
    }
    timers->keepalive_probes = (unsigned)count;
    return true;
}

static bool parse_mode(const option_spec_t *spec, const char *text,
                       options_t *options)
{
    options->is_rc = strcmp(text, "rc") == 0;
    if (!options->is_rc && strcmp(text, "ud") != 0) {
        complain("--%s: '%s' is neither ud nor rc", spec->name, text);
        return false;
    }
    return true;
}

static bool parse_option(const option_spec_t *spec, const char *text,
                         options_t *options)
{
    void *at = (char *)options + spec->offset;
    uint64_t number = 0;
    switch (spec->kind) {
    case FLAG:
        *(bool *)at = true;
        return true;
    case TEXT:
        *(const char **)at = text;
        return *text != '\0' || complain_value(spec, text);
    case NUMBER32:
        if (!parse_integer(spec, text, &number)) {
            return false;
        }
        *(uint32_t *)at = (uint32_t)number;
        return true;
    case NUMBER64:
        return parse_integer(spec, text, at);
    case DURATION:
        return parse_duration(spec, text, at);
    case PERCENT:
        return parse_percent(spec, text, at);
    case MODE:
        return parse_mode(spec, text, options);
    case KEEPALIVE:
        return parse_keepalive(spec, text, &options->timers);
    case HELP:
        break;
    }
    return true;
}

static void set_defaults(options_t *options)
{
    memset(options, 0, sizeof(*options));
    options->ib_port = 1;
    options->iters = 20;
    options->size = 64;
    options->connections = 1;
    options->port = 7471;
    options->seed = 1;
    lawn_conn_params_t *timers = &options->timers;
    lawn_conn_params_init(timers);
    timers->rto_initial = lawn_time_from_msec(20);
    timers->rto_min = 0; /* 0 until all is read: not given */
    timers->rto_max = 0;
    timers->peer_timeout = lawn_time_from_sec(10);
    timers->keepalive_idle = lawn_time_from_sec(2);
    timers->keepalive_interval = lawn_time_from_msec(500);
    timers->keepalive_probes = 3;
    timers->keepalive_jitter = lawn_time_from_msec(500);
}

/* What no single option can tell. */
static bool finish(options_t *options)
{
    lawn_conn_params_t *timers = &options->timers;
    lawn_time_t given_min = timers->rto_min;
    lawn_time_t given_max = timers->rto_max;
    lawn_time_t least = lawn_time_from_msec(1);
    lawn_time_t most = lawn_time_from_sec(1);
    lawn_time_t rto = timers->rto_initial;
    if (!given_min) {
        timers->rto_min = rto < least ? rto : least;
        if (given_max && given_max < timers->rto_min) {
            timers->rto_min = given_max;
        }
    }
    if (!given_max) {
        timers->rto_max = rto > most ? rto : most;
        if (timers->rto_max < timers->rto_min) {
            timers->rto_max = timers->rto_min;
        }
    }
    if (timers->rto_min > timers->rto_max) {
        complain("--rto-min is above --rto-max");
        return false;
    }
    if (rto < timers->rto_min) {
        timers->rto_initial = timers->rto_min;
    } else if (rto > timers->rto_max) {
        timers->rto_initial = timers->rto_max;
    }
    if (options->is_rc && options->drop > 0) {
        complain("--drop needs --mode ud: rc does not lose anything");
        return false;
    }
    return true;
}

options_result_t options_parse(int argc, char **argv, options_t *options)
{
    struct option names[SPECS + 1];
    char letters[2 * SPECS + 2] = ":";
    size_t used = 1;
    memset(names, 0, sizeof(names));
    for (size_t i = 0; i < SPECS; ++i) {
        bool takes_value = specs[i].kind != FLAG && specs[i].kind != HELP;
        names[i].name = specs[i].name;
        names[i].has_arg = takes_value ? required_argument : no_argument;
        names[i].val = 256 + (int)i;
        if (specs[i].letter) {
            letters[used++] = specs[i].letter;
            letters[used++] = takes_value ? ':' : '\0';
            used -= !takes_value;
        }
    }
    set_defaults(options);
    opterr = 0;
    int found;
    while ((found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        size_t i = 0;
        while (i < SPECS && found != 256 + (int)i && found != specs[i].letter) {
            ++i;
        }
        if (i == SPECS) {
            complain(found == ':' ? "%s needs a value (see --help)"
                                  : "bad option %s (see --help)",
                     argv[optind - 1]);
            return OPTIONS_BAD;
        }
        if (specs[i].kind == HELP) {
            print_help();
            return OPTIONS_HELP;
        }
        if (!parse_option(&specs[i], optarg, options)) {
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
