// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Without memory, functions of the C API say so, and no exception leaves one.
// Each allocation fails once: the first in the first round, the second in the
// next, until a round has none left. They are counted with --wrap, since a
// replaced operator new would be valgrind's.

#include "flow_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <new>

namespace
{

constexpr unsigned never = 0;
unsigned countdown = never; // 1: the next allocation fails
bool has_failed = false;

} // namespace

extern "C" {

void *__real__Znwm(size_t size); // operator new

void *__wrap__Znwm(size_t size)
{
    if (countdown != never && --countdown == 0) {
        has_failed = true;
        throw std::bad_alloc();
    }
    return __real__Znwm(size);
}
}

namespace
{

using namespace lawn_test;

class DurableMemory : public Flow
{
protected:
    template <class Call> static auto with_failure(unsigned n, const Call &call)
    {
        has_failed = false;
        countdown = n;
        const auto result = call();
        countdown = never;
        return result;
    }

    // Calls `call` with an allocation that fails, for each that it makes.
    static void fail_each(const std::function<lawn_status_t()> &call)
    {
        unsigned failures = 0;
        for (unsigned n = 1; n < 10000; ++n) {
            const lawn_status_t status = with_failure(n, call);
            if (!has_failed) {
                EXPECT_EQ(status, LAWN_OK);
                EXPECT_GT(failures, 0U);
                return;
            }
            EXPECT_EQ(status, LAWN_ERR_NO_MEMORY);
            ++failures;
        }
        ADD_FAILURE() << "there is no end of allocations";
    }

    // The same for a request: who is told NO_MEMORY is not called later.
    void fail_each_request(
        const std::function<lawn_status_t(lawn_durable_fn_t, void *)> &request,
        lawn_status_t status = LAWN_OK)
    {
        Result result;
        fail_each([&] { return request(Result::keep, &result); });
        run_until([&] { return result.is_answered; });
        EXPECT_EQ(result.status, status) << result.error;
        get("a"); // the answers to others would have come before
        EXPECT_EQ(result.answers, 1U);
    }
};

TEST_F(DurableMemory, ARequestIsRefusedOrAnswered)
{
    start("a", 3600000000);
    const auto each = [](void *, const lawn_durable_item_t *) {};
    lawn_durable_start_t start = timer("a", 3600000000, "payload");
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_start(*client, &start, done, arg);
    });
    lawn_durable_update_t update = {};
    update.id = "a";
    update.generation = get("a").generation;
    update.delay_us = 3600000000;
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_update(*client, &update, done, arg);
    });
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_stop(*client, "a", 0, done, arg);
    });
    start.cron = "0 * * * *";
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_start(*client, &start, done, arg);
    });
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_get(*client, "a", done, arg);
    });
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_count(*client, done, arg);
    });
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_list(*client, LAWN_DURABLE_UNKNOWN, 0, each, done,
                                 arg);
    });
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_list_dead(*client, 0, each, done, arg);
    });
    fail_each_request(
        [&](lawn_durable_fn_t done, void *arg) {
            return lawn_durable_replay(*client, "a", done, arg);
        },
        LAWN_ERR_NO_ELEM);
    fail_each_request([&](lawn_durable_fn_t done, void *arg) {
        return lawn_durable_drain(*client, false, done, arg);
    });
}

// A session that was not made is not there either.
TEST_F(DurableMemory, ARefusedRequestLeavesNoSession)
{
    lawn_durable_start_t start = timer("a", 3600000000);
    start.durability = 1;
    for (unsigned n = 1; n < 100; ++n) {
        Client other(server->url());
        other.get("a"); // it is connected
        Result result;
        const lawn_status_t status = with_failure(n, [&] {
            return lawn_durable_start(other, &start, Result::keep, &result);
        });
        other.close();
        EXPECT_EQ(result.answers, status == LAWN_OK ? 1U : 0U);
        if (!has_failed) {
            EXPECT_GT(n, 1U);
            return;
        }
    }
    ADD_FAILURE() << "there is no end of allocations";
}

TEST_F(DurableMemory, WhatIsNotMadeIsNotThere)
{
    const std::string url = server->url();
    lawn_durable_params_t params = {};
    params.url = url.c_str();
    params.name_space = "other";
    lawn_durable_t *other = nullptr;
    fail_each([&] { return lawn_durable_open(&params, &other); });
    lawn_durable_pump_t *pump = nullptr;
    const lawn_durable_pump_params_t pump_params = {};
    fail_each(
        [&] { return lawn_durable_pump_start(other, &pump_params, &pump); });
    lawn_durable_consumer_t *consumer = nullptr;
    const lawn_durable_consume_t consume = {};
    fail_each([&] {
        return lawn_durable_consume(
            other, &consume, [](void *, const lawn_durable_delivery_t *) {},
            nullptr, &consumer);
    });
    lawn_durable_close(other);
}

