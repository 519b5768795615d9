// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests of RC queue pairs, on devices that carry out, refuse, fail, flush
// late or never, and leave completions of before a reset. Each request is
// reported once and in order, DONE only if it was carried out, NOT_DONE only if
// not; no deadline passes unnoticed, and none is early.

#include "../unit/verbs/fake_device.h"
#include "input.h"

#include <lawn/verbs.h>

#include <algorithm>
#include <deque>
#include <set>

namespace
{

using fuzz::Input;
using lawn_test::FakeDevice;

class QueuePairs
{
public:
    explicit QueuePairs(Input input) : input_(input)
    {
        FUZZ_CHECK(lawn_create(nullptr, &lawn_) == LAWN_OK);
        const lawn_time_t ttls[] = {0, 1000, 1'000'000, LAWN_TIME_INFINITY};
        for (size_t i = 0; i < 4; ++i) {
            FUZZ_CHECK(lawn_queue_create(lawn_, ttls[i], &queues_[i]) ==
                       LAWN_OK);
        }
        for (Peer &peer : peers_) {
            peer.all = this;
        }
    }

    void run()
    {
        while (!input_.is_empty() && ++work_ < fuzz::most_work) {
            step(input_.byte(), [this] { return input_.number(); });
        }
        for (Peer &peer : peers_) {
            lawn_verbs_close(&peer.rc);
        }
        FUZZ_CHECK(lawn_count(lawn_) == 0);
        FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        lawn_destroy(lawn_);
    }

private:
    static constexpr lawn_time_t last = LAWN_TIME_INFINITY - 2; // see timer.h
    static constexpr uint32_t capacity = 8;

    struct Posted {
        uint64_t wr_id;
        uint64_t device_id; // its wr_id there
        lawn_time_t deadline;
        unsigned pass; // before which it was posted
    };

    struct Peer {
        lawn_verbs_rc_t rc = {}; // first
        QueuePairs *all = nullptr;
        FakeDevice device;
        lawn_verbs_request_t ring[capacity] = {};
        std::deque<Posted> posted; // and not reported
        std::set<uint64_t> carried_out;
        uint64_t next = 0;       // the wr_id
        bool is_refused = false; // by the peer's device: it takes no more
        bool is_begun = false;   // and neither closed nor over
    };

    template <class Number> void step(unsigned op, Number number)
    {
        Peer *const peer = &peers_[op / 16 % 2];
        FakeDevice *const device = &peer->device;
        switch (op % 16) {
        case 0:
            init(peer, number(), number());
            break;
        case 1:
            lawn_verbs_close(&peer->rc);
            peer->posted.clear();
            peer->is_begun = false;
            break;
        case 2:
            lawn_verbs_fail(&peer->rc, now_, LAWN_VERBS_PROGRAM);
            break;
        case 3:
        case 4:
        case 5:
            post(peer, number() % 12, number());
            break;
        case 6:
        case 7:
            carry_out(peer, number() % 10);
            break;
        case 8:
            if (!device->requests.empty() && device->qp.state == IBV_QPS_RTS) {
                const auto status =
                    static_cast<ibv_wc_status>(1 + number() % 20);
                peer->is_refused = is_refusal(status);
                device->fail(status);
            }
            break;
        case 9:
            device->flushes = (op / 32) % 2 != 0;
            device->obeys = (op / 64) % 2 != 0;
            break;
        case 10:
            if (device->qp.state == IBV_QPS_ERR) {
                device->flush();
            }
            break;
        case 11:
            device->takes = static_cast<unsigned>(number() % 8);
            break;
        case 12:
            now_ += std::min(number(), last - now_);
            break;
        default:
            pass(op / 64);
            break;
        }
    }

    void init(Peer *peer, uint64_t idle, uint64_t timeout)
    {
        static const lawn_verbs_ops_t ops = {report, failed};
        lawn_verbs_params_t params = {};
        params.qp = &peer->device.qp;
        params.lawn = lawn_;
        params.ops = &ops;
        params.ring = peer->ring;
        params.capacity = static_cast<uint32_t>(1 + timeout % capacity);
        params.keepalive_idle = idle;
        params.keepalive_timeout = timeout;
        params.flush_timeout = 1'000'000;
        const bool is_possible =
            (params.capacity & (params.capacity - 1)) == 0 &&
            (idle == 0 || timeout != 0);
        const bool was_begun = peer->is_begun;
        const lawn_status_t status = lawn_verbs_init(&peer->rc, &params, now_);
        if (!is_possible) {
            FUZZ_CHECK(status == LAWN_ERR_INVALID_PARAM);
        } else if (status == LAWN_OK) {
            FUZZ_CHECK(!was_begun);
            peer->is_begun = true;
            peer->is_refused = false;
            // It is connected again; the device knows nothing of before.
            peer->device.requests.clear();
            peer->device.qp.state = IBV_QPS_RTS;
        } else {
            FUZZ_CHECK(status == LAWN_ERR_BUSY && was_begun);
        }
    }

