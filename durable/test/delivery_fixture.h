// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnd's delivery by HTTP, on a loop of the test's own.

#ifndef LAWN_TEST_DURABLE_DELIVERY_FIXTURE_H
#define LAWN_TEST_DURABLE_DELIVERY_FIXTURE_H

#include "http_target.h"
#include "lawnd/delivery.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>

namespace lawn_test
{

using lawnd::Delivery;
using lawnd::DeliveryLimits;
using lawnd::Outcome;
using lawnd::Post;
using lawnd::Verdict;

constexpr int64_t usec = 1000000;

class HttpDelivery : public testing::Test
{
protected:
    void SetUp() override
    {
        forget_proxies();
        ASSERT_EQ(loop_.open(), LAWN_OK);
        make(patient());
    }

    // Nothing takes too long, on no machine, and everybody is trusted.
    static DeliveryLimits patient()
    {
        DeliveryLimits limits;
        limits.posts_per_untried = limits.posts_per_target;
        limits.connect_timeout_us = 600 * usec;
        limits.timeout_us = 600 * usec;
        limits.queue_timeout_us = 600 * usec;
        return limits;
    }

    void make(const DeliveryLimits &limits)
    {
        delivery_.reset();
        delivery_ = std::make_unique<Delivery>(loop_, limits);
    }

    void submit(const std::string &url, const std::string &id,
                const std::string &payload = "payload")
    {
        const auto &[at, is_new] = payloads_.emplace(id, payload);
        EXPECT_TRUE(is_new) << id;
        Post post;
        post.url = url;
        post.id = id;
        post.generation = 7;
        post.attempt = 2;
        post.due_us = 1700000000123456;
        post.payload = at->second;
        post.finished = [this, id](const Outcome &outcome) {
            EXPECT_EQ(outcomes_.count(id), 0U);
            outcomes_[id] = outcome;
            if (on_finished_) {
                on_finished_(id);
            }
        };
        delivery_->submit(std::move(post));
    }

    // Runs the loop until it is so, or fails after a minute.
    template <class Condition> void run_until(Condition condition)
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!condition()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end);
            loop_.wait(10000);
        }
    }

    void run_until_finished(size_t count)
    {
        run_until([&] { return outcomes_.size() >= count; });
    }

    Outcome outcome_of(const std::string &url)
    {
        const std::string id = "id" + std::to_string(payloads_.size());
        submit(url, id);
        EXPECT_EQ(outcomes_.count(id), 0U); // never from within submit()
        run_until([&] { return outcomes_.count(id) != 0; });
        return outcomes_[id];
    }

    Outcome outcome_of(const HttpReaction &reaction)
    {
        HttpTarget target([&](const HttpRequest &) { return reaction; });
        return outcome_of(target.url());
    }

    lawn::durable::Loop loop_;
    std::map<std::string, std::string> payloads_;
    std::map<std::string, Outcome> outcomes_;
    std::function<void(const std::string &)> on_finished_;
    std::unique_ptr<Delivery> delivery_;
};

} // namespace lawn_test

#endif
