/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Worker threads send requests, and one other thread runs the timers of these
 * requests.
 *
 * The owner has an engine. It sleeps while no timer is due, and calls the
 * callback of a request that has waited too long. The workers send requests and
 * start their timers. An answer stops the timer. Some requests are never
 * answered.
 *
 * The worker that sends a request also ends it: it retires the timer when it no
 * longer uses the request. The request is freed when the owner no longer uses
 * the timer. A callback must not retire the timer, because the request might
 * then be freed while the worker still uses it.
 */
#include <lawn/lawn.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 3
#define REQUESTS 2000 /* of each worker */

typedef struct request {
    lawn_shared_t timeout; /* first: the callbacks cast it to request_t */
    lawn_time_t deadline;
    atomic_bool has_timed_out;
    struct request *next; /* in its worker's list of unanswered requests */
} request_t;

static lawn_engine_t *engine;
static lawn_box_t *box;
static atomic_uint answered, timed_out, freed, early;

/* The owner calls this. */
static void on_freed(lawn_shared_t *timeout, lawn_time_t now)
{
    (void)now;
    free(timeout);
    atomic_fetch_add(&freed, 1);
}

/* The owner calls this. */
static void on_timeout(lawn_shared_t *timeout, lawn_time_t now)
{
    request_t *request = (request_t *)timeout;
    if (now < request->deadline) {
        atomic_fetch_add(&early, 1);
    }
    atomic_fetch_add(&timed_out, 1);
    atomic_store(&request->has_timed_out, true);
}

static request_t *send_request(void)
{
    request_t *request = calloc(1, sizeof(*request));
    if (!request) {
        perror("threads");
        exit(1);
    }
    lawn_shared_init(&request->timeout, box, on_timeout);
    request->deadline = lawn_engine_time(engine) + lawn_time_from_msec(5);
    lawn_shared_start(&request->timeout, request->deadline);
    return request;
}

/* The answer may have come too late. Then the timer has expired. */
static void take_answer(request_t *request)
{
    if (lawn_shared_stop(&request->timeout)) {
        atomic_fetch_add(&answered, 1);
    }
    lawn_shared_retire(&request->timeout, on_freed);
}

static void wait_for_timeout(request_t *request)
{
    while (!atomic_load(&request->has_timed_out)) {
        sched_yield();
    }
    lawn_shared_retire(&request->timeout, on_freed);
}

static void *work(void *arg)
{
    request_t *waiting = NULL;
    (void)arg;
    for (int i = 0; i < REQUESTS; ++i) {
        request_t *request = send_request();
        if (i % 10 != 0) {
            take_answer(request);
        } else { /* never answered */
            request->next = waiting;
            waiting = request;
        }
    }
    while (waiting) {
        request_t *next = waiting->next;
        wait_for_timeout(waiting);
        waiting = next;
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[WORKERS];
    if (lawn_engine_create(NULL, &engine) != LAWN_OK ||
        (box = lawn_engine_box(engine)) == NULL) {
        fprintf(stderr, "threads: cannot make an engine\n");
        return 1;
    }
    for (int i = 0; i < WORKERS; ++i) {
        if (pthread_create(&workers[i], NULL, work, NULL) != 0) {
            fprintf(stderr, "threads: cannot make a thread\n");
            return 1;
        }
    }
    /* The owner makes passes while there is work, and sleeps while there is
     * none. */
    while (atomic_load(&freed) < WORKERS * REQUESTS) {
        if (lawn_engine_progress(engine) == 0 &&
            lawn_engine_wait(engine, LAWN_TIME_INFINITY) != LAWN_OK) {
            perror("threads");
            return 1;
        }
    }
    for (int i = 0; i < WORKERS; ++i) {
        pthread_join(workers[i], NULL);
    }
    lawn_engine_destroy(engine);
    printf("%u answered, %u timed out, %u early\n", atomic_load(&answered),
           atomic_load(&timed_out), atomic_load(&early));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("threads: standard output");
        return 1;
    }
    return atomic_load(&answered) + atomic_load(&timed_out) ==
                       WORKERS * REQUESTS &&
                   atomic_load(&early) == 0
               ? 0
               : 1;
}
