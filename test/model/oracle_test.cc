// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lawn against ordered maps, under random operations from a seed: the same
// timers must fire at the same advance, and those of one TTL in the order of
// their starts.
//
// LAWN_TEST_SEED replays one seed; LAWN_TEST_SCALE is the share of operations
// to run in percent (100), for runs under an instrument.

#include <lawn/timer.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace
{

uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *const text = getenv(name);
    return text ? strtoull(text, nullptr, 0) : otherwise;
}

class Oracle
{
public:
    // A timer that knows its place in the model.
    struct Entry {
        lawn_timer_t timer; // first: the callback's timer is its entry
        Oracle *oracle;
        size_t index;
    };

    struct Start {
        lawn_time_t ttl;
        uint64_t number;
    };

    Oracle(uint64_t seed, size_t timers) : random_(seed)
    {
        lawn_params_t params = {};
        params.max_moves = max_moves_ = seed % 4 == 0 ? 1 + any_of(40) : 0;
        EXPECT_EQ(lawn_create(&params, &lawn_), LAWN_OK);
        clock_ = any_of(4) == 0 ? UINT64_MAX - magnitude(62) : magnitude(40);
        max_jump_bits_ = 1 + any_of(62);
        max_ttl_bits_ = 1 + any_of(63);
        few_ttls_ = any_of(3) == 0;
        for (size_t i = 0; i < timers; ++i) {
            entries_.push_back(nullptr);
            renew(i);
        }
        places_.resize(timers, model_.end());
        latest_.resize(timers);
        for (int i = 0; i < 4; ++i) {
            favourite_ttls_.push_back(magnitude(max_ttl_bits_));
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
    // What runs with one TTL: by number of the start, the timer.
    using Starts = std::map<uint64_t, size_t>;

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
        const auto by_ttl = by_ttl_.find(latest_[index].ttl);
        by_ttl->second.erase(latest_[index].number);
        if (by_ttl->second.empty()) {
            by_ttl_.erase(by_ttl);
        }
        return true;
    }

    void model_insert(size_t index, lawn_time_t deadline)
    {
        places_[index] = model_.emplace(deadline, index);
        by_ttl_[latest_[index].ttl].emplace(latest_[index].number, index);
    }

    // One operation on a random timer, in or out of a pass.
    void act()
    {
        const size_t index = any_of(static_cast<unsigned>(entries_.size()));
        lawn_timer_t *const timer = &entries_[index]->timer;
        const unsigned choice = any_of(100);
        if (choice < 70) {
            start(index);
        } else if (choice < 80) {
            EXPECT_EQ(lawn_timer_pause(lawn_, timer), model_remove(index));
        } else {
            EXPECT_EQ(lawn_timer_stop(lawn_, timer), model_remove(index));
            if (choice < 90) {
                renew(index); // frees the memory: the lawn must not look
            }
        }
        if (!lawn_timer_is_active(&entries_[index]->timer)) {
            EXPECT_EQ(lawn_timer_deadline(&entries_[index]->timer),
                      LAWN_TIME_INFINITY);
        }
    }

    void start(size_t index)
    {
        lawn_timer_t *const timer = &entries_[index]->timer;
        const lawn_time_t after = ttl();
        const lawn_time_t now = some_now();
        const lawn_time_t deadline =
            after > UINT64_MAX - now_ ? UINT64_MAX : now_ + after;
        lawn_timer_start(lawn_, timer, now, after);
        model_remove(index);
        latest_[index] = {after, ++starts_};
        if (in_pass_ && after == 0) {
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
        pass_ = std::min(now_, LAWN_TIME_INFINITY - 1);
        in_pass_ = true;
        const unsigned result = lawn_advance(lawn_, now, budget);
        in_pass_ = false;
        ASSERT_EQ(result, fired_ - before);
        if (budget != 0) {
            ASSERT_LE(result, budget);
        }
        if (max_moves_ != 0 && something_is_due()) {
            ASSERT_LE(lawn_next(lawn_), pass_);
        } else if (budget == 0 || result < budget) {
            ASSERT_FALSE(something_is_due()) << "late";
            if (deferred_.empty() && max_moves_ == 0) {
                ASSERT_GT(lawn_next(lawn_), pass_);
            }
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
        const unsigned max_moves = any_of(2) == 0 ? 0 : 1 + any_of(20);
        const bool is_settled = lawn_settle(lawn_, max_moves);
        const lawn_time_t next = lawn_next(lawn_);
        const lawn_time_t earliest =
            model_.empty() ? LAWN_TIME_INFINITY : model_.begin()->first;
        if (is_settled) {
            ASSERT_EQ(next, earliest);
        } else {
            ASSERT_LE(next, earliest);
            ASSERT_TRUE(max_moves != 0 || next <= now_);
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
        EXPECT_LE(lawn_timer_deadline(&entry->timer), now) << "early";
        EXPECT_FALSE(lawn_timer_is_active(&entry->timer));
        ASSERT_NE(places_[index], model_.end()) << "not running";
        EXPECT_EQ(by_ttl_[latest_[index].ttl].begin()->second, index)
            << "out of order";
        model_remove(index);
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
        EXPECT_TRUE(entry->oracle->model_remove(entry->index));
        ++entry->oracle->drained_;
    }

    std::mt19937_64 random_;
    lawn_t *lawn_ = nullptr;
    lawn_time_t clock_ = 0;
    lawn_time_t pass_ = 0;   // that of the latest advance
    lawn_time_t now_ = 0;    // the latest that the lawn has seen
    unsigned max_moves_ = 0; // of the lawn
    unsigned max_jump_bits_ = 0;
    unsigned max_ttl_bits_ = 0;
    bool few_ttls_ = false;
    bool in_pass_ = false;
    size_t fired_ = 0;
    size_t drained_ = 0;
    std::vector<std::unique_ptr<Entry>> entries_;
    std::vector<lawn_time_t> favourite_ttls_;
    std::vector<std::pair<lawn_time_t, size_t>> deferred_;
    std::vector<Model::iterator> places_;
    std::vector<Start> latest_; // of each timer
    std::map<lawn_time_t, Starts> by_ttl_;
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
