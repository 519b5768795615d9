/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/conn.h - the two timers of a connection: retransmit and keepalive.
 *
 *     lawn_conn_params_init(&params);
 *     lawn_conn_open(engine, &params, &ops, &peer->conn);
 *     lawn_conn_on_send(&peer->conn, now);
 *     lawn_conn_on_ack(&peer->conn, now, rtt, all_acked);
 *     lawn_conn_close(&peer->conn);
 *
 * What the transport tells the connection, and what that does:
 *
 *     send -> on_send     retransmit starts, if it does not run
 *     ACK  -> on_ack      retransmit re-armed, or paused when all is acked;
 *                         keepalive re-armed; on_ack_of is the same
 *     any  -> on_receive  keepalive re-armed
 *
 * The retransmit timer runs while something that was sent is not acknowledged.
 * Its TTL is the RTO of RFC 6298, which comes from the round trips that the
 * transport measures and backs off with each attempt. Or the RTO is fixed
 * (InfiniBand's 4.096 us * 2^n). The timer also watches the peer timeout. That
 * is counted from the oldest send that is not acknowledged, or from the latest
 * ACK if that is later, so new sends cannot hide a dead peer.
 *
 * The keepalive timer always runs, unless keepalive_idle is 0. When nothing was
 * received for the idle time, it sends a probe in each interval. If none of
 * `keepalive_probes` probes is answered, the peer is dead. So even a side that
 * only receives finds a dead peer, within
 *     keepalive_idle + keepalive_jitter
 *         + keepalive_interval * keepalive_probes
 * after the last message from that peer, if this program polls in time.
 *
 * A stall of this program does not count against the peer. What arrived during
 * the stall is polled first (lawn/engine.h). Each connection retransmits once,
 * however many RTOs have passed. If the stall took all the time for the first
 * retransmission and its answer, the peer timeout waits for one more RTO.
 *
 * All functions here are O(1) and do not allocate. `now` is the engine's time:
 * lawn_engine_now(), or lawn_engine_time() if that is too old. The transport
 * keeps its own sequence numbers and buffers; a connection here holds only
 * times. Threads: only the engine's thread may call these functions.
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

/* Returns a short English text: "retry exceeded", ...; never NULL. */
LAWN_API const char *lawn_conn_reason_string(lawn_conn_reason_t reason);

/* What the transport does when a timer of `conn` has expired. Each of these
 * functions may close the connection and free its memory. NULL does nothing. */
typedef struct {
    /* Send again what is not acknowledged. `attempt` counts the retransmissions
     * since the last ACK, from 1. The timer already runs again, with the next
     * RTO. */
    void (*retransmit)(lawn_conn_t *conn, lawn_time_t now, unsigned attempt);
    /* Send something that the peer answers. `count` is from 1 to
     * keepalive_probes. */
    void (*probe)(lawn_conn_t *conn, lawn_time_t now, unsigned count);
    /* The peer is dead. Called once. The connection is closed, and no timer of
     * it runs. */
    void (*dead)(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason);
} lawn_conn_ops_t;

/* Times are in ticks. Begin with lawn_conn_params_init(). */
typedef struct {
    lawn_time_t rto_initial; /* before the first round trip is measured */
    lawn_time_t rto_min;
    lawn_time_t rto_max;
    lawn_time_t rto_fixed;      /* if not 0: the RTO, without backoff */
    double backoff;             /* factor of the RTO per attempt, >= 1 */
    unsigned max_retries;       /* dead after so many; 0: no limit */
    lawn_time_t peer_timeout;   /* dead after this time; 0: no limit */
    lawn_time_t keepalive_idle; /* 0: no keepalive */
    lawn_time_t keepalive_interval;
    unsigned keepalive_probes;
    /* Makes the idle time longer by up to this much. Each connection has a
     * fixed share of it (a hash of its address), so that ten thousand
     * connections do not probe at once. */
    lawn_time_t keepalive_jitter;
} lawn_conn_params_t;

/* Fills in the defaults: RTO 100 ms at first, then 1 ms to 10 s, backoff 2, no
 * limit of retries, peer timeout 30 s, keepalive 5 s idle, 1 s x 3 probes,
 * jitter 1 s. Times are in ticks of lawn_get_time(). */
static inline void lawn_conn_params_init(lawn_conn_params_t *params);
LAWN_API void lawn_conn_params_init_sized(lawn_conn_params_t *params,
                                          size_t size);

/* Embed it in your own object, and zero it before its first open. It must not
 * move while it is open. The fields belong to the library, except `context`,
 * which is the caller's. */
struct lawn_conn {
    void *context;
    lawn_timer_t retransmit;
    lawn_timer_t keepalive;
    lawn_engine_t *engine;
    lawn_time_t rto;  /* next TTL of the retransmit timer, backed off */
    lawn_time_t srtt; /* 0: nothing measured yet */
    lawn_time_t rttvar;
    /* oldest unacknowledged send, or latest ACK; INFINITY: all acknowledged */
    lawn_time_t unacked_since;
    lawn_time_t since; /* the open, or an earlier send */
    lawn_time_t heard_at;
    lawn_time_t retransmitted_at; /* when `attempt` became 1 */
    uint64_t retransmissions;
    uint64_t spurious;
    uint64_t probes;
    lawn_time_t idle; /* keepalive_idle plus this connection's jitter */
    unsigned attempt; /* retransmissions since the last ACK */
    unsigned probe;   /* probes since something was received */
    lawn_conn_params_t params;
    lawn_conn_ops_t ops;
    lawn_time_t acked_at;      /* latest ACK; 0: none */
    lawn_time_t excused_until; /* no peer timeout before; 0: no excuse */
    uint64_t reserved[2];      /* so that `params` can grow */
};

/* Opens `conn` on `engine` and starts its keepalive. `params` and `ops` are
 * copied. If `params` is NULL, the defaults hold, in ticks of the engine's
 * clock. `context` is kept. Returns INVALID_PARAM if engine, ops or conn is
 * NULL, if backoff is below 1 or not finite, if the RTO is 0 or rto_min is
 * above rto_max, or if keepalive has no probes or no interval. Returns BUSY if
 * the connection is open, so zero a connection before its first open. Does not
 * allocate. */
static inline lawn_status_t lawn_conn_open(lawn_engine_t *engine,
                                           const lawn_conn_params_t *params,
                                           const lawn_conn_ops_t *ops,
                                           lawn_conn_t *conn);
LAWN_API lawn_status_t lawn_conn_open_sized(lawn_engine_t *engine,
                                            const lawn_conn_params_t *params,
                                            size_t params_size,
                                            const lawn_conn_ops_t *ops,
                                            size_t ops_size, lawn_conn_t *conn);

/* Stops both timers. The memory may be freed at once. No op is called. A closed
 * connection may be closed again or opened again. Do not close an open
 * connection after its engine was destroyed. On a closed connection, on_send,
 * on_ack, on_ack_of and on_receive do nothing. */
LAWN_API void lawn_conn_close(lawn_conn_t *conn);

/* Something was sent that needs an ACK. Starts the retransmit timer unless it
 * already runs (RFC 6298, 5.1). Sends may be reported in any order. An earlier
 * send does not restart a timer that already runs, so its peer timeout may be
 * noticed up to one RTO late. Must not be called for a retransmission. */
LAWN_API void lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now);

