// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Pumps (pump.h).

#include "src/pump.h"

#include "base/base.h"
#include "src/cron.h"
#include "src/guard.h"
#include "src/name.h"
#include "src/refusal.h"
#include "src/url.h"

#include <algorithm>
#include <charconv>

namespace lawn::durable
{

namespace
{

constexpr unsigned most_fired = 200; // by one call
// Due times in one answer: those of the next calls, which do not wait for the
// answers before. Where answers come before the next call, one time is enough;
// each is dear to the store.
constexpr unsigned most_dues = 16;
constexpr unsigned few_dues = 1;
constexpr unsigned most_calls = 64; // of a shard, without their answers
constexpr uint64_t backup_delay_us = 20000;
constexpr uint64_t beat_us = 4000000;
constexpr uint64_t alive_us = 10000000; // without a heart-beat

// Each shard is looked at now and then, whatever messages say: should the
// store's clock be set forward, nobody would tell. More often while messages
// are lost, as a connection for them is missing.
constexpr uint64_t sweep_us = 30000000;
constexpr uint64_t sweep_often_us = 1000000;

} // namespace

PumpCore::PumpCore(lawn_durable_t *durable, PumpConfig config)
    : link_(*durable->link), config_(std::move(config)),
      call_timer_(durable->loop,
                  [this] {
                      touch();
                      schedule_->run(link_.loop().now());
                  }),
      beat_timer_(durable->loop, [this] { beat(true); }),
      sweep_timer_(durable->loop, [this] { sweep(); })
{
}

PumpCore::~PumpCore() = default;

void PumpCore::open()
{
    link_.when_open(this, [this] { start(); });
}

void PumpCore::start()
{
    ScheduleParams params;
    params.coalesce =
        lawn_time_from_usec(static_cast<double>(config_.coalesce_us));
    params.backup_delay = lawn_time_from_usec(backup_delay_us);
    params.acting = lawn_time_from_usec(beat_us);
    params.prefetch_us = static_cast<int64_t>(config_.prefetch_us);
    params.max_calls = most_calls;
    const unsigned count = link_.shards();
    Schedule::Store &store = *this;
    schedule_ = std::make_unique<Schedule>(store, count, params);
    is_near_.assign(count, false);
    is_renewing_.assign(count, false);
    renews_again_.assign(count, false);
    errors_.assign(count, "");
    cron_errors_.assign(count, "");
    std::vector<unsigned> all;
    channels_.clear(); // of an attempt without memory
    for (unsigned shard = 0; shard < count; ++shard) {
        shard_of_channel_[link_.wake_channel(shard)] = shard;
        all.push_back(shard);
        if (link_.is_cluster()) {
            open_channel({shard});
        }
    }
    if (!link_.is_cluster()) {
        open_channel(all);
    }
    link_.watch();
    beat(true);
    sweep();
}

void PumpCore::open_channel(std::vector<unsigned> shards)
{
    std::vector<std::string> names;
    names.reserve(shards.size());
    for (const unsigned shard : shards) {
        names.push_back(link_.wake_channel(shard));
    }
    const unsigned first = shards.front();
    Channel::Events events;
    events.connected = [this, shards = std::move(shards)] {
        on_connected(shards);
    };
    events.lost = [this](const char *) {
        touch();
        sweep_soon();
    };
    events.message = [this](std::string_view channel,
                            std::string_view message) {
        on_message(channel, message);
    };
    channels_.push_back(
        link_.open_channel(first, std::move(names), std::move(events)));
}

// Messages may have been lost before.
void PumpCore::on_connected(const std::vector<unsigned> &shards)
{
    touch();
    const lawn_time_t now = link_.loop().now();
    for (const unsigned shard : shards) {
        schedule_->ask(shard, now);
    }
}

void PumpCore::on_message(std::string_view channel, std::string_view message)
{
    touch();
    const auto shard = shard_of_channel_.find(std::string(channel));
    if (shard == shard_of_channel_.end()) {
        return;
    }
    const lawn_time_t now = link_.loop().now();
    int64_t due_us = 0;
    const char *const end = message.data() + message.size();
    const auto parsed = std::from_chars(message.data(), end, due_us);
    if (parsed.ec == std::errc() && parsed.ptr == end && due_us >= 0) {
        schedule_->wake(shard->second, due_us, now);
    } else {
        schedule_->ask(shard->second, now);
    }
}

void PumpCore::sweep()
{
    touch();
    const lawn_time_t now = link_.loop().now();
    for (unsigned shard = 0; shard < schedule_->shards(); ++shard) {
        schedule_->ask(shard, now);
    }
    const bool is_listening = std::all_of(
        channels_.begin(), channels_.end(),
        [](const auto &channel) { return channel->is_connected(); });
    sweep_timer_.start_after(is_listening ? sweep_us : sweep_often_us);
}

void PumpCore::touch()
{
    if (!is_touched_ && !is_closed_) {
        is_touched_ = true;
        ++stats_.wakeups;
        link_.loop().mark(this);
    }
}

void PumpCore::flush()
{
    is_touched_ = false;
    call_timer_.start_at(schedule_->next());
}

void PumpCore::fire(unsigned shard, uint64_t call)
{
    ++stats_.calls;
    const unsigned dues = is_near_[shard] ? few_dues : most_dues;
    Call c;
    c.function = "lawn_fire";
    c.tells_shards = true;
    c.keys = {Key::due,  Key::body,   Key::meta,   Key::out,
              Key::push, Key::ended0, Key::ended1, Key::cron};
    c.args = {std::to_string(most_fired), std::to_string(config_.prefetch_us),
              std::to_string(dues)};
    c.shard = shard;
    link_.call(std::move(c), [weak = weak_from_this(), shard, call,
                              dues](const Answer &answer) {
        if (const auto self = weak.lock()) {
            self->on_fired(shard, call, dues, answer);
        }
    });
}

void PumpCore::on_fired(unsigned shard, uint64_t call, unsigned dues,
                        const Answer &answer)
{
    if (is_closed_) {
        return;
    }
    touch();
    const lawn_time_t now = link_.loop().now();
    Fired fired;
    if (answer.status != LAWN_OK || !decode(answer.reply, &fired)) {
        ++stats_.errors;
        schedule_->on_lost(shard, call, now);
        note_failure("cannot fire shard " + std::to_string(shard), answer,
                     &errors_[shard]);
        return;
    }
    errors_[shard].clear();
    stats_.fired += fired.fired();
    for (const int64_t late : fired.late_us) {
        lawn_histogram_add(&stats_.lateness_us, static_cast<uint64_t>(late));
    }
    const auto round_trip_us =
        static_cast<uint64_t>(lawn_time_to_usec(now - answer.sent));
    lawn_histogram_add(&stats_.round_trip_us, round_trip_us);
    is_near_[shard] = round_trip_us < config_.coalesce_us;
    link_.note_time(shard, answer.sent, fired.now_us);
    FireReply reply;
    reply.now_us = fired.now_us;
    reply.fired = fired.fired();
    reply.is_more = fired.more;
    reply.is_full = fired.due_us.size() >= dues;
    reply.dues = std::move(fired.due_us);
    schedule_->on_answer(shard, call, std::move(reply), now);
    if (fired.cron > 0) {
        renew_crons(shard);
    } else {
        cron_errors_[shard].clear();
    }
}

void PumpCore::note_failure(const std::string &what, const Answer &answer,
                            std::string *error)
{
    if (answer.status == LAWN_OK) {
        *error = what + ": nobody can read its answer";
    } else if (is_lasting(answer)) {
        *error = what + ": " + answer.error;
    }
}

std::string PumpCore::error() const
{
    for (const auto *const all : {&errors_, &cron_errors_}) {
        for (const std::string &error : *all) {
            if (!error.empty()) {
                return error;
            }
        }
    }
    if (!beat_error_.empty()) {
        return beat_error_;
    }
    for (const std::unique_ptr<Channel> &channel : channels_) {
        if (!channel->error().empty()) {
            return "cannot listen for new timers: " + channel->error();
        }
    }
    return "";
}

int64_t PumpCore::store_time(unsigned shard, lawn_time_t time)
{
    return link_.store_time(shard, time);
}

lawn_time_t PumpCore::send_time(unsigned shard, int64_t store_us)
{
    return link_.send_time(shard, store_us);
}

void PumpCore::beat(bool is_staying)
{
    Call call;
    call.function = "lawn_beat";
    call.keys = {Key::pumps};
    call.args = {config_.name, is_staying ? "1" : "0",
                 std::to_string(alive_us)};
    link_.call(std::move(call),
               [weak = weak_from_this()](const Answer &answer) {
                   if (const auto self = weak.lock()) {
                       self->on_beat(answer);
                   }
               });
    if (is_staying) {
        touch();
        beat_timer_.start_after(beat_us);
    }
}

void PumpCore::on_beat(const Answer &answer)
{
    std::vector<std::string_view> names;
    if (is_closed_) {
        return;
    }
    touch();
    if (answer.status != LAWN_OK || !decode(answer.reply, &names)) {
        note_failure("cannot find the other pumps", answer, &beat_error_);
        return;
    }
    beat_error_.clear();
    const lawn_time_t now = link_.loop().now();
    const std::vector<std::string> pumps(names.begin(), names.end());
    for (unsigned shard = 0; shard < schedule_->shards(); ++shard) {
        const std::string preferred = preferred_pump(pumps, shard);
        schedule_->set_backup(
            shard, !preferred.empty() && preferred != config_.name, now);
    }
}

// For what nothing else calls for: no message comes without the channel, and a
// cron timer whose time is sought is not due.
void PumpCore::sweep_soon()
{
    sweep_timer_.start_after(sweep_often_us);
}

void PumpCore::close()
{
    if (schedule_) {
        schedule_->stop();
        attempt([this] { beat(false); }); // it will be missed otherwise
    }
    is_closed_ = true;
    link_.forget(this);
    link_.loop().forget(-1, this);
    call_timer_.stop();
    beat_timer_.stop();
    sweep_timer_.stop();
    channels_.clear();
}

} // namespace lawn::durable

