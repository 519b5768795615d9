// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// libuv's uv_timer: a binary heap of nodes with three pointers each. Re-arming
// takes a timer out and puts it in again. An advance is uv_run(UV_RUN_NOWAIT),
// which polls its file descriptors too: one epoll_wait, a system call, in every
// pass. libuv has no documented way to run timers alone, nor one to stop after
// some.
//
// libuv's time is in milliseconds, so one tick is one millisecond to it, and
// nothing is rounded; each TTL is counted from the loop's time. It comes from a
// clock of 64 bits in nanoseconds, which is full after 2^44 ticks: before that
// the clock is set back and all that runs is started again. A TTL of more than
// 2^43 ticks, two hours, never expires.

#include "peers/peers.h"
#include "peers/short_time.h"
#include "peers/virtual_clock.h"

#include <uv.h>

#include <algorithm>
#include <cstdlib>

namespace bench
{

namespace
{

class Libuv
{
public:
    static constexpr Traits traits{
        "libuv",
        "libuv 1, uv_timer",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = true;

    struct Node {
        uv_timer_t timer; // first: libuv hands it back
    };

    explicit Libuv(const Config &)
    {
        const VirtualNow zero(0, 0);
        is_open_ = uv_loop_init(&loop_) == 0;
    }

    // libuv knows each timer that was ever started.
    ~Libuv()
    {
        if (!is_open_) {
            return;
        }
        uv_walk(
            &loop_,
            [](uv_handle_t *timer, void *) { uv_close(timer, nullptr); },
            nullptr);
        uv_run(&loop_, UV_RUN_DEFAULT);
        if (uv_loop_close(&loop_) != 0) {
            abort();
        }
    }

    Libuv(const Libuv &) = delete;
    Libuv &operator=(const Libuv &) = delete;

    const char *defect() const
    {
        return is_open_ ? nullptr : "uv_loop_init fails";
    }

    void start(Node &node, Time now, Time ttl)
    {
        if (!node.timer.loop) {
            uv_timer_init(&loop_, &node.timer);
        }
        const Time deadline = time_.deadline(now, ttl);
        uv_timer_start(&node.timer, on_expired, deadline - uv_now(&loop_), 0);
    }

    bool stop(Node &node)
    {
        if (!node.timer.loop || !is_running(&node.timer)) {
            return false;
        }
        uv_timer_stop(&node.timer);
        return true;
    }

    template <class Fired> unsigned advance(Time now, unsigned, const Fired &)
    {
        const Time time = time_.at(now);
        const unsigned fired = fired_by([&] {
            const VirtualNow virtual_time(time / 1000, time % 1000 * 1'000'000);
            uv_run(&loop_, UV_RUN_NOWAIT);
        });
        if (time > longest) {
            rewind(now);
        }
        return fired;
    }

private:
    static constexpr Time longest = Time{1} << 43;

    static bool is_running(const uv_timer_t *timer)
    {
        return uv_is_active(reinterpret_cast<const uv_handle_t *>(timer));
    }

    static void on_expired(uv_timer_t *timer)
    {
        expired.push_back(timer);
    }

    void rewind(Time now)
    {
        std::vector<uv_timer_t *> running;
        uv_walk(&loop_, collect, &running);
        std::sort(running.begin(), running.end(),
                  [](const uv_timer_t *a, const uv_timer_t *b) {
                      return a->start_id < b->start_id;
                  });
        std::vector<uint64_t> left;
        for (uv_timer_t *timer : running) {
            left.push_back(uv_timer_get_due_in(timer));
            uv_timer_stop(timer);
        }
        time_.rewind(now);
        const VirtualNow zero(0, 0);
        uv_update_time(&loop_);
        for (size_t i = 0; i < running.size(); ++i) {
            uv_timer_start(running[i], on_expired, left[i], 0);
        }
    }

    static void collect(uv_handle_t *handle, void *running)
    {
        auto *const timer = reinterpret_cast<uv_timer_t *>(handle);
        if (is_running(timer)) {
            static_cast<std::vector<uv_timer_t *> *>(running)->push_back(timer);
        }
    }

    uv_loop_t loop_;
    bool is_open_;
    ShortTime time_{longest};
};

} // namespace

Contender libuv()
{
    return peer_of<Libuv>();
}

} // namespace bench
