// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a lawn counts, shows and drains: timers that a program has started, and
// not those inside of shared timers.

#include <lawn/shared.h>

#include <gtest/gtest.h>

#include <vector>

namespace
{

using Timers = std::vector<const lawn_timer_t *>;

class SharedCount : public testing::Test
{
protected:
    SharedCount()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        EXPECT_EQ(lawn_box_create(lawn_, &box_), LAWN_OK);
        for (lawn_shared_t &timer : timers_) {
            lawn_shared_init(&timer, box_, nullptr);
        }
        lawn_timer_init(&plain_, nullptr);
        lawn_timer_start(lawn_, &plain_, 0, 1000);
    }

    ~SharedCount() override
    {
        lawn_box_destroy(box_);
        lawn_destroy(lawn_);
    }

    void start(unsigned i, lawn_time_t deadline)
    {
        EXPECT_TRUE(lawn_shared_start(&timers_[i], deadline));
    }

    void retire(unsigned i)
    {
        lawn_shared_retire(&timers_[i], nullptr);
    }

    void pass(lawn_time_t now)
    {
        lawn_box_drain(box_, now, 0);
        lawn_advance(lawn_, now, 0);
    }

    // Besides what the library has of its own.
    void expect(const Timers &timers) const
    {
        EXPECT_EQ(lawn_count(lawn_), timers.size());
        Timers shown;
        lawn_for_each(
            lawn_,
            [](const lawn_timer_t *timer, void *arg) {
                static_cast<Timers *>(arg)->push_back(timer);
            },
            &shown);
        EXPECT_EQ(shown, timers);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    lawn_t *lawn_ = nullptr;
    lawn_box_t *box_ = nullptr;
    lawn_shared_t timers_[4];
    lawn_timer_t plain_;
};

TEST_F(SharedCount, TimersInsideOfSharedOnesDoNotCount)
{
    for (unsigned i = 0; i < 4; ++i) {
        start(i, 100);
    }
    pass(10);
    expect({&plain_});
    start(0, 50);  // earlier
    start(1, 200); // later
    lawn_shared_stop(&timers_[2]);
    pass(20);
    expect({&plain_});
    pass(150);
    expect({&plain_});
    retire(1); // which is in the lawn
    retire(2); // and this one is not any more
    pass(160);
    expect({&plain_});
    lawn_timer_stop(lawn_, &plain_);
    expect({});
    start(0, 300);
    lawn_shared_start_local(&timers_[3], 300);
    pass(170);
    expect({});
    retire(0);
    retire(3);
}

TEST_F(SharedCount, ADrainHandsOverTimersOfTheProgram)
{
    static Timers drained;
    drained.clear();
    start(0, 100);
    start(1, 100);
    pass(10);
    EXPECT_EQ(lawn_drain(lawn_, [](lawn_timer_t *timer,
                                   lawn_time_t) { drained.push_back(timer); }),
              1U);
    EXPECT_EQ(drained, Timers{&plain_});
    EXPECT_FALSE(lawn_shared_is_active(&timers_[0]));
    expect({});
    start(0, 100);
    pass(20);
    expect({});
    pass(100);
    expect({});
    for (unsigned i = 0; i < 4; ++i) {
        retire(i);
    }
}

TEST_F(SharedCount, ADestroyedBoxLeavesNothingBehind)
{
    start(0, 100);
    pass(10);
    lawn_box_destroy(box_);
    box_ = nullptr;
    expect({&plain_});
    for (unsigned i = 0; i < 4; ++i) {
        retire(i);
    }
}

} // namespace
