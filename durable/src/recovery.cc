// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What has not arrived is given again (recovery.h).

#include "src/recovery.h"

#include "src/deliveries.h"
#include "src/guard.h"
#include "src/handle.h"
#include "src/joining.h"
#include "src/release.h"
#include "src/shard_errors.h"
#include "src/take_over.h"

#include <algorithm>
#include <cstddef>

namespace lawn::durable
{

namespace
{

constexpr size_t most_released = 500; // entries of a call

} // namespace

Recovery::Recovery(const ReaderParts &parts,
                   const std::vector<unsigned> &shards, Owner &owner)
    : link_(parts.link), config_(parts.config), joining_(parts.joining),
      deliveries_(parts.deliveries), take_over_(parts.take_over),
      errors_(parts.errors), owner_(owner)
{
    for (const unsigned shard : shards) {
        is_known_[shard] = false;
    }
}

void Recovery::reset()
{
    is_recovered_ = false;
}

bool Recovery::is_needed() const
{
    return !config_.no_answer &&
           (!is_recovered_ ||
            std::any_of(is_known_.begin(), is_known_.end(), [this](auto &i) {
                return joining_.is_joined(i.first) && !i.second;
            }));
}

bool Recovery::begin()
{
    std::vector<unsigned> joined;
    for (const auto &[shard, known] : is_known_) {
        if (take_over_.is_busy(shard)) {
            return false;
        }
        if (joining_.is_joined(shard)) {
            joined.push_back(shard);
        }
    }
    if (joined.empty()) {
        return false;
    }
    to_recover_ = std::move(joined);
    recover_one();
    return true;
}

void Recovery::recover_one()
{
    const unsigned shard = to_recover_.back();
    owner_.ask(
        shard, pending_command(link_, config_, shard),
        [this, shard](const Answer &answer) { on_pending(shard, answer); });
}

void Recovery::on_pending(unsigned shard, const Answer &answer)
{
    // What another program of this name was given, it has been given for
    // whatever time.
    const uint64_t within_us = is_known(shard) ? config_.lease_us : UINT64_MAX;
    std::vector<std::string> entries =
        deliveries_.not_here(shard, names_of(answer, within_us));
    if (!is_known(shard)) {
        deliveries_.inherit(shard, entries);
        is_known_.at(shard) = true;
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
void Recovery::regain(unsigned shard, std::vector<std::string> entries)
{
    const auto is_inherited = [this, shard](const std::string &entry) {
        return deliveries_.is_inherited(shard, entry);
    };
    // What there is no room for is taken over when its lease is over.
    if (entries.empty() ||
        (is_inherited(entries.back()) && !owner_.has_room())) {
        next();
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

void Recovery::on_regained(unsigned shard, std::vector<std::string> left,
                           const Answer &answer)
{
    take_over_.set_busy(shard, false);
    const bool is_added =
        attempt([&] { deliveries_.add_taken(shard, answer); });
    if (!is_running()) {
        owner_.go_on(); // the connection was lost: begin() waits for this
    } else if (is_lasting(answer) && answer.status != LAWN_ERR_TIMED_OUT) {
        owner_.on_refused({shard}, answer);
    } else if (answer.status != LAWN_OK || !is_added) {
        errors_.note(shard, answer);
        end();
        owner_.on_failed();
    } else {
        owner_.go_on();
        if (!is_running()) {
            return; // the program has stopped the consumer
        }
        regain(shard, std::move(left));
    }
}

void Recovery::next()
{
    if (!is_running()) {
        return; // it has failed: all begins anew
    }
    to_recover_.pop_back();
    if (is_running()) {
        recover_one();
    } else {
        is_recovered_ = true;
        owner_.on_recovered();
    }
}

void Recovery::end()
{
    to_recover_.clear();
}

} // namespace lawn::durable
