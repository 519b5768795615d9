/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A log-linear histogram of 64-bit values. It is exact below 64 and has 64
 * buckets per octave above, so a percentile is never off by more than 1.6 %. To
 * record a value costs an increment and no allocation, so a progress loop can
 * afford it.
 */
#ifndef LAWN_TEST_RIG_HISTOGRAM_H
#define LAWN_TEST_RIG_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_LINEAR 64u
#define HISTOGRAM_BUCKETS (59u * HISTOGRAM_LINEAR)

typedef struct {
    uint64_t count;
    uint64_t min; /* exact; 0 when empty */
    uint64_t max; /* exact */
    uint32_t buckets[HISTOGRAM_BUCKETS];
} histogram_t;

static inline unsigned histogram_index(uint64_t value)
{
    if (value < HISTOGRAM_LINEAR) {
        return (unsigned)value;
    }
    unsigned shift = 57u - (unsigned)__builtin_clzll(value);
    return shift * HISTOGRAM_LINEAR + (unsigned)(value >> shift);
}

/* The largest value that a bucket counts. */
static inline uint64_t histogram_bound(unsigned index)
{
    if (index < 2 * HISTOGRAM_LINEAR) {
        return index;
    }
    unsigned shift = index / HISTOGRAM_LINEAR - 1;
    uint64_t floor = HISTOGRAM_LINEAR + index % HISTOGRAM_LINEAR;
    return (floor << shift) + ((uint64_t)1 << shift) - 1;
}

static inline void histogram_record(histogram_t *histogram, uint64_t value)
{
    if (histogram->count == 0 || value < histogram->min) {
        histogram->min = value;
    }
    if (value > histogram->max) {
        histogram->max = value;
    }
    ++histogram->count;
    ++histogram->buckets[histogram_index(value)];
}

/* The least value that `share` (0 to 1) of all values do not exceed, rounded up
 * within its bucket. Returns 0 if the histogram is empty. */
static inline uint64_t histogram_quantile(const histogram_t *histogram,
                                          double share)
{
    uint64_t rank = (uint64_t)(share * (double)histogram->count);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; ++i) {
        seen += histogram->buckets[i];
        if (seen > rank) {
            uint64_t bound = histogram_bound(i);
            return bound < histogram->max ? bound : histogram->max;
        }
    }
    return histogram->max;
}

#endif
