// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A queue pair on a device that does what the test says, on virtual time, where
// a tick is a nanosecond. What is reported is kept.

#ifndef LAWN_TEST_UNIT_VERBS_FIXTURE_H
#define LAWN_TEST_UNIT_VERBS_FIXTURE_H

#include "fake_device.h"

#include <lawn/verbs.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <vector>

namespace lawn_test
{

struct Report {
    uint64_t wr_id;
    lawn_verbs_outcome_t outcome;
    ibv_wc_status status;
};

inline bool operator==(const Report &a, const Report &b)
{
    return a.wr_id == b.wr_id && a.outcome == b.outcome && a.status == b.status;
}

inline std::ostream &operator<<(std::ostream &out, const Report &report)
{
    return out << report.wr_id << ": outcome " << report.outcome << ", status "
               << report.status;
}

class VerbsTest : public testing::Test
{
protected:
    static constexpr lawn_time_t usec = 1'000;
    static constexpr lawn_time_t msec = 1'000 * usec;
    static constexpr lawn_time_t sec = 1'000 * msec;
    static constexpr uint32_t capacity = 8;

    struct Peer {
        lawn_verbs_rc_t rc = {}; // first
        VerbsTest *test = nullptr;
        FakeDevice device;
        std::vector<lawn_verbs_request_t> ring;
        std::vector<Report> reports;
        unsigned failures = 0;
        std::function<bool()> on_report = nullptr;
        std::function<bool()> on_failed = nullptr;
    };

    VerbsTest()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        EXPECT_EQ(lawn_queue_create(lawn_, 10 * msec, &gets_), LAWN_OK);
        EXPECT_EQ(lawn_queue_create(lawn_, 90 * msec, &puts_), LAWN_OK);
        peer_ = make_peer();
        init();
    }

    ~VerbsTest() override
    {
        for (const auto &peer : peers_) {
            lawn_verbs_close(&peer->rc);
        }
        EXPECT_EQ(lawn_count(lawn_), 0U);
        lawn_destroy(lawn_);
    }

    Peer *make_peer(size_t requests = capacity)
    {
        peers_.push_back(std::make_unique<Peer>());
        Peer *const peer = peers_.back().get();
        peer->test = this;
        peer->ring.resize(requests);
        return peer;
    }

    static lawn_verbs_params_t params_of(Peer *peer)
    {
        static const lawn_verbs_ops_t ops = {report, failed};
        lawn_verbs_params_t params = {};
        params.qp = &peer->device.qp;
        params.lawn = peer->test->lawn_;
        params.ops = &ops;
        params.ring = peer->ring.data();
        params.capacity = static_cast<uint32_t>(peer->ring.size());
        params.flush_timeout = 100 * msec;
        return params;
    }

    void init(lawn_time_t keepalive_idle = 0, lawn_time_t keepalive_timeout = 0)
    {
        lawn_verbs_params_t params = params_of(peer_);
        params.keepalive_idle = keepalive_idle;
        params.keepalive_timeout = keepalive_timeout;
        lawn_verbs_close(&peer_->rc);
        EXPECT_EQ(lawn_verbs_init(&peer_->rc, &params, now_), LAWN_OK);
    }

    static lawn_status_t post(Peer *peer, uint64_t wr_id, lawn_queue_t *queue,
                              unsigned flags = IBV_SEND_SIGNALED)
    {
        ibv_send_wr wr = {};
        ibv_send_wr *bad = nullptr;
        wr.wr_id = wr_id;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = flags;
        return lawn_verbs_post(&peer->rc, queue, peer->test->now_, &wr, &bad);
    }

    lawn_status_t post(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED)
    {
        return post(peer_, wr_id, gets_, flags);
    }

    // As a source of an engine.
    static void poll(Peer *peer)
    {
        while (!peer->device.completions.empty()) {
            const ibv_wc wc = peer->device.completions.front();
            peer->device.completions.pop_front();
            EXPECT_TRUE(lawn_verbs_owns(&wc));
            if (!lawn_verbs_complete(&peer->rc, &wc, peer->test->now_)) {
                return;
            }
        }
    }

    // A pass: receives, then expires.
    void pass_at(lawn_time_t now)
    {
        now_ = now;
        for (size_t i = 0; i < peers_.size(); ++i) {
            poll(peers_[i].get());
        }
        lawn_advance(lawn_, now_, 64);
    }

    void pass_after(lawn_time_t ticks)
    {
        pass_at(now_ + ticks);
    }

    // These, in this order, and the same of each.
    static std::vector<Report> all(std::vector<uint64_t> wr_ids,
                                   lawn_verbs_outcome_t outcome,
                                   ibv_wc_status status)
    {
        std::vector<Report> reports;
        for (const uint64_t wr_id : wr_ids) {
            reports.push_back({wr_id, outcome, status});
        }
        return reports;
    }

    static bool report(lawn_verbs_rc_t *rc, uint64_t wr_id,
                       lawn_verbs_outcome_t outcome, ibv_wc_status status,
                       lawn_time_t now)
    {
        Peer *const peer = reinterpret_cast<Peer *>(rc);
        EXPECT_EQ(now, peer->test->now_);
        EXPECT_EQ(peer->failures, 0U) << "a report after the last";
        peer->reports.push_back({wr_id, outcome, status});
        return !peer->on_report || peer->on_report();
    }

    static bool failed(lawn_verbs_rc_t *rc, lawn_time_t now)
    {
        Peer *const peer = reinterpret_cast<Peer *>(rc);
        EXPECT_EQ(now, peer->test->now_);
        EXPECT_NE(peer->device.qp.state, IBV_QPS_RTS);
        peer->failures++;
        return !peer->on_failed || peer->on_failed();
    }

    lawn_t *lawn_ = nullptr;
    lawn_queue_t *gets_ = nullptr; // within 10 ms
    lawn_queue_t *puts_ = nullptr; // within 90 ms
    lawn_time_t now_ = 5 * sec;
    std::vector<std::unique_ptr<Peer>> peers_;
    Peer *peer_ = nullptr; // the first
};

} // namespace lawn_test

#endif
