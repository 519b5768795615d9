// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Reads histograms (lawn/stats.h). lawn_histogram_bucket() drops the low
// `shift` bits of a value from 8 on, so that four bits are left and the highest
// of them is set. The buckets 8 * (shift + 1) to 8 * (shift + 1) + 7 count
// these values.

#include <lawn/stats.h>

uint64_t lawn_histogram_bound(unsigned bucket)
{
    if (bucket >= LAWN_HISTOGRAM_BUCKETS - 1) {
        return UINT64_MAX;
    }
    if (bucket < 16) {
        return bucket;
    }
    const unsigned shift = bucket / 8 - 1;
    return ((uint64_t{bucket % 8} + 9) << shift) - 1;
}

uint64_t lawn_histogram_count(const lawn_histogram_t *histogram)
{
    uint64_t count = 0;
    for (const uint64_t bucket : histogram->buckets) {
        count += bucket;
    }
    return count;
}

uint64_t lawn_histogram_quantile(const lawn_histogram_t *histogram, double q)
{
    const uint64_t count = lawn_histogram_count(histogram);
    const double share = q >= 0 && q < 1 ? q : q < 0 ? 0 : 1;
    const double most = share * static_cast<double>(count);
    uint64_t below = 0;
    for (unsigned i = 0; i < LAWN_HISTOGRAM_BUCKETS && share < 1; ++i) {
        below += histogram->buckets[i];
        if (below != 0 && static_cast<double>(below) >= most) {
            const uint64_t bound = lawn_histogram_bound(i);
            return bound < histogram->max ? bound : histogram->max;
        }
    }
    return histogram->max;
}
