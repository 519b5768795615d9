// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl consume.

#include "commands.h"
#include "output.h"

#include "src/consumer_config.h"
#include "src/handle.h"
#include "src/url.h"

#include <algorithm>
#include <cstdlib>

namespace lawnctl
{

namespace
{

// How long to wait in the end for the store to take the answers, and how long
// after the time that --timeout gives.
constexpr int64_t farewell_us = 5000000;
constexpr int64_t grace_us = 400000;

struct Answer {
    lawn_durable_answer_t answer = LAWN_DURABLE_DONE;
    uint64_t delay_us = 0;
};

Answer take_answer(Arguments &arguments)
{
    Answer answer;
    const std::string text = arguments.take_text("--answer").value_or("done");
    if (text == "fail") {
        answer.answer = LAWN_DURABLE_REJECT;
    } else if (text.compare(0, 6, "retry:") == 0) {
        std::string error;
        answer.answer = LAWN_DURABLE_RETRY;
        if (!lawn::durable::parse_duration(text.substr(6), &answer.delay_us,
                                           &error)) {
            fail("--answer: " + error);
        }
    } else if (text != "done") {
        fail("--answer is done, fail or retry:DURATION, not '" + text + "'");
    }
    return answer;
}

void print_delivery(const lawn_durable_delivery_t &delivery, bool is_json)
{
    // A lease that nobody answered in was an attempt.
    const unsigned attempt = delivery.attempt + delivery.deliveries - 1;
    if (is_json) {
        print_line(Json()
                       .id(delivery.id)
                       .number("generation", delivery.generation)
                       .time("due", delivery.due_us)
                       .time("delivered", delivery.fired_us)
                       .number("attempt", attempt)
                       .payload(delivery.payload, delivery.payload_size)
                       .str());
        return;
    }
    print_line(std::string(delivery.id) + " " +
               std::to_string(delivery.generation) + " " +
               time_text(delivery.due_us) + " " + time_text(delivery.fired_us) +
               " " + std::to_string(attempt) + " " +
               payload_text(delivery.payload, delivery.payload_size));
}

class Consume
{
public:
    Consume(const Settings &settings, Arguments &arguments);
    // Returns the exit status.
    int run();

private:
    void say_goodbye(Client &client);
    void look_for_error(Client &client);
    static void on_delivery(void *arg, const lawn_durable_delivery_t *delivery);
    void deliver(const lawn_durable_delivery_t &delivery);

    const Settings &settings_;
    const int64_t begin_us_ = monotonic_now();
    std::string group_;
    int64_t until_us_ = INT64_MAX;
    Answer answer_;
    lawn_durable_consume_t params_ = {};
    lawn_durable_consumer_t *consumer_ = nullptr;
    uint64_t printed_ = 0;
    bool has_complained_ = false; // of something that lasts
    bool is_store_there_ = false; // in the end
};

Consume::Consume(const Settings &settings, Arguments &arguments)
    : settings_(settings)
{
    const auto group = arguments.take_text("--group");
    std::string error;
    if (!group) {
        fail("consume needs --group; see --help");
    }
    if (!lawn::durable::check_id(*group, &error)) {
        fail("--group: " + error);
    }
    group_ = *group;
    params_.limit =
        arguments.take_number("--count", 1, INT64_MAX / 2).value_or(0);
    if (const auto timeout = arguments.take_duration("--timeout")) {
        until_us_ =
            begin_us_ +
            static_cast<int64_t>(std::min<uint64_t>(*timeout, INT64_MAX / 2));
    }
    answer_ = take_answer(arguments);
    params_.group = group_.c_str();
    params_.no_answer = arguments.take_flag("--no-ack");
    if (const auto lease = arguments.take_duration("--lease")) {
        if (*lease < lawn::durable::shortest_lease_us ||
            *lease > lawn::durable::longest_lease_us) {
            fail("--lease takes from 10ms to 11 days");
        }
        params_.lease_us = *lease;
    }
    arguments.finish();
}

void Consume::on_delivery(void *arg, const lawn_durable_delivery_t *delivery)
{
    static_cast<Consume *>(arg)->deliver(*delivery);
}

void Consume::deliver(const lawn_durable_delivery_t &delivery)
{
    ++printed_;
    print_delivery(delivery, settings_.json);
    if (!params_.no_answer) {
        require_success(lawn_durable_answer(consumer_, &delivery,
                                            answer_.answer, answer_.delay_us,
                                            nullptr, nullptr, nullptr),
                        nullptr);
    }
}

// Once: there is one line on stderr, whatever happens.
void Consume::look_for_error(Client &client)
{
    const char *const error = client.get()->link->error() != nullptr
                                  ? nullptr // it connects again by itself
                                  : lawn_durable_error(client.get());
    if (error != nullptr && !has_complained_) {
        complain(error);
        has_complained_ = true;
    }
}

int Consume::run()
{
    catch_signals();
    lawn_durable_params_t params = {};
    params.fail_fast = true;
    Client client(settings_, params);
    if (!client.connect(until_us_)) {
        if (!was_signalled()) {
            fail("the store has not answered within --timeout");
        }
        return EXIT_SUCCESS;
    }
    require_success(lawn_durable_consume(client.get(), &params_, on_delivery,
                                         this, &consumer_),
                    nullptr);
    client.run(
        [&] {
            look_for_error(client);
            return printed_ == params_.limit && printed_ != 0;
        },
        until_us_);
    say_goodbye(client);
    return has_complained_ ? EXIT_FAILURE : EXIT_SUCCESS;
}

// What is given back is no delivery, but a request.
void Consume::say_goodbye(Client &client)
{
    lawn_durable_consumer_stop(consumer_);
    // The answer shows that the store is there in the end.
    require_success(lawn_durable_count(
                        client.get(),
                        [](void *arg, const lawn_durable_result_t *) {
                            static_cast<Consume *>(arg)->is_store_there_ = true;
                        },
                        this),
                    nullptr);
    const int64_t now_us = monotonic_now();
    client.run(
        [&] {
            return lawn_durable_consumer_in_flight(consumer_) == 0 &&
                   client.get()->link->requests() == 0;
        },
        std::min(now_us + farewell_us, std::max(until_us_, now_us + grace_us)));
    const char *const error = client.get()->link->error();
    if (!has_complained_ && error != nullptr) {
        fail(error);
    }
    const size_t left = lawn_durable_consumer_in_flight(consumer_);
    if (!has_complained_ && (!is_store_there_ || left > 0)) {
        fail(left > 0 ? "the store has not taken " + std::to_string(left) +
                            " answers in time"
                      : "the store does not answer");
    }
    lawn_durable_consumer_close(consumer_);
}

} // namespace

int command_consume(const Settings &settings, Arguments &arguments)
{
    return Consume(settings, arguments).run();
}

} // namespace lawnctl
