/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/conn.h - the two timers of a connection.
 *
 * The retransmit timer runs while something sent is not acknowledged. Its TTL
 * is the RTO of RFC 6298, from the round trips that the transport measures,
 * which backs off with each attempt, or a fixed one (InfiniBand's
 * 4.096 us * 2^n).
 * It also watches the peer timeout, counted from the oldest send that is not
 * acknowledged, so that new sends cannot mask a dead peer.
 *
 * The keepalive timer runs always. When nothing was received for `idle`, it
 * probes; when `probes` probes, one each `interval`, bring nothing, the peer
 * is dead. A peer that has died is so found within
 *     keepalive_idle + keepalive_jitter + keepalive_interval * probes
 * of the last thing it sent, also by a side that only receives.
 *
 *     send -> on_send     retransmit starts, if it does not run
 *     ACK  -> on_ack      retransmit re-armed, or paused when all is acked;
 *                         keepalive re-armed; on_ack_of is the same
 *     any  -> on_receive  keepalive re-armed
 *
 * A stall of this program is not held against the peer: what came meanwhile is
 * polled first (lawn/engine.h), each connection retransmits once however many
 * RTOs went by, and if the stall took all the time in which the first
 * retransmission should have been made and answered, the peer timeout waits for
 * one more RTO.
 *
 * Each of these is O(1) and allocates nothing. `now` is the engine's time:
 * lawn_engine_now(), or lawn_engine_time() where that is too old. The transport
 * keeps its own sequence numbers and buffers; a connection here is only time.
 * Threads: the engine's.
 */
#ifndef LAWN_CONN_H
#define LAWN_CONN_H

#include <lawn/engine.h>

LAWN_BEGIN_DECLS

typedef struct lawn_conn lawn_conn_t;

typedef enum {
    LAWN_CONN_RETRY_EXCEEDED = 1, /* max_retries retransmissions unanswered */
    LAWN_CONN_PEER_TIMEOUT = 2,   /* a send unacknowledged for peer_timeout */
    LAWN_CONN_KEEPALIVE = 3       /* keepalive probes unanswered */
} lawn_conn_reason_t;

/* A short English text: "retry exceeded", ...; never NULL. */
LAWN_API const char *lawn_conn_reason_string(lawn_conn_reason_t reason);

/* What the transport does when a timer of `conn` has expired. Any of these
 * may close the connection and free its memory; NULL does nothing. */
typedef struct {
    /* Send again what is not acknowledged. `attempt` counts from 1 since the
     * last ACK. The timer is running again, with the next RTO. */
    void (*retransmit)(lawn_conn_t *conn, lawn_time_t now, unsigned attempt);
    /* Send something that the peer answers. `count` is from 1 to probes. */
    void (*probe)(lawn_conn_t *conn, lawn_time_t now, unsigned count);
    /* The peer is dead. Called once; no timer of the connection runs. */
    void (*dead)(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason);
} lawn_conn_ops_t;

/* Times are ticks. Start from lawn_conn_params_init(). */
typedef struct {
    lawn_time_t rto_initial; /* before the first round trip is measured */
    lawn_time_t rto_min;
    lawn_time_t rto_max;
    lawn_time_t rto_fixed;      /* not 0: always the RTO; no backoff */
    double backoff;             /* RTO's factor per attempt, >= 1 */
    unsigned max_retries;       /* dead after as many; 0: no limit */
    lawn_time_t peer_timeout;   /* dead after as long; 0: no limit */
    lawn_time_t keepalive_idle; /* 0: no keepalive */
    lawn_time_t keepalive_interval;
    unsigned keepalive_probes;
    /* Idle is longer by up to this much, a fixed share for each connection
     * (a hash of its address), so that ten thousand do not probe at once. */
    lawn_time_t keepalive_jitter;
} lawn_conn_params_t;

/* Fills in the defaults: RTO 100 ms at first, 1 ms to 10 s, factor 2, no limit
 * of retries, peer timeout 30 s, keepalive 5 s idle, 1 s x 3 probes, jitter
 * 1 s, in ticks of lawn_get_time(). */
static inline void lawn_conn_params_init(lawn_conn_params_t *params);
LAWN_API void lawn_conn_params_init_sized(lawn_conn_params_t *params,
                                          size_t size);

/* Embedded by the caller, zeroed or not; must not move while open. The fields
 * are the library's, but for `context`, which is the caller's. */
struct lawn_conn {
    void *context;
    lawn_timer_t retransmit;
    lawn_timer_t keepalive;
    lawn_engine_t *engine;
    lawn_time_t rto;  /* next TTL of the retransmit timer, backed off */
    lawn_time_t srtt; /* 0: nothing measured yet */
    lawn_time_t rttvar;
    lawn_time_t unacked_since; /* oldest send that is not acknowledged */
    lawn_time_t since;         /* nothing was sent before */
    lawn_time_t heard_at;
    lawn_time_t retransmitted_at; /* with `attempt`: the first of them */
    uint64_t retransmissions;
    uint64_t spurious;
    uint64_t probes;
    lawn_time_t idle; /* keepalive_idle with this one's jitter */
    unsigned attempt; /* retransmissions since the last ACK */
    unsigned probe;   /* probes since something was received */
    lawn_conn_params_t params;
    lawn_conn_ops_t ops;
    uint64_t reserved[4]; /* so that `params` can grow */
};

