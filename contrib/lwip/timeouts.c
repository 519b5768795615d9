/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The timers of lwIP 2.1 on a Lawn. Compile this file in place of
 * src/core/timeouts.c, and link with liblawn. No other file of lwIP changes.
 * Set LWIP_TIMERS_CUSTOM to 1 in lwipopts.h: without it everything works, but
 * lwIP keeps memory for its own timeouts. doc/integration.md has the build.
 *
 * What stays: the functions of lwip/timeouts.h and what they promise, the
 * limits MEMP_NUM_SYS_TIMEOUT and UINT32_MAX / 4 ms, the wrap of sys_now()
 * after 49 days, and that a clock may go back, which moves no timeout.
 *
 * What differs:
 *   - Timeouts that are due in one sys_check_timeouts() run in any order.
 *   - A handler that starts a timeout of 0 ms runs again in the next check, not
 *     in the same one.
 *   - A handler must not call sys_check_timeouts().
 *   - lwip_init() allocates the lawn, 22 KiB, with malloc(). Nothing allocates
 *     later: timeouts come from a pool of lwIP, and take 80 bytes each.
 *   - MEM_ALIGNMENT must suit a lawn_timer_t: 8 on most machines.
 *
 * lwIP names a timeout by its handler and argument, so there is a hash of them.
 * If several timeouts have the same name, sys_untimeout() takes the earliest,
 * as it does in lwIP, and looks at all of that name to find it.
 */
#include "lwip/opt.h"

#include "lwip/memp.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/timeouts.h"
#include "netif/ppp/ppp_opts.h" /* which MEMP_NUM_SYS_TIMEOUT may name */

/* Of lwIP's own file, the table of its cyclic timers is used. With custom
 * timers it has nothing else but this function, which does nothing. */
void lawn_lwip_unused(void);
#undef LWIP_TIMERS_CUSTOM
#define LWIP_TIMERS_CUSTOM 1
#define tcp_timer_needed lawn_lwip_unused
#include "lwip/../../core/timeouts.c"
#undef tcp_timer_needed

#include <lawn/timer.h>

#include <stdbool.h>

/* Later than half of the range ahead is past, as everywhere in lwIP. */
#define IS_BEFORE(a, b) ((s32_t)((u32_t)(a) - (u32_t)(b)) < 0)

/* What sys_timeouts_sleeptime() may look at to find the earliest timeout. If
 * that is not enough, the answer is too short, which lwIP allows. */
enum { SLEEP_TOUCHES = 64 };

struct timeout {
    lawn_timer_t timer; /* the first, so that its address is the timeout's */
    struct timeout *next;
    struct timeout **link; /* that points here */
    sys_timeout_handler handler;
    void *arg;
    u32_t due;
#if LWIP_DEBUG_TIMERNAMES
    const char *handler_name;
#endif
};

LWIP_MEMPOOL_DECLARE(lawn_timeout, MEMP_NUM_SYS_TIMEOUT, sizeof(struct timeout),
                     "LAWN_TIMEOUT")

/* As many buckets as timeouts, rounded up to a power of two. */
enum {
    FILL_1 = (MEMP_NUM_SYS_TIMEOUT) | (MEMP_NUM_SYS_TIMEOUT) >> 1,
    FILL_2 = FILL_1 | FILL_1 >> 2,
    FILL_4 = FILL_2 | FILL_2 >> 4,
    FILL_8 = FILL_4 | FILL_4 >> 8,
    BUCKETS = (FILL_8 | FILL_8 >> 16) + 1
};

static struct timeout *buckets[BUCKETS];
static lawn_t *lawn;
static lawn_time_t now; /* in milliseconds; unlike lwIP's it never goes back */
static u32_t seen;      /* sys_now() at that time */
static u32_t due;       /* when the handler that runs was due */

/* While it is known, nothing is due before that time: lwIP's thread asks before
 * it waits for each message. */
static bool is_known;
static u32_t earliest;

#if LWIP_TESTMODE
static void list_show(void);
static void list_obey(void);
#else
#define list_show()
#define list_obey()
#endif

static struct timeout **bucket_of(sys_timeout_handler handler, const void *arg)
{
    const uint64_t handler_bits = (uint64_t)(mem_ptr_t)handler;
    const uint64_t arg_bits = (uint64_t)(mem_ptr_t)arg;
    const uint64_t mixed =
        (handler_bits * 0x9e3779b97f4a7c15 ^ arg_bits) * 0xd6e8feb86659fd93;
    return &buckets[(mixed >> 32) % BUCKETS];
}

