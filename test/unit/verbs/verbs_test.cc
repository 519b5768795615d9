// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests with deadlines, as long as the queue pair lives; and bad input.

#include "verbs_fixture.h"

using namespace lawn_test;

namespace
{

using Verbs = VerbsTest;

TEST_F(Verbs, WhatCompletesIsReportedDone)
{
    EXPECT_EQ(post(7), LAWN_OK);
    EXPECT_EQ(post(5), LAWN_OK);
    peer_->device.carry_out(1);
    pass_after(msec);
    EXPECT_EQ(peer_->reports, all({7}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
    peer_->device.carry_out(1);
    pass_after(9 * msec); // in time: it is polled before timers expire
    EXPECT_EQ(peer_->reports, all({7, 5}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
    pass_after(sec);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_OPEN);
    EXPECT_EQ(peer_->failures, 0U);
    EXPECT_EQ(lawn_count(lawn_), 0U);
}

TEST_F(Verbs, AListIsPostedAsItIs)
{
    ibv_send_wr wrs[3] = {};
    ibv_send_wr *bad = nullptr;
    for (uint64_t i = 0; i < 3; ++i) {
        wrs[i].wr_id = 10 + i;
        wrs[i].opcode = IBV_WR_RDMA_WRITE;
        wrs[i].send_flags = i == 2 ? IBV_SEND_SIGNALED : IBV_SEND_INLINE;
        wrs[i].next = i == 2 ? nullptr : &wrs[i + 1];
    }
    EXPECT_EQ(lawn_verbs_post(&peer_->rc, gets_, now_, wrs, &bad), LAWN_OK);
    EXPECT_EQ(lawn_count(lawn_), 3U);
    ASSERT_EQ(peer_->device.requests.size(), 3U);
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(wrs[i].wr_id, 10 + i);
        EXPECT_EQ(peer_->device.requests[i].send_flags, wrs[i].send_flags);
        EXPECT_EQ(peer_->device.requests[i].opcode, IBV_WR_RDMA_WRITE);
    }
    // Those that are not signaled are done when the third is.
    peer_->device.carry_out(3);
    pass_after(msec);
    EXPECT_EQ(peer_->reports,
              all({10, 11, 12}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
    EXPECT_EQ(lawn_count(lawn_), 0U);
}

TEST_F(Verbs, AnEmptyListIsNothing)
{
    ibv_send_wr *bad = nullptr;
    EXPECT_EQ(lawn_verbs_post(&peer_->rc, gets_, now_, nullptr, &bad), LAWN_OK);
    EXPECT_EQ(peer_->device.posted, 0U);
}

TEST_F(Verbs, ARequestWithoutADeadlineWaits)
{
    EXPECT_EQ(post(peer_, 1, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    pass_after(1'000'000 * sec);
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_OPEN);
    peer_->device.carry_out(1);
    pass_after(1);
    EXPECT_EQ(peer_->reports, all({1}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
}

TEST_F(Verbs, AFullRingTakesNothing)
{
    for (uint64_t round = 0; round < 3; ++round) {
        for (uint64_t i = 0; i < capacity; ++i) {
            EXPECT_EQ(post(i), LAWN_OK);
        }
        EXPECT_EQ(post(99), LAWN_ERR_BUSY);
        EXPECT_EQ(peer_->device.requests.size(), capacity);
        peer_->device.carry_out(3);
        pass_after(msec);
        // Of a list, either all has room or nothing is posted.
        ibv_send_wr wrs[4] = {};
        ibv_send_wr *bad = nullptr;
        for (int i = 0; i < 3; ++i) {
            wrs[i].next = &wrs[i + 1];
        }
        EXPECT_EQ(lawn_verbs_post(&peer_->rc, gets_, now_, wrs, &bad),
                  LAWN_ERR_BUSY);
        EXPECT_EQ(bad, wrs);
        EXPECT_EQ(peer_->device.requests.size(), capacity - 3);
        peer_->device.carry_out(capacity - 3);
        pass_after(msec);
    }
    EXPECT_EQ(peer_->reports.size(), 3 * capacity);
}

TEST_F(Verbs, WhatTheDeviceRefusesIsNotReported)
{
    ibv_send_wr wrs[3] = {};
    ibv_send_wr *bad = nullptr;
    for (uint64_t i = 0; i < 3; ++i) {
        wrs[i].wr_id = i;
        wrs[i].send_flags = IBV_SEND_SIGNALED;
        wrs[i].next = i == 2 ? nullptr : &wrs[i + 1];
    }
    peer_->device.takes = 1;
    EXPECT_EQ(lawn_verbs_post(&peer_->rc, gets_, now_, wrs, &bad), LAWN_ERR_IO);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(bad, &wrs[1]);
    for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(wrs[i].wr_id, i);
    }
    EXPECT_EQ(lawn_count(lawn_), 1U);
    EXPECT_EQ(post(3), LAWN_OK);
    peer_->device.carry_out(2);
    pass_after(msec);
    EXPECT_EQ(peer_->reports, all({0, 3}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
}

TEST_F(Verbs, ManyQueuePairsShareAQueue)
{
    std::vector<Peer *> peers;
    for (uint64_t i = 0; i < 100; ++i) {
        peers.push_back(make_peer());
        lawn_verbs_params_t params = params_of(peers[i]);
        EXPECT_EQ(lawn_verbs_init(&peers[i]->rc, &params, now_), LAWN_OK);
        EXPECT_EQ(post(peers[i], i, i % 2 == 0 ? gets_ : puts_), LAWN_OK);
        pass_after(usec);
    }
    EXPECT_EQ(lawn_queue_count(gets_), 50U);
    for (uint64_t i = 0; i < 100; i += 4) {
        peers[i]->device.carry_out(1);
    }
    pass_after(50 * msec);
    pass_after(usec);
    for (uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(peers[i]->failures, i % 4 == 2 ? 1U : 0U);
        EXPECT_EQ(peers[i]->reports.size(), i % 2 == 0 ? 1U : 0U);
    }
}

TEST_F(Verbs, ClosedItForgetsAll)
{
    EXPECT_EQ(post(1), LAWN_OK);
    lawn_verbs_close(&peer_->rc);
    lawn_verbs_close(&peer_->rc);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(post(2), LAWN_ERR_IO);
    EXPECT_EQ(errno, ENOTCONN);
    peer_->device.carry_out(1);
    pass_after(sec);
    EXPECT_TRUE(peer_->reports.empty());
    EXPECT_EQ(peer_->failures, 0U);
    // One that was never open.
    lawn_verbs_rc_t rc = {};
    lawn_verbs_fail(&rc, now_, LAWN_VERBS_PROGRAM);
    lawn_verbs_close(&rc);
}

TEST_F(Verbs, BadParametersChangeNothing)
{
    Peer *const other = make_peer();
    const auto refuses = [&](void (*spoil)(lawn_verbs_params_t *)) {
        lawn_verbs_params_t params = params_of(other);
        spoil(&params);
        EXPECT_EQ(lawn_verbs_init(&other->rc, &params, now_),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(other->rc.state, LAWN_VERBS_CLOSED);
    };
    using Params = lawn_verbs_params_t;
    refuses([](Params *params) { params->qp = nullptr; });
    refuses([](Params *params) { params->lawn = nullptr; });
    refuses([](Params *params) { params->ops = nullptr; });
    refuses([](Params *params) { params->ring = nullptr; });
    refuses([](Params *params) { params->capacity = 0; });
    refuses([](Params *params) { params->capacity = 6; });
    refuses([](Params *params) { params->flush_timeout = 0; });
    refuses([](Params *params) { params->keepalive_idle = 1; });
    refuses([](Params *params) {
        static const lawn_verbs_ops_t ops = {nullptr, failed};
        params->ops = &ops;
    });
    refuses([](Params *params) {
        static const lawn_verbs_ops_t ops = {report, nullptr};
        params->ops = &ops;
    });
    refuses([](Params *params) { params->qp->qp_type = IBV_QPT_UD; });
    other->device.qp.qp_type = IBV_QPT_RC;
    const lawn_verbs_params_t params = params_of(other);
    EXPECT_EQ(lawn_verbs_init(nullptr, &params, now_), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_verbs_init(&other->rc, nullptr, now_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_verbs_init(&other->rc, &params, now_), LAWN_OK);
    EXPECT_EQ(lawn_verbs_init(&other->rc, &params, now_), LAWN_ERR_BUSY);
}

TEST_F(Verbs, OtherCompletionsAreNotItsOwn)
{
    ibv_wc wc = {};
    wc.wr_id = ~LAWN_VERBS_ID;
    EXPECT_FALSE(lawn_verbs_owns(&wc));
}

} // namespace
