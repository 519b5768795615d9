/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/conn.h - the two timers of a connection: retransmit and keepalive.
 *
 *     lawn_conn_open(engine, NULL, &ops, &peer->conn);
 *     lawn_conn_on_send(&peer->conn, now);
 *     lawn_conn_on_ack_oldest(&peer->conn, now, sent_at, oldest);
 *     lawn_conn_on_resend(&peer->conn, now, oldest);     // in ops.retransmit
 *     lawn_conn_close(&peer->conn);
 *
 * The retransmit timer runs while something that was sent is not acknowledged.
 * It expires one RTO after the oldest unacknowledged send (RFC 7765), or
 * earlier if there is evidence of a loss: something that was sent later has
 * been acknowledged (RFC 8985). How long both wait is learnt from the path
 * alone, at any round trip: from SRTT and RTTVAR (RFC 6298), and from the
 * greatest errors of the last thousands of samples. doc/design.md has the
 * estimator, and what it was measured against. Or the RTO is fixed
 * (InfiniBand's 4.096 us * 2^n).
 *
 * The transport keeps its messages; a connection holds only times. What to
 * store with each message, and what to tell the connection (lawn/flight.h does
 * all of this for a list of messages):
 *
 *   the peer sends     store with a message     call
 *   -----------------  -----------------------  ------------------------------
 *   ACKs of single     the time of its latest   on_ack_oldest, with the echo;
 *   messages, with an  sending; each carries    on_echo for a second ACK of
 *   echo of the time   its time of sending      the same message
 *   ACKs of single     the same, and whether    on_ack_oldest, with INFINITY
 *   messages, without  it was sent again        for what was sent again (Karn)
 *   cumulative ACKs    the same                 on_ack_oldest, with the echo or
 *                                               the time of the newest that it
 *                                               covers, INFINITY if it covers
 *                                               something that was sent again;
 *                                               on_echo if it covers nothing
 *                                               new and echoes a time, else
 *                                               on_receive
 *   NACKs              the time of its latest   on_receive, send again what is
 *                      sending                  missing, then on_resend
 *   in go-back-N       the same                 in retransmit, send all again,
 *                                               then on_resend(now, now)
 *   responses          the same, in the         on_ack_oldest for a response
 *                      request
 *   nothing of these   nothing                  on_ack or on_ack_of: the timer
 *                                               runs from the latest ACK
 *
 * A peer that delays its ACKs echoes the time of the first message that waits
 * for one (RFC 7323, 4.3), so that the delay is measured.
 *
 * The peer timeout is counted from the first send that is not acknowledged, or
 * from the latest ACK if that is later, so new sends cannot hide a dead peer.
 * An RTO is at most a quarter of it, or 2 SRTT if that is longer, or a
 * connection would die without a retransmission.
 *
 * The keepalive runs always, unless keepalive_idle is 0. When nothing was
 * received for the idle time, it sends a probe in each interval. If none of
 * `keepalive_probes` probes is answered, the peer is dead. So even a side that
 * only receives finds a dead peer, within
 *     keepalive_idle + keepalive_jitter
 *         + keepalive_interval * keepalive_probes
 * after the last message from that peer, if this program polls in time.
 *
 * A stall of this program does not count against the peer. What arrived during
 * the stall is polled first (lawn/engine.h), but its answer may have been lost
 * to a full receive ring. So after a stall, no peer is dead, for whatever
 * reason, until one transmission (or probe) made after the stall has been
 * unanswered for one RTO (or interval). Until something is heard, this excuses
 * a peer once, so that a program that always polls late still finds a dead one.
 * And what is read in the pass after a stall is no sample of the round trip.
 *
 * All functions here are O(1). Only lawn_conn_open() may allocate. `now` is the
 * engine's time: lawn_engine_now(), or lawn_engine_time() if that is too old.
 * Threads: only the engine's thread may call these functions.
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
    /* Send again the oldest message that is not acknowledged, also where
     * several have its time, and each other one that was sent before
     * lawn_conn_lost_before(). Then report what is left with
     * lawn_conn_on_resend(). If that is not called, the timer runs from now.
     * `attempt` counts the expiries without evidence since the last ACK, from
     * 1. With evidence of a loss it stays as it is, 0 in most cases. */
    void (*retransmit)(lawn_conn_t *conn, lawn_time_t now, unsigned attempt);
    /* Send something that the peer answers. `count` is from 1 to
     * keepalive_probes. */
    void (*probe)(lawn_conn_t *conn, lawn_time_t now, unsigned count);
    /* The peer is dead. Called once. The connection is closed, and no timer of
     * it runs. */
    void (*dead)(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason);
    /* Send the smallest packet that the peer acknowledges at once, with an echo
     * of `now`, and give its answer to lawn_conn_on_echo(). Called when the
     * newest message is unacknowledged for longer than most, so that nothing
     * sent later can show that it is lost (a tail-loss probe, RFC 8985, 7).
     * NULL: an RTO is waited for. */
    void (*ask)(lawn_conn_t *conn, lawn_time_t now);
} lawn_conn_ops_t;

