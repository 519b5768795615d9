/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/ucs_compat.h - the timers of UCX: ucs_twheel on top of a lawn, and
 * ucs_timerq. The calls are the same, without the faults listed below. Their
 * names begin with lawn_ucs_. If LAWN_UCS_COMPAT is defined, they also have the
 * names of UCX 1.13, for programs written for it:
 *
 *     cc -DLAWN_UCS_COMPAT -include lawn/ucs_compat.h program.c -llawn
 *
 * If the program includes <ucs/time/timer_wheel.h> and <ucs/time/timerq.h> from
 * UCX's sources, these are then empty. This header defines no symbol, so libucs
 * may be linked too. If UCX's headers are found, the status codes, times and
 * clock are UCX's.
 *
 * As in UCX: a delta counts from ucs_twheel_get_time(). Adding a timer that
 * runs returns UCS_ERR_BUSY and does not change the timer. A late sweep fires
 * every timer that is due, once, in no set order. Callbacks may add, remove and
 * free timers. Only one thread may use a wheel. A queue has a lock.
 *
 * The wheel differs from UCX 1.13:
 *   - A timer fires at the first sweep at or after its time. In UCX, it fires a
 *     slot later, or a slot earlier if a callback added it. UCX also counts
 *     only the whole slots between two sweeps, and drops the rest of the time.
 *     So its timers take twice as long if the sweep comes every 0.99 or 1.99 of
 *     the resolution.
 *   - Any delta is exact. In UCX, a delta beyond 1023 slots becomes 1023 slots,
 *     and a delta below one slot ends the program. Here a delta of 0 is due at
 *     the next sweep. So is a negative delta, 2^63 and more, such as
 *     `now - get_time() + tick` after the clock went back. UCS_TIME_INFINITY
 *     never expires.
 *   - The delta of a timer that a callback adds counts from the time of the
 *     sweep. In UCX, it counts from the slot that is swept: after a stall of
 *     500 slots, a timer that adds itself for 10 slots fires 49 times.
 *   - When the clock goes back, no timer fires until the clock has caught up. A
 *     sweep inside a callback only sets the time. In UCX, every timer fires in
 *     both cases.
 *   - The time of the wheel is that of the latest sweep, however soon it came
 *     after another. UCX ignores a sweep that comes within the resolution. A
 *     timer that is added long after the latest sweep is early, here and in
 *     UCX. To avoid this, make the delta longer or call
 *     lawn_ucs_wtimer_add_at().
 *   - In the callback of the last timer, the wheel is already empty.
 *   - Cleaning up a wheel makes its running timers idle, so they must still
 *     exist. UCX does not touch them.
 *   - `res` (not rounded up) and `num_slots` have no effect. The other fields
 *     are gone, also `is_active` of a timer: lawn_ucs_wtimer_is_active() tells.
 *     `lawn` is there for lawn_next().
 *   - A program that relies on the limit of 1023 slots sets `max_delta` after
 *     the init. Longer deltas are then cut to it, UCS_TIME_INFINITY too.
 *
 * The queue differs from UCX 1.13:
 *   - A timer keeps its phase: it is due at multiples of its interval after it
 *     first fired. It fires once for all multiples that were missed. In UCX,
 *     the interval starts again when the timer fires: a timer of 10 ms that is
 *     polled every 7 ms fires every 14 ms.
 *   - The loop may remove timers, also the current one. It may add timers, for
 *     the next loop. In UCX, removing skips other timers or reads freed memory.
 *     If a loop breaks, the timers that it did not reach are still due.
 *   - An interval of 0 is one tick. Cleaning up does not warn of timers that
 *     remain. `timers` is gone.
 *
 * A wheel takes a lawn, 22 KiB, and each of its timers 48 bytes. In UCX, these
 * are 16 KiB and 32 bytes. A queue is for a handful of timers, for which a lawn
 * would cost more than it saves: as in UCX, each call looks at all of them. The
 * patches in contrib/ucx put UCX itself on these timers.
 */
#ifndef LAWN_UCS_COMPAT_H
#define LAWN_UCS_COMPAT_H

#include <lawn/timer.h>

#include <pthread.h>
#include <stddef.h>

#ifdef __has_include
#if __has_include(<ucs/type/status.h>) && __has_include(<ucs/time/time_def.h>)
#include <ucs/time/time_def.h>
#include <ucs/type/status.h>
#endif
#if defined(LAWN_UCS_COMPAT) && __has_include(<ucs/time/time.h>)
#include <ucs/time/time.h>
#endif
#endif

#ifndef UCS_TYPES_STATUS_H_
/* UCX's status codes that timers return. The type is packed, as in UCX. */
typedef enum {
    UCS_OK = 0,
    UCS_ERR_NO_MEMORY = -4,
    UCS_ERR_INVALID_PARAM = -5,
    UCS_ERR_NO_ELEM = -12,
    UCS_ERR_BUSY = -15,
    UCS_ERR_ALREADY_EXISTS = -18
} __attribute__((packed)) ucs_status_t;
#endif
#ifndef UCS_TIME_DEF_H
typedef unsigned long ucs_time_t;
#endif

