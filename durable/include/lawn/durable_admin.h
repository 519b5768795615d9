/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/durable_admin.h - what operators do with a namespace: list, count,
 * replay, drain, acknowledge a loss. Part of lawn/durable.h; lawnctl does the
 * same.
 *
 * Threads: as lawn/durable.h says.
 */
#ifndef LAWN_DURABLE_ADMIN_H
#define LAWN_DURABLE_ADMIN_H

#include <lawn/durable.h>

LAWN_BEGIN_DECLS

/* One timer or dead letter of a list. Valid during the call only. */
typedef struct {
    const char *id; /* "" of a dead letter that cannot be read: `error` says
                     * where it is */
    lawn_durable_state_t state;
    uint64_t generation;
    int64_t due_us; /* of a timer that has ended: when it ended */
    unsigned attempt;
    const void *payload; /* of a dead letter; NULL: not known */
    size_t payload_size;
    const char *reason; /* of a dead letter: one word; NULL: none. One that
                         * cannot be read: "unreadable" */
    const char *error;  /* of a dead letter: the last error; NULL: none */
} lawn_durable_item_t;

typedef void (*lawn_durable_item_fn_t)(void *arg,
                                       const lawn_durable_item_t *item);

/* Calls `each` for timers in `state` (UNKNOWN: in any), at most `limit` of them
 * (0: all), then `done` with their count. It takes them in steps, so what
 * changes meanwhile may be seen or not. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_list(lawn_durable_t *durable,
                                         lawn_durable_state_t state,
                                         uint64_t limit,
                                         lawn_durable_item_fn_t each,
                                         lawn_durable_fn_t done, void *arg);

/* Calls `each` for the dead letters, the oldest of each shard first, at most
 * `limit` of them (0: all), then `done` with their count. Fails as a start
 * does. */
LAWN_API lawn_status_t lawn_durable_list_dead(lawn_durable_t *durable,
                                              uint64_t limit,
                                              lawn_durable_item_fn_t each,
                                              lawn_durable_fn_t done,
                                              void *arg);

/* Starts a dead timer anew. It is due now, and has its payload and all its
 * attempts again. A periodic timer fires only once. The latest dead letter of
 * the id is taken. `done` gets the new generation, or NO_ELEM if there is no
 * such dead letter or there is a timer of this id, as there is of a periodic
 * one until it is stopped. A repeat is answered like the first, until the timer
 * ends. Fails as a start does. It takes several calls of the store, so it keeps
 * no order with requests about the timer that are under way: wait for their
 * answers first, and for its own before the next. */
LAWN_API lawn_status_t lawn_durable_replay(lawn_durable_t *durable,
                                           const char *id,
                                           lawn_durable_fn_t done, void *arg);

/* Sums over the shards that were asked. A later version may add fields at the
 * end. */
typedef struct {
    lawn_status_t status;
    const char *error; /* one line; NULL if the status is OK */
    unsigned shards;   /* of the namespace */
    uint64_t pending;
    uint64_t due;           /* of these: due and not yet fired */
    uint64_t in_flight;     /* what has fired and is not answered, of both
                             * streams; each occurrence of a periodic timer */
    uint64_t dead;          /* dead letters */
    uint64_t payload_bytes; /* counted only if max_payload_bytes was set */
    /* counted since the namespace was made */
    uint64_t started;
    uint64_t stopped;
    uint64_t fired;
    uint64_t succeeded;
    uint64_t failed;
    uint64_t retried;
    uint64_t died;
    uint64_t missed;
    uint64_t corrupt;    /* timers and deliveries that could not be read, as
                          * somebody else has written there. Those timers are
                          * gone, the deliveries are dead letters. */
    uint64_t superseded; /* retries of occurrences of periodic timers that were
                          * not made; see LAWN_DURABLE_RETRY */
    uint64_t deferred;   /* answered with LAWN_DURABLE_DEFER */
    uint64_t entries;    /* now, in both streams: what is in flight, and what is
                          * answered and not trimmed yet */
    uint64_t dropped_letters; /* dead letters that went for newer ones */
} lawn_durable_stats_t;

typedef void (*lawn_durable_stats_fn_t)(void *arg,
                                        const lawn_durable_stats_t *stats);

/* Reads the statistics of the namespace, the sum over all shards. Asks each
 * shard with a call of its own. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_stats(lawn_durable_t *durable,
                                          lawn_durable_stats_fn_t done,
                                          void *arg);

/* The same of one shard alone, by its number from 0: a shard that cannot be
 * read hides only itself. `done` gets INVALID_PARAM if there are not so many
 * shards. */
LAWN_API lawn_status_t lawn_durable_shard_stats(lawn_durable_t *durable,
                                                unsigned shard,
                                                lawn_durable_stats_fn_t done,
                                                void *arg);

/* Begins (or, with false, ends) the draining of the namespace. While it is
 * drained, starts and replays of all clients are answered with BUSY, those of
 * ids that are pending included. What is pending goes on, and a periodic timer
 * goes on for ever: stop it. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_drain(lawn_durable_t *durable, bool begin,
                                          lawn_durable_fn_t done, void *arg);

/* Acknowledges that timers were lost: lawn_durable_losses() of all programs
 * says nothing of it any more, from the next time on that they look, within 30
 * s. It brings nothing back. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_acknowledge(lawn_durable_t *durable,
                                                lawn_durable_fn_t done,
                                                void *arg);

LAWN_END_DECLS

#endif
