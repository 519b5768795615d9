// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers in shared memory, on virtual time: an owner and clients that are one
// process. What is asked of processes is in shm_process_test.cc.

#include "../../misuse.h"
#include "shm_fixture.h"

#include <map>
#include <random>

#include <fcntl.h>
#include <poll.h>

namespace
{

using Shm = TimedShmOwner;
using ShmDeathTest = Shm;

TEST_F(Shm, ATimerExpiresAtItsDeadlineAndNotATickBefore)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client, 77);
    lawn_shm_event_t event = {};
    EXPECT_EQ(lawn_shm_time(client), now_);
    EXPECT_TRUE(lawn_shm_start(client, timer, now_ + 100));
    pass();
    now_ += 99;
    pass();
    EXPECT_FALSE(lawn_shm_next(client, &event));
    ++now_;
    pass();
    ASSERT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.timer, timer);
    EXPECT_EQ(event.cookie, 77U);
    EXPECT_EQ(event.deadline, now_);
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_FALSE(lawn_shm_stop(client, timer));
}

TEST_F(Shm, ALaterDeadlineCostsTheOwnerNothing)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    pass(); // to see the client
    lawn_shm_start(client, timer, now_ + 100);
    EXPECT_EQ(pass(), 1U);
    for (unsigned i = 0; i < 50; ++i) {
        lawn_shm_start(client, timer, now_ + 200 + i);
        EXPECT_EQ(pass(), 0U);
    }
    EXPECT_TRUE(lawn_shm_stop(client, timer));
    EXPECT_FALSE(lawn_shm_stop(client, timer));
    lawn_shm_start(client, timer, now_ + 150);
    EXPECT_EQ(pass(), 0U);
    now_ += 149;
    pass();
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    ++now_;
    pass();
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.deadline, now_);
}

TEST_F(Shm, AnEarlierDeadlineIsBroughtToTheOwner)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    lawn_shm_start(client, timer, now_ + 1000);
    pass();
    lawn_shm_start(client, timer, now_ + 10);
    EXPECT_EQ(pass(), 1U);
    now_ += 10;
    pass();
    lawn_shm_event_t event = {};
    EXPECT_TRUE(lawn_shm_next(client, &event));
    lawn_shm_start(client, timer, 0); // past
    pass();
    pass();
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.deadline, 0U);
    lawn_shm_start(client, timer, LAWN_TIME_INFINITY);
    now_ = LAWN_TIME_INFINITY - 1;
    pass();
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_TRUE(lawn_shm_stop(client, timer));
}

// What the owner's function is called with, and what it is to return.
struct Expirations {
    std::vector<lawn_time_t> deadlines;
    lawn_time_t next = LAWN_TIME_INFINITY;
    lawn_shm_client_t *client = nullptr; // starts the timer meanwhile
    lawn_time_t start = 0;

    static lawn_time_t expired(void *arg, lawn_shm_timer_t timer,
                               uint64_t cookie, lawn_time_t deadline,
                               lawn_time_t now)
    {
        Expirations *const self = static_cast<Expirations *>(arg);
        EXPECT_EQ(cookie, 7U);
        EXPECT_GE(now, deadline);
        self->deadlines.push_back(deadline);
        if (self->client) {
            EXPECT_TRUE(lawn_shm_start(self->client, timer, self->start));
        }
        return self->next;
    }
};

TEST_F(Shm, TheOwnerMaySayWhenATimerExpiresNext)
{
    Expirations expirations;
    params_.expired = Expirations::expired;
    params_.arg = &expirations;
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client, 3);
    lawn_shm_set_cookie(client, timer, 7);
    const lawn_time_t begin = now_;
    lawn_shm_start(client, timer, begin + 100);
    pass();
    expirations.next = begin + 250;
    now_ = begin + 120;
    pass();
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event)) << "it goes on";
    now_ = begin + 249;
    pass();
    EXPECT_EQ(expirations.deadlines, std::vector<lawn_time_t>{begin + 100});
    // The client's own start, in the middle of it, is later than that.
    expirations.client = client;
    expirations.start = begin + 400;
    expirations.next = begin + 300;
    now_ = begin + 250;
    pass();
    ASSERT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.deadline, begin + 250);
    expirations.client = nullptr;
    expirations.next = LAWN_TIME_INFINITY;
    now_ = begin + 399;
    pass();
    EXPECT_EQ(expirations.deadlines.size(), 2U);
    now_ = begin + 400;
    pass();
    EXPECT_EQ(expirations.deadlines.back(), begin + 400);
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.cookie, 7U);
}

