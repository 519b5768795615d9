// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// When a pump calls for which shard (schedule.h).

#include "src/schedule.h"

#include "base/base.h"
#include "src/guard.h"

#include <algorithm>
#include <new>
#include <utility>

namespace lawn::durable
{

namespace
{

// The pause after a lost call doubles from the first to the last.
constexpr double first_pause_ms = 5;
constexpr unsigned most_doublings = 8;

// This many calls of a shard may wait for their answers before the next ones
// are sent further apart.
constexpr size_t calls_at_full_rate = 4;

// Mixes well: FNV-1a, and the finalizer of splitmix64.
uint64_t weigh(const std::string &pump, unsigned shard)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : pump) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    hash += (uint64_t{shard} + 1) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
    return hash ^ (hash >> 31);
}

} // namespace

Schedule::Schedule(Store &store, unsigned shards, const ScheduleParams &params)
    : store_(store), params_(params), shards_(shards)
{
    for (Shard &shard : shards_) {
        lawn_timer_init(&shard.alarm.timer, on_timer);
        shard.alarm.schedule = this;
        shard.alarm.shard = index(shard);
        shard.covered_us = INT64_MIN;
        shard.known_us = INT64_MIN;
        shard.wake_us = never_us;
        shard.calls.reserve(params.max_calls);
    }
    if (lawn_create(nullptr, &lawn_) != LAWN_OK) {
        throw std::bad_alloc();
    }
}

Schedule::~Schedule()
{
    lawn_destroy(lawn_);
}

lawn_time_t Schedule::next()
{
    lawn_settle(lawn_, 0);
    return lawn_next(lawn_);
}

void Schedule::run(lawn_time_t now)
{
    lawn_advance(lawn_, now, 0);
    while (Alarm *const alarm = expired_) {
        expired_ = alarm->next;
        call(&shards_[alarm->shard], now);
    }
}

void Schedule::stop()
{
    is_stopped_ = true;
    for (Shard &shard : shards_) {
        lawn_timer_stop(lawn_, &shard.alarm.timer);
    }
}

void Schedule::ask(unsigned shard, lawn_time_t now)
{
    shards_[shard].is_asked = true;
    arm(&shards_[shard], now);
}

void Schedule::wake(unsigned shard, int64_t due_us, lawn_time_t now)
{
    Shard *const s = &shards_[shard];
    // An earlier one for which a call was sent must not hide this one.
    s->wake_us =
        s->wake_us > s->covered_us ? std::min(s->wake_us, due_us) : due_us;
    s->wake_call = last_call_;
    // The timer may be older than the latest call: then that call has not
    // covered it.
    if (due_us <= s->covered_us) {
        s->is_asked = true;
    }
    arm(s, now);
}

void Schedule::set_backup(unsigned shard, bool is_backup, lawn_time_t now)
{
    Shard *const s = &shards_[shard];
    if (s->is_backup != is_backup) {
        s->is_backup = is_backup;
        arm(s, now);
    }
}

bool Schedule::take_call(Shard *shard, uint64_t call)
{
    const auto at = std::find(shard->calls.begin(), shard->calls.end(), call);
    if (at == shard->calls.end()) {
        return false;
    }
    shard->calls.erase(at);
    --calls_;
    return true;
}

void Schedule::on_answer(unsigned shard, uint64_t call, FireReply reply,
                         lawn_time_t now)
{
    Shard *const s = &shards_[shard];
    if (!take_call(s, call)) {
        return;
    }
    s->lost = 0;
    s->not_before = 0;
    s->dues = std::move(reply.dues);
    s->known_us = reply.now_us + params_.prefetch_us;
    if (reply.is_full) {
        s->known_us = std::min(s->known_us, s->dues.back());
    }
    if (s->wake_call < call) {
        s->wake_us = never_us; // the answer has it
    } else if (s->wake_us <= reply.now_us) {
        // It was told while the call was under way, and may have been started
        // before the call came to the store or after: it is due by then.
        s->is_asked = true;
    }
    if (s->calls.empty()) {
        s->covered_us = reply.now_us;
    }
    if (reply.is_more) {
        s->is_asked = true;
    }
    if (s->is_backup && reply.fired > 0) {
        s->acting_until = now + params_.acting;
    }
    arm(s, now);
}

