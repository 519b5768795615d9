/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A program as it is written for UCX's timers: a transport that sends a message
 * to each of its peers, again until it is acknowledged, less often each time,
 * and gives up in the end. Which timers it runs on is up to who compiles it.
 *
 * Time is counted, in whole slots, and what happens depends on how often a
 * timer fired, not on when: it does the same on any timers that are right.
 */

#include "ucs_compat_program.h"

#include <stddef.h>
#include <string.h>

enum {
    RESOLUTION = 1024,
    RTO = 4 * RESOLUTION,
    MAX_SENDS = 6,
    KEEPALIVE_ID = 7,
    STATISTICS_ID = 9
};

struct transport {
    ucs_twheel_t wheel;
    ucs_timer_queue_t periodic;
    struct program_result *result;
};

struct peer {
    unsigned index;
    ucs_time_t rto;
    ucs_wtimer_t timer;
    int is_waiting; /* for an answer */
    struct transport *transport;
};

/* How many sends it takes until this peer answers. */
static unsigned sends_wanted(const struct peer *peer)
{
    return peer->index % (MAX_SENDS + 2) + 1;
}

static void note(struct transport *transport, ucs_status_t status)
{
    if (status == UCS_ERR_BUSY) {
        transport->result->busy++;
    } else if (status != UCS_OK) {
        transport->result->status = status;
    }
}

static void send_message(struct peer *peer)
{
    struct transport *const transport = peer->transport;
    transport->result->sends[peer->index]++;
    note(transport, ucs_wtimer_add(&transport->wheel, &peer->timer, peer->rto));
    /* Whoever sends makes sure that the timer runs. */
    note(transport, ucs_wtimer_add(&transport->wheel, &peer->timer, peer->rto));
    peer->rto *= 2;
}

static void on_timeout(ucs_wtimer_t *self)
{
    struct peer *const peer = ucs_container_of(self, struct peer, timer);
    struct program_result *const result = peer->transport->result;
    if (result->sends[peer->index] == MAX_SENDS) {
        result->given_up++;
        peer->is_waiting = 0;
    } else {
        send_message(peer);
    }
}

static void poll_answers(struct transport *transport, struct peer *peers)
{
    unsigned i;
    for (i = 0; i < PROGRAM_PEERS; ++i) {
        if (peers[i].is_waiting &&
            transport->result->sends[i] == sends_wanted(&peers[i])) {
            ucs_wtimer_remove(&transport->wheel, &peers[i].timer);
            ucs_wtimer_remove(&transport->wheel, &peers[i].timer);
            peers[i].is_waiting = 0;
            transport->result->acked++;
        }
    }
}

static void run_periodic(struct transport *transport, ucs_time_t now)
{
    ucs_timer_t *timer;
    ucs_timerq_for_each_expired(timer, &transport->periodic, now, {
        if (timer->id == KEEPALIVE_ID) {
            transport->result->keepalives++;
            continue;
        }
        transport->result->statistics++;
        if (ucs_timerq_size(&transport->periodic) == 1) {
            break;
        }
    })
}

void PROGRAM(struct program_result *result)
{
    static struct peer peers[PROGRAM_PEERS];
    struct transport transport;
    ucs_time_t now = 1000 * RESOLUTION;
    unsigned i;

    memset(result, 0, sizeof *result);
    transport.result = result;
    note(&transport, ucs_twheel_init(&transport.wheel, RESOLUTION, now));
    note(&transport, ucs_timerq_init(&transport.periodic));
    note(&transport,
         ucs_timerq_add(&transport.periodic, KEEPALIVE_ID, 100 * RESOLUTION));
    note(&transport,
         ucs_timerq_add(&transport.periodic, STATISTICS_ID, 40 * RESOLUTION));
    if (ucs_timerq_add(&transport.periodic, STATISTICS_ID, 1) !=
            UCS_ERR_ALREADY_EXISTS ||
        ucs_timerq_min_interval(&transport.periodic) != 40 * RESOLUTION) {
        result->status = -1;
    }
    for (i = 0; i < PROGRAM_PEERS; ++i) {
        peers[i].index = i;
        peers[i].rto = RTO;
        peers[i].transport = &transport;
        peers[i].is_waiting = 1;
        note(&transport, ucs_wtimer_init(&peers[i].timer, on_timeout));
        send_message(&peers[i]);
    }
    for (i = 0; i < 1000; ++i) {
        poll_answers(&transport, peers);
        ucs_twheel_sweep(&transport.wheel, now);
        run_periodic(&transport, now);
        if (ucs_twheel_get_time(&transport.wheel) != now) {
            result->status = -1;
        }
        now += RESOLUTION;
    }
    note(&transport, ucs_timerq_remove(&transport.periodic, KEEPALIVE_ID));
    note(&transport, ucs_timerq_remove(&transport.periodic, STATISTICS_ID));
    if (ucs_timerq_remove(&transport.periodic, KEEPALIVE_ID) !=
        UCS_ERR_NO_ELEM) {
        result->status = -1;
    }
    result->is_empty =
        ucs_twheel_is_empty(&transport.wheel) &&
        ucs_timerq_is_empty(&transport.periodic) &&
        ucs_timerq_min_interval(&transport.periodic) == UCS_TIME_INFINITY;
    ucs_timerq_cleanup(&transport.periodic);
    ucs_twheel_cleanup(&transport.wheel);
}
