// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared memory under the explorer: an owner, and clients that start, stop,
// wait and release, each a process that may be killed before any of its steps.
// A start that nobody stops or replaces comes back once, at its deadline. What
// a client had that was killed is free again.

#include "explorer.h"
#include "system.h"

#include "shm/layout.h"

#include <lawn/shm.h>

#include <gtest/gtest.h>

#include <iostream>

using namespace explore;

namespace
{

constexpr unsigned most_timers = 2;
constexpr pid_t owner_pid = 100;

struct Op {
    enum What { alloc, start, stop, wait, release, open, close } what;
    unsigned timer;
    lawn_time_t ttl; // seconds
};

struct ShmScenario {
    const char *name;
    std::vector<std::vector<Op>> clients;
    bool is_killed = false; // the first one may be
    bool opens = false;     // in steps of their own
    bool share = false;     // one place for all of them
};

class ShmProgram final : public Program
{
public:
    explicit ShmProgram(const ShmScenario &scenario) : scenario_(scenario)
    {
    }

    void set_up() override
    {
        use_one_processor(false);
        explorer().on_death([](unsigned thread) { end_process(thread); });
        be_process(owner_pid);
        lawn_engine_params_t params = {};
        params.lawn.allocator = allocator();
        check(lawn_engine_create(&params, &engine_) == LAWN_OK);
        lawn_shm_params_t sizes = {};
        sizes.timers = most_timers;
        sizes.clients = scenario_.share ? 1 : 2;
        check(lawn_shm_create(engine_, "/shm", &sizes, &shm_) == LAWN_OK);
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            be_process(pid_of(i));
            if (is_open_at_first(i)) {
                check(lawn_shm_open("/shm", nullptr, nullptr, &clients_[i]) ==
                      LAWN_OK);
            }
        }
        be_process(owner_pid);
        lawn_engine_progress(engine_);
    }

    void begin() override
    {
        releases_ = 0;
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            at_[i] = 0;
            is_open_[i] = is_open_at_first(i);
            for (Timer &timer : timers_[i]) {
                timer = {};
            }
            const bool may_die = i == 0 && scenario_.is_killed;
            const unsigned thread = explorer().add_thread(
                [this, i] { run(i); },
                may_die ? Explorer::End::killed : Explorer::End::itself);
            put_into_process(thread, pid_of(i));
            ended_[i] = false;
        }
        const unsigned thread = explorer().add_thread([this] { run_owner(); },
                                                      Explorer::End::never);
        put_into_process(thread, owner_pid);
    }

    // The owner sleeps. A client that was killed while it opened is found in a
    // later pass.
    void end() override
    {
        for (unsigned i = 0; i < 3; ++i) {
            pass_time(lawn_time_from_msec(2));
            lawn_engine_progress(engine_);
        }
        lawn_shm_stats_t stats;
        lawn_shm_query(shm_, &stats);
        unsigned clients = 0;
        unsigned timers = 0;
        unsigned deaths = 0;
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            const bool is_open = ended_[i] && is_open_[i];
            clients += is_open;
            deaths += !ended_[i];
            for (const Timer &timer : timers_[i]) {
                timers += is_open && timer.number != 0;
            }
        }
        explorer().expect(stats.clients == clients, "clients at the end");
        // Who has released a timer need not have looked since.
        explorer().expect(stats.timers >= timers &&
                              stats.timers <= timers + releases_,
                          "timers at the end");
        explorer().expect(stats.deaths <= deaths, "deaths");
        explorer().expect(lawn_count(lawn_engine_lawn(engine_)) == 0,
                          "a timer is pending at the end");
    }

    uint64_t hash() const override
    {
        uint64_t hash = hash_of_system();
        for (unsigned i = 0; i < scenario_.clients.size(); ++i) {
            hash = mix(hash, at_[i] * 4 + is_open_[i] * 2 + ended_[i]);
            for (const Timer &timer : timers_[i]) {
                hash = mix(hash, timer.number);
                hash = mix(hash, timer.is_stopped ? 0 : timer.due);
                hash = mix(hash, timer.events);
            }
        }
        return hash;
    }

