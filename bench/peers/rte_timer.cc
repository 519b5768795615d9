// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's rte_timer: a skip list by deadline for each lcore, here the main one.
// It reads the TSC with every call, so it lives in real time: one tick is one
// nanosecond of it, and `now` is ignored. A pass takes all that is due off the
// list and calls it.
//
// The EAL is started with the first contender, without huge pages and devices,
// and stays. It pins the thread that starts it; that is undone, so that all
// contenders run on the same terms.

#include "peers/eal.h"
#include "peers/peers.h"

#include <algorithm>
#include <string>

#include <sched.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_timer.h>
#include <rte_version.h>

namespace bench
{

namespace
{

class RteTimers
{
public:
    static constexpr Traits traits{
        "rte-timer",
        "DPDK " RTE_STR(RTE_VER_YEAR) "." RTE_STR(
            RTE_VER_MONTH) " (librte_timer)",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = true;

    struct Node {
        struct rte_timer timer; // first: DPDK hands it back

        Node()
        {
            rte_timer_init(&timer);
        }
    };

    explicit RteTimers(const Config &)
    {
        static const char *const eal_defect =
            start_eal("0@" + std::to_string(std::max(0, sched_getcpu())));
        defect_ = eal_defect;
        if (!defect_) {
            cycles_per_tick_ = static_cast<double>(rte_get_timer_hz()) * 1e-9;
            lcore_ = rte_lcore_id();
        }
    }

    // Those that still run; 0 stands for the list that all calls here use.
    ~RteTimers()
    {
        if (!defect_) {
            rte_timer_stop_all(0, &lcore_, 1, nullptr, nullptr);
        }
    }

    RteTimers(const RteTimers &) = delete;
    RteTimers &operator=(const RteTimers &) = delete;

    const char *defect() const
    {
        return defect_;
    }

    void start(Node &node, Time, Time ttl)
    {
        rte_timer_reset(&node.timer, cycles(ttl), SINGLE, lcore_, on_expired,
                        nullptr);
    }

    bool stop(Node &node)
    {
        const bool was_running = rte_timer_pending(&node.timer) != 0;
        rte_timer_stop(&node.timer);
        return was_running;
    }

    template <class Fired> unsigned advance(Time, unsigned, const Fired &)
    {
        return fired_by([] { rte_timer_manage(); });
    }

    void wait(Time time) const
    {
        const uint64_t begin = rte_get_timer_cycles();
        while (rte_get_timer_cycles() - begin < cycles(time)) {
            rte_pause();
        }
    }

private:
    // Never less than the time; at most 2^62, which takes a century.
    uint64_t cycles(Time time) const
    {
        const double exact = static_cast<double>(time) * cycles_per_tick_;
        return static_cast<uint64_t>(std::min(exact, 0x1p62)) + 1;
    }

    static void on_expired(struct rte_timer *timer, void *)
    {
        expired.push_back(timer);
    }

    const char *defect_;
    double cycles_per_tick_ = 0;
    unsigned lcore_ = 0;
};

} // namespace

Contender rte_timers()
{
    Contender c = peer_of<RteTimers>();
    c.wait = [](void *scheme, Time time) {
        static_cast<RteTimers *>(scheme)->wait(time);
    };
    return c;
}

} // namespace bench
