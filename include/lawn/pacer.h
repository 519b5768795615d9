/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/pacer.h - pacing: when may this flow send its next bytes?
 *
 *     lawn_pacer_init(&flow->pacer, lawn, &params, on_ready);
 *     while (flow->packets && lawn_pacer_take(&flow->pacer, now, size)) {
 *         send_one(flow);                // if not: on_ready comes in time
 *     }
 *     lawn_pacer_set_rate(&flow->pacer, now, bytes_per_sec, burst);
 *
 * A pacer is a leaky bucket: a rate, and a burst that may go out at once. It
 * keeps one time, at which all that was taken will have been paid for at the
 * rate (the virtual scheduling algorithm of ITU-T I.371; Carousel,
 * SIGCOMM 2017, has timestamps and a wheel for the same). Its only timer runs
 * while the flow waits. So there are no slots and no horizon: a flow of any
 * rate waits as long as it must, and one that has nothing to send costs
 * nothing.
 *
 * In any span of time t, no more is taken than
 *     burst + rate * t,
 * or one packet more than rate * t, if a packet is larger than the burst. A
 * flow that was idle has saved up its burst and nothing beyond. (What is forced
 * comes on top, and is paid for later.)
 *
 * What a late poll costs: `on_ready` comes in the first pass at or after the
 * time, and what the flow could have sent meanwhile counts, up to the burst. So
 * let the burst be one packet and what the rate allows in two of your passes.
 * Then the rate is exact, however coarse the passes are. With a smaller burst
 * the flow is slower, never faster. Under a budget (lawn/timer.h), all flows
 * that are due have their turn before one has its second.
 *
 * Rates are kept as 2^-32 ticks for each byte, rounded up: on a counter of
 * 1 GHz, a rate of 1 TB/s is exact to one in 4 million, and the lowest possible
 * one is 1 byte in 4.3 seconds.
 *
 * All functions are O(1), and none allocates. Threads: only the lawn's thread
 * may call them. `now` is as for lawn_timer_start(). If it goes back, the flow
 * waits until it has caught up.
 */
#ifndef LAWN_PACER_H
#define LAWN_PACER_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_pacer lawn_pacer_t;

/* So much as was last asked for may be taken now. Nothing is taken yet: call
 * lawn_pacer_take(). It may do anything, also free the pacer. */
typedef void (*lawn_pacer_ready_fn_t)(lawn_pacer_t *pacer, lawn_time_t now);

/* Fill it with zeros before you set fields. */
typedef struct {
    double rate;          /* bytes per second */
    uint64_t burst;       /* bytes; 0: one packet at a time */
    double ticks_per_sec; /* of `now`; 0: those of lawn_get_time() */
} lawn_pacer_params_t;

/* Embed it in your flow, and zero it at first: such a pacer paces nothing, and
 * takes all. It must not move while it waits. The fields are the library's. */
struct lawn_pacer {
    lawn_timer_t timer; /* runs while the flow waits */
    lawn_t *lawn;       /* NULL: not initialised */
    lawn_pacer_ready_fn_t ready;
    uint64_t byte_ticks; /* ticks for each byte, times 2^32 */
    uint64_t burst;
    lawn_time_t paid_at; /* when all that was taken is paid for */
    uint32_t paid_at_fraction;
    uint32_t reserved;
    uint64_t wanted; /* bytes for which the flow waits */
    double ticks_per_sec;
};

/* Makes a pacer that has its whole burst. `lawn` must outlive it, or the pacer
 * be stopped before. If `ready` is NULL, the program polls with take or next.
 * Returns INVALID_PARAM if another argument is NULL; if the rate is not above 0
 * (or NaN), is above 2^63, or below one byte in 2^32 ticks; if the burst takes
 * 2^63 ticks or more; or if ticks_per_sec is negative or not finite. Returns
 * BUSY if the pacer waits. On an error, nothing is changed. */
static inline lawn_status_t lawn_pacer_init(lawn_pacer_t *pacer, lawn_t *lawn,
                                            const lawn_pacer_params_t *params,
                                            lawn_pacer_ready_fn_t ready);
LAWN_API lawn_status_t lawn_pacer_init_sized(lawn_pacer_t *pacer, lawn_t *lawn,
                                             const lawn_pacer_params_t *params,
                                             size_t size,
                                             lawn_pacer_ready_fn_t ready);

/* Takes `bytes` and returns true if they may be sent now. If not, returns
 * false, and `ready` is called when they may: the latest call counts. More than
 * the burst may be sent when all that was taken before is paid for. A pacer
 * that waits goes on waiting if something smaller is taken. */
LAWN_API bool lawn_pacer_take(lawn_pacer_t *pacer, lawn_time_t now,
                              uint64_t bytes);

/* Takes `bytes` without asking, for what must be sent at once, such as an ACK.
 * The flow pays for it later. */
LAWN_API void lawn_pacer_force(lawn_pacer_t *pacer, lawn_time_t now,
                               uint64_t bytes);

/* Has `ready` called in the next pass, after what is due already. For a flow
 * that may send, but has had its share of this pass, or finds the send queue
 * full. Takes nothing. */
LAWN_API void lawn_pacer_yield(lawn_pacer_t *pacer, lawn_time_t now);

/* Gives up waiting. `ready` is not called, and the memory may be freed. */
LAWN_API void lawn_pacer_stop(lawn_pacer_t *pacer);

/* Changes rate and burst, at any time, also while the flow waits: it then waits
 * for shorter or longer. What was taken and is not paid for stays so, in bytes.
 * Returns INVALID_PARAM as lawn_pacer_init(), or if the pacer is not
 * initialised, and then changes nothing. */
LAWN_API lawn_status_t lawn_pacer_set_rate(lawn_pacer_t *pacer, lawn_time_t now,
                                           double rate, uint64_t burst);

/* Returns the time from which `bytes` may be taken, if nothing else is taken
 * before; 0 if that is so already at any time. INFINITY: never. */
LAWN_API lawn_time_t lawn_pacer_next(const lawn_pacer_t *pacer, uint64_t bytes);

/* Returns how many bytes of the burst may be taken now. */
LAWN_API uint64_t lawn_pacer_allowance(const lawn_pacer_t *pacer,
                                       lawn_time_t now);

/* Returns true while the flow waits for `ready`. */
static inline bool lawn_pacer_is_waiting(const lawn_pacer_t *pacer)
{
    return lawn_timer_is_active(&pacer->timer);
}

static inline lawn_status_t lawn_pacer_init(lawn_pacer_t *pacer, lawn_t *lawn,
                                            const lawn_pacer_params_t *params,
                                            lawn_pacer_ready_fn_t ready)
{
    return lawn_pacer_init_sized(pacer, lawn, params, sizeof(*params), ready);
}

LAWN_END_DECLS

#endif
