// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How a consumer reads (consumer.h).
//
// COUNT of XREADGROUP is for each stream. So while there is room for fewer
// entries than there are shards, the reader looks at as many shards as there is
// room for, in turn and without blocking, and blocks on all when all were
// empty. More than there is room for may come only if entries of several shards
// arrive in the same moment. They wait here until they can be given.

#include "durable/consumer.h"
#include "durable/guard.h"

#include <algorithm>
#include <string.h>

namespace lawn::durable
{

namespace
{

constexpr uint64_t block_ms = 5000;
constexpr size_t most_at_once = 128; // entries of a shard
constexpr uint64_t failure_pause_us = 200000;

bool is_array(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ARRAY;
}

bool is_string(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

} // namespace

Reader::Reader(ConsumerCore &core, std::vector<unsigned> shards)
    : core_(core), shards_(std::move(shards)),
      pause_(core.link_.loop(), [this] {
          is_busy_ = false;
          read();
      })
{
    for (size_t i = 0; i < shards_.size(); ++i) {
        keys_[core_.link_.key(shards_[i], core_.config_.stream)] = i;
    }
}

void Reader::open()
{
    Channel::Events events;
    events.connected = [this] { on_connected(); };
    events.lost = [this](const char *) {
        pause_.stop();
        is_busy_ = true; // until it is connected again
    };
    channel_ = core_.link_.open_channel(shards_.front(), {}, std::move(events));
}

void Reader::close()
{
    channel_.reset();
    pause_.stop();
    is_busy_ = true;
}

void Reader::on_connected()
{
    is_busy_ = false;
    is_recovered_ = core_.config_.no_answer;
    read();
}

void Reader::read()
{
    if (is_busy_ || !channel_ || !channel_->is_connected() ||
        !core_.is_joined_) {
        return;
    }
    if (!attempt([this] { is_recovered_ ? read_next() : recover(); })) {
        to_recover_ = 0;
        is_busy_ = true;
        pause_.start_after(retry_us);
    }
}

void Reader::read_next()
{
    const size_t room = core_.room() / core_.readers_.size() +
                        (core_.room() % core_.readers_.size() != 0);
    if (room == 0) {
        return;
    }
    std::vector<unsigned> shards = shards_;
    bool is_blocking = true;
    size_t count = std::min(room / shards_.size(), most_at_once);
    if (count == 0) {
        count = 1;
        is_blocking = in_vain_ >= shards_.size();
        if (!is_blocking) {
            shards.resize(std::min(room, shards_.size() - in_vain_));
            for (unsigned &shard : shards) {
                shard = shards_[next_];
                next_ = (next_ + 1) % shards_.size();
            }
        }
    }
    is_busy_ = true;
    const size_t looked_at = shards.size();
    channel_->send(
        command(shards, count, is_blocking),
        block_ms * 1000 + core_.durable_->params.request_timeout_us,
        [weak = core_.weak_from_this(), this, looked_at](const Answer &answer) {
            if (const auto core = weak.lock()) {
                on_read(looked_at, answer);
            }
        });
}

Args Reader::command(const std::vector<unsigned> &shards, size_t count,
                     bool is_blocking) const
{
    const ConsumerConfig &config = core_.config_;
    Args args = {"XREADGROUP", "GROUP", config.group,
                 config.name,  "COUNT", std::to_string(count)};
    if (is_blocking) {
        args.insert(args.end(), {"BLOCK", std::to_string(block_ms)});
    }
    // A group that only reads, and does not answer, leaves no entry waiting.
    if (config.no_answer && core_.first_ != config.group) {
        args.push_back("NOACK");
    }
    args.push_back("STREAMS");
    for (const unsigned shard : shards) {
        args.push_back(core_.link_.key(shard, config.stream));
    }
    args.insert(args.end(), shards.size(), ">");
    return args;
}

void Reader::on_read(size_t looked_at, const Answer &answer)
{
    if (core_.is_stopped_) {
        return;
    }
    if (answer.status != LAWN_OK) {
        on_failure(answer);
        return;
    }
    is_busy_ = false;
    const size_t count = take_entries(answer.reply);
    in_vain_ = count > 0 ? 0 : (in_vain_ + looked_at) % (2 * shards_.size());
    core_.give();
    read();
}

// What was given to this consumer and has not arrived, as the connection was
// lost, or the program was started anew with the same name. Nothing is read or
// taken over meanwhile, so nothing else is on its way: it would be given twice.
void Reader::recover()
{
    for (const unsigned shard : shards_) {
        if (core_.is_taking_[shard]) {
            return; // on_taken() goes on
        }
    }
    is_busy_ = true;
    to_recover_ = shards_.size();
    for (size_t i = 0; i < shards_.size(); ++i) {
        ask(core_.pending_command(shards_[i]),
            [this, i](const Answer &answer) { on_pending(i, answer); });
    }
}

void Reader::ask(const Args &command, Done done)
{
    channel_->send(command, core_.durable_->params.request_timeout_us,
                   [weak = core_.weak_from_this(), this,
                    done = std::move(done)](const Answer &answer) {
                       const auto core = weak.lock();
                       if (!core || core->is_stopped_) {
                           return;
                       }
                       if (answer.status == LAWN_OK) {
                           done(answer);
                       } else {
                           on_failure(answer);
                       }
                   });
}

void Reader::on_pending(size_t index, const Answer &answer)
{
    const unsigned shard = shards_[index];
    std::vector<std::string> names = core_.not_here(shard, answer);
    if (names.empty()) {
        on_recovered();
        return;
    }
    Args claim = {"XCLAIM", core_.link_.key(shard, core_.config_.stream),
                  core_.config_.group, core_.config_.name, "0"};
    claim.insert(claim.end(), names.begin(), names.end());
    ask(claim, [this, index](const Answer &claimed) {
        const redisReply *const reply = claimed.reply;
        for (size_t i = 0; is_array(reply) && i < reply->elements; ++i) {
            take_entry(index, reply->element[i], 2);
        }
        on_recovered();
    });
}

// After a failure, is_busy_ is false or a pause runs, and all begins anew.
void Reader::on_recovered()
{
    if (to_recover_ > 0 && --to_recover_ == 0) {
        is_recovered_ = true;
        is_busy_ = false;
        core_.give();
        core_.take_timer_.start_after(0);
        read();
    }
}

void Reader::on_failure(const Answer &answer)
{
    to_recover_ = 0;
    if (!channel_ || !channel_->is_connected()) {
        return; // on_connected() goes on
    }
    pause_.start_after(failure_pause_us);
    if (answer.error && strstr(answer.error, "NOGROUP")) {
        core_.rejoin();
    }
}

size_t Reader::take_entries(const redisReply *reply)
{
    size_t count = 0;
    for (size_t i = 0; is_array(reply) && i < reply->elements; ++i) {
        const redisReply *const stream = reply->element[i];
        if (!is_array(stream) || stream->elements != 2 ||
            !is_string(stream->element[0]) || !is_array(stream->element[1])) {
            continue;
        }
        const auto key = keys_.find(
            std::string(stream->element[0]->str, stream->element[0]->len));
        if (key == keys_.end()) {
            continue;
        }
        const redisReply *const entries = stream->element[1];
        for (size_t k = 0; k < entries->elements; ++k) {
            count += take_entry(key->second, entries->element[k], 1);
        }
    }
    return count;
}

size_t Reader::take_entry(size_t index, const redisReply *entry,
                          unsigned deliveries)
{
    if (!is_array(entry) || entry->elements != 2 ||
        !is_string(entry->element[0])) {
        return 0;
    }
    core_.add(shards_[index], entry, deliveries);
    return 1;
}

} // namespace lawn::durable
