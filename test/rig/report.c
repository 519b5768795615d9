/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The part of the rig for programs. Below the example's summary it prints what
 * rig.c has measured, and whether the program woke for nothing. For that it
 * stands between the program and its engine, as rig.c does between the session
 * and lawn/conn.h.
 */
#include "rig.h"

#include "session_internal.h"
#include "summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

lawn_status_t __real_session_start(session_t *session, lawn_engine_t *engine);
unsigned __real_lawn_engine_progress(lawn_engine_t *engine);
lawn_status_t __real_lawn_engine_wait(lawn_engine_t *engine,
                                      lawn_time_t max_wait);
void __real_summary_print(const summary_t *summary);

/* What runs on this thread: a session runs on the one that has started it. */
static _Thread_local rig_t *running;

static double cpu_sec(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

lawn_status_t __wrap_session_start(session_t *session, lawn_engine_t *engine)
{
    rig_t *rig = running = rig_of(session);
    rig->start.time = lawn_engine_time(engine);
    lawn_status_t status = __real_session_start(session, engine);
    rig->start.cpu_sec = cpu_sec();
    return status;
}

/* Notes the figures when the idle time at the start is over. */
static void note_idle(rig_t *rig, const lawn_engine_t *engine)
{
    lawn_time_t idle = rig->session->config.idle;
    if (idle && rig->idle.time == 0 &&
        lawn_engine_now(engine) - rig->start.time >= idle) {
        rig->idle = rig->slept;
        rig->idle.cpu_sec = cpu_sec() - rig->start.cpu_sec;
        rig->idle.time = lawn_engine_time(engine) - rig->start.time;
    }
}

unsigned __wrap_lawn_engine_progress(lawn_engine_t *engine)
{
    rig_t *rig = running;
    unsigned work = __real_lawn_engine_progress(engine);
    rig->slept.spurious += rig->is_awakened && work == 0;
    rig->is_awakened = false;
    note_idle(rig, engine);
    return work;
}

lawn_status_t __wrap_lawn_engine_wait(lawn_engine_t *engine,
                                      lawn_time_t max_wait)
{
    lawn_status_t status = __real_lawn_engine_wait(engine, max_wait);
    ++running->slept.sleeps;
    running->is_awakened = status == LAWN_OK;
    return status;
}

static void count(const char *name, uint64_t value)
{
    printf("%-30s%" PRIu64 "\n", name, value);
}

static void milliseconds(const char *name, lawn_time_t ticks)
{
    printf("%-30s%.3f ms\n", name, lawn_time_to_msec(ticks));
}

static void seconds(const char *name, lawn_time_t ticks)
{
    printf("%-30s%.3f s\n", name, lawn_time_to_sec(ticks));
}

static void print_idle(const rig_sleep_t *idle)
{
    double time = lawn_time_to_sec(idle->time);
    count("idle sleeps", idle->sleeps);
    count("idle spurious wake-ups", idle->spurious);
    printf("%-30s%.3f s, %.2f %% of %.3f s\n", "idle cpu time", idle->cpu_sec,
           100 * idle->cpu_sec / time, time);
}

void __wrap_summary_print(const summary_t *summary)
{
    const rig_t *rig = rig_of(summary->session);
    const histogram_t *late = &rig->lateness;
    __real_summary_print(summary);
    milliseconds("rig lateness p50", histogram_quantile(late, 0.5));
    milliseconds("rig lateness p99", histogram_quantile(late, 0.99));
    milliseconds("rig lateness max", late->max);
    count("retransmission burst", rig->burst);
    count("max per connection on resume", rig->resume_max);
    if (rig->silence.count) {
        seconds("death found min", rig->silence.min);
        seconds("death found median", histogram_quantile(&rig->silence, 0.5));
    }
    if (summary->events) {
        count("spurious wake-ups", rig->slept.spurious);
    }
    if (summary->events && rig->idle.time) {
        print_idle(&rig->idle);
    }
}
