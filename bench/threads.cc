// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What timers that two threads share cost: one thread, the owner, polls without
// end; the other re-arms timers, or stops and starts them. Shared timers
// (lawn/shared.h) beside a lawn behind a lock, which each pass of the owner
// takes. Then what the owner's own re-arm costs meanwhile, and how long a
// sleeping owner takes to be woken. All take turns; medians, in nanoseconds.

#include <lawn/engine.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace
{

constexpr size_t timers = 1000;
constexpr unsigned budget = 64;

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double nsec_since(lawn_time_t begin, double operations)
{
    return lawn_time_to_nsec(lawn_get_time() - begin) / operations;
}

lawn_t *make_lawn()
{
    lawn_t *lawn = nullptr;
    if (lawn_create(nullptr, &lawn) != LAWN_OK) {
        std::fprintf(stderr, "lawn_threads: no memory\n");
        std::exit(1);
    }
    return lawn;
}

// A scheme by which two threads share a thousand timers. Deadlines never come.
class Scheme
{
public:
    explicit Scheme(const char *name) : name(name)
    {
    }

    virtual ~Scheme() = default;
    virtual void start(size_t i, lawn_time_t deadline) = 0;
    virtual bool stop(size_t i) = 0;

    // The owner's.
    virtual void pass(lawn_time_t now) = 0;
    virtual void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) = 0;

    const char *const name;
};

class Shared : public Scheme
{
public:
    Shared() : Scheme("lawn/shared.h")
    {
        if (lawn_box_create(lawn_, &box_) != LAWN_OK) {
            std::exit(1);
        }
        for (auto *const all : {&timers_, &own_}) {
            for (lawn_shared_t &timer : *all) {
                lawn_shared_init(&timer, box_, nullptr);
            }
        }
    }

    ~Shared() override
    {
        for (auto *const all : {&timers_, &own_}) {
            for (lawn_shared_t &timer : *all) {
                lawn_shared_retire(&timer, nullptr);
            }
        }
        lawn_box_destroy(box_);
        lawn_destroy(lawn_);
    }

    void start(size_t i, lawn_time_t deadline) override
    {
        lawn_shared_start(&timers_[i], deadline);
    }

    bool stop(size_t i) override
    {
        return lawn_shared_stop(&timers_[i]);
    }

    void pass(lawn_time_t now) override
    {
        lawn_box_drain(box_, now, budget);
        lawn_advance(lawn_, now, budget);
    }

    void start_own(size_t i, lawn_time_t, lawn_time_t deadline) override
    {
        lawn_shared_start_local(&own_[i], deadline);
    }

private:
    lawn_t *const lawn_ = make_lawn();
    lawn_box_t *box_ = nullptr;
    std::array<lawn_shared_t, timers> timers_;
    std::array<lawn_shared_t, timers> own_;
};

class SpinLock
{
public:
    void lock()
    {
        while (is_taken_.exchange(true, std::memory_order_acquire)) {
            while (is_taken_.load(std::memory_order_relaxed)) {
                std::this_thread::yield();
            }
        }
    }

    void unlock()
    {
        is_taken_.store(false, std::memory_order_release);
    }

private:
    std::atomic<bool> is_taken_{false};
};

template <class Lock> class Locked : public Scheme
{
public:
    explicit Locked(const char *name) : Scheme(name)
    {
        for (auto *const all : {&timers_, &own_}) {
            for (lawn_timer_t &timer : *all) {
                lawn_timer_init(&timer, nullptr);
            }
        }
    }

    ~Locked() override
    {
        lawn_destroy(lawn_);
    }

    void start(size_t i, lawn_time_t deadline) override
    {
        const std::lock_guard<Lock> guard(lock_);
        lawn_timer_start_at(lawn_, &timers_[i], lawn_now(lawn_), deadline);
    }

    bool stop(size_t i) override
    {
        const std::lock_guard<Lock> guard(lock_);
        return lawn_timer_stop(lawn_, &timers_[i]);
    }

    void pass(lawn_time_t now) override
    {
        const std::lock_guard<Lock> guard(lock_);
        lawn_advance(lawn_, now, budget);
    }

    void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        const std::lock_guard<Lock> guard(lock_);
        lawn_timer_start_at(lawn_, &own_[i], now, deadline);
    }

private:
    lawn_t *const lawn_ = make_lawn();
    Lock lock_;
    std::array<lawn_timer_t, timers> timers_;
    std::array<lawn_timer_t, timers> own_;
};

// Far enough never to come, and later each time.
lawn_time_t later(lawn_time_t now)
{
    static const lawn_time_t far = lawn_time_from_sec(3600);
    return now + far;
}

