// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An engine that sleeps, under the explorer: other threads start, stop and
// retire timers of its box. The time goes by only when nobody can go on. So a
// timer is called at its due time, or a wake-up was lost.

#include "outlined.h"
#include "scenarios.h"
#include "system.h"

#include "shared/box.h"

#include <lawn/engine.h>
#include <lawn/shared.h>

using namespace explore;

namespace
{

constexpr unsigned most_timers = 2;
constexpr lawn_time_t rounding = 1; // of what the kernel is told

struct Op {
    enum What { start, stop, stop_and_sync, retire } what;
    unsigned timer;
    lawn_time_t ttl;
};

enum How : unsigned {
    starts_again = 1, // in the first callback
    engine_ends = 2,
    is_child = 4 // of a fork, when one of the parent's threads rang the engine
};

struct EngineScenario {
    const char *name;
    std::vector<std::vector<Op>> threads;
    lawn_time_t own_ttl = 0;  // of a timer of the engine; 0: it has none
    lawn_time_t max_wait = 0; // of two waits at first; 0: there are none
    unsigned how = 0;

    bool has(How what) const
    {
        return (how & what) != 0;
    }
};

class EngineProgram final : public Program
{
public:
    explicit EngineProgram(const EngineScenario &scenario) : scenario_(scenario)
    {
    }

    void set_up() override
    {
        lawn_engine_params_t params = {};
        params.lawn.allocator = allocator();
        require(lawn_engine_create(&params, &engine_) == LAWN_OK);
        lawn_box_t *const box = lawn_engine_box(engine_);
        require(box && lawn_engine_fd(engine_) >= 0);
        timers_ = static_cast<lawn_shared_t *>(
            explorer().memory().allocate(most_timers * sizeof(lawn_shared_t)));
        own_ = static_cast<lawn_timer_t *>(
            explorer().memory().allocate(sizeof(lawn_timer_t)));
        for (unsigned i = 0; i < most_timers; ++i) {
            lawn_shared_init(&timers_[i], box, on_call);
        }
        lawn_timer_init(own_, on_own);
        lawn_engine_progress(engine_);
        if (scenario_.has(is_child)) {
            require(lawn_engine_arm(engine_) == LAWN_OK); // it is rung
            box->ringing = 1;
            ++lawn::forks;
            require(lawn_engine_fd(engine_) >= 0);
        }
    }

    void begin() override
    {
        for (unsigned i = 0; i < most_timers; ++i) {
            events_[i] = {};
            events_[i].starts_again = scenario_.has(starts_again);
        }
        is_gone_ = false;
        own_due_ = 0;
        short_waits_ = scenario_.max_wait == 0 ? 0 : 2;
        the_program = this;
        for (unsigned i = 0; i < scenario_.threads.size(); ++i) {
            at_[i] = 0;
            explorer().add_thread([this, i] { run_ops(i); });
        }
        explorer().add_thread([this] { run_engine(); },
                              scenario_.has(engine_ends)
                                  ? Explorer::End::itself
                                  : Explorer::End::never);
    }

    // The engine sleeps, and no timer runs, or there is none.
    void end() override
    {
        for (const Events &i : events_) {
            explorer().expect(!i.is_due || scenario_.has(engine_ends),
                              "a timer is not called");
            explorer().expect(i.retires == i.releases,
                              "a release for a retire");
        }
        explorer().expect(own_due_ == 0, "the engine's timer is not called");
    }

    uint64_t hash() const override
    {
        uint64_t hash =
            mix(hash_of_system(), own_due_ * 8 + short_waits_ * 2 + is_gone_);
        for (unsigned i = 0; i < scenario_.threads.size(); ++i) {
            hash = mix(hash, at_[i]);
        }
        for (const Events &i : events_) {
            hash = mix(hash, i.due);
            hash = mix(hash, i.is_due + 2U * i.is_called + 4U * i.retires +
                                 8U * i.releases + 64U * i.starts_again);
        }
        return hash;
    }

private:
    struct Events {
        lawn_time_t due;
        bool is_due;
        bool is_called; // it is in its callback
        bool starts_again;
        unsigned retires;
        unsigned releases;
    };

    static Events &events_of(const lawn_shared_t *timer)
    {
        return the_program->events_[timer - the_program->timers_];
    }

    static void on_call(lawn_shared_t *timer, lawn_time_t)
    {
        Events &events = events_of(timer);
        explorer().expect(events.is_due, "called for no start");
        expect_in_time(events.due, rounding);
        events.is_due = false;
        events.is_called = true;
        explorer().step("the callback");
        if (events.starts_again) {
            events.starts_again = false;
            events.due = now() + 50;
            events.is_due = true;
            outlined::start_local(timer, events.due);
        }
        events.is_called = false;
    }

    static void on_release(lawn_shared_t *timer, lawn_time_t)
    {
        Events &events = events_of(timer);
        explorer().expect(!events.is_called, "released in its callback");
        ++events.releases;
    }

    static void on_own(lawn_timer_t *, lawn_time_t)
    {
        expect_in_time(the_program->own_due_, rounding);
        the_program->own_due_ = 0;
    }

