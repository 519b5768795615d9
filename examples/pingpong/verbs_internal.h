/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the verbs transport share:
 *   - verbs_open.c sets it up;
 *   - verbs_qp.c moves the queue pair through its states;
 *   - verbs.c is the data path;
 *   - verbs_sources.c has the sources that the engine polls and sleeps on;
 *   - verbs_cm.h has what the parts of --cm share.
 */
#ifndef PINGPONG_VERBS_INTERNAL_H
#define PINGPONG_VERBS_INTERNAL_H

#include "transport.h"

#include <lawn/verbs_events.h>

/* Bytes in front of every datagram that a UD queue pair receives. */
#define GRH_SIZE 40u

/* The key of both sides. A UD queue pair receives nothing without it. */
#define VERBS_UD_QKEY 0x4c61776eu

/* Receives posted with one call: as many as completions are taken with one. */
#define BATCH ((uint32_t)LAWN_VERBS_BATCH)

/* Tells a completion of a send from that of a receive, because the opcode of a
 * failed completion is not valid. The rest of a send's wr_id counts sends. */
#define SEND_BIT ((uint64_t)1 << 63)

typedef struct verbs_cm verbs_cm_t;

struct transport {
    const options_t *options;
    bool is_ud;
    char name[96];
    verbs_cm_t *cm;     /* NULL: without */
    const char *device; /* NULL: any */
    uint32_t ib_port;
    uint32_t gid_index;
    struct ibv_context *context;
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* of the CQ; NULL: it is polled */
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_ah *ah; /* UD */
    uint32_t psn;
    uint32_t peer_qpn;
    uint32_t peer_psn;
    uint32_t peer_window;
    enum ibv_mtu path_mtu;

    /* Registered memory: receive slots, then send slots. */
    uint8_t *memory;
    size_t recv_stride;
    size_t send_stride;
    uint32_t recv_depth;
    uint32_t send_depth;
    uint64_t sends_posted;
    uint64_t sends_completed;

    uint32_t returned; /* receive slots to post again */
    struct ibv_recv_wr recv_wr[BATCH];
    struct ibv_sge recv_sge[BATCH];

    lawn_engine_t *engine;
    lawn_verbs_cq_t completions;
    lawn_verbs_events_t events;
    lawn_source_t *cm_source;
    session_t *session;
    lawn_time_t cm_due;
    lawn_timer_t recovery; /* UD: repairs a queue pair in error */
    bool broken;           /* in error, and may be recovered */
    bool complained;
    bool failed;
};

static inline uint8_t *recv_slot(const transport_t *v, uint64_t slot)
{
    return v->memory + slot * v->recv_stride;
}

static inline uint8_t *send_slot(const transport_t *v, uint64_t slot)
{
    return v->memory + v->recv_depth * v->recv_stride + slot * v->send_stride;
}

/* Opens the device, port and GID that `v` names, and makes all queues. */
bool verbs_open_queues(transport_t *v);

/* The callbacks of the completion queue: a completion, the end of a batch, and
 * the end of a pass, which sends. */
void verbs_completed(void *arg, const struct ibv_wc *wc);
void verbs_batched(void *arg);
unsigned verbs_flush(void *arg);

/* Call it when the queue pair is in error. */
void verbs_queue_pair_failed(transport_t *v, const char *what, const char *why);

/* The callback of a timer: brings a UD queue pair back from its error. */
void verbs_recover(lawn_timer_t *timer, lawn_time_t now);

/* Meeting by rdma_cm. Without librdmacm, open prints an error and the other
 * functions do nothing. `cm` may be NULL if a transport_t is closed half
 * open. */
bool verbs_cm_open(transport_t *v);
void verbs_cm_close(transport_t *v);
/* Finds the GID index of the address that the connection manager has chosen. */
bool verbs_cm_find_gid(transport_t *v);
/* The fd is readable when verbs_cm_poll() has something to do. That function
 * takes the channel's events and returns how many it took. */
int verbs_cm_fd(const transport_t *v);
unsigned verbs_cm_poll(transport_t *v);

/* These functions change the state of the queue pair. On failure, errno has the
 * reason. */
bool verbs_qp_init(transport_t *v);
bool verbs_qp_reset(transport_t *v);
bool verbs_qp_connect(transport_t *v, const struct ibv_ah_attr *peer);
/* The same for RC, with attributes that rdma_cm has filled in, including the
 * state. The constants of verbs_qp.c replace those of rdma_cm. */
bool verbs_qp_follow(transport_t *v, struct ibv_qp_attr *attr, int mask);

/* Returns a receive slot. It is posted with the rest of its batch. */
void verbs_return_slot(transport_t *v, uint64_t slot);
bool verbs_post_returned(transport_t *v);
bool verbs_post_all(transport_t *v);

#endif
