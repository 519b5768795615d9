// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Is it worth while to look at the heads of all queues, with the widest
// registers that there are? That is what the Lawn as published does at each
// tick. This library's queues have alarms in slots instead (lawn/queue.h).
//
// There are so many queues, each of one timer. In a step, a random timer is
// restarted, 1 us passes, and what is due expires and is restarted. All ways
// make the same steps, so the same number of timers must expire.

#include "evaluation/experiments.h"

#include "workloads.h"

#include <lawn/queue.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

namespace bench
{

namespace
{

constexpr size_t counts[] = {16, 64, 256, 1024, 4096};

using Least = lawn_time_t (*)(const lawn_time_t *heads, size_t count);

lawn_time_t least_scalar(const lawn_time_t *heads, size_t count)
{
    lawn_time_t least = heads[0];
    for (size_t i = 1; i < count; ++i) {
        least = std::min(least, heads[i]);
        asm("" : "+r"(least)); // so that the compiler makes no vectors of it
    }
    return least;
}

// Vectors of signed numbers: before AVX-512, there is no comparison of 64-bit
// unsigned ones. No time here is beyond the range of both.
template <size_t lanes>
using Vector __attribute__((vector_size(8 * lanes), may_alias)) = int64_t;

// The body of all that follow, each with the instructions of its name.
#define LEAST_OF(lanes)                                                        \
    const auto *const from = reinterpret_cast<const Vector<lanes> *>(heads);   \
    Vector<lanes> least = from[0];                                             \
    Vector<lanes> other = from[1];                                             \
    for (size_t i = 2; i < count / (lanes); i += 2) {                          \
        least = from[i] < least ? from[i] : least;                             \
        other = from[i + 1] < other ? from[i + 1] : other;                     \
    }                                                                          \
    least = other < least ? other : least;                                     \
    int64_t first = least[0];                                                  \
    for (size_t i = 1; i < (lanes); ++i) {                                     \
        first = std::min<int64_t>(first, least[i]);                            \
    }                                                                          \
    return static_cast<lawn_time_t>(first)

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) lawn_time_t
least_sse(const lawn_time_t *heads, size_t count)
{
    LEAST_OF(2);
}

__attribute__((target("avx2"))) lawn_time_t least_avx2(const lawn_time_t *heads,
                                                       size_t count)
{
    LEAST_OF(4);
}

__attribute__((target("avx512f"))) lawn_time_t
least_avx512(const lawn_time_t *heads, size_t count)
{
    LEAST_OF(8);
}
#elif defined(__aarch64__)
lawn_time_t least_neon(const lawn_time_t *heads, size_t count)
{
    LEAST_OF(2);
}
#endif

struct Way {
    const char *name;
    bool can_run;
    Least least; // NULL: this library
};

std::vector<Way> ways()
{
    return
    {
        {"lawn-queue", true, nullptr}, {"scalar", true, least_scalar},
#if defined(__x86_64__)
            {"SSE4.2", __builtin_cpu_supports("sse4.2") != 0, least_sse},
            {"AVX2", __builtin_cpu_supports("avx2") != 0, least_avx2},
            {"AVX-512", __builtin_cpu_supports("avx512f") != 0, least_avx512},
#elif defined(__aarch64__)
            {"NEON", true, least_neon},
#endif
    };
}

// The TTLs: each timer expires now and then, and is mostly restarted before.
lawn_time_t ttl_of(size_t which, size_t count)
{
    return lawn_time_from_usec(double(count) * 4) + which;
}

// Deadlines in an array. All are looked at in each step.
class Heads
{
public:
    Heads(size_t count, Least least) : count_(count), least_(least)
    {
        if (posix_memalign(reinterpret_cast<void **>(&heads_), 64,
                           count * sizeof(*heads_)) != 0) {
            throw std::bad_alloc();
        }
        for (size_t i = 0; i < count; ++i) {
            heads_[i] = ttl_of(i, count);
        }
    }
    ~Heads()
    {
        free(heads_);
    }
    Heads(const Heads &) = delete;
    Heads &operator=(const Heads &) = delete;

    void restart(size_t which, lawn_time_t now)
    {
        heads_[which] = now + ttl_of(which, count_);
    }

