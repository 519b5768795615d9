// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timer of UCX's transport over UD (uct_ud_ep_timer in its
// src/uct/ib/ud/base/ud_ep.c), as UCX_UD_TIMER_TICK and UCX_UD_TIMER_BACKOFF
// have it by default. It measures nothing. When it expires and nothing new was
// acknowledged for a tick, the peer is asked for an ACK; after three ticks, the
// whole window is sent again. Then the timer runs for twice as long, until
// something new is acknowledged. The peer timeout, UCX_UD_TIMEOUT, is longer
// than any run.
//
// Only the timer is simulated, and not the NACK by which a peer tells of a gap.
// UD acknowledges all in order: what is acknowledged singly counts here when it
// is the oldest.

#include "rto/flow.h"

#include <algorithm>

namespace bench::rto
{

namespace
{

constexpr Tick shortest = 10 * millisecond;
constexpr Tick longest = 100 * second; // a third of the peer timeout

class Ucx : public Contender
{
public:
    void open(Flow &flow_, Tick /*now*/, Tick /*round_trip*/) override
    {
        flow = &flow_;
    }

    void sent(Tick now, Sending sending) override
    {
        if (oldest.at == never) {
            oldest = sending;
            progress = now;
        }
        if (due == never) {
            due = now + tick;
        }
    }

    void acked(Tick now, Sending /*sending*/, Sending oldest_) override
    {
        if (oldest_.serial != oldest.serial) {
            progress = now;
            tick = shortest;
        }
        oldest = oldest_;
    }

    void echoed(Tick /*now*/, Sending /*sending*/) override
    {
    }

    void resent(Tick /*now*/, Sending oldest_) override
    {
        oldest = oldest_;
    }

    Tick next() const override
    {
        return due;
    }

    void pass(Tick now) override
    {
        flow->poll(now);
        if (due > now) {
            return;
        }
        if (oldest.at == never) {
            due = never;
            return;
        }
        const Tick silence = now - progress;
        tick = std::min(2 * tick, longest);
        due = now + tick;
        if (silence > 3 * shortest) {
            progress = now;
            flow->resend(now, {now, UINT32_MAX, 0});
        }
        if (silence > shortest) {
            flow->ask(now);
        }
    }

private:
    Flow *flow = nullptr;
    Sending oldest;
    Tick progress = 0; // latest ACK of something new, or retransmission
    Tick tick = shortest;
    Tick due = never;
};

} // namespace

std::unique_ptr<Contender> make_ucx()
{
    return std::make_unique<Ucx>();
}

} // namespace bench::rto
