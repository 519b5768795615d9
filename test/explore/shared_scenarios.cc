// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is explored of shared timers.

#include "shared_program.h"

using namespace explore;
using namespace explore::shared;

namespace
{

Op start(unsigned timer, lawn_time_t deadline)
{
    return {Op::start, timer, deadline, 0, 0};
}

Op local(unsigned timer, lawn_time_t deadline)
{
    return {Op::local, timer, deadline, 0, 0};
}

// Of a timer: stop, sync and retire.
Op on(Op::What what, unsigned timer)
{
    return {what, timer, 0, 0, 0};
}

// Of the owner.
Op at(Op::What what, lawn_time_t now, unsigned budget = 0)
{
    return {what, 0, now, budget, 0};
}

const Op stop = on(Op::stop, 0);
const Op sync = on(Op::sync, 0);
const Op retire = on(Op::retire, 0);
const Op destroy = at(Op::destroy, 0);

// Where the owner's plain timer may stand: nowhere, and before, between and
// after the deadlines.
const std::vector<Ops> covers = {
    {}, {local(0, 10)}, {local(0, 20)}, {local(0, 40)}};
const Ops extended = {local(0, 10), local(0, 30)};

const Ops pass_12 = {at(Op::pass, 12)};
const Ops twice = {at(Op::pass, 12), at(Op::pass, 20)};
const Ops night = {at(Op::sleep, 50), at(Op::pass, 12)};

class List
{
public:
    std::vector<SharedScenario> all;

    // The scenarios that are added from now on are called so, and numbered.
    void name(const char *name)
    {
        name_ = name;
        count_ = 0;
    }

