/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A ping-pong that finds losses, stalls and dead peers by Lawn's timers. It
 * runs over the transport that it is linked with. This file only connects the
 * parts:
 *
 *     options -> transport (device, queues) -> exchange (the peer's address)
 *             -> engine -> session (connections) -> progress until it is over
 *
 * The main loop is one call, lawn_engine_progress(). It reads the clock, polls
 * the transport and expires timers. A program that already has a loop makes
 * this call there.
 *
 * With --events, the program sleeps after a pass that found nothing to do. It
 * sleeps until a datagram arrives or a timer is due.
 */
#include "exchange.h"
#include "options.h"
#include "session_options.h"
#include "summary.h"
#include "transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    options_t options;
    lawn_time_t deadline;
    transport_t *transport;
    lawn_engine_t *engine;
    session_t *session;
    uint64_t sleeps;
} program_t;

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t wake_fd = -1;

/* The write is for a signal between the last check of `interrupted` and the
 * sleep. Without the write, this signal would not end the sleep. */
static void on_signal(int number)
{
    const uint64_t one = 1;
    int error = errno;
    interrupted = number;
    if (wake_fd >= 0) {
        ssize_t written = write(wake_fd, &one, sizeof(one));
        (void)written; /* if it fails, the fd is readable already */
    }
    errno = error;
}

/* A source that exists for its fd. */
static unsigned poll_signals(void *arg)
{
    (void)arg;
    return interrupted != 0;
}

/* SA_RESTART is not set, so a signal also ends the waits of the exchange. */
static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Swaps addresses with the peer. The number of the run is made of the random
 * numbers of both sides, so no datagram of an earlier run of either side has
 * the same number. */
static bool meet_peer(program_t *p, uint64_t *run_p)
{
    exchange_t exchange = {
        .options = &p->options,
        .deadline = p->deadline,
        .interrupted = &interrupted,
        .fd = -1,
    };
    exchange_side_t own;
    exchange_side_t peer;
    if (p->options.cm) {
        return transport_meet(p->transport, &exchange, run_p);
    }
    transport_address(p->transport, own.address);
    own.nonce = exchange_nonce();
    bool met = exchange_open(&exchange) &&
               exchange_swap(&exchange, &own, &peer) &&
               transport_connect(p->transport, peer.address) &&
               exchange_barrier(&exchange);
    exchange_close(&exchange);
    *run_p = met ? own.nonce ^ peer.nonce : 0;
    return met;
}

static bool make_session(program_t *p, uint64_t run)
{
    const options_t *options = &p->options;
    bool is_client = options->host != NULL;
    session_config_t config = session_options(
        options, is_client, transport_window(p->transport), run);
    session_sender_t sender = transport_sender(p->transport);
    lawn_status_t status = session_create(&config, &sender, &p->session);
    if (status == LAWN_OK) {
        status = lawn_engine_create(NULL, &p->engine);
    }
    if (status != LAWN_OK) {
        complain("cannot set up %u connections: %s",
                 (unsigned)options->connections, lawn_status_string(status));
        return false;
    }
    return transport_attach(p->transport, p->engine, p->session);
}

static bool make_wakeable(program_t *p)
{
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0 || lawn_engine_add(p->engine, poll_signals, NULL, wake_fd,
                                       NULL) != LAWN_OK) {
        complain("cannot sleep: %s", strerror(errno));
        return false;
    }
    return true;
}

static double cpu_sec(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Does not sleep while there is something to send, or if the transport cannot
 * wake a sleeper. The transport is armed before the engine looks for work, so
 * nothing that arrives in between is missed. */
static void sleep_until_needed(program_t *p)
{
    lawn_time_t now = lawn_engine_now(p->engine);
    if (now >= p->deadline || session_can_send(p->session) ||
        !transport_arm(p->transport)) {
        return;
    }
    ++p->sleeps;
    lawn_engine_wait(p->engine, p->deadline - now);
}

/* Runs one pass, and sleeps if it found nothing to do. */
static void progress_or_sleep(program_t *p)
{
    if (lawn_engine_progress(p->engine) == 0 && p->options.events) {
        sleep_until_needed(p);
    }
}

static int run(program_t *p)
{
    lawn_time_t started = lawn_get_time();
    lawn_status_t status = session_start(p->session, p->engine);
    if (status != LAWN_OK) {
        complain("cannot open connections: %s", lawn_status_string(status));
        return EXIT_FAILED;
    }
    double cpu = cpu_sec();
    while (!session_is_over(p->session) &&
           !transport_has_failed(p->transport) && !interrupted &&
           lawn_engine_now(p->engine) < p->deadline) {
        progress_or_sleep(p);
    }
    if (transport_has_failed(p->transport)) {
        session_fail(p->session);
    }
    summary_t summary = {
        .mode = transport_mode(p->transport),
        .session = p->session,
        .engine = p->engine,
        .elapsed = lawn_engine_time(p->engine) - started,
        .events = p->options.events,
        .sleeps = p->sleeps,
        .cpu_sec = cpu_sec() - cpu,
    };
    summary_print(&summary);
    return finish_output(session_exit_status(p->session));
}

static int set_up_and_run(program_t *p)
{
    uint64_t number;
    p->transport = transport_open(&p->options);
    if (!p->transport || !meet_peer(p, &number) || !make_session(p, number) ||
        (p->options.events && !make_wakeable(p))) {
        return lawn_get_time() >= p->deadline ? EXIT_TIMEOUT : EXIT_FAILED;
    }
    if (!p->options.quiet) {
        printf("connected: %s on %s\n", p->options.host ? "client" : "server",
               transport_name(p->transport));
    }
    return run(p);
}

int main(int argc, char **argv)
{
    static program_t program;
    program_t *p = &program;
    program_name = transport_program;
    /* Flush each line, also into a pipe: a reader may wait for a line. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    switch (options_parse(argc, argv, transport_options, &p->options)) {
    case OPTIONS_HELP:
        return finish_output(EXIT_DELIVERED);
    case OPTIONS_BAD:
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    catch_signals();
    p->deadline = p->options.timeout ? lawn_get_time() + p->options.timeout
                                     : LAWN_TIME_INFINITY;
    int result = set_up_and_run(p);
    session_destroy(p->session);
    transport_close(p->transport);
    lawn_engine_destroy(p->engine);
    if (wake_fd >= 0) {
        close(wake_fd);
    }
    if (result == EXIT_TIMEOUT && !interrupted) {
        complain("not done within --timeout");
    }
    bool is_done = result == EXIT_DELIVERED || result == EXIT_VIOLATED;
    return interrupted && !is_done ? 128 + interrupted : result;
}
