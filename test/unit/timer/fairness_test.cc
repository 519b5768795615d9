// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Under lasting overload, by timers that start themselves again for ever and
// alone eat the whole budget of every advance, no timer that is due waits for
// longer than lawn/timer.h says: 8 (n / budget + q) + 8 advances with n timers
// and q queues.

#include "timer/lawn_impl.h"

#include <lawn/observer.h>
#include <lawn/queue.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace
{

// Which timers eat the budget, and how many of each.
struct Load {
    size_t in_slots;      // with a TTL that is over at each advance
    size_t due;           // with a TTL of 0
    size_t in_queue;      // of a short TTL
    size_t in_zero_queue; // of a TTL of 0
};

class Overload
{
public:
    Overload(unsigned budget, lawn_time_t step, const Load &load)
        : budget_(budget), step_(step)
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        for (const lawn_time_t ttl :
             {step / 2, lawn_time_t{0}, 50 * step, lawn_time_t{0}}) {
            queues_.push_back(nullptr);
            EXPECT_EQ(lawn_queue_create(lawn_, ttl, &queues_.back()), LAWN_OK);
        }
        // Those that wait come first in some lists, in others last.
        add_victims();
        add(load.in_slots, Kind::slot);
        add(load.due, Kind::due);
        add(load.in_queue, Kind::queue);
        add(load.in_zero_queue, Kind::zero_queue);
        add_victims();
    }

    ~Overload()
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
    }

    Overload(const Overload &) = delete;
    Overload &operator=(const Overload &) = delete;

    // The longest that a timer has waited, in advances after the first that it
    // was due in.
    uint64_t longest_wait(uint64_t advances)
    {
        while (index_ < advances) {
            ++index_;
            const lawn::Work work =
                lawn::advance_as_of(lawn_, index_ * step_, budget_);
            EXPECT_LE(work.touched, budget_);
            has_idled_ |= work.touched < budget_;
        }
        for (const Item &item : items_) {
            note_wait(item);
        }
        return longest_;
    }

    uint64_t bound() const
    {
        return 8 * (items_.size() / budget_ + queues_.size()) + 8;
    }

    bool has_idled() const
    {
        return has_idled_;
    }

private:
    enum class Kind { slot, due, queue, zero_queue, victim, queued_victim };

    struct Item {
        lawn_timer_t timer; // first
        Overload *owner;
        Kind kind;
        uint64_t due_at; // the first advance that may fire it
    };

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        Item *const item = reinterpret_cast<Item *>(timer);
        item->owner->note_wait(*item);
        item->owner->start(item, now);
    }

    void note_wait(const Item &item)
    {
        if (lawn_timer_is_active(&item.timer) && item.due_at > index_) {
            return;
        }
        longest_ = std::max(longest_, index_ - std::min(index_, item.due_at));
    }

    void add(size_t count, Kind kind)
    {
        for (size_t i = 0; i < count; ++i) {
            items_.emplace_back();
            Item *const item = &items_.back();
            lawn_timer_init(&item->timer, on_expired);
            item->owner = this;
            item->kind = kind;
            start(item, 0);
        }
    }

    void add_victims()
    {
        add(20, Kind::victim);
        add(20, Kind::queued_victim);
    }

    void start(Item *item, lawn_time_t now)
    {
        lawn_timer_t *const timer = &item->timer;
        switch (item->kind) {
        case Kind::slot:
            lawn_timer_start(lawn_, timer, now, 1 + random_() % step_);
            break;
        case Kind::due:
            lawn_timer_start(lawn_, timer, now, 0);
            break;
        case Kind::queue:
            lawn_queue_start(queues_[0], timer, now);
            break;
        case Kind::zero_queue:
            lawn_queue_start(queues_[1], timer, now);
            break;
        case Kind::victim:
            start_anywhere(timer, now);
            break;
        case Kind::queued_victim:
            lawn_queue_start(queues_[random_() % queues_.size()], timer, now);
            break;
        }
        const lawn_time_t deadline = lawn_timer_deadline(timer);
        item->due_at = std::max(index_ + 1, (deadline + step_ - 1) / step_);
    }

    // Any class that comes up in time, `due`, and lazily re-armed.
    void start_anywhere(lawn_timer_t *timer, lawn_time_t now)
    {
        const lawn_time_t range = 200 * step_;
        if (random_() % 4 == 0) {
            lawn_timer_start_at(lawn_, timer, now, now - std::min(now, step_));
            return;
        }
        const lawn_time_t ttl = 1 + (random_() % range >> random_() % 24);
        if (random_() % 4 == 0) {
            lawn_timer_start(lawn_, timer, now, 1 + ttl / 2);
            if (random_() % 2 == 0) {
                lawn_timer_pause(lawn_, timer);
            }
        }
        lawn_timer_start(lawn_, timer, now, ttl);
    }

    unsigned budget_;
    lawn_time_t step_; // of the clock, from one advance to the next
    lawn_t *lawn_ = nullptr;
    std::vector<lawn_queue_t *> queues_;
    std::deque<Item> items_;
    std::mt19937_64 random_{1};
    uint64_t index_ = 0; // of the advance
    uint64_t longest_ = 0;
    bool has_idled_ = false;
};

