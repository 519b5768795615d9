/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The part of the rig for programs. Below the example's summary it prints what
 * rig.c has measured.
 */
#include "rig.h"

#include "summary.h"

#include <inttypes.h>
#include <stdio.h>

void __real_summary_print(const summary_t *summary);

static void count(const char *name, uint64_t value)
{
    printf("%-30s%" PRIu64 "\n", name, value);
}

static void milliseconds(const char *name, lawn_time_t ticks)
{
    printf("%-30s%.3f ms\n", name, lawn_time_to_msec(ticks));
}

static void seconds(const char *name, lawn_time_t ticks)
{
    printf("%-30s%.3f s\n", name, lawn_time_to_sec(ticks));
}

void __wrap_summary_print(const summary_t *summary)
{
    const rig_t *rig = rig_of(summary->session);
    const histogram_t *late = &rig->lateness;
    __real_summary_print(summary);
    milliseconds("rig lateness p50", histogram_quantile(late, 0.5));
    milliseconds("rig lateness p99", histogram_quantile(late, 0.99));
    milliseconds("rig lateness max", late->max);
    count("retransmission burst", rig->burst);
    count("max per connection on resume", rig->resume_max);
    if (rig->silence.count) {
        seconds("death found min", rig->silence.min);
        seconds("death found median", histogram_quantile(&rig->silence, 0.5));
    }
}
