// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The daemon: a pump of a namespace, a consumer of what has fired for targets,
// and the server of metrics and health, on one loop in one thread.
//
//     Daemon daemon(options);
//     return daemon.run();
#ifndef LAWND_DAEMON_H
#define LAWND_DAEMON_H

#include "delivery.h"
#include "http_server.h"
#include "log.h"
#include "metrics.h"
#include "options.h"
#include "scraper.h"

#include "src/loop.h"

#include <lawn/durable.h>

#include <memory>
#include <string>
#include <vector>

namespace lawnd
{

class Daemon
{
public:
    // Blocks the signals that it waits for. Throws std::runtime_error with one
    // line if it cannot be.
    explicit Daemon(const Options &options);
    ~Daemon();
    Daemon(const Daemon &) = delete;
    Daemon &operator=(const Daemon &) = delete;

    // Runs until a signal ends it. Throws std::runtime_error with one line if
    // the store cannot be reached at the start, or refuses the daemon.
    void run();

private:
    // A descriptor of which only the readiness matters: it wakes the loop.
    class Wake : public lawn::durable::Watched
    {
    public:
        void on_events(uint32_t /*events*/) override
        {
        }
        void flush() override
        {
        }
    };

    void open_store();
    void block_signals();
    void begin();
    void poll();
    void take_signals();
    void begin_drain();
    bool is_drained() const;
    void report_store();

    void deliver(const lawn_durable_delivery_t *delivery);
    void post(const lawn_durable_delivery_t *delivery);
    void publish(const lawn_durable_delivery_t *delivery);
    void answer(const lawn_durable_delivery_t *delivery, const Outcome &outcome,
                Deliveries *deliveries);

    void serve(std::string_view path, HttpReply reply);
    void serve_health(const HttpReply &reply);
    void serve_metrics(HttpReply reply);
    std::string metrics(const std::vector<Shard> &shards) const;

    const Options options_;
    lawn::durable::Loop loop_;
    Wake durable_wake_;
    Wake signal_wake_;
    int signal_fd_ = -1;
    std::unique_ptr<HttpServer> server_;
    std::unique_ptr<Delivery> delivery_;
    std::unique_ptr<Scraper> scraper_;
    std::unique_ptr<lawn::durable::Timer> drain_timer_;
    lawn_durable_t *durable_ = nullptr;
    lawn_durable_pump_t *pump_ = nullptr;
    lawn_durable_consumer_t *consumer_ = nullptr;

    bool is_ready_ = false;
    bool is_draining_ = false;
    bool has_ended_ = false;
    std::string refusal_;     // why the store cannot be used from the start
    std::string warned_;      // the warning that was logged last; "": none
    std::string lost_;        // the same of timers that were lost
    std::string reported_;    // the error that was logged last; "": none
    bool is_partial_ = false; // it keeps the daemon from some shards only
    SparseLog rejections_;
    SparseLog hangs_;
    lawn_durable_pump_stats_t pumped_ = {}; // by the pump that is closed
    Deliveries http_;
    Deliveries stream_;
    size_t publishing_ = 0;
};

} // namespace lawnd

#endif
