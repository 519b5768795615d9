// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The host of an idle queue pair is asked whether it is there.

#include "verbs_fixture.h"

using namespace lawn_test;

namespace
{

class VerbsKeepalive : public VerbsTest
{
protected:
    static constexpr lawn_time_t idle = 2 * sec;
    static constexpr lawn_time_t timeout = 300 * msec;

    VerbsKeepalive()
    {
        init(idle, timeout);
    }
};

TEST_F(VerbsKeepalive, ProbesWhenNothingWasSent)
{
    pass_after(idle - 1);
    EXPECT_EQ(peer_->device.posted, 0U);
    pass_after(1);
    ASSERT_EQ(peer_->device.requests.size(), 1U);
    const FakeDevice::Request &probe = peer_->device.requests.front();
    EXPECT_EQ(probe.opcode, IBV_WR_RDMA_WRITE);
    EXPECT_EQ(probe.num_sge, 0);
    EXPECT_EQ(probe.send_flags, unsigned{IBV_SEND_SIGNALED});
    peer_->device.carry_out(1);
    pass_after(timeout);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_OPEN);
    // Idle begins with the answer.
    pass_after(idle - 1);
    EXPECT_EQ(peer_->device.posted, 1U);
    pass_after(1);
    EXPECT_EQ(peer_->device.posted, 2U);
    EXPECT_TRUE(peer_->reports.empty());
}

TEST_F(VerbsKeepalive, FindsAHostThatIsGone)
{
    pass_after(idle);
    pass_after(timeout - 1);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_OPEN);
    pass_after(1);
    EXPECT_EQ(peer_->device.qp.state, IBV_QPS_ERR);
    pass_after(1);
    EXPECT_EQ(peer_->failures, 1U);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_KEEPALIVE);
    EXPECT_TRUE(peer_->reports.empty());
    EXPECT_EQ(lawn_count(lawn_), 0U);
}

TEST_F(VerbsKeepalive, OfWhichTheDeviceGivesUpFirst)
{
    pass_after(idle);
    peer_->device.fail(IBV_WC_RETRY_EXC_ERR);
    pass_after(1);
    EXPECT_EQ(peer_->failures, 1U);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_DEVICE);
    EXPECT_EQ(peer_->rc.status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(peer_->reports.empty());
}

TEST_F(VerbsKeepalive, WhatIsPostedBehindAProbeIsReported)
{
    pass_after(idle);
    EXPECT_EQ(post(1), LAWN_OK);
    EXPECT_EQ(post(2), LAWN_OK);
    peer_->device.carry_out(2);
    pass_after(msec);
    EXPECT_EQ(peer_->reports, all({1}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
    peer_->device.carry_out(1);
    pass_after(msec);
    EXPECT_EQ(peer_->reports, all({1, 2}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
}

TEST_F(VerbsKeepalive, WhatComesInAProbesPlaceIsReported)
{
    pass_after(idle);
    peer_->device.carry_out(1);
    pass_after(0);
    for (uint64_t i = 0; i < capacity; ++i) {
        EXPECT_EQ(post(i), LAWN_OK);
    }
    peer_->device.carry_out(capacity);
    pass_after(0);
    EXPECT_EQ(peer_->reports.size(), capacity);
}

// The deadline of what is outstanding is enough; and each request is a probe.
TEST_F(VerbsKeepalive, ProbesNotBehindOthers)
{
    EXPECT_EQ(post(peer_, 1, nullptr), LAWN_OK);
    pass_after(10 * idle);
    EXPECT_EQ(peer_->device.posted, 1U);
    peer_->device.carry_out(1);
    pass_after(1);
    for (uint64_t i = 0; i < 100; ++i) {
        pass_after(idle - 1);
        EXPECT_EQ(post(i), LAWN_OK);
        peer_->device.carry_out(1);
        pass_after(0);
    }
    EXPECT_EQ(peer_->device.posted, 101U);
}

TEST_F(VerbsKeepalive, ThatCannotBePostedIsAFailure)
{
    peer_->device.takes = 0;
    pass_after(idle);
    pass_after(0);
    EXPECT_EQ(peer_->failures, 1U);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_DEVICE);
    EXPECT_EQ(lawn_count(lawn_), 0U);
}

// Two hours of nothing: a probe each idle time, and for each of them a timer
// that fires and one that is stopped.
TEST_F(VerbsKeepalive, OfTwoHoursCostsItsProbes)
{
    unsigned fired = 0;
    const lawn_time_t end = now_ + 7200 * sec;
    while (now_ < end) {
        now_ = std::max(now_, lawn_next(lawn_));
        fired += lawn_advance(lawn_, now_, 64);
        if (!peer_->device.requests.empty()) {
            peer_->device.carry_out(1);
            now_ += 100 * usec;
            poll(peer_);
        }
    }
    const lawn_time_t probes = 7200 * sec / (idle + 100 * usec);
    EXPECT_EQ(peer_->device.posted, probes);
    EXPECT_EQ(fired, probes);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_OPEN);
}

TEST_F(VerbsKeepalive, IsOffByDefault)
{
    init();
    EXPECT_EQ(lawn_count(lawn_), 0U);
    pass_after(1'000'000 * sec);
    EXPECT_EQ(peer_->device.posted, 0U);
}

} // namespace
