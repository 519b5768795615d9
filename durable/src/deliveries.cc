// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of a delivery in the program (deliveries.h).

#include "src/deliveries.h"

#include "src/backoff.h"
#include "src/codec.h"
#include "src/guard.h"
#include "src/release.h"

#include <algorithm>
#include <new>
#include <string.h>

namespace lawn::durable
{

namespace
{

constexpr size_t most_of_error = 1024;
constexpr unsigned most_deliveries = 65535; // more than any max_attempts
// Where the timer says nothing.
constexpr uint64_t backoff_min_us = 1000000;
constexpr uint64_t backoff_max_us = 600000000;
constexpr uint64_t longest_delay = 1000000000000000; // 31 years

std::string verdict_text(const Delivery &delivery, lawn_durable_answer_t answer,
                         uint64_t delay_us, const char *error, uint64_t random)
{
    const std::string text =
        error ? std::string(error, strnlen(error, most_of_error)) : "";
    if (delay_us == LAWN_DURABLE_BACKOFF) {
        delay_us = backoff(delivery.backoff_min_us, delivery.backoff_max_us,
                           delivery.view.attempt, random);
    }
    const auto delay = static_cast<int64_t>(std::min(delay_us, longest_delay));
    const unsigned deliveries =
        std::min(delivery.view.deliveries, most_deliveries);
    switch (answer) {
    case LAWN_DURABLE_DONE:
        return done_verdict();
    case LAWN_DURABLE_REJECT:
        return reject_verdict(text);
    case LAWN_DURABLE_DEFER:
        return defer_verdict(delay, deliveries);
    case LAWN_DURABLE_RETRY:
        break;
    }
    return retry_verdict(delay, deliveries, text);
}

} // namespace

Verdict verdict_of(const Delivery &delivery, lawn_durable_answer_t answer,
                   uint64_t delay_us, const char *error, uint64_t random)
{
    Verdict v;
    v.text = verdict_text(delivery, answer, delay_us, error, random);
    v.entry = delivery.entry;
    v.id = delivery.id;
    v.identity = delivery.identity;
    v.state = answer == LAWN_DURABLE_DONE     ? LAWN_DURABLE_SUCCESS
              : answer == LAWN_DURABLE_REJECT ? LAWN_DURABLE_FAIL
                                              : LAWN_DURABLE_PENDING;
    v.generation = delivery.view.generation;
    v.due_us = delivery.view.due_us;
    v.attempt = delivery.view.attempt;
    return v;
}

Deliveries::Deliveries(Link &link, const ConsumerConfig &config,
                       lawn_durable_deliver_fn_t deliver, void *arg,
                       std::function<void()> lost)
    : link_(link), config_(config), deliver_(deliver), arg_(arg),
      on_lost_(std::move(lost))
{
}

void Deliveries::add(unsigned shard, const redisReply *reply,
                     unsigned deliveries)
{
    Entry entry;
    const bool is_ours = decode_entry(reply, &entry);
    const Name name(shard, entry.entry);
    if (name.second.empty()) {
        return;
    }
    if (!is_ours) {
        bury(name);
        return;
    }
    const auto here = held_.find(name);
    if (here != held_.end() &&
        (deliveries > 0 || !regive(here->second, entry.deliveries))) {
        return;
    }
    auto delivery = std::make_unique<Delivery>(link_.loop());
    const Body &body = entry.body;
    delivery->shard = shard;
    delivery->entry = name.second;
    delivery->id = entry.id;
    delivery->identity = body.identity;
    delivery->target = body.options.target;
    delivery->payload = body.payload;
    delivery->come = link_.loop().now();
    const uint32_t least = body.options.backoff_min_ms;
    const uint32_t most = body.options.backoff_max_ms;
    delivery->backoff_min_us = least ? least * uint64_t{1000} : backoff_min_us;
    delivery->backoff_max_us = most ? most * uint64_t{1000} : backoff_max_us;
    lawn_durable_delivery_t *const view = &delivery->view;
    view->id = delivery->id.c_str();
    view->generation = body.generation;
    view->due_us = body.due_us;
    view->fired_us = entry.fired_us;
    view->attempt = body.attempt;
    view->deliveries = deliveries ? deliveries : entry.deliveries;
    view->target =
        delivery->target.empty() ? nullptr : delivery->target.c_str();
    view->payload = delivery->payload.data();
    view->payload_size = delivery->payload.size();
    delivery->lease.set([this, given = delivery.get()] {
        lose(given);
        on_lost_();
    });
    const auto held = held_.emplace(name, delivery.get()).first;
    if (!attempt([&] { backlog_.push_back(std::move(delivery)); })) {
        held_.erase(held);
        throw std::bad_alloc();
    }
    inherited_.erase(name);
}

bool Deliveries::regive(Delivery *here, unsigned deliveries)
{
    if (!here) {
        return false; // its answer is on the way
    }
    if (live_.count(&here->view) == 0) {
        here->view.deliveries = deliveries;
        return false; // nor has the program seen it
    }
    lose(here);
    return true;
}

void Deliveries::lose(Delivery *delivery)
{
    if (delivery->is_lost) {
        return;
    }
    if (config_.lost) {
        to_tell_.push_back(&delivery->view);
    }
    delivery->is_lost = true;
    delivery->lease.stop();
    held_.erase({delivery->shard, delivery->entry});
    ++lost_;
    ++live_lost_;
}

// Nobody can read it, and so nobody could answer it.
void Deliveries::bury(const Name &name)
{
    Call call;
    call.function = "lawn_bury";
    call.keys = {Key::due,    Key::body,   Key::meta, config_.stream,
                 Key::ended0, Key::ended1, Key::dead};
    call.args = {config_.group, name.second};
    call.shard = name.first;
    link_.call(std::move(call), [](const Answer &) {});
}

bool Deliveries::add_taken(unsigned shard, const Answer &answer)
{
    Taken taken;
    if (answer.status != LAWN_OK || !decode(answer.reply, &taken)) {
        return false;
    }
    for (size_t i = 0; i < taken.entries->elements; ++i) {
        add(shard, taken.entries->element[i], 0);
    }
    return taken.more;
}

void Deliveries::give_one()
{
    std::unique_ptr<Delivery> &first = backlog_.front();
    std::unique_ptr<Delivery> unanswered; // until it was given
    Delivery *const delivery = first.get();
    if (config_.no_answer) {
        held_.erase({delivery->shard, delivery->entry});
        unanswered = std::move(first);
    } else {
        // Moves it when it has memory.
        live_.emplace(&delivery->view, std::move(first));
        delivery->lease.start_at(delivery->come + lease());
    }
    backlog_.pop_front();
    ++given_;
    deliver_(arg_, &delivery->view);
}

const Delivery *Deliveries::find(const lawn_durable_delivery_t *view) const
{
    const auto at = live_.find(view);
    return at == live_.end() ? nullptr : at->second.get();
}

void Deliveries::end(const lawn_durable_delivery_t *view)
{
    const auto at = live_.find(view);
    const Delivery &delivery = *at->second;
    if (delivery.is_lost) {
        --live_lost_;
    } else {
        held_.at({delivery.shard, delivery.entry}) = nullptr;
    }
    live_.erase(at);
}

void Deliveries::extend(const lawn_durable_delivery_t *view)
{
    live_.at(view)->lease.start_at(link_.loop().now() + lease());
}

void Deliveries::note_taken(const lawn_durable_delivery_t *view,
                            const std::string &entry)
{
    // It may have been answered, and another one may be there.
    const auto at = live_.find(view);
    if (at != live_.end() && at->second->entry == entry) {
        lose(at->second.get());
    }
}

bool Deliveries::tell_lost()
{
    while (!to_tell_.empty()) {
        const lawn_durable_delivery_t *const view = to_tell_.front();
        to_tell_.pop_front();
        const auto at = live_.find(view);
        if (at != live_.end() && at->second->is_lost) {
            const std::unique_ptr<Delivery> delivery = std::move(at->second);
            live_.erase(at);
            --live_lost_;
            config_.lost(arg_, view);
            return true;
        }
    }
    return false;
}

void Deliveries::forget(unsigned shard, const std::string &entry)
{
    // What was lost and given again is here until that is answered.
    const auto at = held_.find({shard, entry});
    if (at != held_.end() && !at->second) {
        held_.erase(at);
    }
}

std::map<unsigned, std::vector<std::string>>
Deliveries::take_backlog(lawn_time_t age)
{
    const lawn_time_t now = link_.loop().now();
    std::map<unsigned, std::vector<std::string>> taken;
    while (!backlog_.empty() && backlog_.front()->come + age <= now) {
        const Delivery &first = *backlog_.front();
        taken[first.shard].push_back(first.entry);
        held_.erase({first.shard, first.entry});
        backlog_.pop_front();
    }
    return taken;
}

void Deliveries::inherit(unsigned shard,
                         const std::vector<std::string> &entries)
{
    for (const std::string &entry : entries) {
        inherited_.insert({shard, entry});
    }
}

std::vector<std::string>
Deliveries::not_here(unsigned shard, std::vector<std::string> entries) const
{
    const auto is_here = [&](const std::string &name) {
        return held_.count({shard, name}) > 0;
    };
    entries.erase(std::remove_if(entries.begin(), entries.end(), is_here),
                  entries.end());
    return entries;
}

std::set<Deliveries::Name> Deliveries::kept() const
{
    std::set<Name> names = inherited_;
    for (const auto &held : held_) {
        names.insert(held.first);
    }
    return names;
}

} // namespace lawn::durable
