// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Every sequence of operations on a lawn with a few timers, up to a depth, does
// as the model says. A scenario is a way of making some part of the structure
// matter: its TTLs, what is in the lawn at first, and the operations. Each test
// counts the states that it is there for, and fails if it met none.
//
// LAWN_TEST_FULL=1 goes one operation deeper (minutes); LAWN_TEST_SCALE below
// 100, for runs under an instrument, one less deep and leaves out most of the
// classes. A failure is told with the calls that lead to it, and with a
// LAWN_TEST_SEQUENCE that makes them alone.

#include "exhaustive_fixture.h"

namespace exhaustive
{

namespace
{

// TTLs of one class and of two, by the tick and by wide slots, from a time at
// which slots begin and from one at which none does but of a tick.
TEST_F(ExhaustiveLong, Slots)
{
    const lawn_time_t wide = power(20);
    for (auto &[name, ttls] :
         std::vector<std::pair<const char *, std::vector<lawn_time_t>>>{
             {"slots/ticks", {20, 45}},
             {"slots/zero", {0, 100}},
             {"slots/neighbours", {63, 64}},
             {"slots/short", {1000, 1003}},
             {"slots/long", {wide + 1, wide + 60'000}},
             {"slots/classes", {wide - 1, wide / 8}},
             {"slots/longer", {power(40) + 1, power(40) + 99'999}}}) {
        Scenario scenario = usual(name, 3, ttls, ttls[0] == wide + 1 ? 5 : 4);
        scenario.far = ttls[1] / 2 + 1;
        scenario.is_new = true;
        run(scenario);
        scenario.is_new = false;
        scenario.name += "/off";
        scenario.depth = 4;
        scenario.clock = off_border;
        run(scenario);
    }
    expect_ops({idle, filed, rearmed, paused});
    expect_some(reached().ops[0][due]);
    expect_some(reached().moved);
    expect_some(reached().stale);
    expect_some(reached().settled);
    expect_some(reached().left);
}

// The ends of every class, by the slots of the class.
TEST_F(Exhaustive, EveryClass)
{
    const unsigned step = is_instrumented() ? 5 : 1;
    for (unsigned c = 0; c < lawn::class_count; c += step) {
        const lawn_time_t width = power(lawn::shift_of(c));
        const lawn_time_t least = c == 0 ? 1 : 8 * width;
        // Of the last class, the TTLs are 2^63 on.
        const lawn_time_t last = c + 1 < lawn::class_count
                                     ? 64 * width - 1
                                     : LAWN_TIME_INFINITY - power(61);
        ASSERT_EQ(lawn::class_of(least), c);
        ASSERT_EQ(lawn::class_of(last), c);
        for (const lawn_time_t clock : {power(16), off_border}) {
            const std::string name = "class/" + std::to_string(c) + '/' +
                                     std::to_string(clock % power(16));
            Scenario scenario = usual(name.c_str(), 2, {least, last}, 3);
            scenario.clock = clock;
            scenario.is_new = clock != off_border;
            scenario.width = width;
            scenario.far = width;
            scenario.alphabet =
                Alphabet()
                    .starts(2, 2)
                    .starts_at(1, {Target::sooner, Target::later, Target::slot,
                                   Target::wrap})
                    .on_each(Kind::stop, 2)
                    .on_each(Kind::pause, 2)
                    .moves(Kind::advance, {Target::next, Target::slot,
                                           Target::wrap, Target::far})
                    .moves(Kind::advance, by_deadline)
                    .moves(Kind::advance, ends, {1})
                    .moves(Kind::skip, {Target::at, Target::slot, Target::wrap})
                    .settles({0});
            run(scenario, 3);
        }
    }
    if (!is_replay() && !is_instrumented()) {
        EXPECT_EQ(reached().classes.count(), lawn::class_count);
    }
    expect_some(reached().late);
}

TEST_F(Exhaustive, EveryPowerOfTwo)
{
    const unsigned step = is_instrumented() ? 7 : 1;
    for (unsigned bits = 1; bits < 64; bits += step) {
        const std::string name = "power/" + std::to_string(bits);
        run(usual(name.c_str(), 2,
                  {power(bits) - 1, power(bits), power(bits) + 1}, 3),
            3);
    }
    run(usual("power/64", 2, {UINT64_MAX, UINT64_MAX - 1, 0}, 3));
    expect_ops({filed, rearmed, paused});
}

// Deadlines to the tick: earlier and later than before, past, now and never.
TEST_F(ExhaustiveLong, Deadlines)
{
    for (const lawn_time_t ttl : {50U, 700U}) {
        const std::string name = "deadlines/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 2, {ttl, UINT64_MAX}, 5);
        scenario.far = ttl / 2;
        scenario.width = ttl < 64 ? 1 : 64;
        scenario.clock = off_border;
        scenario.alphabet =
            Alphabet()
                .starts(2, 2)
                .starts_at(1, {Target::past, Target::now, Target::zero})
                .starts_at(2, {Target::sooner, Target::later, Target::slot})
                .on_each(Kind::pause, 2)
                .on_each(Kind::stop, 1)
                .moves(Kind::advance, {Target::next, Target::at, Target::slot})
                .moves(Kind::advance, {Target::now, Target::last}, {1})
                .moves(Kind::skip, {Target::far})
                .settles({0});
        run(scenario);
    }
    expect_ops({idle, filed, rearmed, paused, due});
}

// A settled lawn, and what then comes earlier, or again: an earlier re-arm, and
// the start of what was paused.
TEST_F(Exhaustive, Settled)
{
    for (const lawn_time_t ttl : {power(10), power(20)}) {
        const std::string name = "settled/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 3, {ttl, ttl + ttl / 9}, 5);
        scenario.far = ttl / 3;
        // A deadline is where its slot begins, and is not.
        scenario.clock = ttl == power(10) ? power(16) : off_border;
        scenario.queues = {ttl - ttl / 10};
        scenario.alphabet =
            Alphabet()
                .starts(3, 1)
                .starts(1, 2)
                .starts_at(1, {Target::sooner, Target::later, Target::after})
                .on_each(Kind::enqueue, 2)
                .on_each(Kind::pause, 2)
                .on_each(Kind::stop, 1)
                .moves(Kind::skip, {Target::far, Target::before})
                .moves(Kind::advance, {Target::next, Target::at})
                .settles({0, 1, 2});
        run(scenario);
    }
    expect_ops({filed, rearmed, paused});
    expect_some(reached().settled);
}

constexpr Reaction reactions[] = {
    {Action::start, Action::none},
    {Action::start_now, Action::none},
    {Action::none, Action::start},
    {Action::none, Action::start_now},
    {Action::none, Action::stop},
    {Action::none, Action::pause},
    {Action::start_now, Action::start},
    {Action::start_now, Action::stop},
    {Action::start_now, Action::pause},
    {Action::start_now, Action::start_now},
    {Action::start, Action::stop},
    {Action::start, Action::pause},
    {Action::none, Action::start_later},
    {Action::start_now, Action::start_later},
    {Action::none, Action::drain},
    {Action::start_now, Action::drain},
    {Action::start_past, Action::none},
    {Action::none, Action::start_past},
};

// What callbacks do to timers that are due in the same pass, and others.
TEST_F(ExhaustiveLong, Callbacks)
{
    for (const lawn_time_t ttl : {30U, 1000U}) {
        const std::string name = "callbacks/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 3, {ttl, ttl + 10}, 4);
        scenario.far = ttl / 2;
        Alphabet alphabet;
        alphabet.starts(3, 2)
            .starts_at(1, {Target::past})
            .on_each(Kind::pause, 1)
            .moves(Kind::advance, {Target::last})
            .moves(Kind::advance, ends, {1});
        for (const Reaction &reaction : reactions) {
            alphabet.moves(Kind::advance, {Target::last}, {0}, {reaction});
            alphabet.moves(Kind::advance, {Target::at}, {0, 1}, {reaction});
        }
        scenario.alphabet = alphabet;
        run(scenario);
    }
    expect_ops({idle, filed, due, deferred});
}

TEST_F(Exhaustive, Drains)
{
    Scenario scenario = usual("drains", 3, {1000, 1010}, 4);
    scenario.far = 500;
    scenario.queues = {1005}; // in the slots of the TTLs
    Alphabet alphabet;
    alphabet.starts(3, 2)
        .on_each(Kind::enqueue, 2)
        .on_each(Kind::pause, 3)
        .on_each(Kind::stop, 1)
        .moves(Kind::advance, by_deadline)
        .moves(Kind::advance, {Target::last}, {1})
        .drains({{},
                 {Action::enqueue, Action::none},
                 {Action::none, Action::enqueue},
                 {Action::none, Action::close}});
    for (const Reaction &reaction : reactions) {
        alphabet.drains({reaction});
    }
    scenario.alphabet = alphabet;
    run(scenario);
    expect_ops({drained}, true);
}

// Advances and settles that stop at their limits, and go on.
TEST_F(Exhaustive, Limits)
{
    for (const lawn_time_t ttl : {lawn_time_t{40}, power(20) + 1}) {
        const std::string name = "limits/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 3, {ttl, ttl + ttl / 17}, 4);
        scenario.far = ttl;
        scenario.queues = {ttl + 3};
        scenario.alphabet = Alphabet()
                                .starts(3, 2)
                                .starts_at(1, {Target::now})
                                .on_each(Kind::enqueue, 2)
                                .on_each(Kind::pause, 3)
                                .on_each(Kind::stop, 1)
                                .moves(Kind::advance, {Target::next}, {0, 1})
                                .moves(Kind::advance, ends, {0, 1, 2})
                                .moves(Kind::advance, {Target::far}, {1})
                                .moves(Kind::finish, ends, {0, 1})
                                .moves(Kind::skip, ends)
                                .settles({1, 2});
        run(scenario);
    }
    expect_some(reached().waited);
    expect_some(reached().left);
}

// A lawn that always has more to do than its budget: nothing waits for ever.
TEST_F(Exhaustive, Backlog)
{
    for (const lawn_time_t ttl : {1U, 9U, 100U}) {
        const std::string name = "backlog/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 4, {ttl, 3 * ttl}, 3);
        scenario.far = ttl;
        scenario.queues = {ttl, 0};
        scenario.prepare = [ttl](World &world) {
            for (unsigned i = 0; i < 5; ++i) {
                world.start(world.add(), ttl * (1 + i % 3));
            }
            world.pause(4);
            world.enqueue(5, 0);
            world.enqueue(6, 1);
            world.start(0, ttl);
            world.start(1, 0);
        };
        Alphabet alphabet;
        alphabet.starts(4, 1)
            .starts(1, 2)
            .queues(2, 2)
            .on_each(Kind::pause, 1)
            .moves(Kind::advance, {Target::last, Target::far}, {1})
            .moves(Kind::skip, {Target::far});
        for (const Kind kind : {Kind::finish, Kind::endure}) {
            alphabet
                .moves(kind, {Target::last}, {1, 2, 3},
                       {{Action::start_now, Action::none},
                        {Action::start, Action::none},
                        {Action::start_past, Action::none},
                        {Action::start, Action::start_now}})
                .moves(kind, {Target::last}, {1, 2},
                       {{Action::enqueue, Action::none}}, 1)
                .moves(kind, {Target::last}, {1, 2},
                       {{Action::enqueue, Action::none},
                        {Action::start_later, Action::none}});
        }
        scenario.alphabet = alphabet;
        run(scenario);
    }
    expect_some(reached().waited);
}

// Slots that are left alone while others of the same place in the circle fill.
TEST_F(ExhaustiveLong, LateSlots)
{
    for (const lawn_time_t ttl : {40U, 500U, 1U << 20}) {
        const std::string name = "late/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 3, {ttl, ttl / 2}, 5);
        const unsigned c = lawn::class_of(ttl);
        scenario.width = power(lawn::shift_of(c));
        scenario.far = 64 * scenario.width;
        scenario.alphabet =
            Alphabet()
                .starts(3, 1)
                .starts(1, 2)
                .starts_at(1, {Target::later})
                .on_each(Kind::stop, 2)
                .on_each(Kind::pause, 1)
                .moves(Kind::skip, {Target::slot, Target::far, Target::wrap})
                .moves(Kind::advance, {Target::now, Target::wrap}, {0, 1})
                .moves(Kind::advance, {Target::now}, {2})
                .moves(Kind::advance, {Target::at})
                .settles({0});
        run(scenario);
    }
    expect_some(reached().late);
    expect_some(reached().left);
    expect_ops({filed, rearmed, paused});
}

// Passes as of a time that is older than what the lawn has seen.
TEST_F(Exhaustive, AsOf)
{
    for (const lawn_time_t ttl : {20U, 1000U}) {
        const std::string name = "as-of/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 3, {ttl, 0}, 4);
        scenario.far = ttl / 2;
        scenario.clock = off_border;
        scenario.queues = {ttl, 0};
        Alphabet alphabet;
        alphabet.starts(3, 2)
            .starts_at(1, {Target::past, Target::sooner})
            .queues(1, 2)
            .on_each(Kind::pause, 1)
            .moves(Kind::skip, {Target::far, Target::last})
            .moves(Kind::advance, {Target::now}, {0, 1})
            .moves(Kind::advance_behind,
                   {Target::past, Target::before, Target::at, Target::after},
                   {0, 1, 2})
            .moves(Kind::advance_behind, {Target::zero})
            .settles({0});
        for (const Reaction &reaction : reactions) {
            alphabet.moves(Kind::advance_behind, {Target::at}, {0, 1},
                           {reaction});
        }
        scenario.alphabet = alphabet;
        run(scenario);
    }
    expect_some(reached().behind);
}

// Around the last ticks, which are never; and clocks that go back.
TEST_F(Exhaustive, EndOfTime)
{
    Scenario scenario =
        usual("end", 2, {0, 1, 1000, UINT64_MAX - 1, UINT64_MAX}, 4);
    scenario.clock = UINT64_MAX - 2001;
    scenario.far = 1000;
    scenario.width = 512;
    scenario.queues = {1999, 500};
    scenario.alphabet = Alphabet()
                            .starts(2, 5)
                            .starts(1, 3, Kind::start_behind)
                            .starts_at(1, {Target::later, Target::slot})
                            .queues(1, 2)
                            .on_each(Kind::stop, 1)
                            .on_each(Kind::pause, 1)
                            .moves(Kind::advance, by_deadline)
                            .moves(Kind::advance, {Target::far}, {0, 1})
                            .moves(Kind::advance, {Target::far}, {0},
                                   {{Action::start_now, Action::none},
                                    {Action::none, Action::start_later}})
                            .moves(Kind::skip, {Target::far, Target::tick})
                            .settles({0});
    run(scenario);
    scenario.name = "end/last";
    scenario.clock = UINT64_MAX - 4;
    scenario.far = 1;
    scenario.width = 1;
    scenario.queues = {2, 3};
    run(scenario);
}

// Where deadlines are no longer for inline functions.
TEST_F(Exhaustive, HalfOfTime)
{
    Scenario scenario = usual("half", 2, {0, 1000, 3000}, 4);
    scenario.clock = power(63) - 2001;
    scenario.far = 1000;
    scenario.width = 512;
    scenario.queues = {1999, 0};
    scenario.alphabet = Alphabet()
                            .starts(2, 3)
                            .starts_at(1, {Target::sooner, Target::later})
                            .queues(2, 2)
                            .on_each(Kind::stop, 2)
                            .on_each(Kind::pause, 2)
                            .moves(Kind::advance, by_deadline)
                            .moves(Kind::advance, {Target::far}, {0, 1})
                            .moves(Kind::advance, {Target::last}, {0},
                                   {{Action::start_now, Action::none},
                                    {Action::enqueue, Action::start_later}})
                            .moves(Kind::skip, {Target::slot, Target::far})
                            .settles({0});
    run(scenario);
    expect_ops({idle, filed, rearmed, paused, queued, queue_paused});
}

// The first ticks: deadlines of 0, which nobody can tell when they have fired.
TEST_F(Exhaustive, BeginOfTime)
{
    Scenario scenario = usual("begin", 2, {0, 1, 64}, 4);
    scenario.clock = 0;
    scenario.far = 1;
    scenario.queues = {0, 1};
    scenario.alphabet = Alphabet()
                            .starts(2, 3)
                            .starts_at(2, {Target::zero, Target::sooner})
                            .queues(2, 2)
                            .on_each(Kind::stop, 1)
                            .on_each(Kind::pause, 2)
                            .moves(Kind::advance, {Target::now}, {0, 1})
                            .moves(Kind::advance, {Target::now}, {0, 1},
                                   {{Action::start_now, Action::none},
                                    {Action::none, Action::start_past}})
                            .moves(Kind::advance, {Target::tick, Target::at})
                            .moves(Kind::advance_behind, {Target::zero})
                            .drains({{}})
                            .settles({0});
    run(scenario);
}

// A lawn that is observed takes none of the short cuts in the headers.
TEST_F(Exhaustive, Observed)
{
    Scenario scenario = usual("observed", 3, {1000, 1003}, 4);
    scenario.observed = true;
    scenario.far = 500;
    scenario.queues = {1001};
    scenario.alphabet =
        Alphabet()
            .starts(3, 2)
            .starts_at(1, {Target::sooner, Target::later, Target::now})
            .queues(2, 1)
            .on_each(Kind::stop, 2)
            .on_each(Kind::pause, 2)
            .moves(Kind::advance, by_deadline)
            .moves(Kind::advance, ends, {1})
            .moves(Kind::advance, {Target::last}, {0},
                   {{Action::start, Action::stop},
                    {Action::enqueue, Action::close},
                    {Action::none, Action::drain}})
            .moves(Kind::skip, ends)
            .settles({0});
    run(scenario);
    expect_ops({idle, filed, paused});
}

} // namespace

} // namespace exhaustive