TEST_F(Shm, AnIdIsThatOfOneClient)
{
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_client_t *other = nullptr;
    ASSERT_EQ(lawn_shm_open(path_.c_str(), clock, this, &other), LAWN_OK);
    const uint64_t id = lawn_shm_id(other);
    EXPECT_NE(id, lawn_shm_id(client));
    EXPECT_NE(id, 0U);
    EXPECT_TRUE(lawn_shm_is_open(client, id));
    EXPECT_TRUE(lawn_shm_is_open(client, lawn_shm_id(client)));
    lawn_shm_close(other);
    EXPECT_TRUE(lawn_shm_is_open(client, id)) << "the owner has not seen it";
    pass();
    EXPECT_FALSE(lawn_shm_is_open(client, id));
    lawn_shm_client_t *const next = open_client();
    EXPECT_NE(lawn_shm_id(next), id);
    EXPECT_FALSE(lawn_shm_is_open(client, id)) << "another is in its place";
    EXPECT_TRUE(lawn_shm_is_open(client, lawn_shm_id(next)));
    EXPECT_FALSE(lawn_shm_is_open(client, 2ULL << 32)) << "no owner's";
    EXPECT_FALSE(lawn_shm_is_open(client, 99));
}

// An event that was not read yet is replaced by that of a later start.
TEST_F(Shm, AnEventTellsWhichStartItIsOf)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    const lawn_time_t first = now_ + 10;
    lawn_shm_start(client, timer, first);
    pass();
    now_ += 10;
    pass();
    lawn_shm_start(client, timer, first + 10);
    lawn_shm_event_t event = {};
    ASSERT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.deadline, first);
    pass();
    now_ += 10;
    pass();
    lawn_shm_start(client, timer, first + 20);
    pass();
    now_ += 10;
    pass();
    ASSERT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(event.deadline, first + 20);
    EXPECT_FALSE(lawn_shm_next(client, &event));
}

TEST_F(Shm, TimersAreGivenBack)
{
    own();
    lawn_shm_client_t *const client = open_client();
    std::vector<lawn_shm_timer_t> all;
    for (unsigned i = 0; i < 8; ++i) {
        all.push_back(alloc(client, i));
        lawn_shm_start(client, all[i], now_ + 10 * i);
    }
    lawn_shm_timer_t none = 0;
    EXPECT_EQ(lawn_shm_alloc(client, 0, &none), LAWN_ERR_BUSY);
    EXPECT_EQ(none, 0U);
    pass();
    now_ += 30;
    pass(); // four have expired, and were not read
    for (const lawn_shm_timer_t timer : all) {
        lawn_shm_release(client, timer);
    }
    EXPECT_EQ(lawn_shm_alloc(client, 0, &none), LAWN_ERR_BUSY);
    pass();
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    EXPECT_EQ(stats().timers, 0U);
    now_ += 1000;
    pass();
    for (unsigned i = 0; i < 8; ++i) {
        const lawn_shm_timer_t timer = alloc(client, 100 + i);
        lawn_shm_start(client, timer, now_);
    }
    pass();
    pass();
    unsigned count = 0;
    while (lawn_shm_next(client, &event)) {
        EXPECT_GE(event.cookie, 100U);
        ++count;
    }
    EXPECT_EQ(count, 8U);
}

// The pass that finds its client gone would find it due, too.
TEST_F(Shm, ATimerOfAClosedClientDoesNotExpire)
{
    Expirations expirations;
    params_.expired = Expirations::expired;
    params_.arg = &expirations;
    own();
    lawn_shm_client_t *const client = open_client();
    lawn_shm_start(client, alloc(client, 7), now_ + 100);
    lawn_shm_start(client, alloc(client, 7), now_ + 100);
    pass();
    EXPECT_EQ(stats().timers, 2U);
    now_ += 100;
    lawn_shm_close(client);
    clients_.clear();
    pass();
    EXPECT_TRUE(expirations.deadlines.empty());
    EXPECT_EQ(stats().timers, 0U);
    EXPECT_EQ(stats().clients, 0U);
}

