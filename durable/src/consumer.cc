// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Consumers (consumer.h).

#include "src/consumer.h"

#include "src/guard.h"
#include "src/refusal.h"
#include "src/release.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

// Of the entries that were to be extended, none is the consumer's any more.
bool says_none(const Answer &answer)
{
    return answer.status == LAWN_OK && answer.reply &&
           answer.reply->type == REDIS_REPLY_ARRAY &&
           answer.reply->elements == 0;
}

} // namespace

ConsumerCore::ConsumerCore(lawn_durable_t *durable, ConsumerConfig config,
                           lawn_durable_deliver_fn_t deliver, void *arg)
    : link_(*durable->link), config_(std::move(config)),
      request_timeout_us_(durable->params.request_timeout_us),
      deliveries_(link_, config_, deliver, arg, [this] { on_lost(); }),
      errors_(link_, config_.stream), joining_(link_, config_, *this),
      take_over_(link_, config_, *this),
      give_timer_(durable->loop, [this] { go_on(); }),
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
                self->on_answered(shard, entry);
            }
        });
    link_.when_open(this, [this] { start(); });
}

void ConsumerCore::start()
{
    std::vector<unsigned> all;
    readers_.clear(); // of an attempt without memory
    for (unsigned shard = 0; shard < link_.shards(); ++shard) {
        all.push_back(shard);
    }
    errors_.start(link_.shards());
    take_over_.start(link_.shards());
    if (link_.is_cluster()) {
        for (const unsigned shard : all) {
            add_reader({shard});
        }
    } else {
        add_reader(all);
    }
    for (const std::unique_ptr<Reader> &reader : readers_) {
        reader->open();
    }
    joining_.start(link_.shards());
}

void ConsumerCore::add_reader(std::vector<unsigned> shards)
{
    const ReaderParts parts = {link_,    config_,     request_timeout_us_,
                               joining_, deliveries_, take_over_,
                               errors_};
    Reader::Owner &owner = *this;
    readers_.push_back(
        std::make_unique<Reader>(parts, std::move(shards), owner));
}

void ConsumerCore::on_first(bool is_ours)
{
    answers_->set_reader(!is_ours);
}

void ConsumerCore::on_joined()
{
    take_over_.soon(); // when the readers have begun
}

void ConsumerCore::on_not_joined(unsigned shard, const Answer &answer)
{
    reader_of(shard).suspect(shard);
    errors_.note(shard, answer);
}

Done ConsumerCore::if_running(Done done)
{
    return [weak = weak_from_this(),
            done = std::move(done)](const Answer &answer) {
        if (const auto self = weak.lock(); self && !self->is_stopped_) {
            done(answer);
        }
    };
}

size_t ConsumerCore::room() const
{
    if (is_stopped_) {
        return 0;
    }
    size_t most = config_.max_in_flight;
    if (config_.limit > 0) {
        const uint64_t left = config_.limit - deliveries_.given();
        most = std::min<uint64_t>(most, left + in_flight());
    }
    const size_t here =
        in_flight() + deliveries_.backlog() + take_over_.asked();
    return here < most ? most - here : 0;
}

size_t ConsumerCore::share() const
{
    const size_t readers = readers_.size();
    return room() / readers + (room() % readers != 0);
}

bool ConsumerCore::may_take_from(unsigned shard) const
{
    return joining_.is_joined(shard) && !reader_of(shard).wants_nothing_taken();
}

bool ConsumerCore::on_taken(unsigned shard, const Answer &answer)
{
    errors_.note_take(shard, answer);
    return deliveries_.add_taken(shard, answer);
}

// The store has the program's answer to an entry.
void ConsumerCore::on_answered(unsigned shard, const std::string &entry)
{
    deliveries_.forget(shard, entry);
    if (!is_stopped_) {
        take_over_.go_on();
        go_on();
    }
}

// There is room, also for what others have lost.
void ConsumerCore::on_lost()
{
    if (!is_stopped_) {
        take_over_.go_on();
    }
    go_on();
}

