// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers by number: looked at, walked, cleared, and drained with their lawn.

#include "keyed_fixture.h"

#include <lawn/queue.h>

#include <map>
#include <utility>

namespace
{

using Payloads = std::map<uint64_t, void *>;

// Ids of a TTL that is shared, of TTLs that are not, and one that never fires.
class KeyedWalk : public Keyed
{
public:
    void open_with(uint64_t count)
    {
        open(count);
        for (uint64_t id = 0; id < count; ++id) {
            ASSERT_EQ(lawn_keyed_start(keyed_, 0, ttl_of(id), id, payload(id)),
                      LAWN_OK);
            payloads_[id] = payload(id);
        }
    }

    static lawn_time_t ttl_of(uint64_t id)
    {
        return id == 0 ? LAWN_TIME_INFINITY : id % 2 != 0 ? 50 : 100 + id;
    }

    void *payload(uint64_t id)
    {
        return &bytes_[id];
    }

    void expect_empty()
    {
        EXPECT_EQ(lawn_keyed_count(keyed_), 0U);
        EXPECT_EQ(lawn_count(lawn_), 0U);
        EXPECT_EQ(queues(), 0U);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        for (const auto &[id, payload] : payloads_) {
            EXPECT_FALSE(lawn_keyed_is_active(keyed_, id));
            EXPECT_EQ(lawn_keyed_deadline(keyed_, id), LAWN_TIME_INFINITY);
            EXPECT_EQ(lawn_keyed_stop(keyed_, id, nullptr), LAWN_ERR_NO_ELEM);
        }
        EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 0U);
    }

    static void hand_over(void *arg, uint64_t id, void *payload,
                          lawn_time_t now)
    {
        KeyedWalk *const self = static_cast<KeyedWalk *>(arg);
        EXPECT_EQ(now, lawn_now(self->lawn_));
        EXPECT_TRUE(self->handed_.emplace(id, payload).second) << id;
    }

    char bytes_[128] = {};
    Payloads payloads_; // of what runs
    Payloads handed_;
};

KeyedWalk *walk; // for callbacks without an argument

// Takes what a drain hands over, and says what it was.
std::pair<uint64_t, void *> take(const lawn_timer_t *drained, lawn_time_t now)
{
    uint64_t id = 0;
    void *payload = nullptr;
    lawn_keyed_identify(drained, &id, &payload);
    KeyedWalk::hand_over(walk, id, payload, now);
    return {id, payload};
}

TEST_F(KeyedWalk, TellsWhatRunsAndUntilWhen)
{
    open_with(4);
    EXPECT_TRUE(lawn_keyed_is_active(keyed_, 2));
    EXPECT_EQ(lawn_keyed_deadline(keyed_, 2), 102U);
    EXPECT_EQ(lawn_keyed_deadline(keyed_, 3), 50U);
    EXPECT_TRUE(lawn_keyed_is_active(keyed_, 0));
    EXPECT_EQ(lawn_keyed_deadline(keyed_, 0), LAWN_TIME_INFINITY);
    EXPECT_FALSE(lawn_keyed_is_active(keyed_, 4));
    EXPECT_EQ(lawn_keyed_deadline(keyed_, 4), LAWN_TIME_INFINITY);
    lawn_keyed_start(keyed_, 10, 7, 2, nullptr);
    EXPECT_EQ(lawn_keyed_deadline(keyed_, 2), 17U);
    EXPECT_EQ(lawn_advance(lawn_, 50, 0), 3U);
    EXPECT_FALSE(lawn_keyed_is_active(keyed_, 2));
    EXPECT_FALSE(lawn_keyed_is_active(keyed_, 3));
    EXPECT_EQ(lawn_keyed_deadline(keyed_, 3), LAWN_TIME_INFINITY);
}

TEST_F(KeyedWalk, ForEachShowsAllThatRuns)
{
    open_with(30);
    lawn_keyed_stop(keyed_, 7, nullptr);
    payloads_.erase(7);
    lawn_keyed_for_each(
        keyed_,
        [](void *arg, uint64_t id, void *payload, lawn_time_t deadline) {
            KeyedWalk *const self = static_cast<KeyedWalk *>(arg);
            EXPECT_EQ(deadline, ttl_of(id));
            hand_over(arg, id, payload, lawn_now(self->lawn_));
        },
        this);
    EXPECT_EQ(handed_, payloads_);
    EXPECT_EQ(lawn_keyed_count(keyed_), 29U);
}