using lawn::durable::guarded;
using lawn::durable::PumpConfig;
using lawn::durable::PumpCore;
using lawn::durable::refuse;

struct lawn_durable_pump : lawn::durable::Handle<PumpCore> {
    using Handle::Handle;
};

lawn_status_t
lawn_durable_pump_start_sized(lawn_durable_t *durable,
                              const lawn_durable_pump_params_t *pump_params,
                              size_t size, lawn_durable_pump_t **pump_p)
{
    return guarded([&] {
        lawn_durable_pump_params_t params;
        if (!lawn::read_known(pump_params, size, &params)) {
            return LAWN_ERR_UNSUPPORTED;
        }
        PumpConfig config;
        config.name = params.name ? params.name : lawn::durable::unique_name();
        config.prefetch_us = params.prefetch_us ? params.prefetch_us : 100000;
        config.coalesce_us = params.coalesce_us ? params.coalesce_us : 1000;
        // An hour is longer than what anybody wants of either.
        constexpr uint64_t longest_us = 3600000000;
        std::string error;
        if (!durable || durable->is_closing || !pump_p) {
            return refuse("there is no client, or it is being closed, or there "
                          "is no place for the pump");
        }
        if (!lawn::durable::check_id(config.name, &error)) {
            return refuse("the name " + error);
        }
        if (config.prefetch_us > longest_us ||
            config.coalesce_us > longest_us) {
            return refuse("prefetch_us or coalesce_us is more than an hour");
        }
        *pump_p = new lawn_durable_pump(durable, std::move(config));
        return LAWN_OK;
    });
}

void lawn_durable_pump_query_sized(const lawn_durable_pump_t *pump,
                                   lawn_durable_pump_stats_t *stats,
                                   size_t size)
{
    lawn::copy_known(stats, size, &pump->core->stats(),
                     sizeof(lawn_durable_pump_stats_t));
}

void lawn_durable_pump_close(lawn_durable_pump_t *pump)
{
    delete pump;
}
