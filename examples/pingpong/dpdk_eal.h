/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * DPDK's environment (EAL) and its part of the command line. As in every DPDK
 * program, this is the part before "--".
 */
#ifndef PINGPONG_DPDK_EAL_H
#define PINGPONG_DPDK_EAL_H

#include <stdbool.h>

typedef struct {
    int count;
    char **values;
    bool are_given; /* there is a "--" */
} eal_arguments_t;

/* Removes EAL's arguments from the front of the command line. */
eal_arguments_t eal_split(int *argc, char ***argv);

/* Starts EAL. On failure, returns false after one line on stderr. */
bool eal_start(const eal_arguments_t *arguments);

/* Ends EAL. Call it at the end of the process, when all ports are closed. */
void eal_stop(void);

/* After this call, EAL's interrupt thread does nothing. May be called more than
 * once. */
void eal_park_interrupts(void);

/* Whether one of the arguments names a device, which brings a port. */
bool eal_names_device(const eal_arguments_t *arguments);

/* Prints the help on EAL's arguments, after the help on our own options. */
void eal_print_help(void);

#endif
