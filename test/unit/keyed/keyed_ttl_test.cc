// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers by number: TTLs that are shared, and their queues.

#include "keyed_fixture.h"

#include <algorithm>

namespace
{

TEST_F(Keyed, DrainedIdsGiveBackTheirQueue)
{
    open(4);
    for (uint64_t id = 0; id < 4; ++id) {
        lawn_keyed_start(keyed_, 0, 10, id, nullptr);
    }
    EXPECT_EQ(queues(), 1U);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 4U);
    EXPECT_EQ(queues(), 0U);
    lawn_keyed_start(keyed_, 5, 10, 2, nullptr);
    lawn_keyed_start(keyed_, 5, 20, 3, nullptr);
    EXPECT_EQ(queues(), 0U);
    lawn_keyed_start(keyed_, 5, 10, 0, nullptr); // two share it again
    EXPECT_EQ(queues(), 1U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn_advance(lawn_, 14, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 15, 0), 2U);
    EXPECT_EQ(queues(), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 25, 0), 1U);
    EXPECT_EQ(lawn_keyed_count(keyed_), 0U);
}

TEST_F(Keyed, SharedTtlsHaveAQueueAndOthersNone)
{
    open(8);
    for (uint64_t round = 0; round < 3; ++round) {
        const lawn_time_t now = 100 * round;
        lawn_keyed_start(keyed_, now, 50, 1, nullptr);
        lawn_keyed_start(keyed_, now, 60, 2, nullptr);
        EXPECT_EQ(queues(), 0U);
        lawn_keyed_start(keyed_, now, 50, 3, nullptr);
        EXPECT_EQ(queues(), 1U);
        lawn_keyed_start(keyed_, now + 1, 50, 4, nullptr);
        EXPECT_EQ(queues(), 1U);
        lawn_keyed_start(keyed_, now + 1, 60, 5, nullptr);
        EXPECT_EQ(queues(), 2U);
        EXPECT_EQ(lawn_advance(lawn_, now + 50, 0), 2U);
        EXPECT_EQ(queues(), 2U);
        EXPECT_EQ(lawn_advance(lawn_, now + 51, 0), 1U);
        EXPECT_EQ(queues(), 1U);
        EXPECT_EQ(lawn_keyed_stop(keyed_, 5, nullptr), LAWN_OK);
        EXPECT_EQ(queues(), 0U);
        EXPECT_EQ(lawn_advance(lawn_, now + 60, 0), 1U);
    }
}

// A TTL whose only timer has ended is not shared, nor is one by a re-arm.
TEST_F(Keyed, OneAfterAnotherHasNoQueue)
{
    open(8);
    for (lawn_time_t now = 0; now < 1000; now += 10) {
        lawn_keyed_start(keyed_, now, 10, now % 3, nullptr);
        lawn_keyed_start(keyed_, now, 10, now % 3, nullptr);
        EXPECT_EQ(queues(), 0U);
        if (now % 4 == 0) {
            lawn_keyed_stop(keyed_, now % 3, nullptr);
        } else {
            EXPECT_EQ(lawn_advance(lawn_, now + 10, 0), 1U);
        }
    }
}

// The TTL that memory fresh from the allocator spells.
TEST_F(Keyed, NothingIsSharedWithFreshMemory)
{
    open(8);
    lawn_time_t ttl = 0;
    memset(&ttl, 0xa5, sizeof ttl);
    lawn_keyed_start(keyed_, 0, ttl, 1, nullptr);
    EXPECT_EQ(queues(), 0U);
    EXPECT_EQ(lawn_advance(lawn_, ttl, 0), 1U);
}

TEST_F(Keyed, ATtlThatWasChangedIsNotShared)
{
    open(8);
    lawn_keyed_start(keyed_, 0, 10, 1, nullptr);
    lawn_keyed_start(keyed_, 0, 20, 1, nullptr);
    lawn_keyed_start(keyed_, 0, 10, 2, nullptr);
    EXPECT_EQ(queues(), 0U);
    lawn_keyed_start(keyed_, 0, 20, 3, nullptr);
    EXPECT_EQ(queues(), 1U);
}

TEST_F(Keyed, ReArmedWithTheSameTtlAnIdStaysWhereItIs)
{
    open(8);
    lawn_keyed_start(keyed_, 0, 10, 1, nullptr);
    lawn_keyed_start(keyed_, 0, 10, 2, nullptr);
    lawn_keyed_start(keyed_, 5, 10, 1, nullptr);
    EXPECT_EQ(lawn_keyed_stop(keyed_, 2, nullptr), LAWN_OK);
    EXPECT_EQ(queues(), 0U); // it was the only one in it
    EXPECT_EQ(lawn_advance(lawn_, 14, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 15, 0), 1U);
}

