// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How long one advance with a budget of 64 may take, and how many timers it
// touches, after what is worst for a lawn: a million timers by default that are
// all due, were all re-armed, all paused, or lie in one slot. Unlike lawn_bench
// it sees inside: how many timers were moved.

#include "finish.h"
#include "timer/lawn_impl.h"

#include <lawn/queue.h>
#include <lawn/timer.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace
{

using Clock = std::chrono::steady_clock;

constexpr unsigned budget = 64;
constexpr lawn_time_t msec = 1'000'000;

struct alignas(64) Object {
    lawn_timer_t timer;
};

class World
{
public:
    explicit World(size_t count) : objects(count)
    {
        for (Object &object : objects) {
            lawn_timer_init(&object.timer, nullptr);
        }
        order.resize(count);
        for (size_t i = 0; i < count; ++i) {
            order[i] = i;
        }
        for (size_t i = count; i > 1; --i) {
            std::swap(order[i - 1], order[random() % i]);
        }
        is_made = lawn_create(nullptr, &lawn) == LAWN_OK;
    }

    ~World()
    {
        lawn_destroy(lawn);
    }

    World(const World &) = delete;
    World &operator=(const World &) = delete;

    // Each timer once, in an order that is none of memory.
    template <class Operation> void each(Operation &&operation)
    {
        for (const size_t i : order) {
            operation(&objects[i].timer);
        }
    }

    // With a TTL of 250 to 500 ms.
    void start_all()
    {
        size_t started = 0;
        each([this, &started](lawn_timer_t *timer) {
            now += ++started % 4 == 0;
            lawn_timer_start(lawn, timer, now,
                             250 * msec + random() % (250 * msec));
        });
    }

    uint64_t random()
    {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

    std::vector<Object> objects;
    std::vector<size_t> order;
    lawn_t *lawn = nullptr;
    lawn_time_t now = 0;
    bool is_made = false;

private:
    uint64_t state_ = 0x9e3779b97f4a7c15;
};

void stall(World &world)
{
    world.start_all();
    world.now += 600 * msec;
}

void re_arm_all(World &world)
{
    world.start_all();
    world.start_all();
    world.now += 600 * msec;
}

// Half of what is touched is not due.
void half_way(World &world)
{
    world.start_all();
    world.now += 200 * msec;
    world.start_all();
    world.now += 375 * msec;
}

void pause_all(World &world)
{
    world.start_all();
    world.each([&world](lawn_timer_t *timer) {
        // Where nothing runs there is nothing to do.
        if (timer != &world.objects[0].timer) {
            lawn_timer_pause(world.lawn, timer);
        }
    });
    world.now += 600 * msec;
}

// Farther and farther, each at the time at which it was looked at first.
void put_off_all(World &world)
{
    world.start_all();
    world.each([&world](lawn_timer_t *timer) {
        lawn_timer_start(world.lawn, timer, world.now, 100'000 * msec);
    });
    world.now += 600 * msec;
}

void one_slot(World &world)
{
    world.each([&world](lawn_timer_t *timer) {
        lawn_timer_start(world.lawn, timer, 0, 300 * msec);
    });
    world.now = 600 * msec;
}

void one_queue(World &world)
{
    lawn_queue_t *queue = nullptr;
    if (lawn_queue_create(world.lawn, 300 * msec, &queue) != LAWN_OK) {
        world.is_made = false;
        return;
    }
    world.each([&](lawn_timer_t *timer) { lawn_queue_start(queue, timer, 0); });
    world.now = 600 * msec;
}

struct Case {
    const char *name;
    void (*prepare)(World &world);
};

constexpr Case cases[] = {
    {"all due", stall},
    {"all re-armed, and due", re_arm_all},
    {"all re-armed, half due", half_way},
    {"all but one paused", pause_all},
    {"all put off, none due", put_off_all},
    {"all in one slot, and due", one_slot},
    {"all in one queue, and due", one_queue},
};

double at_share(const std::vector<double> &sorted, double share)
{
    return sorted[static_cast<size_t>(share *
                                      static_cast<double>(sorted.size() - 1))];
}

// False if a lawn cannot be made, or has gone beyond its budget.
bool run(const Case &which, size_t count)
{
    World world(count);
    if (world.is_made) {
        which.prepare(world);
    }
    if (!world.is_made) {
        fprintf(stderr, "lawn_worst: cannot make a lawn\n");
        return false;
    }
    std::vector<double> usecs;
    size_t most = 0;
    size_t fired = 0;
    do {
        const auto begin = Clock::now();
        const lawn::Work work =
            lawn::advance_as_of(world.lawn, world.now, budget);
        usecs.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - begin)
                .count());
        most = std::max(most, work.touched);
        fired += work.fired;
    } while (lawn_next(world.lawn) <= world.now);
    std::sort(usecs.begin(), usecs.end());
    printf("%-26s %8zu %8zu %6zu %8.2f %8.2f %8.2f %8.2f\n", which.name,
           usecs.size(), fired, most, at_share(usecs, 0.5),
           at_share(usecs, 0.99), at_share(usecs, 0.999), usecs.back());
    return most <= budget;
}

} // namespace

int main(int argc, char **argv)
{
    const char *const usage = "usage: lawn_worst [TIMERS, 1e6]";
    if (bench::print_usage(argc, argv, usage)) {
        return bench::finish_output(0);
    }
    const double count = argc > 1 ? strtod(argv[1], nullptr) : 1e6;
    if (argc > 2 || !(count >= 1 && count <= 1e8)) {
        fprintf(stderr, "%s\n", usage);
        return 2;
    }
    printf("%g timers, budget %u; us for one advance\n", count, budget);
    printf("%-26s %8s %8s %6s %8s %8s %8s %8s\n", "", "advances", "fired",
           "most", "p50", "p99", "p99.9", "max");
    bool is_bounded = true;
    for (const Case &which : cases) {
        is_bounded = run(which, static_cast<size_t>(count)) && is_bounded;
    }
    return bench::finish_output(is_bounded ? 0 : 1);
}
