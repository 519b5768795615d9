// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer's streams are read (reader.h).

#include "src/reader.h"

#include "src/deliveries.h"
#include "src/guard.h"
#include "src/handle.h"
#include "src/joining.h"
#include "src/release.h"
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
constexpr size_t most_at_once = 128;  // entries of a shard
constexpr size_t most_released = 500; // entries of a call
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

Reader::Reader(const Parts &parts, std::vector<unsigned> shards, Owner &owner)
    : link_(parts.link), config_(parts.config),
      request_timeout_us_(parts.request_timeout_us), joining_(parts.joining),
      deliveries_(parts.deliveries), take_over_(parts.take_over),
      errors_(parts.errors), shards_(std::move(shards)), owner_(owner),
      pause_(link_.loop(), [this] {
          is_busy_ = false;
          read();
      })
{
    for (const unsigned shard : shards_) {
        states_[shard] = State();
        keys_[link_.key(shard, config_.stream)] = shard;
    }
}

void Reader::open()
{
    Channel::Events events;
    events.connected = [this] { on_connected(); };
    events.lost = [this](const char *) {
        pause_.stop();
        to_recover_.clear();
        refused_since_ = LAWN_TIME_INFINITY;
        is_busy_ = true; // until it is connected again
    };
    channel_ = link_.open_channel(shards_.front(), {}, std::move(events));
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
    is_recovered_ = false;
    read();
}

void Reader::read()
{
    if (is_busy_ || !channel_ || !channel_->is_connected() ||
        !joining_.is_settled(shards_)) {
        return;
    }
    if (!attempt([this] { must_recover() ? recover() : read_next(); })) {
        to_recover_.clear();
        is_busy_ = true;
        pause_.start_after(retry_us);
    }
}

bool Reader::wants_nothing_taken() const
{
    return !to_recover_.empty() ||
           (channel_ && channel_->is_connected() && must_recover());
}

void Reader::suspect(unsigned shard)
{
    states_.at(shard).is_suspect = true;
}

// Also if a shard was joined late.
bool Reader::must_recover() const
{
    return !config_.no_answer &&
           (!is_recovered_ ||
            std::any_of(shards_.begin(), shards_.end(), [this](unsigned shard) {
                return joining_.is_joined(shard) && !states_.at(shard).is_known;
            }));
}

std::vector<unsigned> Reader::readable() const
{
    std::vector<unsigned> shards;
    for (const unsigned shard : shards_) {
        if (!joining_.is_joined(shard)) {
            continue;
        }
        if (states_.at(shard).is_suspect) {
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
    if (states_.at(shards[0]).is_suspect) {
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
        states_.at(shard).is_suspect = false;
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
        to_recover_.clear();
        return; // on_connected() goes on
    }
    if (has_no_group(answer) || will_pass(answer)) {
        to_recover_.clear();
        pause_.start_after(failure_pause_us);
        if (has_no_group(answer)) {
            joining_.rejoin();
        } else {
            on_busy(shards, answer);
        }
        return;
    }
    for (const unsigned shard : shards) {
        states_.at(shard).is_suspect = true;
    }
    if (shards.size() == 1) {
        errors_.note(shards[0], answer);
        joining_.leave_out(shards[0], answer);
    }
    if (!to_recover_.empty()) {
        on_recovered();
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

// What was given to this consumer and has not arrived, as the connection was
// lost, or the program was started anew with the same name. Nothing is read or
// taken over meanwhile, so nothing else is on its way: it would be given twice.
void Reader::recover()
{
    for (const unsigned shard : shards_) {
        if (take_over_.is_busy(shard)) {
            return; // the answer goes on
        }
    }
    std::vector<unsigned> joined;
    for (const unsigned shard : shards_) {
        if (joining_.is_joined(shard)) {
            joined.push_back(shard);
        }
    }
    if (joined.empty()) {
        return; // on_joined() goes on
    }
    is_busy_ = true;
    to_recover_ = std::move(joined);
    recover_one();
}

void Reader::recover_one()
{
    const unsigned shard = to_recover_.back();
    ask(shard, pending_command(link_, config_, shard),
        [this, shard](const Answer &answer) { on_pending(shard, answer); });
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

void Reader::on_pending(unsigned shard, const Answer &answer)
{
    std::vector<std::string> entries = deliveries_.not_here(shard, answer);
    State &state = states_.at(shard);
    if (!state.is_known) {
        deliveries_.inherit(shard, entries);
        state.is_known = true;
    }
    std::reverse(entries.begin(), entries.end()); // the last one is next
    std::stable_partition(entries.begin(), entries.end(),
                          [&](const std::string &entry) {
                              return deliveries_.is_inherited(shard, entry);
                          });
    regain(shard, std::move(entries));
}

// A program of the same name may have been given an entry, and have died of it.
// So such entries are taken one by one, each is given before the next one is
// taken, and each time counts as an attempt. What else is not here was lost
// with a connection, and nobody has seen it. That is no attempt: its lease is
// ended, and then it is taken over like all whose lease is over.
void Reader::regain(unsigned shard, std::vector<std::string> entries)
{
    const auto is_inherited = [this, shard](const std::string &entry) {
        return deliveries_.is_inherited(shard, entry);
    };
    // What there is no room for is taken over when its lease is over.
    if (entries.empty() ||
        (is_inherited(entries.back()) && owner_.share() == 0)) {
        on_recovered();
        return;
    }
    size_t count = 1;
    const bool is_lost = !is_inherited(entries.back());
    while (is_lost && count < std::min(entries.size(), most_released) &&
           !is_inherited(entries.end()[-1 - static_cast<ptrdiff_t>(count)])) {
        ++count;
    }
    Call call = take_over_.call_for(shard, count);
    if (is_lost) {
        call.function = "lawn_release";
        call.keys = {config_.stream};
        call.args.resize(2); // the group and the consumer
    }
    const auto first = entries.end() - static_cast<ptrdiff_t>(count);
    call.args.insert(call.args.end(), first, entries.end());
    entries.erase(first, entries.end());
    link_.call(std::move(call),
               owner_.if_running([this, shard, left = std::move(entries)](
                                     const Answer &answer) {
                   on_regained(shard, left, answer);
               }));
    take_over_.set_busy(shard, true);
}

void Reader::on_regained(unsigned shard, std::vector<std::string> left,
                         const Answer &answer)
{
    take_over_.set_busy(shard, false);
    const bool is_added =
        attempt([&] { deliveries_.add_taken(shard, answer); });
    if (to_recover_.empty()) {
        owner_.go_on(); // the connection was lost: recover() waits for this
    } else if (is_lasting(answer) && answer.status != LAWN_ERR_TIMED_OUT) {
        on_refused({shard}, answer);
    } else if (answer.status != LAWN_OK || !is_added) {
        if (is_lasting(answer)) {
            errors_.tell(shard, answer.error);
        }
        to_recover_.clear();
        pause_.start_after(failure_pause_us);
    } else {
        owner_.go_on();
        if (!channel_) {
            return; // the program has stopped the consumer
        }
        regain(shard, std::move(left));
    }
}

// After a failure, is_busy_ is false or a pause runs, and all begins anew.
void Reader::on_recovered()
{
    if (to_recover_.empty()) {
        return;
    }
    to_recover_.pop_back();
    if (!to_recover_.empty()) {
        recover_one();
    } else {
        is_recovered_ = true;
        is_busy_ = false;
        take_over_.soon();
        owner_.go_on();
        read();
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
