/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A test rig around the sessions of the ping-pong. It measures what the example
 * itself has no use for. A program that is linked with it (meson.build) has the
 * same objects as the example: the linker puts the rig between the session and
 * lawn/conn.h.
 *
 * The rig sees each call of a session to its connections, and each call of Lawn
 * back to the session. From these it computes every deadline itself. A timer
 * that fires early is counted in session_stats_t.early, and so decides the exit
 * status of the program.
 */
#ifndef LAWN_TEST_RIG_RIG_H
#define LAWN_TEST_RIG_RIG_H

#include "histogram.h"
#include "session.h"

LAWN_BEGIN_DECLS

typedef struct {
    lawn_time_t heard;  /* the open, or the last valid datagram */
    lawn_time_t oldest; /* send under way; LAWN_TIME_INFINITY: none is */
    lawn_time_t newest; /* send that was acknowledged */
    lawn_time_t unacked_since;
    lawn_time_t rto;   /* with which the retransmit timer was started */
    lawn_time_t armed; /* its deadline */
    lawn_time_t idle;  /* keepalive_idle and the share of the jitter */
    lawn_time_t probe_due;
    lawn_time_t resume_end; /* end of the RTO that ran when a stall ended */
    uint32_t messages;      /* sent for the first time */
    uint32_t resume_epoch;
    uint32_t resume_message;
    uint32_t resume_count;
} rig_connection_t;

/* How a program has slept. */
typedef struct {
    uint64_t sleeps;
    uint64_t spurious; /* wake-ups that found nothing to do */
    double cpu_sec;    /* of the whole process, kernel included */
    lawn_time_t time;
} rig_sleep_t;

typedef struct rig {
    struct rig *next;
    session_t *session;
    rig_connection_t *connections; /* as those of the session */
    histogram_t rtt;               /* as the ACKs tell */
    histogram_t lateness;          /* of timers fired, after their deadline */
    /* Of connections that a timer found dead, since the last datagram. */
    histogram_t silence;
    uint32_t burst; /* most retransmissions within one pass */
    /* Most retransmissions of one message within the RTO after a stall. */
    uint32_t resume_max;
    lawn_time_t pass; /* the last one that retransmitted */
    uint32_t pass_burst;
    uint64_t stalls_seen;
    uint32_t resume_epoch;
    lawn_time_t resumed_at;
    rig_sleep_t start; /* when the session started */
    rig_sleep_t slept; /* until now */
    rig_sleep_t idle;  /* until the idle time at the start was over */
    bool is_awakened;  /* the next pass finds out by what */
} rig_t;

/* The rig of a session; NULL: there is no such session. */
rig_t *rig_of(const session_t *session);

LAWN_END_DECLS

#endif
