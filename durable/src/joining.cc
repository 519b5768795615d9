// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How a consumer joins its group (consumer.h).
//
// Which group came first, and so whose answers count, one shard says, and the
// others are told. That is the first shard that can be joined: what keeps a
// shard from it, such as a key of a wrong type, keeps all consumers from it.

#include "src/consumer.h"
#include "src/session.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr uint64_t join_pause_us = 200000;
// Before a shard that somebody must mend is tried again.
constexpr uint64_t mend_pause_us = 1000000;

} // namespace

void ConsumerCore::start()
{
    std::vector<unsigned> all;
    readers_.clear(); // of an attempt without memory
    for (unsigned shard = 0; shard < link_.shards(); ++shard) {
        all.push_back(shard);
    }
    shards_.assign(all.size(), ConsumedShard());
    if (link_.is_cluster()) {
        for (const unsigned shard : all) {
            readers_.push_back(
                std::make_unique<Reader>(*this, std::vector<unsigned>{shard}));
        }
    } else {
        readers_.push_back(std::make_unique<Reader>(*this, all));
    }
    for (const std::unique_ptr<Reader> &reader : readers_) {
        reader->open();
    }
    join_all();
}

// Joins those that are not joined.
void ConsumerCore::join_all()
{
    for (unsigned shard = 0; shard < shards_.size(); ++shard) {
        if (!shards_[shard].is_joined &&
            (shard == leader_ || !first_.empty())) {
            join(shard);
        }
    }
}

void ConsumerCore::join(unsigned shard)
{
    if (shards_[shard].is_joining) {
        return;
    }
    Call call;
    call.function = "lawn_join";
    call.keys = {Key::meta, config_.stream};
    call.args = {config_.group};
    if (!first_.empty()) {
        call.args.push_back(first_);
    }
    call.shard = shard;
    link_.call(std::move(call),
               [weak = weak_from_this(), shard](const Answer &answer) {
                   if (const auto self = weak.lock()) {
                       self->on_joined(shard, answer);
                   }
               });
    shards_[shard].is_joining = true;
}

void ConsumerCore::on_joined(unsigned shard, const Answer &answer)
{
    shards_[shard].is_joining = false;
    if (is_stopped_) {
        return;
    }
    const redisReply *const reply = answer.reply;
    if (answer.status != LAWN_OK || !reply ||
        reply->type != REDIS_REPLY_STRING) {
        on_not_joined(shard, answer);
    } else {
        if (first_.empty()) {
            first_.assign(reply->str, reply->len);
            answers_->set_reader(first_ != config_.group);
            join_all();
        }
        shards_[shard].is_joined = true;
        take_timer_.start_after(0); // when the readers have begun
    }
    give(); // has the readers go on
}

void ConsumerCore::on_not_joined(unsigned shard, const Answer &answer)
{
    const bool lasts = is_lasting(answer);
    set_trouble(shard, answer);
    // What may pass keeps only those from it who ask now: if another shard led
    // them, and the first one led those who ask later, two groups would be
    // first.
    if (first_.empty() && lasts && answer.status != LAWN_ERR_TIMED_OUT) {
        leader_ = (leader_ + 1) % static_cast<unsigned>(shards_.size());
        if (leader_ > 0) {
            join(leader_);
            return;
        }
    }
    join_pause_.start_after(lasts ? mend_pause_us : join_pause_us);
}

// The groups are gone: the server has come back without its data.
void ConsumerCore::rejoin()
{
    const bool is_joining =
        std::any_of(shards_.begin(), shards_.end(),
                    [](const ConsumedShard &i) { return i.is_joining; });
    if (is_joining) {
        return; // the one who reads asks for it again
    }
    for (ConsumedShard &i : shards_) {
        i.is_joined = false;
    }
    first_.clear();
    leader_ = 0;
    join_pause_.start_after(0);
}

bool ConsumerCore::is_settled(const std::vector<unsigned> &shards) const
{
    return !first_.empty() &&
           std::none_of(shards.begin(), shards.end(),
                        [this](unsigned i) { return shards_[i].is_joining; });
}

void ConsumerCore::set_trouble(unsigned shard, const Answer &answer)
{
    shards_[shard].is_suspect = true;
    if (is_lasting(answer)) {
        tell(shard, answer.error);
    }
}

// The first reason stays until the shard was read: it names the key.
void ConsumerCore::tell(unsigned shard, const char *why)
{
    std::string &trouble = shards_[shard].trouble;
    if (trouble.empty()) {
        trouble =
            "cannot read " + link_.key(shard, config_.stream) + ": " + why;
    }
}

// The shard is read all the same.
void ConsumerCore::set_take_trouble(unsigned shard, const Answer &answer)
{
    std::string &trouble = shards_[shard].take_trouble;
    if (answer.status == LAWN_OK) {
        trouble.clear();
    } else if (is_lasting(answer)) {
        trouble = "cannot take over from " + link_.key(shard, config_.stream) +
                  ": " + answer.error;
    }
}

void ConsumerCore::leave_out(unsigned shard, const Answer &answer)
{
    shards_[shard].is_joined = false;
    set_trouble(shard, answer);
    join_pause_.start_after(is_lasting(answer) ? mend_pause_us : join_pause_us);
}

std::string ConsumerCore::trouble() const
{
    for (const ConsumedShard &i : shards_) {
        const std::string &trouble =
            i.trouble.empty() ? i.take_trouble : i.trouble;
        if (!trouble.empty() && !is_stopped_) {
            return trouble;
        }
    }
    return "";
}

} // namespace lawn::durable
