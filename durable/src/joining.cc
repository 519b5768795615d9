// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shards are joined (joining.h).

#include "src/joining.h"

#include "src/handle.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr uint64_t join_pause_us = 200000;
// Before a shard that somebody must mend is tried again.
constexpr uint64_t mend_pause_us = 1000000;

} // namespace

Joining::Joining(Link &link, const ConsumerConfig &config, Owner &owner)
    : link_(link), config_(config), owner_(owner),
      pause_(link.loop(), [this] { join_all(); })
{
}

void Joining::start(unsigned shards)
{
    shards_.assign(shards, Shard());
    join_all();
}

void Joining::stop()
{
    pause_.stop();
}

// Joins those that are not joined.
void Joining::join_all()
{
    for (unsigned shard = 0; shard < shards_.size(); ++shard) {
        if (!shards_[shard].is_joined &&
            (shard == leader_ || !first_.empty())) {
            join(shard);
        }
    }
}

void Joining::join(unsigned shard)
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
               owner_.if_running([this, shard](const Answer &answer) {
                   on_joined(shard, answer);
               }));
    shards_[shard].is_joining = true;
}

void Joining::on_joined(unsigned shard, const Answer &answer)
{
    shards_[shard].is_joining = false;
    const redisReply *const reply = answer.reply;
    if (answer.status != LAWN_OK || !reply ||
        reply->type != REDIS_REPLY_STRING) {
        on_not_joined(shard, answer);
    } else {
        const bool is_leader = first_.empty();
        if (is_leader) {
            first_.assign(reply->str, reply->len);
            owner_.on_first(is_first());
        }
        shards_[shard].is_joined = true;
        owner_.on_joined();
        if (is_leader) {
            join_all();
        }
    }
    owner_.go_on();
}

void Joining::on_not_joined(unsigned shard, const Answer &answer)
{
    const bool lasts = is_lasting(answer);
    owner_.on_not_joined(shard, answer);
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
    try_later(lasts);
}

void Joining::try_later(bool lasts)
{
    pause_.start_after(lasts ? mend_pause_us : join_pause_us);
}

void Joining::rejoin()
{
    const bool is_joining =
        std::any_of(shards_.begin(), shards_.end(),
                    [](const Shard &i) { return i.is_joining; });
    if (is_joining) {
        return; // the one who reads asks for it again
    }
    for (Shard &i : shards_) {
        i.is_joined = false;
    }
    first_.clear();
    leader_ = 0;
    pause_.start_after(0);
}

void Joining::leave_out(unsigned shard, const Answer &answer)
{
    shards_[shard].is_joined = false;
    try_later(is_lasting(answer));
}

bool Joining::is_settled(const std::vector<unsigned> &shards) const
{
    return !first_.empty() &&
           std::none_of(shards.begin(), shards.end(),
                        [this](unsigned i) { return shards_[i].is_joining; });
}

} // namespace lawn::durable
