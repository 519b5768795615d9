/* Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The inline functions of lawn/stats.h and lawn/engine.h as symbols. */
#include <lawn/engine.h>

extern inline unsigned lawn_histogram_bucket(uint64_t value);
extern inline void lawn_histogram_add(lawn_histogram_t *histogram,
                                      uint64_t value);
extern inline void lawn_engine_query(const lawn_engine_t *engine,
                                     lawn_engine_stats_t *stats);
