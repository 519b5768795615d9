// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn-verify consumer: handles what fires until SIGTERM, and writes down
// what it was given and what it answered.

#include "commands.h"
#include "worker.h"

#include <cstdlib>

namespace lawn_verify
{

namespace
{

constexpr int64_t ms = 1000;
constexpr uint64_t longest_work_us = 20 * ms;
constexpr uint64_t retry_delay_us = 50 * ms;
constexpr int64_t patience_us = 20000 * ms; // after SIGTERM

class AnsweringConsumer
{
public:
    AnsweringConsumer(const Settings &settings, Arguments &arguments);
    void run();

private:
    struct Answer {
        AnsweringConsumer *self;
        Event event;
    };

    static void on_delivery(void *arg, const lawn_durable_delivery_t *delivery);
    void deliver(const lawn_durable_delivery_t *delivery);
    void answer(const lawn_durable_delivery_t *delivery, Event event);
    static void on_answer(void *arg, const lawn_durable_result_t *result);

    Worker worker_;
    lawn_durable_consumer_t *consumer_ = nullptr;
};

AnsweringConsumer::AnsweringConsumer(const Settings &settings,
                                     Arguments &arguments)
    : worker_(settings, arguments)
{
    arguments.finish();
    const std::string name = "consumer-" + std::to_string(worker_.process());
    lawn_durable_consume_t consume = {};
    consume.group = verify_group;
    consume.name = name.c_str();
    consume.max_in_flight = verify_in_flight;
    consume.lease_us = verify_lease_us;
    require_success(lawn_durable_consume(worker_.client().get(), &consume,
                                         on_delivery, this, &consumer_),
                    nullptr);
}

void AnsweringConsumer::on_delivery(void *arg,
                                    const lawn_durable_delivery_t *delivery)
{
    static_cast<AnsweringConsumer *>(arg)->deliver(delivery);
}

void AnsweringConsumer::deliver(const lawn_durable_delivery_t *delivery)
{
    const std::string payload(static_cast<const char *>(delivery->payload),
                              delivery->payload_size);
    Event event;
    event.kind = EventKind::deliver;
    event.operation = strtoull(payload.c_str(), nullptr, 10);
    event.id = delivery->id;
    event.generation = delivery->generation;
    event.due_us = delivery->due_us;
    event.fired_us = delivery->fired_us;
    event.attempt = delivery->attempt;
    worker_.history().write(event);

    const bool is_retry = !payload.empty() && payload.back() == wants_retry &&
                          delivery->attempt == 1;
    event.kind = EventKind::answer;
    event.word = is_retry ? "retry" : "done";
    if (worker_.random(10) != 0) {
        answer(delivery, event);
        return;
    }
    worker_.after(static_cast<int64_t>(worker_.random(longest_work_us)),
                  [this, delivery, event] { answer(delivery, event); });
}

void AnsweringConsumer::answer(const lawn_durable_delivery_t *delivery,
                               Event event)
{
    event.time_us = 0;
    worker_.history().write(event);
    auto *arg = new Answer{this, event}; // on_answer() takes it back
    const lawn_durable_answer_t what =
        event.word == "retry" ? LAWN_DURABLE_RETRY : LAWN_DURABLE_DONE;
    require_success(lawn_durable_answer(consumer_, delivery, what,
                                        retry_delay_us, nullptr, on_answer,
                                        arg),
                    nullptr);
}

void AnsweringConsumer::on_answer(void *arg,
                                  const lawn_durable_result_t *result)
{
    const std::unique_ptr<Answer> answer(static_cast<Answer *>(arg));
    Event event = answer->event;
    event.time_us = 0;
    event.kind = EventKind::answered;
    if (result->status == LAWN_ERR_NO_ELEM) {
        event.word = "late";
    } else if (result->status != LAWN_OK) {
        return; // nobody knows; it comes again, or it was done
    }
    answer->self->worker_.history().write(event);
}

void AnsweringConsumer::run()
{
    worker_.run([] { return !was_signalled(); });
    lawn_durable_consumer_stop(consumer_);
    const int64_t until_us = monotonic_now() + patience_us;
    worker_.run([&] {
        return lawn_durable_consumer_in_flight(consumer_) != 0 &&
               monotonic_now() < until_us;
    });
    lawn_durable_consumer_close(consumer_);
}

} // namespace

int run_consumer(const Settings &settings, Arguments &arguments)
{
    AnsweringConsumer(settings, arguments).run();
    return 0;
}

} // namespace lawn_verify
