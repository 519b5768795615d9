// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Out of memory: whatever allocates is called with no memory at all, then with
// enough for one allocation, and so on until it has all that it wants. (Linked
// with --wrap: it is the C library's allocator that fails.) Each failure is
// told, leaks nothing, leaves the outputs alone, and another call may succeed.

#define LAWN_UCS_COMPAT
#include <lawn/ucs_compat.h>

#define LAWN_RTE_LCORE_ID() 0U
#define LAWN_RTE_MAX_LCORE 4U
#define LAWN_RTE_HAS_LCORE(id) ((id) != 1)
#include <lawn/rte_timer.h>

#include <lawn/lawn.hpp>

#include "memory_fixture.h"

#include <algorithm>
#include <new>
#include <string>
#include <vector>

using namespace lawn_test;

unsigned lawn_test::left = UINT_MAX;
long lawn_test::live;
bool lawn_test::is_watching;
bool lawn_test::has_failed;

namespace
{

bool is_refused()
{
    has_failed = has_failed || left == 0;
    left -= left != UINT_MAX && left != 0;
    return has_failed;
}

template <typename Allocate> void *watched(const Allocate &allocate)
{
    if (!is_watching) {
        return allocate();
    }
    if (is_refused()) {
        return nullptr;
    }
    void *const memory = allocate();
    live += memory != nullptr;
    return memory;
}

} // namespace

extern "C" {

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_memalign(size_t alignment, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size)
{
    return watched([=] { return __real_malloc(size); });
}

void *__wrap_calloc(size_t count, size_t size)
{
    return watched([=] { return __real_calloc(count, size); });
}

void *__wrap_memalign(size_t alignment, size_t size)
{
    return watched([=] { return __real_memalign(alignment, size); });
}

void __wrap_free(void *memory)
{
    live -= is_watching && memory;
    __real_free(memory);
}

// operator new (std::nothrow), which the C++ library's own calls do not use.
// What it gives is freed in that library, so it is not counted.
void *__real__ZnwmRKSt9nothrow_t(size_t size, const std::nothrow_t &tag);

void *__wrap__ZnwmRKSt9nothrow_t(size_t size, const std::nothrow_t &tag)
{
    return is_watching && is_refused() ? nullptr
                                       : __real__ZnwmRKSt9nothrow_t(size, tag);
}
}

namespace
{

TEST(Memory, OfALawn)
{
    lawn_t *lawn = untouched<lawn_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(lawn, untouched<lawn_t>());
                  return is_ok(lawn_create(nullptr, &lawn));
              }),
              1U);
    expect_all_back([&] { lawn_destroy(lawn); });
}

TEST(Memory, OfAQueue)
{
    lawn_t *lawn = nullptr;
    is_watching = true;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    is_watching = false;
    lawn_queue_t *queue = untouched<lawn_queue_t>();
    for (unsigned i = 0; i < 3; ++i) {
        queue = untouched<lawn_queue_t>();
        EXPECT_EQ(count_failures([&] {
                      EXPECT_EQ(queue, untouched<lawn_queue_t>());
                      EXPECT_EQ(lawn_check(lawn), LAWN_OK);
                      return is_ok(lawn_queue_create(lawn, 10 + i, &queue));
                  }),
                  1U);
    }
    lawn_timer_t timer = {};
    lawn_queue_start(queue, &timer, 0);
    expect_all_back([&] {
        lawn_queue_destroy(queue);
        EXPECT_FALSE(lawn_timer_is_active(&timer));
        lawn_destroy(lawn); // two queues are left
    });
}

TEST(Memory, OfAnEngineAndItsSources)
{
    lawn_engine_params_t params = {};
    // On a clock that stands still: a stall would poll the sources twice.
    params.clock = [](void *) -> lawn_time_t { return 1; };
    lawn_engine_t *engine = untouched<lawn_engine_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(engine, untouched<lawn_engine_t>());
                  return is_ok(lawn_engine_create(&params, &engine));
              }),
              2U);
    static unsigned polls;
    polls = 0;
    const auto poll = [](void *) { return ++polls; };
    lawn_source_t *source = untouched<lawn_source_t>();
    for (unsigned sources = 0; sources < 3; ++sources) {
        source = untouched<lawn_source_t>();
        EXPECT_EQ(count_failures([&] {
                      EXPECT_EQ(source, untouched<lawn_source_t>());
                      return is_ok(
                          lawn_engine_add(engine, poll, nullptr, -1, &source));
                  }),
                  1U);
        polls = 0;
        lawn_engine_progress(engine);
        EXPECT_EQ(polls, sources + 1);
    }
    expect_all_back([&] {
        lawn_engine_remove(engine, source);
        lawn_engine_destroy(engine);
    });
}

