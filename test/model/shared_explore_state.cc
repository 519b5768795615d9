// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a state of the world is, and what is told of it.

#include "timer/lawn_impl.h"

#include "shared_explore_world.h"

#include <string.h>

namespace shared_explore
{

namespace
{

constexpr const char *do_names[] = {"start",  "local", "stop",  "sync",
                                    "retire", "pass",  "drain", "advance",
                                    "sleep",  "doze",  "empty", "destroy"};
constexpr const char *field_names[] = {
    "scratch", "deadline", "cover", "flags",   "head",
    "wake_at", "ringing",  "users", "running", "runs"};

uint64_t mix_pointer(uint64_t hash, const void *pointer)
{
    return mix(hash, reinterpret_cast<uintptr_t>(pointer));
}

std::string text_of_op(const Op &op)
{
    std::string text = do_names[static_cast<unsigned>(op.what)];
    if (is_call(op.what) || op.what == Do::retire) {
        text += " of timer " + std::to_string(op.timer);
    }
    if (op.time != 0) {
        text += " at " + std::to_string(op.time);
    }
    return text;
}

std::string text_of_ops(const std::string &who, const std::vector<Op> &ops)
{
    std::string text = who + ':';
    for (const Op &op : ops) {
        text += ' ' + text_of_op(op) + ';';
    }
    return ops.empty() ? "" : text + '\n';
}

} // namespace

// Of what a check may still ask for.
uint64_t World::past_hash() const
{
    Past past = past_;
    for (unsigned i = 0; i < most_ops; ++i) {
        uint64_t &state = past.state[i];
        if (past.has_returned[i] != 0 && state != none && state != active &&
            state != taken) {
            state = superseded; // Over, in whatever way.
        }
    }
    for (uint64_t &fires : past.fires) {
        fires = fires != 0;
    }
    past.sleeps -= past.wakes;
    past.wakes = 0;
    uint64_t words[sizeof(past) / sizeof(uint64_t)];
    memcpy(words, &past, sizeof(words));
    uint64_t hash = 0;
    for (const uint64_t word : words) {
        hash = mix(hash, word);
    }
    return hash;
}

uint64_t World::hash() const
{
    uint64_t hash = past_hash();
    for (const uint64_t word : {uint64_t{box_->head}, uint64_t{box_->wake_at},
                                uint64_t{box_->ringing}, uint64_t{box_->users},
                                uint64_t{box_->runs}}) {
        hash = mix(hash, word);
    }
    hash = mix_pointer(hash, box_->running);
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        const lawn_shared_t &timer = timers_[i];
        hash = mix_pointer(hash, timer.timer.link.next);
        hash = mix_pointer(hash, timer.timer.link.prev);
        hash = mix(hash, timer.timer.deadline);
        hash = mix(hash, timer.timer.check);
        hash = mix(hash, timer.deadline);
        hash = mix(hash, timer.cover);
        hash = mix(hash, timer.flags);
    }
    return mix(hash, plain_hash());
}

// The owner's part of a message; of others none.
uint64_t World::plain(unsigned thread) const
{
    return thread == 0 ? plain_hash() : 0;
}

uint64_t World::plain_hash() const
{
    uint64_t hash = mix_pointer(0, box_->taken);
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        hash = mix_pointer(hash, timers_[i].next);
        hash = mix(hash, timers_[i].released != nullptr);
    }
    return hash;
}

// Of what the owner's next operation depends on: with the timers' links, that
// is the whole of the lawn.
uint64_t World::lawn_hash() const
{
    const lawn::Lawn &lawn = *lawn::impl_of(lawn_);
    uint64_t hash = 0;
    for (const uint64_t word :
         {lawn.now, lawn.next, lawn.inline_limit, lawn_time_t{lawn.running},
          lawn.wake, lawn.done, lawn.round_time, lawn.round_check,
          lawn.due_check, lawn_time_t{lawn.occupied}}) {
        hash = mix(hash, word);
    }
    for (const uint64_t word : lawn.filled) {
        hash = mix(hash, word);
    }
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        hash = mix_pointer(hash, timers_[i].timer.link.next);
        hash = mix_pointer(hash, timers_[i].timer.link.prev);
        hash = mix(hash, timers_[i].timer.deadline);
        hash = mix(hash, timers_[i].timer.check);
    }
    return hash;
}

std::string World::describe(unsigned thread) const
{
    std::string text = "thread " + std::to_string(thread);
    for (const Frame *i = frames_[thread]; i; i = i->parent) {
        text += i == frames_[thread] ? ", " : " in ";
        text += text_of_op(*i->op);
    }
    return text;
}

std::string World::name_of(const void *at) const
{
    const Place place = place_of(at);
    const std::string name = field_names[static_cast<unsigned>(place.field)];
    return place.timer == most_timers
               ? name
               : name + ' ' + std::to_string(place.timer);
}

std::string World::text_of(uint64_t value) const
{
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        const auto address = reinterpret_cast<uintptr_t>(&timers_[i]);
        if ((value & ~uint64_t{lawn::tags}) == address) {
            return "timer " + std::to_string(i) + " | " +
                   std::to_string(value & lawn::tags);
        }
    }
    return value == LAWN_TIME_INFINITY ? "never" : std::to_string(value);
}

std::string text_of(const Scenario &scenario, const Result &result)
{
    std::string text = text_of_ops("before", scenario.before);
    for (size_t i = 0; i < scenario.threads.size(); ++i) {
        text += text_of_ops("thread " + std::to_string(i), scenario.threads[i]);
    }
    text += text_of_ops("callback", scenario.on_fire);
    for (const std::string &violation : result.violations) {
        text += violation + '\n';
    }
    for (const std::string &step : result.steps) {
        text += "    " + step + '\n';
    }
    return text;
}

} // namespace shared_explore
