/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Requests with deadlines over RC. The client sends numbers, and the server
 * gets each once and in order, whatever becomes of the way between them: when a
 * deadline passes, or the keepalive finds the host dead, lawn/verbs.h reports
 * each request. Then the two meet again over TCP, the server says how many it
 * has got, and the client goes on with the next.
 *
 *     rc_deadline [-i DEVICE] [-p PORT] [-s MS]             the server
 *     rc_deadline [-i DEVICE] [-p PORT] [OPTION...] ADDRESS
 *       -i DEVICE the RDMA device (the first), with its GID 0
 *       -p PORT   of TCP (7490); ADDRESS is of IPv4
 *       -s MS     the server is slow: a request each MS (0)
 *       -n COUNT  of requests (1000)
 *       -d MS     deadline of each request, and of each probe (500)
 *       -k MS     with nothing to send for so long, probe the host (1000)
 *       -r COUNT  of retries of the device (7: without end, on SoftRoCE)
 *       -q COUNT  of those if the server has posted no receive (7: without end)
 *       -t COUNT  of tries to meet, one each 100 ms (50)
 *       -w MS     stay so long when all is done (0)
 *
 * Exit status: 0, all is done; 1, an error; 2, bad usage; 3, the peer is dead.
 */
#include "rc_link.h"

#include <lawn/engine.h>
#include <lawn/verbs.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW 16u /* requests outstanding, and receives posted */

static const char *device, *host;
static unsigned long port = 7490, slow_ms, requests = 1000, deadline_ms = 500;
static unsigned long keepalive_ms = 1000, retries = 7, rnr_retries = 7;
static unsigned long tries = 50, wait_ms;
static unsigned long tries_left;
static rc_link_t peer;

/* The server's: what it receives, and how many receives there are: all that
 * were ever posted, and those that are now. */
static uint64_t numbers[WINDOW], posted, receives;

/* The client's. */
static lawn_engine_t *engine;
static lawn_verbs_rc_t rc;
static lawn_verbs_request_t ring[WINDOW];
static lawn_queue_t *deadline;
static lawn_timer_t again; /* meets the server */
static lawn_time_t due_at[WINDOW], heard_at, end_at, worst_late;
static uint64_t next = 1, sent, outcomes[3], found;
static int status = -1; /* of the exit, once it is known */

