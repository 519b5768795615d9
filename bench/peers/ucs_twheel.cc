// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timer wheel of UCX, which its UD transport retransmits with: one wheel of
// 1024 slots, a list each. It is exported by libucs, but its header is not
// installed: the declarations below are the layout of UCX 1.13, and what is
// inline there is inline here.
//
// A timer beyond the last slot is put into the last slot, and one of less than
// a slot ends the program, so the resolution is the finest that holds the
// longest TTL, and a TTL is at least that. A TTL is rounded down to slots and
// counted from the last sweep: a timer may be early. A sweep forgets the part
// of a slot that has passed, so time goes in whole slots here, or timers would
// be as late as their TTL is long; and it does not come as far as the last
// slot, however long it was, so a long one is done in two. A sweep fires all
// that is due.

#include "peers/peers.h"

#include <algorithm>

#include <ucs/datastruct/list.h>
#include <ucs/time/time_def.h>
#include <ucs/type/status.h>

extern "C" {

struct ucs_wtimer {
    void (*cb)(ucs_wtimer *self);
    ucs_list_link_t list;
    int is_active;
};

struct ucs_timer_wheel {
    ucs_time_t res;
    ucs_time_t now; // of the last sweep
    uint64_t current;
    ucs_list_link_t *wheel;
    unsigned res_order;
    unsigned num_slots;
    unsigned count;
};

ucs_status_t ucs_twheel_init(ucs_timer_wheel *wheel, ucs_time_t resolution,
                             ucs_time_t now);
void ucs_twheel_cleanup(ucs_timer_wheel *wheel);
ucs_status_t ucs_wtimer_init(ucs_wtimer *timer, void (*cb)(ucs_wtimer *self));
void __ucs_twheel_sweep(ucs_timer_wheel *wheel, ucs_time_t now);
void __ucs_wtimer_add(ucs_timer_wheel *wheel, ucs_wtimer *timer,
                      ucs_time_t delta);
}

namespace bench
{

namespace
{

class UcsTwheel
{
public:
    static constexpr Traits traits{
        "ucs-twheel",
        "UCX 1.13 (libucs)",
        /* rounds_to_tick */ true,
        /* may_be_early */ true,
        /* any_order */ true,
        /* bounded_ttl */ true,
    };
    static constexpr bool no_budget = true;

    struct Node {
        ucs_wtimer timer; // first: UCX hands it back

        Node()
        {
            ucs_wtimer_init(&timer, on_expired);
        }
    };

    explicit UcsTwheel(const Config &config)
    {
        const Time finest = config.longest_ttl / (slots - 1) + 1;
        const Time resolution = std::max(config.tick, finest);
        is_ready_ = ucs_twheel_init(&wheel_, resolution, 0) == UCS_OK;
        is_known_ = wheel_.num_slots == slots && wheel_.res >= resolution &&
                    wheel_.res == Time{1} << wheel_.res_order;
    }

    ~UcsTwheel()
    {
        if (is_ready_) {
            ucs_twheel_cleanup(&wheel_);
        }
    }

    UcsTwheel(const UcsTwheel &) = delete;
    UcsTwheel &operator=(const UcsTwheel &) = delete;

    const char *defect() const
    {
        if (!is_ready_) {
            return "ucs_twheel_init fails";
        }
        return is_known_ ? nullptr : "this libucs has another timer wheel";
    }

    void start(Node &node, Time, Time ttl)
    {
        stop(node);
        __ucs_wtimer_add(&wheel_, &node.timer, std::max(ttl, wheel_.res));
    }

    bool stop(Node &node)
    {
        if (!node.timer.is_active) {
            return false;
        }
        ucs_list_del(&node.timer.list);
        node.timer.is_active = 0;
        --wheel_.count;
        return true;
    }

    template <class Fired> unsigned advance(Time now, unsigned, const Fired &)
    {
        if (now - wheel_.now < wheel_.res) {
            return 0;
        }
        const Time slot_begin = now & ~(wheel_.res - 1);
        return fired_by([&] {
            if (slot_begin - wheel_.now > slots * wheel_.res) {
                __ucs_twheel_sweep(&wheel_, slot_begin - wheel_.res);
            }
            __ucs_twheel_sweep(&wheel_, slot_begin);
        });
    }

private:
    static constexpr Time slots = 1024;

    static void on_expired(ucs_wtimer *timer)
    {
        expired.push_back(timer);
    }

    ucs_timer_wheel wheel_ = {};
    bool is_ready_;
    bool is_known_;
};

} // namespace

Contender ucs_twheel()
{
    return peer_of<UcsTwheel>();
}

} // namespace bench
