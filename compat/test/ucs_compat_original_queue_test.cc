// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timer queue of libucs and that of lawn/ucs_compat.h, side by side as the
// wheels are in ucs_compat_original_test.cc.
//
// LAWN_TEST_SEED replays one seed.

#include "ucs_compat_original.h"
#include <lawn/ucs_compat.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

namespace
{

constexpr ucs_time_t begin = 1000000;

uint64_t seed()
{
    const char *const text = getenv("LAWN_TEST_SEED");
    return text ? strtoull(text, nullptr, 0) : 1;
}

class Queues : public testing::Test
{
protected:
    Queues()
    {
        EXPECT_EQ(ucs_timerq_init(&theirs_), UCS_OK);
        EXPECT_EQ(lawn_ucs_timerq_init(&ours_), UCS_OK);
    }

    ~Queues() override
    {
        theirs_.num_timers = 0; // or it warns of each
        ucs_timerq_cleanup(&theirs_);
        lawn_ucs_timerq_cleanup(&ours_);
    }

    void add(int id, ucs_time_t interval)
    {
        const ucs_status_t status = ucs_timerq_add(&theirs_, id, interval);
        EXPECT_EQ(lawn_ucs_timerq_add(&ours_, id, interval), status);
    }

    void remove(int id)
    {
        const ucs_status_t status = ucs_timerq_remove(&theirs_, id);
        EXPECT_EQ(lawn_ucs_timerq_remove(&ours_, id), status);
    }

    std::vector<int> expired_theirs(ucs_time_t now)
    {
        std::vector<int> ids;
        ucs_timer_t *timer = nullptr;
        ucs_timerq_for_each_expired(timer, &theirs_, now,
                                    { ids.push_back(timer->id); });
        std::sort(ids.begin(), ids.end());
        return ids;
    }

    std::vector<int> expired_ours(ucs_time_t now)
    {
        std::vector<int> ids;
        lawn_ucs_timer_t *timer = nullptr;
        lawn_ucs_timerq_for_each_expired(timer, &ours_, now,
                                         { ids.push_back(timer->id); });
        std::sort(ids.begin(), ids.end());
        return ids;
    }

    ucs_timer_queue_t theirs_ = {};
    lawn_ucs_timerq_t ours_ = {};
};

// Polled every tick, the original keeps the phase as well.
TEST_F(Queues, FireTheSameWhenPolledEveryTick)
{
    std::mt19937_64 random(seed());
    size_t fired = 0;
    for (ucs_time_t now = begin; now < begin + 20000; ++now) {
        const int id = static_cast<int>(random() % 40);
        if (random() % 8 == 0) {
            add(id, 1 + random() % 100);
        } else if (random() % 8 == 0) {
            remove(id);
        }
        const std::vector<int> ids = expired_ours(now);
        ASSERT_EQ(ids, expired_theirs(now));
        ASSERT_EQ(lawn_ucs_timerq_size(&ours_), ucs_timerq_size(&theirs_));
        ASSERT_EQ(lawn_ucs_timerq_min_interval(&ours_),
                  ucs_timerq_min_interval(&theirs_));
        fired += ids.size();
    }
    EXPECT_GT(fired, 1000U);
}

TEST_F(Queues, TheOriginalDriftsWhenPolledNowAndThen)
{
    size_t theirs = 0;
    size_t ours = 0;
    add(1, 10);
    for (ucs_time_t t = 0; t < 7000; t += 7) {
        theirs += expired_theirs(begin + t).size();
        ours += expired_ours(begin + t).size();
    }
    EXPECT_EQ(theirs, 500U);
    EXPECT_EQ(ours, 700U);
}

TEST_F(Queues, TheOriginalSkipsWhenTheLoopRemoves)
{
    size_t theirs = 0;
    size_t ours = 0;
    for (int id = 1; id <= 4; ++id) {
        add(id, 10);
    }
    ucs_timer_t *their = nullptr;
    ucs_timerq_for_each_expired(their, &theirs_, begin, {
        ++theirs;
        if (their->id == 1) {
            ucs_timerq_remove(&theirs_, 1);
        }
    });
    lawn_ucs_timer_t *our = nullptr;
    lawn_ucs_timerq_for_each_expired(our, &ours_, begin, {
        ++ours;
        if (our->id == 1) {
            lawn_ucs_timerq_remove(&ours_, 1);
        }
    });
    EXPECT_EQ(theirs, 3U);
    EXPECT_EQ(ours, 4U);
}

} // namespace
