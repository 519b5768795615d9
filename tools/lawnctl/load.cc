// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl load: starts timers at a rate, whether or not the store keeps up, and
// measures. Pumps and consumers are threads of this process.

#include "commands.h"
#include "output.h"

#include "durable/url.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <hiredis/hiredis.h>
#include <unistd.h>

namespace lawnctl
{

namespace
{

constexpr int64_t second_us = 1000000;
constexpr int64_t progress_us = 200000;
constexpr int64_t drain_us = 120 * second_us;
constexpr uint64_t step_us = 500; // the longest sleep of a thread
constexpr size_t payload_size = 32;
constexpr char id_prefix[] = "load-";

// What a thread has measured; read when it has ended.
using Samples = std::vector<int64_t>;

double percentile_ms(Samples &samples, double per_cent)
{
    if (samples.empty()) {
        return 0;
    }
    const auto at = static_cast<size_t>(
        std::llround(static_cast<double>(samples.size() - 1) * per_cent / 100));
    std::nth_element(samples.begin(),
                     samples.begin() + static_cast<ptrdiff_t>(at),
                     samples.end());
    return static_cast<double>(samples[at]) / 1e3;
}

struct Options {
    uint64_t rate = 0;
    uint64_t seconds = 0;
    uint64_t delay_us = second_us;
    unsigned pumps = 1;
    unsigned consumers = 1;
};

// The processor time that the server has used, in microseconds; negative if it
// cannot be asked in one place.
class ServerTime
{
public:
    explicit ServerTime(const std::string &text)
    {
        lawn::durable::Url url;
        std::string error;
        const std::string full = text.empty() ? "redis://127.0.0.1:6379" : text;
        if (!lawn::durable::parse_url(full, &url, &error)) {
            fail(error);
        }
        if (!url.master.empty()) {
            return;
        }
        const timeval limit = {5, 0};
        const lawn::durable::Endpoint &at = url.endpoints.front();
        context_.reset(at.port == 0
                           ? redisConnectUnixWithTimeout(at.host.c_str(), limit)
                           : redisConnectWithTimeout(at.host.c_str(),
                                                     static_cast<int>(at.port),
                                                     limit));
        if (!context_ || context_->err != 0) {
            context_.reset();
            return;
        }
        redisSetTimeout(context_.get(), limit);
        if (!url.password.empty()) {
            Reply(command({"AUTH",
                           url.user.empty() ? "default" : url.user.c_str(),
                           url.password.c_str()}));
        }
    }

    int64_t used_us()
    {
        const Reply reply(command({"INFO", "cpu"}));
        if (!reply || reply->type != REDIS_REPLY_STRING) {
            return -1;
        }
        double sum = 0;
        for (const char *name : {"used_cpu_sys:", "used_cpu_user:"}) {
            const char *line = strstr(reply->str, name);
            sum += line == nullptr ? 0 : strtod(line + strlen(name), nullptr);
        }
        return static_cast<int64_t>(sum * 1e6);
    }

private:
    struct Free {
        void operator()(redisContext *context) const
        {
            redisFree(context);
        }
        void operator()(redisReply *reply) const
        {
            freeReplyObject(reply);
        }
    };
    using Reply = std::unique_ptr<redisReply, Free>;

    redisReply *command(std::vector<const char *> words)
    {
        return context_ ? static_cast<redisReply *>(redisCommandArgv(
                              context_.get(), static_cast<int>(words.size()),
                              words.data(), nullptr))
                        : nullptr;
    }

    std::unique_ptr<redisContext, Free> context_;
};

// A thread with a client of its own.
class Pump
{
public:
    explicit Pump(const Settings &settings)
        : client_(settings), thread_([this] { run(); })
    {
    }

    ~Pump()
    {
        ends_ = true;
        thread_.join();
    }

private:
    void run()
    {
        lawn_durable_pump_t *pump = nullptr;
        const lawn_durable_pump_params_t params = {};
        require_success(lawn_durable_pump_start(client_.get(), &params, &pump),
                        nullptr);
        while (!ends_) {
            lawn_durable_wait(client_.get(), 100000);
        }
        lawn_durable_pump_close(pump);
    }

    Client client_;
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

class Consumer
{
public:
    explicit Consumer(const Settings &settings)
        : client_(settings), thread_([this] { run(); })
    {
    }

    ~Consumer()
    {
        end();
    }

    uint64_t answered() const
    {
        return answered_;
    }

