/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What lawn_top prints about the engines' pages: for people, as JSON, and in
 * the text format of Prometheus.
 */
#ifndef LAWN_TOOLS_REPORT_H
#define LAWN_TOOLS_REPORT_H

#include "pages.h"

/* Writes the name of an engine as a terminal may get it: control characters
 * become \x.., and backslashes are doubled. */
#define REPORT_NAME_SIZE 260
void report_name(const page_t *page, char shown[REPORT_NAME_SIZE]);

/* Prints a line for each engine, and a second table of those whose connections
 * have counted anything. Rates are per second since `before`, which has the
 * same pages at an earlier time. If `before` is NULL, rates are left out. */
void report_table(const pages_t *pages, const pages_t *before);

/* Prints how late the timers of an engine have fired, with a bar for each power
 * of two. */
void report_lateness(const page_t *page);

/* Prints an array with an object for each engine. Times are in microseconds. */
void report_json(const pages_t *pages);

/* Prints the text format of Prometheus, version 0.0.4. Times are in seconds. */
void report_prometheus(const pages_t *pages);

#endif
