// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lawn and its queues against an ordered map, under random operations from
// a seed: the same timers must fire at the same advance, those of a queue in
// the order of their starts, and no advance may touch more than its budget.
//
// LAWN_TEST_SEED replays one seed; LAWN_TEST_SCALE is the share of operations
// to run in percent (100), for runs under an instrument.

#include "../environment.h"
#include "timer/lawn_impl.h"

#include <lawn/queue.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace
{

using lawn_test::environment;

class Oracle
{
public:
    // A timer that knows its place in the model.
    struct Entry {
        lawn_timer_t timer; // first: the callback's timer is its entry
        Oracle *oracle;
        size_t index;
    };

    // Of the latest start.
    struct Start {
        size_t queue; // or none
        uint64_t number;
    };

    Oracle(uint64_t seed, size_t timers) : random_(seed)
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        clock_ = any_of(4) == 0 ? UINT64_MAX - magnitude(62) : magnitude(40);
        uses_queues_ = any_of(2) == 0;
        max_jump_bits_ = 1 + any_of(62);
        max_ttl_bits_ = 1 + any_of(63);
        few_ttls_ = any_of(3) == 0;
        for (size_t i = 0; i < timers; ++i) {
            entries_.push_back(nullptr);
            renew(i);
        }
        places_.resize(timers, model_.end());
        latest_.resize(timers, {no_queue, 0});
        for (int i = 0; i < 4; ++i) {
            favourite_ttls_.push_back(magnitude(max_ttl_bits_));
        }
        for (Fifo &fifo : queues_) {
            create(&fifo);
        }
    }

    ~Oracle()
    {
        const bool drain = any_of(2) == 0;
        if (drain) {
            const size_t running = model_.size();
            EXPECT_EQ(lawn_drain(lawn_, on_drained), running);
            EXPECT_EQ(drained_, running);
            EXPECT_EQ(lawn_count(lawn_), 0U);
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        }
        for (const Fifo &fifo : queues_) {
            EXPECT_EQ(lawn_queue_count(fifo.queue), fifo.model.size());
            if (any_of(2) == 0) {
                lawn_queue_destroy(fifo.queue);
            }
        }
        lawn_destroy(lawn_);
        for (const auto &entry : entries_) {
            EXPECT_FALSE(lawn_timer_is_active(&entry->timer));
        }
    }

    Oracle(const Oracle &) = delete;
    Oracle &operator=(const Oracle &) = delete;

    void step()
    {
        const unsigned choice = any_of(100);
        if (choice < 60) {
            act();
        } else if (choice < 64) {
            settle();
        } else {
            clock_ += std::min(jump(), UINT64_MAX - clock_);
            advance();
        }
        if (any_of(16) == 0) {
            ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
        }
    }

    size_t fired() const
    {
        return fired_;
    }

    const std::set<uint64_t> &ttls() const
    {
        return ttls_;
    }

private:
    using Model = std::multimap<lawn_time_t, size_t>; // by deadline
    // What runs in a queue: by number of the start, the timer.
    struct Fifo {
        lawn_queue_t *queue = nullptr;
        std::map<uint64_t, size_t> model;
    };

    static constexpr size_t no_queue = 3;
    static constexpr lawn_time_t never = LAWN_TIME_INFINITY - 1;

    void create(Fifo *fifo)
    {
        ASSERT_EQ(lawn_queue_create(lawn_, ttl(), &fifo->queue), LAWN_OK);
    }

    unsigned any_of(unsigned count)
    {
        return static_cast<unsigned>(random_() % count);
    }

    // 0 to 2^bits, each power of two and its neighbours as likely as the
    // numbers in between.
    uint64_t magnitude(unsigned bits)
    {
        const uint64_t power = uint64_t{1} << any_of(bits + 1);
        switch (any_of(4)) {
        case 0:
            return power - 1 + any_of(3);
        case 1:
            return any_of(40);
        default:
            return power / 2 + random_() % (power / 2 + 1);
        }
    }

    lawn_time_t jump()
    {
        return any_of(4) == 0 ? any_of(3) : magnitude(max_jump_bits_);
    }

    lawn_time_t ttl()
    {
        lawn_time_t ttl = 0;
        if (few_ttls_ && any_of(8) != 0) {
            ttl = favourite_ttls_[any_of(4)];
        } else if (any_of(100) == 0) {
            ttl = UINT64_MAX - any_of(3);
        } else {
            ttl = magnitude(max_ttl_bits_);
        }
        ttls_.insert(ttl);
        return ttl;
    }

    // The time, or some time ago: the lawn must then take the latest it saw.
    lawn_time_t some_now()
    {
        const lawn_time_t now =
            any_of(16) == 0 ? clock_ - std::min(clock_, magnitude(40)) : clock_;
        now_ = std::max(now_, now);
        return now;
    }

    void renew(size_t index)
    {
        entries_[index] = std::make_unique<Entry>();
        Entry *const entry = entries_[index].get();
        lawn_timer_init(&entry->timer, on_expired);
        entry->oracle = this;
        entry->index = index;
    }

    bool model_remove(size_t index)
    {
        for (size_t i = 0; i < deferred_.size(); ++i) {
            if (deferred_[i].second == index) {
                deferred_.erase(deferred_.begin() + static_cast<long>(i));
                return true;
            }
        }
        if (places_[index] == model_.end()) {
            return false;
        }
        model_.erase(places_[index]);
        places_[index] = model_.end();
        return true;
    }

    // Runs or is deferred; then also in its queue.
    bool forget(size_t index)
    {
        const Start &start = latest_[index];
        if (start.queue != no_queue) {
            queues_[start.queue].model.erase(start.number);
        }
        return model_remove(index);
    }

    void model_insert(size_t index, lawn_time_t deadline)
    {
        places_[index] = model_.emplace(deadline, index);
    }

    // One operation on a random timer, in or out of a pass.
    void act()
    {
        const size_t index = any_of(static_cast<unsigned>(entries_.size()));
        lawn_timer_t *const timer = &entries_[index]->timer;
        const unsigned choice = any_of(100);
        if (choice < 70) {
            start(index);
        } else if (choice == 99 && any_of(8) == 0) {
            renew_queue(&queues_[any_of(no_queue)]);
            return;
        } else if (choice < 80) {
            EXPECT_EQ(lawn_timer_pause(lawn_, timer), forget(index));
        } else {
            EXPECT_EQ(lawn_timer_stop(lawn_, timer), forget(index));
            if (choice < 90) {
                renew(index); // frees the memory: the lawn must not look
            }
        }
        if (!lawn_timer_is_active(&entries_[index]->timer)) {
            EXPECT_EQ(lawn_timer_deadline(&entries_[index]->timer),
                      LAWN_TIME_INFINITY);
        }
    }

    void renew_queue(Fifo *fifo)
    {
        lawn_queue_destroy(fifo->queue);
        for (const auto &start : fifo->model) {
            EXPECT_TRUE(model_remove(start.second));
            EXPECT_FALSE(lawn_timer_is_active(&entries_[start.second]->timer));
            latest_[start.second].queue = no_queue;
        }
        fifo->model.clear();
        create(fifo);
    }

    void start(size_t index)
    {
        lawn_timer_t *const timer = &entries_[index]->timer;
        const lawn_time_t now = some_now();
        // The alarm of a queue that has lost its timers may stay.
        leaves_remains_ |= in_pass_;
        const size_t q = uses_queues_ ? any_of(no_queue + 1) : no_queue;
        lawn_time_t after =
            q == no_queue ? ttl() : lawn_queue_ttl(queues_[q].queue);
        lawn_time_t deadline =
            after > UINT64_MAX - now_ ? UINT64_MAX : now_ + after;
        forget(index);
        latest_[index] = {q, ++starts_};
        if (q != no_queue) {
            queues_[q].model.emplace(starts_, index);
            lawn_queue_start(queues_[q].queue, timer, now);
        } else if (any_of(4) != 0) {
            lawn_timer_start(lawn_, timer, now, after);
        } else {
            if (any_of(4) == 0) {
                deadline = now_ - std::min(now_, magnitude(20));
            }
            lawn_timer_start_at(lawn_, timer, now, deadline);
        }
        deadline = deadline < never ? deadline : LAWN_TIME_INFINITY;
        if (in_pass_ && deadline <= now_) {
            deferred_.emplace_back(deadline, index);
        } else {
            model_insert(index, deadline);
        }
        ASSERT_TRUE(lawn_timer_is_active(timer));
        ASSERT_EQ(lawn_timer_deadline(timer), deadline);
        if (!in_pass_) {
            ASSERT_LE(lawn_next(lawn_), model_.begin()->first);
        }
    }

    bool something_is_due() const
    {
        return !model_.empty() && model_.begin()->first <= pass_;
    }

    void advance()
    {
        const unsigned budget = any_of(3) == 0 ? 0 : 1 + any_of(50);
        const size_t before = fired_;
        const lawn_time_t now = some_now();
        pass_ = std::min(now_, never - 1);
        in_pass_ = true;
        leaves_remains_ = false;
        lawn::Work work = {};
        if (any_of(2) == 0) {
            work.fired = lawn_advance(lawn_, now, budget);
        } else {
            work = lawn::advance_as_of(lawn_, now_, budget);
            ASSERT_GE(work.touched, work.fired);
        }
        in_pass_ = false;
        ASSERT_EQ(work.fired, fired_ - before);
        if (budget != 0) {
            ASSERT_LE(work.touched, budget);
            ASSERT_LE(work.fired, budget);
        }
        if (budget == 0) {
            ASSERT_FALSE(something_is_due()) << "late";
            ASSERT_TRUE(leaves_remains_ || lawn_next(lawn_) > pass_);
        }
        for (const auto &[deadline, index] : deferred_) {
            model_insert(index, deadline);
        }
        deferred_.clear();
        ASSERT_EQ(lawn_count(lawn_), model_.size());
        if (model_.empty()) {
            ASSERT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
        } else {
            ASSERT_LE(lawn_next(lawn_), model_.begin()->first);
        }
    }

    void settle()
    {
        const unsigned most = any_of(2) == 0 ? 0 : 1 + any_of(20);
        const bool is_settled = lawn_settle(lawn_, most);
        const lawn_time_t next = lawn_next(lawn_);
        const lawn_time_t earliest =
            model_.empty() ? LAWN_TIME_INFINITY : model_.begin()->first;
        if (is_settled) {
            ASSERT_EQ(next, earliest);
        } else {
            ASSERT_LE(next, earliest);
            ASSERT_TRUE(most != 0 || earliest <= now_);
        }
    }

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        Entry *const entry = reinterpret_cast<Entry *>(timer);
        entry->oracle->expired(entry, now);
    }

    void expired(Entry *entry, lawn_time_t now)
    {
        const size_t index = entry->index;
        ++fired_;
        EXPECT_EQ(now, pass_);
        EXPECT_FALSE(lawn_timer_is_active(&entry->timer));
        ASSERT_NE(places_[index], model_.end()) << "not running";
        const lawn_time_t deadline = places_[index]->first;
        EXPECT_LE(deadline, now) << "early";
        if (deadline != 0) {
            EXPECT_EQ(lawn_timer_deadline(&entry->timer), deadline);
        }
        if (latest_[index].queue != no_queue) {
            EXPECT_EQ(queues_[latest_[index].queue].model.begin()->second,
                      index)
                << "out of order";
        }
        forget(index);
        for (unsigned i = any_of(4); i > 0; --i) {
            act();
        }
        if (any_of(4) == 0) {
            start(index);
        }
        if (any_of(64) == 0) {
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        }
    }

    static void on_drained(lawn_timer_t *timer, lawn_time_t)
    {
        Entry *const entry = reinterpret_cast<Entry *>(timer);
        EXPECT_FALSE(lawn_timer_is_active(timer));
        EXPECT_TRUE(entry->oracle->forget(entry->index));
        ++entry->oracle->drained_;
    }

    std::mt19937_64 random_;
    lawn_t *lawn_ = nullptr;
    lawn_time_t clock_ = 0;
    lawn_time_t pass_ = 0; // that of the latest advance
    lawn_time_t now_ = 0;  // the latest that the lawn has seen
    unsigned max_jump_bits_ = 0;
    unsigned max_ttl_bits_ = 0;
    bool few_ttls_ = false;
    bool uses_queues_ = false;
    bool in_pass_ = false;
    bool leaves_remains_ = false;
    size_t fired_ = 0;
    size_t drained_ = 0;
    std::vector<std::unique_ptr<Entry>> entries_;
    std::vector<lawn_time_t> favourite_ttls_;
    std::vector<std::pair<lawn_time_t, size_t>> deferred_;
    std::vector<Model::iterator> places_;
    std::vector<Start> latest_; // of each timer
    Fifo queues_[no_queue];
    uint64_t starts_ = 0;
    std::set<uint64_t> ttls_;
    Model model_;
};