    void post(Peer *peer, size_t count, uint64_t bits)
    {
        ibv_send_wr wrs[12] = {};
        ibv_send_wr *bad = nullptr;
        for (size_t i = 0; i < count; ++i) {
            wrs[i].wr_id = peer->next + i;
            wrs[i].send_flags = bits >> i & 1 ? IBV_SEND_SIGNALED : 0;
            wrs[i].next = i + 1 < count ? &wrs[i + 1] : nullptr;
        }
        lawn_queue_t *const queue = bits % 5 == 4 ? nullptr : queues_[bits % 5];
        const size_t room =
            peer->rc.params.capacity - (peer->rc.next - peer->rc.first);
        const uint64_t before = peer->device.posted;
        const lawn_verbs_state_t state = peer->rc.state;
        const lawn_status_t status = lawn_verbs_post(
            &peer->rc, queue, now_, count > 0 ? wrs : nullptr, &bad);
        size_t taken = peer->device.posted - before;
        for (size_t i = 0; i < count; ++i) {
            FUZZ_CHECK(wrs[i].wr_id == peer->next + i);
        }
        switch (status) {
        case LAWN_OK:
            FUZZ_CHECK(state == LAWN_VERBS_OPEN && taken == count);
            break;
        case LAWN_ERR_BUSY:
            FUZZ_CHECK(count > room && taken == 0);
            break;
        default:
            FUZZ_CHECK(status == LAWN_ERR_IO);
            FUZZ_CHECK(count == 0 || bad == &wrs[taken]);
            FUZZ_CHECK(state == LAWN_VERBS_OPEN ? errno == EINVAL
                                                : errno == ENOTCONN);
        }
        for (size_t i = 0; i < taken; ++i) {
            const uint64_t number = peer->rc.next - taken + i;
            const lawn_time_t ttl = queue ? lawn_queue_ttl(queue) : last;
            peer->posted.push_back(
                {peer->next++, LAWN_VERBS_ID | number,
                 ttl >= last - now_ ? LAWN_TIME_INFINITY : now_ + ttl,
                 passes_});
        }
    }

    static bool is_refusal(ibv_wc_status status)
    {
        return status == IBV_WC_REM_INV_REQ_ERR ||
               status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR ||
               status == IBV_WC_RNR_RETRY_EXC_ERR;
    }

    // Without an answer, if this side's queue pair has failed.
    void carry_out(Peer *peer, size_t count)
    {
        FakeDevice *const device = &peer->device;
        count = peer->is_refused ? 0 : count;
        count = std::min(count, device->requests.size());
        for (size_t i = 0; i < count; ++i) {
            peer->carried_out.insert(device->requests[i].wr_id);
        }
        if (device->qp.state == IBV_QPS_RTS) {
            device->carry_out(count);
        }
    }

    void pass(unsigned budget)
    {
        const unsigned pass = ++passes_;
        for (Peer &peer : peers_) {
            std::deque<ibv_wc> *const completions = &peer.device.completions;
            while (!completions->empty()) {
                const ibv_wc wc = completions->front();
                completions->pop_front();
                FUZZ_CHECK(lawn_verbs_owns(&wc));
                if (!lawn_verbs_complete(&peer.rc, &wc, now_)) {
                    break;
                }
            }
        }
        lawn_advance(lawn_, now_, budget);
        for (const Peer &peer : peers_) {
            for (const Posted &posted : peer.posted) {
                FUZZ_CHECK(peer.rc.state != LAWN_VERBS_OPEN || budget != 0 ||
                           posted.deadline > now_ || posted.pass == pass);
            }
        }
    }

    static bool report(lawn_verbs_rc_t *rc, uint64_t wr_id,
                       lawn_verbs_outcome_t outcome, ibv_wc_status status,
                       lawn_time_t now)
    {
        Peer *const peer = reinterpret_cast<Peer *>(rc);
        FUZZ_CHECK(now == peer->all->now_);
        FUZZ_CHECK(!peer->posted.empty());
        const Posted posted = peer->posted.front();
        peer->posted.pop_front();
        FUZZ_CHECK(posted.wr_id == wr_id);
        const bool was_carried_out = peer->carried_out.count(posted.device_id);
        FUZZ_CHECK(outcome != LAWN_VERBS_DONE || was_carried_out);
        FUZZ_CHECK(outcome != LAWN_VERBS_NOT_DONE || !was_carried_out);
        FUZZ_CHECK((outcome == LAWN_VERBS_DONE) == (status == IBV_WC_SUCCESS));
        return peer->all->call_back(peer);
    }

    static bool failed(lawn_verbs_rc_t *rc, lawn_time_t now)
    {
        Peer *const peer = reinterpret_cast<Peer *>(rc);
        FUZZ_CHECK(now == peer->all->now_);
        FUZZ_CHECK(peer->posted.empty());
        FUZZ_CHECK(peer->is_begun && rc->state > LAWN_VERBS_OPEN);
        peer->is_begun = false;
        return peer->all->call_back(peer);
    }

    // Anything but a pass. False if it has closed `peer`.
    bool call_back(Peer *peer)
    {
        const unsigned op = input_.byte_at_end();
        if (++work_ >= fuzz::most_work || op % 16 >= 12) {
            return true;
        }
        step(op, [this] { return input_.number_at_end(); });
        return op % 16 != 1 || &peers_[op / 16 % 2] != peer;
    }

    Input input_;
    lawn_t *lawn_ = nullptr;
    lawn_queue_t *queues_[4] = {};
    Peer peers_[2];
    lawn_time_t now_ = 0;
    unsigned passes_ = 0;
    unsigned work_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    QueuePairs(Input(data, size)).run();
    return 0;
}
