// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A deadline that passes, and a queue pair that fails: each request is reported
// once, with what is known of it.

#include "verbs_fixture.h"

using namespace lawn_test;

namespace
{

class VerbsFailure : public VerbsTest
{
protected:
    VerbsFailure()
    {
        for (uint64_t i = 0; i < 5; ++i) {
            EXPECT_EQ(post(i), LAWN_OK);
        }
    }

    void expect_failed(lawn_verbs_state_t why, ibv_wc_status status)
    {
        EXPECT_EQ(peer_->failures, 1U);
        EXPECT_EQ(peer_->rc.state, why);
        EXPECT_EQ(peer_->rc.status, status);
        EXPECT_EQ(lawn_count(lawn_), 0U);
        pass_after(sec);
        EXPECT_EQ(peer_->failures, 1U);
        EXPECT_EQ(post(9), LAWN_ERR_IO);
        EXPECT_EQ(errno, ENOTCONN);
    }
};

const auto unknown = LAWN_VERBS_UNKNOWN;

TEST_F(VerbsFailure, OfADeadlineFlushesAll)
{
    peer_->device.carry_out(1);
    pass_after(10 * msec - 1);
    EXPECT_EQ(peer_->reports, all({0}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
    EXPECT_EQ(peer_->device.qp.state, IBV_QPS_RTS);
    EXPECT_EQ(post(5), LAWN_OK); // which has time left
    peer_->reports.clear();

    pass_after(1);
    EXPECT_EQ(peer_->device.qp.state, IBV_QPS_ERR);
    EXPECT_EQ(peer_->failures, 0U);
    EXPECT_EQ(post(6), LAWN_ERR_IO);
    pass_after(1);
    EXPECT_EQ(peer_->reports,
              all({1, 2, 3, 4, 5}, unknown, IBV_WC_WR_FLUSH_ERR));
    expect_failed(LAWN_VERBS_DEADLINE, IBV_WC_WR_FLUSH_ERR);
}

// What completed before the flush is known to be done, however late.
TEST_F(VerbsFailure, OfADeadlineLeavesWhatIsDone)
{
    peer_->device.flushes = false;
    pass_after(10 * msec);
    peer_->device.carry_out(2);
    peer_->device.flush();
    pass_after(1);
    std::vector<Report> reports = all({0, 1}, LAWN_VERBS_DONE, IBV_WC_SUCCESS);
    for (const Report &report : all({2, 3, 4}, unknown, IBV_WC_WR_FLUSH_ERR)) {
        reports.push_back(report);
    }
    EXPECT_EQ(peer_->reports, reports);
    expect_failed(LAWN_VERBS_DEADLINE, IBV_WC_WR_FLUSH_ERR);
}

class VerbsRefusal : public VerbsFailure,
                     public testing::WithParamInterface<ibv_wc_status>
{
};

TEST_P(VerbsRefusal, IsKnownOfAllBehindIt)
{
    peer_->device.carry_out(1);
    peer_->device.fail(GetParam());
    pass_after(msec);
    ASSERT_EQ(peer_->reports.size(), 5U);
    EXPECT_EQ(peer_->reports[0], (Report{0, LAWN_VERBS_DONE, IBV_WC_SUCCESS}));
    EXPECT_EQ(peer_->reports[1], (Report{1, LAWN_VERBS_NOT_DONE, GetParam()}));
    for (uint64_t i = 2; i < 5; ++i) {
        EXPECT_EQ(peer_->reports[i],
                  (Report{i, LAWN_VERBS_NOT_DONE, IBV_WC_WR_FLUSH_ERR}));
    }
    expect_failed(LAWN_VERBS_DEVICE, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, VerbsRefusal,
                         testing::Values(IBV_WC_REM_INV_REQ_ERR,
                                         IBV_WC_REM_ACCESS_ERR,
                                         IBV_WC_REM_OP_ERR,
                                         IBV_WC_RNR_RETRY_EXC_ERR));

class VerbsError : public VerbsFailure,
                   public testing::WithParamInterface<ibv_wc_status>
{
};

TEST_P(VerbsError, LeavesAllUnknown)
{
    peer_->device.fail(GetParam());
    pass_after(msec);
    ASSERT_EQ(peer_->reports.size(), 5U);
    EXPECT_EQ(peer_->reports[0], (Report{0, unknown, GetParam()}));
    for (uint64_t i = 1; i < 5; ++i) {
        EXPECT_EQ(peer_->reports[i], (Report{i, unknown, IBV_WC_WR_FLUSH_ERR}));
    }
    expect_failed(LAWN_VERBS_DEVICE, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, VerbsError,
                         testing::Values(IBV_WC_RETRY_EXC_ERR,
                                         IBV_WC_LOC_PROT_ERR,
                                         IBV_WC_WR_FLUSH_ERR));

// One that is not signaled, before one that fails, was done: had it failed, it
// would have a completion.
TEST_F(VerbsFailure, IsNotOfUnsignaledOnesBefore)
{
    EXPECT_EQ(post(5, 0), LAWN_OK);
    EXPECT_EQ(post(6), LAWN_OK);
    peer_->device.carry_out(6);
    peer_->device.fail(IBV_WC_RETRY_EXC_ERR);
    pass_after(msec);
    ASSERT_EQ(peer_->reports.size(), 7U);
    EXPECT_EQ(peer_->reports[5], (Report{5, LAWN_VERBS_DONE, IBV_WC_SUCCESS}));
    EXPECT_EQ(peer_->reports[6], (Report{6, unknown, IBV_WC_RETRY_EXC_ERR}));
    expect_failed(LAWN_VERBS_DEVICE, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(VerbsFailure, OfADeviceThatDoesNotFlushEndsInAReset)
{
    peer_->device.flushes = false;
    pass_after(10 * msec);
    EXPECT_EQ(peer_->device.qp.state, IBV_QPS_ERR);
    pass_after(100 * msec - 1);
    EXPECT_TRUE(peer_->reports.empty());
    pass_after(1);
    EXPECT_EQ(peer_->device.qp.state, IBV_QPS_RESET);
    EXPECT_EQ(peer_->reports,
              all({0, 1, 2, 3, 4}, unknown, IBV_WC_WR_FLUSH_ERR));
    expect_failed(LAWN_VERBS_DEADLINE, IBV_WC_SUCCESS);
}

TEST_F(VerbsFailure, OfADeviceThatIsGoneIsReportedInTheNextPass)
{
    peer_->device.obeys = false;
    peer_->device.qp.state = IBV_QPS_UNKNOWN;
    pass_after(10 * msec);
    pass_after(1);
    EXPECT_EQ(peer_->reports,
              all({0, 1, 2, 3, 4}, unknown, IBV_WC_WR_FLUSH_ERR));
    expect_failed(LAWN_VERBS_DEADLINE, IBV_WC_SUCCESS);
}

TEST_F(VerbsFailure, OfManyWithoutAFlushIsReportedOverSeveralPasses)
{
    Peer *const other = make_peer(256);
    const lawn_verbs_params_t params = params_of(other);
    EXPECT_EQ(lawn_verbs_init(&other->rc, &params, now_), LAWN_OK);
    for (uint64_t i = 0; i < 200; ++i) {
        EXPECT_EQ(post(other, i, gets_), LAWN_OK);
    }
    other->device.flushes = false;
    for (int passes = 0; passes < 5; ++passes) { // until all have expired
        pass_after(passes == 0 ? 10 * msec : 0);
    }
    now_ += 100 * msec - 1;
    for (const size_t reports : {0, 64, 128, 192, 200}) {
        EXPECT_EQ(other->reports.size(), reports);
        EXPECT_EQ(other->failures, reports == 200 ? 1U : 0U);
        pass_after(1);
    }
}

TEST_F(VerbsFailure, ThatTheProgramReports)
{
    lawn_verbs_fail(&peer_->rc, now_, LAWN_VERBS_PROGRAM);
    lawn_verbs_fail(&peer_->rc, now_, LAWN_VERBS_DEVICE); // is too late
    EXPECT_TRUE(peer_->reports.empty());
    pass_after(0);
    EXPECT_EQ(peer_->reports.size(), 5U);
    expect_failed(LAWN_VERBS_PROGRAM, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(VerbsFailure, WithNothingToFlush)
{
    peer_->device.carry_out(5);
    pass_after(msec);
    lawn_verbs_fail(&peer_->rc, now_, LAWN_VERBS_PROGRAM);
    EXPECT_EQ(peer_->failures, 0U);
    pass_after(0);
    expect_failed(LAWN_VERBS_PROGRAM, IBV_WC_SUCCESS);
}

// A CQ may still have completions of before a reset. They are nobody's.
TEST_F(VerbsFailure, IsOverWhenItBeginsAnew)
{
    peer_->device.flushes = false;
    pass_after(10 * msec);
    const FakeDevice::Request old = peer_->device.requests.front();
    const lawn_verbs_params_t params = params_of(peer_);
    EXPECT_EQ(lawn_verbs_init(&peer_->rc, &params, now_), LAWN_ERR_BUSY);
    pass_after(100 * msec);
    EXPECT_EQ(peer_->failures, 1U);

    peer_->device.flushes = true;
    peer_->device.modify(IBV_QPS_RTS);
    peer_->reports.clear();
    peer_->failures = 0;
    EXPECT_EQ(lawn_verbs_init(&peer_->rc, &params, now_), LAWN_OK);
    for (uint64_t i = 20; i < 20 + capacity; ++i) {
        EXPECT_EQ(post(i), LAWN_OK);
    }
    ibv_wc wc = {};
    wc.wr_id = old.wr_id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    peer_->device.completions.push_back(wc);
    peer_->device.carry_out(1);
    pass_after(msec);
    EXPECT_EQ(peer_->reports, all({20}, LAWN_VERBS_DONE, IBV_WC_SUCCESS));
    EXPECT_EQ(peer_->rc.state, LAWN_VERBS_OPEN);
    EXPECT_EQ(peer_->rc.status, IBV_WC_SUCCESS);
}

TEST_F(VerbsFailure, BeginsAnewInItsCallback)
{
    peer_->on_failed = [this] {
        peer_->device.modify(IBV_QPS_RTS);
        const lawn_verbs_params_t params = params_of(peer_);
        EXPECT_EQ(lawn_verbs_init(&peer_->rc, &params, now_), LAWN_OK);
        peer_->failures = 0;
        EXPECT_EQ(post(30), LAWN_OK);
        return true;
    };
    pass_after(10 * msec);
    pass_after(msec);
    EXPECT_EQ(peer_->reports.size(), 5U);
    EXPECT_EQ(peer_->rc.status, IBV_WC_SUCCESS);
    peer_->device.carry_out(1);
    pass_after(msec);
    EXPECT_EQ(peer_->reports.back(),
              (Report{30, LAWN_VERBS_DONE, IBV_WC_SUCCESS}));
}

TEST_F(VerbsFailure, AReportMayPost)
{
    uint64_t next = 5;
    peer_->on_report = [&] {
        EXPECT_EQ(post(next++), LAWN_OK);
        return true;
    };
    peer_->device.carry_out(5);
    pass_after(msec);
    EXPECT_EQ(peer_->reports.size(), 5U);
    EXPECT_EQ(peer_->device.requests.size(), 5U);
}

class VerbsEnd : public VerbsFailure, public testing::WithParamInterface<size_t>
{
};

// After the first, third or last report.
TEST_P(VerbsEnd, AReportMayCloseAndFree)
{
    peer_->on_report = [this] {
        if (peer_->reports.size() != GetParam()) {
            return true;
        }
        lawn_verbs_close(&peer_->rc);
        peers_.erase(peers_.begin());
        return false;
    };
    if (GetParam() % 2 != 0) {
        peer_->device.fail(IBV_WC_RETRY_EXC_ERR);
        poll(peer_);
    } else {
        peer_->device.flushes = false;
        pass_after(10 * msec);
        pass_after(100 * msec);
    }
    EXPECT_TRUE(peers_.empty());
    EXPECT_EQ(lawn_count(lawn_), 0U);
}

INSTANTIATE_TEST_SUITE_P(Report, VerbsEnd, testing::Values(1, 2, 3, 4, 5));

// Of a request, and of the reports' own.
TEST_F(VerbsFailure, AReportMayFailIt)
{
    peer_->on_report = [this] {
        lawn_verbs_fail(&peer_->rc, now_, LAWN_VERBS_PROGRAM);
        return true;
    };
    peer_->device.carry_out(2);
    pass_after(msec);
    EXPECT_EQ(peer_->reports.size(), 5U);
    EXPECT_EQ(peer_->reports[1].outcome, LAWN_VERBS_DONE);
    expect_failed(LAWN_VERBS_PROGRAM, IBV_WC_WR_FLUSH_ERR);
}

} // namespace