private:
    struct Timer {
        lawn_shm_timer_t number;
        lawn_time_t due; // of the latest start
        bool is_stopped; // in time: no event of it is to come
        unsigned events; // of it
        unsigned starts;
    };

    static void check(bool holds)
    {
        if (!holds) {
            abort();
        }
    }

    static pid_t pid_of(unsigned client)
    {
        return static_cast<pid_t>(owner_pid + 1 + client);
    }

    bool is_open_at_first(unsigned client) const
    {
        return !scenario_.opens && (client == 0 || !scenario_.share);
    }

    bool has_place() const
    {
        auto *const header = static_cast<lawn::shm::Header *>(shared_file());
        const lawn::shm::Memory memory = {header, 0, 0, header->client_count};
        return memory.client(1).pid == 0 || header->client_count > 1;
    }

    void run_owner()
    {
        for (;;) {
            if (lawn_engine_progress(engine_) == 0 &&
                lawn_engine_wait(engine_, LAWN_TIME_INFINITY) == LAWN_OK) {
                pass_time(lawn_time_from_msec(1)); // or it spins at one time
            }
        }
    }

    void run(unsigned i)
    {
        for (const Op &op : scenario_.clients[i]) {
            explorer().end_operation(act(i, op));
            ++at_[i];
        }
        explorer().step("ends");
        ended_[i] = true;
    }

    uint64_t act(unsigned i, const Op &op)
    {
        lawn_shm_client_t *const client = clients_[i];
        Timer &timer = timers_[i][op.timer];
        switch (op.what) {
        case Op::open: {
            explorer().wait("a place", [this] { return has_place(); });
            const lawn_status_t status =
                lawn_shm_open("/shm", nullptr, nullptr, &clients_[i]);
            explorer().expect(status == LAWN_OK, "a client cannot open");
            is_open_[i] = true;
            break;
        }
        case Op::close:
            lawn_shm_close(client);
            is_open_[i] = false;
            break;
        case Op::alloc:
            explorer().expect(
                lawn_shm_alloc(client, 7 + op.timer, &timer.number) == LAWN_OK,
                "no timer is free");
            break;
        case Op::start:
            // One of a time of its own, as an event is known by its deadline.
            timer.due = now() + ++timer.starts +
                        lawn_time_from_sec(static_cast<double>(op.ttl));
            timer.is_stopped = false;
            timer.events = 0;
            explorer().expect(lawn_shm_start(client, timer.number, timer.due),
                              "a start is refused");
            break;
        case Op::stop:
            // One that comes too late finds an event.
            if (lawn_shm_stop(client, timer.number)) {
                explorer().expect(timer.events == 0, "stopped, and expired");
                timer.is_stopped = true;
            }
            break;
        case Op::release:
            lawn_shm_release(client, timer.number);
            timer = {};
            ++releases_;
            break;
        case Op::wait:
            wait(i);
            break;
        }
        return timer.number;
    }

    bool is_awaited(unsigned i) const
    {
        for (const Timer &timer : timers_[i]) {
            if (timer.due != 0 && !timer.is_stopped && timer.events == 0) {
                return true;
            }
        }
        return false;
    }

    // Until everything has come.
    void wait(unsigned i)
    {
        for (;;) {
            take_all(i);
            if (!is_awaited(i)) {
                return;
            }
            explorer().end_operation(0);
            const lawn_status_t status =
                lawn_shm_wait(clients_[i], LAWN_TIME_INFINITY);
            explorer().expect(status == LAWN_OK, "the owner is gone");
        }
    }

    void take_all(unsigned i)
    {
        lawn_shm_event_t event;
        while (lawn_shm_next(clients_[i], &event)) {
            Timer *found = nullptr;
            for (Timer &timer : timers_[i]) {
                found = timer.number == event.timer ? &timer : found;
            }
            explorer().expect(found != nullptr, "an event of no timer");
            explorer().expect(event.cookie ==
                                  7 + static_cast<unsigned>(found - timers_[i]),
                              "another cookie");
            explorer().expect(now() >= event.deadline, "expired early");
            explorer().expect(now() - event.deadline < lawn_time_from_sec(1),
                              "expired late");
            // One of an earlier start was replaced too late.
            explorer().expect(event.deadline <= found->due,
                              "an event of another start");
            if (event.deadline == found->due) {
                ++found->events;
                explorer().expect(found->events == 1, "an event came twice");
                explorer().expect(!found->is_stopped, "stopped, and expired");
            }
            explorer().end_operation(event.timer);
        }
    }

    const ShmScenario &scenario_;
    lawn_engine_t *engine_ = nullptr;
    lawn_shm_t *shm_ = nullptr;
    lawn_shm_client_t *clients_[2] = {};
    Timer timers_[2][most_timers] = {};
    unsigned at_[2] = {};
    bool ended_[2] = {};
    unsigned releases_ = 0;
    bool is_open_[2] = {};
};

