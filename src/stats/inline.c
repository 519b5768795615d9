/* Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of the inline functions of lawn/stats.h, for callers that do not
 * inline them. */
#include <lawn/stats.h>

extern inline unsigned lawn_histogram_bucket(uint64_t value);
extern inline void lawn_histogram_add(lawn_histogram_t *histogram,
                                      uint64_t value);
