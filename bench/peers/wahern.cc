// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// W. Ahern's timeout (github.com/wahern/timeout, timeout.c, which
// -Dwahern_source points to): a hierarchical timing wheel of four levels with
// 64 slots and a bit for each, which is advanced over any distance at once.
// What lies beyond its 2^24 ticks goes round the highest level until it is due.
//
// A timeout is absolute here (TIMEOUT_ABS), in ticks: a relative one would be
// counted from the last update. Deadlines are rounded up to ticks. What has
// expired is taken out one by one, so that there is a budget; timers are moved
// in an update whatever it is.

#include "peers/peers.h"

#include "schemes/ticks.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/queue.h>

extern "C" {
#include <timeout.h>
}

namespace bench
{

namespace
{

class WahernTimeouts
{
public:
    static constexpr Traits traits{
        "wahern-timeout",          "W. Ahern's timeout.c, by its sources",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = false;

    struct Node {
        struct timeout timeout; // first: timeouts_get() hands it back

        Node()
        {
            timeout_init(&timeout, TIMEOUT_ABS);
        }
    };

    explicit WahernTimeouts(const Config &config) : ticks_(config.tick)
    {
        int error = 0;
        wheel_ = timeouts_open(0, &error);
    }

    ~WahernTimeouts()
    {
        if (wheel_) {
            timeouts_close(wheel_);
        }
    }

    WahernTimeouts(const WahernTimeouts &) = delete;
    WahernTimeouts &operator=(const WahernTimeouts &) = delete;

    const char *defect() const
    {
        return wheel_ ? nullptr : "timeouts_open fails";
    }

    void start(Node &node, Time now, Time ttl)
    {
        timeouts_add(wheel_, &node.timeout, ticks_.deadline(now, ttl));
    }

    bool stop(Node &node)
    {
        const bool was_running = node.timeout.pending != nullptr;
        timeouts_del(wheel_, &node.timeout);
        return was_running;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, const Fired &fired)
    {
        timeouts_update(wheel_, ticks_.present(now));
        unsigned count = 0;
        while (budget == 0 || count < budget) {
            struct timeout *const timeout = timeouts_get(wheel_);
            if (!timeout) {
                break;
            }
            ++count;
            fired(*reinterpret_cast<Node *>(timeout), now);
        }
        return count;
    }

private:
    Ticks ticks_;
    struct timeouts *wheel_;
};

} // namespace

Contender wahern_timeouts()
{
    return peer_of<WahernTimeouts>();
}

} // namespace bench