LAWN_BEGIN_DECLS

/*
 * The wheel.
 */

typedef struct lawn_ucs_wtimer lawn_ucs_wtimer_t;
typedef void (*lawn_ucs_twheel_callback_t)(lawn_ucs_wtimer_t *self);

struct lawn_ucs_wtimer {
    lawn_timer_t timer; /* first, so its address is that of the whole */
    lawn_ucs_twheel_callback_t cb;
};

typedef struct lawn_ucs_twheel {
    ucs_time_t res;
    ucs_time_t now;       /* the latest time seen */
    ucs_time_t max_delta; /* UCS_TIME_INFINITY: every delta is exact */
    unsigned num_slots;
    bool is_sweeping;
    lawn_t *lawn;
} lawn_ucs_twheel_t;

/* Makes an empty wheel whose time is `current_time`. Allocates a lawn. Returns
 * UCS_OK or UCS_ERR_NO_MEMORY. */
static inline ucs_status_t lawn_ucs_twheel_init(lawn_ucs_twheel_t *w,
                                                ucs_time_t resolution,
                                                ucs_time_t current_time);

/* As lawn_ucs_twheel_init(), with the memory of `params`, which may be NULL.
 * UCX has no such call. Returns UCS_ERR_INVALID_PARAM as lawn_create() does. */
static inline ucs_status_t
lawn_ucs_twheel_init_with(lawn_ucs_twheel_t *w, ucs_time_t resolution,
                          ucs_time_t current_time, const lawn_params_t *params);

/* Frees the lawn. Running timers become idle, and their callbacks do not run.
 * Not for a callback. */
static inline void lawn_ucs_twheel_cleanup(lawn_ucs_twheel_t *w);

/* Returns the time of the wheel: the latest that a call has given. */
static inline ucs_time_t lawn_ucs_twheel_get_time(const lawn_ucs_twheel_t *w);

/* Returns whether no timer runs. */
static inline int lawn_ucs_twheel_is_empty(const lawn_ucs_twheel_t *w);

/* Sets the time, and runs the callbacks of all timers that are due. */
static inline void lawn_ucs_twheel_sweep(lawn_ucs_twheel_t *w,
                                         ucs_time_t current_time);

/* Makes an idle timer. The memory is the caller's. Returns UCS_OK. */
static inline ucs_status_t lawn_ucs_wtimer_init(lawn_ucs_wtimer_t *timer,
                                                lawn_ucs_twheel_callback_t cb);

/* Starts an idle timer, `delta` from the time of the wheel. O(1), allocates
 * nothing. Returns UCS_OK, or UCS_ERR_BUSY if the timer runs. */
static inline ucs_status_t lawn_ucs_wtimer_add(lawn_ucs_twheel_t *w,
                                               lawn_ucs_wtimer_t *timer,
                                               ucs_time_t delta);

/* As lawn_ucs_wtimer_add(), but `delta` counts from `now`. UCX has no such
 * call. */
static inline ucs_status_t lawn_ucs_wtimer_add_at(lawn_ucs_twheel_t *w,
                                                  lawn_ucs_wtimer_t *timer,
                                                  ucs_time_t now,
                                                  ucs_time_t delta);

/* Stops a timer. Does nothing if it is idle. O(1), allocates nothing. */
static inline void lawn_ucs_wtimer_remove(lawn_ucs_twheel_t *w,
                                          lawn_ucs_wtimer_t *timer);

/* True from the add until the callback or the remove. UCX has no such call, but
 * the field `is_active`. */
static inline bool lawn_ucs_wtimer_is_active(const lawn_ucs_wtimer_t *timer);

/*
 * The queue of periodic timers, by id.
 */

typedef struct lawn_ucs_timer {
    ucs_time_t expiration; /* 0 until it has fired: due at once */
    ucs_time_t interval;
    int id;
    struct lawn_ucs_timer *next;
} lawn_ucs_timer_t;

typedef struct lawn_ucs_timerq {
    pthread_t owner; /* of the lock; 0: nobody */
    unsigned depth;  /* how often the owner has taken the lock */
    unsigned num_timers;
    ucs_time_t min_interval; /* UCS_TIME_INFINITY if there is none */
    lawn_allocator_t memory; /* of the timers */
    lawn_ucs_timer_t *first;
    /* Of the loop that runs: its time, and the timer that it looks at next. */
    ucs_time_t now;
    lawn_ucs_timer_t *next;
} lawn_ucs_timerq_t;

/* Makes an empty queue. Allocates nothing. Returns UCS_OK. */
static inline ucs_status_t lawn_ucs_timerq_init(lawn_ucs_timerq_t *q);

/* As lawn_ucs_timerq_init(), with the memory of `params`, which may be NULL.
 * UCX has no such call. Returns UCS_ERR_INVALID_PARAM if only one of alloc and
 * release is set. */