// Nothing of this can say that it has failed.
TEST_F(DurableMemory, WhatEndsEnds)
{
    unsigned without = 0; // how many in turn have not failed
    for (unsigned i = 3; without < 3 && i < 10000; ++i) {
        const unsigned n = i / 3;
        Client *const other = add_client();
        Taker taker(other);
        taker.answer = nullptr;
        lawn_durable_consume_t consume = {};
        consume.lease_us = 50000;
        taker.open(consume);
        lawn_durable_pump_t *const pump = add_pump(other);
        start("a", 0);
        start("b", 0);
        run_until([&] { return taker.count("a") > 0 && taker.count("b") > 0; });
        unsigned answered = 0; // by a function that allocates nothing
        lawn_durable_answer(
            taker.consumer, taker.given[0], LAWN_DURABLE_DONE, 0, nullptr,
            [](void *arg, const lawn_durable_result_t *) {
                ++*static_cast<unsigned *>(arg);
            },
            &answered);
        Result result;
        lawn_durable_get(*other, "a", Result::keep, &result);
        with_failure(n, [&] {
            switch (i % 3) {
            case 0:
                lawn_durable_consumer_stop(taker.consumer);
                lawn_durable_pump_close(pump);
                break;
            case 1:
                taker.close();
                break;
            case 2:
                other->close();
                taker.consumer = nullptr;
                break;
            }
            return 0;
        });
        taker.close();
        other->close();
        EXPECT_EQ(result.answers, 1U);
        EXPECT_EQ(answered, 1U);
        clients.pop_back();
        without = has_failed ? 0 : without + 1;
    }
    EXPECT_EQ(without, 3U) << "there is no end of allocations";
}

// Whatever a poll could not do, no request is answered twice or never, and the
// client works on. A request whose reply was lost by it times out.
TEST_F(DurableMemory, APollThatFailsIsMadeGood)
{
    Client other(server->url(), [](lawn_durable_params_t *params) {
        params->request_timeout_us = 200000;
        // A connection that is stuck would not be given up by this.
        params->connect_timeout_us = uint64_t{3600} * 1000000;
    });
    unsigned failures = 0;
    for (unsigned n = 1; n < 80; ++n) {
        Result results[4];
        const lawn_durable_start_t start = timer("a", 0, "payload");
        lawn_durable_start(other, &start, Result::keep, &results[0]);
        lawn_durable_get(other, "a", Result::keep, &results[1]);
        lawn_durable_count(other, Result::keep, &results[2]);
        unsigned statistics = 0;
        lawn_durable_stats(
            other,
            [](void *arg, const lawn_durable_stats_t *) {
                ++*static_cast<unsigned *>(arg);
            },
            &statistics);
        lawn_durable_list(
            other, LAWN_DURABLE_PENDING, 0,
            [](void *, const lawn_durable_item_t *) {}, Result::keep,
            &results[3]);
        const auto are_answered = [&] {
            return results[0].is_answered && results[1].is_answered &&
                   results[2].is_answered && results[3].is_answered &&
                   statistics > 0;
        };
        unsigned left = n;
        has_failed = false;
        other.run_until([&] {
            countdown = left;
            lawn_durable_poll(other);
            left = countdown;
            countdown = never;
            return has_failed || are_answered();
        });
        failures += has_failed;
        other.run_until(are_answered);
        for (const Result &result : results) {
            EXPECT_EQ(result.answers, 1U);
        }
        EXPECT_EQ(statistics, 1U);
    }
    EXPECT_GT(failures, 0U);
    other.run_until([&] { return other.start("b").status == LAWN_OK; });
}

// Takes without an allocation of its own, and answers, if need be twice.
struct PlainTaker {
    lawn_durable_consumer_t *consumer = nullptr;
    size_t taken = 0;
    bool has_last = false;
    char last[16] = ""; // the id that is waited for

    static void take(void *arg, const lawn_durable_delivery_t *delivery)
    {
        PlainTaker *const self = static_cast<PlainTaker *>(arg);
        ++self->taken;
        self->has_last |= strcmp(delivery->id, self->last) == 0;
        lawn_status_t status = LAWN_ERR_NO_MEMORY;
        for (int i = 0; i < 2 && status == LAWN_ERR_NO_MEMORY; ++i) {
            status =
                lawn_durable_answer(self->consumer, delivery, LAWN_DURABLE_DONE,
                                    0, nullptr, nullptr, nullptr);
        }
        EXPECT_EQ(status, LAWN_OK);
    }
};