/* If it was known when the earliest is due, it still is. */
static void see_due(struct timeout *timeout)
{
    if (IS_BEFORE(timeout->due, earliest)) {
        earliest = timeout->due;
    }
}

static void start(struct timeout *timeout)
{
    const s32_t left = (s32_t)(timeout->due - seen);
    lawn_timer_start_at(lawn, &timeout->timer, now,
                        now + (lawn_time_t)(int64_t)left);
    see_due(timeout);
}

static void each_timeout(void (*each)(struct timeout *))
{
    for (size_t i = 0; i < BUCKETS; ++i) {
        struct timeout *next;
        for (struct timeout *t = buckets[i]; t; t = next) {
            next = t->next;
            each(t);
        }
    }
}

/* Reads the clock. If it has gone back, every timeout has longer to go. */
static u32_t see(void)
{
    const u32_t before = seen;
    seen = sys_now();
    if (!IS_BEFORE(seen, before)) {
        now += (u32_t)(seen - before);
    } else {
        each_timeout(start);
    }
    list_obey();
    return seen;
}

/* Of an idle timer. */
static void release(struct timeout *timeout)
{
    is_known = is_known && timeout->due != earliest;
    *timeout->link = timeout->next;
    if (timeout->next) {
        timeout->next->link = timeout->link;
    }
    LWIP_MEMPOOL_FREE(lawn_timeout, timeout);
    list_show();
}

static void stop(struct timeout *timeout)
{
    lawn_timer_stop(lawn, &timeout->timer);
    release(timeout);
}

static void on_expired(lawn_timer_t *timer, lawn_time_t time)
{
    struct timeout *const timeout = (struct timeout *)timer;
    const sys_timeout_handler handler = timeout->handler;
    void *const arg = timeout->arg;

    LWIP_UNUSED_ARG(time);
    due = timeout->due;
#if LWIP_DEBUG_TIMERNAMES
    LWIP_DEBUGF(TIMERS_DEBUG,
                ("timeout: handler=%s late=%" U32_F " arg=%p\n",
                 timeout->handler_name, (u32_t)(sys_now() - due), arg));
#endif
    release(timeout);
    if (handler) {
        handler(arg);
    }
    LWIP_TCPIP_THREAD_ALIVE();
    PBUF_CHECK_FREE_OOSEQ();
}

static void timeout_at(u32_t time, sys_timeout_handler handler, void *arg,
                       const char *handler_name)
{
    struct timeout **const bucket = bucket_of(handler, arg);
    struct timeout *const timeout =
        (struct timeout *)LWIP_MEMPOOL_ALLOC(lawn_timeout);

    LWIP_ASSERT("MEMP_NUM_SYS_TIMEOUT is too low", timeout != NULL);
    if (!timeout) {
        return;
    }
    lawn_timer_init(&timeout->timer, on_expired);
    timeout->handler = handler;
    timeout->arg = arg;
    timeout->due = time;
#if LWIP_DEBUG_TIMERNAMES
    timeout->handler_name = handler_name;
#else
    LWIP_UNUSED_ARG(handler_name);
#endif
    timeout->next = *bucket;
    timeout->link = bucket;
    if (timeout->next) {
        timeout->next->link = &timeout->next;
    }
    *bucket = timeout;
    start(timeout);
    list_show();
}

