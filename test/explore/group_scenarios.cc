// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A group under the explorer: two engines that hand shards to each other beside
// a thread that starts and stops timers in them. A timer that nobody stops is
// called once, in time, by whoever has its shard then, and each move comes to
// its end, whatever else happens.

#include "scenarios.h"
#include "system.h"

#include "group/group_impl.h"

#include <lawn/shared.h>

using namespace explore;

namespace
{

constexpr unsigned engines = 2;

struct Op {
    enum What { start, stop, move, balance, step_back } what;
    unsigned number; // of the timer, or the worker to move to
    lawn_time_t ttl; // seconds
};

struct GroupScenario {
    const char *name;
    std::vector<Op> ops;
    bool first_leaves = false; // the engine of worker 0
    unsigned shards = 1;
};

class GroupProgram final : public Program
{
public:
    explicit GroupProgram(const GroupScenario &scenario) : scenario_(scenario)
    {
    }

    void set_up() override
    {
        use_one_processor(false);
        lawn_group_params_t params = {};
        params.shards = scenario_.shards;
        params.balance = on_balance;
        params.balance_arg = this;
        params.lawn.allocator = allocator();
        require(lawn_group_create(&params, &group_) == LAWN_OK);
        for (unsigned i = 0; i < engines; ++i) {
            lawn_engine_params_t of_engine = {};
            of_engine.clock = lawn_group_time;
            of_engine.clock_arg = group_;
            of_engine.lawn.allocator = allocator();
            require(lawn_engine_create(&of_engine, &engines_[i]) == LAWN_OK);
            require(lawn_group_add_engine(group_, engines_[i], &workers_[i]) ==
                    LAWN_OK);
            lawn_engine_progress(engines_[i]);
        }
        require(lawn_group_moving(group_) == 0);
        if (scenario_.first_leaves) { // a start rings it
            require(lawn_engine_arm(engines_[0]) == LAWN_OK);
        }
        timers_ = static_cast<lawn_shared_t *>(
            explorer().memory().allocate(2 * sizeof(lawn_shared_t)));
        for (unsigned i = 0; i < 2; ++i) {
            lawn_shard_t *const shard =
                lawn_group_shard(group_, i % scenario_.shards);
            lawn_shared_init(&timers_[i], lawn_shard_box(shard), on_call);
        }
    }

    void begin() override
    {
        at_ = 0;
        work_ = 0;
        is_over_ = false;
        for (unsigned i = 0; i < 2; ++i) {
            due_[i] = 0;
            calls_[i] = 0;
        }
        the_program = this;
        explorer().add_thread([this] { run_ops(); });
        for (unsigned i = 0; i < engines; ++i) {
            const bool leaves = i == 0 && scenario_.first_leaves;
            explorer().add_thread([this, i] { run_engine(i); },
                                  leaves ? Explorer::End::itself
                                         : Explorer::End::never);
        }
    }

    // All engines sleep.
    void end() override
    {
        for (unsigned i = 0; i < 2; ++i) {
            explorer().expect(calls_[i] == (due_[i] != 0),
                              "a call for a start");
        }
        explorer().expect(lawn_group_moving(group_) == 0,
                          "a shard is on its way at the end");
        lawn_group_balance(group_);
        explorer().expect(work_ >= calls_[0] + calls_[1],
                          "work is counted for a balance");
    }

    uint64_t hash() const override
    {
        uint64_t hash = mix(hash_of_system(), work_ * 16 + at_ * 2 + is_over_);
        for (unsigned i = 0; i < 2; ++i) {
            hash = mix(hash, due_[i]);
            hash = mix(hash, calls_[i]);
        }
        return hash;
    }

private:
    // Each shard counts one more than it has done.
    static void on_balance(void *arg, lawn_shard_load_t *shards, unsigned count,
                           uint64_t *work, unsigned workers)
    {
        for (unsigned i = 0; i < count; ++i) {
            static_cast<GroupProgram *>(arg)->work_ += shards[i].work - 1;
        }
        lawn::balance_by_work(nullptr, shards, count, work, workers);
    }

    static void on_call(lawn_shared_t *timer, lawn_time_t)
    {
        GroupProgram &self = *the_program;
        const auto i = static_cast<unsigned>(timer - self.timers_);
        ++self.calls_[i];
        expect_in_time(self.due_[i], lawn_time_from_sec(1) - 1);
    }

