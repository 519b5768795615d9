/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * One engine with timers of both kinds. A connection has a timer on the lawn:
 * it dies with the process, as the connection does. A session has a durable
 * timer: it is in Redis, and ends in time even if this process does not live
 * until then. Six users connect and fall silent. Half of them come back before
 * their sessions expire. Several runs may share a store: those of one namespace
 * and group share the work.
 */
#include <lawn/durable.h>
#include <lawn/lawn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define USERS 6
#define SESSION_US 300000

typedef struct {
    lawn_timer_t idle; /* first: on_idle() casts it to user_t */
    lawn_timer_t return_;
    char session[64]; /* the id of the durable timer */
    bool has_ended;
} user_t;

static lawn_engine_t *engine;
static lawn_durable_t *durable;
static lawn_durable_consumer_t *consumer;
static user_t users[USERS];
static int ended;

/* A server would wait for the store, and do again what may not have been done.
 * This program ends. */
static void check(bool is_done, const char *what)
{
    if (!is_done) {
        fprintf(stderr, "durable: %s\n", what);
        exit(1);
    }
}

static void end_session(user_t *user, const char *how)
{
    /* A delivery may come twice, or after an error: ending twice must be
     * harmless. */
    if (!user->has_ended) {
        printf("%s %s\n", user->session, how);
        user->has_ended = true;
        ++ended;
    }
}

static void on_started(void *arg, const lawn_durable_result_t *result)
{
    (void)arg;
    /* IO and TIMED_OUT mean that nobody knows. A server would start the timer
     * again, with the same id. */
    check(result->status == LAWN_OK, result->error);
}

static void on_idle(lawn_timer_t *timer, lawn_time_t now)
{
    user_t *user = (user_t *)timer;
    lawn_durable_start_t start = {
        .id = user->session,
        .delay_us = SESSION_US,
        .payload = user->session,
        .payload_size = strlen(user->session),
    };
    (void)now;
    printf("%s: the connection is idle and closed\n", user->session);
    check(lawn_durable_start(durable, &start, on_started, NULL) == LAWN_OK,
          "the session's timer was refused");
}

static void on_stopped(void *arg, const lawn_durable_result_t *result)
{
    user_t *user = arg;
    check(result->status == LAWN_OK, result->error);
    if (result->state == LAWN_DURABLE_STOPPED) {
        end_session(user, "goes on: the user is back");
    } /* else it was too late, and the session is delivered as expired */
}

static void on_return(lawn_timer_t *timer, lawn_time_t now)
{
    user_t *user = (user_t *)((char *)timer - offsetof(user_t, return_));
    (void)now;
    check(lawn_durable_stop(durable, user->session, LAWN_DURABLE_ASYNC,
                            on_stopped, user) == LAWN_OK,
          "the stop was refused");
}

/* Any process of the group may get this. Where the payload says all that is to
 * be done, any can do it. Here only the process with the session can. The
 * others let the timer wait for a random time, so that it does not come to the
 * same process again and again. */
static void on_expired(void *arg, const lawn_durable_delivery_t *delivery)
{
    lawn_durable_answer_t answer = LAWN_DURABLE_DEFER;
    uint64_t delay_us = (uint64_t)(rand() % 100000);
    (void)arg;
    for (int i = 0; i < USERS; ++i) {
        if (strcmp(users[i].session, delivery->id) == 0) {
            end_session(&users[i], "has expired");
            answer = LAWN_DURABLE_DONE;
        }
    }
    /* Answer after the work. If this process dies before, the delivery goes to
     * another consumer. */
    check(lawn_durable_answer(consumer, delivery, answer, delay_us, NULL, NULL,
                              NULL) == LAWN_OK,
          "the answer was refused");
}

static void open_tier(const char *url)
{
    lawn_durable_params_t params = {.url = url, .name_space = "example"};
    /* What a run has taken and not answered goes to another after the lease. */
    lawn_durable_consume_t consume = {.group = "sessions", .lease_us = 2000000};
    lawn_durable_pump_params_t pump_params = {0};
    lawn_durable_pump_t *pump; /* elsewhere lawnd is the pump */
    params.fail_fast = true;
    lawn_status_t status = lawn_durable_open(&params, &durable);
    check(status == LAWN_OK, lawn_durable_open_error());
    check(lawn_durable_consume(durable, &consume, on_expired, NULL,
                               &consumer) == LAWN_OK,
          "no consumer");
    check(lawn_durable_pump_start(durable, &pump_params, &pump) == LAWN_OK,
          "no pump");
}

static void connect_users(void)
{
    for (int i = 0; i < USERS; ++i) {
        user_t *user = &users[i];
        /* No other run on this machine has the same ids. */
        snprintf(user->session, sizeof(user->session), "session-%lld-%ld-%d",
                 (long long)time(NULL), (long)getpid(), i);
        lawn_timer_init(&user->idle, on_idle);
        lawn_timer_init(&user->return_, on_return);
        lawn_engine_start(engine, &user->idle,
                          lawn_time_from_msec(20 + 10 * i));
        if (i % 2 == 0) {
            lawn_engine_start(engine, &user->return_,
                              lawn_time_from_msec(150 + 10 * i));
        }
    }
}

int main(int argc, char **argv)
{
    lawn_source_t *source;
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: durable [REDIS_URL]\n");
        return 2;
    }
    srand((unsigned)getpid());
    open_tier(argc == 2 ? argv[1] : NULL);
    check(lawn_engine_create(NULL, &engine) == LAWN_OK, "no engine");
    check(lawn_engine_add(engine, lawn_durable_poll, durable,
                          lawn_durable_fd(durable), &source) == LAWN_OK,
          "the engine does not take the source");
    connect_users();
    while (ended != USERS || lawn_durable_consumer_in_flight(consumer) != 0) {
        while (lawn_engine_progress(engine) > 0) {
        }
        const char *error = lawn_durable_error(durable);
        check(error == NULL, error);
        lawn_status_t status = lawn_engine_wait(engine, lawn_time_from_sec(1));
        check(status == LAWN_OK || status == LAWN_ERR_TIMED_OUT,
              "the engine cannot sleep");
    }
    lawn_engine_remove(engine, source);
    lawn_durable_close(durable);
    lawn_engine_destroy(engine);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("durable: standard output");
        return 1;
    }
    return 0;
}
