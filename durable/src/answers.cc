// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Batches of answers (answers.h).

#include "src/answers.h"

#include "src/guard.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr size_t most_in_batch = 200;
constexpr uint64_t first_pause_us = 20000;
constexpr unsigned most_doublings = 7;
constexpr size_t most_awaited = 64;
// A batch that is not large comes so long after the one before.
constexpr uint64_t apart_us = 3000;

// May the same batch succeed later? If not, the deliveries go to others when
// their leases are over.
bool is_transient(lawn_status_t status)
{
    return status == LAWN_ERR_IO || status == LAWN_ERR_TIMED_OUT ||
           status == LAWN_ERR_NO_MEMORY || status == LAWN_ERR_BUSY;
}

} // namespace

Answers::Answers(Link &link, Key stream, std::string group, size_t in_flight,
                 std::function<void(unsigned, const std::string &)> answered)
    : link_(link), stream_(stream), group_(std::move(group)),
      enough_(std::min(in_flight / 4, most_awaited)),
      answered_(std::move(answered))
{
}

Answers::Shard *Answers::at(unsigned shard)
{
    if (shards_.size() <= shard) {
        shards_.resize(shard + 1);
    }
    if (!shards_[shard]) {
        auto made = std::make_unique<Shard>();
        made->pause = std::make_unique<Timer>(link_.loop(),
                                              [this, shard] { send(shard); });
        shards_[shard] = std::move(made);
    }
    return shards_[shard].get();
}

void Answers::add(unsigned shard, Verdict verdict)
{
    at(shard)->waiting.push_back(std::move(verdict));
    ++size_;
    link_.loop().mark(this);
}

void Answers::close()
{
    is_closed_ = true;
    link_.loop().forget(-1, this);
    for (unsigned shard = 0; shard < shards_.size(); ++shard) {
        Shard *const s = shards_[shard].get();
        if (!s) {
            continue;
        }
        s->pause->stop();
        bool has_memory = true;
        while (has_memory && !(s->sent.empty() && s->waiting.empty())) {
            has_memory = attempt([&] {
                take_batch(s);
                link_.call(call_for(shard), [](const Answer &) {});
            });
            for (; !s->sent.empty(); s->sent.pop_front()) {
                finish_closed(shard, s->sent.front());
            }
        }
        for (const Verdict &verdict : s->waiting) {
            finish_closed(shard, verdict);
        }
        s->waiting.clear();
    }
}

void Answers::finish_closed(unsigned shard, const Verdict &verdict)
{
    finish(shard, verdict, LAWN_ERR_IO, "unknown: the consumer was closed",
           Answered::too_late, false);
}

void Answers::flush()
{
    for (unsigned shard = 0; shard < shards_.size() && !is_closed_; ++shard) {
        if (shards_[shard] && shards_[shard]->sent.empty()) {
            send_soon(shard);
        }
    }
}

// What waits takes room from what the consumer could read, so not much does.
void Answers::send_soon(unsigned shard)
{
    Shard *const s = shards_[shard].get();
    if (s->waiting.empty()) {
        return;
    }
    if (s->waiting.size() >= enough_ || s->not_before <= link_.loop().now()) {
        s->pause->stop();
        send(shard);
    } else if (!s->pause->is_active()) {
        s->pause->start_at(s->not_before);
    }
}

// Makes the next batch, unless there is the one before.
void Answers::take_batch(Shard *shard)
{
    if (shard->sent.empty()) {
        std::vector<Verdict> &waiting = shard->waiting;
        const size_t count = std::min(waiting.size(), most_in_batch);
        const auto end = waiting.begin() + static_cast<ptrdiff_t>(count);
        shard->sent.resize(count); // fails before anything is moved
        std::move(waiting.begin(), end, shard->sent.begin());
        waiting.erase(waiting.begin(), end);
    }
}

