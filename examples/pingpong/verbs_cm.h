/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of --cm share. verbs_meet.c connects the two sides.
 * verbs_cm.c waits for the connection manager's events and takes them.
 */
#ifndef PINGPONG_VERBS_CM_H
#define PINGPONG_VERBS_CM_H

#include "verbs_internal.h"

#include <rdma/rdma_cma.h>

struct verbs_cm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener; /* the server's */
    struct rdma_cm_id *id;
    struct rdma_cm_event *event; /* to be acknowledged */
    exchange_t *exchange;        /* while meeting */
    lawn_time_t limit;           /* of the waits */
    uint64_t nonce;
    uint64_t peer_nonce;
    bool is_absent; /* nobody has answered yet: try again */
};

/* Acknowledges the latest event. It must not be used afterwards. */
void verbs_cm_acknowledge(verbs_cm_t *cm);

void verbs_cm_drop_id(verbs_cm_t *cm);

/* Waits for the event `wanted`, which answers a call that returned `called`. If
 * it does not come, returns false. Then errno has the reason, and cm->event is
 * the event that came instead, if any. */
bool verbs_cm_expect(verbs_cm_t *cm, int called,
                     enum rdma_cm_event_type wanted);

#endif
