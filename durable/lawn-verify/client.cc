// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn-verify client: starts, stops and updates timers at random until
// SIGTERM, and writes down what it asked for and what it was told.

#include "commands.h"
#include "worker.h"

#include <algorithm>

namespace lawn_verify
{

namespace
{

constexpr int64_t ms = 1000;
constexpr int64_t second_us = 1000 * ms;
constexpr int64_t longest_delay_us = 3 * second_us;
constexpr int64_t pause_us = 100 * ms; // before a request is repeated
// Requests are repeated after SIGTERM, too, for as long as this.
constexpr int64_t patience_us = 60 * second_us;

bool is_unheard(lawn_status_t status)
{
    return status == LAWN_ERR_IO || status == LAWN_ERR_TIMED_OUT;
}

// The store, or this client, has too much to do.
bool is_passing(lawn_status_t status)
{
    return status == LAWN_ERR_BUSY || status == LAWN_ERR_NO_MEMORY;
}

class StartingClient
{
public:
    StartingClient(const Settings &settings, Arguments &arguments);
    void run();

private:
    struct Request {
        StartingClient *self;
        EventKind kind; // start, stop or update
        uint64_t operation;
        std::string id;
        std::string payload;
        uint64_t delay_us;
        uint64_t generation; // of an update
        int durability;
        // With the generation; not called if it was refused.
        std::function<void(uint64_t)> then;
    };

    void make_timer();
    void start(const std::string &id, uint64_t delay_us, bool wants_a_retry,
               std::function<void(uint64_t)> then);
    void stop(const std::string &id);
    void update(const std::string &id, uint64_t generation);
    std::unique_ptr<Request> make_request(EventKind kind,
                                          const std::string &id);
    void send(std::unique_ptr<Request> request);
    lawn_status_t submit(Request *request);
    void repeat(std::unique_ptr<Request> request);
    static void on_result(void *arg, const lawn_durable_result_t *result);
    void take(std::unique_ptr<Request> request,
              const lawn_durable_result_t &result);
    void note(EventKind kind, const Request &request);