// While the owner makes passes without end.
template <class Operation>
double remote_nsec(Scheme &scheme, size_t count, Operation operation)
{
    std::atomic<bool> is_over{false};
    std::atomic<bool> is_up{false};
    std::thread owner([&] {
        while (!is_over.load(std::memory_order_relaxed)) {
            scheme.pass(lawn_get_time());
            is_up = true;
        }
    });
    while (!is_up) {
        std::this_thread::yield();
    }
    const lawn_time_t begin = lawn_get_time();
    for (size_t i = 0; i < count; ++i) {
        operation(i % timers, lawn_get_time());
    }
    const double nsec = nsec_since(begin, static_cast<double>(count));
    is_over = true;
    owner.join();
    return nsec;
}

// The owner's re-arm, while the other thread re-arms all the time or not.
double own_nsec(Scheme &scheme, size_t count, bool is_loaded)
{
    std::atomic<bool> is_over{false};
    std::thread other([&] {
        for (size_t i = 0; is_loaded && !is_over; ++i) {
            scheme.start(i % timers, later(lawn_get_time()));
        }
    });
    const lawn_time_t begin = lawn_get_time();
    for (size_t i = 0; i < count; ++i) {
        const lawn_time_t now = lawn_get_time();
        if (i % 16 == 0) {
            scheme.pass(now);
        }
        scheme.start_own(i % timers, now, later(now));
    }
    const double nsec = nsec_since(begin, static_cast<double>(count));
    is_over = true;
    other.join();
    return nsec;
}

struct Woken {
    lawn_shared_t timer; // first
    std::atomic<lawn_time_t> called_at{0};
};

// From a start that is due at once to its callback, of an engine that sleeps.
double wake_up_nsec(unsigned rounds)
{
    lawn_engine_t *engine = nullptr;
    if (lawn_engine_create(nullptr, &engine) != LAWN_OK) {
        std::exit(1);
    }
    Woken woken;
    lawn_shared_init(&woken.timer, lawn_engine_box(engine),
                     [](lawn_shared_t *timer, lawn_time_t) {
                         reinterpret_cast<Woken *>(timer)->called_at =
                             lawn_get_time();
                     });
    std::atomic<bool> is_over{false};
    std::thread owner([&] {
        while (!is_over) {
            if (lawn_engine_progress(engine) == 0) {
                lawn_engine_wait(engine, LAWN_TIME_INFINITY);
            }
        }
    });
    std::vector<double> waits;
    for (unsigned i = 0; i < rounds; ++i) {
        // Time to fall asleep.
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        woken.called_at = 0;
        const lawn_time_t begin = lawn_get_time();
        lawn_shared_start(&woken.timer, 0);
        lawn_time_t called_at = 0;
        while ((called_at = woken.called_at) == 0) {
            std::this_thread::yield();
        }
        waits.push_back(lawn_time_to_nsec(called_at - begin));
    }
    is_over = true;
    lawn_shared_start(&woken.timer, 0);
    owner.join();
    lawn_shared_retire(&woken.timer, nullptr);
    lawn_engine_destroy(engine);
    return median(waits);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 2 || (argc == 2 && std::string(argv[1]) != "--quick")) {
        std::fprintf(stderr, "usage: lawn_threads [--quick]\n");
        return 2;
    }
    const bool is_quick = argc == 2;
    const unsigned rounds = is_quick ? 1 : 7;
    const size_t count = is_quick ? 20'000 : 500'000;
    std::vector<std::unique_ptr<Scheme>> schemes;
    schemes.push_back(std::make_unique<Shared>());
    schemes.push_back(std::make_unique<Locked<SpinLock>>("spinlock + lawn"));
    schemes.push_back(std::make_unique<Locked<std::mutex>>("mutex + lawn"));
    std::vector<std::array<std::vector<double>, 4>> all(schemes.size());
    for (unsigned round = 0; round < rounds; ++round) {
        for (size_t s = 0; s < schemes.size(); ++s) {
            Scheme &scheme = *schemes[s];
            all[s][0].push_back(
                remote_nsec(scheme, count, [&](size_t i, lawn_time_t now) {
                    scheme.start(i, later(now));
                }));
            all[s][1].push_back(
                remote_nsec(scheme, count, [&](size_t i, lawn_time_t now) {
                    scheme.stop(i);
                    scheme.start(i, later(now));
                }));
            all[s][2].push_back(own_nsec(scheme, count, false));
            all[s][3].push_back(own_nsec(scheme, count, true));
        }
    }
    std::printf("%zu timers, two threads; ns\n%-18s %12s %12s %12s %12s\n",
                timers, "", "re-arm", "stop+start", "own re-arm", "under load");
    for (size_t s = 0; s < schemes.size(); ++s) {
        std::printf("%-18s", schemes[s]->name);
        for (const std::vector<double> &figure : all[s]) {
            std::printf(" %12.1f", median(figure));
        }
        std::printf("\n");
    }
    std::printf(
        "start due at once to callback, of a sleeping engine: %.1f us\n",
        wake_up_nsec(is_quick ? 20 : 1000) / 1000);
    return 0;
}
