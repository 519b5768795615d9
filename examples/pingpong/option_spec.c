/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Values on the command line. A number is valid only if the whole text is a
 * number and it is in its range.
 */
#include "option_spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int finish_output(int result)
{
    const int earlier = errno; /* of a write that failed, if one has */
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return result;
    }
    const int error = errno != 0 ? errno : earlier;
    complain("standard output: %s",
             error != 0 ? strerror(error) : "a write failed");
    return result == EXIT_DELIVERED ? EXIT_FAILED : result;
}

static bool complain_value(const option_spec_t *spec, const char *text)
{
    complain("--%s: bad value '%s' (see --help)", spec->name, text);
    return false;
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
        if (errno != 0 && spec->kind == NUMBER64) {
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

/* Reads a decimal number. Names and hexadecimal numbers, which strtod accepts,
 * are not valid. Returns the end of the number, or NULL if there is none. */
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
    range.max = OPTION_YEAR_NS;
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

bool option_parse(const option_spec_t *spec, const char *text,
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
