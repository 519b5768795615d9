// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn/conn.h says of one end of a connection, kept beside it: when each
// of its timers is due, how often it has tried, and so when it may and when it
// must do what. The library tells the witness only its RTO. That must lie
// between what RFC 6298 and the quarter of SRTT ask for, in floating point, and
// what the greatest error of the path does.

#ifndef LAWN_TEST_SIM_WITNESS_H
#define LAWN_TEST_SIM_WITNESS_H

#include "checker.h"
#include "units.h"

#include <lawn/conn.h>

namespace sim
{

// A pass of a host, in the ticks of its clock but for `at`.
struct Pass {
    Nsec at;
    lawn_time_t now;
    // The host polled all the time until then, for all that matters: what was
    // due by then has fired, unless the passes were full.
    lawn_time_t covered;
    lawn_time_t stalled_at; // the latest pass that was late, or INFINITY
    // The ticks, since boot, that went by without a pass that could have
    // fired what was due.
    uint64_t absent;
    bool is_late;
    bool is_backlog; // the pass before was full
};

// Whom and when a witness speaks of. `terms` are the parameters of the end but
// for its idle time.
struct Scene {
    Checker &checker;
    const Pass &pass;
    const lawn_conn_params_t &terms;
    uint32_t end;
};

// A timer has fired that should be due at `deadline`.
void check_expiry(const Scene &scene, lawn_time_t deadline, const char *what);

// A timer that is due at `deadline` has not fired so far.
void check_pending(const Scene &scene, lawn_time_t deadline, const char *what);

// What waits for the peer: an answer to a send, or to a probe.
struct Wait {
    bool is_excused = false; // a stall, since something was heard
    // If a stall was: when the first transmission after it has been unanswered
    // for long enough. And the host's absence up to then.
    lawn_time_t excuse_end = 0;
    uint64_t absent = 0;
};

class Witness
{
public:
    void open(const Scene &scene, lawn_time_t idle, lawn_time_t rto);
    void hear(const Scene &scene);
    void send(const Scene &scene);
    void ack(const Scene &scene, lawn_time_t sample, bool all_acked,
             lawn_time_t rto, lawn_time_t usec_ticks);
    // These two return true when they excuse a stall.
    bool retransmit(const Scene &scene, unsigned attempt, lawn_time_t rto);
    bool probe(const Scene &scene, unsigned count);
    void die(const Scene &scene, lawn_conn_reason_t reason);
    void look(const Scene &scene) const;

    // When it will call an op next.
    lawn_time_t due() const;

    // How much of the time in which it must be found out has gone by without
    // a word from the peer, in percent; 0 without keepalive.
    unsigned share_of_bound(const Scene &scene) const;

private:
    bool is_over(const Scene &scene) const;
    lawn_time_t longest_rto(const Scene &scene) const;
    bool may_excuse(const Scene &scene) const;
    bool may_excuse_probing(const Scene &scene) const;
    lawn_time_t silence_bound(const Scene &scene) const;
    void check_bounds(const Scene &scene) const;
    void check_sample(const Scene &scene, lawn_time_t sample, lawn_time_t rto,
                      lawn_time_t usec_ticks);
    void check_backoff(const Scene &scene, lawn_time_t rto) const;
    void start_retransmit(const Scene &scene);

    // Deadlines; LAWN_TIME_INFINITY: does not run.
    lawn_time_t keepalive_ = LAWN_TIME_INFINITY;
    lawn_time_t retransmit_ = LAWN_TIME_INFINITY;

    lawn_time_t idle_ = 0;
    lawn_time_t heard_ = 0;
    uint64_t absent_when_heard_ = 0;
    lawn_time_t unacked_since_ = 0;
    uint64_t absent_when_sent_ = 0;
    lawn_time_t sent_at_ = 0; // the latest transmission that is waited for
    lawn_time_t probed_at_ = 0;
    Wait answer_;
    Wait probing_;
    lawn_time_t rto_ = 0;
    double srtt_ = 0;
    double rttvar_ = 0;
    double greatest_error_ = 0;
    unsigned attempt_ = 0;
    unsigned probe_ = 0;
};

} // namespace sim

#endif
