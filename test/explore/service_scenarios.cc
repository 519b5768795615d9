// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A service under the explorer: threads that start, cancel and stop beside its
// own. Each start ends in one way: it is called, cancelled or handed back. The
// time goes by only when nobody can go on, so a timer is called at its due
// time, or a wake-up was lost.

#include "scenarios.h"
#include "system.h"

#include <lawn/service.h>

using namespace explore;

namespace
{

constexpr unsigned most_timers = 3;

struct Op {
    enum What { start, cancel, stop, pending } what;
    unsigned timer;
    lawn_time_t ttl;
};

enum How : unsigned {
    one_lane = 1,
    no_nodes = 2 // yet
};

struct ServiceScenario {
    const char *name;
    std::vector<std::vector<Op>> threads;
    unsigned how = 0;
    size_t max_pending = 0;

    bool has(How what) const
    {
        return (how & what) != 0;
    }
};

class ServiceProgram final : public Program
{
public:
    explicit ServiceProgram(const ServiceScenario &scenario)
        : scenario_(scenario)
    {
    }

    void set_up() override
    {
        use_one_processor(scenario_.has(one_lane));
        lawn_service_params_t params = {};
        params.allocator = allocator();
        params.max_pending = scenario_.max_pending;
        require(lawn_service_create(&params, &service_) == LAWN_OK);
        if (scenario_.has(no_nodes)) {
            return;
        }
        // The nodes are made, so that no state differs by them.
        lawn_service_timer_t first;
        require(lawn_service_start(service_, 1000, on_call, nullptr, &first) ==
                LAWN_OK);
        require(lawn_service_cancel(service_, first) == LAWN_OK);
    }

    void begin() override
    {
        for (Timer &timer : timers_) {
            timer = {};
        }
        ended_ = 0;
        for (unsigned i = 0; i < scenario_.threads.size(); ++i) {
            at_[i] = 0;
            explorer().add_thread([this, i] { run(i); });
        }
    }

    void end() override
    {
        for (const Timer &timer : timers_) {
            const unsigned ends =
                timer.calls + timer.cancels + timer.handed_back;
            explorer().expect(ends == timer.starts, "a start ends once");
        }
        explorer().expect(lawn_service_pending(service_) == 0,
                          "nothing is pending at the end");
    }

    uint64_t hash() const override
    {
        uint64_t hash = mix(hash_of_system(), ended_);
        for (unsigned i = 0; i < scenario_.threads.size(); ++i) {
            hash = mix(hash, at_[i]);
        }
        for (const Timer &i : timers_) {
            hash = mix(hash, i.starts * 64 + i.calls * 16 + i.cancels * 4 +
                                 i.handed_back);
            hash = mix(hash, i.due);
            hash = mix(hash, i.has_handle * 2U + i.is_started);
        }
        return hash;
    }

private:
    struct Timer {
        unsigned starts;
        unsigned calls;
        unsigned cancels;
        unsigned handed_back;
        lawn_time_t due;
        bool is_started; // the start has returned
        bool has_handle;
        lawn_service_timer_t handle;
    };

    static void on_call(void *arg)
    {
        Timer *const timer = static_cast<Timer *>(arg);
        ++timer->calls;
        expect_in_time(timer->due, 1); // what the kernel is told is rounded up
    }

    static void on_unprocessed(void *arg, void *)
    {
        ++static_cast<Timer *>(arg)->handed_back;
    }

    void run(unsigned thread)
    {
        for (const Op &op : scenario_.threads[thread]) {
            explorer().end_operation(act(op));
            ++at_[thread];
        }
        ++ended_;
        if (thread != 0) {
            return;
        }
        // Then what is left is called, and the service stops.
        explorer().wait("the others",
                        [this] { return ended_ == scenario_.threads.size(); });
        explorer().wait("what is called", [this] {
            for (const Timer &i : timers_) {
                if (i.starts != i.calls + i.cancels + i.handed_back) {
                    return false;
                }
            }
            return true;
        });
        lawn_service_stop(service_, nullptr, nullptr);
    }

