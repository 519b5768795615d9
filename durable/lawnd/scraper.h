// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Asks the store for the statistics of each shard when somebody scrapes the
// daemon's metrics. One question serves all who ask meanwhile, and shards that
// do not answer in time are left out, so that they hide only themselves.
#ifndef LAWND_SCRAPER_H
#define LAWND_SCRAPER_H

#include "http_server.h"
#include "metrics.h"

#include "src/loop.h"

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace lawnd
{

class Scraper
{
public:
    using Format = std::function<std::string(const std::vector<Shard> &)>;

    // `format` makes the text of the metrics, of all shards or of none.
    Scraper(lawn::durable::Loop &loop, Format format);

    // `durable`: what to ask; nullptr if that is of no use. It calls back what
    // it was asked, so it is closed before the scraper goes.
    void serve(lawn_durable_t *durable, HttpReply reply);

private:
    struct Question {
        Scraper *scraper;
        bool is_asked = false;
        Shard answer;
    };

    static void on_stats(void *arg, const lawn_durable_stats_t *stats);
    void answer(bool has_asked);

    const Format format_;
    lawn::durable::Timer timeout_;
    std::vector<HttpReply> replies_;
    std::deque<Question> questions_; // of each shard; they stay where they are
    size_t asked_ = 0;               // how many are not answered
};

} // namespace lawnd

#endif
