/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What rte_compat_program.c did. It is built twice, under two names.
 */
#ifndef LAWN_TEST_RTE_COMPAT_PROGRAM_H
#define LAWN_TEST_RTE_COMPAT_PROGRAM_H

enum { PROGRAM_PEERS = 64 };

struct program_result {
    unsigned errors;
    unsigned sends[PROGRAM_PEERS]; /* of the message, again ones included */
    unsigned acked;
    unsigned given_up;
    unsigned statistics;
    unsigned pending; /* at the end */
};

#ifdef __cplusplus
extern "C" {
#endif

void program_on_lawn(struct program_result *result);
void program_on_dpdk(struct program_result *result);

#ifdef __cplusplus
}
#endif

#endif
