// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The exhaustive check of queues and of slots with many timers in them; see
// exhaustive_test.cc.

#include "exhaustive_fixture.h"

namespace exhaustive
{

namespace
{

// Queues, and timers that go from one to the other and to the slots.
TEST_F(ExhaustiveLong, Queues)
{
    for (auto &[name, ttls] :
         std::vector<std::pair<const char *, std::vector<lawn_time_t>>>{
             {"queues/short", {40, 0}},
             {"queues/long", {power(20) + 1, 1000}},
             {"queues/never", {0, LAWN_TIME_INFINITY}}}) {
        Scenario scenario = usual(name, 3, {1000}, 5);
        scenario.queues = ttls;
        scenario.far = 25;
        scenario.clock = off_border;
        scenario.alphabet =
            Alphabet()
                .on_each(Kind::enqueue, 3)
                .on_each(Kind::enqueue, 2, 1)
                .on_each(Kind::close, 1)
                .starts(1, 1)
                .starts_at(1, {Target::sooner})
                .on_each(Kind::stop, 2)
                .on_each(Kind::pause, 2)
                .moves(Kind::advance, {Target::next, Target::at, Target::far})
                .moves(Kind::advance, ends, {1})
                .moves(Kind::skip, {Target::far, Target::last})
                .settles({0, 2});
        run(scenario);
    }
    expect_ops({idle, filed, queued, queue_paused}, true);
    expect_some(reached().ops[3][paused]);
    expect_some(reached().ops[3][due]);
    expect_some(reached().empty_alarm);
    expect_some(reached().early_alarm);
    expect_some(reached().waited);
}

constexpr Reaction queue_reactions[] = {
    {Action::enqueue, Action::none},     {Action::none, Action::enqueue},
    {Action::enqueue, Action::enqueue},  {Action::close, Action::none},
    {Action::enqueue, Action::close},    {Action::close, Action::enqueue},
    {Action::none, Action::start},       {Action::none, Action::start_past},
    {Action::none, Action::stop},        {Action::enqueue, Action::stop},
    {Action::none, Action::pause},       {Action::enqueue, Action::pause},
    {Action::none, Action::start_later}, {Action::none, Action::drain},
    {Action::enqueue, Action::drain},    {Action::start_now, Action::enqueue},
};

// What callbacks do to queues, their own and others, and to timers in them.
TEST_F(ExhaustiveLong, QueueCallbacks)
{
    for (const lawn_time_t ttl : {0U, 30U}) {
        const std::string name = "queue-callbacks/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 3, {30}, 4);
        scenario.queues = {ttl, 30};
        scenario.far = 15;
        Alphabet alphabet;
        alphabet.on_each(Kind::enqueue, 3)
            .on_each(Kind::enqueue, 2, 1)
            .starts(2, 1)
            .on_each(Kind::pause, 2)
            .on_each(Kind::stop, 1)
            .moves(Kind::skip, {Target::far})
            .moves(Kind::advance, {Target::last}, {0, 1});
        for (const Reaction &reaction : queue_reactions) {
            alphabet.moves(Kind::advance, {Target::last}, {0, 1}, {reaction})
                .moves(Kind::advance, {Target::last}, {0, 1}, {reaction}, 1);
            alphabet.drains({reaction});
        }
        scenario.ttls.push_back(45);
        scenario.alphabet = alphabet;
        run(scenario);
    }
    expect_ops({idle, filed, queued, queue_paused, drained}, true);
}

// More slots than are worked on in turn, and more in one than are taken from
// both ends at once; some of them paused, re-armed or in a queue.
TEST_F(Exhaustive, Herds)
{
    for (const lawn_time_t step : {0U, 1U, 700U}) {
        const std::string name = "herds/" + std::to_string(step);
        Scenario scenario = usual(name.c_str(), 2, {300, 7000}, 3);
        scenario.far = 500;
        scenario.queues = {100};
        scenario.prepare = [step](World &world) {
            for (unsigned i = 0; i < 60; ++i) {
                const unsigned timer = world.add();
                world.start(timer, 100 + i * step);
                if (i % 7 == 0) {
                    world.pause(timer);
                } else if (i % 7 == 1) {
                    world.start(timer, 100 + i * step + 9000);
                } else if (i % 7 == 2) {
                    world.enqueue(timer, 0);
                }
            }
            world.start(0, 100);
            world.start(1, 600);
            world.wait(50'000);
        };
        Alphabet alphabet;
        alphabet.starts(2, 2)
            .on_each(Kind::enqueue, 1)
            .on_each(Kind::stop, 2)
            .on_each(Kind::pause, 2)
            .moves(Kind::advance, {Target::now}, {0, 1, 17, 40, 59, 60})
            .moves(Kind::advance, {Target::now}, {0, 3, 61},
                   {{Action::none, Action::start},
                    {Action::none, Action::stop},
                    {Action::start_now, Action::start_now},
                    {Action::enqueue, Action::enqueue},
                    {Action::none, Action::close},
                    {Action::none, Action::drain}})
            .moves(Kind::finish, {Target::now, Target::last}, {0, 1, 16})
            .settles({0, 9});
        scenario.alphabet = alphabet;
        run(scenario);
    }
    expect_ops({filed, rearmed, paused});
    expect_some(reached().left);
    expect_some(reached().waited);
    expect_some(reached().moved);
}

// Timers at every place of one slot and of one queue.
TEST_F(Exhaustive, OneSlot)
{
    const unsigned timers = 5;
    for (const bool is_queue : {false, true}) {
        Scenario scenario =
            usual(is_queue ? "one/queue" : "one/slot", timers, {1000}, 4);
        scenario.queues = {1000};
        scenario.prepare = [is_queue](World &world) {
            for (const unsigned i : {3U, 0U, 1U, 4U, 2U}) {
                is_queue ? world.enqueue(i, 0) : world.start(i, 1000);
                world.wait(1);
            }
        };
        scenario.alphabet =
            Alphabet()
                .on_each(is_queue ? Kind::enqueue : Kind::start, timers)
                .on_each(Kind::stop, timers)
                .on_each(Kind::pause, timers)
                .moves(Kind::advance, ends, {1, 2})
                .moves(Kind::finish, {Target::at});
        run(scenario);
    }
    expect_some(reached().ops[1][filed]);
    expect_some(reached().ops[1][queued]);
}

} // namespace

} // namespace exhaustive
