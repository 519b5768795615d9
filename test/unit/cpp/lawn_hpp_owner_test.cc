// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp: owners of what the C API creates.

#include <lawn/lawn.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <type_traits>
#include <utility>

namespace
{

using namespace std::chrono_literals;

struct Memory {
    unsigned left;
    int live = 0;

    lawn_allocator_t allocator()
    {
        return {[](void *arg, size_t size) {
                    Memory *const self = static_cast<Memory *>(arg);
                    if (self->left == 0) {
                        return static_cast<void *>(nullptr);
                    }
                    --self->left;
                    ++self->live;
                    return malloc(size);
                },
                [](void *arg, void *memory) {
                    static_cast<Memory *>(arg)->live -= memory != nullptr;
                    free(memory);
                },
                this};
    }
};

TEST(Owner, FreesOnceAndMoves)
{
    static_assert(!std::is_copy_constructible_v<lawn::engine>);
    static_assert(std::is_nothrow_move_constructible_v<lawn::engine>);
    static_assert(std::is_nothrow_move_assignable_v<lawn::engine>);
    static_assert(!std::is_copy_constructible_v<lawn::lawn_ptr>);
    static_assert(!std::is_copy_constructible_v<lawn::keyed_ptr>);
    static_assert(!std::is_copy_constructible_v<lawn::queue_ptr>);
    Memory memory{100};
    lawn_params_t params = {};
    params.allocator = memory.allocator();
    lawn_engine_params_t engine_params = {};
    engine_params.lawn = params;
    engine_params.ticks_per_sec = 50;
    {
        lawn_status_t status = LAWN_ERR_IO;
        lawn::lawn_ptr other; // goes last, after the table
        lawn::lawn_ptr one = lawn::make_lawn(&params, &status);
        EXPECT_EQ(status, LAWN_OK);
        lawn::keyed_ptr keyed = lawn::make_keyed(one.get(), 10, &status);
        EXPECT_EQ(status, LAWN_OK);
        EXPECT_EQ(lawn_keyed_start(keyed.get(), 0, 1, 7, nullptr), LAWN_OK);
        lawn::queue_ptr queue = lawn::make_queue(one.get(), 10, &status);
        EXPECT_EQ(status, LAWN_OK);
        other = std::move(one);
        EXPECT_EQ(lawn_count(other.get()), 1U);

        lawn::engine first = lawn::make_engine(&engine_params, &status);
        EXPECT_EQ(status, LAWN_OK);
        EXPECT_TRUE(first);
        lawn::engine second = lawn::make_engine(&engine_params);
        second = std::move(first);
        EXPECT_FALSE(first); // NOLINT(bugprone-use-after-move)
        EXPECT_EQ(second.to_ticks(1s), 50U);
        EXPECT_NE(second.get(), nullptr);
        EXPECT_GT(memory.live, 0);
    }
    EXPECT_EQ(memory.live, 0);
}

TEST(Owner, IsEmptyWhenNothingWasMade)
{
    Memory memory{0};
    lawn_params_t params = {};
    params.allocator = memory.allocator();
    lawn_engine_params_t engine_params = {};
    engine_params.lawn = params;
    lawn_status_t status = LAWN_OK;
    EXPECT_FALSE(lawn::make_lawn(&params, &status));
    EXPECT_EQ(status, LAWN_ERR_NO_MEMORY);
    EXPECT_FALSE(lawn::make_engine(&engine_params));
    EXPECT_FALSE(lawn::make_keyed(nullptr, 1, &status));
    EXPECT_EQ(status, LAWN_ERR_INVALID_PARAM);
    status = LAWN_OK;
    EXPECT_FALSE(lawn::make_queue(nullptr, 1, &status));
    EXPECT_EQ(status, LAWN_ERR_INVALID_PARAM);
    engine_params.ticks_per_sec = -1;
    EXPECT_FALSE(lawn::make_engine(&engine_params, &status));
    EXPECT_EQ(status, LAWN_ERR_INVALID_PARAM);
    EXPECT_FALSE(lawn::engine());
}

TEST(Owner, AnEngineWithoutARateHasTheProcessesClock)
{
    const lawn_engine_params_t params = {};
    for (const lawn_engine_params_t *const given :
         {&params, decltype(&params){}}) {
        const lawn::engine engine = lawn::make_engine(given);
        ASSERT_TRUE(engine);
        EXPECT_EQ(engine.to_ticks(123'456'789ns),
                  lawn_time_from_nsec(123'456'789));
        EXPECT_EQ(engine.to_ticks(std::chrono::seconds::max()),
                  LAWN_TIME_INFINITY);
    }
}

} // namespace