struct Fired {
    unsigned count = 0;

    static void on_expired(void *arg, uint64_t id, void *payload, lawn_time_t)
    {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(payload), id + 1);
        ++static_cast<Fired *>(arg)->count;
    }
};

TEST(Memory, OfTimersByNumber)
{
    lawn_t *lawn = nullptr;
    is_watching = true;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    is_watching = false;
    lawn_keyed_t *keyed = untouched<lawn_keyed_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(keyed, untouched<lawn_keyed_t>());
                  return is_ok(lawn_keyed_create(lawn, 1, &keyed));
              }),
              3U); // the table, its nodes, its buckets
    Fired fired;
    lawn_keyed_set_expired(keyed, Fired::on_expired, &fired);
    unsigned growths = 0;
    for (uintptr_t id = 0; id < 1000; ++id) {
        const unsigned failures = count_failures([&] {
            EXPECT_EQ(lawn_keyed_count(keyed), id);
            EXPECT_EQ(lawn_keyed_stop(keyed, id, nullptr), LAWN_ERR_NO_ELEM);
            return is_ok(lawn_keyed_start(keyed, 0, 10 + id, id,
                                          reinterpret_cast<void *>(id + 1)));
        });
        ASSERT_TRUE(failures == 0 || failures == 2) << id;
        growths += failures != 0;
        ASSERT_EQ(lawn_count(lawn), id + 1);
    }
    EXPECT_EQ(growths, 10U); // from 1 to 1024
    // What runs can be re-armed and stopped with no memory at all.
    left = 0;
    is_watching = true;
    EXPECT_EQ(lawn_keyed_start(keyed, 0, 5, 7, reinterpret_cast<void *>(8)),
              LAWN_OK);
    EXPECT_EQ(lawn_keyed_stop(keyed, 8, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn, 2000, 0), 999U);
    is_watching = false;
    left = UINT_MAX;
    EXPECT_FALSE(has_failed);
    EXPECT_EQ(fired.count, 999U);
    expect_all_back([&] {
        lawn_keyed_destroy(keyed);
        lawn_destroy(lawn);
    });
}

TEST(Memory, OfOwners)
{
    lawn_status_t status = LAWN_ERR_IO;
    lawn::lawn_ptr one;
    EXPECT_EQ(count_failures([&] {
                  one = lawn::make_lawn(nullptr, &status);
                  return is_ok(status) && one;
              }),
              1U);
    lawn::keyed_ptr keyed;
    EXPECT_EQ(count_failures([&] {
                  keyed = lawn::make_keyed(one.get(), 1, &status);
                  return is_ok(status) && keyed;
              }),
              3U);
    lawn::engine engine;
    EXPECT_EQ(count_failures([&] {
                  engine = lawn::make_engine(nullptr, &status);
                  return is_ok(status) && engine;
              }),
              2U);
    expect_all_back([&] {
        keyed.reset();
        one.reset();
        engine = lawn::engine();
    });
}

TEST(Memory, OfTheTimersOfUcx)
{
    ucs_twheel_t wheel;
    EXPECT_EQ(count_failures([&] {
                  const ucs_status_t status = ucs_twheel_init(&wheel, 1, 0);
                  if (status != UCS_OK) {
                      EXPECT_EQ(status, UCS_ERR_NO_MEMORY);
                      ucs_twheel_cleanup(&wheel); // does nothing
                  }
                  return status == UCS_OK;
              }),
              1U);
    ucs_timer_queue_t queue;
    EXPECT_EQ(count_failures([&] { return ucs_timerq_init(&queue) == UCS_OK; }),
              0U); // UCX does not look at the status of this call
    for (int id = 0; id < 3; ++id) {
        EXPECT_EQ(
            count_failures([&] {
                EXPECT_EQ(ucs_timerq_size(&queue), id);
                const ucs_status_t status = ucs_timerq_add(&queue, id, 10 - id);
                EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_NO_MEMORY);
                return status == UCS_OK;
            }),
            1U);
        EXPECT_EQ(ucs_timerq_min_interval(&queue), ucs_time_t(10 - id));
    }
    unsigned due = 0;
    ucs_timer_t *timer = nullptr;
    ucs_timerq_for_each_expired(timer, &queue, 5, { ++due; });
    EXPECT_EQ(due, 3U);
    expect_all_back([&] {
        ucs_twheel_cleanup(&wheel);
        ucs_timerq_cleanup(&queue);
    });
}

// An allocator of the program's: what it gave out, and how often it may.
struct Pool {
    lawn_params_t params = {{alloc, release, this}};
    std::vector<void *> given;
    size_t most = SIZE_MAX;

