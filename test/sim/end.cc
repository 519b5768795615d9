// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The protocol of an end, and the judgement of its deaths; see end.h.

#include "end.h"

#include "host.h"
#include "shared.h"

#include <cinttypes>
#include <cstddef>

namespace sim
{

namespace
{

End &end_of(lawn_conn_t *conn)
{
    return *reinterpret_cast<End *>(conn);
}

const Timing &timing_of(const End &end)
{
    Shared &shared = end.host->shared();
    return shared.scenario.timing[shared.link_of(end.index).timing];
}

void violate(const End &end, const char *what, uint64_t value)
{
    end.host->shared().checker.violation(end.host->current().at, end.index,
                                         "%s (%" PRIu64 ")", what, value);
}

void note(const End &end, char what, uint64_t value)
{
    end.host->shared().checker.note(end.host->current().at,
                                    static_cast<unsigned char>(what), end.index,
                                    value);
}

// What message `number` of an end says; not 0.
uint64_t content_of(uint32_t end, uint32_t incarnation, uint64_t number)
{
    return lawn::mix64(lawn::mix64(uint64_t{end} << 32 | incarnation) +
                       number) |
           1;
}

void send_data(End &end, uint32_t number)
{
    end.host->send(end.index, Kind::data, number,
                   content_of(end.index, end.incarnation, number),
                   end.host->current().now);
}

void send_new(End &end)
{
    const Pass &pass = end.host->current();
    if (is_settled(end)) {
        end.unacked_since = pass.at;
    }
    const uint32_t number = end.next++;
    end.sent_at[number % max_window] = pass.now;
    end.copies[number % max_window] = 1;
    ++end.host->shared().counters.messages;
    send_data(end, number);
    lawn_conn_on_send(&end.conn, pass.now);
    end.witness.send(end.host->scene(end.index));
}

void start_thinking(End &end)
{
    Host &host = *end.host;
    const lawn_time_t ttl =
        host.ticks(host.shared().random.around(timing_of(end).think));
    end.think_deadline = host.current().now + ttl;
    lawn_timer_start(lawn_engine_lawn(host.engine()), &end.think,
                     host.current().now, ttl);
}

void think_expired(lawn_timer_t *timer, lawn_time_t)
{
    End &end = *reinterpret_cast<End *>(reinterpret_cast<char *>(timer) -
                                        offsetof(End, think));
    end.host->count_fired();
    check_expiry(end.host->scene(end.index), end.think_deadline, "message");
    end.think_deadline = LAWN_TIME_INFINITY;
    if (end.host->shared().is_quiet) {
        return;
    }
    const Timing &timing = timing_of(end);
    for (unsigned i = 0;
         i < timing.burst && end.next - end.unacked < timing.window; ++i) {
        send_new(end);
    }
    start_thinking(end);
}

// A timer must not do anything while what would have stopped it waits.
void check_not_heard(const End &end, const char *what)
{
    if (end.host->is_waiting(end.index)) {
        violate(end, what, end.conn.attempt);
    }
}

void retransmit(lawn_conn_t *conn, lawn_time_t, unsigned attempt)
{
    End &end = end_of(conn);
    Shared &shared = end.host->shared();
    end.host->count_fired();
    shared.counters.excused += end.witness.retransmit(
        end.host->scene(end.index), attempt, lawn_conn_rto(conn));
    note(end, 'r', attempt);
    check_not_heard(end, "retransmits although something has come, attempts");
    if (is_settled(end)) {
        violate(end, "retransmits nothing, attempt", attempt);
    }
    ++shared.counters.retransmissions;
    if (shared.link_of(end.index).faulted_at < end.unacked_since &&
        shared.state_of(peer_of(end.index)) == EndState::open) {
        ++shared.counters.spurious;
    }
    if (attempt > shared.counters.most_retransmissions) {
        shared.counters.most_retransmissions = attempt;
    }
    for (uint32_t number = end.unacked; number != end.next; ++number) {
        end.copies[number % max_window] = 2;
        send_data(end, number);
    }
}

void probe(lawn_conn_t *conn, lawn_time_t, unsigned count)
{
    End &end = end_of(conn);
    end.host->count_fired();
    end.host->shared().counters.excused +=
        end.witness.probe(end.host->scene(end.index), count);
    note(end, 'p', count);
    check_not_heard(end, "probes although something has come, attempts");
    ++end.host->shared().counters.probes;
    end.host->send(end.index, Kind::probe, 0, 0, 0);
}

// A false death is one whose peer lived while nothing was lost and the peer
// never slept for the horizon. That the end itself slept is no excuse; that
// its clock jumped, as nothing else in the world did, is.
void judge_death(const End &end)
{
    Shared &shared = end.host->shared();
    const Link &link = shared.link_of(end.index);
    const uint32_t peer = peer_of(end.index);
    if (link.state[peer % 2] == EndState::closed) {
        const uint64_t share =
            end.witness.share_of_bound(end.host->scene(end.index));
        if (share > shared.counters.worst_share) {
            shared.counters.worst_share = share;
        }
        return;
    }
    const Nsec at = end.host->current().at;
    const Nsec from = at > shared.horizon ? at - shared.horizon : 0;
    const Standing &host = shared.standing[link.host[peer % 2]];
    if (link.opened_at[0] >= from || link.opened_at[1] >= from ||
        link.faulted_at >= from || host.is_stalled ||
        host.stalled_until >= from) {
        ++shared.counters.unlucky;
    } else if (end.host->standing().jumped_at >= from) {
        ++shared.counters.jumped;
    } else {
        violate(end, "false death; attempts", end.conn.attempt);
    }
}

void dead(lawn_conn_t *conn, lawn_time_t, lawn_conn_reason_t reason)
{
    End &end = end_of(conn);
    Shared &shared = end.host->shared();
    end.host->count_fired();
    if (!end.is_open) {
        violate(end, "died twice, reason", reason);
        return;
    }
    end.witness.die(end.host->scene(end.index), reason);
    note(end, 'd', reason);
    if (lawn_timer_is_active(&conn->retransmit) ||
        lawn_timer_is_active(&conn->keepalive)) {
        violate(end, "dead, but a timer runs, reason", reason);
    }
    check_not_heard(end, "dead although something has come, attempts");
    judge_death(end);
    ++shared.counters.deaths[reason % shared.counters.deaths.size()];
    close_end(end);
    shared.set_closed(end.index, true);
}

// By a count of its own: what is delivered is what comes next.
void deliver(End &end, uint64_t content)
{
    if (content !=
        content_of(peer_of(end.index), end.incarnation, end.delivered)) {
        violate(end, "not the message that is due", end.delivered);
    }
    ++end.delivered;
    ++end.host->shared().counters.delivered;
    note(end, 'm', end.delivered);
}

void receive_data(End &end, const Packet &packet)
{
    // The round trip may be measured by what this acknowledges last.
    lawn_time_t stamp = 0;
    if (packet.number - end.expected < max_window) {
        end.held[packet.number % max_window] = packet.content;
    }
    for (;;) {
        uint64_t &next = end.held[end.expected % max_window];
        if (next == 0) {
            break;
        }
        deliver(end, next);
        next = 0;
        stamp = end.expected == packet.number ? packet.stamp : 0;
        ++end.expected;
    }
    end.host->send(end.index, Kind::ack, end.expected, 0, stamp);
}

void receive_ack(End &end, const Packet &packet)
{
    const lawn_time_t now = end.host->current().now;
    const uint32_t count = packet.number - end.unacked;
    if (count == 0 || count > end.next - end.unacked) { // an old one
        lawn_conn_on_receive(&end.conn, now);
        end.witness.hear(end.host->scene(end.index));
        return;
    }
    bool is_clear = true; // which copy is answered: Karn
    for (uint32_t number = end.unacked; number != packet.number; ++number) {
        is_clear = is_clear && end.copies[number % max_window] == 1;
    }
    lawn_time_t sample = 0;
    if (is_clear) {
        sample = now - end.sent_at[(packet.number - 1) % max_window];
        if (packet.stamp != 0 && sample != now - packet.stamp) {
            violate(end, "not the round trip", sample);
        }
    }
    end.unacked = packet.number;
    end.unacked_since = end.host->current().at;
    lawn_conn_on_ack(&end.conn, now, sample, is_settled(end));
    end.witness.ack(end.host->scene(end.index), sample, is_settled(end),
                    lawn_conn_rto(&end.conn), end.host->ticks(usec));
}

} // namespace

void open_end(End &end, Host &host, uint32_t index)
{
    static constexpr lawn_conn_ops_t ops = {retransmit, probe, dead, nullptr};
    Shared &shared = host.shared();
    end = End();
    end.host = &host;
    end.index = index;
    end.incarnation = shared.link_of(index).incarnation;
    end.is_open = true;
    end.think_deadline = LAWN_TIME_INFINITY;
    // The library's own jitter depends on the address, which no seed decides.
    const Timing &timing = timing_of(end);
    lawn_conn_params_t params = host.terms(index);
    if (timing.idle != 0) {
        params.keepalive_idle +=
            host.ticks(shared.random.between(0, timing.idle_spread));
    }
    if (lawn_conn_open(host.engine(), &params, &ops, &end.conn) != LAWN_OK) {
        violate(end, "cannot be opened", shared.link_of(index).timing);
    }
    end.witness.open(host.scene(index), params.keepalive_idle,
                     lawn_conn_rto(&end.conn));
    lawn_timer_init(&end.think, think_expired);
    if (!timing.one_sided || index % 2 == 0) {
        start_thinking(end);
    }
    ++shared.counters.opened;
    note(end, 'o', end.incarnation);
}

void close_end(End &end)
{
    lawn_conn_close(&end.conn);
    lawn_timer_stop(lawn_engine_lawn(end.host->engine()), &end.think);
    end.is_open = false;
}

void receive(End &end, const Packet &packet)
{
    const Scene scene = end.host->scene(end.index);
    if (packet.kind == Kind::ack) {
        receive_ack(end, packet);
        return;
    }
    lawn_conn_on_receive(&end.conn, scene.pass.now);
    end.witness.hear(scene);
    if (packet.kind == Kind::data) {
        receive_data(end, packet);
    } else if (packet.kind == Kind::probe) {
        end.host->send(end.index, Kind::answer, 0, 0, 0);
    }
}

} // namespace sim
