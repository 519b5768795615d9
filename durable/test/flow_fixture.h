// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Programs that fire and consume, for tests: each is a client of its own, and
// the test polls all of them in turn.

#ifndef LAWN_TEST_DURABLE_FLOW_FIXTURE_H
#define LAWN_TEST_DURABLE_FLOW_FIXTURE_H

#include "client_fixture.h"
#include "redis_server.h"

#include <gtest/gtest.h>
#include <lawn/durable.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lawn_test
{

// A copy of a delivery.
struct Delivered {
    std::string id;
    uint64_t generation;
    int64_t due_us;
    int64_t fired_us;
    unsigned attempt;
    unsigned deliveries;
    std::string target;
    std::string payload;
};

// A consumer that keeps what it is given, and answers with `answer`; without
// one, it does not answer.
class Taker
{
public:
    using Answer = std::function<void(const lawn_durable_delivery_t *)>;

    explicit Taker(Client *client) : client_(client)
    {
        answer = [this](const lawn_durable_delivery_t *delivery) {
            reply(delivery, LAWN_DURABLE_DONE);
        };
    }
    ~Taker()
    {
        close();
    }
    Taker(const Taker &) = delete;
    Taker &operator=(const Taker &) = delete;

    void open(const lawn_durable_consume_t &consume = {})
    {
        ASSERT_EQ(lawn_durable_consume(*client_, &consume, on_delivery, this,
                                       &consumer),
                  LAWN_OK);
    }
    void close()
    {
        lawn_durable_consumer_close(consumer);
        consumer = nullptr;
    }
    void reply(const lawn_durable_delivery_t *delivery,
               lawn_durable_answer_t answer_code, uint64_t delay_us = 0,
               const char *error = nullptr)
    {
        EXPECT_EQ(lawn_durable_answer(consumer, delivery, answer_code, delay_us,
                                      error, on_answered, this),
                  LAWN_OK);
    }

    // How many starts or occurrences of `id` were taken, however often each. If
    // the machine stands still, a delivery may come twice.
    size_t count_generations(const std::string &id) const
    {
        std::set<uint64_t> generations;
        for (const Delivered &d : taken) {
            if (d.id == id) {
                generations.insert(d.generation);
            }
        }
        return generations.size();
    }

    size_t count_ids() const
    {
        std::set<std::string> ids;
        for (const Delivered &d : taken) {
            ids.insert(d.id);
        }
        return ids.size();
    }

    size_t count(const std::string &id) const
    {
        size_t n = 0;
        for (const Delivered &d : taken) {
            n += d.id == id;
        }
        return n;
    }

    lawn_durable_consumer_t *consumer = nullptr;
    Answer answer;
    std::vector<Delivered> taken;
    std::vector<const lawn_durable_delivery_t *> given;
    std::map<lawn_status_t, int> statuses;      // of answers
    std::map<lawn_durable_state_t, int> states; // that answers were told
    size_t answered = 0;

private:
    static void on_delivery(void *arg, const lawn_durable_delivery_t *d)
    {
        Taker *const taker = static_cast<Taker *>(arg);
        EXPECT_GE(d->fired_us, d->due_us) << d->id << " was fired early";
        taker->taken.push_back(
            {d->id, d->generation, d->due_us, d->fired_us, d->attempt,
             d->deliveries, d->target ? d->target : "",
             std::string(static_cast<const char *>(d->payload),
                         d->payload_size)});
        taker->given.push_back(d);
        if (taker->answer) {
            taker->answer(d);
        }
    }

    static void on_answered(void *arg, const lawn_durable_result_t *result)
    {
        Taker *const taker = static_cast<Taker *>(arg);
        ++taker->answered;
        ++taker->statuses[result->status];
        ++taker->states[result->state];
    }

    Client *client_;
};

class Flow : public testing::Test
{
protected:
    Client *add_client()
    {
        clients.push_back(std::make_unique<Client>(server->url()));
        return clients.back().get();
    }

    lawn_durable_pump_t *add_pump(Client *of, const char *name = nullptr)
    {
        lawn_durable_pump_params_t params = {};
        params.name = name;
        lawn_durable_pump_t *pump = nullptr;
        EXPECT_EQ(lawn_durable_pump_start(*of, &params, &pump), LAWN_OK);
        return pump;
    }

    static lawn_durable_pump_stats_t query(const lawn_durable_pump_t *pump)
    {
        lawn_durable_pump_stats_t stats;
        lawn_durable_pump_query(pump, &stats);
        return stats;
    }

    // Polls all clients that are not paused, until `is_done`, for two minutes
    // at most.
    bool run_until(const std::function<bool()> &is_done)
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(2);
        while (!is_done()) {
            if (std::chrono::steady_clock::now() > end) {
                ADD_FAILURE() << "waited in vain";
                return false;
            }
            poll_once();
        }
        return true;
    }

    void run_for(std::chrono::milliseconds span)
    {
        const auto end = std::chrono::steady_clock::now() + span;
        while (std::chrono::steady_clock::now() < end) {
            poll_once();
        }
    }

    // The timers t0, t1 and so on, in one go. Without a payload, each has one
    // that names it.
    void start_many(int count, uint64_t delay_us = 0,
                    const std::string &payload = {})
    {
        std::vector<Result> results(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) {
            const std::string id = "t" + std::to_string(i);
            const std::string own = "payload of " + id;
            const lawn_durable_start_t start =
                timer(id.c_str(), delay_us, payload.empty() ? own : payload);
            ASSERT_EQ(lawn_durable_start(*client, &start, Result::keep,
                                         &results[static_cast<size_t>(i)]),
                      LAWN_OK);
        }
        run_until([&] {
            return std::all_of(results.begin(), results.end(),
                               [](const Result &r) { return r.is_answered; });
        });
    }

    Result start(const lawn_durable_start_t &start)
    {
        Result result;
        EXPECT_EQ(lawn_durable_start(*client, &start, Result::keep, &result),
                  LAWN_OK);
        run_until([&result] { return result.is_answered; });
        EXPECT_EQ(result.status, LAWN_OK) << result.error;
        return result;
    }

    Result start(const char *id, uint64_t delay_us,
                 const std::string &payload = "")
    {
        return start(timer(id, delay_us, payload));
    }

    // The payload must live as long.
    static lawn_durable_start_t timer(const char *id, uint64_t delay_us,
                                      std::string_view payload = "")
    {
        lawn_durable_start_t start = {};
        start.id = id;
        start.delay_us = delay_us;
        start.payload = payload.data();
        start.payload_size = payload.size();
        return start;
    }

    // Makes a request whose function is Result::keep.
    Result ask(const std::function<lawn_status_t(Result *)> &request)
    {
        Result result;
        EXPECT_EQ(request(&result), LAWN_OK);
        run_until([&result] { return result.is_answered; });
        return result;
    }

    Result get(const char *id)
    {
        return ask([&](Result *result) {
            return lawn_durable_get(*client, id, Result::keep, result);
        });
    }

    Result stop(const char *id)
    {
        return ask([&](Result *result) {
            return lawn_durable_stop(*client, id, LAWN_DURABLE_ASYNC,
                                     Result::keep, result);
        });
    }

    bool run_until_state(const char *id, lawn_durable_state_t state)
    {
        return run_until([&] { return get(id).state == state; });
    }

    std::unique_ptr<RedisServer> server = std::make_unique<RedisServer>();
    std::vector<std::unique_ptr<Client>> clients;
    Client *client = add_client();
    std::vector<Client *> paused; // processes that have been stopped

private:
    void poll_once()
    {
        std::vector<pollfd> fds;
        for (const std::unique_ptr<Client> &c : clients) {
            bool is_paused = false;
            for (Client *const p : paused) {
                is_paused |= p == c.get();
            }
            if (!is_paused) {
                fds.push_back({lawn_durable_fd(*c), POLLIN, 0});
            }
        }
        ::poll(fds.data(), fds.size(), 5);
        size_t i = 0;
        for (const std::unique_ptr<Client> &c : clients) {
            if (i < fds.size() && lawn_durable_fd(*c) == fds[i].fd) {
                if (fds[i].revents != 0) {
                    lawn_durable_poll(*c);
                }
                ++i;
            }
        }
    }
};

} // namespace lawn_test

#endif
