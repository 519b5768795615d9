/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The connection manager's part of --cm: its event channel. The program waits
 * for the channel while the two sides meet, and polls it afterwards.
 *
 * In RC, the kernel disconnects for a process that dies: the event DISCONNECTED
 * comes on the channel, whose fd is a source of the engine. If a host dies or a
 * process hangs, there is no event. Keepalive finds these.
 */
#include "verbs_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

void verbs_cm_acknowledge(verbs_cm_t *cm)
{
    if (cm->event) {
        rdma_ack_cm_event(cm->event);
        cm->event = NULL;
    }
}

void verbs_cm_drop_id(verbs_cm_t *cm)
{
    verbs_cm_acknowledge(cm); /* rdma_destroy_id() waits for this */
    if (cm->id) {
        rdma_destroy_id(cm->id);
        cm->id = NULL;
    }
}

/* Waits for the next event, which is valid until the next call. On failure,
 * errno has the reason. */
static bool next_event(verbs_cm_t *cm)
{
    verbs_cm_acknowledge(cm);
    while (exchange_wait(cm->exchange, POLLIN, cm->limit)) {
        if (rdma_get_cm_event(cm->channel, &cm->event) == 0) {
            return true;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return false;
        }
    }
    return false;
}

bool verbs_cm_expect(verbs_cm_t *cm, int called, enum rdma_cm_event_type wanted)
{
    if (called != 0 || !next_event(cm)) {
        return false;
    }
    if (cm->event->event == wanted) {
        return true;
    }
    /* If the status is negative, it is a negative errno. */
    errno = cm->event->status < 0 ? -cm->event->status : ECONNREFUSED;
    return false;
}

bool verbs_cm_open(transport_t *v)
{
    verbs_cm_t *cm = calloc(1, sizeof(*cm));
    v->cm = cm;
    if (!cm) {
        complain("no memory");
        return false;
    }
    cm->channel = rdma_create_event_channel();
    int flags = cm->channel ? fcntl(cm->channel->fd, F_GETFL) : -1;
    if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        complain("no rdma_cm here: %s", strerror(errno));
        return false;
    }
    return true;
}

void verbs_cm_close(transport_t *v)
{
    verbs_cm_t *cm = v->cm;
    if (!cm) {
        return;
    }
    verbs_cm_drop_id(cm); /* disconnects */
    if (cm->channel) {
        rdma_destroy_event_channel(cm->channel);
    }
    free(cm);
}

int verbs_cm_fd(const transport_t *v)
{
    return v->cm->channel->fd;
}

/* Reads everything that came before the disconnect first: a peer that has
 * finished disconnects right after its last message. */
static void connection_lost(transport_t *v, const char *why)
{
    lawn_verbs_cq_progress(&v->completions);
    if (!v->failed && !session_is_complete(v->session)) {
        complain("connection lost: %s", why);
    }
    v->failed = true;
}

unsigned verbs_cm_poll(transport_t *v)
{
    unsigned total = 0;
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(v->cm->channel, &event) == 0) {
        enum rdma_cm_event_type type = event->event;
        rdma_ack_cm_event(event);
        ++total;
        if (type == RDMA_CM_EVENT_DISCONNECTED) {
            connection_lost(v, "the peer has disconnected");
        } else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
            connection_lost(v, "the device is gone");
        }
    }
    if (errno != EAGAIN && errno != EINTR) {
        connection_lost(v, strerror(errno));
    }
    return total;
}