class Fairness : public testing::TestWithParam<unsigned>
{
protected:
    void expect_fair(const Load &load)
    {
        const unsigned budget = GetParam();
        for (const lawn_time_t step : {lawn_time_t{10}, lawn_time_t{1} << 40}) {
            SCOPED_TRACE(step);
            Overload overload(budget, step, load);
            const uint64_t bound = overload.bound();
            EXPECT_LE(overload.longest_wait(3 * bound), bound);
            const size_t hogs =
                load.in_slots + load.due + load.in_queue + load.in_zero_queue;
            EXPECT_FALSE(hogs >= budget && overload.has_idled());
        }
    }
};

TEST_P(Fairness, AgainstOneKindOfTimer)
{
    const unsigned budget = GetParam();
    for (const size_t count : {budget, 2 * budget + 1, 400U}) {
        SCOPED_TRACE(count);
        expect_fair({count, 0, 0, 0});
        expect_fair({0, count, 0, 0});
        expect_fair({0, 0, count, 0});
        expect_fair({0, 0, 0, count});
    }
}

TEST_P(Fairness, AgainstMixes)
{
    const unsigned budget = GetParam();
    for (const size_t count : {budget, 3 * budget, 100U}) {
        SCOPED_TRACE(count);
        expect_fair({count, count, 0, 0});
        expect_fair({count, 0, count, 0});
        expect_fair({0, count, count, 0});
        expect_fair({0, count, 0, count});
        expect_fair({0, 0, count, count});
        expect_fair({count, count, count, count});
    }
}

// Timers that leave a queue, or the slots, a small rest of each budget.
TEST_P(Fairness, AgainstThoseThatLeaveALittle)
{
    const unsigned budget = GetParam();
    for (const size_t most : {budget - 1, budget, budget + 1}) {
        SCOPED_TRACE(most);
        for (const size_t waiting : {10U, 500U}) {
            expect_fair({most, waiting, 0, 0});
            expect_fair({most, 0, waiting, 0});
            expect_fair({0, most, waiting, 0});
            expect_fair({0, most, 0, waiting});
            expect_fair({waiting, most, 0, 0});
            expect_fair({waiting, 0, most, 0});
            expect_fair({0, waiting, most, 0});
            expect_fair({waiting, 0, 0, most});
        }
    }
}

struct Counter {
    lawn_timer_t timer; // first
    unsigned fired;
    lawn_t *lawn;
};

void count(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    ++reinterpret_cast<Counter *>(timer)->fired;
}

// A queue and a timer that waits. The program uses the queue between advances.
class FairnessOfQueue : public testing::TestWithParam<unsigned>
{
protected:
    FairnessOfQueue()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        EXPECT_EQ(lawn_queue_create(lawn_, 0, &queue_), LAWN_OK);
        lawn_timer_init(&victim_.timer, count);
    }

    ~FairnessOfQueue() override
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
    }

    Counter *start_in_queue()
    {
        counters_.emplace_back();
        lawn_timer_init(&counters_.back().timer, count);
        lawn_queue_start(queue_, &counters_.back().timer, now_);
        return &counters_.back();
    }

    // How many advances it takes until the victim fires, if `between` is called
    // after each, and the clock goes on by `step`; ten times the bound at most.
    template <class Between> unsigned wait(lawn_time_t step, Between between)
    {
        const unsigned budget = GetParam();
        for (unsigned i = 0; i < 3 * budget; ++i) {
            start_in_queue();
        }
        lawn_timer_start(lawn_, &victim_.timer, now_, 0);
        unsigned advances = 0;
        while (victim_.fired == 0 && advances < 10 * bound) {
            now_ += step;
            lawn_advance(lawn_, now_, budget);
            between();
            ++advances;
        }
        return advances;
    }

    // Of some seven times the budget, which is more than run here at once.
    static constexpr unsigned bound = 8 * (7 + 1) + 8;

    lawn_t *lawn_ = nullptr;
    lawn_queue_t *queue_ = nullptr;
    lawn_time_t now_ = 100;
    std::deque<Counter> counters_;
    Counter victim_ = {};
};

