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
class Silence
{
public:
    Silence()
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        socklen_t length = sizeof(address);
        auto *const generic = reinterpret_cast<sockaddr *>(&address);
        EXPECT_EQ(bind(fd_, generic, length), 0);
        EXPECT_EQ(listen(fd_, 1000), 0);
        EXPECT_EQ(getsockname(fd_, generic, &length), 0);
        port_ = std::to_string(ntohs(address.sin_port));
    }
    ~Silence()
    {
        close(fd_);
    }
    Silence(const Silence &) = delete;
    Silence &operator=(const Silence &) = delete;

    std::string url(unsigned target) const
    {
        return "http://127.0.1." + std::to_string(target) + ":" + port_ + "/";
    }

private:
    const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string port_;
};

class HangingTargets : public HttpDelivery
{
protected:
    void submit_many(unsigned targets, unsigned posts)
    {
        for (unsigned target = 1; target <= targets; ++target) {
            for (unsigned i = 0; i < posts; ++i) {
                submit(silence_.url(target), "hangs" + std::to_string(target) +
                                                 "/" + std::to_string(i));
            }
        }
    }

    Silence silence_;
    HttpTarget quick_{
        [](const HttpRequest &) { return HttpTarget::status(200); }};
};

// Also if all of them were well until now.
TEST_F(HangingTargets, HoldUpNobodyWhoIsKnown)
{
    DeliveryLimits limits = patient();
    limits.posts_per_untried = 1;
    limits.posts = 64;
    limits.queued = 32;
    make(limits);
    EXPECT_EQ(outcome_of(quick_.url()).verdict, Verdict::done);
    submit_many(100, 20);
    EXPECT_EQ(delivery_->posting(), 32U);
    EXPECT_LE(delivery_->waiting(), 24U);
    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_EQ(outcome_of(quick_.url()).verdict, Verdict::done);
    }
}

TEST_F(HangingTargets, MakeRoomWhenTheyAreKnown)
{
    DeliveryLimits limits = patient();
    limits.posts_per_untried = 1;
    limits.timeout_us = 50000;
    limits.posts = 64;
    make(limits);
    std::vector<std::string> told;
    delivery_->told = [&](const std::string &target, bool is_silent) {
        told.push_back(target);
        EXPECT_TRUE(is_silent);
    };
    submit_many(32, 20);
    run_until([&] { return delivery_->silent() == 32; });
    EXPECT_EQ(told.size(), 32U);
    EXPECT_EQ(delivery_->waiting(), 0U); // all of it was put off
    limits.timeout_us = 600 * usec;
    EXPECT_EQ(outcome_of(quick_.url()).verdict, Verdict::done);
    run_until([&] { return delivery_->posting() == 0; });
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned target = 1; target <= 32; ++target) {
            submit(silence_.url(target), "again" + std::to_string(round) + "/" +
                                             std::to_string(target));
        }
        EXPECT_LE(delivery_->posting(), 16U);
        EXPECT_EQ(outcome_of(quick_.url()).verdict, Verdict::done);
    }
}

TEST_F(HangingTargets, HaveTheirPostsAgainWhenTheyAnswer)
{
    DeliveryLimits limits = patient();
    limits.posts_per_untried = 1;
    limits.timeout_us = 200000;
    make(limits);
    bool hangs = true;
    HttpTarget target([&](const HttpRequest &) {
        if (hangs) {
            target.hold();
        }
        return HttpTarget::status(200);
    });
    std::vector<bool> told;
    delivery_->told = [&](const std::string &, bool is_silent) {
        told.push_back(is_silent);
    };
    EXPECT_EQ(outcome_of(target.url()).verdict, Verdict::again);
    EXPECT_EQ(delivery_->silent(), 1U);
    EXPECT_EQ(delivery_->targets(), 0U);
    hangs = false;
    target.release();
    EXPECT_EQ(outcome_of(target.url()).verdict, Verdict::done);
    EXPECT_EQ(delivery_->silent(), 0U);
    EXPECT_EQ(told, (std::vector<bool>{true, false}));
    for (unsigned i = 0; i < 20; ++i) {
        submit(target.url(), std::to_string(i));
    }
    EXPECT_EQ(delivery_->posting(), 16U);
    run_until_finished(22);
}

TEST_F(HangingTargets, AreForgottenOneByOne)
{
    DeliveryLimits limits = patient();
    limits.timeout_us = 20000;
    limits.idle_targets = 3;
    make(limits);
    submit_many(5, 1);
    run_until_finished(5);
    EXPECT_EQ(delivery_->silent(), 3U);
    EXPECT_EQ(delivery_->targets(), 0U);
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