/* Times are in ticks. Attempts and probes are counted up to 65,535, and more of
 * them are taken as so many. Begin with lawn_conn_params_init(). */
typedef struct {
    lawn_time_t rto_initial; /* before the first round trip is measured */
    lawn_time_t rto_min;
    lawn_time_t rto_max;
    lawn_time_t rto_fixed;      /* if not 0: the RTO, without backoff */
    double backoff;             /* factor of the RTO per attempt, >= 1 */
    unsigned max_retries;       /* dead after so many attempts; 0: no limit */
    lawn_time_t peer_timeout;   /* dead after this time; 0: no limit */
    lawn_time_t keepalive_idle; /* 0: no keepalive */
    lawn_time_t keepalive_interval;
    unsigned keepalive_probes;
    /* Makes the idle time longer by up to this much. Each connection has a
     * fixed share of it, so that ten thousand connections do not probe at
     * once. */
    lawn_time_t keepalive_jitter;
    /* Makes each RTO without evidence longer by up to this fraction, from 0 to
     * 1. Each connection has a fixed share of it, so that connections that sent
     * at once do not send again at once. */
    double rto_jitter;
    /* The shares depend on the connection's address and on this seed. 0: on a
     * random seed, so that equal programs on many hosts do not act as one. */
    uint64_t jitter_seed;
} lawn_conn_params_t;

/* Fills in the defaults: RTO 100 ms at first, then from the path alone up to
 * 10 s, backoff 2, no limit of retries, peer timeout 30 s, keepalive 5 s idle,
 * 1 s x 3 probes, jitter 1 s, no jitter of the RTO. Times are in ticks of
 * lawn_get_time(). */
static inline void lawn_conn_params_init(lawn_conn_params_t *params);
LAWN_API void lawn_conn_params_init_sized(lawn_conn_params_t *params,
                                          size_t size);

/* Not for programs: the parameters and ops that connections share. */
typedef struct lawn_conn_profile lawn_conn_profile_t;

/* Embed it in your own object, and zero it before its first open. It must not
 * move while it is open. The fields belong to the library, except `context`,
 * which is the caller's. */
struct lawn_conn {
    void *context;
    lawn_conn_profile_t *profile; /* NULL: closed */
    lawn_timer_t retransmit;
    lawn_timer_t keepalive;
    lawn_time_t rto;    /* backed off */
    lawn_time_t srtt;   /* times 8; 0: nothing measured yet */
    lawn_time_t rttvar; /* times 4 */
    lawn_time_t margin; /* at least, of the RTO above SRTT: what errors ask */
    /* Send time of the oldest unacknowledged; INFINITY: nothing is. */
    lawn_time_t oldest;
    lawn_time_t newest; /* latest send that was acknowledged; 0: none */
    /* Unless nothing is: first unanswered send, or latest ACK. */
    lawn_time_t unacked_since;
    lawn_time_t since;     /* the open, or an earlier send; not 0 */
    lawn_time_t heard_at;  /* latest receive */
    uint16_t attempt;      /* expiries without evidence since the last ACK */
    uint16_t probe;        /* probes since something was received */
    uint16_t earlier_mean; /* coded: from before the oldest was overtaken */
    uint16_t recent_rtt;   /* for on_ack_oldest: greatest of late, coded */
    uint8_t flags;         /* private to the library, */
    uint8_t modes;         /* as are these */
    uint16_t samples_left; /* of this window */
    uint32_t count[7];     /* what lawn_conn_query() tells */
    lawn_time_t resent_at; /* latest retransmission; 0: none */
    __extension__ union {
        lawn_time_t burst_at;      /* for on_ack_oldest: when a pause ended */
        lawn_time_t backed_off_at; /* for on_ack_of: when `attempt` became 1 */
    };
    lawn_time_t asked_at; /* latest `ask`; 0: none */
    /* Great errors of samples: of all, and of those that something sent later
     * has overtaken. And when the latest of them arrived. */
    uint16_t late[4];
    uint16_t overtaken[4];
    lawn_time_t late_until;
};

