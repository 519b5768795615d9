/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * One option: its kind, its range and its place in options_t. options.c has a
 * table of all options, and reads the command line and prints the help by it.
 */
#ifndef PINGPONG_OPTION_SPEC_H
#define PINGPONG_OPTION_SPEC_H

#include "options.h"

#define OPTION_YEAR_NS (365.0 * 86400 * 1e9)

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
} option_kind_t;

typedef struct {
    const char *name;
    char letter;
    unsigned of; /* a set of options_of_t; 0: all programs */
    option_kind_t kind;
    size_t offset; /* in options_t */
    double min;    /* durations: nanoseconds */
    double max;
    const char *help;
} option_spec_t;

/* Puts the value `text` of an option into `options`. On failure, returns false
 * after one line on stderr. */
bool option_parse(const option_spec_t *spec, const char *text,
                  options_t *options);

#endif
