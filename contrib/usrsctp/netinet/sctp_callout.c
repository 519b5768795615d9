/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The callouts of usrsctp 0.9.5 on a Lawn. This file and its header take the
 * place of usrsctplib/netinet/sctp_callout.[ch]. No other file changes, and no
 * call. Link with liblawn. doc/integration.md has the build.
 *
 * usrsctp has one list of its timers. A thread wakes every 10 ms and looks at
 * all of them. Here, a timer is in a lawn, and the thread sleeps until one is
 * due.
 *
 * What stays: the functions and what they return, one lock for all timers, one
 * thread that runs the handlers without that lock, and ticks of a millisecond.
 * Without threads, usrsctp_handle_timers() says how much time has passed.
 *
 * What differs:
 *   - A timer of n ticks expires n milliseconds after its start, not at the
 *     first 10 ms tick after n - 10.
 *   - sctp_get_tick_count() reads a clock whose steps are those of the kernel's
 *     tick, instead of steps of 10 ms.
 *   - Timers that are due together run in any order.
 *   - A timer of 2^31 ticks or more waits for them. Stock takes it for past.
 *   - While the thread runs, usrsctp_handle_timers() lets the thread run what
 *     has become due. Stock runs it in the caller, beside the thread.
 *   - A timer takes 64 bytes instead of 48. sctp_pcb_init() allocates the lawn,
 *     22 KiB, with malloc(). Nothing allocates later.
 *
 * Why a plain lawn and a lock, and neither lawn/shared.h nor lawn/service.h:
 * usrsctp frees the memory of a timer as soon as the timer is not pending, and
 * tells nobody. A shared timer would have to be retired before. A service's
 * start may find no memory, and a retransmit timer must not be lost. Its thread
 * may wake for a timer that was cancelled. And a program without threads needs
 * a lawn whose time it tells.
 */
#include <netinet/sctp_os.h>

#include <netinet/sctp_pcb.h>
#include <netinet/sctp_sysctl.h>
#include <netinet/sctputil.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    YIELDS = 100,    /* of a thread that waits for the lock, before it naps */
    TOUCHES = 256,   /* timers looked at to find out until when to sleep */
    LONGEST_S = 3600 /* of a sleep, after which the clocks are compared */
};

/* All below, and all timers but their flags, are used with the lock held. */
static unsigned is_locked; /* atomic */
static lawn_t *lawn;
static lawn_time_t wake_at; /* when the thread will wake; 0: it is awake */
static bool is_running;     /* what is due */
static struct {
    void (*func)(void *); /* NULL: none has expired */
    void *arg;
} expired;

/* The thread sleeps on it. usrsctp's own mutex is for this alone. */
static pthread_cond_t woken;
static bool is_woken; /* atomic */

/* The time: what the program has told, and what has passed since the thread
 * began. These change only while no other thread is there, but for `told`. */
static lawn_time_t tick; /* a millisecond, rounded up */
static uint64_t told;    /* in ticks; atomic */
static bool has_thread;  /* atomic */
static lawn_time_t began;
static uint64_t began_msec;

/* If the thread that holds the lock has a lower priority and was interrupted on
 * this processor, only a nap lets it go on. */
static void wait_for_lock(void)
{
    const struct timespec nap = {0, 50000};
    unsigned yields = 0;
    do {
        if (yields < YIELDS) {
            ++yields;
            sched_yield();
        } else {
            nanosleep(&nap, NULL);
        }
    } while (__atomic_load_n(&is_locked, __ATOMIC_RELAXED) ||
             __atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE));
}

/* It is held for some instructions, several times for each packet. With a
 * mutex, a start and a stop would cost more than on stock. */
static inline void lock(void)
{
    if (__atomic_exchange_n(&is_locked, 1, __ATOMIC_ACQUIRE)) {
        wait_for_lock();
    }
}

static inline void unlock(void)
{
    __atomic_store_n(&is_locked, 0, __ATOMIC_RELEASE);
}

