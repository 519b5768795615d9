/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What ucs_compat_program.c did. It is built twice, under two names.
 */
#ifndef LAWN_TEST_UCS_COMPAT_PROGRAM_H
#define LAWN_TEST_UCS_COMPAT_PROGRAM_H

enum { PROGRAM_PEERS = 64 };

struct program_result {
    int status;                    /* of the set-up and of each add; 0 is OK */
    unsigned sends[PROGRAM_PEERS]; /* of the message, again ones included */
    unsigned acked;
    unsigned given_up;
    unsigned busy; /* adds of a timer that runs */
    unsigned keepalives;
    unsigned statistics;
    int is_empty; /* wheel and queue, at the end */
};

#ifdef __cplusplus
extern "C" {
#endif

void program_on_lawn(struct program_result *result);
void program_on_libucs(struct program_result *result);

#ifdef __cplusplus
}
#endif

#endif
