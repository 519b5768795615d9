// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Loads the known design (wheel.h) as `lawnctl load` loads a store of Lawn:
// adds tasks at a rate, whether or not the store keeps up, and prints as one
// JSON object what it has measured, with the same names. Schedulers and workers
// are threads of this process.

#include "wheel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <getopt.h>

namespace
{

using known::now_us;
using known::second_us;

constexpr size_t batch = 500;     // adds on the way at once
constexpr int64_t pause_us = 500; // between two looks at the time
constexpr size_t payload_size = 32;
constexpr char id_prefix[] = "known-00000-";

struct Options {
    std::string path;
    double rate = 0;
    double seconds = 0;
    int64_t delay_us = 3 * second_us;
    int64_t spread_us = 2 * second_us;
    int64_t sweep_s = 600;
    // How long nothing is answered, with all due, until the rest is given up.
    int64_t patience_us = 10 * second_us;
    unsigned schedulers = 2;
    unsigned workers = 2;
    bool leaves = false;
};

void sleep_us(int64_t time)
{
    std::this_thread::sleep_for(std::chrono::microseconds(time));
}

class SchedulerThread
{
public:
    explicit SchedulerThread(const Options &options)
        : scheduler_(options.path, options.sweep_s), thread_([this] { run(); })
    {
    }

    ~SchedulerThread()
    {
        ends_ = true;
        thread_.join();
    }

private:
    void run()
    {
        while (!ends_) {
            const int64_t next_us = scheduler_.tick();
            // In pieces, to notice the end.
            for (int64_t left; !ends_ && (left = next_us - now_us()) > 0;) {
                sleep_us(std::min(left, second_us / 10));
            }
        }
    }

    known::Scheduler scheduler_;
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

class WorkerThread
{
public:
    explicit WorkerThread(const Options &options)
        : worker_(options.path), thread_([this] { run(); })
    {
    }

    ~WorkerThread()
    {
        end();
    }

    void end()
    {
        ends_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    uint64_t answered() const
    {
        return answered_;
    }

    struct Delivery {
        uint64_t number;
        int64_t due_us;
        int64_t handled_us;
    };
    std::vector<Delivery> deliveries; // read after end()

private:
    void run()
    {
        while (!ends_) {
            answered_ += worker_.take([this](const known::Task &task) {
                deliveries.push_back(
                    {strtoull(task.id.c_str() + sizeof(id_prefix) - 1, nullptr,
                              10),
                     task.due_us, now_us()});
            });
        }
    }

    known::Worker worker_;
    std::atomic<uint64_t> answered_{0};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

double percentile_ms(std::vector<int64_t> &samples, double per_cent)
{
    if (samples.empty()) {
        return 0;
    }
    const auto at = static_cast<size_t>(
        std::llround(static_cast<double>(samples.size() - 1) * per_cent / 100));
    const auto middle = samples.begin() + static_cast<ptrdiff_t>(at);
    std::nth_element(samples.begin(), middle, samples.end());
    return static_cast<double>(*middle) / 1e3;
}

class Load
{
public:
    explicit Load(const Options &options)
        : options_(options), adder_(options.path)
    {
        for (unsigned i = 0; i < options.schedulers; ++i) {
            schedulers_.push_back(std::make_unique<SchedulerThread>(options));
        }
        for (unsigned i = 0; i < options.workers; ++i) {
            workers_.push_back(std::make_unique<WorkerThread>(options));
        }
    }

    void run()
    {
        begin_us_ = now_us();
        add_all();
        end_us_ = now_us();
        if (!options_.leaves) {
            drain();
        }
        for (const auto &worker : workers_) {
            worker->end();
        }
    }

    void print();

private:
    void add_all();
    void drain();
    uint64_t answered() const;

    const Options options_;
    known::Adder adder_;
    std::vector<std::unique_ptr<SchedulerThread>> schedulers_;
    std::vector<std::unique_ptr<WorkerThread>> workers_;
    std::mt19937_64 random_{1};
    uint64_t acknowledged_ = 0; // all with smaller numbers
    int64_t begin_us_ = 0;
    int64_t end_us_ = 0;
    int64_t last_ack_us_ = 0;
};

// The adds whose time has come go out together, at most `batch`. Those that the
// store was too slow for are given up when the time is over.
void Load::add_all()
{
    const auto all = static_cast<uint64_t>(options_.rate * options_.seconds);
    const auto span_us = static_cast<int64_t>(options_.seconds * 1e6);
    uint64_t asked = 0;
    int64_t now = now_us();
    for (; asked < all && now < begin_us_ + span_us; now = now_us()) {
        const uint64_t due = std::min<uint64_t>(
            all, static_cast<uint64_t>(static_cast<double>(now - begin_us_) *
                                       options_.rate / 1e6) +
                     1);
        const uint64_t until = std::min(due, asked + batch);
        for (; asked < until; ++asked) {
            const int64_t delay_us =
                options_.delay_us - options_.spread_us +
                static_cast<int64_t>(
                    random_() %
                    static_cast<uint64_t>(2 * options_.spread_us + 1));
            adder_.add({id_prefix + std::to_string(asked), now + delay_us,
                        std::string(payload_size, 'x')});
        }
        adder_.flush([this] { ++acknowledged_; });
        last_ack_us_ = now_us();
        if (asked == due) {
            sleep_us(pause_us);
        }
    }
}

uint64_t Load::answered() const
{
    uint64_t sum = 0;
    for (const auto &worker : workers_) {
        sum += worker->answered();
    }
    return sum;
}

void Load::drain()
{
    const int64_t all_due_us =
        end_us_ + options_.delay_us + options_.spread_us + second_us;
    int64_t give_up_us = all_due_us + options_.patience_us;
    for (uint64_t before = answered();
         before < acknowledged_ && now_us() < give_up_us;) {
        sleep_us(second_us / 20);
        const uint64_t after = answered();
        if (after != before) {
            give_up_us = std::max(all_due_us, now_us()) + options_.patience_us;
        }
        before = after;
    }
}

void Load::print()
{
    // From when the first tasks are at their latest due, and fetched, until
    // none is added.
    const int64_t steady_us =
        std::min(begin_us_ + options_.delay_us + options_.spread_us + second_us,
                 (begin_us_ + end_us_) / 2);
    std::vector<int64_t> late_us;
    std::vector<bool> is_delivered(acknowledged_);
    uint64_t steady = 0;
    uint64_t early = 0;
    uint64_t duplicates = 0;
    for (const auto &worker : workers_) {
        for (const WorkerThread::Delivery &delivery : worker->deliveries) {
            late_us.push_back(delivery.handled_us - delivery.due_us);
            steady += delivery.handled_us >= steady_us &&
                      delivery.handled_us < end_us_;
            early += delivery.handled_us < delivery.due_us;
            duplicates += is_delivered.at(delivery.number);
            is_delivered.at(delivery.number) = true;
        }
    }
    const auto lost = static_cast<uint64_t>(
        std::count(is_delivered.begin(), is_delivered.end(), false));
    const auto per_second = [](uint64_t count, int64_t span_us) {
        return static_cast<double>(count) * 1e6 /
               static_cast<double>(std::max<int64_t>(span_us, 1));
    };
    printf("{\"acknowledged\":%lu,\"failed\":0,\"answered\":%lu,\"lost\":%lu,"
           "\"early\":%lu,\"duplicates\":%lu,\"adds_per_s\":%.3f,"
           "\"deliveries_per_s\":%.3f,\"delivery_p50_ms\":%.3f,"
           "\"delivery_p99_ms\":%.3f,\"delivery_p999_ms\":%.3f}\n",
           acknowledged_, answered(), options_.leaves ? 0 : lost, early,
           duplicates, per_second(acknowledged_, last_ack_us_ - begin_us_),
           per_second(steady, end_us_ - steady_us), percentile_ms(late_us, 50),
           percentile_ms(late_us, 99), percentile_ms(late_us, 99.9));
}

double number(const char *text)
{
    char *end = nullptr;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= 1e9)) {
        known::fail(std::string("not a number: ") + text);
    }
    return value;
}

constexpr char usage[] =
    R"(usage: known_design --redis SOCKET --rate N --seconds S [OPTION...]