/* Opens `conn` on `engine` and starts its keepalive. `params` and `ops` are
 * copied, and shared by all open connections of the engine for which they are
 * equal. If `params` is NULL, the defaults hold, in ticks of the engine's
 * clock. `context` is kept. Returns INVALID_PARAM if engine, ops or conn is
 * NULL, if backoff is below 1 or not finite, if the RTO is 0 or rto_min is
 * above rto_max, if rto_jitter is not from 0 to 1, or if keepalive has no
 * probes or no interval. Returns BUSY if the connection is open, so zero a
 * connection before its first open. Allocates for parameters that no open
 * connection of the engine has, unless the one closed last had them, and may
 * then return NO_MEMORY. */
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
 * connection after its engine was destroyed. On a closed connection, all calls
 * that report something do nothing. */
LAWN_API void lawn_conn_close(lawn_conn_t *conn);

/* True from a successful open to the close, or until the peer is dead. False
 * before the first open, if the memory was zeroed, and for NULL. */
LAWN_API bool lawn_conn_is_open(const lawn_conn_t *conn);

/* Begins with what `known`, open or closed, has measured: a connection to the
 * same peer, or over the same path (RFC 9040). A new connection knows nothing
 * of its path, so its first loss would wait for rto_initial. Both must have the
 * same clock. Returns BUSY, and changes nothing, if `conn` has measured
 * something itself; INVALID_PARAM if it is closed or one is NULL; else OK, also
 * without effect if `known` has measured nothing. */
LAWN_API lawn_status_t lawn_conn_inherit(lawn_conn_t *conn,
                                         const lawn_conn_t *known);

/* Something was sent that needs an ACK. Starts the retransmit timer unless it
 * already runs (RFC 6298, 5.1). Sends may be reported in any order. An earlier
 * send does not restart a timer that already runs, so its peer timeout may be
 * noticed up to one RTO late. Must not be called for a retransmission. */
LAWN_API void lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now);

/* Something new was acknowledged. A connection uses this call with on_echo and
 * on_resend, or on_ack and on_ack_of, not both.
 *
 * `sent_at` is the time of the transmission that the ACK answers: best an echo.
 * Each transmission of a message, the first or a later one, then carries the
 * time at which it is made, and the ACK returns the time of the one that it
 * answers. Without an echo, it is the time that the sender remembers, but
 * INFINITY for what was sent more than once (Karn). It is ignored if it is 0,
 * after `now`, or from before the connection was opened, so the echo of a peer
 * needs no check before this call. (To measure what was sent before the open,
 * such as the first message of a handshake, first report that send with
 * on_send.) Otherwise it is a sample, which ends a back-off. And if it is later
 * than `oldest`, it is evidence that the oldest may be lost. So of what is sent
 * in one pass, give each message a time that is a tick later than that of the
 * one before it, as lawn/flight.h does.
 *
 * `oldest` is the send time of the least recent transmission that is still
 * unacknowledged. A message that was sent again counts from then. INFINITY: all
 * is acknowledged. The timer runs from there: ACKs of later data cannot put off
 * a loss. What cannot be true is made true: a time in the future becomes now,
 * one from before the open becomes the open.
 *
 * Attempts and the peer timeout begin anew. The call also counts as a
 * receive. */
LAWN_API void lawn_conn_on_ack_oldest(lawn_conn_t *conn, lawn_time_t now,
                                      lawn_time_t sent_at, lawn_time_t oldest);

/* An ACK of nothing new has come that names the transmission which caused it,
 * `sent_at`; or the answer to `ask`, with the time of the ask. It is a receive,
 * a sample and evidence. But nothing begins anew, or a message that never gets
 * through would be sent for ever: what is asked or sent again on this evidence
 * alone backs off and counts as an attempt. `sent_at` is checked as above.
 *
 * An ACK of what was sent before the latest retransmission is the sign of a
 * needless one (RFC 3708). So is an ACK of what was sent in it, once something
 * new has been acknowledged. It counts as spurious and takes back the back-off
 * (RFC 4015), for what it answers is a sample of just the delay that was waited
 * for too briefly. A cumulative ACK from behind a gap cannot be told from that
 * sign while the retransmission is under way, so there `spurious` may be too
 * high. */
