// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of the C API for consumers (lawn/durable.h).

#include "base/base.h"
#include "src/codec.h"
#include "src/consumer.h"
#include "src/guard.h"
#include "src/name.h"
#include "src/refusal.h"
#include "src/url.h"

using lawn::durable::attempt;
using lawn::durable::check_id;
using lawn::durable::ConsumerConfig;
using lawn::durable::ConsumerCore;
using lawn::durable::guarded;
using lawn::durable::Key;
using lawn::durable::refuse;

struct lawn_durable_consumer : lawn::durable::Handle<ConsumerCore> {
    using Handle::Handle;
};

static ConsumerConfig config_of(const lawn_durable_consume_t &params)
{
    ConsumerConfig config;
    config.group = params.group ? params.group : "lawn";
    config.name = params.name ? params.name : lawn::durable::unique_name();
    config.stream = params.pushes ? Key::push : Key::out;
    config.no_answer = params.no_answer;
    config.max_in_flight = params.max_in_flight ? params.max_in_flight : 256;
    config.limit = params.limit;
    config.lease_us = params.lease_us ? params.lease_us : 30000000;
    config.lost = params.lost;
    return config;
}

lawn_status_t lawn_durable_consume_sized(lawn_durable_t *durable,
                                         const lawn_durable_consume_t *consume,
                                         size_t size,
                                         lawn_durable_deliver_fn_t deliver,
                                         void *arg,
                                         lawn_durable_consumer_t **consumer_p)
{
    return guarded([&] {
        lawn_durable_consume_t params;
        if (!lawn::read_known(consume, size, &params)) {
            return LAWN_ERR_UNSUPPORTED;
        }
        const ConsumerConfig config = config_of(params);
        std::string error;
        if (!durable || durable->is_closing) {
            return refuse("there is no client, or it is being closed");
        }
        if (!deliver || !consumer_p) {
            return refuse("there is no function for the deliveries, or no "
                          "place for the consumer");
        }
        if (!check_id(config.group, &error)) {
            return refuse("the group " + error);
        }
        if (!check_id(config.name, &error)) {
            return refuse("the name " + error);
        }
        if (config.lease_us < lawn::durable::shortest_lease_us ||
            config.lease_us > lawn::durable::longest_lease_us) {
            return refuse("lease_us is not from 10 ms to 11 days");
        }
        *consumer_p = new lawn_durable_consumer(durable, config, deliver, arg);
        return LAWN_OK;
    });
}

lawn_status_t lawn_durable_answer(lawn_durable_consumer_t *consumer,
                                  const lawn_durable_delivery_t *delivery,
                                  lawn_durable_answer_t answer,
                                  uint64_t delay_us, const char *error,
                                  lawn_durable_fn_t done, void *arg)
{
    return guarded([&] {
        if (!consumer || answer < LAWN_DURABLE_DONE ||
            answer > LAWN_DURABLE_DEFER) {
            return refuse("there is no consumer, or no such answer");
        }
        return consumer->core->answer(delivery, answer, delay_us, error, done,
                                      arg);
    });
}

void lawn_durable_extend(lawn_durable_consumer_t *consumer,
                         const lawn_durable_delivery_t *delivery)
{
    // A lease that is not extended is what a lost request would give.
    attempt([&] { consumer->core->extend(delivery); });
}

void lawn_durable_consumer_stop(lawn_durable_consumer_t *consumer)
{
    consumer->core->stop();
}

size_t lawn_durable_consumer_in_flight(const lawn_durable_consumer_t *consumer)
{
    return consumer->core->in_flight();
}

uint64_t lawn_durable_consumer_lost(const lawn_durable_consumer_t *consumer)
{
    return consumer->core->lost();
}

void lawn_durable_consumer_close(lawn_durable_consumer_t *consumer)
{
    delete consumer;
}
