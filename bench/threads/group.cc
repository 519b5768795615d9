// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How the throughput of a group grows with its workers, what it takes to move a
// shard, how long a sleeper takes to be woken, how often it wakes for nothing,
// and what the service costs.

#include "threads/group.h"
#include "median.h"
#include "threads/sharing.h"

#include <lawn/group.h>
#include <lawn/service.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace bench
{

namespace
{

void check(lawn_status_t status)
{
    if (status != LAWN_OK) {
        throw std::bad_alloc();
    }
}

struct GroupDeleter {
    void operator()(lawn_group_t *group) const
    {
        lawn_group_destroy(group);
    }
};

using GroupPtr = std::unique_ptr<lawn_group_t, GroupDeleter>;

GroupPtr make_group(unsigned shards)
{
    lawn_group_params_t params = {};
    params.shards = shards;
    lawn_group_t *group = nullptr;
    check(lawn_group_create(&params, &group));
    return GroupPtr(group);
}

// Starts itself anew when it expires, as a keepalive does.
struct Beating {
    lawn_shared_t timer; // first
    lawn_time_t ttl;

    static void on_expired(lawn_shared_t *timer, lawn_time_t now)
    {
        Beating *const self = reinterpret_cast<Beating *>(timer);
        lawn_shared_start_local(timer, now + self->ttl);
    }
};

void loop(lawn_group_t *group, lawn_worker_t *worker,
          const std::atomic<bool> *is_over, uint64_t *work)
{
    while (!is_over->load(std::memory_order_relaxed)) {
        *work += lawn_worker_pass(worker, lawn_group_time(group), 64);
    }
}

// Timers touched in a second by so many workers that do nothing else.
double throughput(unsigned worker_count, double sec)
{
    constexpr unsigned shards = 16;
    std::vector<Beating> timers(1000 * shards); // outlive the group
    const GroupPtr group = make_group(shards);
    std::vector<lawn_worker_t *> workers(worker_count);
    for (lawn_worker_t *&worker : workers) {
        check(lawn_group_add_worker(group.get(), nullptr, nullptr, &worker));
    }
    for (unsigned i = 0; i < shards; ++i) {
        check(lawn_group_move_shard(lawn_group_shard(group.get(), i),
                                    workers[i % worker_count]));
    }
    // More are due at all times than can be run.
    for (size_t i = 0; i < timers.size(); ++i) {
        lawn_shared_init(&timers[i].timer,
                         lawn_shard_box(lawn_group_shard(
                             group.get(), i * shards / timers.size())),
                         Beating::on_expired);
        timers[i].ttl = lawn_time_from_usec(double(1 + i % 50));
        lawn_shared_start(&timers[i].timer, lawn_group_time(group.get()));
    }
    std::atomic<bool> is_over{false};
    struct alignas(64) Count {
        uint64_t work = 0;
    };
    std::vector<Count> counts(worker_count);
    std::vector<std::thread> threads;
    const lawn_time_t begin = lawn_get_time();
    for (unsigned i = 0; i < worker_count; ++i) {
        threads.emplace_back(loop, group.get(), workers[i], &is_over,
                             &counts[i].work);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(sec));
    is_over = true;
    uint64_t work = 0;
    for (unsigned i = 0; i < worker_count; ++i) {
        threads[i].join();
        work += counts[i].work;
    }
    const double elapsed = lawn_time_to_sec(lawn_get_time() - begin);
    for (Beating &timer : timers) {
        lawn_shared_retire(&timer.timer, nullptr);
    }
    return double(work) / elapsed;
}

// From the call until the new worker has it; both poll. `size` timers in it.
double move_usec(size_t size, unsigned moves)
{
    std::vector<lawn_shared_t> timers(size); // outlive the group
    const GroupPtr group = make_group(1);
    lawn_worker_t *workers[2];
    std::atomic<bool> is_over{false};
    uint64_t work[2] = {};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i) {
        check(
            lawn_group_add_worker(group.get(), nullptr, nullptr, &workers[i]));
        threads.emplace_back(loop, group.get(), workers[i], &is_over, &work[i]);
    }
    for (lawn_shared_t &timer : timers) {
        lawn_shared_init(
            &timer, lawn_shard_box(lawn_group_shard(group.get(), 0)), nullptr);
        lawn_shared_start(&timer, lawn_get_time() + lawn_time_from_sec(3600));
    }
    std::vector<double> waits;
    for (unsigned i = 0; i < moves; ++i) {
        const lawn_time_t begin = lawn_get_time();
        check(lawn_group_move_shard(lawn_group_shard(group.get(), 0),
                                    workers[1 - i % 2]));
        while (lawn_group_moving(group.get()) != 0) {
            std::this_thread::yield();
        }
        waits.push_back(lawn_time_to_usec(lawn_get_time() - begin));
    }
    is_over = true;
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (lawn_shared_t &timer : timers) {
        lawn_shared_retire(&timer, nullptr);
    }
    return median(waits);
}

std::atomic<lawn_time_t> called_at;

// From what start() does until its callback, when everyone has gone to sleep.
double wake_usec(unsigned rounds, const std::function<void()> &start)
{
    std::vector<double> waits;
    for (unsigned i = 0; i < rounds; ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        called_at = 0;
        const lawn_time_t begin = lawn_get_time();
        start();
        lawn_time_t called = 0;
        while ((called = called_at) == 0) {
            std::this_thread::yield();
        }
        waits.push_back(lawn_time_to_usec(called - begin));
    }
    return median(waits);
}

void print_wake_ups(unsigned rounds)
{
    lawn_shared_t timer; // outlives the group
    const GroupPtr group = make_group(4);
    lawn_worker_t *worker = nullptr;
    check(lawn_group_add_thread(group.get(), &worker));
    lawn_shared_init(
        &timer, lawn_shard_box(lawn_group_shard(group.get(), 0)),
        [](lawn_shared_t *, lawn_time_t) { called_at = lawn_get_time(); });
    const double of_thread =
        wake_usec(rounds, [&] { lawn_shared_start(&timer, 0); });
    lawn_shared_retire(&timer, nullptr);
    lawn_service_t *service = nullptr;
    check(lawn_service_create(nullptr, &service));
    const double of_service = wake_usec(rounds, [&] {
        check(lawn_service_start(
            service, 0, [](void *) { called_at = lawn_get_time(); }, nullptr,
            nullptr));
    });
    lawn_service_destroy(service);
    std::printf("\nstart due at once to callback, of a sleeper; us\n"
                "%-20s %11.1f\n%-20s %11.1f\n",
                "thread of a group", of_thread, "service", of_service);
}

// How often the threads of this process but the calling one have run.
long switches_of_others()
{
    rusage all = {};
    rusage own = {};
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own);
    return all.ru_nvcsw + all.ru_nivcsw - own.ru_nvcsw - own.ru_nivcsw;
}

