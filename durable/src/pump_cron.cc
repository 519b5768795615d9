// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A pump gives cron timers their next times (pump.h).

#include "src/pump.h"

#include "src/codec.h"
#include "src/cron.h"

namespace lawn::durable
{

namespace
{

constexpr unsigned most_crons = 100; // renewed by one call
constexpr size_t most_parsed = 1000; // expressions

} // namespace

// The store cannot compute the times of cron expressions. A timer waits with
// its next time at hand; when it has fired, the time after that is put there.
void PumpCore::renew_crons(unsigned shard)
{
    if (is_renewing_[shard]) {
        renews_again_[shard] = true;
        return;
    }
    renews_again_[shard] = false;
    Call call;
    call.function = "lawn_cron";
    call.keys = {Key::body, Key::cron};
    call.args = {std::to_string(most_crons)};
    call.shard = shard;
    link_.call(std::move(call),
               [weak = weak_from_this(), shard](const Answer &answer) {
                   if (const auto self = weak.lock()) {
                       self->on_crons(shard, answer);
                   }
               });
    is_renewing_[shard] = true;
}

void PumpCore::on_crons(unsigned shard, const Answer &answer)
{
    is_renewing_[shard] = false;
    CronTimers found;
    if (is_closed_) {
        return;
    }
    touch();
    if (answer.status != LAWN_OK || !decode(answer.reply, &found)) {
        ++stats_.errors;
        sweep_soon();
        note_failure("cannot find cron timers of shard " +
                         std::to_string(shard),
                     answer, &cron_errors_[shard]);
        return;
    }
    std::string error;
    Call call;
    call.function = "lawn_renew";
    call.keys = {Key::due, Key::body, Key::meta, Key::cron};
    call.shard = shard;
    for (const CronTimer &timer : found.timers) {
        int64_t next_us = 0;
        if (find_next(timer, &next_us)) {
            call.args.insert(call.args.end(), {std::string(timer.id),
                                               std::to_string(timer.generation),
                                               std::to_string(next_us)});
        } else {
            error = "cannot load the time zone " + std::string(timer.zone);
        }
    }
    // Those that were removed may have hidden others.
    if (call.args.empty()) {
        cron_errors_[shard] = error;
        if (found.removed > 0 || renews_again_[shard]) {
            renew_crons(shard);
        }
        return;
    }
    const bool is_more = found.removed + found.timers.size() == most_crons;
    link_.call(
        std::move(call), [weak = weak_from_this(), shard, is_more, error,
                          removed = found.removed](const Answer &renewed) {
            const auto self = weak.lock();
            if (!self || self->is_closed_) {
                return;
            }
            self->on_renewed(shard, error, renewed);
            if (renewed.status == LAWN_OK &&
                (self->renews_again_[shard] ||
                 (is_more && (removed > 0 || renewed.reply->integer > 0)))) {
                self->renew_crons(shard);
            }
        });
    is_renewing_[shard] = true;
}

// What was told before stays until then: otherwise it would seem to be over
// each time that lawn_cron alone is answered.
void PumpCore::on_renewed(unsigned shard, const std::string &error,
                          const Answer &answer)
{
    touch();
    is_renewing_[shard] = false;
    if (answer.status == LAWN_OK) {
        cron_errors_[shard] = error;
    } else {
        ++stats_.errors;
        sweep_soon();
        note_failure("cannot give cron timers of shard " +
                         std::to_string(shard) + " their next times",
                     answer, &cron_errors_[shard]);
    }
}

// Puts 0 into *next_us if the expression has no further time. Returns false if
// nobody knows that here, where the zone is not. Another pump may know it.
bool PumpCore::find_next(const CronTimer &timer, int64_t *next_us)
{
    *next_us = 0;
    const std::string name =
        std::string(timer.expression) + '\n' + std::string(timer.zone);
    auto at = crons_.find(name);
    if (at == crons_.end()) {
        if (crons_.size() >= most_parsed) {
            crons_.clear();
        }
        auto cron = std::make_unique<Cron>();
        std::string error;
        if (!cron->parse(timer.expression, timer.zone, &error)) {
            return !cron->parse(timer.expression, "", &error);
        }
        at = crons_.emplace(name, std::move(cron)).first;
    }
    if (!at->second->next(timer.after_us, next_us)) {
        *next_us = 0;
    }
    return true;
}

} // namespace lawn::durable