const ShmScenario scenarios[] = {
    {"StartAndWait",
     {{{Op::alloc, 0, 0}, {Op::start, 0, 50}, {Op::wait, 0, 0}}}},
    {"DueAtOnce", {{{Op::alloc, 0, 0}, {Op::start, 0, 0}, {Op::wait, 0, 0}}}},
    {"StartAndStop",
     {{{Op::alloc, 0, 0},
       {Op::start, 0, 0},
       {Op::stop, 0, 0},
       {Op::wait, 0, 0}}}},
    {"StartAndStartEarlier",
     {{{Op::alloc, 0, 0},
       {Op::start, 0, 90},
       {Op::start, 0, 40},
       {Op::wait, 0, 0}}}},
    {"StartAgainWhenDue",
     {{{Op::alloc, 0, 0},
       {Op::start, 0, 0},
       {Op::start, 0, 40},
       {Op::wait, 0, 0}}}},
    {"StartTwice",
     {{{Op::alloc, 0, 0},
       {Op::start, 0, 0},
       {Op::start, 0, 0},
       {Op::wait, 0, 0}}}},
    {"Release", {{{Op::alloc, 0, 0}, {Op::start, 0, 0}, {Op::release, 0, 0}}}},
    {"TwoClients",
     {{{Op::alloc, 0, 0}, {Op::start, 0, 50}, {Op::wait, 0, 0}},
      {{Op::alloc, 0, 0}, {Op::start, 0, 40}, {Op::wait, 0, 0}}}},
    {"Killed",
     {{{Op::alloc, 0, 0}, {Op::start, 0, 50}, {Op::wait, 0, 0}}},
     true},
    {"KilledAtARelease",
     {{{Op::alloc, 0, 0}, {Op::start, 0, 0}, {Op::release, 0, 0}}},
     true},
    {"KilledWhileItOpens", {{{Op::open, 0, 0}}}, true, true},
    {"KilledWhileItCloses",
     {{{Op::alloc, 0, 0}, {Op::start, 0, 0}, {Op::close, 0, 0}}},
     true},
    {"OpensInThePlaceOfAnother",
     {{{Op::close, 0, 0}}, {{Op::open, 0, 0}, {Op::alloc, 0, 0}}},
     false,
     false,
     true},
    {"KilledBesideAnother",
     {{{Op::alloc, 0, 0}, {Op::start, 0, 50}},
      {{Op::alloc, 0, 0}, {Op::start, 0, 40}, {Op::wait, 0, 0}}},
     true},
};

class ExploreShm : public testing::TestWithParam<ShmScenario>
{
};

TEST_P(ExploreShm, EveryOrderOfStepsIsRight)
{
    ShmProgram program(GetParam());
    const auto threads = static_cast<unsigned>(GetParam().clients.size() + 1);
    const Result result = explorer().explore(&program, usual_limits(threads));
    leave_system();
    EXPECT_EQ(result.violation, "") << result.report();
    EXPECT_TRUE(result.is_complete);
    std::cout << result.summary() << '\n';
}

INSTANTIATE_TEST_SUITE_P(All, ExploreShm, testing::ValuesIn(scenarios),
                         [](const auto &i) { return i.param.name; });

} // namespace