// A service with many timers, of which none comes due.
void print_idle(std::chrono::seconds span)
{
    constexpr unsigned count = 100000;
    lawn_service_t *service = nullptr;
    check(lawn_service_create(nullptr, &service));
    for (unsigned i = 0; i < count; ++i) {
        check(lawn_service_start(
            service, lawn_time_from_sec(600 + i % 3600), [](void *) {}, nullptr,
            nullptr));
    }
    // Until it has taken them all in.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const long before = switches_of_others();
    std::this_thread::sleep_for(span);
    std::printf("\nwake-ups of a service with %zu timers, none due, in %d s\n"
                "%-20s %11ld\n",
                lawn_service_pending(service), static_cast<int>(span.count()),
                "service", switches_of_others() - before);
    lawn_service_stop(service, nullptr, nullptr);
    lawn_service_destroy(service);
}

// Start and cancel, by so many threads at once; nothing comes due.
double service_nsec(unsigned clients, unsigned count)
{
    lawn_service_t *service = nullptr;
    check(lawn_service_create(nullptr, &service));
    std::atomic<uint64_t> ticks{0};
    std::vector<std::thread> threads;
    for (unsigned c = 0; c < clients; ++c) {
        threads.emplace_back([&] {
            const lawn_time_t minute = lawn_time_from_sec(60);
            const lawn_time_t begin = lawn_get_time();
            for (unsigned i = 0; i < count; ++i) {
                lawn_service_timer_t handle;
                check(lawn_service_start(
                    service, minute, [](void *) {}, nullptr, &handle));
                check(lawn_service_cancel(service, handle));
            }
            ticks += lawn_get_time() - begin;
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    lawn_service_destroy(service);
    return lawn_time_to_nsec(ticks) / clients / count;
}

} // namespace

void print_groups(bool is_quick)
{
    const unsigned repetitions = is_quick ? 1 : 5;
    std::printf(
        "\ntimers touched, of a group by its workers; 1e6 per second\n");
    std::vector<std::vector<double>> all(3);
    constexpr unsigned worker_counts[] = {1, 2, 4};
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        for (size_t i = 0; i < all.size(); ++i) {
            all[i].push_back(
                throughput(worker_counts[i], is_quick ? 0.05 : 0.5));
        }
    }
    for (size_t i = 0; i < all.size(); ++i) {
        std::printf("%-20u %11.1f\n", worker_counts[i], median(all[i]) / 1e6);
    }
    std::printf("\na shard moved from worker to worker, both polling; us\n");
    for (const size_t size : {size_t{1}, size_t{20000}}) {
        std::printf("%-20zu %11.1f\n", size,
                    move_usec(size, is_quick ? 20 : 1000));
    }
    print_wake_ups(is_quick ? 20 : 1000);
    print_idle(std::chrono::seconds(is_quick ? 1 : 10));
    std::printf("\nservice, start and cancel, by threads; ns\n");
    for (const unsigned clients : {1U, 2U, 4U, 8U}) {
        std::vector<double> figures;
        for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
            figures.push_back(service_nsec(clients, is_quick ? 2000 : 200000));
        }
        std::printf("%-20u %11.1f\n", clients, median(figures));
    }
}

} // namespace bench
