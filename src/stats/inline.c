/* Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The inline functions of statistics as symbols. */
#include <lawn/conn.h>
#include <lawn/engine.h>

extern inline unsigned lawn_histogram_bucket(uint64_t value);
extern inline void lawn_histogram_add(lawn_histogram_t *histogram,
                                      uint64_t value);
extern inline void lawn_conn_query(const lawn_conn_t *conn,
                                   lawn_conn_stats_t *stats);
extern inline void lawn_engine_query(const lawn_engine_t *engine,
                                     lawn_engine_stats_t *stats);