void ConsumerCore::go_on()
{
    if (is_giving_) {
        return;
    }
    tell_lost();
    bool has_memory = true;
    while (has_memory && !is_stopped_ && deliveries_.backlog() > 0 &&
           in_flight() < config_.max_in_flight &&
           (config_.limit == 0 || deliveries_.given() < config_.limit)) {
        const Within giving(&is_giving_);
        has_memory = attempt([this] { deliveries_.give_one(); });
    }
    if (is_stopped_) {
        return; // by the program
    }
    if (!has_memory) {
        give_timer_.start_after(retry_us);
    }
    if (config_.no_answer) {
        take_over_.go_on(); // what was given takes no room
    }
    if (config_.limit > 0 && deliveries_.given() == config_.limit) {
        stop();
        return;
    }
    if (deliveries_.backlog() > 0 && !backlog_timer_.is_active()) {
        backlog_timer_.start_at(deliveries_.backlog_since() + half_lease());
    }
    for (const std::unique_ptr<Reader> &reader : readers_) {
        reader->read();
    }
}

void ConsumerCore::tell_lost()
{
    const Within giving(&is_giving_);
    while (!answers_->is_closed() && deliveries_.tell_lost()) {
    }
}

// A read was under way when what was taken over filled the room, or several
// shards had something at once. If the lease ended here, that would count as an
// attempt of a program that has not seen the delivery.
void ConsumerCore::release_backlog()
{
    for (const auto &[shard, names] : deliveries_.take_backlog(half_lease())) {
        release(link_, config_, shard, names);
    }
    go_on();
}

lawn_status_t ConsumerCore::answer(const lawn_durable_delivery_t *delivery,
                                   lawn_durable_answer_t answer,
                                   uint64_t delay_us, const char *error,
                                   lawn_durable_fn_t done, void *arg)
{
    const Delivery *const d = deliveries_.find(delivery);
    if (!d || answers_->is_closed()) {
        return refuse("the delivery is none that waits for an answer");
    }
    Verdict v = verdict_of(*d, answer, delay_us, error, random_());
    v.done = done;
    v.arg = arg;
    answers_->add(d->shard, std::move(v));
    deliveries_.end(delivery);
    return LAWN_OK;
}

void ConsumerCore::extend(const lawn_durable_delivery_t *delivery)
{
    const Delivery *const d = deliveries_.find(delivery);
    if (!d || d->is_lost) {
        return;
    }
    Call call;
    call.function = "lawn_extend";
    call.keys = {config_.stream};
    call.args = {config_.group, config_.name, d->entry};
    call.shard = d->shard;
    link_.call(std::move(call), [weak = weak_from_this(), delivery,
                                 entry = d->entry](const Answer &answer) {
        const auto self = weak.lock();
        if (self && says_none(answer)) {
            self->deliveries_.note_taken(delivery, entry);
            self->on_lost();
        }
    });
    deliveries_.extend(delivery);
}

void ConsumerCore::stop()
{
    if (is_stopped_) {
        return;
    }
    is_stopped_ = true;
    joining_.stop();
    take_over_.stop();
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
    std::map<unsigned, std::vector<std::string>> known =
        deliveries_.take_backlog(0);
    // What it has given and cannot answer stays with it.
    if (config_.no_answer) {
        for (const auto &[shard, names] : known) {
            release(link_, config_, shard, names);
        }
        return;
    }
    const std::set<Deliveries::Name> kept = deliveries_.kept();
    for (const std::unique_ptr<Reader> &reader : readers_) {
        for (const unsigned shard : reader->shards()) {
            release(link_, config_, shard, known[shard]);
            if (reader->is_known(shard)) {
                release_pending(link_, config_, shard, kept);
            }
        }
    }
}

std::string ConsumerCore::error() const
{
    return is_stopped_ ? "" : errors_.first();
}

void ConsumerCore::close()
{
    stop();
    link_.forget(this);
    answers_->close();
}

} // namespace lawn::durable