    size_t expire(lawn_time_t now)
    {
        if (least_(heads_, count_) > now) {
            return 0;
        }
        size_t expired = 0;
        for (size_t i = 0; i < count_; ++i) {
            if (heads_[i] <= now) {
                restart(i, now);
                ++expired;
            }
        }
        return expired;
    }

private:
    const size_t count_;
    const Least least_;
    lawn_time_t *heads_ = nullptr;
};

// The same in this library's queues.
class Queues
{
public:
    explicit Queues(size_t count) : timers_(count)
    {
        if (lawn_create(nullptr, &lawn_) != LAWN_OK) {
            throw std::bad_alloc();
        }
        for (size_t i = 0; i < count; ++i) {
            lawn_timer_init(&timers_[i].timer, on_expired);
            if (lawn_queue_create(lawn_, ttl_of(i, count), &timers_[i].queue) !=
                LAWN_OK) {
                lawn_destroy(lawn_);
                throw std::bad_alloc();
            }
            lawn_queue_start(timers_[i].queue, &timers_[i].timer, 0);
        }
    }
    ~Queues()
    {
        lawn_destroy(lawn_);
    }
    Queues(const Queues &) = delete;
    Queues &operator=(const Queues &) = delete;

    void restart(size_t which, lawn_time_t now)
    {
        lawn_queue_start(timers_[which].queue, &timers_[which].timer, now);
    }

    size_t expire(lawn_time_t now)
    {
        return lawn_advance(lawn_, now, 0);
    }

private:
    struct Timer {
        lawn_timer_t timer; // first: on_expired() casts
        lawn_queue_t *queue;
    };

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        lawn_queue_start(reinterpret_cast<Timer *>(timer)->queue, timer, now);
    }

    std::vector<Timer> timers_;
    lawn_t *lawn_ = nullptr;
};

struct Steps {
    double nsec; // of one
    size_t expired;
};

// `expired` is of the first steps, which are the same whatever the time.
template <class Timers>
Steps run_steps(Timers &&timers, size_t count, double limit_sec, uint64_t seed)
{
    constexpr size_t batch = 4096;
    const lawn_time_t usec = lawn_time_from_usec(1);
    std::minstd_rand random(
        static_cast<std::minstd_rand::result_type>(seed + 1));
    std::vector<uint32_t> restarted(batch);
    lawn_time_t now = 0;
    lawn_time_t taken = 0;
    size_t steps = 0;
    Steps result = {0, 0};
    const size_t least_steps = 16 * count;
    do {
        for (uint32_t &which : restarted) {
            which = random() % static_cast<uint32_t>(count);
        }
        size_t expired = 0;
        const lawn_time_t begin = lawn_get_time();
        for (const uint32_t which : restarted) {
            timers.restart(which, now);
            now += usec;
            expired += timers.expire(now);
        }
        taken += lawn_get_time() - begin;
        result.expired += steps < least_steps ? expired : 0;
        steps += batch;
    } while (steps < least_steps || lawn_time_to_sec(taken) < limit_sec);
    result.nsec = lawn_time_to_nsec(taken) / static_cast<double>(steps);
    return result;
}

Steps run_way(const Way &way, size_t count, double limit_sec, uint64_t seed)
{
    return way.least
               ? run_steps(Heads(count, way.least), count, limit_sec, seed)
               : run_steps(Queues(count), count, limit_sec, seed);
}

} // namespace

bool search_heads(const Settings &settings)
{
    const std::vector<Way> all = ways();
    std::vector<std::vector<Cell>> cells(all.size(),
                                         std::vector<Cell>(std::size(counts)));
    bool is_good = true;
    for (unsigned repetition = 0; repetition < settings.repetitions;
         ++repetition) {
        for (size_t c = 0; c < std::size(counts); ++c) {
            size_t expired = 0;
            for (size_t w = 0; w < all.size(); ++w) {
                if (!all[w].can_run) {
                    continue;
                }
                const Steps steps =
                    run_way(all[w], counts[c], settings.limit_sec,
                            settings.seed + repetition);
                expired = w == 0 ? steps.expired : expired;
                if (steps.expired != expired || expired == 0) {
                    fprintf(stderr,
                            "lawn_evaluate: %s is broken: %zu timers have "
                            "expired, not %zu\n",
                            all[w].name, steps.expired, expired);
                    is_good = false;
                }
                Result result;
                result.figure = steps.nsec;
                cells[w][c].results.push_back(result);
            }
        }
    }
    printf("\nsearch: a restart and a look for what is due, by the number of "
           "queues; ns,\nand as a multiple of lawn-queue\n%-14s",
           "");
    for (const size_t count : counts) {
        printf(" %8zu       ", count);
    }
    printf("\n");
    for (size_t w = 0; w < all.size(); ++w) {
        printf("%-14s", all[w].name);
        for (size_t c = 0; c < std::size(counts); ++c) {
            const double nsec = cells[w][c].median(Statistic::figure);
            const double ratio = nsec / divisor(cells[w][c], cells[0][c]);
            if (std::isnan(nsec)) {
                printf(" %8s %6s", "n/a", "");
            } else if (std::isnan(ratio)) {
                printf(" %8.1f %6s", nsec, "-");
            } else {
                printf(" %8.1f %6.2f", nsec, ratio);
            }
        }
        printf("\n");
    }
    fflush(stdout);
    return is_good;
}

} // namespace bench
