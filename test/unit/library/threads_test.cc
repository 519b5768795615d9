// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the headers promise to threads: the clock is for all at any time, first
// use included, and so are the names and the version; engines, lawns and what
// is on them are independent of each other, and may go from one thread to
// another. Most of the proof is that the thread sanitizer finds nothing here.
// The rest is that a life on virtual time goes as it does alone.

#include "../../hang.h"

#include <lawn/lawn.h>
#include <lawn/lawn.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

namespace
{

using lawn_test::Thread;
using lawn_test::wait_for;

constexpr unsigned thread_count = 4;

// Calls `body` with 0, 1, ... from as many threads, all at the same time.
void in_threads(const std::function<void(unsigned)> &body)
{
    std::atomic<unsigned> ready{0};
    std::vector<Thread> threads;
    threads.reserve(thread_count);
    for (unsigned i = 0; i < thread_count; ++i) {
        threads.emplace_back("one of all", [&, i] {
            ++ready;
            wait_for("all", "to begin", [&] { return ready == thread_count; });
            body(i);
        });
    }
    for (Thread &thread : threads) {
        thread.join();
    }
}

// Timers, ids and connections on an engine of their own, from a seed. What
// fires is summed up, so that it does not matter in which order one pass fires.
// No part of it depends on an address: the connections have no jitter.
class Life
{
public:
    explicit Life(uint64_t seed) : random_(seed)
    {
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) { return static_cast<Life *>(arg)->now_; };
        params.clock_arg = this;
        params.ticks_per_sec = 1e9;
        params.budget = 16;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
        lawn_ = lawn_engine_lawn(engine_);
        for (Timer &timer : timers_) {
            timer.life = this;
            lawn_timer_init(&timer.timer, on_timer);
        }
        EXPECT_EQ(lawn_keyed_create(lawn_, 4, &keyed_), LAWN_OK);
        lawn_keyed_set_expired(keyed_, on_id, this);
        open_conns();
    }

    Life(const Life &) = delete;
    Life &operator=(const Life &) = delete;

    ~Life()
    {
        for (lawn_conn_t &conn : conns_) {
            lawn_conn_close(&conn);
        }
        lawn_keyed_destroy(keyed_);
        lawn_engine_destroy(engine_);
    }