    Worker worker_;
    int64_t gap_us_;
    int surer_; // the durability of every second request; the others: async
    uint64_t timers_ = 0;
    uint64_t operations_ = 0;
    size_t open_ = 0; // requests that are not settled
    bool is_ending_ = false;
};

StartingClient::StartingClient(const Settings &settings, Arguments &arguments)
    : worker_(settings, arguments)
{
    const uint64_t rate =
        arguments.take_number("--rate", 1, 1000000).value_or(100);
    gap_us_ = static_cast<int64_t>(1000000 / rate);
    // To one replica.
    surer_ = arguments.take_flag("--replicated") ? 1 : LAWN_DURABLE_FSYNC;
    arguments.finish();
}

void StartingClient::note(EventKind kind, const Request &request)
{
    Event event;
    event.kind = kind;
    event.operation = request.operation;
    event.id = request.id;
    event.generation = request.generation;
    event.due_us = static_cast<int64_t>(request.delay_us);
    event.word =
        request.durability == LAWN_DURABLE_ASYNC ? word_async : word_sure;
    worker_.history().write(event);
}

std::unique_ptr<StartingClient::Request>
StartingClient::make_request(EventKind kind, const std::string &id)
{
    auto request = std::make_unique<Request>();
    request->self = this;
    request->kind = kind;
    request->operation =
        static_cast<uint64_t>(worker_.process()) << 32 | ++operations_;
    request->id = id;
    request->durability = worker_.random(2) == 0 ? LAWN_DURABLE_ASYNC : surer_;
    ++open_;
    return request;
}

lawn_status_t StartingClient::submit(Request *request)
{
    lawn_durable_t *durable = worker_.client().get();
    if (request->kind == EventKind::stop) {
        return lawn_durable_stop(durable, request->id.c_str(),
                                 request->durability, on_result, request);
    }
    if (request->kind == EventKind::update) {
        lawn_durable_update_t update = {};
        update.id = request->id.c_str();
        update.generation = request->generation;
        update.delay_us = request->delay_us;
        update.durability = request->durability;
        return lawn_durable_update(durable, &update, on_result, request);
    }
    lawn_durable_start_t start = {};
    start.id = request->id.c_str();
    start.delay_us = request->delay_us;
    start.payload = request->payload.data();
    start.payload_size = request->payload.size();
    start.durability = request->durability;
    start.token = request->operation;
    start.max_attempts = 1000; // a fault may take many
    return lawn_durable_start(durable, &start, on_result, request);
}

void StartingClient::send(std::unique_ptr<Request> request)
{
    note(request->kind, *request);
    Request *sent = request.release(); // on_result() takes it back
    const lawn_status_t status = submit(sent);
    if (status == LAWN_OK) {
        return;
    }
    if (!is_passing(status)) {
        fail(std::string("a request was refused: ") +
             lawn_status_string(status));
    }
    repeat(std::unique_ptr<Request>(sent));
}

void StartingClient::repeat(std::unique_ptr<Request> request)
{
    const auto shared =
        std::make_shared<std::unique_ptr<Request>>(std::move(request));
    worker_.after(pause_us, [this, shared] { send(std::move(*shared)); });
}

void StartingClient::on_result(void *arg, const lawn_durable_result_t *result)
{
    std::unique_ptr<Request> request(static_cast<Request *>(arg));
    StartingClient *self = request->self;
    self->take(std::move(request), *result);
}

void StartingClient::take(std::unique_ptr<Request> request,
                          const lawn_durable_result_t &result)
{
    const bool is_update = request->kind == EventKind::update;
    if (is_unheard(result.status) || is_passing(result.status)) {
        if (is_unheard(result.status)) {
            note(EventKind::unheard, *request);
        }
        // An update that was carried out makes the repeated one fail, which
        // would say nothing.
        if (is_update) {
            --open_;
        } else {
            repeat(std::move(request));
        }
        return;
    }
    --open_;
    if (result.status != LAWN_OK) {
        if (!is_update || result.status != LAWN_ERR_NO_ELEM) {
            complain(request->id + ": " +
                     reason_of(result.status, result.error));
        }
        note(EventKind::refused, *request);
        return;
    }
    Event event;
    event.operation = request->operation;
    event.id = request->id;
    event.generation = result.generation;
    event.due_us = result.due_us;
    if (request->kind == EventKind::stop) {
        event.kind = EventKind::stopped;
        event.word = result.state == LAWN_DURABLE_STOPPED   ? "stopped"
                     : result.state == LAWN_DURABLE_UNKNOWN ? "unknown"
                                                            : "late";
    } else {
        event.kind = is_update ? EventKind::updated : EventKind::started;
    }
    worker_.history().write(event);
    if (request->then && !is_ending_) {
        request->then(result.generation);
    }
}

void StartingClient::start(const std::string &id, uint64_t delay_us,
                           bool wants_a_retry,
                           std::function<void(uint64_t)> then)
{
    auto request = make_request(EventKind::start, id);
    request->delay_us = delay_us;
    request->payload = std::to_string(request->operation);
    if (wants_a_retry) {
        request->payload += wants_retry;
    }
    request->then = std::move(then);
    send(std::move(request));
}

void StartingClient::stop(const std::string &id)
{
    send(make_request(EventKind::stop, id));
}

void StartingClient::update(const std::string &id, uint64_t generation)
{
    auto request = make_request(EventKind::update, id);
    request->generation = generation;
    request->delay_us = worker_.random(longest_delay_us);
    send(std::move(request));
}

void StartingClient::make_timer()
{
    const std::string id = "timer-" + std::to_string(worker_.process()) + "-" +
                           std::to_string(++timers_);
    const uint64_t delay_us =
        worker_.random(20) == 0 ? 0 : worker_.random(longest_delay_us);
    // A while that ends before the timer is due, or soon after.
    const auto while_us =
        static_cast<int64_t>(worker_.random(delay_us + delay_us / 4 + 1));
    const uint64_t what = worker_.random(100);
    if (what < 12) {
        start(id, delay_us, false, [this, id, while_us](uint64_t) {
            worker_.after(while_us, [this, id] { stop(id); });
        });
    } else if (what < 20) {
        start(id, delay_us, false, [this, id, while_us](uint64_t generation) {
            worker_.after(while_us,
                          [this, id, generation] { update(id, generation); });
        });
    } else if (what < 25) {
        start(id, delay_us, false, [this, id, while_us](uint64_t) {
            worker_.after(while_us,
                          [this, id] { start(id, 100 * ms, false, {}); });
        });
    } else {
        start(id, delay_us, what < 35, {});
    }
}

void StartingClient::run()
{
    std::function<void()> next = [&] {
        if (!is_ending_) {
            make_timer();
            worker_.after(gap_us_, next);
        }
    };
    next();
    worker_.run([] { return !was_signalled(); });
    is_ending_ = true;
    const int64_t until_us = monotonic_now() + patience_us;
    worker_.run([&] { return open_ != 0 && monotonic_now() < until_us; });
}

} // namespace

int run_client(const Settings &settings, Arguments &arguments)
{
    StartingClient(settings, arguments).run();
    return 0;
}

} // namespace lawn_verify