// The turn of the queue, which each budget interrupts, must end, though its
// head has lost its deadline.
TEST_P(FairnessOfQueue, WhoseHeadIsPausedAgainAndAgain)
{
    size_t head = 0;
    const unsigned advances = wait(1, [&] {
        while (!lawn_timer_is_active(&counters_[head].timer)) {
            ++head;
        }
        lawn_timer_pause(lawn_, &counters_[head].timer);
        for (unsigned i = 0; i < GetParam(); ++i) {
            start_in_queue();
        }
    });
    EXPECT_LE(advances, bound);
}

// As many as the budget are started and paused between two advances.
TEST_P(FairnessOfQueue, OfWhichAllArePaused)
{
    const unsigned advances = wait(1, [&] {
        for (unsigned i = 0; i < GetParam(); ++i) {
            lawn_timer_pause(lawn_, &start_in_queue()->timer);
        }
    });
    EXPECT_LE(advances, bound);
}

// The clock may stand still.
TEST_P(FairnessOfQueue, WhileTheClockStandsStill)
{
    const unsigned advances = wait(0, [&] {
        for (unsigned i = 0; i < GetParam(); ++i) {
            start_in_queue();
        }
    });
    EXPECT_LE(advances, bound);
}

// A budget that ends at a paused timer does not end the turn of the queue. If
// it did, all others would come before each few timers of the queue.
TEST_P(FairnessOfQueue, HalfOfWhichIsPaused)
{
    const unsigned budget = GetParam();
    const unsigned count_of_each = 150 * budget;
    std::mt19937_64 random{1};
    std::vector<Counter *> queued;
    for (unsigned i = 0; i < count_of_each; ++i) {
        queued.push_back(start_in_queue());
    }
    for (unsigned i = 0; i < count_of_each; ++i) {
        if (random() % 2 == 0) {
            lawn_timer_pause(lawn_, &queued[i]->timer);
        }
    }
    const auto restart = [](lawn_timer_t *timer, lawn_time_t now) {
        Counter *const counter = reinterpret_cast<Counter *>(timer);
        lawn_timer_start(counter->lawn, timer, now, 0);
    };
    for (unsigned i = 0; i < count_of_each; ++i) {
        counters_.emplace_back();
        counters_.back().lawn = lawn_;
        lawn_timer_init(&counters_.back().timer, restart);
        lawn_timer_start(lawn_, &counters_.back().timer, now_, 0);
    }
    unsigned advances = 0;
    while (lawn_queue_count(queue_) > 0 && advances < 100000) {
        lawn_advance(lawn_, ++now_, budget);
        ++advances;
    }
    EXPECT_LE(advances, 8 * (2 * count_of_each / budget + 1) + 8);
}

// It is destroyed in the middle of its turn: an observer is told of its timers
// alone.
TEST_P(FairnessOfQueue, OfWhichNoMarkIsSeen)
{
    struct Log : lawn_observer_t {
        unsigned stops;
    } log = {};
    log.event = [](lawn_observer_t *self, lawn_event_t event,
                   const lawn_timer_t *, lawn_time_t, lawn_time_t) {
        static_cast<Log *>(self)->stops += event == LAWN_EVENT_STOP;
    };
    for (unsigned i = 0; i < 3 * GetParam(); ++i) {
        start_in_queue();
    }
    lawn_advance(lawn_, now_, GetParam());
    ASSERT_EQ(lawn_observe(lawn_, &log), LAWN_OK);
    lawn_queue_destroy(queue_);
    EXPECT_EQ(log.stops, 2 * GetParam());
    EXPECT_EQ(lawn_unobserve(lawn_, &log), LAWN_OK);
}

INSTANTIATE_TEST_SUITE_P(WithBudget, FairnessOfQueue,
                         testing::Values(1U, 2U, 7U, 64U));

INSTANTIATE_TEST_SUITE_P(WithBudget, Fairness,
                         testing::Values(1U, 2U, 7U, 64U));

} // namespace