TEST(Oracle, FiresAsTheModelSays)
{
    constexpr uint64_t operations_per_seed = 4000;
    const uint64_t scale = environment("LAWN_TEST_SCALE", 100);
    const uint64_t only = environment("LAWN_TEST_SEED", 0);
    const uint64_t seeds = only != 0 ? 1 : std::max<uint64_t>(5 * scale, 10);
    std::set<uint64_t> ttls;
    size_t fired = 0;
    for (uint64_t i = 0; i < seeds; ++i) {
        const uint64_t seed = only != 0 ? only : i + 1;
        SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
        Oracle oracle(seed, seed % 10 == 0 ? 3000 : 1 + seed % 200);
        for (uint64_t n = 0; n < operations_per_seed; ++n) {
            oracle.step();
            if (HasFatalFailure() || HasNonfatalFailure()) {
                return;
            }
        }
        ttls.insert(oracle.ttls().begin(), oracle.ttls().end());
        fired += oracle.fired();
    }
    EXPECT_GT(fired, seeds * operations_per_seed / 100);
    if (only == 0) {
        EXPECT_GE(ttls.size(), 1000U);
        EXPECT_EQ(*ttls.begin(), 0U);
        EXPECT_GE(*ttls.rbegin(), uint64_t{1} << 63);
    }
    RecordProperty("fired", std::to_string(fired));
    RecordProperty("distinct_ttls", std::to_string(ttls.size()));
}

} // namespace
