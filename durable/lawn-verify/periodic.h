// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers that `verify` starts before it does harm, and stops behind it. They
// fire again and again meanwhile, and no consumer asks for a retry, so that
// each occurrence must come.

#ifndef LAWN_VERIFY_PERIODIC_H
#define LAWN_VERIFY_PERIODIC_H

#include "common.h"
#include "history.h"

#include <string>
#include <vector>

namespace lawn_verify
{

class PeriodicTimers
{
public:
    // `durability` is that of a start that no failover undoes. The history must
    // outlive this.
    PeriodicTimers(const Settings &settings, int durability,
                   HistoryWriter &history);

    // Each ends when all are started, or stopped, and says what is wrong, or
    // nothing.
    std::string start();
    std::string stop();

private:
    struct Timer {
        PeriodicTimers *all;
        std::string id;
    };

    void send_stop(Timer *timer);
    static void on_start(void *arg, const lawn_durable_result_t *result);
    static void on_stop(void *arg, const lawn_durable_result_t *result);
    std::string wait();

    Client client_;
    const int durability_;
    HistoryWriter &history_;
    std::vector<Timer> timers_;
    size_t open_ = 0; // requests
    std::string wrong_;
};

} // namespace lawn_verify

#endif
