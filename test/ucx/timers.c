/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the patches in contrib/ucx promise and UCX's own tests do not look at.
 * ci/ucx compiles this with the headers of a patched UCX, and runs it with
 * UCX_TIMER_CLAMP=y if it has an argument.
 */
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/timer_wheel.h>
#include <ucs/time/timerq.h>

#include <stdio.h>

static unsigned failures;

#define EXPECT(condition) expect(condition, __LINE__, #condition)

static void expect(int is_true, int line, const char *text)
{
    if (!is_true) {
        fprintf(stderr, "line %d: %s\n", line, text);
        failures++;
    }
}

static void on_expired(ucs_wtimer_t *timer)
{
    (void)timer;
}

static size_t tracked(void)
{
    ucs_memtrack_entry_t total;
    ucs_memtrack_total(&total);
    return total.size;
}

static void use_wheel(int is_clamped)
{
    enum { RESOLUTION = 1000, ROUNDED_UP = 1024, SLOTS = 1023 };
    const ucs_time_t delta = 2 * SLOTS * ROUNDED_UP;
    const size_t before = tracked();
    ucs_twheel_t wheel;
    ucs_wtimer_t timer;

    EXPECT(sizeof timer <= 48);
    EXPECT(ucs_twheel_init(&wheel, RESOLUTION, 0) == UCS_OK);
    EXPECT(tracked() > before);
    ucs_wtimer_init(&timer, on_expired);
    ucs_wtimer_add(&wheel, &timer, delta);
    ucs_twheel_sweep(&wheel, SLOTS * ROUNDED_UP - 1);
    EXPECT(!ucs_twheel_is_empty(&wheel));
    ucs_twheel_sweep(&wheel, SLOTS * ROUNDED_UP);
    EXPECT(ucs_twheel_is_empty(&wheel) == is_clamped);
    ucs_twheel_sweep(&wheel, delta);
    EXPECT(ucs_twheel_is_empty(&wheel));

    /* By the symbols that the inline functions of UCX call. */
    __ucs_wtimer_add(&wheel, &timer, RESOLUTION);
    __ucs_twheel_sweep(&wheel, delta + RESOLUTION);
    EXPECT(ucs_twheel_is_empty(&wheel));
    ucs_twheel_cleanup(&wheel);
}

/* Leaves a timer, of which UCX warns. */
static void use_queue(void)
{
    const size_t before = tracked();
    ucs_timer_queue_t queue;
    EXPECT(ucs_timerq_init(&queue) == UCS_OK);
    EXPECT(ucs_timerq_add(&queue, 1, 1000) == UCS_OK);
    EXPECT(tracked() > before);
    ucs_timerq_cleanup(&queue);
}

int main(int argc, char **argv)
{
    size_t before;

    (void)argv;
    use_wheel(argc > 1);
    use_queue();
    before = tracked(); /* with what UCX keeps since its first use */
    use_wheel(argc > 1);
    use_queue();
    EXPECT(tracked() == before);
    return failures > 0;
}
