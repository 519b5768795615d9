/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What any program over RC needs, and rc_deadline.c is not about: a device, a
 * queue pair that goes through its states, and TCP to meet a peer. What fails
 * here ends the program with one line, unless a function returns something.
 */
#ifndef RC_LINK_H
#define RC_LINK_H

#include <infiniband/verbs.h>

#include <stdbool.h>
#include <stddef.h>

/* What each tells the other. */
typedef struct {
    union ibv_gid gid;
    uint32_t qpn;
    uint32_t psn;
    uint64_t count; /* the client: of its requests; the server: that it has */
} rc_address_t;

typedef struct {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    rc_address_t mine;
    rc_address_t theirs;
    int fd; /* of TCP, or -1 */
} rc_link_t;

/* Ends the program with a line that has `what`, and errno, if not `is_well`. */
void rc_check(bool is_well, const char *what);

/* Opens `device`, or the first, with queues of `depth`, and `memory` of `size`
 * bytes, which it registers to receive into. */
rc_link_t rc_open(const char *device, uint32_t depth, void *memory,
                  size_t size);

/* Moves the queue pair to one state. In the error state, it takes no more. */
void rc_fail(rc_link_t *link);

/* Resets the queue pair, and connects it with `theirs`: RTS. The device retries
 * so often, and 7 times is without end for RNR. */
void rc_connect(rc_link_t *link, unsigned long retries,
                unsigned long rnr_retries);

/* A socket that listens, and does not wait in accept(). */
int rc_listen(unsigned long port);

/* Hangs up, and uses this socket from now on; -1: none. */
void rc_use(rc_link_t *link, int fd);

/* Calls an address of IPv4. Gives up after a second. */
bool rc_dial(rc_link_t *link, const char *address, unsigned long port);

/* Both give up after a second. */
bool rc_tell(const rc_link_t *link); /* mine */
bool rc_hear(rc_link_t *link);       /* theirs */

#endif