  --delay S       seconds from an add to its due time, on average (3)
  --spread S      by how much they may differ from that (2)
  --schedulers N  (2), of which one at a time fires
  --workers N     (2)
  --sweep S       how long after its due time a task counts as missed (600)
  --patience S    how long to wait for tasks that do not come (10)
  --leave         do not wait until the tasks have fired
)";

Options parse(int argc, char **argv)
{
    static const option names[] = {
        {"redis", required_argument, nullptr, 'u'},
        {"rate", required_argument, nullptr, 'r'},
        {"seconds", required_argument, nullptr, 's'},
        {"delay", required_argument, nullptr, 'd'},
        {"spread", required_argument, nullptr, 'v'},
        {"schedulers", required_argument, nullptr, 'c'},
        {"workers", required_argument, nullptr, 'w'},
        {"sweep", required_argument, nullptr, 'p'},
        {"patience", required_argument, nullptr, 'n'},
        {"leave", no_argument, nullptr, 'l'},
        {nullptr, 0, nullptr, 0}};
    const auto time_us = [] {
        return static_cast<int64_t>(number(optarg) * 1e6);
    };
    Options options;
    for (int name;
         (name = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        switch (name) {
        case 'u':
            options.path = optarg;
            break;
        case 'r':
            options.rate = number(optarg);
            break;
        case 's':
            options.seconds = number(optarg);
            break;
        case 'd':
            options.delay_us = time_us();
            break;
        case 'v':
            options.spread_us = time_us();
            break;
        case 'c':
            options.schedulers = static_cast<unsigned>(number(optarg));
            break;
        case 'w':
            options.workers = static_cast<unsigned>(number(optarg));
            break;
        case 'p':
            options.sweep_s = static_cast<int64_t>(number(optarg));
            break;
        case 'n':
            options.patience_us = time_us();
            break;
        case 'l':
            options.leaves = true;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (options.path.empty() || options.rate == 0 || options.seconds == 0 ||
        options.spread_us > options.delay_us || optind != argc) {
        fputs(usage, stderr);
        exit(2);
    }
    return options;
}

} // namespace

int main(int argc, char **argv)
{
    Load load(parse(argc, argv));
    load.run();
    load.print();
    return 0;
}
