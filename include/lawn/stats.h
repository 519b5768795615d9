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
 * The lateness of a timer is the time of the pass that fires it minus its
 * deadline. An engine counts the lateness of each timer in a histogram
 * (lawn/engine.h). A program may use a histogram for its own measurements.
 *
 * The buckets of a histogram are log-linear, like those of HdrHistogram. Each
 * value below 16 has its own bucket, and each power of two above has eight. So
 * a bucket is at most 12.5 % of its smallest value wide, and all 64-bit values
 * fit.
 */
#ifndef LAWN_STATS_H
#define LAWN_STATS_H

#include <lawn/timer.h>

#include <stdio.h>

LAWN_BEGIN_DECLS

#define LAWN_HISTOGRAM_BUCKETS 496

/* A zero-filled histogram is empty. */
typedef struct {
    uint64_t max; /* the largest value, exact */
    uint64_t buckets[LAWN_HISTOGRAM_BUCKETS];
} lawn_histogram_t;

/* Returns the bucket that counts `value`. Any thread may call it. */
LAWN_INLINE unsigned lawn_histogram_bucket(uint64_t value)
{
    const unsigned shift = 60 - (unsigned)__builtin_clzll(value | 8);
    return (shift << 3) + (unsigned)(value >> shift);
}

/* Counts `value`. Only one thread at a time may add to a histogram. Other
 * threads may copy it word by word meanwhile, by loads that acquire. If they
 * copy `max` last, it is never below a value that is in the buckets. Takes
 * about ten instructions. Cannot fail. Does not allocate. */
LAWN_INLINE void lawn_histogram_add(lawn_histogram_t *histogram, uint64_t value)
{
    uint64_t *const bucket = &histogram->buckets[lawn_histogram_bucket(value)];
    if (LAWN_UNLIKELY(value > histogram->max)) {
        __atomic_store_n(&histogram->max, value, __ATOMIC_RELEASE);
    }
    __atomic_store_n(bucket, *bucket + 1, __ATOMIC_RELEASE);
}

/* Returns the largest value that `bucket` counts. Returns UINT64_MAX for the
 * last bucket and for numbers that no bucket has. Any thread may call it. */
LAWN_API uint64_t lawn_histogram_bound(unsigned bucket);

/* Returns how many values were counted. Any thread may call it for a histogram
 * that no thread changes meanwhile, such as a copy by
 * lawn_engine_query_lateness(). */
LAWN_API uint64_t lawn_histogram_count(const lawn_histogram_t *histogram);

/* Returns a value that the share `q` of all values does not exceed. It is the
 * bound of a bucket: never below the true quantile, and at most an eighth above
 * it. If `q` is 1, it is the maximum itself. A `q` below 0 is used as 0. A `q`
 * above 1 or NaN is used as 1. An empty histogram gives 0. Any thread may
 * call it, as lawn_histogram_count(). */
LAWN_API uint64_t lawn_histogram_quantile(const lawn_histogram_t *histogram,
                                          double q);

/* Returns how many running timers have a deadline at or before `now`. An
 * advance to `now` would fire these timers. After a pass that ended at its
 * budget, they are the timers left over. A timer that threads or processes
 * share counts if it would expire (lawn/shared.h, lawn/shm.h). Looks at no more
 * than `max_looks` timers (0: no limit), and returns how many of those are due.
 * Only the lawn's thread may call it, between advances. */
LAWN_API size_t lawn_backlog(const lawn_t *lawn, lawn_time_t now,
                             size_t max_looks);

/* Writes a line for each running timer of `lawn` to `stream`, in no order. The
 * line has the address of the timer, the address of its callback, its deadline,
 * and the ticks from `now` to the deadline. The ticks are negative if the timer
 * is late. A shared timer is shown with a callback of the library. It has a
 * line only if the owner has taken its start. Returns LAWN_ERR_IO if the stream
 * reports an error. The time it takes grows with the number of running timers:
 * call it for debugging and for error reports. Only the lawn's thread may call
 * it. */
LAWN_API lawn_status_t lawn_dump(const lawn_t *lawn, lawn_time_t now,
                                 FILE *stream);

LAWN_END_DECLS

#endif
