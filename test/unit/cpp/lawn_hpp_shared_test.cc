// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp: the handle of a shared timer.

#include <lawn/lawn.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace
{

class SharedHandle : public testing::Test
{
protected:
    unsigned pass(lawn_time_t now)
    {
        lawn_box_drain(box_, now, 0);
        return lawn_advance(lawn_.get(), now, 0);
    }

    ~SharedHandle() override
    {
        lawn_box_destroy(box_);
    }

    static lawn_box_t *make_box(lawn_t *lawn)
    {
        lawn_box_t *box = nullptr;
        EXPECT_EQ(lawn_box_create(lawn, &box), LAWN_OK);
        return box;
    }

    const lawn::lawn_ptr lawn_ = lawn::make_lawn();
    lawn_box_t *const box_ = make_box(lawn_.get());
};

TEST_F(SharedHandle, StartsAndStops)
{
    lawn_time_t fired_at = 0;
    auto timer = lawn::make_shared_timer(
        box_, [&fired_at](lawn_time_t now) { fired_at = now; });
    static_assert(!std::is_copy_constructible_v<decltype(timer)>);
    static_assert(std::is_nothrow_move_constructible_v<decltype(timer)>);
    ASSERT_TRUE(timer);
    EXPECT_TRUE(timer.start_at(100));
    EXPECT_TRUE(timer.is_active());
    EXPECT_EQ(timer.deadline(), 100U);
    EXPECT_TRUE(timer.stop());
    EXPECT_FALSE(timer.stop());
    EXPECT_EQ(pass(100), 0U);
    EXPECT_TRUE(timer.start_local_at(200));
    EXPECT_EQ(pass(200), 1U);
    EXPECT_EQ(fired_at, 200U);
    timer.sync();
    decltype(timer) moved = std::move(timer);
    EXPECT_FALSE(timer);
    EXPECT_TRUE(moved.start_at(300));
    EXPECT_EQ(pass(300), 1U);
}

TEST_F(SharedHandle, ItsCallableLivesUntilTheOwnerLetsGo)
{
    auto alive = std::make_shared<int>(0);
    std::optional handle =
        lawn::make_shared_timer(box_, [alive](lawn_time_t) { ++*alive; });
    EXPECT_TRUE(handle->start_at(100));
    EXPECT_EQ(pass(10), 0U);
    std::thread([&handle] { handle.reset(); }).join();
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_EQ(pass(100), 0U);
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(*alive, 0);
}

// From its engine, which tells the time and the rate.
TEST(SharedEngine, StartsByADurationAndAPointInTime)
{
    using namespace std::chrono_literals;
    static lawn_time_t now;
    now = 1000;
    lawn_engine_params_t params = {};
    params.clock = [](void *) { return now; };
    params.ticks_per_sec = 1000;
    lawn::engine engine = lawn::make_engine(&params);
    ASSERT_TRUE(engine);
    lawn_time_t fired_at = 0;
    auto timer = lawn::make_shared_timer(
        engine, [&fired_at](lawn_time_t at) { fired_at = at; });
    ASSERT_TRUE(timer);
    EXPECT_TRUE(timer.start(engine, 1999us)); // 1.999 ticks
    EXPECT_EQ(timer.deadline(), 1002U);
    EXPECT_TRUE(timer.start(engine, std::chrono::hours::max()));
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
    EXPECT_TRUE(timer.start(engine, std::chrono::nanoseconds(INT64_MAX - 1)));
    EXPECT_EQ(timer.deadline(), 1000 + 9'223'372'036'855U);
    const auto past = lawn::tsc_clock::time_point();
    EXPECT_TRUE(timer.start_at(engine, past));
    EXPECT_EQ(timer.deadline(), 1000U);
    now = 1005;
    engine.progress();
    EXPECT_EQ(fired_at, 1005U);
    EXPECT_TRUE(timer.start_at(engine, lawn::tsc_clock::time_point::max()));
    EXPECT_EQ(timer.deadline(), LAWN_TIME_INFINITY);
}

struct Ending {
    std::unique_ptr<lawn::shared_timer<Ending>> *handle;
    std::shared_ptr<int> alive;

    void operator()(lawn_time_t) const
    {
        handle->reset();
        ++*alive; // the captures are still there
    }
};

TEST_F(SharedHandle, ItsCallableMayDestroyIt)
{
    const auto alive = std::make_shared<int>(0);
    std::unique_ptr<lawn::shared_timer<Ending>> handle;
    handle = std::make_unique<lawn::shared_timer<Ending>>(
        lawn::make_shared_timer(box_, Ending{&handle, alive}));
    EXPECT_TRUE(handle->start_at(100));
    EXPECT_EQ(pass(100), 1U);
    EXPECT_EQ(*alive, 1);
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_EQ(pass(101), 0U);
    EXPECT_EQ(alive.use_count(), 1);
}

} // namespace