    static void *alloc(void *arg, size_t size)
    {
        Pool *const pool = static_cast<Pool *>(arg);
        if (pool->given.size() == pool->most) {
            return nullptr;
        }
        pool->given.push_back(__real_malloc(size));
        memset(pool->given.back(), 0xa5, size);
        return pool->given.back();
    }

    static void release(void *arg, void *memory)
    {
        auto &given = static_cast<Pool *>(arg)->given;
        const auto it = std::find(given.begin(), given.end(), memory);
        ASSERT_NE(it, given.end());
        given.erase(it);
        __real_free(memory);
    }
};

TEST(Memory, OfTheTimersOfUcxIsTheProgramsOwn)
{
    Pool pool;
    ucs_twheel_t wheel;
    ucs_timer_queue_t queue;
    pool.most = 0;
    EXPECT_EQ(lawn_ucs_twheel_init_with(&wheel, 1, 0, &pool.params),
              UCS_ERR_NO_MEMORY);
    EXPECT_EQ(lawn_ucs_timerq_init_with(&queue, &pool.params), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue, 1, 5), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(ucs_timerq_remove(&queue, 1), UCS_ERR_NO_ELEM);
    lawn_params_t halves[2] = {};
    halves[0].allocator.alloc = Pool::alloc;
    halves[1].allocator.release = Pool::release;
    for (const lawn_params_t &half : halves) {
        EXPECT_EQ(lawn_ucs_twheel_init_with(&wheel, 1, 0, &half),
                  UCS_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_ucs_timerq_init_with(&queue, &half),
                  UCS_ERR_INVALID_PARAM);
    }

    pool.most = 3;
    EXPECT_EQ(count_failures([&] { // malloc is not asked
                  return lawn_ucs_twheel_init_with(&wheel, 1, 0,
                                                   &pool.params) == UCS_OK;
              }),
              0U);
    EXPECT_EQ(lawn_ucs_timerq_init_with(&queue, &pool.params), UCS_OK);
    lawn_params_t none = {};
    ucs_timer_queue_t plain;
    EXPECT_EQ(lawn_ucs_timerq_init_with(&plain, &none), UCS_OK);
    EXPECT_EQ(
        count_failures([&] { return ucs_timerq_add(&plain, 1, 5) == UCS_OK; }),
        1U); // malloc is
    expect_all_back([&] { ucs_timerq_cleanup(&plain); });
    EXPECT_EQ(ucs_timerq_add(&queue, 1, 5), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue, 2, 5), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue, 3, 5), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(ucs_timerq_remove(&queue, 1), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue, 3, 5), UCS_OK);
    EXPECT_EQ(ucs_timerq_size(&queue), 2);
    ucs_timerq_cleanup(&queue);
    ucs_twheel_cleanup(&wheel);
    EXPECT_TRUE(pool.given.empty());
}

TEST(Memory, OfTheTimersOfDpdk)
{
    EXPECT_EQ(count_failures([] {
                  const int error = lawn_rte_timer_subsystem_init();
                  EXPECT_TRUE(error == 0 || error == -ENOMEM);
                  if (error != 0) {
                      lawn_rte_timer_t timer = {};
                      EXPECT_EQ(lawn_rte_timer_stop(&timer), -EINVAL);
                  }
                  return error == 0;
              }),
              4U); // the table and a lawn for each lcore that there is
    expect_all_back([] { lawn_rte_timer_subsystem_finalize(); });
}

// An allocator given takes the place of the C library's in everything.
TEST(Memory, IsTheAllocatorsAlone)
{
    static unsigned own;
    own = 0;
    lawn_engine_params_t params = {};
    params.lawn.allocator.alloc = [](void *, size_t size) {
        ++own;
        return __real_malloc(size);
    };
    params.lawn.allocator.release = [](void *, void *memory) {
        --own;
        __real_free(memory);
    };
    left = 0;
    is_watching = true;
    lawn_engine_t *engine = nullptr;
    lawn_keyed_t *keyed = nullptr;
    lawn_status_t status = lawn_engine_create(&params, &engine);
    if (status == LAWN_OK) {
        status = lawn_keyed_create(lawn_engine_lawn(engine), 1, &keyed);
    }
    for (uint64_t id = 0; status == LAWN_OK && id < 100; ++id) {
        status = lawn_keyed_start(keyed, 0, 1, id, nullptr);
    }
    const unsigned taken = own;
    lawn_keyed_destroy(keyed);
    lawn_engine_destroy(engine);
    is_watching = false;
    left = UINT_MAX;
    EXPECT_FALSE(has_failed);
    EXPECT_EQ(status, LAWN_OK);
    EXPECT_GT(taken, 10U);
    EXPECT_EQ(own, 0U);
    EXPECT_EQ(live, 0);
}

} // namespace
