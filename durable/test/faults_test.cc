// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Does the judge see what it is there for? The real system runs with faults
// that were put into the functions of the store, or into the consumers. The
// judge must object to each, and to nothing when the same is done without it.

#include "faults_world.h"

#include <gtest/gtest.h>

namespace
{

using lawn_test::ConsumerFaults;
using lawn_test::FaultsWorld;
using lawn_verify::Verdict;

constexpr int64_t ms = 1000;
constexpr int64_t hour_us = 3600 * 1000 * ms;

// What is done with the system, with and without the fault.

void start_some(FaultsWorld &world)
{
    for (int i = 0; i < 50; ++i) {
        world.start("timer-" + std::to_string(i), i % 10 * 20 * ms);
    }
    world.settle();
}

void start_while_streams_are_refused(FaultsWorld &world)
{
    world.command({"ACL", "SETUSER", "default", "-xadd"});
    world.start("a", 10 * ms);
    world.start("b", 20 * ms);
    world.run(300 * ms);
    world.command({"ACL", "SETUSER", "default", "+xadd"});
    world.settle();
}

void start_one_before_another(FaultsWorld &world)
{
    world.start("far", hour_us);
    world.run(300 * ms);
    world.start("near", 10 * ms);
    world.run(500 * ms);
    world.stop("far");
    world.settle();
}

void stop_one(FaultsWorld &world)
{
    world.start("a", 300 * ms);
    world.stop("a");
    world.run(500 * ms);
    world.settle();
}

void stop_what_was_delivered(FaultsWorld &world)
{
    world.start("a", 10 * ms);
    world.run(100 * ms);
    world.settle();
    world.stop("a");
}

void repeat_a_start(FaultsWorld &world)
{
    const uint64_t operation = world.start("a", 100 * ms);
    world.start("a", 100 * ms, "", operation);
    world.settle();
}

void repeat_a_start_too_late(FaultsWorld &world)
{
    const uint64_t operation = world.start("a", 10 * ms);
    world.settle();
    world.start("a", 10 * ms, "", operation);
    world.settle();
}

void retry_one(FaultsWorld &world)
{
    world.start("a", 10 * ms, "r");
    world.settle();
}

void update_one(FaultsWorld &world)
{
    world.start("a", hour_us);
    world.update("a", 50 * ms);
    world.settle();
}

void restart_one(FaultsWorld &world)
{
    world.start("a", 200 * ms);
    world.start("a", 400 * ms);
    world.settle();
}

void start_a_periodic_one(FaultsWorld &world)
{
    const std::string id = world.start_periodic(20 * ms);
    world.run(200 * ms);
    world.stop(id);
    world.settle();
}

struct Fault {
    const char *name;
    const char *violation;
    void (*use)(FaultsWorld &world);
    const char *from; // in lawn.lua
    const char *to;
};

const Fault faults[] = {
    {"AStartIsNotStored", "lost", start_some,
     "    call('ZADD', keys[1], unpack(p.dues))\n", ""},
    {"RemovesBeforeItAppends", "lost", start_while_streams_are_refused,
     "        local done, failure =\n            fire_all(",
     "        call('ZREM', f.due, unpack(ids))\n"
     "        local done, failure =\n            fire_all("},
    {"AppendsAndDoesNotRemove", "refired", start_some,
     "    call('ZREMRANGEBYRANK', f.due, '0', done - 1)\n", ""},
    {"FiresEarly", "early", start_some,
     "call('ZRANGE', f.due, '-inf', now, 'BYSCORE'",
     "call('ZRANGE', f.due, '-inf', now + 50000, 'BYSCORE'"},
    {"WakesNobody", "lost", start_one_before_another,
     "try('PUBLISH', sub(due_key, 1, -4) .. 'wake', due)", "0"},
    {"AStopLies", "stopped", stop_one,
     "    call('HSET', ended, id, end_record(STOPPED, stopped, pack('<d', "
     "now)))\n"
     "    call('ZREM', keys[1], id)\n"
     "    call('HDEL', keys[2], id)\n",
     "    call('HSET', ended, id, end_record(STOPPED, stopped, pack('<d', "
     "now)))\n"},
    {"AStopForgets", "denied", stop_what_was_delivered,
     "        return {byte(record), (unpack_struct('<d', record, 2))}\n",
     "        return {0, 0}\n"},
    {"ARepeatedStartDoubles", "doubled", repeat_a_start,
     "repeated(keys, id, token, old, records[i], now)", "nil"},
    {"ALateRepeatedStartDoubles", "doubled", repeat_a_start_too_late,
     "elseif record and sub(record, HEAD + 10, HEAD + 17) == token then",
     "elseif false then"},
    {"ARetryLosesTheAttempt", "refired", retry_one,
     "    body = head(generation_of(body), due, attempt) .. tail",
     "    body = head(generation_of(body), due, attempt_of(body)) .. tail"},
    {"ARetryIsForgotten", "retry", retry_one,
     "    call('ZADD', c.due, due, id)\n    call('HSET', c.body, id, body)\n",
     "    call('HSET', c.body, id, body)\n"},
    {"AnUpdateIsLost", "mixed", update_one,
     "    return {1, generation, due, now}\n",
     "    return {1, generation, due + 1000000, now}\n"},
    {"AnOccurrenceIsLeftOut", "gap", start_a_periodic_one,
     "math.min(due + unpack_struct('<d', o.every), MOST)",
     "due + 2 * unpack_struct('<d', o.every)"},
    {"AnOccurrenceFiresAgain", "refired", start_a_periodic_one,
     "math.min(due + unpack_struct('<d', o.every), MOST)", "due"},
    {"AGenerationIsGivenTwice", "mixed", restart_one,
     "        new_generations(s, now, wanted) - wanted\n", "        0\n"},
};

class Faults : public testing::TestWithParam<Fault>
{
};

TEST_P(Faults, AreFound)
{
    // What fires twice does so before it is answered.
    ConsumerFaults slow;
    slow.work_us = 20 * ms;
    FaultsWorld world(slow);
    ASSERT_NO_FATAL_FAILURE(world.replace(GetParam().from, GetParam().to));
    // A pump that looks around anyway, as it does in its first second, hides
    // some faults for once.
    for (int i = 0; i < 10; ++i) {
        GetParam().use(world);
        if (world.verdict().count(GetParam().violation) > 0) {
            return;
        }
    }
    FAIL() << "nothing was " << GetParam().violation;
}

TEST_P(Faults, AreNotFoundWhereThereIsNone)
{
    FaultsWorld world;
    GetParam().use(world);
    const Verdict verdict = world.verdict();
    EXPECT_TRUE(verdict.is_good())
        << (verdict.examples.empty() ? "" : verdict.examples.front());
    EXPECT_GT(verdict.acknowledged + verdict.occurrences, 0u);
    EXPECT_GT(verdict.delivered + verdict.stopped + verdict.occurrences, 0u);
}

INSTANTIATE_TEST_SUITE_P(InTheStore, Faults, testing::ValuesIn(faults),
                         [](const testing::TestParamInfo<Fault> &info) {
                             return info.param.name;
                         });

TEST(ConsumerFaults, AnAnswerBeforeTheWorkIsFound)
{
    ConsumerFaults faults;
    faults.answers_first = true;
    FaultsWorld world(faults);
    start_some(world);
    EXPECT_GT(world.verdict().count("lost"), 0u);
}

TEST(ConsumerFaults, ALeaseThatIsShorterThanTheWorkIsFound)
{
    ConsumerFaults faults;
    faults.work_us = 1000 * ms;
    faults.lease_us = 100 * ms;
    FaultsWorld world(faults);
    for (int i = 0; i < 10 && world.verdict().duplicates == 0; ++i) {
        start_some(world);
    }
    EXPECT_GT(world.verdict().count("duplicates"), 0u);
}

TEST(ConsumerFaults, WorkWithinTheLeaseIsNone)
{
    ConsumerFaults faults;
    faults.work_us = 500 * ms;
    faults.lease_us = 600 * 1000 * ms;
    FaultsWorld world(faults);
    start_some(world);
    const Verdict verdict = world.verdict();
    EXPECT_TRUE(verdict.is_good())
        << (verdict.examples.empty() ? "" : verdict.examples.front());
    EXPECT_EQ(verdict.delivered, 50u);
}

} // namespace