static lawn_time_t get_time(void)
{
    const lawn_time_t time = __atomic_load_n(&told, __ATOMIC_RELAXED) * tick;
    return __atomic_load_n(&has_thread, __ATOMIC_ACQUIRE)
               ? time + (lawn_get_time() - began)
               : time;
}

static uint64_t get_msec(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

uint32_t sctp_get_tick_count(void)
{
    const uint64_t ticks = __atomic_load_n(&told, __ATOMIC_RELAXED);
    return (uint32_t)(__atomic_load_n(&has_thread, __ATOMIC_ACQUIRE)
                          ? ticks + (get_msec() - began_msec)
                          : ticks);
}

void sctp_callouts_init(void)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&SCTP_BASE_VAR(timer_mtx), &SCTP_BASE_VAR(mtx_attr));
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&woken, &attributes);
    pthread_condattr_destroy(&attributes);
    tick = lawn_time_from_msec(1);
    if (lawn_create(NULL, &lawn) != LAWN_OK) {
        SCTP_PRINTF("no memory for the timers\n");
        abort();
    }
}

void sctp_callouts_finish(void)
{
    lawn_destroy(lawn);
    lawn = NULL;
    pthread_cond_destroy(&woken);
    pthread_mutex_destroy(&SCTP_BASE_VAR(timer_mtx));
}

/* The handler takes locks with which others start and stop timers, and so is
 * called when the advance is over. */
static void on_expired(lawn_timer_t *timer, lawn_time_t now)
{
    struct sctp_callout *const c = (struct sctp_callout *)timer;
    (void)now;
    expired.func = c->c_func;
    expired.arg = c->c_arg;
    __atomic_fetch_and(&c->c_flags, ~SCTP_CALLOUT_PENDING, __ATOMIC_RELEASE);
}

void sctp_os_timer_init(sctp_os_timer_t *c)
{
    memset(c, 0, sizeof *c);
    lawn_timer_init(&c->timer, on_expired);
}

/* Without the spinlock, so that no thread holds it while it waits here. */
static void wake_thread(void)
{
    pthread_mutex_lock(&SCTP_BASE_VAR(timer_mtx));
    __atomic_store_n(&is_woken, true, __ATOMIC_RELAXED);
    pthread_cond_signal(&woken);
    pthread_mutex_unlock(&SCTP_BASE_VAR(timer_mtx));
}

int sctp_os_timer_start(sctp_os_timer_t *c, uint32_t to_ticks,
                        void (*ftn)(void *), void *arg)
{
    lawn_time_t time;
    lawn_time_t deadline;
    bool was_pending;
    bool is_earliest;

    if (!c || !ftn) {
        return 0;
    }
    time = get_time();
    deadline = time + (to_ticks ? to_ticks : 1) * tick;
    lock();
    was_pending = SCTP_OS_TIMER_PENDING(c);
    c->c_arg = arg;
    c->c_func = ftn;
    __atomic_store_n(&c->c_flags, SCTP_CALLOUT_ACTIVE | SCTP_CALLOUT_PENDING,
                     __ATOMIC_RELEASE);
    lawn_timer_start_at(lawn, &c->timer, time, deadline);
    is_earliest = deadline < wake_at;
    if (is_earliest) {
        wake_at = 0; /* one wake-up is enough */
    }
    unlock();
    if (is_earliest) {
        wake_thread();
    }
    return was_pending;
}

/* usrsctp stops many timers that are not pending, which needs no lock. */
int sctp_os_timer_stop(sctp_os_timer_t *c)
{
    int flags = __atomic_load_n(&c->c_flags, __ATOMIC_ACQUIRE);
    bool was_pending;
    if (flags == 0 ||
        (flags == SCTP_CALLOUT_ACTIVE &&
         __atomic_compare_exchange_n(&c->c_flags, &flags, 0, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))) {
        return 0;
    }
    lock();
    was_pending = SCTP_OS_TIMER_PENDING(c);
    lawn_timer_stop(lawn, &c->timer);
    __atomic_store_n(&c->c_flags, 0, __ATOMIC_RELEASE);
    unlock();
    return was_pending;
}

/* One by one: a handler may stop what else is due. Others get the lock each
 * time. */
