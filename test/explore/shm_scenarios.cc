// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is explored of shared memory.

#include "shm_program.h"

using namespace explore;
using namespace explore::shm;

namespace
{

// On the first timer, if they do not say so.
namespace op
{

constexpr Op alloc = {Op::alloc, 0, 0};
constexpr Op alloc_second = {Op::alloc, 1, 0};
constexpr Op alloc_again = {Op::alloc_again, 0, 0};
constexpr Op stop = {Op::stop, 0, 0};
constexpr Op wait = {Op::wait, 0, 0};
constexpr Op release = {Op::release, 0, 0};
constexpr Op release_in_start = {Op::release_in_start, 0, 0};
constexpr Op open = {Op::open, 0, 0};
constexpr Op close = {Op::close, 0, 0};
constexpr Op read = {Op::read, 0, 0};
constexpr Op step_back = {Op::step_back, 0, 20};
constexpr Op pass = {Op::pass, 0, 10};

constexpr Op start(lawn_time_t seconds, unsigned timer = 0)
{
    return {Op::start, timer, seconds};
}

} // namespace op

const ShmScenario scenarios[] = {
    {"StartAndWait", {{op::alloc, op::start(50), op::wait}}},
    {"DueAtOnce", {{op::alloc, op::start(0), op::wait}}},
    {"StartAndStop", {{op::alloc, op::start(0), op::stop, op::wait}}},
    {"StartAndStartEarlier",
     {{op::alloc, op::start(90), op::start(40), op::wait}}},
    {"StartAgainWhenDue", {{op::alloc, op::start(0), op::start(40), op::wait}}},
    {"StartTwice", {{op::alloc, op::start(0), op::start(0), op::wait}}},
    {"StartAfterAnEvent",
     {{op::alloc, op::start(40), op::wait, op::start(90), op::wait}}},
    {"StopAndStartLater",
     {{op::alloc, op::start(0), op::stop, op::start(40), op::wait}}},
    {"Release", {{op::alloc, op::start(0), op::release}}},
    {"AllocAgain",
     {{op::alloc, op::start(90), op::release, op::alloc_again, op::start(95),
       op::wait}},
     one_timer},
    {"Close",
     {{op::alloc, op::start(50), op::close}, {op::close}},
     four_places},
    {"GoesOn", {{op::alloc, op::start(40), op::wait}}, goes_on},
    {"GoesOnBesideAStart",
     {{op::alloc, op::start(0), op::start(40), op::wait}},
     goes_on},
    {"GoesOnBesideARelease",
     {{op::alloc, op::start(0), op::release, op::alloc_again, op::stop}},
     goes_on | one_timer},
    {"DrainedBesideAStart",
     {{op::alloc, op::start(40), op::start(90)}},
     owner_drains},
    {"StepBack",
     {{op::alloc, op::start(50), op::wait, op::step_back, op::read,
       op::start(40), op::read, op::wait, op::pass, op::read}}},
    {"TwoClients",
     {{op::alloc, op::start(50), op::wait},
      {op::alloc, op::start(40), op::wait}}},
    {"Killed", {{op::alloc, op::start(50), op::wait}}, is_killed},
    {"KilledAtARelease", {{op::alloc, op::start(0), op::release}}, is_killed},
    {"KilledWhileItOpens", {{op::open}}, is_killed | opens},
    {"KilledWhileItCloses", {{op::alloc, op::start(0), op::close}}, is_killed},
    {"OpensInThePlaceOfAnother",
     {{op::close}, {op::open, op::alloc}},
     one_place},
    {"KilledBesideAnother",
     {{op::alloc, op::start(50)}, {op::alloc, op::start(40), op::wait}},
     is_killed},
    {"TwoThreadsOfAClient",
     {{op::alloc, op::start(50), op::wait}, {op::start(40)}},
     are_threads},
    {"TwoThreadsBesideAnotherTimer",
     {{op::alloc_second, op::start(45, 1), op::alloc, op::start(50), op::wait},
      {op::start(40)}},
     are_threads},
    {"ReleasedInAStart",
     {{op::alloc, op::start(50)}, {op::release_in_start}},
     are_threads},
    {"StartsBesideAnOwnerThatCloses",
     {{op::alloc, op::start(0), op::close}},
     owner_closes},
    {"WaitsBesideAnOwnerThatCloses",
     {{op::alloc, op::start(50), op::wait, op::close}},
     owner_closes},
    {"OpensBesideAnOwnerThatCloses",
     {{op::open, op::close}},
     opens | owner_closes},
    {"KilledAndItsTimerUsedAgain",
     {{op::alloc, op::start(50), op::close},
      {op::open, op::alloc_again, op::start(60), op::wait}},
     is_killed | one_place | one_timer},
    {"OpensInThePlaceOfAnotherWithAnEvent",
     {{op::alloc, op::start(0), op::close},
      {op::open, op::alloc_again, op::start(40), op::wait}},
     one_place | one_timer},
    {"KilledAndItsPidUsedAgain",
     {{op::open, op::alloc, op::start(0)}},
     is_killed | opens | pid_is_used_again},
};

} // namespace

std::vector<Scenario> explore::shm_scenarios()
{
    std::vector<Scenario> all;
    for (const ShmScenario &i : scenarios) {
        all.push_back({i.name, static_cast<unsigned>(i.clients.size() + 1),
                       [&i] { return make_program(i); }});
    }
    return all;
}