TEST_F(KeyedWalk, ForEachMayStopTheIdThatItIsGiven)
{
    open_with(64);
    lawn_keyed_for_each(
        keyed_,
        [](void *arg, uint64_t id, void *payload, lawn_time_t) {
            KeyedWalk *const self = static_cast<KeyedWalk *>(arg);
            hand_over(arg, id, payload, lawn_now(self->lawn_));
            if (id % 3 != 0) {
                EXPECT_EQ(lawn_keyed_stop(self->keyed_, id, nullptr), LAWN_OK);
            }
        },
        this);
    EXPECT_EQ(handed_, payloads_);
    EXPECT_EQ(lawn_keyed_count(keyed_), 22U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
}

TEST_F(KeyedWalk, ClearHandsOutEachPayloadOnceAndAllocatesNothing)
{
    for (const uint64_t count : {0, 1, 2, 100}) {
        open_with(count);
        lawn_advance(lawn_, 20, 0);
        allowance_.left = 0;
        EXPECT_EQ(lawn_keyed_clear(keyed_, hand_over, this), count);
        EXPECT_EQ(handed_, payloads_);
        expect_empty();
        EXPECT_EQ(lawn_keyed_clear(keyed_, hand_over, this), 0U);
        for (uint64_t id = 0; id < count; ++id) { // its room is still there
            EXPECT_EQ(lawn_keyed_start(keyed_, 0, 5, id + 1000, nullptr),
                      LAWN_OK);
        }
        EXPECT_EQ(lawn_keyed_clear(keyed_, nullptr, nullptr), count);
        expect_empty();
        payloads_.clear();
        handed_.clear();
        close();
    }
}

// Each id is idle when the first is handed over, and what is started stays.
TEST_F(KeyedWalk, TheCallbackOfAClearStartsIdsAnew)
{
    open_with(20);
    const auto each = [](void *arg, uint64_t id, void *payload,
                         lawn_time_t now) {
        KeyedWalk *const self = static_cast<KeyedWalk *>(arg);
        hand_over(arg, id, payload, now);
        for (uint64_t i = 0; i < 20; ++i) {
            EXPECT_EQ(lawn_keyed_stop(self->keyed_, i, nullptr),
                      LAWN_ERR_NO_ELEM);
        }
        EXPECT_EQ(lawn_keyed_start(self->keyed_, now, 9, id + 1000, nullptr),
                  LAWN_OK);
        EXPECT_EQ(lawn_keyed_count(self->keyed_), self->handed_.size());
    };
    allowance_.left = 0; // what was handed over has made room
    EXPECT_EQ(lawn_keyed_clear(keyed_, each, this), 20U);
    EXPECT_EQ(handed_, payloads_);
    EXPECT_EQ(lawn_keyed_count(keyed_), 20U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn_, 9, 0), 20U);
    EXPECT_EQ(fired_.size(), 20U);
}

TEST_F(KeyedWalk, AClearInsideAClearTakesTheRest)
{
    open_with(20);
    const auto each = [](void *arg, uint64_t id, void *payload,
                         lawn_time_t now) {
        KeyedWalk *const self = static_cast<KeyedWalk *>(arg);
        hand_over(arg, id, payload, now);
        lawn_keyed_start(self->keyed_, now, 9, 1000, self);
        EXPECT_EQ(lawn_keyed_clear(self->keyed_, hand_over, self), 20U);
    };
    EXPECT_EQ(lawn_keyed_clear(keyed_, each, this), 1U);
    payloads_[1000] = this;
    EXPECT_EQ(handed_, payloads_);
    expect_empty();
}

// Half of a queue has fired, and the rest is due.
TEST_F(KeyedWalk, ACallbackClears)
{
    open_with(40);
    lawn_keyed_set_expired(
        keyed_,
        [](void *arg, uint64_t id, void *payload, lawn_time_t now) {
            KeyedWalk *const self = static_cast<KeyedWalk *>(arg);
            self->fired_.push_back({id, payload, now});
            self->payloads_.erase(id);
            if (self->fired_.size() == 10) {
                EXPECT_EQ(lawn_keyed_clear(self->keyed_, hand_over, self), 30U);
            }
        },
        this);
    EXPECT_EQ(lawn_advance(lawn_, 60, 0), 10U);
    EXPECT_EQ(handed_, payloads_);
    expect_empty();
}