/* Opens `conn` on `engine` and starts its keepalive. `params` (NULL: the
 * defaults, in ticks of the engine's clock) and `ops` are copied; `context` is
 * kept. INVALID_PARAM: a NULL engine, ops or conn, backoff below 1 or not
 * finite, an RTO of 0, min above max, keepalive with no probes or no interval.
 * Zero a connection before its first open: BUSY when it is open. Allocates
 * nothing. */
static inline lawn_status_t lawn_conn_open(lawn_engine_t *engine,
                                           const lawn_conn_params_t *params,
                                           const lawn_conn_ops_t *ops,
                                           lawn_conn_t *conn);
LAWN_API lawn_status_t lawn_conn_open_sized(lawn_engine_t *engine,
                                            const lawn_conn_params_t *params,
                                            size_t params_size,
                                            const lawn_conn_ops_t *ops,
                                            size_t ops_size, lawn_conn_t *conn);

/* Stops both timers; the memory may be freed at once. No op is called. A
 * closed connection may be closed again, and opened again. Not once the engine
 * of an open one is gone. */
LAWN_API void lawn_conn_close(lawn_conn_t *conn);

/* Something that wants an ACK was sent. Starts the retransmit timer unless it
 * runs (RFC 6298, 5.1). Not to be called for a retransmission. */
LAWN_API void lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now);

/* New data was acknowledged. `rtt` is a measured round trip, or 0 when there
 * is none: nothing that was sent twice may be measured unless the ACK tells
 * which of the two it answers (Karn). A sample resets the RTO; without one the
 * backed-off RTO stays. `all_acked`: nothing is outstanding. Counts as
 * received. An ACK for nothing new is on_receive.
 *
 * So a protocol whose ACKs do not tell that measures nothing while it loses.
 * After one loss, go-back-N sends all again that is outstanding: no ACK of that
 * is a valid sample, the RTO stays backed off, and each further loss makes it
 * longer, up to rto_max. Have the ACK tell, by an echo of the time of sending
 * (lawn_conn_on_ack_of()) or of the number of the transmission.
 *
 * An `rtt` longer than the connection has been open cannot be true: an
 * assertion in debug builds; in release builds it is ignored, as if it were 0.
 * A difference that fell below zero is such a one, as when the time of a pass
 * is taken and a later reading of the clock subtracted. What was sent before
 * the connection was opened, such as the first message of a handshake, may be
 * measured once on_send has been given its time. */
LAWN_API void lawn_conn_on_ack(lawn_conn_t *conn, lawn_time_t now,
                               lawn_time_t rtt, bool all_acked);

/* The same, with the time at which what is acknowledged was sent, on the
 * engine's time: the round trip is from `sent_at` to `now`. Best is a time that
 * the ACK echoes. Each transmission, the first of a message or a later one,
 * carries the time at which it is made, and the ACK returns that of the one it
 * answers; so each ACK is a valid sample, also of what was sent twice. Where
 * nothing is echoed, give the time that the sender remembers, and 0 for what
 * was sent twice.
 *
 * 0 is no sample, nor is a time that is not before `now`, or from before the
 * connection was opened (as above). What a peer echoes needs no check before
 * this call: a time that cannot be true is ignored in all builds, and one that
 * is false but might be true leaves the RTO between rto_min and rto_max. */
LAWN_API void lawn_conn_on_ack_of(lawn_conn_t *conn, lawn_time_t now,
                                  lawn_time_t sent_at, bool all_acked);

/* A retransmission was not needed: the peer says that it has received twice
 * what was sent again (RFC 2883, RFC 3708). For the statistics alone.
 * lawn_conn_on_ack_of() finds such by itself, by the Eifel algorithm (RFC
 * 3522): the ACK answers what was sent before the first retransmission. */
LAWN_API void lawn_conn_on_spurious(lawn_conn_t *conn);

/* Anything valid was received: the peer lives. */
LAWN_API void lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now);

/* Of a connection since it was opened; a closed one keeps what it was. Times
 * are ticks. */
typedef struct {
    uint64_t retransmissions;  /* calls of `retransmit` */
    uint64_t spurious;         /* that were not needed, as far as is known */
    uint64_t probes;           /* calls of `probe` */
    lawn_time_t rto;           /* lawn_conn_rto() */
    lawn_time_t srtt;          /* smoothed round trip; 0: none measured */
    lawn_time_t rttvar;        /* its variation */
    lawn_time_t heard_at;      /* when something was received last, or opened */
    lawn_time_t unacked_since; /* the oldest send without an ACK; INFINITY: all
                                * is acknowledged */
} lawn_conn_stats_t;

/* What is known of a connection. */
static inline void lawn_conn_query(const lawn_conn_t *conn,
                                   lawn_conn_stats_t *stats);
LAWN_API void lawn_conn_query_sized(const lawn_conn_t *conn,
                                    lawn_conn_stats_t *stats, size_t size);

/* The RTO that the next (re)transmission will wait, in ticks. */
LAWN_API lawn_time_t lawn_conn_rto(const lawn_conn_t *conn);

static inline void lawn_conn_params_init(lawn_conn_params_t *params)
{
    lawn_conn_params_init_sized(params, sizeof(*params));
}

static inline lawn_status_t lawn_conn_open(lawn_engine_t *engine,
                                           const lawn_conn_params_t *params,
                                           const lawn_conn_ops_t *ops,
                                           lawn_conn_t *conn)
{
    return lawn_conn_open_sized(engine, params, sizeof(*params), ops,
                                sizeof(*ops), conn);
}

static inline void lawn_conn_query(const lawn_conn_t *conn,
                                   lawn_conn_stats_t *stats)
{
    lawn_conn_query_sized(conn, stats, sizeof(*stats));
}

LAWN_END_DECLS

#endif
