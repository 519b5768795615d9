/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/durable_pump.h - pumps, which move due timers to the streams. Part of
 * lawn/durable.h.
 *
 *     lawn_durable_pump_start(durable, NULL, &pump);
 *
 * A namespace needs one, and may have any number: none is special, and each can
 * die at any time. lawnd is one. What keeps one from firing timers, from giving
 * cron timers their next times, or from hearing of new timers and other pumps,
 * lawn_durable_error() says until it is over.
 *
 * Threads: as lawn/durable.h says.
 */
#ifndef LAWN_DURABLE_PUMP_H
#define LAWN_DURABLE_PUMP_H

#include <lawn/durable.h>
#include <lawn/stats.h>

LAWN_BEGIN_DECLS

typedef struct lawn_durable_pump lawn_durable_pump_t;

/* A zero-filled structure selects all defaults. */
typedef struct {
    const char *name;     /* NULL: host, process and a number; one per pump */
    uint64_t prefetch_us; /* 0: 100 ms. Due times that near are held here. */
    uint64_t coalesce_us; /* 0: 1 ms between two calls for a shard */
} lawn_durable_pump_params_t;

/* What a pump has counted. A later version may add fields at the end. */
typedef struct {
    uint64_t fired;   /* timers */
    uint64_t calls;   /* of the store */
    uint64_t wakeups; /* polls that have found something to do for the pump */
    uint64_t missed;  /* skipped or ended by their misfire policy */
    uint64_t errors;  /* calls that have failed */
    lawn_histogram_t lateness_us;   /* of firing, by the store's clock */
    lawn_histogram_t round_trip_us; /* of a call of the store */
} lawn_durable_pump_stats_t;

/* Makes a pump. It fires timers in lawn_durable_poll() as soon as the store is
 * reached. Returns INVALID_PARAM, also for times of more than an hour, or
 * NO_MEMORY. */
static inline lawn_status_t
lawn_durable_pump_start(lawn_durable_t *durable,
                        const lawn_durable_pump_params_t *params,
                        lawn_durable_pump_t **pump_p);
LAWN_API lawn_status_t lawn_durable_pump_start_sized(
    lawn_durable_t *durable, const lawn_durable_pump_params_t *params,
    size_t size, lawn_durable_pump_t **pump_p);

/* Copies what a pump has counted, some eight kilobytes. */
static inline void lawn_durable_pump_query(const lawn_durable_pump_t *pump,
                                           lawn_durable_pump_stats_t *stats);
LAWN_API void lawn_durable_pump_query_sized(const lawn_durable_pump_t *pump,
                                            lawn_durable_pump_stats_t *stats,
                                            size_t size);

/* Frees a pump. Others take its shards over. NULL does nothing. */
LAWN_API void lawn_durable_pump_close(lawn_durable_pump_t *pump);

static inline lawn_status_t
lawn_durable_pump_start(lawn_durable_t *durable,
                        const lawn_durable_pump_params_t *params,
                        lawn_durable_pump_t **pump_p)
{
    return lawn_durable_pump_start_sized(durable, params, sizeof(*params),
                                         pump_p);
}

static inline void lawn_durable_pump_query(const lawn_durable_pump_t *pump,
                                           lawn_durable_pump_stats_t *stats)
{
    lawn_durable_pump_query_sized(pump, stats, sizeof(*stats));
}

LAWN_END_DECLS

#endif
