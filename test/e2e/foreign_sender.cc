// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A stranger on the fabric; see foreign_sender.h.

#include "foreign_sender.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <sstream>

namespace e2e
{

namespace
{

// The ping-pong's: a stranger who knows the key is the one to worry about.
constexpr uint32_t qkey = 0x4c61776e;
constexpr uint8_t magic[] = {0x4c, 0x57, 0x50, 0x4e};

ibv_context *open_device(const std::string &name)
{
    int count = 0;
    ibv_device **const list = ibv_get_device_list(&count);
    ibv_context *context = nullptr;
    for (int i = 0; i < count; ++i) {
        if (name == ibv_get_device_name(list[i])) {
            context = ibv_open_device(list[i]);
        }
    }
    if (list) {
        ibv_free_device_list(list);
    }
    return context;
}

} // namespace

std::vector<uint32_t> ud_queue_pairs(const std::string &device)
{
    const std::string command = "rdma resource show qp link " + device;
    FILE *const pipe = popen(command.c_str(), "r");
    std::vector<uint32_t> numbers;
    char line[512];
    while (pipe && fgets(line, sizeof(line), pipe)) {
        std::istringstream words(line);
        uint32_t number = 0;
        for (std::string word; words >> word;) {
            if (word == "lqpn") {
                words >> number;
            } else if (word == "type") {
                words >> word;
                if (word == "UD") {
                    numbers.push_back(number);
                }
            }
        }
    }
    if (pipe) {
        pclose(pipe);
    }
    return numbers;
}

ForeignSender::ForeignSender(const std::string &device)
{
    context_ = open_device(device);
    if (!context_) {
        ADD_FAILURE() << "no device " << device;
        return;
    }
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, buffer_, sizeof(buffer_), IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr init = {};
    init.send_cq = cq_;
    init.recv_cq = cq_;
    init.cap = {16, 1, 1, 1, 0};
    init.qp_type = IBV_QPT_UD;
    qp_ = ibv_create_qp(pd_, &init);
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = qkey;
    EXPECT_EQ(ibv_modify_qp(qp_, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                IBV_QP_QKEY),
              0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

ForeignSender::~ForeignSender()
{
    if (context_) {
        ibv_destroy_qp(qp_);
        ibv_dereg_mr(mr_);
        ibv_destroy_cq(cq_);
        ibv_dealloc_pd(pd_);
        ibv_close_device(context_);
    }
}

bool ForeignSender::send_one(ibv_ah *ah, uint32_t qpn)
{
    const size_t length = random_() % sizeof(buffer_);
    for (size_t i = 0; i < length; ++i) {
        buffer_[i] = static_cast<uint8_t>(random_());
    }
    if (length >= sizeof(magic) && random_() % 2 == 0) {
        memcpy(buffer_, magic, sizeof(magic));
    }
    ibv_sge sge = {reinterpret_cast<uintptr_t>(buffer_),
                   static_cast<uint32_t>(length), mr_->lkey};
    ibv_send_wr wr = {};
    ibv_send_wr *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
    if (ibv_post_send(qp_, &wr, &bad) != 0) {
        return false;
    }
    ibv_wc wc = {};
    int taken = 0;
    while ((taken = ibv_poll_cq(cq_, 1, &wc)) == 0) {
    }
    return taken == 1 && wc.status == IBV_WC_SUCCESS;
}

unsigned ForeignSender::send_to(const std::string &device, uint32_t qpn,
                                unsigned count)
{
    ibv_context *const peer = open_device(device);
    ibv_ah_attr attr = {};
    attr.port_num = 1;
    attr.is_global = 1;
    if (peer) {
        ibv_query_gid(peer, 1, 0, &attr.grh.dgid);
        ibv_close_device(peer);
    }
    attr.grh.hop_limit = 1;
    ibv_ah *const ah = context_ ? ibv_create_ah(pd_, &attr) : nullptr;
    unsigned sent = 0;
    for (unsigned i = 0; ah && i < count; ++i) {
        sent += send_one(ah, qpn);
    }
    if (ah) {
        ibv_destroy_ah(ah);
    }
    return sent;
}

} // namespace e2e
