// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A stranger on the fabric: sends random datagrams, some with the ping-pong's
// magic in front, to a queue pair that did not ask for them.

#ifndef LAWN_TEST_E2E_FOREIGN_SENDER_H
#define LAWN_TEST_E2E_FOREIGN_SENDER_H

#include <infiniband/verbs.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace e2e
{

// Numbers of the UD queue pairs of programs on `device`.
std::vector<uint32_t> ud_queue_pairs(const std::string &device);

class ForeignSender
{
public:
    explicit ForeignSender(const std::string &device);
    ~ForeignSender();

    ForeignSender(const ForeignSender &) = delete;
    ForeignSender &operator=(const ForeignSender &) = delete;

    // Returns how many datagrams left for queue pair `qpn` of `device`.
    unsigned send_to(const std::string &device, uint32_t qpn, unsigned count);

private:
    bool send_one(ibv_ah *ah, uint32_t qpn);

    ibv_context *context_ = nullptr;
    ibv_pd *pd_ = nullptr;
    ibv_cq *cq_ = nullptr;
    ibv_qp *qp_ = nullptr;
    ibv_mr *mr_ = nullptr;
    uint8_t buffer_[1024] = {};
    std::mt19937 random_{1};
};

} // namespace e2e

#endif
