// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Updates of timers, in the store (seeded_model.h) and as they are judged
// (seeded_world.h).

#include "seeded_world.h"

namespace lawn_test
{

using namespace resp;

// shards, id, generation, when
std::string SeededModel::update(Shard *shard, const Words &args)
{
    const auto found = shard->bodies.find(args[1]);
    if (found == shard->bodies.end()) {
        return list({number(0), number(0), number(0)});
    }
    Body *const body = &found->second;
    const int64_t now = owner_.time_us();
    const auto generation = static_cast<int64_t>(generation_of(body->head));
    const std::string mark = args[2] + " " + args[3];
    const bool is_seen = generation == integer(args[2]);
    if (body->mark == mark && !is_seen) {
        return list(
            {number(1), number(generation), number(body->due_us), number(now)});
    }
    if (!is_seen || !body->is_pending) {
        return list(
            {number(0), number(generation), number(body->is_pending ? 1 : 2)});
    }
    body->mark = mark;
    body->due_us = now + integer(&args[3][1]);
    rename(body, ++generation_);
    updates_[args[1]] = {generation_, body->due_us, write()};
    wake(shard, body->due_us);
    return list({number(1), number(static_cast<int64_t>(generation_)),
                 number(body->due_us), number(now)});
}

const SeededModel::Start *SeededModel::update_of(const std::string &id) const
{
    const auto found = updates_.find(id);
    return found == updates_.end() ? nullptr : &found->second;
}

bool SeededModel::has_ended(const std::string &id) const
{
    return std::any_of(shards_.begin(), shards_.end(), [&](const Shard &shard) {
        return shard.ends.count(id) != 0;
    });
}

void SeededWorld::on_updated(Request *request,
                             const lawn_durable_result_t &result)
{
    const Timer &timer = *request->timer;
    const SeededModel::Start *const first = store_.model().update_of(timer.id);
    if (result.status != LAWN_OK) {
        if (first && !store_.model().has_ended(timer.id)) {
            object("an update that was carried out came too late");
        }
    } else if (!first) {
        object("an update that was not carried out is acknowledged");
    } else if (result.generation != first->generation ||
               (result.due_us != first->due_us && timer.deliveries == 0)) {
        object("an update is not answered like the first");
    } else {
        check_safety(first->write, timer.durability);
    }
}

} // namespace lawn_test