Call Answers::call_for(unsigned shard) const
{
    Call call;
    call.function = "lawn_answer";
    call.keys = {Key::due,    Key::body,   Key::meta, stream_,
                 Key::ended0, Key::ended1, Key::dead};
    call.shard = shard;
    call.args.push_back(group_);
    for (const Verdict &verdict : shards_[shard]->sent) {
        call.args.insert(call.args.end(), {verdict.entry, verdict.id,
                                           verdict.identity, verdict.text});
    }
    return call;
}

// Sends the next batch, or the one before again. Without memory, a little
// later.
void Answers::send(unsigned shard)
{
    Shard *const s = shards_[shard].get();
    const bool is_done = attempt([&] {
        take_batch(s);
        if (!s->sent.empty()) {
            s->not_before = link_.loop().now() + lawn_time_from_usec(apart_us);
            link_.call(call_for(shard),
                       [weak = weak_from_this(), shard](const Answer &answer) {
                           if (const auto self = weak.lock()) {
                               self->on_answer(shard, answer);
                           }
                       });
        }
    });
    if (!is_done) {
        s->pause->start_after(retry_us);
    }
}

void Answers::on_answer(unsigned shard, const Answer &answer)
{
    if (is_closed_) {
        return;
    }
    Shard *const s = at(shard);
    if (is_transient(answer.status)) {
        s->is_unknown |=
            answer.status == LAWN_ERR_IO || answer.status == LAWN_ERR_TIMED_OUT;
        s->pause->start_after(first_pause_us
                              << std::min(s->failures, most_doublings));
        ++s->failures;
        return;
    }
    complete(shard, answer);
    if (!is_closed_) {
        send_soon(shard);
    }
}

// One by one, because any of them may close the consumer: that tells the rest.
void Answers::complete(unsigned shard, const Answer &answer)
{
    Shard *const s = at(shard);
    const size_t count = s->sent.size();
    const bool is_unknown = s->is_unknown;
    s->failures = 0;
    s->is_unknown = false;
    Results results;
    const bool is_read = answer.status == LAWN_OK &&
                         decode(answer.reply, &results) &&
                         results.size() == count;
    for (size_t i = 0; i < count && !is_closed_; ++i) {
        const Verdict verdict = std::move(s->sent.front());
        s->sent.pop_front();
        if (is_read) {
            finish(shard, verdict, LAWN_OK, nullptr, results[i], is_unknown);
        } else if (answer.status == LAWN_OK) {
            finish(shard, verdict, LAWN_ERR_CORRUPT,
                   "nobody can read the store's reply to lawn_answer",
                   Answered::too_late, false);
        } else {
            finish(shard, verdict, answer.status, answer.error,
                   Answered::too_late, false);
        }
    }
}

void Answers::finish(unsigned shard, const Verdict &verdict,
                     lawn_status_t status, const char *error, Answered result,
                     bool is_unknown)
{
    lawn_durable_result_t r = {};
    r.status = status;
    r.error = error;
    r.generation = verdict.generation;
    r.due_us = verdict.due_us;
    r.attempt = verdict.attempt;
    if (status == LAWN_OK && is_reader_) {
        r.state = LAWN_DURABLE_UNKNOWN;
    } else if (status == LAWN_OK && result == Answered::too_late) {
        r.status = is_unknown ? LAWN_ERR_IO : LAWN_ERR_NO_ELEM;
        r.error = is_unknown ? "unknown: the connection was lost, and this or "
                               "another answer was taken"
                             : "too late: the delivery was answered, or the "
                               "timer was started anew";
    } else if (status == LAWN_OK && result == Answered::refused) {
        r.status = LAWN_ERR_INVALID_PARAM;
        r.error = "the store refuses the answer";
    } else if (status == LAWN_OK) {
        r.state = result == Answered::dead ? LAWN_DURABLE_DEAD : verdict.state;
    }
    --size_;
    // First, because what is given then may have the program close the
    // consumer, after which nobody is called back.
    if (verdict.done) {
        verdict.done(verdict.arg, &r);
    }
    if (!is_closed_) {
        attempt([&] { answered_(shard, verdict.entry); });
    }
}

} // namespace lawn::durable
