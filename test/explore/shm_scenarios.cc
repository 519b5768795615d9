// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is explored of shared memory.

#include "shm_program.h"

using namespace explore;
using namespace explore::shm;

namespace
{

// ---- Operations. Those of the first timer need not name it.

Op alloc(unsigned timer = 0)
{
    return {Op::alloc, timer, 0};
}

Op alloc_again(unsigned timer = 0)
{
    return {Op::alloc_again, timer, 0};
}

Op close(unsigned timer = 0)
{
    return {Op::close, timer, 0};
}

Op open(unsigned timer = 0)
{
    return {Op::open, timer, 0};
}

Op release(unsigned timer = 0)
{
    return {Op::release, timer, 0};
}

Op release_in_start(unsigned timer = 0)
{
    return {Op::release_in_start, timer, 0};
}

Op start(lawn_time_t seconds, unsigned timer = 0)
{
    return {Op::start, timer, seconds};
}

Op stop(unsigned timer = 0)
{
    return {Op::stop, timer, 0};
}

Op wait(unsigned timer = 0)
{
    return {Op::wait, timer, 0};
}

const ShmScenario scenarios[] = {
    {"StartAndWait", {{alloc(), start(50), wait()}}},
    {"DueAtOnce", {{alloc(), start(0), wait()}}},
    {"StartAndStop", {{alloc(), start(0), stop(), wait()}}},
    {"StartAndStartEarlier", {{alloc(), start(90), start(40), wait()}}},
    {"StartAgainWhenDue", {{alloc(), start(0), start(40), wait()}}},
    {"StartTwice", {{alloc(), start(0), start(0), wait()}}},
    {"StartAfterAnEvent", {{alloc(), start(40), wait(), start(90), wait()}}},
    {"StopAndStartLater", {{alloc(), start(0), stop(), start(40), wait()}}},
    {"Release", {{alloc(), start(0), release()}}},
    {"AllocAgain",
     {{alloc(), start(90), release(), alloc_again(), start(95), wait()}},
     one_timer},
    {"Close", {{alloc(), start(50), close()}, {close()}}, four_places},
    {"TwoClients",
     {{alloc(), start(50), wait()}, {alloc(), start(40), wait()}}},
    {"Killed", {{alloc(), start(50), wait()}}, is_killed},
    {"KilledAtARelease", {{alloc(), start(0), release()}}, is_killed},
    {"KilledWhileItOpens", {{open()}}, is_killed | opens},
    {"KilledWhileItCloses", {{alloc(), start(0), close()}}, is_killed},
    {"OpensInThePlaceOfAnother", {{close()}, {open(), alloc()}}, one_place},
    {"KilledBesideAnother",
     {{alloc(), start(50)}, {alloc(), start(40), wait()}},
     is_killed},
    {"TwoThreadsOfAClient",
     {{alloc(), start(50), wait()}, {start(40)}},
     are_threads},
    {"TwoThreadsBesideAnotherTimer",
     {{alloc(1), start(45, 1), alloc(), start(50), wait()}, {start(40)}},
     are_threads},
    {"ReleasedInAStart",
     {{alloc(), start(50)}, {release_in_start()}},
     are_threads},
    {"StartsBesideAnOwnerThatCloses",
     {{alloc(), start(0), close()}},
     owner_closes},
    {"WaitsBesideAnOwnerThatCloses",
     {{alloc(), start(50), wait(), close()}},
     owner_closes},
    {"OpensBesideAnOwnerThatCloses", {{open(), close()}}, opens | owner_closes},
    {"KilledAndItsPidUsedAgain",
     {{open(), alloc(), start(0)}},
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
