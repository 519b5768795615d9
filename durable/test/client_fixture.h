// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A client of the C API, for tests, and one with a server.

#ifndef LAWN_TEST_DURABLE_CLIENT_FIXTURE_H
#define LAWN_TEST_DURABLE_CLIENT_FIXTURE_H

#include "redis_server.h"

#include <gtest/gtest.h>
#include <lawn/durable.h>

#include <chrono>
#include <deque>
#include <functional>
#include <string>

namespace lawn_test
{

// What a request was answered, with copies of its texts.
struct Result {
    bool is_answered = false;
    unsigned answers = 0;
    lawn_status_t status = LAWN_OK;
    std::string error;
    lawn_durable_state_t state = LAWN_DURABLE_UNKNOWN;
    uint64_t generation = 0;
    int64_t due_us = 0;
    unsigned attempt = 0;
    std::string payload;
    uint64_t count = 0;

    static void keep(void *arg, const lawn_durable_result_t *result)
    {
        Result *const self = static_cast<Result *>(arg);
        self->is_answered = true;
        ++self->answers;
        self->status = result->status;
        self->error = result->error ? result->error : "";
        self->state = result->state;
        self->generation = result->generation;
        self->due_us = result->due_us;
        self->attempt = result->attempt;
        self->payload.assign(static_cast<const char *>(result->payload),
                             result->payload_size);
        self->count = result->count;
        EXPECT_EQ(result->status == LAWN_OK, result->error == nullptr);
        EXPECT_EQ(self->error.find('\n'), std::string::npos) << self->error;
    }
};

class Client
{
public:
    static constexpr uint64_t minute_us = 60000000;

    // Requests may take a minute, so that a slow machine fails no test.
    explicit Client(
        const std::string &url,
        const std::function<void(lawn_durable_params_t *)> &set = nullptr)
    {
        lawn_durable_params_t params = {};
        params.url = url.c_str();
        params.name_space = "test";
        params.shards = 4;
        params.connect_timeout_us = minute_us;
        params.request_timeout_us = minute_us;
        if (set) {
            set(&params);
        }
        EXPECT_EQ(lawn_durable_open(&params, &durable_), LAWN_OK)
            << lawn_durable_open_error();
    }
    ~Client()
    {
        close();
    }
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    void close()
    {
        lawn_durable_close(durable_);
        durable_ = nullptr;
    }

    operator lawn_durable_t *()
    {
        return durable_;
    }

    // Polls until `is_done`, for two minutes at most.
    bool run_until(const std::function<bool()> &is_done)
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(2);
        while (!is_done()) {
            if (std::chrono::steady_clock::now() > end) {
                const char *const error = lawn_durable_error(durable_);
                ADD_FAILURE()
                    << "waited in vain: " << (error ? error : "no error");
                return false;
            }
            lawn_durable_wait(durable_, 20000);
        }
        return true;
    }

    static lawn_durable_start_t in_an_hour(const char *id)
    {
        lawn_durable_start_t start = {};
        start.id = id;
        start.delay_us = uint64_t{3600} * 1000000;
        return start;
    }

    // The results stay where they are.
    Result *begin_start(const lawn_durable_start_t &start)
    {
        Result *const result = &results_.emplace_back();
        EXPECT_EQ(lawn_durable_start(durable_, &start, Result::keep, result),
                  LAWN_OK);
        return result;
    }

    Result start(const lawn_durable_start_t &start)
    {
        Result *const result = begin_start(start);
        run_until([result] { return result->is_answered; });
        return *result;
    }
    Result start(const char *id)
    {
        return this->start(in_an_hour(id));
    }
    Result stop(const char *id, int durability = LAWN_DURABLE_ASYNC)
    {
        Result result;
        EXPECT_EQ(
            lawn_durable_stop(durable_, id, durability, Result::keep, &result),
            LAWN_OK);
        run_until([&result] { return result.is_answered; });
        return result;
    }
    Result update(const lawn_durable_update_t &update)
    {
        Result result;
        EXPECT_EQ(lawn_durable_update(durable_, &update, Result::keep, &result),
                  LAWN_OK);
        run_until([&result] { return result.is_answered; });
        return result;
    }
    Result get(const char *id)
    {
        Result result;
        EXPECT_EQ(lawn_durable_get(durable_, id, Result::keep, &result),
                  LAWN_OK);
        run_until([&result] { return result.is_answered; });
        return result;
    }
    Result count()
    {
        Result result;
        EXPECT_EQ(lawn_durable_count(durable_, Result::keep, &result), LAWN_OK);
        run_until([&result] { return result.is_answered; });
        return result;
    }

private:
    lawn_durable_t *durable_ = nullptr;
    std::deque<Result> results_;
};

inline lawn_durable_start_t with(int durability, const char *id)
{
    lawn_durable_start_t start = Client::in_an_hour(id);
    start.durability = durability;
    return start;
}

inline bool contains(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

class DurableClient : public testing::Test
{
protected:
    RedisServer server;
    Client client{server.url()};
};

} // namespace lawn_test

#endif
