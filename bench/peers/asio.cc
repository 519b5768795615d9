// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Boost.Asio's basic_waitable_timer on a clock of its own: a binary heap in the
// io_context. A re-arm is expires_at and async_wait: it takes the timer out of
// the heap, posts the old handler as aborted, allocates the new one and puts
// the timer in again; the aborted handler runs in the next poll. A handler that
// is already due when its timer is stopped comes nevertheless, so each has the
// number of the start that it belongs to.
//
// Every poll asks the reactor for file descriptors too, a system call. Where
// there is a timerfd it waits for that, in real time; without, as here, it
// compares the deadlines with the clock in each pass. Locks are off: one
// thread.

#include "peers/peers.h"

#include <boost/asio/detail/config.hpp>
#undef BOOST_ASIO_HAS_TIMERFD

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/version.hpp>

#include <chrono>
#include <optional>

namespace bench
{

namespace
{

struct TickClock {
    using rep = Time;
    using period = std::nano;
    using duration = std::chrono::duration<rep, period>;
    using time_point = std::chrono::time_point<TickClock>;
    [[maybe_unused]] static constexpr bool is_steady = true;

    static time_point now()
    {
        return time_point(duration(ticks));
    }

    static inline Time ticks = 0;
};

class Asio
{
public:
    static constexpr Traits traits{
        "asio",
        "Boost.Asio " BOOST_LIB_VERSION ", basic_waitable_timer",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = false;

    struct Node {
        std::optional<boost::asio::basic_waitable_timer<TickClock>> timer;
        uint64_t start = 0; // number of the start that counts; 0: idle
        Node *next = nullptr;
    };

    explicit Asio(const Config &)
        : io_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE), work_(io_.get_executor())
    {
    }

    // A timer must not outlive its io_context.
    ~Asio()
    {
        for (Node *node = nodes_; node; node = node->next) {
            node->timer.reset();
        }
    }

    Asio(const Asio &) = delete;
    Asio &operator=(const Asio &) = delete;

    const char *defect() const
    {
        return nullptr;
    }

    void start(Node &node, Time now, Time ttl)
    {
        if (!node.timer) {
            node.timer.emplace(io_);
            node.next = nodes_;
            nodes_ = &node;
        }
        const Time deadline = ttl > never - now ? never : now + ttl;
        node.timer->expires_at(
            TickClock::time_point(TickClock::duration(deadline)));
        node.start = ++starts_;
        node.timer->async_wait(
            [&node, start = starts_](const boost::system::error_code &) {
                if (node.start == start) {
                    node.start = 0;
                    expired.push_back(&node);
                }
            });
    }

    bool stop(Node &node)
    {
        if (node.start == 0) {
            return false;
        }
        node.start = 0;
        node.timer->cancel();
        return true;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, const Fired &)
    {
        TickClock::ticks = now < never ? now : never - 1;
        return fired_by([&] {
            if (budget == 0) {
                io_.poll();
                return;
            }
            const size_t end = expired.size() + budget;
            while (expired.size() < end && io_.poll_one() != 0) {
            }
        });
    }

private:
    boost::asio::io_context io_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type>
        work_;
    Node *nodes_ = nullptr; // with a timer
    uint64_t starts_ = 0;
};

} // namespace

Contender asio()
{
    return peer_of<Asio>();
}

} // namespace bench