    void run(unsigned steps)
    {
        for (unsigned i = 0; i < steps; ++i) {
            step();
        }
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    // Of all that has fired.
    uint64_t sum() const
    {
        return sum_;
    }

    unsigned fired() const
    {
        return fired_;
    }

private:
    struct Timer {
        lawn_timer_t timer;
        Life *life;
    };

    void open_conns()
    {
        lawn_conn_params_t params = {};
        params.rto_initial = 100'000;
        params.rto_min = 10'000;
        params.rto_max = 1'000'000;
        params.backoff = 2;
        params.keepalive_idle = 300'000;
        params.keepalive_interval = 50'000;
        params.keepalive_probes = 3;
        lawn_conn_ops_t ops = {};
        ops.retransmit = [](lawn_conn_t *conn, lawn_time_t now, unsigned n) {
            of(conn)->note('r', n, now);
        };
        ops.probe = [](lawn_conn_t *conn, lawn_time_t now, unsigned n) {
            of(conn)->note('p', n, now);
        };
        ops.dead = [](lawn_conn_t *conn, lawn_time_t now,
                      lawn_conn_reason_t reason) {
            of(conn)->note('d', static_cast<uint64_t>(reason), now);
        };
        for (lawn_conn_t &conn : conns_) {
            conn.context = this;
            EXPECT_EQ(lawn_conn_open(engine_, &params, &ops, &conn), LAWN_OK);
        }
    }

    static Life *of(lawn_conn_t *conn)
    {
        return static_cast<Life *>(conn->context);
    }

    static void on_timer(lawn_timer_t *timer, lawn_time_t now)
    {
        const Timer *const entry = reinterpret_cast<Timer *>(timer);
        Life *const life = entry->life;
        life->note('t', static_cast<uint64_t>(entry - life->timers_.data()),
                   now);
    }

    static void on_id(void *arg, uint64_t id, void *, lawn_time_t now)
    {
        static_cast<Life *>(arg)->note('i', id, now);
    }

    void note(char what, uint64_t which, lawn_time_t now)
    {
        constexpr uint64_t odd = 0x9e3779b97f4a7c15;
        const uint64_t event = (static_cast<uint64_t>(what) << 32) + which;
        sum_ += ((event * odd) ^ now) * odd;
        ++fired_;
    }

    void step()
    {
        const uint64_t dice = random_();
        const lawn_time_t ttl = random_() % (1U << dice % 20);
        const size_t which = dice >> 32;
        Timer &timer = timers_[which % timers_.size()];
        lawn_conn_t &conn = conns_[which % conns_.size()];
        switch (dice >> 8 & 7) {
        case 0:
        case 1:
            lawn_timer_start(lawn_, &timer.timer, now_, ttl);
            break;
        case 2:
            lawn_timer_pause(lawn_, &timer.timer);
            break;
        case 3:
            EXPECT_EQ(lawn_keyed_start(keyed_, now_, ttl, which % 32, nullptr),
                      LAWN_OK);
            break;
        case 4:
            lawn_keyed_stop(keyed_, which % 32, nullptr);
            break;
        case 5:
            lawn_conn_on_send(&conn, now_);
            break;
        case 6:
            lawn_conn_on_ack(&conn, now_, std::min(ttl, now_), true);
            break;
        default:
            now_ += ttl;
            lawn_engine_progress(engine_);
        }
    }

    std::mt19937_64 random_;
    lawn_time_t now_ = 0;
    lawn_engine_t *engine_ = nullptr;
    lawn_t *lawn_ = nullptr;
    lawn_keyed_t *keyed_ = nullptr;
    std::array<Timer, 32> timers_ = {};
    std::array<lawn_conn_t, 4> conns_ = {};
    uint64_t sum_ = 0;
    unsigned fired_ = 0;
};

constexpr unsigned steps = 4000;

TEST(Threads, TheClockIsForAll)
{
    // The first use of the clock in this process; ClockProcess has more such,
    // on either source and across forks.
    std::array<double, thread_count> rates = {};
    in_threads([&](unsigned i) {
        const lawn_time_t begin = lawn_get_time();
        const auto time = lawn::tsc_clock::now();
        lawn_clock_info_t info;
        EXPECT_EQ(lawn_clock_query(&info), LAWN_OK);
        EXPECT_EQ(lawn_time_from_sec(1), lawn_time_from_msec(1000));
        EXPECT_STRNE(lawn_clock_source_name(info.source), "unknown");
        EXPECT_STRNE(lawn_clock_method_name(info.method), "unknown");
        EXPECT_STREQ(lawn_version(), LAWN_VERSION_STRING);
        EXPECT_STRNE(lawn_status_string(LAWN_ERR_BUSY), "");
        EXPECT_LE(time, lawn::tsc_clock::now());
        // On one clock: a mixture of two would be years apart.
        EXPECT_LT(lawn_time_to_sec(lawn_get_time() - begin), 3600);
        rates[i] = info.ticks_per_sec;
    });
    for (const double rate : rates) {
        EXPECT_EQ(rate, lawn_time_sec_value());
    }
}

TEST(Threads, EachItsOwnEngine)
{
    std::array<uint64_t, thread_count> alone = {};
    for (unsigned i = 0; i < thread_count; ++i) {
        Life life(i + 1);
        life.run(steps);
        EXPECT_GT(life.fired(), steps / 20);
        alone[i] = life.sum();
    }
    EXPECT_NE(alone[0], alone[1]);
    in_threads([&](unsigned i) {
        for (unsigned n = 0; n < thread_count; ++n) {
            const unsigned which = (i + n) % thread_count;
            Life life(which + 1);
            life.run(steps);
            EXPECT_EQ(life.sum(), alone[which]) << "seed " << which + 1;
        }
    });
}

TEST(Threads, AnEngineGoesFromThreadToThread)
{
    Life alone(1);
    alone.run(thread_count * steps);
    std::unique_ptr<Life> life;
    std::thread([&] { life = std::make_unique<Life>(1); }).join();
    for (unsigned i = 0; i < thread_count; ++i) {
        std::thread([&] { life->run(steps); }).join();
    }
    EXPECT_EQ(life->sum(), alone.sum());
    std::thread([&] { life.reset(); }).join();
}

TEST(Threads, EachRecordsItsOwnTrace)
{
    char name[] = "/tmp/lawn-threads-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    const std::string directory = name;
    setenv("LAWN_TRACE", (directory + "/trace").c_str(), 1);
    in_threads([&](unsigned) { Life(1).run(steps); });
    unsetenv("LAWN_TRACE");
    for (const char *suffix : {"", ".1", ".2", ".3"}) {
        const std::string path = directory + "/trace" + suffix;
        SCOPED_TRACE(path);
        std::ifstream file(path);
        size_t lines = 0;
        for (std::string line; std::getline(file, line); ++lines) {
            EXPECT_EQ(line.rfind("lawn-trace ", 0) == 0, lines == 0) << line;
        }
        EXPECT_GT(lines, steps / 4);
    }
    std::filesystem::remove_all(directory);
}

TEST(Threads, OneWakesAnotherByItsSource)
{
    struct Inbox {
        int fd = eventfd(0, EFD_NONBLOCK);
        unsigned sent = 0; // before the fd was written
        unsigned seen = 0;
    };
    const auto poll = [](void *arg) -> unsigned {
        Inbox *const inbox = static_cast<Inbox *>(arg);
        uint64_t value;
        if (read(inbox->fd, &value, sizeof(value)) != sizeof(value)) {
            return 0;
        }
        inbox->seen = inbox->sent;
        return 1;
    };
    std::array<Inbox, thread_count> inboxes;
    // Each is woken by the one before, the first by itself.
    in_threads([&](unsigned i) {
        lawn_engine_t *engine;
        ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
        Inbox &own = inboxes[i];
        EXPECT_EQ(lawn_engine_add(engine, poll, &own, own.fd, nullptr),
                  LAWN_OK);
        const auto wake = [](Inbox *inbox) {
            const uint64_t one = 1;
            inbox->sent = 7;
            EXPECT_EQ(write(inbox->fd, &one, sizeof(one)),
                      static_cast<ssize_t>(sizeof(one)));
        };
        if (i == 0) {
            wake(&own);
        }
        while (own.seen == 0 && !testing::Test::HasFailure()) {
            if (lawn_engine_progress(engine) == 0) {
                EXPECT_EQ(lawn_engine_wait(engine, LAWN_TIME_INFINITY),
                          LAWN_OK);
            }
        }
        if (i + 1 < thread_count) {
            wake(&inboxes[i + 1]);
        }
        lawn_engine_destroy(engine);
    });
    for (const Inbox &inbox : inboxes) {
        EXPECT_EQ(inbox.seen, 7U);
        close(inbox.fd);
    }
}

// Others read an engine's time while its clock goes back again and again: the
// time is never that of before a step with the offset of after it.
TEST(Threads, AnEnginesTimeIsForAll)
{
    constexpr lawn_time_t msec = 1'000'000;
    constexpr lawn_time_t step = 1'000'000 * msec;
    constexpr unsigned step_count = 200;
    constexpr unsigned passes = 50; // between two steps
    std::atomic<lawn_time_t> clock{2 * step_count * step};
    lawn_engine_params_t params = {};
    params.ticks_per_sec = 1e9;
    params.clock_arg = &clock;
    params.clock = [](void *arg) {
        return static_cast<std::atomic<lawn_time_t> *>(arg)->load();
    };
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    const lawn_time_t begin = lawn_engine_now(engine);
    const lawn_time_t end = begin + step_count * passes * msec;
    std::atomic<bool> is_over{false};
    in_threads([&](unsigned i) {
        if (i != 0) {
            do {
                const lawn_time_t now = lawn_engine_time(engine);
                EXPECT_GE(now, begin);
                EXPECT_LE(now, end);
            } while (!is_over && !testing::Test::HasFailure());
            return;
        }
        for (unsigned j = 0; j < step_count; ++j) {
            for (unsigned k = 0; k < passes; ++k) {
                clock += msec;
                lawn_engine_progress(engine);
            }
            clock -= step;
            lawn_engine_progress(engine);
        }
        is_over = true;
    });
    EXPECT_EQ(lawn_engine_now(engine), end);
    lawn_engine_stats_t stats;
    lawn_engine_query(engine, &stats);
    EXPECT_EQ(stats.clock_steps, step_count);
    lawn_engine_destroy(engine);
}

} // namespace