TEST_F(Shm, ClientsDoNotSeeEachOther)
{
    own();
    lawn_shm_client_t *const first = open_client();
    lawn_shm_client_t *const second = open_client();
    const lawn_shm_timer_t one = alloc(first, 1);
    const lawn_shm_timer_t two = alloc(second, 2);
    EXPECT_NE(one, two);
    lawn_shm_start(first, one, now_);
    lawn_shm_start(second, two, now_);
    pass();
    pass();
    lawn_shm_event_t event = {};
    ASSERT_TRUE(lawn_shm_next(second, &event));
    EXPECT_EQ(event.cookie, 2U);
    EXPECT_FALSE(lawn_shm_next(second, &event));
    ASSERT_TRUE(lawn_shm_next(first, &event));
    EXPECT_EQ(event.cookie, 1U);
    EXPECT_EQ(stats().clients, 2U);
    open_client();
    lawn_shm_client_t *more = nullptr;
    EXPECT_EQ(lawn_shm_open(path_.c_str(), clock, this, &more), LAWN_ERR_BUSY);
    // Who closes leaves nothing.
    lawn_shm_start(first, one, now_ + 10);
    lawn_shm_close(first);
    clients_.erase(clients_.begin());
    pass();
    EXPECT_EQ(stats().clients, 2U);
    EXPECT_EQ(stats().timers, 1U);
    EXPECT_EQ(stats().deaths, 0U);
    now_ += 100;
    pass();
    lawn_shm_client_t *const third = open_client();
    EXPECT_FALSE(lawn_shm_next(third, &event));
}

TEST_F(Shm, TheOwnerSleepsUntilAnEarlierStart)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    const lawn_shm_timer_t other = alloc(client);
    const auto is_woken = [this] {
        pollfd fd = {lawn_engine_fd(engine_), POLLIN, 0};
        return poll(&fd, 1, 0) == 1;
    };
    pass();
    lawn_shm_start(client, timer, now_ + 1'000'000'000);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY); // a message
    pass();
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_woken());
    lawn_shm_start(client, timer, now_ + 2'000'000'000); // no message
    EXPECT_FALSE(is_woken());
    lawn_shm_start(client, other, now_ + 3'000'000'000); // one for later
    EXPECT_FALSE(is_woken());
    lawn_shm_start(client, other, now_ + 500'000'000);
    EXPECT_TRUE(is_woken());
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    pass();
    EXPECT_GT(lawn_engine_next(engine_), now_);
    EXPECT_LE(lawn_engine_next(engine_), now_ + 500'000'000);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_woken());
    lawn_shm_release(client, other);
    EXPECT_TRUE(is_woken());
}

TEST_F(Shm, AClientWaits)
{
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    pass();
    lawn_shm_wait(client, 0); // woken when it was seen
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_ERR_TIMED_OUT);
    lawn_shm_start(client, timer, now_);
    pass();
    pass();
    EXPECT_EQ(lawn_shm_wait(client, LAWN_TIME_INFINITY), LAWN_OK);
    lawn_shm_event_t event = {};
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_ERR_TIMED_OUT);
    // What was taken from the list counts as well as what is in it.
    lawn_shm_start(client, timer, now_);
    lawn_shm_start(client, alloc(client), now_);
    pass();
    pass();
    EXPECT_TRUE(lawn_shm_next(client, &event));
    EXPECT_EQ(lawn_shm_wait(client, LAWN_TIME_INFINITY), LAWN_OK);
    EXPECT_TRUE(lawn_shm_next(client, &event));
    lawn_shm_wait(client, 0); // woken for the first of them
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_ERR_TIMED_OUT);
    lawn_shm_destroy(shm_);
    shm_ = nullptr;
    EXPECT_EQ(lawn_shm_wait(client, LAWN_TIME_INFINITY), LAWN_ERR_NO_ELEM);
    EXPECT_FALSE(lawn_shm_start(client, timer, now_));
    EXPECT_FALSE(lawn_shm_stop(client, timer));
}

// It may have joined just after the owner looked, and started a timer that has
// expired since; and have gone to sleep, when nobody could wake it yet.
TEST_F(Shm, AClientIsWokenWhenItIsSeen)
{
    own();
    lawn_shm_client_t *const client = open_client();
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_ERR_TIMED_OUT);
    pass();
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_OK);
    EXPECT_EQ(lawn_shm_wait(client, 0), LAWN_ERR_TIMED_OUT);
}