static void post_receive(void)
{
    const uint64_t slot = posted++ % WINDOW;
    struct ibv_sge sge = {(uintptr_t)&numbers[slot], 8, peer.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;
    errno = ibv_post_recv(peer.qp, &wr, &bad);
    rc_check(errno == 0, "receive");
    receives++;
}

static void receive(void)
{
    struct ibv_wc wc;
    if (ibv_poll_cq(peer.cq, 1, &wc) > 0) {
        receives--;
        errno = EPROTO;
        rc_check(wc.status != IBV_WC_SUCCESS ||
                     numbers[wc.wr_id] == ++peer.mine.count,
                 "lost, or carried out twice");
    }
}

/* A client has come. In the error state, nothing more is carried out of what
 * was sent before. What was carried out is in the CQ, in front of what is
 * flushed. */
static bool greet(void)
{
    if (receives > 0) {
        rc_fail(&peer);
    }
    while (receives > 0) {
        receive();
    }
    if (!rc_hear(&peer)) {
        return false;
    }
    rc_connect(&peer, retries, rnr_retries);
    while (receives < WINDOW) {
        post_receive();
    }
    return rc_tell(&peer);
}

static void serve(void)
{
    const int listener = rc_listen(port);
    char byte;
    puts("waiting for a client");
    do {
        const int fd = accept(listener, NULL, NULL);
        if (fd >= 0) {
            rc_use(&peer, fd);
            if (!greet()) {
                rc_use(&peer, -1);
            }
        }
        if (receives > 0) {
            receive();
        }
        if (peer.fd >= 0 && receives < WINDOW) {
            usleep((useconds_t)slow_ms * 1000);
            post_receive();
        }
    } while (peer.fd < 0 || recv(peer.fd, &byte, 1, MSG_DONTWAIT) <= 0);
}

static unsigned poll_cq(void *arg)
{
    const lawn_time_t now = lawn_engine_now(engine);
    struct ibv_wc wc;
    struct ibv_send_wr *bad;
    unsigned count = 0;
    (void)arg;
    while (count < 2 * WINDOW && ibv_poll_cq(peer.cq, 1, &wc) > 0) {
        heard_at = wc.status == IBV_WC_SUCCESS ? now : heard_at;
        lawn_verbs_complete(&rc, &wc, now);
        count++;
    }
    while (rc.state == LAWN_VERBS_OPEN && next <= requests) {
        struct ibv_sge sge = {(uintptr_t)&next, sizeof(next), 0};
        struct ibv_send_wr wr = {.wr_id = next,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags =
                                     IBV_SEND_SIGNALED | IBV_SEND_INLINE};
        if (lawn_verbs_post(&rc, deadline, now, &wr, &bad) != LAWN_OK) {
            break; /* as many are outstanding as may be */
        }
        due_at[next++ % WINDOW] = now + lawn_queue_ttl(deadline);
        sent++;
    }
    if (rc.state == LAWN_VERBS_OPEN && rc.first == rc.next && next > requests) {
        end_at = end_at ? end_at : now + lawn_time_from_msec((double)wait_ms);
        status = now >= end_at ? 0 : -1;
    }
    return count;
}

static bool report(lawn_verbs_rc_t *one, uint64_t number,
                   lawn_verbs_outcome_t outcome, enum ibv_wc_status why,
                   lawn_time_t now)
{
    const lawn_time_t due = due_at[number % WINDOW];
    (void)one;
    (void)why;
    outcomes[outcome]++;
    worst_late = now > due + worst_late ? now - due : worst_late;
    return true;
}

static bool failed(lawn_verbs_rc_t *one, lawn_time_t now)
{
    static const char *const why[] = {"",          "",       "deadline",
                                      "keepalive", "device", "program"};
    printf("failed: %s, %s, %.3f s after the latest answer\n", why[one->state],
           ibv_wc_status_str(one->status), lawn_time_to_sec(now - heard_at));
    lawn_engine_start(engine, &again, 0);
    return true;
}

/* Requests are carried out in order. So what the server has beyond those that
 * are known to be done, it has of those that are not known. */
static void meet(lawn_timer_t *timer, lawn_time_t now)
{
    static const lawn_verbs_ops_t ops = {report, failed};
    if (!rc_dial(&peer, host, port) || !rc_tell(&peer) || !rc_hear(&peer)) {
        status = --tries_left == 0 ? 3 : -1;
        lawn_engine_start(engine, timer, lawn_time_from_msec(100));
        return;
    }
    tries_left = tries;
    const uint64_t known = outcomes[LAWN_VERBS_DONE] + found;
    errno = EPROTO;
    rc_check(peer.theirs.count >= known && peer.theirs.count < next,
             "the server forgets");
    found += peer.theirs.count - known;
    next = peer.theirs.count + 1;
    heard_at = now;
    printf("connected: the server has %llu\n", (unsigned long long)next - 1);
    rc_connect(&peer, retries, rnr_retries);
    const lawn_verbs_params_t params = {
        .qp = peer.qp,
        .lawn = lawn_engine_lawn(engine),
        .ops = &ops,
        .ring = ring,
        .capacity = WINDOW,
        .keepalive_idle = lawn_time_from_msec((double)keepalive_ms),
        .keepalive_timeout = lawn_time_from_msec((double)deadline_ms),
        .flush_timeout = lawn_time_from_msec(100)};
    errno = EINVAL;
    rc_check(lawn_verbs_init(&rc, &params, now) == LAWN_OK, "deadlines");
}

static void print_summary(void)
{
    lawn_engine_stats_t stats;
    lawn_engine_query(engine, &stats);
    printf("posted %llu: %llu done, %llu not done, %llu unknown, of which the "
           "server had %llu\n",
           (unsigned long long)sent,
           (unsigned long long)outcomes[LAWN_VERBS_DONE],
           (unsigned long long)outcomes[LAWN_VERBS_NOT_DONE],
           (unsigned long long)outcomes[LAWN_VERBS_UNKNOWN],
           (unsigned long long)found);
    printf("latest report %.3f ms after its deadline, longest pass %.3f ms\n",
           lawn_time_to_msec(worst_late), lawn_time_to_msec(stats.worst_pass));
}

static bool read_options(int argc, char **argv)
{
    static const char letters[] = "psndkrqtw";
    unsigned long *const values[] = {&port,        &slow_ms,      &requests,
                                     &deadline_ms, &keepalive_ms, &retries,
                                     &rnr_retries, &tries,        &wait_ms};
    int letter;
    while ((letter = getopt(argc, argv, "i:p:s:n:d:k:r:q:t:w:")) != -1) {
        const char *const at = strchr(letters, letter);
        char *end = NULL;
        if (letter == 'i') {
            device = optarg;
            continue;
        }
        if (!at) {
            return false;
        }
        *values[at - letters] = strtoul(optarg, &end, 10);
        if (end == optarg || *end != '\0') {
            return false;
        }
    }
    tries_left = tries;
    host = argv[optind];
    return argc - optind <= 1;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        fputs("usage: rc_deadline [OPTION...] [ADDRESS]\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    peer = rc_open(device, WINDOW, numbers, sizeof(numbers));
    if (!host) {
        serve();
        return 0;
    }
    rc_check(lawn_engine_create(NULL, &engine) == LAWN_OK &&
                 lawn_engine_add(engine, poll_cq, NULL, -1, NULL) == LAWN_OK &&
                 lawn_queue_create(lawn_engine_lawn(engine),
                                   lawn_time_from_msec((double)deadline_ms),
                                   &deadline) == LAWN_OK,
             "engine");
    peer.mine.count = requests;
    lawn_timer_init(&again, meet);
    lawn_engine_start(engine, &again, 0);
    while (status < 0) {
        lawn_engine_progress(engine);
    }
    (void)send(peer.fd, "", 1, MSG_NOSIGNAL); /* goodbye */
    print_summary();
    lawn_verbs_close(&rc);
    lawn_engine_stop(engine, &again);
    lawn_engine_destroy(engine);
    return status;
}
