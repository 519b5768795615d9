// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// libev's ev_timer: a 4-ary heap with the deadlines in it. A running timer is
// re-armed by ev_timer_again, which libev recommends for it: one move in the
// heap. An advance is ev_run(EVRUN_NOWAIT), which polls its file descriptors
// too: one epoll_wait, a system call, in every pass. libev has no documented
// way to run timers alone, nor one to stop after some.
//
// libev's time is a double in seconds, a timer starts at the time that the loop
// read last, and it fires when its deadline is before the time, not at it. So
// one tick is one microsecond to libev, the clock shows half a microsecond
// more, and each TTL is counted from the loop's time: exact while libev's time
// is below 2^50 ticks. A TTL of more than 2^49 ticks, six days, never expires.

#include "peers/peers.h"
#include "peers/short_time.h"
#include "peers/virtual_clock.h"

#include <ev.h>

namespace bench
{

namespace
{

class Libev
{
public:
    static constexpr Traits traits{
        "libev",
        "libev 4, ev_timer",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = true;

    struct Node {
        ev_timer timer; // first: libev hands it back

        Node()
        {
            ev_timer_init(&timer, on_expired, 0., 0.);
        }
    };

    explicit Libev(const Config &)
    {
        const VirtualNow zero(0, half);
        loop_time_ = 0.5e-6;
        loop_ = ev_loop_new(EVFLAG_AUTO);
    }

    ~Libev()
    {
        if (loop_) {
            ev_loop_destroy(loop_);
        }
    }

    Libev(const Libev &) = delete;
    Libev &operator=(const Libev &) = delete;

    const char *defect() const
    {
        return loop_ ? nullptr : "ev_loop_new fails";
    }

    void start(Node &node, Time now, Time ttl)
    {
        ev_timer &timer = node.timer;
        const double deadline =
            static_cast<double>(time_.deadline(now, ttl)) * 1e-6;
        const double after = deadline - loop_time_;
        if (ev_is_active(&timer) && after > 0) {
            timer.repeat = after;
            ev_timer_again(loop_, &timer);
            timer.repeat = 0; // once only
            return;
        }
        ev_timer_stop(loop_, &timer);
        ev_timer_set(&timer, after, 0.);
        ev_timer_start(loop_, &timer);
    }

    bool stop(Node &node)
    {
        const bool was_running = ev_is_active(&node.timer);
        ev_timer_stop(loop_, &node.timer);
        return was_running;
    }

    template <class Fired> unsigned advance(Time now, unsigned, const Fired &)
    {
        const Time time = time_.at(now);
        const Time sec = time / 1'000'000;
        const Time nsec = time % 1'000'000 * 1000 + half;
        loop_time_ =
            static_cast<double>(sec) + static_cast<double>(nsec) * 1e-9;
        return fired_by([&] {
            const VirtualNow virtual_time(sec, nsec);
            ev_run(loop_, EVRUN_NOWAIT);
        });
    }

private:
    static constexpr Time half = 500; // of a tick, in ns

    static void on_expired(struct ev_loop *, ev_timer *timer, int)
    {
        expired.push_back(timer);
    }

    struct ev_loop *loop_;
    double loop_time_; // ev_now() is that of the day, by another clock
    ShortTime time_{Time{1} << 49};
};

} // namespace

Contender libev()
{
    return peer_of<Libev>();
}

} // namespace bench