#if LWIP_DEBUG_TIMERNAMES
void sys_timeout_debug(u32_t msecs, sys_timeout_handler handler, void *arg,
                       const char *handler_name)
{
#else
void sys_timeout(u32_t msecs, sys_timeout_handler handler, void *arg)
{
    const char *const handler_name = NULL;
#endif
    LWIP_ASSERT_CORE_LOCKED();
    LWIP_ASSERT("msecs <= UINT32_MAX / 4", msecs <= LWIP_UINT32_MAX / 4);
    timeout_at(see() + msecs, handler, arg, handler_name);
}

void sys_untimeout(sys_timeout_handler handler, void *arg)
{
    struct timeout *first = NULL;

    LWIP_ASSERT_CORE_LOCKED();
    list_obey();
    for (struct timeout *t = *bucket_of(handler, arg); t; t = t->next) {
        if (t->handler == handler && t->arg == arg &&
            (!first || IS_BEFORE(t->due, first->due))) {
            first = t;
        }
    }
    if (first) {
        stop(first);
    }
}

void sys_check_timeouts(void)
{
    LWIP_ASSERT_CORE_LOCKED();
    PBUF_CHECK_FREE_OOSEQ();
    see();
    lawn_advance(lawn, now, 0);
    is_known = is_known && IS_BEFORE(seen, earliest);
}

u32_t sys_timeouts_sleeptime(void)
{
    LWIP_ASSERT_CORE_LOCKED();
    see();
    if (!is_known) {
        lawn_settle(lawn, SLEEP_TOUCHES);
        const lawn_time_t next = lawn_next(lawn);
        if (next == LAWN_TIME_INFINITY) {
            return SYS_TIMEOUTS_SLEEPTIME_INFINITE;
        }
        earliest = seen + (u32_t)(next > now ? next - now : 0);
        is_known = true;
    }
    return IS_BEFORE(seen, earliest) ? earliest - seen : 0;
}

static u32_t put_off; /* by sys_restart_timeouts() */

static void restart(struct timeout *timeout)
{
    timeout->due += put_off;
    start(timeout);
}

/* The earliest timeout becomes due now, the others as much later as before. */
void sys_restart_timeouts(void)
{
    is_known = false;
    earliest = see() + LWIP_MAX_TIMEOUT;
    each_timeout(see_due);
    put_off = seen - earliest;
    each_timeout(restart);
    list_show();
}

#if !LWIP_TESTMODE
static void lwip_cyclic_timer(void *arg);
#endif

/* Keeps the phase of a cyclic timer, unless that is past already. */
void lwip_cyclic_timer(void *arg)
{
    const struct lwip_cyclic_timer *const cyclic =
        (const struct lwip_cyclic_timer *)arg;
    u32_t next = due + cyclic->interval_ms;

    cyclic->handler();
    if (IS_BEFORE(next, see())) {
        next = seen + cyclic->interval_ms;
    }
#if LWIP_DEBUG_TIMERNAMES
    timeout_at(next, lwip_cyclic_timer, arg, cyclic->handler_name);
#else
    timeout_at(next, lwip_cyclic_timer, arg, NULL);
#endif
}

#if LWIP_TCP
static int is_tcp_timer_on;

static void on_tcp_timer(void *arg)
{
    LWIP_UNUSED_ARG(arg);
    tcp_tmr();
    is_tcp_timer_on = 0;
    tcp_timer_needed();
}

/* TCP calls it when it has a connection. */
void tcp_timer_needed(void)
{
    LWIP_ASSERT_CORE_LOCKED();
    if (!is_tcp_timer_on && (tcp_active_pcbs || tcp_tw_pcbs)) {
        is_tcp_timer_on = 1;
        sys_timeout(TCP_TMR_INTERVAL, on_tcp_timer, NULL);
    }
}
#endif /* LWIP_TCP */

void sys_timeouts_init(void)
{
    LWIP_MEMPOOL_INIT(lawn_timeout);
    if (lawn_create(NULL, &lawn) != LAWN_OK) {
        LWIP_PLATFORM_DIAG(("no memory for the timeouts\n"));
        abort();
    }
    now = (lawn_time_t)1 << 32; /* so that no time is negative */
    seen = sys_now();
    /* The first is TCP's, if there is TCP. */
    for (int i = LWIP_TCP ? 1 : 0; i < lwip_num_cyclic_timers; ++i) {
        void *const cyclic = LWIP_CONST_CAST(void *, &lwip_cyclic_timers[i]);
        sys_timeout(lwip_cyclic_timers[i].interval_ms, lwip_cyclic_timer,
                    cyclic);
    }
}

/* lwIP's tests look at the list of timeouts, which is sorted and has to be
 * right after every call. They also begin with an empty list by storing NULL.
 * Here, that ends the timeouts. */
#if LWIP_TESTMODE
static struct sys_timeo entries[MEMP_NUM_SYS_TIMEOUT];
static struct sys_timeo *first_entry;
static size_t entry_count;

static void list_insert(struct timeout *timeout)
{
    struct sys_timeo *const entry = &entries[entry_count++];
    struct sys_timeo **link = &first_entry;
    while (*link && !IS_BEFORE(timeout->due, (*link)->time)) {
        link = &(*link)->next;
    }
    entry->time = timeout->due;
    entry->h = timeout->handler;
    entry->arg = timeout->arg;
    entry->next = *link;
    *link = entry;
}

static void list_show(void)
{
    first_entry = NULL;
    entry_count = 0;
    each_timeout(list_insert);
}

static void list_obey(void)
{
    if (!first_entry && entry_count > 0) {
        each_timeout(stop);
    }
}

struct sys_timeo **sys_timeouts_get_next_timeout(void)
{
    return &first_entry;
}
#endif
