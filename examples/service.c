/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Timeouts in a program with ordinary threads: each job has a time limit. A job
 * that ends in time cancels its timeout. Every other job is told to give up.
 */
#include <lawn/lawn.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define JOBS 10

typedef struct {
    int number;
    atomic_bool must_end;
} job_t;

static lawn_service_t *service;
static atomic_uint in_time, too_long;

/* Runs in the service's thread. */
static void on_timeout(void *arg)
{
    job_t *job = arg;
    atomic_store(&job->must_end, true);
}

/* Every third job never ends by itself. */
static void *run(void *arg)
{
    job_t *job = arg;
    lawn_service_timer_t timeout;
    if (lawn_service_start(service, lawn_time_from_msec(20), on_timeout, job,
                           &timeout) != LAWN_OK) {
        return NULL;
    }
    while (job->number % 3 == 0 && !atomic_load(&job->must_end)) {
        sched_yield();
    }
    /* OK means that on_timeout() will not be called. Otherwise it was called,
     * or is being called, and the job took too long. */
    if (lawn_service_cancel(service, timeout) == LAWN_OK) {
        atomic_fetch_add(&in_time, 1);
    } else {
        atomic_fetch_add(&too_long, 1);
    }
    return NULL;
}

int main(void)
{
    job_t jobs[JOBS] = {0};
    pthread_t threads[JOBS];
    if (lawn_service_create(NULL, &service) != LAWN_OK) {
        fprintf(stderr, "service: cannot make a service\n");
        return 1;
    }
    for (int i = 0; i < JOBS; ++i) {
        jobs[i].number = i;
        if (pthread_create(&threads[i], NULL, run, &jobs[i]) != 0) {
            fprintf(stderr, "service: cannot make a thread\n");
            return 1;
        }
    }
    for (int i = 0; i < JOBS; ++i) {
        pthread_join(threads[i], NULL);
    }
    /* No callback runs after this, so nothing uses the jobs any more. */
    lawn_service_stop(service, NULL, NULL);
    lawn_service_destroy(service);
    printf("%u in time, %u took too long\n", atomic_load(&in_time),
           atomic_load(&too_long));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("service: standard output");
        return 1;
    }
    return atomic_load(&in_time) + atomic_load(&too_long) == JOBS ? 0 : 1;
}
