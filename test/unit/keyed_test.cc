// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers by number.

#include <lawn/keyed.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <vector>

namespace
{

struct Allowance {
    int left;
    int live;

    static void *alloc(void *arg, size_t size)
    {
        Allowance *const allowance = static_cast<Allowance *>(arg);
        if (allowance->left == 0) {
            return nullptr;
        }
        --allowance->left;
        ++allowance->live;
        return malloc(size);
    }

    static void release(void *arg, void *memory)
    {
        --static_cast<Allowance *>(arg)->live;
        free(memory);
    }
};

struct Fired {
    uint64_t id;
    void *payload;
    lawn_time_t now;
};

class Keyed : public testing::Test
{
protected:
    void open(size_t capacity_hint)
    {
        lawn_params_t params = {};
        params.allocator = {Allowance::alloc, Allowance::release, &allowance_};
        ASSERT_EQ(lawn_create(&params, &lawn_), LAWN_OK);
        ASSERT_EQ(lawn_keyed_create(lawn_, capacity_hint, &keyed_), LAWN_OK);
        lawn_keyed_set_expired(keyed_, on_expired, this);
    }

    ~Keyed() override
    {
        lawn_keyed_destroy(keyed_);
        EXPECT_EQ(lawn_count(lawn_), 0U);
        lawn_destroy(lawn_);
        EXPECT_EQ(allowance_.live, 0);
    }

    static void on_expired(void *arg, uint64_t id, void *payload,
                           lawn_time_t now)
    {
        static_cast<Keyed *>(arg)->fired_.push_back({id, payload, now});
    }

    Allowance allowance_ = {1'000'000, 0};
    lawn_t *lawn_ = nullptr;
    lawn_keyed_t *keyed_ = nullptr;
    std::vector<Fired> fired_;
};

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

TEST_F(Keyed, AgreesWithAMap)
{
    open(16);
    std::mt19937_64 random(1);
    std::map<uint64_t, lawn_time_t> model;
    lawn_time_t now = 0;
    for (int i = 0; i < 200'000; ++i) {
        const uint64_t id = random() % 500 << 32;
        switch (random() % 3) {
        case 0: {
            const lawn_time_t ttl = random() % 1000;
            ASSERT_EQ(lawn_keyed_start(keyed_, now, ttl, id, &model), LAWN_OK);
            model[id] = now + ttl;
            break;
        }
        case 1:
            ASSERT_EQ(lawn_keyed_stop(keyed_, id, nullptr) == LAWN_OK,
                      model.erase(id) == 1);
            break;
        default:
            now += random() % 10;
            lawn_advance(lawn_, now, 0);
            for (const Fired &fired : fired_) {
                ASSERT_LE(model.at(fired.id), now);
                model.erase(fired.id);
            }
            fired_.clear();
            for (const auto &[other, deadline] : model) {
                ASSERT_GT(deadline, now) << other;
            }
        }
        ASSERT_EQ(lawn_keyed_count(keyed_), model.size());
    }
}

} // namespace