TEST_F(KeyedWalk, ADrainEndsTheTimersOfTheTable)
{
    open_with(30);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 30U);
    expect_empty();
    void *given = this;
    EXPECT_EQ(lawn_keyed_stop(keyed_, 1, &given), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(given, this);
    EXPECT_EQ(lawn_keyed_clear(keyed_, hand_over, this), 0U);
    allowance_.left = 0; // the room is there again
    for (uint64_t id = 0; id < 30; ++id) {
        EXPECT_EQ(lawn_keyed_start(keyed_, 0, 10, id, payload(id)), LAWN_OK);
    }
    EXPECT_EQ(lawn_keyed_count(keyed_), 30U);
    EXPECT_EQ(lawn_advance(lawn_, 1010, 0), 30U);
    EXPECT_EQ(fired_.size(), 30U);
}

// With timers of two tables, and of none, on one lawn.
TEST_F(KeyedWalk, ADrainHandsOverWhatCanBeIdentified)
{
    open_with(30);
    lawn_keyed_t *other = nullptr;
    ASSERT_EQ(lawn_keyed_create(lawn_, 1, &other), LAWN_OK);
    ASSERT_EQ(lawn_keyed_start(other, 0, 50, 5, this), LAWN_OK);
    static unsigned others, plain;
    others = plain = 0;
    lawn_timer_t timer = {};
    lawn_timer_start(lawn_, &timer, 0, 50);
    walk = this;
    lawn_for_each(
        lawn_,
        [](const lawn_timer_t *shown, void *) {
            others += lawn_keyed_identify(shown, nullptr, nullptr) == nullptr;
        },
        nullptr);
    EXPECT_EQ(others, 1U);
    others = 0;
    const auto each = [](lawn_timer_t *drained, lawn_time_t now) {
        uint64_t id = 77;
        void *payload = walk;
        lawn_keyed_t *const keyed = lawn_keyed_identify(drained, &id, &payload);
        if (!keyed) {
            ++plain;
            EXPECT_EQ(id, 77U);
            EXPECT_EQ(payload, walk);
        } else if (keyed == walk->keyed_) {
            hand_over(walk, id, payload, now);
            EXPECT_EQ(lawn_timer_deadline(drained), ttl_of(id));
        } else {
            ++others;
            EXPECT_EQ(id, 5U);
            EXPECT_EQ(payload, walk);
        }
        EXPECT_TRUE(!keyed || !lawn_keyed_is_active(keyed, id));
    };
    EXPECT_EQ(lawn_drain(lawn_, each), 32U);
    EXPECT_EQ(plain, 1U);
    EXPECT_EQ(others, 1U);
    EXPECT_EQ(handed_, payloads_);
    EXPECT_EQ(lawn_keyed_count(other), 0U);
    expect_empty();
    lawn_keyed_destroy(other);
}

// What `each` of a drain starts stays, though it gets the node just freed.
TEST_F(KeyedWalk, IdsMayBeStartedAnewInADrain)
{
    open_with(30);
    walk = this;
    const auto each = [](lawn_timer_t *drained, lawn_time_t now) {
        const auto [id, payload] = take(drained, now);
        EXPECT_EQ(lawn_keyed_start(walk->keyed_, now, 10, id, payload),
                  LAWN_OK);
        EXPECT_EQ(lawn_keyed_count(walk->keyed_), 30U);
        EXPECT_EQ(lawn_check(walk->lawn_), LAWN_OK);
    };
    allowance_.left = 0;
    EXPECT_EQ(lawn_drain(lawn_, each), 30U);
    EXPECT_EQ(handed_, payloads_);
    EXPECT_EQ(lawn_count(lawn_), 30U);
    EXPECT_EQ(lawn_advance(lawn_, 9, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 30U);
}

TEST_F(KeyedWalk, AClearInsideADrainTakesTheRest)
{
    open_with(30);
    walk = this;
    const auto each = [](lawn_timer_t *drained, lawn_time_t now) {
        take(drained, now);
        EXPECT_EQ(lawn_keyed_clear(walk->keyed_, hand_over, walk), 29U);
    };
    EXPECT_EQ(lawn_drain(lawn_, each), 1U);
    EXPECT_EQ(handed_, payloads_);
    expect_empty();
}

} // namespace