// An hour back, and the timers keep what remained.
TEST_F(Shm, TheTimeGoesOnWhenTheClockGoesBack)
{
    now_ = 10'000'000'000'000;
    own();
    lawn_shm_client_t *const client = open_client();
    const lawn_shm_timer_t timer = alloc(client);
    pass();
    lawn_shm_start(client, timer, lawn_shm_time(client) + 5'000'000);
    pass();
    const lawn_time_t before = lawn_shm_time(client);
    now_ -= 3'600'000'000'000;
    EXPECT_GE(lawn_shm_time(client), before - 1'000'000); // not noticed yet
    pass();
    EXPECT_GE(lawn_shm_time(client), before);
    now_ += 3'000'000;
    EXPECT_GE(lawn_shm_time(client), before + 3'000'000);
    EXPECT_LE(lawn_shm_time(client), before + 4'000'000);
    now_ += 1'999'999;
    pass();
    lawn_shm_event_t event = {};
    EXPECT_FALSE(lawn_shm_next(client, &event));
    ++now_;
    pass();
    EXPECT_TRUE(lawn_shm_next(client, &event));
}

// Against a map of what must be.
TEST_F(Shm, DoesWhatAModelDoes)
{
    params_.timers = 64;
    engine_params_.budget = 5;
    own();
    lawn_shm_client_t *const clients[] = {open_client(), open_client()};
    struct Expected {
        lawn_shm_client_t *client;
        lawn_time_t deadline = LAWN_TIME_INFINITY; // that it has, or had
        bool runs = false;
        unsigned early = 0;
    };
    std::map<lawn_shm_timer_t, Expected> all;
    std::mt19937 random(3);
    uint64_t expired = 0;
    for (unsigned step = 0; step < 60'000; ++step) {
        lawn_shm_client_t *const client = clients[random() % 2];
        const unsigned what = random() % 16;
        auto it = all.begin();
        if (!all.empty()) {
            std::advance(it, random() % all.size());
        }
        if (what == 0 && all.size() < 50) {
            lawn_shm_timer_t timer = 0;
            if (lawn_shm_alloc(client, step, &timer) == LAWN_OK) {
                ASSERT_EQ(all.count(timer), 0U);
                all[timer].client = client;
            }
        } else if (what == 1 && all.size() > 30) {
            lawn_shm_release(it->second.client, it->first);
            all.erase(it);
        } else if (what < 8 && !all.empty()) {
            it->second.deadline = now_ + random() % 200;
            it->second.runs = true;
            EXPECT_TRUE(lawn_shm_start(it->second.client, it->first,
                                       it->second.deadline));
        } else if (what < 10 && !all.empty()) {
            const bool was = lawn_shm_stop(it->second.client, it->first);
            EXPECT_TRUE(it->second.runs || !was);
            it->second.runs = it->second.runs && !was;
        } else if (what < 13) {
            now_ += random() % 20;
            pass();
        } else {
            lawn_shm_event_t event;
            while (lawn_shm_next(client, &event)) {
                ASSERT_EQ(all.count(event.timer), 1U);
                Expected &timer = all[event.timer];
                ASSERT_EQ(timer.client, client);
                ASSERT_LE(event.deadline, now_);
                if (timer.runs && event.deadline == timer.deadline &&
                    !lawn_shm_stop(client, event.timer)) {
                    timer.runs = false;
                }
                ++expired;
            }
        }
    }
    now_ += 1000;
    for (unsigned i = 0; i < 100; ++i) {
        pass();
    }
    for (const auto &[number, timer] : all) {
        EXPECT_FALSE(lawn_shm_stop(timer.client, number)) << "lost";
    }
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
    EXPECT_GT(expired, 1000U);
}

TEST_F(ShmDeathTest, AForeignTimerIsNotStarted)
{
    own();
    lawn_shm_client_t *const client = open_client();
    EXPECT_MISUSE(EXPECT_FALSE(lawn_shm_start(client, 0, 1)), "is_own");
    EXPECT_MISUSE(EXPECT_FALSE(lawn_shm_start(client, 5, 1)), "is_own");
    EXPECT_MISUSE(EXPECT_FALSE(lawn_shm_stop(client, 9000)), "is_own");
    EXPECT_MISUSE(lawn_shm_release(client, 5), "is_own");
    EXPECT_MISUSE(lawn_shm_set_cookie(client, 5, 1), "is_own");
    EXPECT_EQ(stats().timers, 0U);
}

} // namespace
