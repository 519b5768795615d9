// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers by number.

#include "keyed_fixture.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

namespace
{

TEST_F(Keyed, FiresWithItsIdAndLatestPayload)
{
    open(8);
    int a = 0;
    int b = 0;
    EXPECT_EQ(lawn_keyed_start(keyed_, 0, 10, 7, &a), LAWN_OK);
    EXPECT_EQ(lawn_keyed_start(keyed_, 5, 10, 7, &b), LAWN_OK);
    EXPECT_EQ(lawn_keyed_count(keyed_), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 14, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 15, 0), 1U);
    ASSERT_EQ(fired_.size(), 1U);
    EXPECT_EQ(fired_[0].id, 7U);
    EXPECT_EQ(fired_[0].payload, &b);
    EXPECT_EQ(fired_[0].now, 15U);
    EXPECT_EQ(lawn_keyed_count(keyed_), 0U);
}

TEST_F(Keyed, StopHandsBackThePayload)
{
    open(1);
    int a = 0;
    void *payload = nullptr;
    EXPECT_EQ(lawn_keyed_stop(keyed_, 1, &payload), LAWN_ERR_NO_ELEM);
    lawn_keyed_start(keyed_, 0, 10, UINT64_MAX, &a);
    EXPECT_EQ(lawn_keyed_stop(keyed_, UINT64_MAX, &payload), LAWN_OK);
    EXPECT_EQ(payload, &a);
    EXPECT_EQ(lawn_keyed_stop(keyed_, UINT64_MAX, nullptr), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_advance(lawn_, 100, 0), 0U);
}

TEST_F(Keyed, StaleIdTouchesNoOtherTimer)
{
    open(1); // one node: the second id gets the first one's
    lawn_keyed_start(keyed_, 0, 10, 1, nullptr);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
    lawn_keyed_start(keyed_, 10, 10, 2, nullptr);
    EXPECT_EQ(lawn_keyed_stop(keyed_, 1, nullptr), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_advance(lawn_, 20, 0), 1U);
    EXPECT_EQ(fired_.back().id, 2U);
}

TEST_F(Keyed, AllocatesOnlyBeyondTheHint)
{
    open(100);
    allowance_.left = 0;
    for (uint64_t id = 0; id < 100; ++id) {
        ASSERT_EQ(lawn_keyed_start(keyed_, 0, 10 + id, id, nullptr), LAWN_OK);
    }
    EXPECT_EQ(lawn_keyed_start(keyed_, 0, 5, 100, nullptr), LAWN_ERR_NO_MEMORY);
    allowance_.left = 1; // growing takes two
    EXPECT_EQ(lawn_keyed_start(keyed_, 0, 5, 100, nullptr), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(lawn_keyed_count(keyed_), 100U);
    EXPECT_EQ(lawn_keyed_start(keyed_, 0, 5, 99, nullptr), LAWN_OK);
    allowance_.left = 2;
    EXPECT_EQ(lawn_keyed_start(keyed_, 0, 5, 100, nullptr), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 101U);
}

TEST_F(Keyed, CreateRefusesAndLeaksNothing)
{
    open(1);
    lawn_keyed_t *keyed = nullptr;
    EXPECT_EQ(lawn_keyed_create(nullptr, 1, &keyed), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_keyed_create(lawn_, 1, nullptr), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_keyed_create(lawn_, SIZE_MAX, &keyed), LAWN_ERR_NO_MEMORY);
    for (allowance_.left = 0; allowance_.left < 3; ++allowance_.left) {
        const int live = allowance_.live;
        const int left = allowance_.left;
        EXPECT_EQ(lawn_keyed_create(lawn_, 1, &keyed), LAWN_ERR_NO_MEMORY);
        EXPECT_EQ(allowance_.live, live);
        allowance_.left = left;
    }
    lawn_keyed_destroy(nullptr);
}

TEST_F(Keyed, StopAfterADrainFindsNothing)
{
    open(4);
    lawn_keyed_start(keyed_, 0, 10, 1, nullptr);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 1U);
    EXPECT_EQ(lawn_keyed_stop(keyed_, 1, nullptr), LAWN_ERR_NO_ELEM);
    lawn_keyed_start(keyed_, 0, 10, 1, nullptr);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
}

// Few TTLs and many, with any budget, and callbacks that start and stop.
class KeyedModel : public Keyed
{
protected:
    lawn_time_t any_ttl()
    {
        static constexpr lawn_time_t few[] = {0, 1, 7, 90, 1000};
        return random_() % 4 != 0 ? few[random_() % std::size(few)]
                                  : random_() % 1000;
    }

    void act()
    {
        const uint64_t id = random_() % 500 << 32;
        if (random_() % 3 != 0) {
            const lawn_time_t ttl = any_ttl();
            ASSERT_EQ(lawn_keyed_start(keyed_, now_, ttl, id, this), LAWN_OK);
            model_[id] = now_ + ttl;
        } else {
            ASSERT_EQ(lawn_keyed_stop(keyed_, id, nullptr) == LAWN_OK,
                      model_.erase(id) == 1);
        }
        ASSERT_EQ(lawn_keyed_count(keyed_), model_.size());
    }

    void advance()
    {
        static constexpr unsigned budgets[] = {0, 1, 2, 20};
        const unsigned budget = budgets[random_() % std::size(budgets)];
        now_ += random_() % 10;
        lawn_advance(lawn_, now_, budget);
        if (lawn_next(lawn_) > now_) {
            for (const auto &[id, deadline] : model_) {
                ASSERT_GT(deadline, now_) << id;
            }
        } else {
            ASSERT_TRUE(budget != 0 || is_new_due_);
        }
        is_new_due_ = false;
    }

    static void expired(void *arg, uint64_t id, void *payload, lawn_time_t now)
    {
        KeyedModel *const self = static_cast<KeyedModel *>(arg);
        ASSERT_EQ(payload, self);
        ASSERT_EQ(now, self->now_);
        ASSERT_EQ(self->model_.count(id), 1U);
        ASSERT_LE(self->model_.at(id), now);
        self->model_.erase(id);
        ++self->expired_;
        for (uint64_t i = self->random_() % 3; i > 0; --i) {
            self->act();
            self->is_new_due_ = true; // perhaps
        }
    }

    std::mt19937_64 random_{1};
    std::map<uint64_t, lawn_time_t> model_;
    lawn_time_t now_ = 0;
    size_t expired_ = 0;
    bool is_new_due_ = false;
};

TEST_F(KeyedModel, AgreesWithAMap)
{
    open(16);
    lawn_keyed_set_expired(keyed_, expired, this);
    size_t most_queues = 0;
    for (int i = 0; i < 100'000; ++i) {
        if (random_() % 3 == 0) {
            advance();
        } else {
            act();
        }
        if (i % 64 == 0) {
            ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
            most_queues = std::max(most_queues, queues());
        }
        ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_GT(expired_, 10'000U);
    EXPECT_GE(most_queues, 5U);
}

} // namespace
