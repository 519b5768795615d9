/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/stats.h - how late timers fire, how many wait, and which run.
 *
 *     lawn_histogram_t late;
 *     lawn_engine_query_lateness(engine, &late);
 *     printf("p99 %.1f us\n",
 *            lawn_time_to_usec(lawn_histogram_quantile(&late, 0.99)));
 *
 * A timer's lateness is the time of the pass that fires it less its deadline.
 * An engine counts that of each timer in a histogram (lawn/engine.h); a program
 * may use one for what it measures itself.
 *
 * The buckets of a histogram are log-linear, as those of HdrHistogram: values
 * below 16 have a bucket each, and each power of two above has eight. So a
 * bucket is at most an eighth of its values wide, and all 64-bit values fit.
 */
#ifndef LAWN_STATS_H
#define LAWN_STATS_H

#include <lawn/timer.h>

#include <stdio.h>

LAWN_BEGIN_DECLS

#define LAWN_HISTOGRAM_BUCKETS 496

/* Zero-filled is empty. */
typedef struct {
    uint64_t max; /* the largest value, exact */
    uint64_t buckets[LAWN_HISTOGRAM_BUCKETS];
} lawn_histogram_t;

/* The bucket that counts `value`. Any thread. */
LAWN_INLINE unsigned lawn_histogram_bucket(uint64_t value)
{
    const unsigned shift = 60 - (unsigned)__builtin_clzll(value | 8);
    return (shift << 3) + (unsigned)(value >> shift);
}

/* Counts `value`. One thread at a time; others may copy the histogram word by
 * word meanwhile, as lawn_engine_query_lateness() does. Some ten instructions;
 * never allocates, cannot fail. */
LAWN_INLINE void lawn_histogram_add(lawn_histogram_t *histogram, uint64_t value)
{
    uint64_t *const bucket = &histogram->buckets[lawn_histogram_bucket(value)];
    __atomic_store_n(bucket, *bucket + 1, __ATOMIC_RELAXED);
    if (LAWN_UNLIKELY(value > histogram->max)) {
        __atomic_store_n(&histogram->max, value, __ATOMIC_RELAXED);
    }
}

/* The largest value that `bucket` counts; UINT64_MAX for the last bucket and
 * for numbers that no bucket has. Any thread. */
LAWN_API uint64_t lawn_histogram_bound(unsigned bucket);

/* How many values were counted. Any thread. */
LAWN_API uint64_t lawn_histogram_count(const lawn_histogram_t *histogram);

/* A value that the share `q` of all values does not exceed: the bound of a
 * bucket, so that it is never below the true quantile, nor more than an eighth
 * above it; 1 gives the maximum itself. `q` below 0 is taken for 0, above 1 and
 * NaN for 1. 0 for an empty histogram. Any thread. */
LAWN_API uint64_t lawn_histogram_quantile(const lawn_histogram_t *histogram,
                                          double q);

/* How many running timers have a deadline at or before `now`: what an advance
 * to `now` would fire, and what a pass that ended at its budget has left over.
 * Looks at no more than `max_looks` timers (0: no limit), and then returns how
 * many of those were due. The lawn's thread, between advances. */
LAWN_API size_t lawn_backlog(const lawn_t *lawn, lawn_time_t now,
                             size_t max_looks);

/* Writes a line for each running timer of `lawn` to `stream`, in no order: its
 * address, that of its callback, its deadline, and the ticks left until then,
 * negative when it is late. `now` is the time to reckon from. LAWN_ERR_IO when
 * the stream reports an error. Takes time for every timer that runs: for a
 * debugger, an error's report, a developer. The lawn's thread. */
LAWN_API lawn_status_t lawn_dump(const lawn_t *lawn, lawn_time_t now,
                                 FILE *stream);

LAWN_END_DECLS

#endif
