// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See scraper.h.

#include "scraper.h"

#include <utility>

namespace lawnd
{

namespace
{

constexpr uint64_t timeout_us = 2000000;

} // namespace

Scraper::Scraper(lawn::durable::Loop &loop, Format format)
    : format_(std::move(format)), timeout_(loop, [this] { answer(true); })
{
}

void Scraper::serve(lawn_durable_t *durable, HttpReply reply)
{
    replies_.push_back(std::move(reply));
    if (!durable) {
        answer(false);
        return;
    }
    if (timeout_.is_active()) {
        return;
    }
    timeout_.start_after(timeout_us);
    while (questions_.size() < lawn_durable_shards(durable)) {
        questions_.push_back({this, false, {}});
    }
    for (unsigned i = 0; i < questions_.size(); ++i) {
        Question &question = questions_[i];
        question.answer = {};
        if (!question.is_asked) {
            question.is_asked = lawn_durable_shard_stats(durable, i, on_stats,
                                                         &question) == LAWN_OK;
            asked_ += question.is_asked;
        }
    }
    if (asked_ == 0) {
        answer(true);
    }
}

void Scraper::on_stats(void *arg, const lawn_durable_stats_t *stats)
{
    auto *const question = static_cast<Question *>(arg);
    Scraper *const self = question->scraper;
    question->is_asked = false;
    question->answer.is_up = stats->status == LAWN_OK;
    question->answer.stats = *stats;
    if (--self->asked_ == 0) {
        self->answer(true);
    }
}

void Scraper::answer(bool has_asked)
{
    timeout_.stop();
    std::vector<Shard> shards;
    for (const Question &i : questions_) {
        if (has_asked) {
            shards.push_back(i.answer);
        }
    }
    HttpAnswer answer;
    answer.type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = format_(shards);
    for (const HttpReply &reply : std::exchange(replies_, {})) {
        reply(answer);
    }
}

} // namespace lawnd
