// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawnd's delivery by HTTP does with more posts than it may make at a
// time.

#include "delivery_fixture.h"

namespace
{

using namespace lawn_test;

TEST_F(HttpDelivery, TargetHasSoManyPostsAtATime)
{
    DeliveryLimits limits = patient();
    limits.posts_per_target = 3;
    make(limits);
    HttpTarget target([&target](const HttpRequest &) {
        target.hold();
        return HttpTarget::status(200);
    });
    for (unsigned i = 0; i < 30; ++i) {
        submit(target.url("/" + std::to_string(i)), std::to_string(i));
    }
    EXPECT_EQ(delivery_->posting(), 3U);
    EXPECT_EQ(delivery_->waiting(), 27U);
    EXPECT_EQ(delivery_->targets(), 1U);
    run_until([&] { return target.requests().size() == 3; });
    EXPECT_TRUE(outcomes_.empty());
    target.release();
    run_until_finished(30);
    for (const auto &[id, outcome] : outcomes_) {
        EXPECT_EQ(outcome.verdict, Verdict::done);
    }
    EXPECT_EQ(target.most_at_once(), 3U);
    EXPECT_LE(target.connections(), 3U); // they are used again
    EXPECT_EQ(delivery_->targets() + delivery_->waiting(), 0U);
}

TEST_F(HttpDelivery, SlowTargetHoldsUpNobody)
{
    HttpTarget slow([&slow](const HttpRequest &) {
        slow.hold();
        return HttpTarget::status(200);
    });
    HttpTarget quick(
        [](const HttpRequest &) { return HttpTarget::status(200); });
    for (unsigned i = 0; i < 100; ++i) {
        submit(slow.url(), "slow" + std::to_string(i));
    }
    EXPECT_EQ(delivery_->posting(), 16U);
    EXPECT_EQ(delivery_->waiting(), 64U);
    submit(quick.url(), "quick");
    run_until([&] {
        return outcomes_.count("quick") != 0 && outcomes_.size() == 21;
    });
    EXPECT_EQ(outcomes_["quick"].verdict, Verdict::done);
    for (unsigned i = 80; i < 100; ++i) {
        const Outcome &outcome = outcomes_["slow" + std::to_string(i)];
        EXPECT_EQ(outcome.verdict, Verdict::defer);
        EXPECT_GE(outcome.delay_us, usec / 2);
        EXPECT_LE(outcome.delay_us, usec * 3 / 2);
    }
    slow.release();
    run_until_finished(101);
    EXPECT_EQ(outcomes_["slow79"].verdict, Verdict::done);
}

// A socket that takes connections from the kernel's queue never answers, and
// each address of the loopback network is another target.
TEST_F(HttpDelivery, ManyTargetsThatHangHoldUpNobody)
{
    DeliveryLimits limits = patient();
    limits.posts = 200;
    limits.queued = 100;
    make(limits);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    socklen_t length = sizeof(address);
    auto *const generic = reinterpret_cast<sockaddr *>(&address);
    const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(silent, generic, length), 0);
    ASSERT_EQ(listen(silent, 1000), 0);
    ASSERT_EQ(getsockname(silent, generic, &length), 0);
    const std::string port = std::to_string(ntohs(address.sin_port));
    for (unsigned target = 1; target <= 20; ++target) {
        for (unsigned i = 0; i < 100; ++i) {
            const std::string host = "127.0.1." + std::to_string(target);
            submit("http://" + host + ":" + port + "/",
                   host + "/" + std::to_string(i));
        }
    }
    EXPECT_LT(delivery_->posting(), 200U);
    EXPECT_LE(delivery_->waiting(), 100U);
    EXPECT_EQ(delivery_->targets(), 20U);
    HttpTarget quick(
        [](const HttpRequest &) { return HttpTarget::status(200); });
    for (unsigned i = 0; i < 10; ++i) {
        const std::string id = "quick" + std::to_string(i);
        submit(quick.url(), id);
        run_until([&] { return outcomes_.count(id) != 0; });
        EXPECT_EQ(outcomes_[id].verdict, Verdict::done);
    }
    for (const auto &[id, outcome] : outcomes_) {
        EXPECT_EQ(outcome.verdict,
                  id.find("quick") == 0 ? Verdict::done : Verdict::defer);
    }
    delivery_.reset();
    close(silent);
}

TEST_F(HttpDelivery, WhatWaitsTooLongIsDeferred)
{
    DeliveryLimits limits = patient();
    limits.posts_per_target = 1;
    limits.queue_timeout_us = 20000;
    make(limits);
    HttpTarget slow([&slow](const HttpRequest &) {
        slow.hold();
        return HttpTarget::status(200);
    });
    for (unsigned i = 0; i < 10; ++i) {
        submit(slow.url(), std::to_string(i));
    }
    run_until_finished(9);
    EXPECT_EQ(outcomes_.count("0"), 0U);
    EXPECT_EQ(outcomes_["1"].verdict, Verdict::defer);
    EXPECT_EQ(delivery_->waiting(), 0U);
    slow.release();
    run_until_finished(10);
    EXPECT_EQ(outcomes_["0"].verdict, Verdict::done);
}

TEST_F(HttpDelivery, DrainDefersWhatWaitsAndEndsWhatIsPosted)
{
    HttpTarget slow([&slow](const HttpRequest &) {
        slow.hold();
        return HttpTarget::status(200);
    });
    for (unsigned i = 0; i < 20; ++i) {
        submit(slow.url(), std::to_string(i));
    }
    delivery_->drain();
    submit(slow.url(), "late");
    run_until_finished(5);
    EXPECT_EQ(outcomes_["late"].verdict, Verdict::defer);
    EXPECT_EQ(outcomes_["16"].verdict, Verdict::defer);
    EXPECT_EQ(delivery_->posting(), 16U);
    slow.release();
    run_until_finished(21);
    EXPECT_EQ(outcomes_["0"].verdict, Verdict::done);
    EXPECT_EQ(delivery_->targets(), 0U);
}

TEST_F(HttpDelivery, WhoIsToldMaySubmitMore)
{
    HttpTarget target(
        [](const HttpRequest &) { return HttpTarget::status(200); });
    on_finished_ = [&](const std::string &id) {
        if (id.size() < 20) {
            submit(id.size() % 2 ? target.url() : "nothing", id + "x");
        }
    };
    submit(target.url(), "x");
    run_until_finished(20);
    EXPECT_EQ(target.requests().size(), 11U);
}

TEST_F(HttpDelivery, EndTellsNobody)
{
    HttpTarget slow([&slow](const HttpRequest &) {
        slow.hold();
        return HttpTarget::status(200);
    });
    for (unsigned i = 0; i < 20; ++i) {
        submit(slow.url(), std::to_string(i));
    }
    submit("nothing", "nothing");
    run_until([&] { return slow.requests().size() == 16; });
    EXPECT_EQ(outcomes_.size(), 1U);
    delivery_.reset();
    loop_.wait(1000);
    EXPECT_EQ(outcomes_.size(), 1U);
}

} // namespace