    void run_engine(unsigned i)
    {
        if (i == 0 && scenario_.first_leaves) {
            explorer().expect(
                lawn_group_remove_worker(workers_[0], workers_[1]) == LAWN_OK,
                "a worker cannot leave");
            lawn_engine_destroy(engines_[0]);
            return;
        }
        for (;;) {
            if (lawn_engine_progress(engines_[i]) == 0 &&
                lawn_engine_wait(engines_[i], LAWN_TIME_INFINITY) == LAWN_OK) {
                pass_time(lawn_time_from_msec(1)); // or it spins at one time
            }
        }
    }

    void run_ops()
    {
        for (const Op &op : scenario_.ops) {
            explorer().end_operation(act(op));
            ++at_;
        }
        is_over_ = true;
    }

    uint64_t act(const Op &op)
    {
        const lawn_time_t ticks =
            lawn_time_from_sec(static_cast<double>(op.ttl));
        switch (op.what) {
        case Op::start:
            due_[op.number] = now() + ticks;
            explorer().expect(
                lawn_shared_start(&timers_[op.number], due_[op.number]),
                "a start is refused");
            return 0;
        case Op::stop:
            if (lawn_shared_stop(&timers_[op.number])) {
                explorer().expect(calls_[op.number] == 0,
                                  "stopped, and called");
                due_[op.number] = 0;
            }
            return 0;
        case Op::move: {
            const lawn_status_t status = lawn_group_move_shard(
                lawn_group_shard(group_, 0), workers_[op.number]);
            explorer().expect(status == LAWN_OK || scenario_.first_leaves,
                              "a shard cannot be moved");
            return static_cast<uint64_t>(status + 100);
        }
        case Op::balance:
            return lawn_group_balance(group_);
        case Op::step_back:
            step_back(ticks);
            return 0;
        }
        abort();
    }

    // The time goes on from where it was, or a little before.
    void step_back(lawn_time_t ticks)
    {
        pass_time(2 * ticks);
        lawn_group_time(group_);
        explore::step_back(ticks);
        for (unsigned i = 0; i < 2; ++i) {
            const lawn_time_t time = lawn_group_time(group_);
            explorer().expect(time <= now(), "the time runs ahead");
            explorer().expect(now() - time <= lawn_time_from_msec(3),
                              "the time goes back");
        }
    }

    static GroupProgram *the_program;

    const GroupScenario &scenario_;
    lawn_group_t *group_ = nullptr;
    lawn_engine_t *engines_[engines] = {};
    lawn_worker_t *workers_[engines] = {};
    lawn_shared_t *timers_ = nullptr;
    lawn_time_t due_[2] = {};
    unsigned calls_[2] = {};
    unsigned at_ = 0;
    uint64_t work_ = 0; // of all balances
    bool is_over_ = false;
};

GroupProgram *GroupProgram::the_program;

const GroupScenario scenarios[] = {
    {"Start", {{Op::start, 0, 0}}},
    {"StartAndMove", {{Op::start, 0, 0}, {Op::move, 1, 0}}},
    {"MoveAndStart", {{Op::move, 1, 0}, {Op::start, 0, 0}}},
    {"StartLaterAndMove", {{Op::start, 0, 30}, {Op::move, 1, 0}}},
    {"MoveThereAndBack",
     {{Op::move, 1, 0}, {Op::move, 0, 0}, {Op::start, 0, 0}}},
    {"StartBesideALeaver", {{Op::start, 0, 0}}, true},
    {"MoveBesideALeaver", {{Op::move, 1, 0}, {Op::start, 0, 0}}, true},
    {"MoveToALeaver",
     {{Op::move, 1, 0}, {Op::move, 0, 0}, {Op::start, 0, 0}},
     true},
    {"StopBesideAMove",
     {{Op::start, 0, 0}, {Op::move, 1, 0}, {Op::stop, 0, 0}}},
    {"StepBackAndStart", {{Op::step_back, 0, 10}, {Op::start, 0, 0}}},
    {"BalanceAndStart", {{Op::balance, 0, 0}, {Op::start, 0, 0}}, false, 2},
};

} // namespace

std::vector<Scenario> explore::group_scenarios()
{
    std::vector<Scenario> all;
    for (const GroupScenario &i : scenarios) {
        all.push_back({i.name, engines + 1,
                       [&i] { return std::make_unique<GroupProgram>(i); }});
    }
    return all;
}
