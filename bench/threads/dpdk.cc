// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's rte_timer: the owner is lcore 1, which runs rte_timer_manage(), and
// the others are threads that are registered with the EAL and reset timers for
// that lcore. Both lcores may run on any processor, as all threads here.

#include "peers/eal.h"
#include "threads/sharing.h"

#include <array>
#include <string>

#include <sched.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_timer.h>

namespace bench
{

namespace
{

constexpr unsigned owner_lcore = 1;

// Two lcores, on any processor.
std::string lcores()
{
    const std::string all =
        "(0-" + std::to_string(sysconf(_SC_NPROCESSORS_ONLN) - 1) + ")";
    return "0@" + all + ",1@" + all;
}

class RteTimers final : public Sharing
{
public:
    RteTimers() : Sharing("DPDK rte_timer"), defect_(start_eal(lcores()))
    {
        for (struct rte_timer &timer : timers_) {
            rte_timer_init(&timer);
        }
    }

    const char *defect() const override
    {
        return defect_;
    }

    // -1 is to be tried again: the owner was just looking at the timer.
    void start(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        enter();
        while (rte_timer_reset(&timers_[i], deadline - now, SINGLE, owner_lcore,
                               on_expired, nullptr) != 0) {
            sched_yield();
        }
    }

    bool stop(size_t i) override
    {
        enter();
        const bool was_running = rte_timer_pending(&timers_[i]) != 0;
        while (rte_timer_stop(&timers_[i]) != 0) {
            sched_yield();
        }
        return was_running;
    }

    void pass(lawn_time_t) override
    {
        rte_timer_manage();
    }

    void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        start(timer_count + i, now, deadline);
    }

    void with_owner(const std::function<void()> &run,
                    const std::function<void()> &meanwhile) override
    {
        const auto launch = [](void *arg) {
            (*static_cast<const std::function<void()> *>(arg))();
            return 0;
        };
        rte_eal_remote_launch(launch, const_cast<std::function<void()> *>(&run),
                              owner_lcore);
        meanwhile();
        rte_eal_wait_lcore(owner_lcore);
    }

private:
    // A thread that DPDK does not know has no random level of its own.
    static void enter()
    {
        struct Registered {
            Registered() : is_new(rte_lcore_id() == LCORE_ID_ANY)
            {
                if (is_new) {
                    rte_thread_register();
                }
            }
            ~Registered()
            {
                if (is_new) {
                    rte_thread_unregister();
                }
            }
            bool is_new;
        };
        static thread_local const Registered registered;
        (void)registered;
    }

    static void on_expired(struct rte_timer *, void *)
    {
    }

    const char *const defect_;
    std::array<struct rte_timer, 2 * timer_count> timers_;
};

} // namespace

void add_dpdk(Sharings *all)
{
    all->push_back(std::make_unique<RteTimers>());
}

} // namespace bench
