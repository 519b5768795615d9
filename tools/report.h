/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What lawn_top prints of the engines' pages: for people, as JSON, and as
 * Prometheus reads it.
 */
#ifndef LAWN_TOOLS_REPORT_H
#define LAWN_TOOLS_REPORT_H

#include "pages.h"

/* A line for each engine. Rates are per second since `before`, which has the
 * same pages as they were (NULL: rates are left out). */
void report_table(const pages_t *pages, const pages_t *before);

/* How late the timers of an engine have fired, a bar for each power of two. */
void report_lateness(const page_t *page);

/* An array with an object for each engine; times are microseconds. */
void report_json(const pages_t *pages);

/* The text format of Prometheus, version 0.0.4; times are seconds. */
void report_prometheus(const pages_t *pages);

#endif
