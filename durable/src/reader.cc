// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer's streams are read (reader.h).

#include "src/reader.h"

#include "src/deliveries.h"
#include "src/guard.h"
#include "src/joining.h"
#include "src/session.h"
#include "src/shard_errors.h"
#include "src/take_over.h"

#include <algorithm>
#include <string.h>

namespace lawn::durable
{

namespace
{

constexpr uint64_t block_ms = 5000;
// While a shard is left out, which may be back at any time.
constexpr uint64_t short_block_ms = 1000;
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

bool has_no_group(const Answer &answer)
{
    return answer.error && strstr(answer.error, "NOGROUP");
}

// It is about the server, and no fault of the shard.
bool will_pass(const Answer &answer)
{
    const std::string_view error = answer.error ? answer.error : "";
    return is_passing(error) || begins_with(error, "MOVED ") ||
           begins_with(error, "ASK ") || begins_with(error, "UNBLOCKED");
}

} // namespace

Reader::Reader(const ReaderParts &parts, std::vector<unsigned> shards,
               Owner &owner)
    : link_(parts.link), config_(parts.config),
      request_timeout_us_(parts.request_timeout_us), joining_(parts.joining),
      deliveries_(parts.deliveries), take_over_(parts.take_over),
      errors_(parts.errors), shards_(std::move(shards)), owner_(owner),
      recovery_(parts, shards_, *this), pause_(link_.loop(), [this] {
          is_busy_ = false;
          read();
      })
{
    for (const unsigned shard : shards_) {
        is_suspect_[shard] = false;
        keys_[link_.key(shard, config_.stream)] = shard;
    }
}

void Reader::open()
{
    Channel::Events events;
    events.connected = [this] { on_connected(); };
    events.lost = [this](const char *) {
        pause_.stop();
        recovery_.end();
        refused_since_ = LAWN_TIME_INFINITY;
        is_busy_ = true; // until it is connected again
    };
    channel_ = link_.open_channel(shards_.front(), {}, std::move(events));
}

void Reader::close()
{
    channel_.reset();
    pause_.stop();
    recovery_.end();
    is_busy_ = true;
}

void Reader::on_connected()
{
    is_busy_ = false;
    recovery_.reset();
    read();
}

void Reader::read()
{
    if (is_busy_ || !channel_ || !channel_->is_connected() ||
        !joining_.is_settled(shards_)) {
        return;
    }
    const bool has_memory = attempt([this] {
        if (recovery_.is_needed()) {
            is_busy_ = recovery_.begin();
        } else {
            read_next();
        }
    });
    if (!has_memory) {
        recovery_.end();
        is_busy_ = true;
        pause_.start_after(retry_us);
    }
}

bool Reader::wants_nothing_taken() const
{
    return recovery_.is_running() ||
           (channel_ && channel_->is_connected() && recovery_.is_needed());
}

void Reader::suspect(unsigned shard)
{
    is_suspect_.at(shard) = true;
}

std::vector<unsigned> Reader::readable() const
{
    std::vector<unsigned> shards;
    for (const unsigned shard : shards_) {
        if (!joining_.is_joined(shard)) {
            continue;
        }
        if (is_suspect_.at(shard)) {
            return {shard};
        }
        shards.push_back(shard);
    }
    return shards;
}

void Reader::read_next()
{
    const size_t room = owner_.share();
    std::vector<unsigned> shards = readable();
    if (room == 0 || shards.empty()) {
        return;
    }
    if (is_suspect_.at(shards[0])) {
        round_ = 0;
        send_read(std::move(shards), std::min(room, most_at_once), false);
        return;
    }
    round_ = shards.size();
    bool is_blocking = true;
    size_t count = std::min(room / round_, most_at_once);
    if (count == 0) {
        count = 1;
        is_blocking = in_vain_ >= round_;
    }
    if (!is_blocking) {
        std::vector<unsigned> some;
        for (size_t i = std::min(room, round_ - in_vain_); i > 0; --i) {
            some.push_back(shards[next_ % round_]);
            next_ = (next_ + 1) % round_;
        }
        shards.swap(some);
    }
    send_read(std::move(shards), count, is_blocking);
}

void Reader::send_read(std::vector<unsigned> shards, size_t count,
                       bool is_blocking)
{
    is_busy_ = true;
    const Args args = command(shards, count, is_blocking);
    channel_->send(args, block_ms * 1000 + request_timeout_us_,
                   owner_.if_running(
                       [this, read = std::move(shards)](const Answer &answer) {
                           on_read(read, answer);
                       }));
}

Args Reader::command(const std::vector<unsigned> &shards, size_t count,
                     bool is_blocking) const
{
    Args args = {"XREADGROUP", "GROUP", config_.group,
                 config_.name, "COUNT", std::to_string(count)};
    if (is_blocking) {
        const bool is_all = shards.size() == shards_.size();
        args.insert(
            args.end(),
            {"BLOCK", std::to_string(is_all ? block_ms : short_block_ms)});
    }
    // A group that only reads, and does not answer, leaves no entry waiting.
    if (config_.no_answer && !joining_.is_first()) {
        args.push_back("NOACK");
    }
    args.push_back("STREAMS");
    for (const unsigned shard : shards) {
        args.push_back(link_.key(shard, config_.stream));
    }
    args.insert(args.end(), shards.size(), ">");
    return args;
}

void Reader::on_read(const std::vector<unsigned> &shards, const Answer &answer)
{
    if (answer.status != LAWN_OK) {
        on_refused(shards, answer);
        return;
    }
    is_busy_ = false;
    refused_since_ = LAWN_TIME_INFINITY;
    for (const unsigned shard : shards) {
        is_suspect_.at(shard) = false;
        errors_.clear(shard);
    }
    const size_t count = take_entries(answer.reply);
    in_vain_ = count > 0 || in_vain_ >= round_ ? 0 : in_vain_ + shards.size();
    owner_.go_on();
    read();
}

// `shards`: those that were asked for, of which one or more have failed.
void Reader::on_refused(const std::vector<unsigned> &shards,
                        const Answer &answer)
{
    if (!channel_ || !channel_->is_connected()) {
        recovery_.end();
        return; // on_connected() goes on
    }
    if (has_no_group(answer) || will_pass(answer)) {
        recovery_.end();
        pause_.start_after(failure_pause_us);
        if (has_no_group(answer)) {
            joining_.rejoin();
        } else {
            on_busy(shards, answer);
        }
        return;
    }
    for (const unsigned shard : shards) {
        is_suspect_.at(shard) = true;
    }
    if (shards.size() == 1) {
        errors_.note(shards[0], answer);
        joining_.leave_out(shards[0], answer);
    }
    if (recovery_.is_running()) {
        recovery_.next();
    } else {
        is_busy_ = false;
        read();
    }
}

void Reader::on_busy(const std::vector<unsigned> &shards, const Answer &answer)
{
    const lawn_time_t now = link_.loop().now();
    refused_since_ = std::min(refused_since_, now);
    const auto limit_us = static_cast<double>(request_timeout_us_);
    for (const unsigned shard : shards) {
        if (now - refused_since_ >= lawn_time_from_usec(limit_us)) {
            errors_.tell(shard, answer.error);
        }
    }
}

void Reader::ask(unsigned shard, const Args &command, Done done)
{
    channel_->send(command, request_timeout_us_,
                   owner_.if_running([this, shard, done = std::move(done)](
                                         const Answer &answer) {
                       if (answer.status == LAWN_OK) {
                           done(answer);
                       } else {
                           on_refused({shard}, answer);
                       }
                   }));
}

bool Reader::has_room() const
{
    return owner_.share() > 0;
}

void Reader::go_on()
{
    owner_.go_on();
}

Done Reader::if_running(Done done)
{
    return owner_.if_running(std::move(done));
}

void Reader::on_failed()
{
    pause_.start_after(failure_pause_us);
}

void Reader::on_recovered()
{
    is_busy_ = false;
    take_over_.soon();
    owner_.go_on();
    read();
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
            const redisReply *const entry = entries->element[k];
            if (is_array(entry) && entry->elements == 2 &&
                is_string(entry->element[0])) {
                deliveries_.add(key->second, entry, 1);
                ++count;
            }
        }
    }
    return count;
}

} // namespace lawn::durable
