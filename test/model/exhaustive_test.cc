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

#include "exhaustive_blockers.h"
#include "exhaustive_fixture.h"

namespace exhaustive
{

namespace
{

constexpr lawn_time_t power(unsigned bits)
{
    return lawn_time_t{1} << bits;
}

// Each that shall take its class has both its places taken.
std::function<void(World &)> block_all(const std::vector<lawn_time_t> &ttls)
{
    return [ttls](World &world) {
        for (const lawn_time_t ttl : ttls) {
            world.block(ttl);
        }
    };
}

// TTLs that have a queue each: two in ticks, two in steps.
TEST_F(ExhaustiveLong, Singles)
{
    run(usual("singles/short", 3, {20, 45}, 5));
    run(usual("singles/long", 3, {power(40) + 1, power(40) + 99'999}, 4));
    run(usual("singles/zero", 3, {0, 100}, 4));
    expect_ops(
        {lawn::idle, lawn::paused, lawn::stray, lawn::native, lawn::near});
    expect_some(reached().coarse);
}

// TTLs that share the queue of a class: short, so that what is left goes to the
// tree; long, so that it goes to finer classes first; in steps; and neighbours
// in different classes.
TEST_F(ExhaustiveLong, Classes)
{
    const lawn_time_t wide = power(20);
    for (auto &[name, ttls] :
         std::vector<std::pair<const char *, std::vector<lawn_time_t>>>{
             {"classes/short", {1000, 1003}},
             {"classes/long", {wide + 1, wide + 60'000}},
             {"classes/steps", {power(40), power(40) + power(36) - 1}},
             {"classes/neighbours", {wide - 1, wide}}}) {
        const unsigned depth = ttls[0] == wide + 1 ? 5 : 4;
        Scenario scenario = usual(name, 3, ttls, depth);
        scenario.prepare = block_all(ttls);
        run(scenario);
    }
    expect_ops(
        {lawn::idle, lawn::paused, lawn::stray, lawn::native, lawn::near});
    expect_some(reached().in_class[lawn::native]);
    expect_some(reached().in_class[lawn::stray]);
    expect_some(reached().in_class[lawn::paused]);
    expect_some(reached().coarse);
}

// Two TTLs of one class and one place between them: who comes second goes to
// the class, until the first is gone.
TEST_F(ExhaustiveLong, SinglesChangeHands)
{
    const lawn_time_t ttl = power(20) + 1;
    const lawn_time_t rival = FirstPlaces().rival(ttl);
    Scenario scenario = usual("contest", 3, {ttl, rival}, 5);
    scenario.prepare = [rival](World &world) {
        world.start(0, FirstPlaces().rival(rival)); // keeps it meanwhile
        world.block(ttl);
        world.block(rival);
        world.stop(0);
    };
    EXPECT_EQ(lawn::class_of(ttl), lawn::class_of(rival));
    run(scenario);
    // The same behind more than is worked off in one go, an earlier native of
    // the TTL among them.
    scenario.name = "contest/herd";
    scenario.depth = 3;
    scenario.prepare = [rival](World &world) {
        const lawn_time_t longer = ttl + 60'000;
        world.block(longer);
        world.start(1, FirstPlaces().rival(rival));
        world.block(ttl);
        world.block(rival);
        for (unsigned i = 0; i < 40; ++i) {
            world.start(world.add(), longer);
        }
        world.start(0, ttl);
        world.stop(1);
        world.wait(1);
    };
    EXPECT_EQ(lawn::class_of(ttl), lawn::class_of(ttl + 60'000));
    run(scenario);
    expect_some(reached().in_single[lawn::native]);
    expect_some(reached().in_class[lawn::native]);
    expect_some(reached().split);
}

// The ends of every class, in their class and in queues of their own.
TEST_F(Exhaustive, EveryClass)
{
    const unsigned step = is_instrumented() ? 25 : 1;
    for (unsigned c = 0; c < lawn::class_count; c += step) {
        const lawn_time_t floor = lawn::class_floor(c);
        const lawn_time_t last = floor + (lawn::class_width(c) - 1);
        const std::string name = "class/" + std::to_string(c);
        Scenario scenario = usual(name.c_str(), 2, {floor, last}, 3);
        scenario.prepare = block_all(scenario.ttls);
        run(scenario);
    }
    if (!is_replay() && !is_instrumented()) {
        EXPECT_EQ(reached().classes.count(), lawn::class_count);
    }
}

TEST_F(Exhaustive, EveryPowerOfTwo)
{
    for (unsigned bits = 1; bits < 64; ++bits) {
        const std::string name = "power/" + std::to_string(bits);
        run(usual(name.c_str(), 2,
                  {power(bits) - 1, power(bits), power(bits) + 1}, 3));
    }
    run(usual("power/64", 2, {UINT64_MAX, UINT64_MAX - 1, 0}, 3));
    expect_some(reached().in_single[lawn::native]);
}

constexpr Reaction reactions[] = {
    {Deed::start, Deed::none},       {Deed::start_now, Deed::none},
    {Deed::none, Deed::start},       {Deed::none, Deed::start_now},
    {Deed::none, Deed::stop},        {Deed::none, Deed::pause},
    {Deed::start_now, Deed::start},  {Deed::start_now, Deed::stop},
    {Deed::start_now, Deed::pause},  {Deed::start_now, Deed::start_now},
    {Deed::start, Deed::stop},       {Deed::start, Deed::pause},
    {Deed::none, Deed::start_later}, {Deed::start_now, Deed::start_later},
    {Deed::none, Deed::drain},       {Deed::start_now, Deed::drain},
};

// What callbacks do to timers that are due in the same pass, and others.
TEST_F(ExhaustiveLong, Callbacks)
{
    for (const bool blocked : {false, true}) {
        Scenario scenario =
            usual(blocked ? "callbacks/class" : "callbacks/single", 3,
                  {1000, 1010}, 4);
        scenario.far = 500;
        Alphabet alphabet;
        alphabet.starts(3, 2)
            .on_each(Kind::pause, 1)
            .moves(Kind::advance, {Target::last})
            .moves(Kind::advance, ends, {1});
        for (const Reaction &reaction : reactions) {
            alphabet.moves(Kind::advance, {Target::last}, {0}, {reaction});
            alphabet.moves(Kind::advance, {Target::at}, {0, 1}, {reaction});
        }
        scenario.alphabet = alphabet;
        if (blocked) {
            scenario.prepare = block_all(scenario.ttls);
        }
        run(scenario);
    }
    expect_ops({lawn::idle, lawn::native, lawn::near, lawn::listed});
}

TEST_F(Exhaustive, Drains)
{
    Scenario scenario = usual("drains", 3, {1000, 1010}, 4);
    scenario.far = 500;
    Alphabet alphabet;
    alphabet.starts(3, 2)
        .on_each(Kind::pause, 3)
        .on_each(Kind::stop, 1)
        .moves(Kind::advance, by_deadline)
        .moves(Kind::advance, {Target::last}, {1})
        .drains({{}});
    for (const Reaction &reaction : reactions) {
        alphabet.drains({reaction});
    }
    scenario.alphabet = alphabet;
    run(scenario);
    expect_ops({lawn::listed});
}

// Advances and settles that stop at their limits, and go on.
TEST_F(Exhaustive, Limits)
{
    for (const unsigned max_moves : {0U, 1U, 2U}) {
        const std::string name = "limits/" + std::to_string(max_moves);
        Scenario scenario =
            usual(name.c_str(), 3, {power(20) + 1, power(20) + 60'000}, 4);
        scenario.max_moves = max_moves;
        scenario.prepare = block_all(scenario.ttls);
        scenario.alphabet = Alphabet()
                                .starts(3, 2)
                                .on_each(Kind::pause, 3)
                                .moves(Kind::advance, {Target::next}, {0, 1})
                                .moves(Kind::advance, ends, {0, 1, 2})
                                .moves(Kind::finish, ends, {0, 1})
                                .moves(Kind::skip, ends)
                                .settles({1, 2});
        run(scenario);
    }
}

// Queues left alone for longer than their checks reach back.
TEST_F(Exhaustive, OldQueues)
{
    for (const bool blocked : {false, true}) {
        Scenario scenario =
            usual(blocked ? "old/class" : "old/single", 2, {1000, 1010}, 4);
        scenario.far = power(29) + 5;
        if (blocked) {
            scenario.prepare = block_all(scenario.ttls);
        }
        scenario.alphabet = Alphabet()
                                .starts(2, 2)
                                .on_each(Kind::stop, 2)
                                .on_each(Kind::pause, 2)
                                .moves(Kind::advance, by_deadline)
                                .moves(Kind::advance, ends, {1})
                                .moves(Kind::skip, {Target::tick, Target::far})
                                .settles({0});
        run(scenario);
    }
    expect_some(reached().straight);
    expect_ops({lawn::near});
}

// Around the last tick, which is never; and clocks that go back.
TEST_F(Exhaustive, EndOfTime)
{
    Scenario scenario =
        usual("end", 2, {0, 1, 1000, UINT64_MAX - 1, UINT64_MAX}, 4);
    scenario.clock = UINT64_MAX - 2001;
    scenario.far = 1000;
    scenario.alphabet = Alphabet()
                            .starts(2, 5)
                            .starts(1, 3, Kind::start_behind)
                            .on_each(Kind::stop, 1)
                            .on_each(Kind::pause, 1)
                            .moves(Kind::advance, by_deadline)
                            .moves(Kind::advance, {Target::far}, {0, 1})
                            .moves(Kind::advance, {Target::far}, {0},
                                   {{Deed::start_now, Deed::none},
                                    {Deed::none, Deed::start_later}})
                            .moves(Kind::skip, {Target::far})
                            .settles({0});
    run(scenario);
    scenario.name = "end/classes";
    scenario.prepare = block_all({1, 1000, UINT64_MAX - 1, UINT64_MAX});
    run(scenario);
}

// Strays, overdue, so many that the calendar takes some: of the two actors and
// 80 others, in one queue or many, due close together or not.
void make_overdue(World &world, bool are_spread)
{
    for (unsigned i = 0; i < 80; ++i) {
        world.start(world.add(), are_spread ? 100 + i / 2 : 100);
    }
    world.start(0, 100);
    world.start(1, 100);
    world.wait(1);
    for (unsigned i = 0; i < 80; ++i) {
        world.start(2 + i, are_spread ? 8000 - 97 * i : 200 + i / 2);
    }
    world.start(0, 5000);
    world.start(1, 600);
    world.wait(9000);
    world.advance(1);
}

TEST_F(Exhaustive, Calendar)
{
    for (const bool are_spread : {false, true}) {
        for (const unsigned max_moves : {0U, 90U}) {
            const std::string name = std::string("calendar/") +
                                     (are_spread ? "spread/" : "close/") +
                                     std::to_string(max_moves);
            Scenario scenario = usual(name.c_str(), 2, {300, 7000}, 3);
            scenario.max_moves = max_moves;
            scenario.prepare = [are_spread](World &world) {
                make_overdue(world, are_spread);
            };
            scenario.alphabet =
                Alphabet()
                    .starts(2, 2)
                    .on_each(Kind::stop, 2)
                    .on_each(Kind::pause, 2)
                    .moves(Kind::advance, {Target::now}, {1, 40, 79, 80})
                    .moves(Kind::advance, {Target::now}, {3, 81},
                           {{Deed::none, Deed::start},
                            {Deed::none, Deed::stop},
                            {Deed::start_now, Deed::start_now},
                            {Deed::none, Deed::drain}})
                    .moves(Kind::finish, {Target::now, Target::last})
                    .settles({0});
            run(scenario);
        }
    }
    expect_ops({lawn::dated});
}

// More in a queue and more queues than are looked at in one go.
TEST_F(Exhaustive, Herds)
{
    for (const lawn_time_t ttl : {power(20) + 1, power(40) + 1}) {
        const std::string name = "herds/" + std::to_string(ttl);
        Scenario scenario = usual(name.c_str(), 2, {ttl, ttl + 30}, 3);
        scenario.prepare = [ttl](World &world) {
            world.block(ttl);
            for (unsigned i = 0; i < 70; ++i) {
                world.start(world.add(), ttl + 1 + i); // a queue each
                world.start(world.add(), ttl);         // one
            }
        };
        run(scenario);
    }
    expect_some(reached().in_class[lawn::native]);
    expect_some(reached().coarse);
}

// Stops and re-arms at every place of a small tree.
TEST_F(ExhaustiveLong, Tree)
{
    const unsigned timers = 6;
    Scenario scenario = usual("tree", timers, {1000}, 5);
    scenario.prepare = [](World &world) {
        world.block(1000);
        for (const unsigned i : {3, 0, 5, 1, 4, 2}) {
            world.start(i, 1000);
            world.wait(1);
        }
        world.wait(990);
        world.advance(0);
    };
    scenario.alphabet = Alphabet()
                            .starts(timers, 1)
                            .on_each(Kind::stop, timers)
                            .moves(Kind::advance, {Target::at}, {1});
    run(scenario);
    expect_some(reached().ops[1][lawn::near]);
}

// So many in the tree that less goes there, and then more.
TEST_F(Exhaustive, ManyNear)
{
    const lawn_time_t ttl = power(20) + 60'000;
    Scenario scenario = usual("near", 2, {ttl, 1000}, 2);
    scenario.prepare = [](World &world) {
        world.block(ttl);
        for (unsigned i = 0; i < 1100; ++i) {
            world.start(world.add(), ttl);
        }
        world.start(0, ttl);
        world.wait(power(20) + 10);
        world.advance(0);
    };
    run(scenario);
    expect_ops({lawn::near});
    expect_some(reached().crowded);
}

// Two million starts at one tick: no more turns to tell them apart by.
TEST_F(ExhaustiveLong, LastTurns)
{
    for (const bool blocked : {false, true}) {
        Scenario scenario =
            usual(blocked ? "turns/class" : "turns/single", 3, {1000, 1010}, 4);
        scenario.prepare = [blocked](World &world) {
            if (blocked) {
                world.block(1000);
                world.block(1010);
            }
            const unsigned other = world.add();
            world.start(other, 9);
            world.use_up_turns(other, 4);
            world.start(0, 1000);
            world.start(0, 1000); // a stray: from now on inline
        };
        run(scenario);
    }
    expect_some(reached().last_turn);
}

// A lawn that is observed takes none of the short cuts in the header.
TEST_F(Exhaustive, Observed)
{
    Scenario scenario = usual("observed", 3, {1000, 1003}, 4);
    scenario.observed = true;
    scenario.prepare = [](World &world) { world.block(1003); };
    run(scenario);
    expect_ops(
        {lawn::idle, lawn::paused, lawn::stray, lawn::native, lawn::near});
}

} // namespace

} // namespace exhaustive