// A consumer and a pump whose polls fail go on: each timer is delivered, and
// its answer is taken.
TEST_F(DurableMemory, DeliveriesGoOnAfterAPollThatFails)
{
    Client other(server->url(), [](lawn_durable_params_t *params) {
        params->request_timeout_us = 200000;
        params->connect_timeout_us = uint64_t{3600} * 1000000;
    });
    PlainTaker taker;
    lawn_durable_consume_t consume = {};
    consume.lease_us = 100000;
    ASSERT_EQ(lawn_durable_consume(other, &consume, PlainTaker::take, &taker,
                                   &taker.consumer),
              LAWN_OK);
    lawn_durable_pump_t *const pump = add_pump(&other);
    unsigned failures = 0;
    for (unsigned n = 1; n < 40; ++n) {
        snprintf(taker.last, sizeof(taker.last), "a%u", n);
        taker.has_last = false;
        const lawn_durable_start_t start = timer(taker.last, 0, "payload");
        lawn_durable_start(other, &start, nullptr, nullptr);
        has_failed = false;
        unsigned left = n;
        other.run_until([&] {
            countdown = left;
            lawn_durable_poll(other);
            left = countdown;
            countdown = never;
            return has_failed || taker.has_last;
        });
        failures += has_failed;
        Result result;
        const bool is_taken = other.run_until([&] {
            result = other.get(taker.last);
            if (result.status == LAWN_OK &&
                result.state == LAWN_DURABLE_UNKNOWN) {
                other.start(start); // it was not done in time
            }
            return result.status == LAWN_OK &&
                   result.state == LAWN_DURABLE_SUCCESS;
        });
        ASSERT_TRUE(is_taken)
            << "with failure " << n << ", " << lawn_status_string(result.status)
            << ", " << lawn_durable_state_string(result.state);
    }
    EXPECT_GT(failures, 10U);
    lawn_durable_pump_close(pump);
    lawn_durable_consumer_close(taker.consumer);
}

class DurableMemoryTaker : public DurableMemory
{
protected:
    static constexpr size_t left_ones = 6; // by a dead consumer

    void leave()
    {
        Taker dead(client);
        dead.answer = nullptr;
        dead.open();
        for (size_t i = 0; i < left_ones; ++i) {
            start(("a" + std::to_string(i)).c_str(), 0);
        }
        run_until([&] { return dead.given.size() >= left_ones; });
    }

    // A consumer with room for two takes over what is left, although the n'th
    // allocation fails after it has been given `given`. Returns whether it did
    // not allocate so often.
    bool take_over(unsigned n, size_t given)
    {
        Client other(server->url());
        PlainTaker taker;
        strcpy(taker.last, "b");
        lawn_durable_consume_t consume = {};
        consume.lease_us = 20000;
        consume.max_in_flight = 2;
        EXPECT_EQ(lawn_durable_consume(other, &consume, PlainTaker::take,
                                       &taker, &taker.consumer),
                  LAWN_OK);
        has_failed = false;
        unsigned left = n;
        const auto is_done = [&] { return taker.taken >= left_ones; };
        for (int i = 0; i < 1000 && !has_failed && !is_done(); ++i) {
            pollfd fd = {lawn_durable_fd(other), POLLIN, 0};
            ::poll(&fd, 1, 100);
            countdown = taker.taken < given ? never : left;
            lawn_durable_poll(other);
            left = countdown != never ? countdown : left;
            countdown = never;
        }
        EXPECT_TRUE(other.run_until(is_done)) << "with failure " << n;
        other.run_until([&] {
            return lawn_durable_consumer_in_flight(taker.consumer) == 0;
        });
        start("b", 0);
        EXPECT_TRUE(run_until([&] {
            lawn_durable_poll(other);
            return taker.has_last;
        })) << "with failure "
            << n;
        lawn_durable_consumer_close(taker.consumer);
        return !has_failed;
    }
};

TEST_F(DurableMemoryTaker, TakesOverAfterAPollThatFails)
{
    add_pump(client);
    for (const size_t given : {0, 1}) {
        for (unsigned n = 1; n < 50 && !HasFailure(); ++n) {
            leave();
            if (take_over(n, given)) {
                EXPECT_GT(n, 10U);
                break;
            }
        }
    }
}

} // namespace
