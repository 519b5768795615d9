/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The callouts of usrsctp 0.9.5 on a Lawn: the header of sctp_callout.c beside
 * it, with the names that the rest of usrsctp uses.
 */
#ifndef _NETINET_SCTP_CALLOUT_
#define _NETINET_SCTP_CALLOUT_

#include <lawn/timer.h>

#include <stdint.h>

/* usrsctp then makes and destroys the lock, and has a list in its globals that
 * is not used here. */
#define _SCTP_NEEDS_CALLOUT_ 1
#define SCTP_TIMERQ_LOCK_INIT() sctp_callouts_init()
#define SCTP_TIMERQ_LOCK_DESTROY() sctp_callouts_finish()
TAILQ_HEAD(calloutlist, sctp_callout);

/* In c_flags. Start and stop set them with the lock of the callouts held, but
 * any thread may look at them, and the handler takes ACTIVE away. */
#define SCTP_CALLOUT_ACTIVE 2  /* started, and not seen by the handler yet */
#define SCTP_CALLOUT_PENDING 4 /* in the lawn */

struct sctp_callout {
    lawn_timer_t timer; /* the first, so that its address is the callout's */
    void *c_arg;
    void (*c_func)(void *);
    int c_flags; /* atomic */
};
typedef struct sctp_callout sctp_os_timer_t;

void sctp_callouts_init(void);
void sctp_callouts_finish(void);
void sctp_start_timer_thread(void);
void sctp_stop_timer_thread(void);

/* A tick is a millisecond. Without threads, the program says how many have
 * passed. */
void sctp_handle_tick(uint32_t elapsed_ticks);
uint32_t sctp_get_tick_count(void);

void sctp_os_timer_init(sctp_os_timer_t *c);
/* Return 1 if the timer was pending. */
int sctp_os_timer_start(sctp_os_timer_t *c, uint32_t to_ticks,
                        void (*ftn)(void *), void *arg);
int sctp_os_timer_stop(sctp_os_timer_t *c);

#define SCTP_OS_TIMER_INIT sctp_os_timer_init
#define SCTP_OS_TIMER_START sctp_os_timer_start
#define SCTP_OS_TIMER_STOP sctp_os_timer_stop
#define SCTP_OS_TIMER_STOP_DRAIN sctp_os_timer_stop
#define SCTP_OS_TIMER_PENDING(c)                                               \
    (__atomic_load_n(&(c)->c_flags, __ATOMIC_ACQUIRE) & SCTP_CALLOUT_PENDING)
#define SCTP_OS_TIMER_ACTIVE(c)                                                \
    (__atomic_load_n(&(c)->c_flags, __ATOMIC_ACQUIRE) & SCTP_CALLOUT_ACTIVE)
#define SCTP_OS_TIMER_DEACTIVATE(c)                                            \
    __atomic_fetch_and(&(c)->c_flags, ~SCTP_CALLOUT_ACTIVE, __ATOMIC_RELAXED)

#endif
