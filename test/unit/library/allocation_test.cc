// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The data path allocates nothing: every call of the C library's allocator by
// the library under test is counted here (linked with --wrap), and between
// creation and destruction there must be none.

#include <lawn/lawn.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace
{

unsigned calls;

} // namespace

extern "C" {

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size)
{
    ++calls;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    ++calls;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    ++calls;
    return __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
    ++calls;
    __real_free(memory);
}
}

namespace
{

TEST(Allocation, IsCounted)
{
    calls = 0;
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    EXPECT_EQ(calls, 1U);
    lawn_destroy(lawn);
    EXPECT_EQ(calls, 2U);
}

TEST(Allocation, TimersTakeNone)
{
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    lawn_queue_t *queues[4] = {};
    for (lawn_queue_t *&queue : queues) {
        const lawn_time_t ttl =
            1000 * static_cast<lawn_time_t>(&queue - queues);
        ASSERT_EQ(lawn_queue_create(lawn, ttl, &queue), LAWN_OK);
    }
    std::vector<lawn_timer_t> timers(1000);
    for (lawn_timer_t &timer : timers) {
        lawn_timer_init(&timer, nullptr);
    }
    std::mt19937_64 random(1);
    lawn_time_t now = 0;
    calls = 0;
    for (int i = 0; i < 100'000; ++i) {
        lawn_timer_t *const timer = &timers[random() % timers.size()];
        switch (random() % 12) {
        case 0:
            lawn_timer_stop(lawn, timer);
            break;
        case 1:
            lawn_timer_pause(lawn, timer);
            break;
        case 2:
            now += random() % 100'000;
            lawn_advance(lawn, now, 1 + random() % 64);
            break;
        case 3:
            lawn_settle(lawn, random() % 64);
            break;
        case 4:
        case 5:
            lawn_queue_start(queues[random() % 4], timer, now);
            break;
        case 6:
            lawn_timer_start_at(lawn, timer, now, now + random() % 1000);
            break;
        default:
            lawn_timer_start(lawn, timer, now, random() >> (random() % 64));
        }
    }
    EXPECT_EQ(calls, 0U);
    lawn_drain(lawn, nullptr);
    EXPECT_EQ(calls, 0U);
    lawn_destroy(lawn);
}

TEST(Allocation, KeyedTimersTakeNoneUpToTheHint)
{
    lawn_t *lawn = nullptr;
    lawn_keyed_t *keyed = nullptr;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    ASSERT_EQ(lawn_keyed_create(lawn, 1000, &keyed), LAWN_OK);
    calls = 0;
    for (uint64_t i = 0; i < 100'000; ++i) {
        ASSERT_EQ(
            lawn_keyed_start(keyed, i, 100 + i % 77, i * 31 % 1000, nullptr),
            LAWN_OK);
        lawn_keyed_stop(keyed, i * 17 % 1000, nullptr);
        lawn_advance(lawn, i, 0);
    }
    EXPECT_EQ(calls, 0U);
    lawn_keyed_destroy(keyed);
    lawn_destroy(lawn);
}

lawn_time_t virtual_now;

TEST(Allocation, EngineAndConnectionsTakeNone)
{
    lawn_engine_params_t params = {};
    params.clock = [](void *) { return virtual_now; };
    params.ticks_per_sec = 1e9;
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    ASSERT_EQ(lawn_engine_add(
                  engine, [](void *) { return 0U; }, nullptr, -1, nullptr),
              LAWN_OK);
    lawn_conn_params_t conn_params;
    lawn_conn_params_init(&conn_params);
    conn_params.keepalive_probes = 1'000'000;
    conn_params.peer_timeout = 0;
    lawn_conn_ops_t ops = {};
    std::vector<lawn_conn_t> conns(100);
    calls = 0;
    for (lawn_conn_t &conn : conns) {
        ASSERT_EQ(lawn_conn_open(engine, &conn_params, &ops, &conn), LAWN_OK);
    }
    // What the connections share: a table, its buckets, and the parameters.
    EXPECT_LE(calls, 4U);
    calls = 0;
    uint64_t fired = 0;
    for (uint64_t i = 0; i < 100'000; ++i) {
        virtual_now += 1'000'000;
        lawn_conn_t *const conn = &conns[i % 50]; // half are silent
        lawn_conn_on_send(conn, virtual_now);
        if (i % 3 != 0) {
            lawn_conn_on_ack(conn, virtual_now, 500, i % 5 != 0);
        }
        fired += lawn_engine_progress(engine);
    }
    EXPECT_GT(fired, 1000U);
    EXPECT_EQ(calls, 0U);
    for (lawn_conn_t &conn : conns) {
        lawn_conn_close(&conn);
    }
    // The parameters are kept for the next one.
    ASSERT_EQ(lawn_conn_open(engine, &conn_params, &ops, &conns[0]), LAWN_OK);
    EXPECT_EQ(calls, 0U);
    lawn_conn_close(&conns[0]);
    lawn_engine_destroy(engine);
}

// Each takes one, however many there are, and the table as many as it doubles.
TEST(Allocation, ConnectionsWithParametersOfTheirOwnTakeOneEach)
{
    constexpr size_t count = 100'000;
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
    lawn_conn_params_t params;
    lawn_conn_params_init(&params);
    const lawn_conn_ops_t ops = {};
    std::vector<lawn_conn_t> conns(count);
    calls = 0;
    for (size_t i = 0; i < count; ++i) {
        params.rto_initial = 1 + i;
        ASSERT_EQ(lawn_conn_open(engine, &params, &ops, &conns[i]), LAWN_OK);
        EXPECT_EQ(lawn_conn_rto(&conns[i]), 1 + i);
    }
    EXPECT_LE(calls, count + 40);
    for (lawn_conn_t &conn : conns) {
        lawn_conn_close(&conn);
    }
    lawn_engine_destroy(engine);
}

} // namespace