static inline ucs_status_t
lawn_ucs_timerq_init_with(lawn_ucs_timerq_t *q, const lawn_params_t *params);

/* Frees the timers that remain. No other thread may use the queue. */
static inline void lawn_ucs_timerq_cleanup(lawn_ucs_timerq_t *q);

/* Adds a timer, which is due at once and then in each `interval`. Allocates it.
 * Any thread may call it. Returns UCS_OK, UCS_ERR_ALREADY_EXISTS if there is
 * one with this id, or UCS_ERR_NO_MEMORY. */
static inline ucs_status_t lawn_ucs_timerq_add(lawn_ucs_timerq_t *q, int id,
                                               ucs_time_t interval);

/* Removes and frees a timer. Any thread may call it. Returns UCS_OK, or
 * UCS_ERR_NO_ELEM if there is no such timer. */
static inline ucs_status_t lawn_ucs_timerq_remove(lawn_ucs_timerq_t *q, int id);

/* Returns the shortest interval, or UCS_TIME_INFINITY without a timer. As in
 * UCX, this and the next two read without the lock. */
static inline ucs_time_t
lawn_ucs_timerq_min_interval(const lawn_ucs_timerq_t *q);

/* Returns how many timers there are. */
static inline int lawn_ucs_timerq_size(const lawn_ucs_timerq_t *q);

/* Returns whether there is no timer. */
static inline int lawn_ucs_timerq_is_empty(const lawn_ucs_timerq_t *q);

/* Locks the queue and runs `code` for each timer that is due, in `timer`. */
#define lawn_ucs_timerq_for_each_expired(timer, queue, current_time, code)     \
    {                                                                          \
        lawn_ucs_timerq_begin(queue, current_time);                            \
        while (((timer) = lawn_ucs_timerq_next_expired(queue)) != NULL) {      \
            code;                                                              \
        }                                                                      \
        lawn_ucs_timerq_end(queue);                                            \
    }

LAWN_END_DECLS

#include <lawn/ucs_compat_inline.h>

/*
 * The names of UCX.
 */

#ifdef LAWN_UCS_COMPAT

#if defined(UCS_WHEEL_H) || defined(UCS_TIMERQ_H)
#error "include lawn/ucs_compat.h before UCX's timer_wheel.h and timerq.h"
#endif
#define UCS_WHEEL_H
#define UCS_TIMERQ_H

#ifndef ucs_container_of
#define ucs_container_of(ptr, type, member)                                    \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#endif

#define ucs_twheel_callback_t lawn_ucs_twheel_callback_t
#define ucs_wtimer lawn_ucs_wtimer
#define ucs_wtimer_t lawn_ucs_wtimer_t
#define ucs_timer_wheel lawn_ucs_twheel
#define ucs_twheel_t lawn_ucs_twheel_t
#define ucs_twheel_init lawn_ucs_twheel_init
#define ucs_twheel_cleanup lawn_ucs_twheel_cleanup
#define ucs_twheel_get_time lawn_ucs_twheel_get_time
#define ucs_twheel_is_empty lawn_ucs_twheel_is_empty
#define ucs_twheel_sweep lawn_ucs_twheel_sweep
#define __ucs_twheel_sweep lawn_ucs_twheel_sweep
#define ucs_wtimer_init lawn_ucs_wtimer_init
#define ucs_wtimer_add lawn_ucs_wtimer_add
#define __ucs_wtimer_add lawn_ucs_wtimer_add
#define ucs_wtimer_remove lawn_ucs_wtimer_remove

#define ucs_timer lawn_ucs_timer
#define ucs_timer_t lawn_ucs_timer_t
#define ucs_timer_queue lawn_ucs_timerq
#define ucs_timer_queue_t lawn_ucs_timerq_t
#define ucs_timerq_init lawn_ucs_timerq_init
#define ucs_timerq_cleanup lawn_ucs_timerq_cleanup
#define ucs_timerq_add lawn_ucs_timerq_add
#define ucs_timerq_remove lawn_ucs_timerq_remove
#define ucs_timerq_min_interval lawn_ucs_timerq_min_interval
#define ucs_timerq_size lawn_ucs_timerq_size
#define ucs_timerq_is_empty lawn_ucs_timerq_is_empty
#define ucs_timerq_for_each_expired lawn_ucs_timerq_for_each_expired

#ifndef UCS_TIME_H
#define UCS_TIME_INFINITY LAWN_TIME_INFINITY
#define ucs_get_time lawn_get_time
#define ucs_time_from_sec lawn_time_from_sec
#define ucs_time_from_msec lawn_time_from_msec
#define ucs_time_from_usec lawn_time_from_usec
#define ucs_time_to_sec lawn_time_to_sec
#define ucs_time_to_msec lawn_time_to_msec
#define ucs_time_to_usec lawn_time_to_usec
#define ucs_time_to_nsec lawn_time_to_nsec
#endif

#endif
#endif
