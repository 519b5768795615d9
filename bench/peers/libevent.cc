// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// libevent's timeouts, twice: in its binary heap, and as "common timeouts", a
// FIFO for each TTL with one event in the heap for its head, of which a program
// registers at most 256 by TTL beforehand. Here a small hash table finds the
// registered one, where a program would have it at hand; what is beyond 256
// goes to the heap.
//
// event_add reads the clock, unless the loop has just done so. An advance is
// event_base_loop(EVLOOP_NONBLOCK), which polls its file descriptors too: one
// epoll_wait, a system call, in every pass; all that is due moves to a queue
// and is called from there. libevent has no documented way to run timers alone.
//
// libevent's time is in microseconds, so one tick is one microsecond to it, and
// nothing is rounded.

#include "peers/peers.h"
#include "peers/virtual_clock.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstring>

namespace bench
{

namespace
{

timeval timeval_of(Time ticks)
{
    return {static_cast<time_t>(ticks / 1'000'000),
            static_cast<suseconds_t>(ticks % 1'000'000)};
}

class Libevent
{
public:
    static constexpr Traits traits{
        "libevent",
        "libevent 2.1, heap",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = true;

    struct Node {
        struct event event; // first: libevent hands it back
    };

    explicit Libevent(const Config &) : base_(event_base_new())
    {
    }

    ~Libevent()
    {
        if (base_) {
            event_base_free(base_);
        }
    }

    Libevent(const Libevent &) = delete;
    Libevent &operator=(const Libevent &) = delete;

    // libev has functions of the same names, for programs to move to it.
    const char *defect() const
    {
        if (strcmp(event_get_version(), LIBEVENT_VERSION) != 0) {
            return "not the libevent it was built with";
        }
        return base_ ? nullptr : "event_base_new fails";
    }

    void start(Node &node, Time now, Time ttl)
    {
        const timeval timeout = timeval_of(ttl);
        start(node, now, &timeout);
    }

    bool stop(Node &node)
    {
        if (!node.event.ev_base ||
            !event_pending(&node.event, EV_TIMEOUT, nullptr)) {
            return false;
        }
        event_del(&node.event);
        return true;
    }

    template <class Fired> unsigned advance(Time now, unsigned, const Fired &)
    {
        return fired_by([&] {
            const VirtualNow virtual_time(now / 1'000'000,
                                          now % 1'000'000 * 1000);
            event_base_loop(base_, EVLOOP_NONBLOCK);
        });
    }

protected:
    void start(Node &node, Time now, const timeval *timeout)
    {
        if (!node.event.ev_base) {
            event_assign(&node.event, base_, -1, 0, on_expired, &node);
        }
        const VirtualNow virtual_time(now / 1'000'000, now % 1'000'000 * 1000);
        event_add(&node.event, timeout);
    }

    event_base *const base_;

private:
    static void on_expired(evutil_socket_t, short, void *node)
    {
        expired.push_back(node);
    }
};

class LibeventCommon : public Libevent
{
public:
    static constexpr Traits traits{
        "libevent-common",          "libevent 2.1, common timeouts",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true, // in the heap
        /* bounded_ttl */ false,
    };

    using Libevent::Libevent;

    void start(Node &node, Time now, Time ttl)
    {
        if (const timeval *const timeout = common(ttl)) {
            Libevent::start(node, now, timeout);
        } else {
            Libevent::start(node, now, ttl);
        }
    }

private:
    static constexpr size_t most = 256; // libevent's own limit
    static constexpr unsigned slot_bits = 9;

    struct Slot {
        Time ttl;
        const timeval *timeout;
    };

    // Null when there is no room for another TTL.
    const timeval *common(Time ttl)
    {
        size_t i = ttl * 0x9e3779b97f4a7c15 >> (64 - slot_bits);
        while (slots_[i].timeout) {
            if (slots_[i].ttl == ttl) {
                return slots_[i].timeout;
            }
            i = (i + 1) % (size_t{1} << slot_bits);
        }
        if (count_ == most) {
            return nullptr;
        }
        ++count_;
        const timeval duration = timeval_of(ttl);
        slots_[i] = {ttl, event_base_init_common_timeout(base_, &duration)};
        return slots_[i].timeout;
    }

    Slot slots_[size_t{1} << slot_bits] = {};
    size_t count_ = 0;
};

} // namespace

Contender libevent()
{
    return peer_of<Libevent>();
}

Contender libevent_common()
{
    return peer_of<LibeventCommon>();
}

} // namespace bench