void Schedule::on_lost(unsigned shard, uint64_t call, lawn_time_t now)
{
    Shard *const s = &shards_[shard];
    if (!take_call(s, call)) {
        return;
    }
    const double pause =
        first_pause_ms * (1U << std::min(s->lost, most_doublings));
    ++s->lost;
    s->not_before = now + lawn_time_from_msec(pause);
    s->is_asked = true;
    arm(s, now);
}

unsigned Schedule::index(const Shard &shard) const
{
    return static_cast<unsigned>(&shard - shards_.data());
}

// Returns the first due time that no call was sent for.
int64_t Schedule::first_due(const Shard &shard) const
{
    const auto due = std::upper_bound(shard.dues.begin(), shard.dues.end(),
                                      shard.covered_us);
    const int64_t first = due == shard.dues.end() ? never_us : *due;
    return shard.wake_us > shard.covered_us ? std::min(first, shard.wake_us)
                                            : first;
}

// When to call for the first due time. If what follows it is not known, that
// is some time before: the answer has it, and shows the store's clock anew.
lawn_time_t Schedule::time_of_due(const Shard &shard, lawn_time_t now) const
{
    const int64_t due = first_due(shard);
    if (due == never_us) {
        return LAWN_TIME_INFINITY;
    }
    if (due > shard.known_us) {
        return store_.send_time(index(shard), due - params_.prefetch_us / 2);
    }
    const lawn_time_t time = store_.send_time(index(shard), due);
    return shard.is_backup && shard.acting_until <= now
               ? time + params_.backup_delay
               : time;
}

lawn_time_t Schedule::time_of_call(const Shard &shard, lawn_time_t now) const
{
    const lawn_time_t time = shard.is_asked ? now : time_of_due(shard, now);
    if (time == LAWN_TIME_INFINITY) {
        return time;
    }
    // The more calls wait for their answers, the more timers each call fires.
    const lawn_time_t apart =
        params_.coalesce * (1 + shard.calls.size() / calls_at_full_rate);
    const lawn_time_t earliest = shard.sent ? shard.sent + apart : 0;
    return std::max({time, earliest, shard.not_before});
}

void Schedule::arm(Shard *shard, lawn_time_t now)
{
    if (is_stopped_) {
        return;
    }
    const lawn_time_t time = time_of_call(*shard, now);
    if (time == LAWN_TIME_INFINITY ||
        shard->calls.size() >= params_.max_calls) {
        lawn_timer_stop(lawn_, &shard->alarm.timer);
    } else {
        lawn_timer_start_at(lawn_, &shard->alarm.timer, now, time);
    }
}

void Schedule::call(Shard *shard, lawn_time_t now)
{
    shard->is_asked = false;
    shard->sent = now;
    shard->covered_us =
        std::max(shard->covered_us, store_.store_time(index(*shard), now));
    shard->calls.push_back(++last_call_);
    ++calls_;
    if (attempt([&] { store_.fire(index(*shard), last_call_); })) {
        arm(shard, now);
    } else {
        on_lost(index(*shard), last_call_, now);
    }
}

// No call from here: exceptions may not pass through lawn_advance().
void Schedule::on_timer(lawn_timer_t *timer, lawn_time_t)
{
    Alarm *const alarm = lawn_container_of(timer, Alarm, timer);
    alarm->next = alarm->schedule->expired_;
    alarm->schedule->expired_ = alarm;
}

std::string preferred_pump(const std::vector<std::string> &pumps,
                           unsigned shard)
{
    std::string best;
    uint64_t most = 0;
    for (const std::string &pump : pumps) {
        const uint64_t weight = weigh(pump, shard);
        if (best.empty() || weight > most || (weight == most && pump < best)) {
            best = pump;
            most = weight;
        }
    }
    return best;
}

} // namespace lawn::durable
