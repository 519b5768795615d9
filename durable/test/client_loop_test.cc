// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Who polls a client: callbacks, an engine, the synchronous functions, and its
// end.

#include "client_fixture.h"

#include <lawn/engine.h>

#include <string>

namespace
{

using namespace lawn_test;

TEST_F(DurableClient, AnswersWhatIsLeftWhenItIsClosed)
{
    Result *const result = client.begin_start(Client::in_an_hour("a"));
    EXPECT_FALSE(result->is_answered);
    client.close();
    EXPECT_EQ(result->answers, 1U);
    EXPECT_EQ(result->status, LAWN_ERR_IO);
}

// Those who are called back by lawn_durable_close() may look at the client.
// What they ask for is refused.
struct AskAtTheEnd {
    lawn_durable_t *durable;
    unsigned answers = 0;

    static void answered(void *arg, const lawn_durable_result_t *result)
    {
        AskAtTheEnd *const self = static_cast<AskAtTheEnd *>(arg);
        lawn_durable_t *const durable = self->durable;
        ++self->answers;
        EXPECT_EQ(result->status, LAWN_ERR_IO);
        lawn_durable_error(durable);
        lawn_durable_now(durable);
        EXPECT_EQ(lawn_durable_shards(durable), 0U);
        EXPECT_EQ(lawn_durable_poll(durable), 0U);
        EXPECT_EQ(lawn_durable_wait(durable, 0), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_durable_count(durable, answered, arg),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_durable_drain(durable, true, answered, arg),
                  LAWN_ERR_INVALID_PARAM);
        lawn_durable_pump_t *pump = nullptr;
        EXPECT_EQ(lawn_durable_pump_start(durable, nullptr, &pump),
                  LAWN_ERR_INVALID_PARAM);
        const lawn_durable_consume_t consume = {};
        lawn_durable_consumer_t *consumer = nullptr;
        EXPECT_EQ(lawn_durable_consume(
                      durable, &consume,
                      [](void *, const lawn_durable_delivery_t *) {}, nullptr,
                      &consumer),
                  LAWN_ERR_INVALID_PARAM);
    }
};

TEST_F(DurableClient, WhoIsAnsweredWhenItIsClosedMayAskIt)
{
    AskAtTheEnd ask = {client};
    EXPECT_EQ(lawn_durable_count(client, AskAtTheEnd::answered, &ask), LAWN_OK);
    client.close();
    EXPECT_EQ(ask.answers, 1U);
}

// A callback may make requests, but neither poll nor wait.
struct Chain {
    lawn_durable_t *durable;
    unsigned left;

    static void next(void *arg, const lawn_durable_result_t *result)
    {
        Chain *const self = static_cast<Chain *>(arg);
        EXPECT_EQ(result->status, LAWN_OK);
        EXPECT_EQ(lawn_durable_poll(self->durable), 0U);
        EXPECT_EQ(lawn_durable_wait(self->durable, 0), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_durable_count_sync(self->durable, nullptr),
                  LAWN_ERR_INVALID_PARAM);
        if (--self->left > 0) {
            self->start();
        }
    }

