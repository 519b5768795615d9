// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How two well-known programs time their connections, written anew in the shape
// of their code:
//   - UCX's UD: a timer of each endpoint in one wheel, which is not moved when
//     something is acknowledged. When it expires, it looks at the time of the
//     latest send or ACK, and goes back into the wheel. Keepalive is a walk of
//     the worker over its endpoints, a few in each pass.
//   - lwIP's TCP: no timers. Twice a second, a walk over all connections counts
//     up their retransmission and keepalive counters.

#include "conns/conns.h"

#include <array>

namespace bench
{

namespace
{

struct Link {
    Link *prev = this;
    Link *next = this;

    void remove()
    {
        prev->next = next;
        next->prev = prev;
        prev = next = this;
    }

    void insert_before(Link *at)
    {
        prev = at->prev;
        next = at;
        prev->next = this;
        at->prev = this;
    }
};

struct Endpoint : Link {
    bool is_active = false; // its timer is in the wheel
    bool is_open = false;
    bool is_outstanding = false;
    lawn_time_t send_time = 0;
    lawn_time_t tick = 0; // backed off
    lawn_time_t heard_at = 0;
};

class UdWheel : public Conns
{
public:
    explicit UdWheel(size_t count)
        : Conns("wheel, as UD's", sizeof(Endpoint)), endpoints_(count)
    {
    }

    void open(size_t i, lawn_time_t now) override
    {
        endpoints_[i].is_open = true;
        endpoints_[i].heard_at = now;
        endpoints_[i].tick = least_tick;
    }

    void send(size_t i, lawn_time_t now) override
    {
        Endpoint &ep = endpoints_[i];
        ep.send_time = now;
        ep.is_outstanding = true;
        if (!ep.is_active) {
            add(&ep);
        }
    }

    void ack(size_t i, lawn_time_t now, lawn_time_t) override
    {
        Endpoint &ep = endpoints_[i];
        ep.is_outstanding = false;
        ep.send_time = now;
        ep.heard_at = now;
        ep.tick = least_tick;
    }

    bool pass(lawn_time_t now) override
    {
        while (swept_ + resolution <= now) {
            swept_ += resolution;
            current_ = (current_ + 1) % slot_count;
            sweep(&slots_[current_], now);
        }
        keep_alive(now);
        return false;
    }

    void close(size_t i) override
    {
        endpoints_[i].is_open = false;
        if (endpoints_[i].is_active) {
            endpoints_[i].remove();
            endpoints_[i].is_active = false;
        }
    }

private:
    static constexpr size_t slot_count = 1024;
    static constexpr lawn_time_t resolution = 4 * conn_msec;
    static constexpr lawn_time_t least_tick = 100 * conn_msec;
    static constexpr size_t batch = 16;

    void add(Endpoint *ep)
    {
        const size_t delta = static_cast<size_t>(ep->tick / resolution);
        const size_t at =
            (current_ + (delta < slot_count ? delta : slot_count - 1)) %
            slot_count;
        ep->insert_before(&slots_[at]);
        ep->is_active = true;
    }

    void sweep(Link *slot, lawn_time_t now)
    {
        while (slot->next != slot) {
            Endpoint *const ep = static_cast<Endpoint *>(slot->next);
            ep->remove();
            ep->is_active = false;
            if (!ep->is_outstanding) {
                continue;
            }
            if (now - ep->send_time >= ep->tick) {
                ++retransmissions;
                ep->send_time = now;
                ep->tick *= 2;
            }
            add(ep);
        }
    }

    // A round begins each second, and asks whom nothing was heard from.
    void keep_alive(lawn_time_t now)
    {
        if (at_ == endpoints_.size() && now >= round_at_) {
            at_ = 0;
            round_at_ = now + 1000 * conn_msec;
        }
        for (size_t n = 0; n < batch && at_ < endpoints_.size(); ++n, ++at_) {
            const Endpoint &ep = endpoints_[at_];
            probes += ep.is_open && now - ep.heard_at >= keepalive_idle;
        }
    }

    std::vector<Endpoint> endpoints_;
    std::array<Link, slot_count> slots_;
    size_t current_ = 0;
    lawn_time_t swept_ = 0;
    size_t at_ = 0; // of the round
    lawn_time_t round_at_ = 0;
};

// In ticks of half a second.
struct Pcb {
    bool is_open = false;
    int rtime = -1; // counts up while something is outstanding
    int rto = 2;
    unsigned heard_at = 0;
    unsigned kept_alive = 0;
};

class SlowTick : public Conns
{
public:
    explicit SlowTick(size_t count)
        : Conns("walk, as lwIP's", sizeof(Pcb)), pcbs_(count)
    {
    }

    void open(size_t i, lawn_time_t) override
    {
        pcbs_[i].is_open = true;
        pcbs_[i].heard_at = ticks_;
    }

    void send(size_t i, lawn_time_t) override
    {
        pcbs_[i].rtime = pcbs_[i].rtime < 0 ? 0 : pcbs_[i].rtime;
    }

    void ack(size_t i, lawn_time_t, lawn_time_t) override
    {
        pcbs_[i].rtime = -1;
        pcbs_[i].rto = 2;
        pcbs_[i].heard_at = ticks_;
        pcbs_[i].kept_alive = 0;
    }

    bool pass(lawn_time_t now) override
    {
        while (next_ <= now) {
            next_ += tick;
            ++ticks_;
            for (Pcb &pcb : pcbs_) {
                walk(&pcb);
            }
        }
        return false;
    }

    void close(size_t i) override
    {
        pcbs_[i] = Pcb();
    }

private:
    static constexpr lawn_time_t tick = 500 * conn_msec;

    void walk(Pcb *pcb)
    {
        if (!pcb->is_open) {
            return;
        }
        if (pcb->rtime >= 0 && ++pcb->rtime >= pcb->rto) {
            ++retransmissions;
            pcb->rtime = 0;
            pcb->rto *= 2;
        }
        if (ticks_ - pcb->heard_at >
            keepalive_idle / tick + lawn_time_t{2} * pcb->kept_alive) {
            ++probes;
            ++pcb->kept_alive;
        }
    }

    std::vector<Pcb> pcbs_;
    unsigned ticks_ = 0;
    lawn_time_t next_ = tick;
};

} // namespace

std::unique_ptr<Conns> make_ud_wheel(size_t count)
{
    return std::make_unique<UdWheel>(count);
}

std::unique_ptr<Conns> make_slow_tick(size_t count)
{
    return std::make_unique<SlowTick>(count);
}

} // namespace bench
