/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * DPDK's environment (EAL) and its share of the command line: what stands
 * before "--", as with every DPDK program.
 */
#ifndef PINGPONG_DPDK_EAL_H
#define PINGPONG_DPDK_EAL_H

#include <stdbool.h>

typedef struct {
    int count;
    char **values;
    bool are_given; /* there is a "--" */
} eal_arguments_t;

/* Takes EAL's arguments away from the front of the command line. */
eal_arguments_t eal_split(int *argc, char ***argv);

/* Starts EAL. False after one line on stderr. */
bool eal_start(const eal_arguments_t *arguments);

/* When all ports are closed, at the end of the process. */
void eal_stop(void);

/* From here on nothing happens on EAL's interrupt thread. Once or more often.
 */
void eal_park_interrupts(void);

/* One of the arguments is there to bring a port. */
bool eal_names_device(const eal_arguments_t *arguments);

/* Behind the help on our own options. */
void eal_print_help(void);

#endif