    void run_engine()
    {
        if (scenario_.own_ttl != 0) {
            own_due_ = now() + scenario_.own_ttl;
            outlined::start_at(lawn_engine_lawn(engine_), own_,
                               lawn_engine_now(engine_), own_due_);
        }
        if (scenario_.has(engine_ends)) {
            lawn_engine_progress(engine_);
            lawn_engine_destroy(engine_);
            is_gone_ = true;
            return;
        }
        for (;;) {
            if (lawn_engine_progress(engine_) != 0) {
                continue;
            }
            if (short_waits_ != 0) {
                --short_waits_;
                wait_shortly(now() + scenario_.max_wait);
            } else {
                lawn_engine_wait(engine_, LAWN_TIME_INFINITY);
            }
        }
    }

    void wait_shortly(lawn_time_t until)
    {
        if (lawn_engine_wait(engine_, scenario_.max_wait) ==
            LAWN_ERR_TIMED_OUT) {
            explorer().expect(now() >= until, "waited too short");
        }
        explorer().expect(now() <= until + 1, "waited too long");
    }

    void run_ops(unsigned thread)
    {
        for (const Op &op : scenario_.threads[thread]) {
            explorer().end_operation(act(op));
            ++at_[thread];
        }
    }

    uint64_t act(const Op &op)
    {
        lawn_shared_t *const timer = &timers_[op.timer];
        Events &events = events_[op.timer];
        switch (op.what) {
        case Op::start: {
            const bool was_gone = is_gone_;
            events.due = now() + op.ttl;
            events.is_due = true; // it may be called before the start returns
            if (lawn_shared_start(timer, events.due)) {
                explorer().expect(!was_gone, "a start that nobody will see");
            } else {
                explorer().expect(scenario_.has(engine_ends),
                                  "a start is refused");
                events.is_due = false;
            }
            return 0;
        }
        case Op::stop:
        case Op::stop_and_sync: {
            const bool was_active = lawn_shared_stop(timer);
            events.is_due = events.is_due && !was_active;
            if (op.what == Op::stop_and_sync) {
                lawn_shared_sync(timer);
                explorer().expect(!events.is_called && !events.is_due,
                                  "called after a stop and a sync");
            }
            return was_active;
        }
        case Op::retire:
            ++events.retires;
            lawn_shared_retire(timer, on_release);
            events.is_due = false; // the callback may have begun until now
            return 0;
        }
        abort();
    }

    static EngineProgram *the_program;

    const EngineScenario &scenario_;
    lawn_engine_t *engine_ = nullptr;
    lawn_shared_t *timers_ = nullptr;
    lawn_timer_t *own_ = nullptr;
    Events events_[most_timers] = {};
    unsigned at_[most_threads] = {};
    lawn_time_t own_due_ = 0;
    unsigned short_waits_ = 0;
    bool is_gone_ = false;
};

EngineProgram *EngineProgram::the_program;

const EngineScenario scenarios[] = {
    {"Start", {{{Op::start, 0, 0}}}},
    {"StartFarAndNear", {{{Op::start, 0, 100}, {Op::start, 1, 50}}}},
    {"StartNearer", {{{Op::start, 0, 100}, {Op::start, 0, 50}}}},
    {"StartAndStop", {{{Op::start, 0, 10}, {Op::stop, 0, 0}}}},
    {"StartBesideAnOwnTimer", {{{Op::start, 0, 50}}}, 100},
    {"StartBehindAnOwnTimer", {{{Op::start, 0, 50}}}, 20},
    {"StartBesideALimitedWait", {{{Op::start, 0, 50}}}, 0, 30},
    {"StartStopAndSync", {{{Op::start, 0, 0}, {Op::stop_and_sync, 0, 0}}}},
    {"Retire", {{{Op::retire, 0, 0}}}},
    {"StartAndRetire", {{{Op::start, 0, 0}, {Op::retire, 0, 0}}}},
    {"TwoStarts", {{{Op::start, 0, 0}}, {{Op::start, 1, 0}}}},
    {"StartBesideARetire", {{{Op::start, 0, 0}}, {{Op::retire, 1, 0}}}},
    {"StartsAgainBesideAStop",
     {{{Op::start, 0, 0}, {Op::stop, 0, 0}}},
     0,
     0,
     starts_again},
    {"StartBesideADestroy", {{{Op::start, 0, 0}}}, 0, 0, engine_ends},
    {"RetireBesideADestroy",
     {{{Op::start, 0, 0}, {Op::retire, 0, 0}}},
     0,
     0,
     engine_ends},
    {"StartsInAChild",
     {{{Op::start, 0, 0}}, {{Op::start, 1, 0}}},
     0,
     0,
     engine_ends | is_child},
};

} // namespace

std::vector<Scenario> explore::engine_scenarios()
{
    std::vector<Scenario> all;
    for (const EngineScenario &i : scenarios) {
        all.push_back({i.name, static_cast<unsigned>(i.threads.size() + 1),
                       [&i] { return std::make_unique<EngineProgram>(i); }});
    }
    return all;
}