    void end()
    {
        ends_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    // After end(): how late, and when, each fired, by the store's clock.
    Samples lateness_us;
    Samples fired_us;

private:
    static void on_delivery(void *arg, const lawn_durable_delivery_t *delivery)
    {
        static_cast<Consumer *>(arg)->deliver(delivery);
    }

    void deliver(const lawn_durable_delivery_t *delivery)
    {
        // What somebody else has started is left to others.
        if (strncmp(delivery->id, id_prefix, strlen(id_prefix)) != 0) {
            return;
        }
        lateness_us.push_back(delivery->fired_us - delivery->due_us);
        fired_us.push_back(delivery->fired_us);
        const auto on_answer = [](void *arg,
                                  const lawn_durable_result_t *result) {
            if (result->status == LAWN_OK) {
                ++static_cast<Consumer *>(arg)->answered_;
            }
        };
        require_success(lawn_durable_answer(consumer_, delivery,
                                            LAWN_DURABLE_DONE, 0, nullptr,
                                            on_answer, this),
                        nullptr);
    }

    void run()
    {
        lawn_durable_consume_t consume = {};
        consume.group = "load";
        consume.max_in_flight = 4096;
        require_success(lawn_durable_consume(client_.get(), &consume,
                                             on_delivery, this, &consumer_),
                        nullptr);
        while (!ends_) {
            lawn_durable_wait(client_.get(), 100000);
        }
        lawn_durable_consumer_close(consumer_);
    }

    Client client_;
    lawn_durable_consumer_t *consumer_ = nullptr;
    std::atomic<uint64_t> answered_{0};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

class Load
{
public:
    Load(const Settings &settings, const Options &options);
    void run();
    void print(bool is_json);

private:
    struct Started {
        Load *self;
        int64_t planned_us;
    };

    static void on_started(void *arg, const lawn_durable_result_t *result);
    void start_one(int64_t planned_us);
    void start_all();
    void drain();
    uint64_t answered() const;
    void show(int64_t begin_us);

    const Options options_;
    ServerTime server_;
    std::vector<std::unique_ptr<Pump>> pumps_;
    std::vector<std::unique_ptr<Consumer>> consumers_;
    std::mt19937_64 random_{1};
    Progress progress_;
    int64_t next_progress_us_ = 0;

    uint64_t asked_ = 0;
    uint64_t acknowledged_ = 0;
    uint64_t failed_ = 0;
    std::string error_;
    Samples start_us_; // from the planned time to the acknowledgement
    int64_t store_begin_us_ = 0;
    int64_t store_end_us_ = 0;
    int64_t last_ack_us_ = 0;
    int64_t begin_us_ = 0;
    int64_t server_begin_us_ = 0;
    int64_t server_end_us_ = 0;
    Client client_; // its callbacks use the others
};

Load::Load(const Settings &settings, const Options &options)
    : options_(options), server_(settings.url), client_(settings)
{
    if (!client_.connect()) {
        fail("interrupted");
    }
    for (unsigned i = 0; i < options.pumps; ++i) {
        pumps_.push_back(std::make_unique<Pump>(settings));
    }
    for (unsigned i = 0; i < options.consumers; ++i) {
        consumers_.push_back(std::make_unique<Consumer>(settings));
    }
}

void Load::on_started(void *arg, const lawn_durable_result_t *result)
{
    const std::unique_ptr<Started> started(static_cast<Started *>(arg));
    Load *self = started->self;
    if (result->status != LAWN_OK) {
        ++self->failed_;
        self->error_ = result->error != nullptr ? result->error : "";
        return;
    }
    ++self->acknowledged_;
    self->last_ack_us_ = monotonic_now();
    self->start_us_.push_back(self->last_ack_us_ - started->planned_us);
}

void Load::start_one(int64_t planned_us)
{
    char payload[payload_size];
    memset(payload, 'x', sizeof(payload));
    const std::string id =
        id_prefix + std::to_string(getpid()) + "-" + std::to_string(asked_);
    lawn_durable_start_t start = {};
    start.id = id.c_str();
    start.delay_us = random_() % (2 * options_.delay_us);
    start.payload = payload;
    start.payload_size = sizeof(payload);
    auto started = std::make_unique<Started>(Started{this, planned_us});
    const lawn_status_t status =
        lawn_durable_start(client_.get(), &start, on_started, started.get());
    ++asked_;
    if (status == LAWN_OK) {
        started.release(); // on_started() takes it back
    } else {
        ++failed_;
        error_ = lawn_status_string(status);
    }
}

uint64_t Load::answered() const
{
    uint64_t sum = 0;
    for (const auto &consumer : consumers_) {
        sum += consumer->answered();
    }
    return sum;
}

void Load::show(int64_t begin_us)
{
    const int64_t now_us = monotonic_now();
    if (now_us >= next_progress_us_) {
        next_progress_us_ = now_us + progress_us;
        progress_.show(std::to_string((now_us - begin_us) / second_us) +
                       " s, acknowledged " + std::to_string(acknowledged_) +
                       ", answered " + std::to_string(answered()));
    }
}

void Load::start_all()
{
    const uint64_t all = options_.rate * options_.seconds;
    while (asked_ < all && !was_signalled()) {
        const int64_t now_us = monotonic_now();
        // Those whose time has come, however late this thread is.
        for (; asked_ < all;) {
            const int64_t planned_us =
                begin_us_ +
                static_cast<int64_t>(static_cast<double>(asked_) * 1e6 /
                                     static_cast<double>(options_.rate));
            if (planned_us > now_us) {
                break;
            }
            start_one(planned_us);
        }
        lawn_durable_wait(client_.get(), step_us);
        show(begin_us_);
    }
}

void Load::drain()
{
    const int64_t until_us = monotonic_now() + drain_us +
                             2 * static_cast<int64_t>(options_.delay_us);
    while ((acknowledged_ + failed_ < asked_ || answered() < acknowledged_) &&
           monotonic_now() < until_us && !was_signalled()) {
        lawn_durable_wait(client_.get(), 10000);
        show(begin_us_);
    }
}

void Load::run()
{
    server_begin_us_ = server_.used_us();
    begin_us_ = monotonic_now();
    store_begin_us_ = lawn_durable_now(client_.get());
    start_all();
    store_end_us_ = lawn_durable_now(client_.get());
    drain();
    server_end_us_ = server_.used_us();
    for (const auto &consumer : consumers_) {
        consumer->end();
    }
    progress_.show("");
}

void Load::print(bool is_json)
{
    Samples lateness;
    uint64_t fired = 0;
    // In the steady state: from when the first timers are at their latest due.
    const int64_t steady_us =
        std::min(store_begin_us_ + 2 * static_cast<int64_t>(options_.delay_us),
                 (store_begin_us_ + store_end_us_) / 2);
    for (const auto &consumer : consumers_) {
        lateness.insert(lateness.end(), consumer->lateness_us.begin(),
                        consumer->lateness_us.end());
        fired += static_cast<uint64_t>(std::count_if(
            consumer->fired_us.begin(), consumer->fired_us.end(),
            [&](int64_t at) { return at >= steady_us && at < store_end_us_; }));
    }
    const auto per_second = [](uint64_t count, int64_t span_us) {
        return static_cast<double>(count) * 1e6 /
               static_cast<double>(std::max<int64_t>(span_us, 1));
    };
    Table table;
    Json json;
    const auto count = [&](const char *name, uint64_t value) {
        table.row(name, value);
        json.number(name, value);
    };
    const auto real = [&](const char *name, double value) {
        char text[40];
        snprintf(text, sizeof(text), "%.3f", value);
        table.row(name, text);
        json.real(name, value);
    };
    count("acknowledged", acknowledged_);
    count("failed", failed_);
    count("answered", answered());
    real("adds_per_s", per_second(acknowledged_, last_ack_us_ - begin_us_));
    real("fires_per_s", per_second(fired, store_end_us_ - steady_us));
    real("add_p50_ms", percentile_ms(start_us_, 50));
    real("add_p99_ms", percentile_ms(start_us_, 99));
    real("add_p999_ms", percentile_ms(start_us_, 99.9));
    real("lateness_p50_ms", percentile_ms(lateness, 50));
    real("lateness_p99_ms", percentile_ms(lateness, 99));
    real("lateness_p999_ms", percentile_ms(lateness, 99.9));
    if (server_begin_us_ >= 0 && server_end_us_ >= 0 && answered() != 0) {
        real("redis_cpu_us_per_timer",
             static_cast<double>(server_end_us_ - server_begin_us_) /
                 static_cast<double>(answered()));
    }
    if (is_json) {
        print_line(json.str());
    } else {
        table.print();
    }
    if (failed_ != 0 || answered() < acknowledged_) {
        fail(std::to_string(failed_) + " starts failed, " +
             std::to_string(acknowledged_ - answered()) +
             " timers were not answered" +
             (error_.empty() ? "" : ": " + error_));
    }
}

} // namespace

int command_load(const Settings &settings, Arguments &arguments)
{
    Options options;
    const auto rate = arguments.take_number("--rate", 1, 1000000);
    const auto seconds = arguments.take_number("--seconds", 1, 86400);
    if (!rate || !seconds) {
        fail("load needs --rate and --seconds; see --help");
    }
    options.rate = *rate;
    options.seconds = *seconds;
    options.delay_us = arguments.take_duration("--delay").value_or(second_us);
    options.delay_us = std::min<uint64_t>(
        std::max<uint64_t>(options.delay_us, 1), 3600 * second_us);
    options.pumps = static_cast<unsigned>(
        arguments.take_number("--pumps", 0, 16).value_or(1));
    options.consumers = static_cast<unsigned>(
        arguments.take_number("--consumers", 1, 16).value_or(1));
    arguments.finish();
    Settings own = settings;
    if (own.name_space.empty()) {
        own.name_space = "lawn-load";
    }
    catch_signals();
    Load load(own, options);
    load.run();
    load.print(settings.json);
    return 0;
}

} // namespace lawnctl