TEST_F(Keyed, OneTtlExpiresInTheOrderOfTheStarts)
{
    open(1000);
    for (uint64_t id = 0; id < 1000; ++id) {
        lawn_keyed_start(keyed_, id / 3, 500, id, nullptr);
    }
    lawn_keyed_start(keyed_, 400, 500, 7, nullptr); // behind the others
    EXPECT_EQ(queues(), 1U);
    while (lawn_next(lawn_) != LAWN_TIME_INFINITY) {
        lawn_advance(lawn_, 5000, 7);
    }
    std::vector<uint64_t> order;
    for (const Fired &fired : fired_) {
        if (fired.id != 0) { // the first, which is in no queue
            order.push_back(fired.id);
        }
    }
    ASSERT_EQ(order.size(), 999U);
    EXPECT_EQ(order.back(), 7U);
    order.pop_back();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Keyed, ReArmedWithAnotherTtlAnIdChangesOver)
{
    open(8);
    for (uint64_t id = 0; id < 3; ++id) {
        lawn_keyed_start(keyed_, 0, 100, id, nullptr);
        lawn_keyed_start(keyed_, 0, 70, id + 3, nullptr);
    }
    EXPECT_EQ(queues(), 2U);
    lawn_keyed_start(keyed_, 10, 70, 1, nullptr); // from queue to queue
    lawn_keyed_start(keyed_, 10, 33, 2, nullptr); // the last, to none
    EXPECT_EQ(queues(), 1U);
    lawn_keyed_start(keyed_, 10, 70, 0, nullptr); // from none to a queue
    EXPECT_EQ(queues(), 1U);
    lawn_keyed_start(keyed_, 20, 70, 4, nullptr); // to its own tail
    EXPECT_EQ(lawn_keyed_count(keyed_), 6U);
    EXPECT_EQ(lawn_count(lawn_), 6U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    std::vector<lawn_time_t> due(6);
    for (lawn_time_t now = 0; now <= 200; ++now) {
        lawn_advance(lawn_, now, 0);
    }
    for (const Fired &fired : fired_) {
        due.at(fired.id) = fired.now;
    }
    EXPECT_EQ(due, (std::vector<lawn_time_t>{80, 80, 43, 70, 90, 70}));
    EXPECT_EQ(queues(), 0U);
}

// More TTLs than there is room for queues, over and over: none is lost.
TEST_F(Keyed, QueuesGoBackToThePool)
{
    constexpr uint64_t ttls = 100'000;
    constexpr size_t most = 16 + 1;
    open(64);
    allowance_.left = 0;
    size_t fired = 0;
    size_t highest = 0;
    for (uint64_t i = 0; i < ttls; ++i) {
        const lawn_time_t now = 10 * i;
        for (uint64_t id = 0; id < 3; ++id) {
            ASSERT_EQ(lawn_keyed_start(keyed_, now, 200 + i % 7 + i, 3 * i + id,
                                       nullptr),
                      LAWN_OK);
        }
        if (i % 2 == 0) {
            lawn_keyed_stop(keyed_, 3 * i + 2, nullptr);
        }
        if (i >= 20) { // all but the latest 20
            for (uint64_t id = 3 * (i - 20); id < 3 * (i - 19); ++id) {
                fired += lawn_keyed_stop(keyed_, id, nullptr) == LAWN_OK;
            }
        }
        highest = std::max(highest, queues());
        fired += lawn_advance(lawn_, now, 0);
    }
    EXPECT_EQ(highest, most);
    fired += lawn_advance(lawn_, 100 * ttls, 0);
    EXPECT_EQ(fired, ttls * 5 / 2);
    EXPECT_EQ(queues(), 0U);
    for (uint64_t id = 0; id < 64; ++id) {
        lawn_keyed_start(keyed_, 0, 1000 + id / 3, id, nullptr);
    }
    EXPECT_EQ(queues(), most);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
}

// With a budget of one, the callbacks of a queue stop and start its others, and
// the last one, whose queue is closed under it, opens it again.
TEST_F(Keyed, CallbacksActOnTheirOwnTtl)
{
    for (const unsigned budget : {0U, 1U, 2U}) {
        open(32);
        lawn_keyed_set_expired(keyed_, act_on_own_ttl, this);
        for (uint64_t id = 0; id < 10; ++id) {
            lawn_keyed_start(keyed_, 0, 100, id, nullptr);
        }
        for (int i = 0; i < 100; ++i) {
            lawn_advance(lawn_, 100, budget);
            ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
        }
        // Each one that fired has stopped the next but one.
        EXPECT_EQ(lawn_keyed_count(keyed_), 2 * fired_.size());
        EXPECT_EQ(lawn_count(lawn_), 2 * fired_.size());
        EXPECT_EQ(queues(), 1U);
        fired_.clear();
        lawn_keyed_set_expired(keyed_, on_expired, this);
        const size_t count = lawn_keyed_count(keyed_);
        for (int i = 0; i < 100; ++i) {
            lawn_advance(lawn_, 200, budget);
        }
        EXPECT_EQ(fired_.size(), count);
        EXPECT_EQ(queues(), 0U);
        close();
    }
}

// What lives is one id after another, all of one TTL.
TEST_F(Keyed, TheLastOfAQueueMayStartTheNext)
{
    open(4);
    lawn_keyed_set_expired(
        keyed_,
        [](void *arg, uint64_t id, void *, lawn_time_t now) {
            Keyed *const self = static_cast<Keyed *>(arg);
            self->fired_.push_back({id, nullptr, now});
            lawn_keyed_start(self->keyed_, now, 10, id, nullptr);
            lawn_keyed_start(self->keyed_, now, 10, id + 2, nullptr);
            lawn_keyed_stop(self->keyed_, id, nullptr);
        },
        this);
    lawn_keyed_start(keyed_, 0, 10, 0, nullptr);
    lawn_keyed_start(keyed_, 0, 10, 1, nullptr);
    for (lawn_time_t now = 10; now <= 1000; now += 10) {
        lawn_advance(lawn_, now, 1);
        EXPECT_LE(lawn_next(lawn_), now);
        lawn_advance(lawn_, now, 2);
        ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
        ASSERT_EQ(lawn_keyed_count(keyed_), 2U);
    }
    EXPECT_EQ(fired_.size(), 200U);
}

// A queue with timers that are due at once; none of them twice in one pass.
TEST_F(Keyed, ATtlOfZeroIsForTheNextAdvance)
{
    open(4);
    lawn_keyed_set_expired(
        keyed_,
        [](void *arg, uint64_t id, void *, lawn_time_t now) {
            Keyed *const self = static_cast<Keyed *>(arg);
            self->fired_.push_back({id, nullptr, now});
            lawn_keyed_start(self->keyed_, now, 0, id, nullptr);
        },
        this);
    for (uint64_t id = 0; id < 4; ++id) {
        lawn_keyed_start(keyed_, 0, 0, id, nullptr);
    }
    for (size_t pass = 1; pass < 10; ++pass) {
        EXPECT_EQ(lawn_advance(lawn_, 5, 0), 4U);
        EXPECT_EQ(fired_.size(), 4 * pass);
    }
    for (uint64_t id = 0; id < 4; ++id) {
        lawn_keyed_start(keyed_, 5, LAWN_TIME_INFINITY, id, nullptr);
    }
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 0), 0U);
    EXPECT_EQ(lawn_keyed_count(keyed_), 4U);
}