    uint64_t act(const Op &op)
    {
        Timer &timer = timers_[op.timer];
        switch (op.what) {
        case Op::start:
            return start(timer, op.ttl);
        case Op::cancel: {
            explorer().wait("a handle", [&timer] { return timer.has_handle; });
            const lawn_status_t status =
                lawn_service_cancel(service_, timer.handle);
            timer.cancels += status == LAWN_OK;
            explorer().expect(status == LAWN_OK || now() >= timer.due ||
                                  scenario_.threads.size() > 1,
                              "a cancel finds no start");
            return static_cast<uint64_t>(status + 100);
        }
        case Op::stop:
            return lawn_service_stop(service_, on_unprocessed, nullptr);
        case Op::pending: {
            const size_t pending = lawn_service_pending(service_);
            explorer().expect(pending <= most_timers, "more than there are");
            return pending;
        }
        }
        abort();
    }

    uint64_t start(Timer &timer, lawn_time_t ttl)
    {
        timer.due = now() + ttl;
        ++timer.starts; // it may be called before the start returns
        const lawn_status_t status =
            lawn_service_start(service_, ttl, on_call, &timer, &timer.handle);
        timer.starts -= status != LAWN_OK;
        timer.has_handle = true;
        const size_t most = scenario_.max_pending;
        explorer().expect(status == LAWN_OK || status == LAWN_ERR_UNSUPPORTED ||
                              (status == LAWN_ERR_BUSY && most != 0 &&
                               count_pending(false) >= most),
                          "a start is refused for no reason");
        timer.is_started = status == LAWN_OK;
        explorer().expect(most == 0 || count_pending(true) <= most,
                          "more are pending than may be");
        return static_cast<uint64_t>(status + 100);
    }

    // With starts that have not returned, or without.
    size_t count_pending(bool are_started) const
    {
        size_t count = 0;
        for (const Timer &i : timers_) {
            if (i.is_started || !are_started) {
                count += i.starts - i.calls - i.cancels - i.handed_back;
            }
        }
        return count;
    }

    const ServiceScenario &scenario_;
    lawn_service_t *service_ = nullptr;
    Timer timers_[most_timers];
    unsigned at_[most_threads] = {};
    unsigned ended_ = 0;
};

const ServiceScenario scenarios[] = {
    {"Start", {{{Op::start, 0, 0}}}},
    {"StartFarAndNear", {{{Op::start, 0, 100}, {Op::start, 1, 50}}}},
    {"StartAndCancel", {{{Op::start, 0, 0}, {Op::cancel, 0, 0}}}},
    {"CancelByAnother", {{{Op::start, 0, 0}}, {{Op::cancel, 0, 0}}}},
    {"Stop", {{{Op::start, 0, 0}, {Op::stop, 0, 0}}}},
    {"StartBesideAStop", {{{Op::start, 0, 0}}, {{Op::stop, 0, 0}}}},
    {"TwoStarts", {{{Op::start, 0, 0}}, {{Op::start, 1, 0}}}},
    {"TwoStartsInOneLane",
     {{{Op::start, 0, 0}}, {{Op::start, 1, 0}}},
     one_lane},
    {"CancelOfTheFirst", {{{Op::start, 0, 0}}, {{Op::cancel, 0, 0}}}, no_nodes},
    {"TwoStartsBesideALimit",
     {{{Op::start, 0, 50}}, {{Op::start, 1, 50}}},
     0,
     1},
    {"CancelBesideALimit",
     {{{Op::start, 0, 50}, {Op::cancel, 0, 0}, {Op::start, 1, 50}}},
     0,
     1},
    {"StartCancelAndStartAgain",
     {{{Op::start, 0, 10}, {Op::cancel, 0, 0}, {Op::start, 1, 0}}}},
    {"StartCancelAndStartLater",
     {{{Op::start, 0, 0}, {Op::cancel, 0, 0}, {Op::start, 1, 50}}}},
    {"StartAndCancelTheFirst",
     {{{Op::start, 0, 50}, {Op::cancel, 0, 0}}},
     no_nodes},
};

} // namespace

std::vector<Scenario> explore::service_scenarios()
{
    std::vector<Scenario> all;
    for (const ServiceScenario &i : scenarios) {
        all.push_back({i.name, static_cast<unsigned>(i.threads.size() + 1),
                       [&i] { return std::make_unique<ServiceProgram>(i); }});
    }
    return all;
}
