// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The device of an RC queue pair, which does what a test says: carries out
// requests, fails, flushes at once, later or never. ibv_post_send() finds it in
// the context of the queue pair, and ibv_modify_qp() is here instead of in
// libibverbs.

#ifndef LAWN_TEST_UNIT_VERBS_FAKE_DEVICE_H
#define LAWN_TEST_UNIT_VERBS_FAKE_DEVICE_H

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <vector>

namespace lawn_test
{

class FakeDevice
{
public:
    struct Request {
        uint64_t wr_id;
        ibv_wr_opcode opcode;
        unsigned send_flags;
        int num_sge;
    };

    FakeDevice()
    {
        context_.ops.post_send = post_send;
        qp.context = &context_;
        qp.qp_type = IBV_QPT_RC;
        qp.state = IBV_QPS_RTS;
    }

    FakeDevice(const FakeDevice &) = delete;
    FakeDevice &operator=(const FakeDevice &) = delete;

    static FakeDevice *of(ibv_qp *qp)
    {
        return reinterpret_cast<FakeDevice *>(qp); // it is the first field
    }

    // The peer's device carries out the oldest `count` requests.
    void carry_out(size_t count)
    {
        while (count-- > 0) {
            if (requests.front().send_flags & IBV_SEND_SIGNALED) {
                complete(IBV_WC_SUCCESS);
            }
            requests.pop_front();
        }
    }

    // The oldest fails, and so does the queue pair.
    void fail(ibv_wc_status status)
    {
        complete(status);
        requests.pop_front();
        qp.state = IBV_QPS_ERR;
        if (flushes) {
            flush();
        }
    }

    void flush()
    {
        while (!requests.empty()) {
            complete(IBV_WC_WR_FLUSH_ERR);
            requests.pop_front();
        }
    }

    int modify(ibv_qp_state state)
    {
        if (!obeys) {
            return EIO;
        }
        qp.state = state;
        if (state == IBV_QPS_ERR && flushes) {
            flush();
        } else if (state == IBV_QPS_RESET) {
            requests.clear();
        }
        return 0;
    }

    ibv_qp qp = {};
    std::deque<Request> requests;   // outstanding
    std::deque<ibv_wc> completions; // what ibv_poll_cq() would give
    uint64_t posted = 0;
    bool obeys = true;       // changes its state
    bool flushes = true;     // at once, when it has failed
    unsigned takes = 100000; // so many requests, then refuses one

private:
    void complete(ibv_wc_status status)
    {
        ibv_wc wc = {};
        wc.wr_id = requests.front().wr_id;
        wc.status = status;
        completions.push_back(wc);
    }

    static int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad)
    {
        FakeDevice *const device = of(qp);
        for (; wr; wr = wr->next) {
            if (device->takes == 0) {
                device->takes = 100000;
                *bad = wr;
                return EINVAL;
            }
            device->takes--;
            device->posted++;
            device->requests.push_back(
                {wr->wr_id, wr->opcode, wr->send_flags, wr->num_sge});
        }
        if (qp->state == IBV_QPS_ERR && device->flushes) {
            device->flush();
        }
        return 0;
    }

    ibv_context context_ = {};
};

} // namespace lawn_test

extern "C" inline __attribute__((used)) int
ibv_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask)
{
    return mask == IBV_QP_STATE
               ? lawn_test::FakeDevice::of(qp)->modify(attr->qp_state)
               : EINVAL;
}

#endif
