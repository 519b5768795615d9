// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Consumers (consumer.h).

#include "src/consumer.h"

#include "src/backoff.h"
#include "src/guard.h"
#include "src/release.h"

#include <algorithm>
#include <new>
#include <string.h>

namespace lawn::durable
{

namespace
{

constexpr size_t most_taken = 100;
constexpr size_t most_of_error = 1024;
constexpr unsigned most_deliveries = 65535; // more than any max_attempts
// Where the timer says nothing.
constexpr uint64_t backoff_min_us = 1000000;
constexpr uint64_t backoff_max_us = 600000000;
constexpr uint64_t longest_delay = 1000000000000000; // 31 years

} // namespace

ConsumerCore::ConsumerCore(lawn_durable_t *durable, ConsumerConfig config,
                           lawn_durable_deliver_fn_t deliver, void *arg)
    : durable_(durable), link_(*durable->link), config_(std::move(config)),
      deliver_(deliver), arg_(arg),
      join_pause_(durable->loop, [this] { join_all(); }),
      take_timer_(durable->loop, [this] { take(); }),
      give_timer_(durable->loop, [this] { give(); }),
      backlog_timer_(durable->loop, [this] { release_backlog(); }),
      random_(std::random_device()())
{
}

void ConsumerCore::open()
{
    answers_ = std::make_shared<Answers>(
        link_, config_.stream, config_.group, config_.max_in_flight,
        [weak = weak_from_this()](unsigned shard, const std::string &entry) {
            if (const auto self = weak.lock()) {
                self->held_.erase({shard, entry});
                self->take_more();
                self->give();
            }
        });
    link_.when_open(this, [this] { start(); });
}

size_t ConsumerCore::room() const
{
    if (is_stopped_) {
        return 0;
    }
    size_t most = config_.max_in_flight;
    if (config_.limit > 0) {
        const uint64_t left = config_.limit - given_;
        most = std::min<uint64_t>(most, left + in_flight());
    }
    const size_t here = in_flight() + backlog_.size() + asked_;
    return here < most ? most - here : 0;
}

void ConsumerCore::take()
{
    if (is_stopped_) {
        return;
    }
    to_take_ = shards_.size();
    take_more();
}

// Takes over no more than can be given, for that counts as a delivery. It comes
// before give(), which reads: where a stream always has new entries, reading
// would never leave room. Then half a lease is for reading alone.
void ConsumerCore::take_more()
{
    if (is_stopped_) {
        return;
    }
    const bool has_memory = attempt([this] {
        while (to_take_ > 0 && room() > 0) {
            --to_take_;
            next_take_ = (next_take_ + 1) % shards_.size();
            take_from(static_cast<unsigned>(next_take_));
        }
    });
    if (!has_memory || (to_take_ == 0 && !take_timer_.is_active())) {
        take_timer_.start_after(has_memory ? config_.lease_us / 2 : retry_us);
    }
}

void ConsumerCore::take_from(unsigned shard)
{
    const size_t count = std::min(room(), most_taken);
    if (count == 0 || shards_[shard].is_taking || !shards_[shard].is_joined ||
        reader_of(shard).wants_nothing_taken()) {
        return;
    }
    link_.call(take_call(shard, count),
               [weak = weak_from_this(), shard, count](const Answer &answer) {
                   if (const auto self = weak.lock()) {
                       self->on_taken(shard, count, answer);
                   }
               });
    shards_[shard].is_taking = true;
    asked_ += count;
}

Call ConsumerCore::take_call(unsigned shard, size_t count) const
{
    Call call;
    call.function = "lawn_take";
    call.keys = {Key::due,    Key::body,   Key::meta, config_.stream,
                 Key::ended0, Key::ended1, Key::dead};
    call.args = {config_.group, config_.name, std::to_string(config_.lease_us),
                 std::to_string(count)};
    call.shard = shard;
    return call;
}

void ConsumerCore::on_taken(unsigned shard, size_t count, const Answer &answer)
{
    shards_[shard].is_taking = false;
    asked_ -= count;
    if (is_stopped_) {
        return;
    }
    bool is_more = false;
    attempt([&] {
        set_take_trouble(shard, answer);
        is_more = add_taken(shard, answer);
    });
    if (is_more) {
        to_take_ = shards_.size();
    }
    take_more();
    give(); // has a reader go on that has waited for this
}

bool ConsumerCore::add_taken(unsigned shard, const Answer &answer)
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

void ConsumerCore::add(unsigned shard, const redisReply *reply,
                       unsigned deliveries)
{
    Entry entry;
    const bool is_ours = decode_entry(reply, &entry);
    const Name name(shard, entry.entry);
    if (name.second.empty() || held_.count(name) > 0) {
        return; // it is here already, and this consumer's lease begins anew
    }
    if (!is_ours) {
        bury(name);
        return;
    }
    auto delivery = std::make_unique<Delivery>();
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
    const auto held = held_.insert(name).first;
    inherited_.erase(name);
    if (!attempt([&] { backlog_.push_back(std::move(delivery)); })) {
        held_.erase(held);
        throw std::bad_alloc();
    }
}

// Nobody can read it, and so nobody could answer it.
void ConsumerCore::bury(const Name &name)
{
    Call call;
    call.function = "lawn_bury";
    call.keys = {Key::due,    Key::body,   Key::meta, config_.stream,
                 Key::ended0, Key::ended1, Key::dead};
    call.args = {config_.group, name.second};
    call.shard = name.first;
    link_.call(std::move(call), [](const Answer &) {});
}

void ConsumerCore::give()
{
    if (is_giving_) {
        return;
    }
    bool has_memory = true;
    while (has_memory && !is_stopped_ && !backlog_.empty() &&
           in_flight() < config_.max_in_flight &&
           (config_.limit == 0 || given_ < config_.limit)) {
        const Within giving(&is_giving_);
        has_memory = attempt([this] { give_one(); });
    }
    if (!has_memory) {
        give_timer_.start_after(retry_us);
    }
    if (config_.no_answer) {
        take_more(); // what was given takes no room
    }
    if (!is_stopped_ && config_.limit > 0 && given_ == config_.limit) {
        stop();
    }
    if (!is_stopped_ && !backlog_.empty() && !backlog_timer_.is_active()) {
        backlog_timer_.start_at(backlog_.front()->come + half_lease());
    }
    for (size_t i = 0; i < readers_.size() && !is_stopped_; ++i) {
        readers_[i]->read();
    }
}

// A read was under way when what was taken over filled the room, or several
// shards had something at once. If the lease ended here, that would count as an
// attempt of a program that has not seen the delivery.
void ConsumerCore::release_backlog()
{
    for (const auto &[shard, names] : take_backlog(half_lease())) {
        release(link_, config_, shard, names);
    }
    give();
}

std::map<unsigned, std::vector<std::string>>
ConsumerCore::take_backlog(lawn_time_t age)
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

void ConsumerCore::give_one()
{
    std::unique_ptr<Delivery> &first = backlog_.front();
    std::unique_ptr<Delivery> unanswered; // until it was given
    const lawn_durable_delivery_t *const view = &first->view;
    if (config_.no_answer) {
        held_.erase({first->shard, first->entry});
        unanswered = std::move(first);
    } else {
        live_.emplace(view, std::move(first)); // moves it when it has memory
    }
    backlog_.pop_front();
    ++given_;
    deliver_(arg_, view);
}

std::string ConsumerCore::verdict(const Delivery &delivery,
                                  lawn_durable_answer_t answer,
                                  uint64_t delay_us, const char *error)
{
    const std::string text =
        error ? std::string(error, strnlen(error, most_of_error)) : "";
    if (delay_us == LAWN_DURABLE_BACKOFF) {
        delay_us = backoff(delivery.backoff_min_us, delivery.backoff_max_us,
                           delivery.view.attempt, random_());
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

lawn_status_t ConsumerCore::answer(const lawn_durable_delivery_t *delivery,
                                   lawn_durable_answer_t answer,
                                   uint64_t delay_us, const char *error,
                                   lawn_durable_fn_t done, void *arg)
{
    const auto at = live_.find(delivery);
    if (at == live_.end() || answers_->is_closed()) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const Delivery &d = *at->second;
    Verdict v;
    v.text = verdict(d, answer, delay_us, error);
    v.entry = d.entry;
    v.id = d.id;
    v.identity = d.identity;
    v.state = answer == LAWN_DURABLE_DONE     ? LAWN_DURABLE_SUCCESS
              : answer == LAWN_DURABLE_REJECT ? LAWN_DURABLE_FAIL
                                              : LAWN_DURABLE_PENDING;
    v.generation = d.view.generation;
    v.due_us = d.view.due_us;
    v.attempt = d.view.attempt;
    v.done = done;
    v.arg = arg;
    answers_->add(d.shard, std::move(v));
    live_.erase(at);
    return LAWN_OK;
}

void ConsumerCore::extend(const lawn_durable_delivery_t *delivery)
{
    const auto at = live_.find(delivery);
    if (at == live_.end()) {
        return;
    }
    Call call;
    call.function = "lawn_extend";
    call.keys = {config_.stream};
    call.args = {config_.group, config_.name, at->second->entry};
    call.shard = at->second->shard;
    link_.call(std::move(call), [](const Answer &) {});
}

void ConsumerCore::stop()
{
    if (is_stopped_) {
        return;
    }
    is_stopped_ = true;
    join_pause_.stop();
    take_timer_.stop();
    give_timer_.stop();
    backlog_timer_.stop();
    for (const std::unique_ptr<Reader> &reader : readers_) {
        reader->close();
    }
    // What is not given back goes to others when its lease is over.
    attempt([this] { give_back(); });
}

// What was read and not given goes to others at once, instead of after a lease.
// That is what the store has for this consumer and the program has not: also
// what was on its way when the connection was closed.
void ConsumerCore::give_back()
{
    std::map<unsigned, std::vector<std::string>> known = take_backlog(0);
    // What it has given and cannot answer stays with it.
    if (config_.no_answer) {
        for (const auto &[shard, names] : known) {
            release(link_, config_, shard, names);
        }
        return;
    }
    std::set<Name> kept = held_;
    kept.insert(inherited_.begin(), inherited_.end());
    for (unsigned shard = 0; shard < shards_.size(); ++shard) {
        if (shards_[shard].is_known) {
            release_pending(link_, config_, shard, kept);
        } else {
            release(link_, config_, shard, known[shard]);
        }
    }
}

std::vector<std::string> ConsumerCore::not_here(unsigned shard,
                                                const Answer &answer) const
{
    std::vector<std::string> names = names_of(answer);
    const auto is_here = [&](const std::string &name) {
        return held_.count({shard, name}) > 0;
    };
    names.erase(std::remove_if(names.begin(), names.end(), is_here),
                names.end());
    return names;
}

void ConsumerCore::close()
{
    stop();
    link_.forget(this);
    answers_->close();
}

} // namespace lawn::durable