    void add(const Ops &before, const std::vector<Ops> &threads,
             const Ops &on_call = {})
    {
        unsigned timers = 1;
        const auto count = [&timers](const Ops &ops) {
            for (const Op &op : ops) {
                timers = op.timer + 1 > timers ? op.timer + 1 : timers;
            }
        };
        count(before);
        count(on_call);
        for (const Ops &ops : threads) {
            count(ops);
        }
        all.push_back({name_ + "_" + std::to_string(++count_), timers, before,
                       threads, on_call});
    }

private:
    std::string name_;
    unsigned count_ = 0;
};

void add_starts(List *list)
{
    list->name("StartAgainstExpire");
    for (const Ops &cover : covers) {
        for (const lawn_time_t deadline : {5, 12, 15, 30}) {
            list->add(cover, {twice, {start(0, deadline)}});
        }
        list->add(cover, {pass_12, {start(0, 15), start(0, 11)}});
    }
    list->name("ExtendAgainstExpire");
    for (const lawn_time_t deadline : {9, 20, 40}) {
        list->add(extended, {twice, {start(0, deadline), stop}});
    }
    list->name("StartAgainstStart");
    for (const Ops &cover : covers) {
        list->add(cover, {pass_12, {start(0, 15)}, {start(0, 30)}});
        list->add(cover, {pass_12, {start(0, 12)}, {start(0, 15)}});
        list->add(cover, {pass_12, {start(0, 12)}, {start(1, 15)}});
    }
    list->name("StartAgainstStop");
    for (const Ops &cover : covers) {
        list->add(cover, {pass_12, {start(0, 12), start(0, 15)}, {stop}});
    }
    list->name("OwnersStartAgainstOthers");
    for (const Ops &cover : covers) {
        for (const lawn_time_t deadline : {15, 30}) {
            list->add(cover,
                      {{local(0, deadline), pass_12[0]}, {start(0, 20), stop}});
            list->add(cover, {{local(0, deadline), local(0, 25), pass_12[0]},
                              {start(0, 11), start(0, 40)}});
        }
    }
}

void add_passes(List *list)
{
    list->name("DrainsInParts");
    const Ops parts = {at(Op::drain, 1, 1), at(Op::drain, 2, 1),
                       at(Op::pass, 6, 1)};
    list->add({}, {parts, {start(0, 5), start(1, 6)}});
    list->add({start(0, 4), start(1, 5)},
              {{at(Op::drain, 1, 1), at(Op::doze, 9), at(Op::drain, 2, 1)},
               {start(0, 3), start(2, 6)}});
    list->name("CallbackAgainstOthers");
    const std::vector<Ops> callbacks = {{local(0, 30)},
                                        {start(0, 5)},
                                        {start(0, 30), stop},
                                        {retire},
                                        {local(1, 5), on(Op::stop, 1)}};
    for (const Ops &on_call : callbacks) {
        list->add({local(0, 10)}, {twice, {start(0, 11), stop}}, on_call);
        list->add({local(0, 10)}, {pass_12, {start(0, 20)}, {stop}}, on_call);
    }
    list->name("SyncAgainstCallback");
    const Ops both = {local(0, 10), local(1, 10)};
    for (const Ops &on_call : {Ops{}, Ops{local(0, 20)}, Ops{start(0, 5)}}) {
        list->add(both, {twice, {stop, sync}}, on_call);
        list->add(both, {twice, {stop, sync, start(0, 15)}}, on_call);
    }
    list->name("EmptyAgainstOthers");
    const Ops empty = {at(Op::empty, 0), at(Op::pass, 12)};
    for (const Ops &cover : covers) {
        for (const lawn_time_t deadline : {9, 15, 30}) {
            list->add(cover, {empty, {start(0, deadline), start(0, 12)}});
        }
    }
}

void add_retires(List *list)
{
    list->name("RetireAgainstOthers");
    for (const Ops &cover : covers) {
        list->add(cover, {twice, {start(0, 15), retire}});
        list->add(cover, {pass_12, {retire}, {stop}});
        list->add(cover, {{local(0, 11), at(Op::pass, 12)}, {retire}});
        list->add(cover, {{at(Op::advance, 12)}, {retire}, {start(0, 11)}});
    }
}

void add_sleeps(List *list)
{
    list->name("StartAgainstSleep");
    for (const Ops &cover : covers) {
        list->add(cover, {night, {start(0, 15), start(0, 5)}});
        list->add(cover, {night, {start(0, 5), stop, start(0, 15)}});
        list->add(cover,
                  {{at(Op::doze, 50), at(Op::pass, 12), at(Op::sleep, 50)},
                   {start(0, 15)}});
        list->add(cover, {night, {start(0, 15)}, {start(0, 5)}});
        list->add(cover, {night, {start(0, 15)}, {start(1, 5)}});
    }
    list->name("RetireAgainstSleep");
    for (const Ops &cover : covers) {
        list->add(cover, {night, {retire}});
        list->add(cover, {{at(Op::doze, 50), at(Op::sleep, 50)},
                          {start(0, 5), retire}});
        list->add(cover, {night, {start(0, 15)}, {on(Op::retire, 1)}});
        // A retire that finds the timer posted leaves it to the starter, which
        // then has to wake the owner for both, though the deadline is gone.
        list->add(cover, {{at(Op::sleep, 50)}, {start(0, 5)}, {retire}});
    }
}

void add_ends(List *list)
{
    list->name("DestroyAgainstOthers");
    for (const Ops &cover : covers) {
        list->add(cover, {{destroy}, {start(0, 15), stop, start(0, 5)}});
        list->add(cover, {{pass_12[0], destroy}, {start(0, 5), start(0, 11)}});
        list->add(cover, {{destroy}, {start(0, 15)}, {start(1, 5)}});
        list->add(cover, {{destroy}, {start(0, 9)}, {stop}});
        list->add(cover, {{destroy}, {start(0, 15), retire}});
        list->add(cover, {{pass_12[0], destroy}, {retire}});
        list->add(cover, {{retire, destroy}, {start(1, 5)}});
        list->add(cover, {{at(Op::doze, 50), destroy}, {start(0, 15)}});
        list->add(cover, {{at(Op::doze, 50), destroy}, {retire}});
        list->add(cover, {{local(0, 11), destroy, local(0, 5)}, {start(0, 9)}});
    }
    list->add({}, {{destroy}, {retire}, {on(Op::retire, 1)}});
    list->add({}, {{at(Op::doze, 50), destroy}, {start(0, 5)}, {start(0, 6)}});
}

// Two that do one thing each, or three in all, at whatever the owner does.
void add_three(List *list)
{
    list->name("EachAgainstEach");
    const std::vector<Ops> owners = {pass_12,
                                     {at(Op::sleep, 50)},
                                     {local(0, 15), at(Op::pass, 12)},
                                     {at(Op::empty, 0), at(Op::sleep, 50)}};
    for (const Ops &owner : owners) {
        for (const Op &i : {start(0, 5), start(0, 15), stop}) {
            for (const Op &j : {start(0, 11), retire}) {
                list->add({local(0, 10)}, {owner, {i}, {j}});
            }
        }
    }
    list->name("ThreeCalls");
    const Ops day = {at(Op::pass, 12), at(Op::sleep, 50), at(Op::empty, 0)};
    list->add({}, {night, {start(0, 15), start(0, 5)}, {stop, retire}});
    list->add({local(0, 10)}, {twice, {start(0, 15), stop}, {retire}});
    list->add({local(0, 10)}, {day, {start(0, 15), stop}, {retire}});
    list->add({local(0, 10)}, {day, {start(0, 5), sync}, {start(0, 15)}});
}

} // namespace

std::vector<Scenario> explore::shared_scenarios()
{
    static const List list = [] {
        List made;
        add_starts(&made);
        add_passes(&made);
        add_retires(&made);
        add_sleeps(&made);
        add_ends(&made);
        add_three(&made);
        return made;
    }();
    std::vector<Scenario> all;
    for (const SharedScenario &i : list.all) {
        all.push_back({i.name.c_str(), static_cast<unsigned>(i.threads.size()),
                       [&i] { return make_program(i); }});
    }
    return all;
}
