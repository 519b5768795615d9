/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A program as it is written for DPDK's timers: a transport that sends a
 * message to each of its peers, again until it is acknowledged, less often each
 * time, and gives up in the end. Which timers it runs on is up to who compiles
 * it.
 *
 * It runs on the TSC, in some ten milliseconds, but what happens depends on how
 * often a timer fired, not on when: it does the same on any timers that are
 * right.
 */

#include "rte_compat_program.h"

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_timer.h>

#include <string.h>

enum { MAX_SENDS = 6, STATISTICS = 5 };

struct peer {
    unsigned index;
    uint64_t rto;
    struct rte_timer timer;
    rte_spinlock_t lock; /* is there by <rte_timer.h> alone */
    struct program_result *result;
};

/* How many sends it takes until this peer answers. */
static unsigned sends_wanted(const struct peer *peer)
{
    return peer->index % (MAX_SENDS + 2) + 1;
}

static void on_timeout(struct rte_timer *timer, void *arg);

static void send_message(struct peer *peer)
{
    rte_spinlock_lock(&peer->lock);
    peer->result->sends[peer->index]++;
    rte_spinlock_unlock(&peer->lock);
    if (rte_timer_reset(&peer->timer, peer->rto, SINGLE, rte_lcore_id(),
                        on_timeout, peer) != 0) {
        peer->result->errors++;
    }
    peer->rto *= 2;
}

static void on_timeout(struct rte_timer *timer, void *arg)
{
    struct peer *const peer = arg;
    if (timer != &peer->timer || rte_timer_pending(timer)) {
        peer->result->errors++;
    }
    if (peer->result->sends[peer->index] == MAX_SENDS) {
        peer->result->given_up++;
    } else {
        send_message(peer);
    }
}

static void on_statistics(struct rte_timer *timer, void *arg)
{
    struct program_result *const result = arg;
    if (++result->statistics == STATISTICS && rte_timer_stop(timer) != 0) {
        result->errors++;
    }
}

static void poll_answers(struct peer *peers)
{
    unsigned i;
    for (i = 0; i < PROGRAM_PEERS; ++i) {
        struct peer *const peer = &peers[i];
        if (rte_timer_pending(&peer->timer) &&
            peer->result->sends[i] == sends_wanted(peer)) {
            rte_timer_stop_sync(&peer->timer);
            peer->result->acked++;
        }
    }
}

void PROGRAM(struct program_result *result)
{
    static struct peer peers[PROGRAM_PEERS];
    static struct rte_timer statistics = RTE_TIMER_INITIALIZER;
    const uint64_t usec = rte_get_timer_hz() / 1000000;
    unsigned i;

    memset(result, 0, sizeof *result);
    rte_timer_reset_sync(&statistics, 50 * usec, PERIODICAL, rte_lcore_id(),
                         on_statistics, result);
    for (i = 0; i < PROGRAM_PEERS; ++i) {
        peers[i].index = i;
        peers[i].rto = (20 + i) * usec;
        peers[i].result = result;
        rte_timer_init(&peers[i].timer);
        rte_spinlock_init(&peers[i].lock);
        send_message(&peers[i]);
    }
    while (result->acked + result->given_up < PROGRAM_PEERS ||
           result->statistics < STATISTICS) {
        /* As often as there are passes: a peer is never one send ahead. */
        poll_answers(peers);
        rte_timer_manage();
    }
    for (i = 0; i < PROGRAM_PEERS; ++i) {
        result->pending += (unsigned)rte_timer_pending(&peers[i].timer);
    }
    result->pending += (unsigned)rte_timer_pending(&statistics);
}