// From the callback of a timer that is not the table's, with some still due.
TEST_F(Keyed, MayBeDestroyedWithinAPass)
{
    struct Killer {
        lawn_timer_t timer; // first
        lawn_keyed_t **keyed;
    } killer = {{}, &keyed_};
    open(16);
    lawn_timer_init(&killer.timer, [](lawn_timer_t *timer, lawn_time_t) {
        Killer *const self = reinterpret_cast<Killer *>(timer);
        lawn_keyed_destroy(*self->keyed);
        *self->keyed = nullptr;
    });
    for (uint64_t id = 0; id < 16; ++id) {
        lawn_keyed_start(keyed_, 0, id % 3 * 50, id, nullptr);
    }
    lawn_timer_start(lawn_, &killer.timer, 0, 50);
    lawn_advance(lawn_, 100, 0);
    EXPECT_EQ(keyed_, nullptr);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(queues(), 0U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
}

// Every allocation fails once; what it was for is refused, and nothing changes.
TEST_F(Keyed, SurvivesEveryFailure)
{
    constexpr uint64_t ids = 200; // doubles six times from 5
    for (int first = 0; first < 12; ++first) {
        open(5);
        allowance_.left = first;
        size_t refused = 0;
        for (uint64_t id = 0; id < ids; ++id) {
            const size_t count = lawn_keyed_count(keyed_);
            if (lawn_keyed_start(keyed_, id, 1000 + id % 3, id, this) !=
                LAWN_OK) {
                ++refused;
                ASSERT_EQ(allowance_.left, 0);
                ASSERT_EQ(lawn_keyed_count(keyed_), count);
                ASSERT_EQ(lawn_count(lawn_), count);
                ASSERT_EQ(lawn_keyed_stop(keyed_, id, nullptr),
                          LAWN_ERR_NO_ELEM);
                ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
                allowance_.left = 100;
                ASSERT_EQ(lawn_keyed_start(keyed_, id, 1000 + id % 3, id, this),
                          LAWN_OK);
            }
        }
        EXPECT_EQ(refused, 1U);
        EXPECT_EQ(queues(), 3U);
        EXPECT_EQ(lawn_advance(lawn_, 5000, 0), ids);
        EXPECT_EQ(queues(), 0U);
        close();
    }
}

} // namespace