/* New data was acknowledged. `rtt` is a measured round trip, or 0 if there is
 * none. If something was sent twice, its round trip may only be measured if the
 * ACK tells which transmission it answers (Karn). A sample sets the RTO anew.
 * Without a sample, a backed-off RTO stays. `all_acked` says that nothing is
 * outstanding. The call also counts as a receive. For an ACK that acknowledges
 * nothing new, call lawn_conn_on_receive() instead.
 *
 * If the ACKs of a protocol do not tell which transmission they answer, the
 * protocol measures nothing while it loses packets. After one loss, go-back-N
 * sends all outstanding packets again. No ACK of these is a valid sample, so
 * the RTO stays backed off. Each further loss makes it longer, up to rto_max.
 * So let the ACK echo the time of sending (lawn_conn_on_ack_of()) or the number
 * of the transmission.
 *
 * An `rtt` longer than the connection has been open cannot be true. It is an
 * assertion in debug builds; release builds take it as 0. A difference below
 * zero is such an `rtt`: for example, the time of a pass minus a later reading
 * of the clock. To measure what was sent before the connection was opened, such
 * as the first message of a handshake, first call on_send with the time of that
 * send. */
LAWN_API void lawn_conn_on_ack(lawn_conn_t *conn, lawn_time_t now,
                               lawn_time_t rtt, bool all_acked);

/* Reports an ACK by the time at which the acknowledged data was sent, on the
 * engine's time. The round trip is from `sent_at` to `now`. The rest is as for
 * lawn_conn_on_ack(). It is best to use a time that the ACK echoes. Each
 * transmission of a message, the first or a later one, then carries the time at
 * which it is made. The ACK returns the time of the transmission that it
 * answers. So each ACK is a valid sample, even for what was sent twice. If
 * nothing is echoed, give the time that the sender remembers, and 0 for what
 * was sent twice.
 *
 * There is no sample if `sent_at` is 0, not before `now`, or from before the
 * connection was opened (as above). A time that a peer echoes needs no check
 * before this call. A time that cannot be true is ignored in all builds. A
 * false time that could be true leaves the RTO between rto_min and rto_max. */
LAWN_API void lawn_conn_on_ack_of(lawn_conn_t *conn, lawn_time_t now,
                                  lawn_time_t sent_at, bool all_acked);

/* A retransmission was not needed: the peer says that it has received the same
 * data twice (RFC 2883, RFC 3708). This only changes the statistics.
 * lawn_conn_on_ack_of() finds such retransmissions itself, by the Eifel
 * algorithm (RFC 3522): the ACK answers a transmission from before the first
 * retransmission. Such an ACK counts once, however many retransmissions were
 * made. */
LAWN_API void lawn_conn_on_spurious(lawn_conn_t *conn);

/* Something valid was received, so the peer is alive. */
LAWN_API void lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now);

/* Statistics of a connection since it was opened. A closed connection keeps
 * them. Times are in ticks. */
typedef struct {
    uint64_t retransmissions;  /* calls of `retransmit` */
    uint64_t spurious;         /* ACKs, and calls of on_spurious, that say that
                                * a retransmission was not needed */
    uint64_t probes;           /* calls of `probe` */
    lawn_time_t rto;           /* lawn_conn_rto() */
    lawn_time_t srtt;          /* smoothed round trip; 0: none measured */
    lawn_time_t rttvar;        /* variation of the round trip */
    lawn_time_t heard_at;      /* last receive, or the open */
    lawn_time_t unacked_since; /* oldest unacknowledged send, or the latest ACK
                                * if that is later; INFINITY: all is
                                * acknowledged */
} lawn_conn_stats_t;

/* Copies the statistics of a connection, open or closed. Of one that was zeroed
 * and never opened, all are 0, and `unacked_since` is INFINITY. */
static inline void lawn_conn_query(const lawn_conn_t *conn,
                                   lawn_conn_stats_t *stats);
LAWN_API void lawn_conn_query_sized(const lawn_conn_t *conn,
                                    lawn_conn_stats_t *stats, size_t size);

/* Returns the RTO of the next (re)transmission, in ticks. A closed connection
 * keeps its last one. */
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
