// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timer queue of UCX, which runs the periodic timers of its async thread:
// an unsorted array by id. A start looks through all of it for the id, a stop
// looks through all of it always, to find the least interval anew, and so does
// every pass: O(n) each, O(n^2) for n. It is made for a handful of timers. It
// is exported by libucs, but its header is not installed: the declarations
// below are the layout of UCX 1.13, and what is a macro there is a loop here.
//
// Its timers are periodic, and due at once for the first time. So the deadline
// is written after the start, and what has fired is removed.

#include "peers/peers.h"

#include <algorithm>

#include <ucs/time/time_def.h>
#include <ucs/type/spinlock.h>
#include <ucs/type/status.h>

extern "C" {

struct ucs_timer {
    ucs_time_t expiration;
    ucs_time_t interval;
    int id;
};

struct ucs_timer_queue {
    ucs_recursive_spinlock_t lock;
    ucs_time_t min_interval;
    ucs_timer *timers;
    unsigned num_timers;
};

ucs_status_t ucs_timerq_init(ucs_timer_queue *queue);
void ucs_timerq_cleanup(ucs_timer_queue *queue);
ucs_status_t ucs_timerq_add(ucs_timer_queue *queue, int id,
                            ucs_time_t interval);
ucs_status_t ucs_timerq_remove(ucs_timer_queue *queue, int id);
}

namespace bench
{

namespace
{

class UcsTimerq
{
public:
    static constexpr Traits traits{
        "ucs-timerq",
        "UCX 1.13 (libucs)",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = false;

    struct Node {
        int id = 0; // from the first start on, above 0
        bool is_running = false;
    };

    explicit UcsTimerq(const Config &)
    {
        is_ready_ = ucs_timerq_init(&queue_) == UCS_OK;
        is_known_ = !queue_.timers && queue_.num_timers == 0 &&
                    queue_.min_interval == ~ucs_time_t{0};
    }

    ~UcsTimerq()
    {
        queue_.num_timers = 0; // or it warns of each
        if (is_ready_) {
            ucs_timerq_cleanup(&queue_);
        }
    }

    UcsTimerq(const UcsTimerq &) = delete;
    UcsTimerq &operator=(const UcsTimerq &) = delete;

    const char *defect() const
    {
        if (!is_ready_) {
            return "ucs_timerq_init fails";
        }
        return is_known_ ? nullptr : "this libucs has another timer queue";
    }

    void start(Node &node, Time now, Time ttl)
    {
        stop(node);
        if (node.id == 0) {
            nodes_.push_back(&node);
            node.id = static_cast<int>(nodes_.size());
        }
        // An interval may not be infinite.
        ucs_timerq_add(&queue_, node.id, std::min(ttl, never - 1));
        ucs_timer &last = queue_.timers[queue_.num_timers - 1];
        last.expiration = ttl > never - now ? never : now + ttl;
        node.is_running = true;
    }

    bool stop(Node &node)
    {
        if (!node.is_running) {
            return false;
        }
        node.is_running = false;
        ucs_timerq_remove(&queue_, node.id);
        return true;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        due_.clear();
        ucs_recursive_spin_lock(&queue_.lock);
        const Time present = std::min(now, never - 1);
        for (unsigned i = 0; i < queue_.num_timers; ++i) {
            if (queue_.timers[i].expiration <= present) {
                due_.push_back(queue_.timers[i].id);
                if (due_.size() == budget) {
                    break;
                }
            }
        }
        ucs_recursive_spin_unlock(&queue_.lock);
        for (const int id : due_) {
            Node &node = *nodes_[static_cast<size_t>(id) - 1];
            stop(node);
            fired(node, now);
        }
        return static_cast<unsigned>(due_.size());
    }

private:
    ucs_timer_queue queue_ = {};
    bool is_ready_;
    bool is_known_;
    std::vector<Node *> nodes_; // by id
    std::vector<int> due_;
};

} // namespace

Contender ucs_timerq()
{
    return peer_of<UcsTimerq>();
}

} // namespace bench
