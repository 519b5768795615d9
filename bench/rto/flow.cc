// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The program's side of the simulation, and its loop; see flow.h.

#include "rto/flow.h"

#include <algorithm>

namespace bench::rto
{

namespace
{

// A silence follows so many messages.
constexpr uint32_t messages_between_silences = 500;

// Where changes come by time, so many messages in a round trip are sent at
// most: a flow with a greater window would be over before the second change.
constexpr uint32_t most_by_time = 8;

// A contender that makes so many passes at one time makes them for ever.
constexpr unsigned most_passes = 100'000;

} // namespace

bool Flow::is_cumulative() const
{
    return setting.acks != Acks::single;
}

void Flow::begin(const Variant &variant, const Setting &given)
{
    setting = given;
    path = variant.path;
    if (path->ack_every != 1 && setting.acks == Acks::single) {
        setting.acks = Acks::cumulative;
    }
    think = setting.round_trip / 4;
    const bool is_slow = path->by_time && setting.window > most_by_time;
    pace = is_slow ? setting.round_trip / most_by_time : 0;
    is_eager = !is_cumulative() ||
               (variant.order == Order::kept && path->ack_every == 1);
    head = setting.messages + setting.window;
    messages.assign(head + 1, Message());
    messages[head].before = messages[head].after = head;
    to_program.clear();
    to_peer.clear();
    sends.clear();
    first_send = 0;
    outcome = Outcome();
    next_id = next_serial = out = acked = unacked = 0;
    unheard = 0;
    last_sent = last_first = 0;
    expected = announced = pending = 0;
    ack_due = never;
}

Outcome Flow::run(const Variant &variant, const Setting &given,
                  Contender &taking_part)
{
    begin(variant, given);
    Route own_route(variant, setting.round_trip, setting.loss, setting.seed);
    route = &own_route;
    contender = &taking_part;
    // Not at 0, which some take for no time at all.
    const Tick start =
        setting.start != 0 ? setting.start : 100 * setting.round_trip;
    if (setting.loses_first) {
        route->begin_event(0);
    }
    Tick now = start;
    contender->open(*this, now, setting.round_trip);
    sends.push_back(now);
    unsigned passes = 0;
    while (!is_over()) {
        const Tick send = first_send < sends.size() ? sends[first_send] : never;
        const Tick event =
            std::min({send, to_program.next(), contender->next()});
        const Tick next = event == never ? never : route->awake(event);
        if (to_peer.next() <= next && to_peer.next() != never) {
            at_peer(to_peer.pop());
            continue;
        }
        passes = next > now ? 0 : passes + 1;
        if (next == never || passes > most_passes) {
            outcome.is_stuck = true;
            break;
        }
        if (event == send && out >= setting.window) {
            ++first_send; // this one waits for an ACK
            continue;
        }
        now = std::max(now, next);
        contender->pass(now);
        send_messages(now);
    }
    outcome.took = now - start;
    return std::move(outcome);
}

bool Flow::is_over() const
{
    return setting.loses_first ? !outcome.stalls.empty()
                               : acked >= setting.messages ||
                                     outcome.spurious > setting.most_spurious;
}

Tick Flow::awake(Tick at) const
{
    return route->awake(at);
}

uint32_t Flow::sacked() const
{
    return next_id - unacked - out;
}

uint32_t Flow::outstanding() const
{
    return out;
}

// What may be sent now. A window that goes out at once leaves with one `now`.
void Flow::send_messages(Tick now)
{
    while (first_send < sends.size() && sends[first_send] <= now) {
        if (++first_send == sends.size()) {
            sends.clear();
            first_send = 0;
        }
        if (path->at_once) {
            while (out < setting.window) {
                send_next(now);
            }
        } else if (out < setting.window) {
            const bool is_silent =
                path->silence > 0 && next_id != 0 &&
                next_id % messages_between_silences == 0 &&
                now - last_sent < route->ticks(path->silence);
            if (is_silent) {
                continue; // the ACK of the last one begins the silence
            }
            send_next(now);
            if (out < setting.window && setting.window > 1) {
                wait_to_send(now + (pace == 0 ? think : pace));
            }
        }
    }
}

void Flow::wait_to_send(Tick at)
{
    // Where a pace is set, one waits at a time.
    if (pace != 0 && first_send < sends.size()) {
        return;
    }
    sends.push_back(at);
}

void Flow::send_next(Tick now)
{
    if (next_id >= setting.messages + setting.window) {
        return; // enough to keep the window full to the end
    }
    if (next_id == setting.messages / 4 && !setting.loses_first) {
        route->begin_event(now);
    }
    last_sent = now;
    transmit(now, next_id++, false);
}

// Sends a message, for the first time or again.
void Flow::transmit(Tick now, uint32_t id, bool is_again)
{
    Message &message = messages[id];
    const bool counts = acked >= setting.warm_up;
    if (is_again && counts && is_answer_coming(message, id)) {
        outcome.spurious++;
    }
    outcome.transmissions++;
    // Of what is first sent in one pass, each is a tick later than the one
    // before, as lawn/flight.h has it.
    last_first = is_again ? last_first : std::max(now, last_first + 1);
    message.sending = {is_again ? now : last_first, next_serial++};
    message.is_again = is_again;
    if (!is_again) {
        message.is_out = true;
        ++out;
        link_last(id);
    } else if (!is_cumulative()) {
        unlink(id);
        link_last(id);
    }
    const bool is_after_silence = path->loss == Loss::first &&
                                  setting.loss > 0 && !is_again && id != 0 &&
                                  id % messages_between_silences == 0;
    const bool is_dropped = setting.loses_first && !is_again && id == 0;
    const bool arrives = !is_after_silence && !is_dropped &&
                         send_packet(now, Arrival::data, id, message.sending);
    if (!arrives && !is_again) {
        message.lost_at = now;
    }
    if (!is_again) {
        contender->sent(now, message.sending);
    }
}

void Flow::resend(Tick now, const Lost &lost)
{
    if (out == 0) {
        return;
    }
    outcome.attempts = std::max(outcome.attempts, ++unheard);
    // Where ACKs are cumulative, nobody knows what was lost besides the oldest.
    const uint32_t end = next_serial;
    uint32_t id = messages[head].after;
    do {
        transmit(now, id, true);
        id = messages[head].after;
    } while (!is_cumulative() && messages[id].sending.serial < end &&
             lost.includes(messages[id].sending));
    contender->resent(now, oldest());
}

void Flow::resend_newest(Tick now)
{
    if (out == 0) {
        return;
    }
    outcome.attempts = std::max(outcome.attempts, ++unheard);
    transmit(now, messages[head].before, true);
    contender->resent(now, oldest());
}

void Flow::ask(Tick now)
{
    outcome.asks++;
    send_packet(now, Arrival::asking, 0, {now, next_serial++});
}

unsigned Flow::poll(Tick now)
{
    unsigned count = 0;
    while (to_program.next() <= now) {
        take(now, to_program.pop());
        ++count;
    }
    return count;
}

void Flow::take(Tick now, const Arrival &arrival)
{
    unheard = 0;
    if (is_cumulative()) {
        take_cumulative(now, arrival);
    } else {
        take_single(now, arrival);
    }
}

void Flow::take_single(Tick now, const Arrival &arrival)
{
    if (arrival.kind == Arrival::answer) {
        contender->echoed(now, arrival.sending);
        return;
    }
    messages[arrival.id].coming--;
    if (!messages[arrival.id].is_out) {
        contender->echoed(now, arrival.sending);
        return;
    }
    acknowledge(now, arrival.id);
    contender->acked(now, arrival.sending, oldest());
    plan_next(now);
}

void Flow::take_cumulative(Tick now, const Arrival &arrival)
{
    const bool is_bare = setting.acks == Acks::bare;
    if (arrival.id <= unacked) {
        if (is_bare && arrival.kind != Arrival::answer) {
            contender->received(now);
        } else {
            contender->echoed(now, arrival.sending);
        }
        return;
    }
    Sending known = messages[arrival.id - 1].sending;
    while (unacked < arrival.id) {
        // What waited at the peer for something that was sent again is no
        // sample either: it would measure the RTO.
        known = messages[unacked].is_again ? Sending() : known;
        acknowledge(now, unacked);
    }
    contender->acked(now, is_bare ? known : arrival.sending, oldest());
    plan_next(now);
}

// Something new was acknowledged: when the next message may follow it.
void Flow::plan_next(Tick now)
{
    if (path->at_once) {
        if (out == 0) {
            wait_to_send(now + think);
        }
        return;
    }
    if (path->silence > 0 && next_id % messages_between_silences == 0) {
        if (out == 0) {
            wait_to_send(now + route->ticks(path->silence));
        }
        return;
    }
    if (out < setting.window) {
        wait_to_send(std::max(now + think, last_sent + pace));
    }
}

void Flow::acknowledge(Tick now, uint32_t id)
{
    Message &message = messages[id];
    message.is_out = false;
    --out;
    ++acked;
    unlink(id);
    while (unacked < next_id && !messages[unacked].is_out) {
        ++unacked;
    }
    if (message.lost_at != never && id >= setting.warm_up) {
        outcome.stalls.push_back(static_cast<double>(now - message.lost_at) /
                                 static_cast<double>(setting.round_trip));
    }
}

Sending Flow::oldest() const
{
    return out == 0 ? Sending() : messages[messages[head].after].sending;
}

void Flow::link_last(uint32_t id)
{
    const uint32_t last = messages[head].before;
    messages[id].before = last;
    messages[id].after = head;
    messages[last].after = id;
    messages[head].before = id;
}

void Flow::unlink(uint32_t id)
{
    const Message &message = messages[id];
    messages[message.before].after = message.after;
    messages[message.after].before = message.before;
}

} // namespace bench::rto
