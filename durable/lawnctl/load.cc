// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl load: starts timers at a rate, whether or not the store keeps up, and
// measures. Its pumps and consumers are threads of this process.

#include "commands.h"
#include "load_threads.h"
#include "output.h"
#include "server_time.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace lawnctl
{

namespace
{

constexpr int64_t second_us = 1000000;
constexpr int64_t progress_us = 200000;
constexpr int64_t drain_us = 120 * second_us;
constexpr uint64_t step_us = 500; // the longest sleep of a thread
constexpr size_t payload_size = 32;

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
    uint64_t spread_us = second_us; // of the delays, around delay_us
    bool leaves = false;            // the timers in the store
    unsigned pumps = 1;
    uint64_t coalesce_us = 0; // of the pumps; 0: the library's default
    unsigned consumers = 1;
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
        uint64_t number;
        int64_t planned_us;
    };
    // What all consumers together have seen.
    struct Seen {
        Samples lateness_us; // when it fired
        Samples delivery_us; // when it was given to the consumer
        uint64_t fired = 0;  // in the steady state
        uint64_t delivered = 0;
        uint64_t early = 0;
        uint64_t duplicates = 0;
        uint64_t lost = 0;
    };

    static void on_started(void *arg, const lawn_durable_result_t *result);
    void start_one(int64_t planned_us);
    void start_all();
    bool is_over() const;
    void drain();
    uint64_t answered() const;
    int64_t steady_us() const;
    Seen seen() const;
    void show(int64_t begin_us);

    const Options options_;
    ServerTime server_;
    std::vector<std::unique_ptr<LoadPump>> pumps_;
    std::vector<std::unique_ptr<LoadConsumer>> consumers_;
    const std::string prefix_ = load_prefix();
    std::mt19937_64 random_{1};
    Progress progress_;
    int64_t next_progress_us_ = 0;

    uint64_t asked_ = 0;
    uint64_t acknowledged_ = 0;
    uint64_t failed_ = 0;
    std::string error_;
    std::vector<bool> is_acknowledged_; // by number
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
        pumps_.push_back(
            std::make_unique<LoadPump>(settings, options.coalesce_us));
    }
    for (unsigned i = 0; i < options.consumers; ++i) {
        consumers_.push_back(std::make_unique<LoadConsumer>(settings));
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
    self->is_acknowledged_[started->number] = true;
    self->last_ack_us_ = monotonic_now();
    self->start_us_.push_back(self->last_ack_us_ - started->planned_us);
}

void Load::start_one(int64_t planned_us)
{
    char payload[payload_size];
    memset(payload, 'x', sizeof(payload));
    const std::string id = prefix_ + std::to_string(asked_);
    lawn_durable_start_t start = {};
    start.id = id.c_str();
    start.delay_us = options_.delay_us - options_.spread_us +
                     random_() % (2 * options_.spread_us + 1);
    start.payload = payload;
    start.payload_size = sizeof(payload);
    auto started = std::make_unique<Started>(Started{this, asked_, planned_us});
    is_acknowledged_.push_back(false);
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

// It does not suffice to count the answers: a timer may be answered twice, and
// so may one whose start has failed, but was carried out by the store.
bool Load::is_over() const
{
    return acknowledged_ + failed_ == asked_ &&
           (options_.leaves ||
            (answered() >= acknowledged_ && seen().lost == 0));
}

void Load::drain()
{
    const int64_t until_us =
        monotonic_now() + drain_us +
        static_cast<int64_t>(options_.delay_us + options_.spread_us);
    while (!is_over() && monotonic_now() < until_us && !was_signalled()) {
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

// From when the first timers are at their latest due, until no more are
// started.
int64_t Load::steady_us() const
{
    return std::min(store_begin_us_ + static_cast<int64_t>(options_.delay_us +
                                                           options_.spread_us),
                    (store_begin_us_ + store_end_us_) / 2);
}

Load::Seen Load::seen() const
{
    const auto is_steady = [this](int64_t at_us) {
        return at_us >= steady_us() && at_us < store_end_us_;
    };
    Seen seen;
    std::vector<bool> is_delivered(is_acknowledged_.size());
    for (const auto &consumer : consumers_) {
        for (const LoadConsumer::Delivery &delivery : consumer->deliveries()) {
            seen.lateness_us.push_back(delivery.fired_us - delivery.due_us);
            seen.delivery_us.push_back(delivery.handled_us - delivery.due_us);
            seen.fired += is_steady(delivery.fired_us);
            seen.delivered += is_steady(delivery.handled_us);
            seen.early += delivery.fired_us < delivery.due_us;
            seen.duplicates += is_delivered.at(delivery.number);
            is_delivered.at(delivery.number) = true;
        }
    }
    for (size_t i = 0; i < is_delivered.size() && !options_.leaves; ++i) {
        seen.lost += is_acknowledged_[i] && !is_delivered[i];
    }
    return seen;
}

void Load::print(bool is_json)
{
    Seen seen = this->seen();
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
    count("lost", seen.lost);
    count("early", seen.early);
    count("duplicates", seen.duplicates);
    real("adds_per_s", per_second(acknowledged_, last_ack_us_ - begin_us_));
    real("fires_per_s", per_second(seen.fired, store_end_us_ - steady_us()));
    real("deliveries_per_s",
         per_second(seen.delivered, store_end_us_ - steady_us()));
    real("add_p50_ms", percentile_ms(start_us_, 50));
    real("add_p99_ms", percentile_ms(start_us_, 99));
    real("add_p999_ms", percentile_ms(start_us_, 99.9));
    real("lateness_p50_ms", percentile_ms(seen.lateness_us, 50));
    real("lateness_p99_ms", percentile_ms(seen.lateness_us, 99));
    real("lateness_p999_ms", percentile_ms(seen.lateness_us, 99.9));
    real("delivery_p50_ms", percentile_ms(seen.delivery_us, 50));
    real("delivery_p99_ms", percentile_ms(seen.delivery_us, 99));
    real("delivery_p999_ms", percentile_ms(seen.delivery_us, 99.9));
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
    const uint64_t unanswered =
        options_.leaves ? 0
                        : acknowledged_ - std::min(answered(), acknowledged_);
    if (failed_ != 0 || unanswered != 0) {
        fail(std::to_string(failed_) + " starts failed, " +
             std::to_string(unanswered) + " timers were not answered" +
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
    if (options.delay_us > 3600 * second_us) {
        fail("--delay is longer than an hour");
    }
    options.delay_us = std::max<uint64_t>(options.delay_us, 1);
    options.spread_us =
        arguments.take_duration("--spread").value_or(options.delay_us);
    if (options.spread_us > options.delay_us) {
        fail("--spread is longer than --delay");
    }
    options.leaves = arguments.take_flag("--leave");
    options.pumps = static_cast<unsigned>(
        arguments.take_number("--pumps", 0, 16).value_or(1));
    options.consumers = static_cast<unsigned>(
        arguments.take_number("--consumers", 1, 16).value_or(1));
    options.coalesce_us = arguments.take_duration("--coalesce").value_or(0);
    if (options.coalesce_us > second_us) {
        fail("--coalesce is longer than a second");
    }
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