static void run_due(void)
{
    is_running = true;
    do {
        void (*func)(void *);
        void *arg;
        expired.func = NULL;
        lawn_advance(lawn, get_time(), 1);
        func = expired.func;
        arg = expired.arg;
        unlock();
        if (func) {
            func(arg);
        }
        lock();
    } while (lawn_next(lawn) <= get_time());
    is_running = false;
}

/* If a handler calls it, or another thread meanwhile, the loop that runs goes
 * on. */
void sctp_handle_tick(uint32_t elapsed_ticks)
{
    const bool is_told = !__atomic_load_n(&has_thread, __ATOMIC_ACQUIRE);
    lock();
    __atomic_fetch_add(&told, elapsed_ticks, __ATOMIC_RELAXED);
    if (is_told && !is_running) {
        run_due();
    }
    unlock();
    if (!is_told) {
        wake_thread();
    }
}

/* Rounds up, so that the thread does not wake early. */
static struct timespec time_in(lawn_time_t left)
{
    const double longest = LONGEST_S * 1e9;
    const double nsec = lawn_time_to_nsec(left);
    struct timespec time;
    uint64_t sum;
    clock_gettime(CLOCK_MONOTONIC, &time);
    sum = (uint64_t)time.tv_nsec + (uint64_t)(nsec < longest ? nsec : longest) +
          1;
    time.tv_sec += (time_t)(sum / 1000000000);
    time.tv_nsec = (long)(sum % 1000000000);
    return time;
}

/* Who starts an earlier timer from here on wakes the thread. A wake-up that was
 * meant for an earlier sleep may end this one: nothing is due then. */
static void sleep_until(lawn_time_t next, lawn_time_t now)
{
    const struct timespec end = time_in(next - now);
    int status = 0;
    wake_at = next;
    __atomic_store_n(&is_woken, false, __ATOMIC_RELAXED);
    unlock();
    pthread_mutex_lock(&SCTP_BASE_VAR(timer_mtx));
    while (!__atomic_load_n(&is_woken, __ATOMIC_RELAXED) && status == 0) {
        status = next == LAWN_TIME_INFINITY
                     ? pthread_cond_wait(&woken, &SCTP_BASE_VAR(timer_mtx))
                     : pthread_cond_timedwait(&woken, &SCTP_BASE_VAR(timer_mtx),
                                              &end);
    }
    pthread_mutex_unlock(&SCTP_BASE_VAR(timer_mtx));
    lock();
    wake_at = 0;
}

static void *run_thread(void *arg)
{
    sctp_userspace_set_threadname("SCTP timer");
    lock();
    while (!SCTP_BASE_VAR(timer_thread_should_exit)) {
        lawn_time_t next;
        lawn_time_t now;
        run_due();
        lawn_settle(lawn, TOUCHES);
        next = lawn_next(lawn);
        now = get_time();
        /* Whether to exit may have changed while a handler ran. */
        if (next > now && !SCTP_BASE_VAR(timer_thread_should_exit)) {
            sleep_until(next, now);
        }
    }
    unlock();
    return arg;
}

void sctp_start_timer_thread(void)
{
    int status;
    began = lawn_get_time();
    began_msec = get_msec();
    __atomic_store_n(&has_thread, true, __ATOMIC_RELEASE);
    status =
        sctp_userspace_thread_create(&SCTP_BASE_VAR(timer_thread), run_thread);
    if (status == 0) {
        SCTP_BASE_VAR(timer_thread_started) = 1;
    } else {
        SCTP_PRINTF("no thread for the timers: %d\n", status);
    }
}

void sctp_stop_timer_thread(void)
{
    if (!SCTP_BASE_VAR(timer_thread_started)) {
        return;
    }
    lock();
    SCTP_BASE_VAR(timer_thread_should_exit) = 1;
    unlock();
    wake_thread();
    pthread_join(SCTP_BASE_VAR(timer_thread), NULL);
    told += get_msec() - began_msec; /* ticks go on where they were */
    __atomic_store_n(&has_thread, false, __ATOMIC_RELEASE);
}
