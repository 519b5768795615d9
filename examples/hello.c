/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A program that polls. It waits for the answer to a request, and the answer
 * never comes.
 */
#include <lawn/lawn.h>

#include <stdio.h>

typedef struct {
    lawn_timer_t timer; /* first, so it has the request's address */
    const char *name;
    bool is_over;
} request_t;

static void on_expired(lawn_timer_t *timer, lawn_time_t now)
{
    request_t *request = (request_t *)timer;
    (void)now;
    printf("%s: no answer\n", request->name);
    request->is_over = true;
}

int main(void)
{
    request_t ping = {.name = "ping", .is_over = false};
    lawn_t *lawn;
    if (lawn_create(NULL, &lawn) != LAWN_OK) {
        return 1;
    }
    lawn_timer_init(&ping.timer, on_expired);
    lawn_timer_start(lawn, &ping.timer, lawn_get_time(),
                     lawn_time_from_msec(5));
    while (!ping.is_over) {
        /* Read the clock once per pass. Then receive: an answer that is there
         * stops its timer, by lawn_timer_stop(). Then run what is due. */
        lawn_time_t now = lawn_get_time();
        lawn_advance(lawn, now, 64 /* timers at most */);
    }
    lawn_destroy(lawn);
    return 0;
}