LAWN_API void lawn_conn_on_echo(lawn_conn_t *conn, lawn_time_t now,
                                lawn_time_t sent_at);

/* Reports what is left after the transport has sent something again, or has
 * given it up: in or after `retransmit`, and when it has sent again by itself
 * (for a NACK, say). `oldest` is as for on_ack_oldest; INFINITY: nothing is
 * outstanding. The timer runs from there. Moves neither attempts nor the peer
 * timeout. */
LAWN_API void lawn_conn_on_resend(lawn_conn_t *conn, lawn_time_t now,
                                  lawn_time_t oldest);

/* In `retransmit`: besides the oldest message, each that was sent before this
 * time is lost as well. 0: there is no evidence, send the oldest alone. */
LAWN_API lawn_time_t lawn_conn_lost_before(const lawn_conn_t *conn,
                                           lawn_time_t now);

/* For a transport that does not know the send time of the oldest message. New
 * data was acknowledged. `rtt` is a measured round trip, or 0 if there is none.
 * The timer runs from this ACK (RFC 6298, 5.3), so where messages are
 * acknowledged singly, ACKs of later ones put off a loss. If something was sent
 * twice, its round trip may only be measured if the ACK tells which
 * transmission it answers (Karn). A sample sets the RTO anew. Without a sample,
 * a backed-off RTO stays. `all_acked` says that nothing is outstanding. The
 * call also counts as a receive. For an ACK that acknowledges nothing new, call
 * lawn_conn_on_receive() instead.
 *
 * If the ACKs of a protocol do not tell which transmission they answer, the
 * protocol measures nothing while it loses packets. After one loss, go-back-N
 * sends all outstanding packets again. No ACK of these is a valid sample, so
 * the RTO stays backed off. Each further loss makes it longer, up to rto_max.
 * So let the ACK echo the time of sending or the number of the transmission.
 *
 * An `rtt` longer than the connection has been open cannot be true. It is an
 * assertion in debug builds; release builds take it as 0. A difference below
 * zero is such an `rtt`: for example, the time of a pass minus a later reading
 * of the clock. */
LAWN_API void lawn_conn_on_ack(lawn_conn_t *conn, lawn_time_t now,
                               lawn_time_t rtt, bool all_acked);

/* The same, by the time at which the acknowledged data was sent, which is best
 * an echo. There is no sample if `sent_at` is 0, not before `now`, or from
 * before the connection was opened. An ACK that answers a transmission from
 * before the first retransmission says that this one was spurious (the Eifel
 * algorithm, RFC 3522). It counts once, however many retransmissions were
 * made. */
LAWN_API void lawn_conn_on_ack_of(lawn_conn_t *conn, lawn_time_t now,
                                  lawn_time_t sent_at, bool all_acked);

/* A retransmission was not needed: the peer says that it has received the same
 * data twice (RFC 2883, RFC 3708), but not which transmission it answers. This
 * only changes the statistics. */
LAWN_API void lawn_conn_on_spurious(lawn_conn_t *conn);

/* Something valid was received, so the peer is alive. */
LAWN_API void lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now);

/* Statistics of a connection since it was opened. A closed connection keeps
 * them. Times are in ticks. Counts end at 2^32 - 1. */
typedef struct {
    uint64_t retransmissions;  /* calls of `retransmit` */
    uint64_t spurious;         /* signs that a retransmission was not needed:
                                * see on_echo, on_ack_of and on_spurious */
    uint64_t probes;           /* calls of `probe` */
    lawn_time_t rto;           /* lawn_conn_rto() */
    lawn_time_t srtt;          /* smoothed round trip; 0: none measured */
    lawn_time_t rttvar;        /* variation of the round trip */
    lawn_time_t heard_at;      /* last receive, or the open */
    lawn_time_t unacked_since; /* oldest unacknowledged send, or the latest ACK
                                * if that is later; INFINITY: all is
                                * acknowledged */
    uint64_t by_evidence;      /* calls of `retransmit` by evidence */
    uint64_t asked;            /* calls of `ask` */
    uint64_t undone;           /* back-offs that were taken back */
    uint64_t excused;          /* stalls that were excused */
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