    void start()
    {
        const lawn_durable_start_t params = Client::in_an_hour("a");
        EXPECT_EQ(lawn_durable_start(durable, &params, next, this), LAWN_OK);
    }
};

TEST_F(DurableClient, ACallbackMayStartTheNext)
{
    Chain chain = {client, 100};
    chain.start();
    EXPECT_TRUE(client.run_until([&chain] { return chain.left == 0; }));
}

TEST_F(DurableClient, WaitsInTheSynchronousFunctions)
{
    const lawn_durable_start_t start = Client::in_an_hour("a");
    lawn_durable_result_t result;
    ASSERT_EQ(lawn_durable_start_sync(client, &start, &result), LAWN_OK);
    EXPECT_EQ(result.state, LAWN_DURABLE_PENDING);
    lawn_durable_update_t update = {};
    update.id = "a";
    update.generation = result.generation;
    update.set_payload = true;
    update.payload = "payload";
    update.payload_size = 7;
    EXPECT_EQ(lawn_durable_update_sync(client, &update, nullptr), LAWN_OK);
    update.payload_size = 3;
    EXPECT_EQ(lawn_durable_update_sync(client, &update, &result),
              LAWN_ERR_NO_ELEM);
    EXPECT_NE(result.error, nullptr);
    ASSERT_EQ(lawn_durable_get_sync(client, "a", &result), LAWN_OK);
    EXPECT_EQ(std::string(static_cast<const char *>(result.payload),
                          result.payload_size),
              "payload");
    ASSERT_EQ(lawn_durable_count_sync(client, &result), LAWN_OK);
    EXPECT_EQ(result.count, 1U);
    ASSERT_EQ(lawn_durable_stop_sync(client, "a", LAWN_DURABLE_ASYNC, &result),
              LAWN_OK);
    EXPECT_EQ(result.state, LAWN_DURABLE_STOPPED);
    EXPECT_EQ(lawn_durable_get_sync(client, "a b", &result),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_NE(result.error, nullptr);
}

// An engine that sleeps is woken by answers, and by requests made outside.
TEST_F(DurableClient, IsASourceOfAnEngine)
{
    lawn_engine_params_t params = {};
    lawn_engine_t *engine;
    lawn_source_t *source;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    lawn_durable_t *const durable = client;
    ASSERT_EQ(lawn_engine_add(engine, lawn_durable_poll, durable,
                              lawn_durable_fd(durable), &source),
              LAWN_OK);
    for (unsigned i = 0; i < 20; ++i) {
        Result *const result = client.begin_start(Client::in_an_hour("a"));
        unsigned sleeps = 0;
        for (; !result->is_answered && sleeps < 10000; ++sleeps) {
            while (lawn_engine_progress(engine)) {
            }
            if (!result->is_answered) {
                // It would not end if nothing woke it.
                ASSERT_EQ(lawn_engine_wait(engine, lawn_time_from_sec(60)),
                          LAWN_OK);
            }
        }
        EXPECT_TRUE(result->is_answered);
    }
    lawn_engine_remove(engine, source);
    lawn_engine_destroy(engine);
}

// A consumer that is closed calls back those whose answers it has not got.
struct Closed {
    Client *client = nullptr;
    lawn_durable_consumer_t *consumer = nullptr;
    bool is_taken = false;
    bool is_called = false;
    Result nested;

    static void take(void *arg, const lawn_durable_delivery_t *delivery)
    {
        Closed *const self = static_cast<Closed *>(arg);
        self->is_taken = true;
        EXPECT_EQ(lawn_durable_answer(self->consumer, delivery,
                                      LAWN_DURABLE_DONE, 0, nullptr, answered,
                                      self),
                  LAWN_OK);
    }

    static void answered(void *arg, const lawn_durable_result_t *)
    {
        Closed *const self = static_cast<Closed *>(arg);
        self->is_called = true;
        EXPECT_EQ(
            lawn_durable_get(*self->client, "a", Result::keep, &self->nested),
            LAWN_OK);
        lawn_durable_result_t result;
        EXPECT_EQ(lawn_durable_get_sync(*self->client, "a", &result),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_durable_wait(*self->client, 1000),
                  LAWN_ERR_INVALID_PARAM);
        for (unsigned i = 0; i < 1000; ++i) {
            EXPECT_EQ(lawn_durable_poll(*self->client), 0U);
        }
        EXPECT_FALSE(self->nested.is_answered);
    }
};

TEST_F(DurableClient, IsNotPolledByThoseWhomAClosedConsumerCalls)
{
    lawn_durable_pump_t *pump;
    const lawn_durable_pump_params_t pump_params = {};
    ASSERT_EQ(lawn_durable_pump_start(client, &pump_params, &pump), LAWN_OK);
    Closed closed;
    closed.client = &client;
    lawn_durable_consume_t consume = {};
    ASSERT_EQ(lawn_durable_consume(client, &consume, Closed::take, &closed,
                                   &closed.consumer),
              LAWN_OK);
    lawn_durable_start_t start = {};
    start.id = "a";
    start.delay_us = 1;
    client.start(start);
    client.run_until([&] { return closed.is_taken; });
    if (!closed.is_called) { // the answer was quick otherwise
        lawn_durable_consumer_close(closed.consumer);
    }
    EXPECT_TRUE(closed.is_called);
    client.run_until([&] { return closed.nested.is_answered; });
}

} // namespace
