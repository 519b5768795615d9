// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A scheme against a model that knows only deadlines, under random operations
// from a seed.

#ifndef LAWN_TEST_UNIT_SCHEMES_TRIAL_H
#define LAWN_TEST_UNIT_SCHEMES_TRIAL_H

#include "hashed_wheel.h"
#include "hashed_wheel_sorted.h"
#include "hierarchical_wheel.h"
#include "hierarchical_wheel_nomigration.h"
#include "lawn_intrusive.h"
#include "lawn_textbook.h"
#include "multipass_wheel.h"
#include "ordered_list.h"
#include "resizing_wheel.h"
#include "simple_wheel.h"
#include "tree.h"
#include "unordered_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace
{

using bench::Config;
using bench::never;
using bench::Time;

// At its usual cap the resizing wheel would spend the test on empty slots; at
// this one it goes beyond its cap as well.
class CappedResizingWheel : public bench::ResizingWheel
{
public:
    explicit CappedResizingWheel(const Config &config)
        : ResizingWheel(config, 4096)
    {
    }
};

template <class Scheme> constexpr Time late_divisor = 0;
template <>
constexpr Time late_divisor<bench::NoMigrationWheel> =
    bench::NoMigrationWheel::late_divisor;

Time saturating_add(Time a, Time b)
{
    return b > never - a ? never : a + b;
}

Time round_up(Time time, Time unit)
{
    const Time over = time % unit;
    return over == 0 ? time : saturating_add(time, unit - over);
}

// The time by which a timer with this deadline must have fired, if the scheme
// was last advanced at `advanced` before it was started.
template <class Scheme>
Time latest_firing(const Config &config, Time advanced, Time deadline)
{
    Time latest = deadline;
    if constexpr (late_divisor<Scheme> != 0) {
        const Time distance =
            round_up(deadline, config.tick) - advanced + config.tick;
        latest = saturating_add(latest, distance / late_divisor<Scheme>);
    }
    return Scheme::traits.rounds_to_tick ? round_up(latest, config.tick)
                                         : latest;
}

Config config_with(Time tick, size_t capacity)
{
    Config config;
    config.tick = tick;
    config.capacity = capacity;
    return config;
}

// One scheme and the model of it.
template <class Scheme> class Trial
{
public:
    using Node = typename Scheme::Node;

    Trial(uint64_t seed, size_t timers)
        : random_(seed), config_(random_config(timers)), scheme_(config_),
          running_(timers)
    {
        max_ttl_bits_ = 1 + any_of(63);
        max_jump_bits_ = 1 + any_of(any_of(2) == 0 ? max_ttl_bits_ : 62);
        clock_ = any_of(4) == 0 ? never - magnitude(62) : magnitude(40);
        advanced_ = clock_;
        for (size_t i = 0; i < timers; ++i) {
            nodes_.push_back(std::make_unique<Node>());
        }
        for (int i = 0; i < 4; ++i) {
            favourite_ttls_.push_back(magnitude(max_ttl_bits_));
        }
    }

    void step()
    {
        if (any_of(100) < 60) {
            act();
        } else {
            clock_ = saturating_add(clock_, jump());
            advance(any_of(3) == 0 ? 0 : 1 + any_of(20));
        }
    }

    // Everything that can expire does in the end, in one jump or after it.
    void finish()
    {
        clock_ = never;
        callbacks_act_ = false;
        advance(0);
        advance(0);
        for (const auto &[latest, index] : by_latest_) {
            ASSERT_EQ(latest, never) << "not fired: timer " << index;
        }
        for (size_t i = 0; i < nodes_.size(); ++i) {
            ASSERT_EQ(scheme_.stop(*nodes_[i]), running_[i].is_running);
        }
    }

    size_t fired() const
    {
        return fired_;
    }

private:
    struct Running {
        bool is_running = false;
        bool is_for_next_pass = false;
        Time ttl = 0;
        Time deadline = 0;
        uint64_t sequence = 0;
        std::multimap<Time, size_t>::iterator place;
    };

    unsigned any_of(unsigned count)
    {
        return static_cast<unsigned>(random_() % count);
    }

    // 0 to 2^bits, each power of two and its neighbours as likely as the
    // numbers in between.
    Time magnitude(unsigned bits)
    {
        const Time power = Time{1} << any_of(bits + 1);
        switch (any_of(4)) {
        case 0:
            return power - 1 + any_of(3);
        case 1:
            return any_of(40);
        default:
            return power / 2 + random_() % (power / 2 + 1);
        }
    }

    Config random_config(size_t timers)
    {
        const Time ticks[] = {1, 1, 3, 64, 1000};
        Config config = config_with(ticks[any_of(5)], timers);
        if (Scheme::traits.bounded_ttl || any_of(4) == 0) {
            config.longest_ttl = 100000;
        }
        return config;
    }

    Time jump()
    {
        return any_of(4) == 0 ? any_of(3) : magnitude(max_jump_bits_);
    }

    Time random_ttl()
    {
        Time ttl = 0;
        if (any_of(2) == 0) {
            ttl = favourite_ttls_[any_of(4)];
        } else if (any_of(100) == 0) {
            ttl = never - any_of(3);
        } else {
            ttl = magnitude(max_ttl_bits_);
        }
        return Scheme::traits.bounded_ttl ? std::min(ttl, config_.longest_ttl)
                                          : ttl;
    }

    void act()
    {
        const size_t index = any_of(static_cast<unsigned>(nodes_.size()));
        if (any_of(100) < 70) {
            start(index, random_ttl());
            return;
        }
        ASSERT_EQ(scheme_.stop(*nodes_[index]), running_[index].is_running);
        forget(index);
        if (any_of(2) == 0) {
            // Frees the memory: the scheme must not look at it again.
            nodes_[index] = std::make_unique<Node>();
        }
    }

    void start(size_t index, Time ttl)
    {
        forget(index);
        scheme_.start(*nodes_[index], clock_, ttl);
        Running &running = running_[index];
        running.is_running = true;
        running.is_for_next_pass = is_passing_ && ttl == 0;
        running.ttl = ttl;
        running.deadline = saturating_add(clock_, ttl);
        running.sequence = ++sequence_;
        running.place = by_latest_.emplace(
            latest_firing<Scheme>(config_, advanced_, running.deadline), index);
        by_ttl_[ttl].insert(running.sequence);
    }

    void forget(size_t index)
    {
        Running &running = running_[index];
        if (running.is_running) {
            by_latest_.erase(running.place);
            by_ttl_[running.ttl].erase(running.sequence);
            running.is_running = false;
        }
    }

    void advance(unsigned budget)
    {
        for (Running &running : running_) {
            running.is_for_next_pass = false;
        }
        advanced_ = clock_;
        const size_t before = fired_;
        is_passing_ = true;
        const unsigned count =
            scheme_.advance(clock_, budget, [this](Node &node, Time now) {
                on_fired(node, now);
            });
        is_passing_ = false;
        ASSERT_EQ(count, fired_ - before);
        if (budget != 0) {
            ASSERT_LE(count, budget);
        }
        if (budget != 0 && count == budget) {
            return;
        }
        const Time end = std::min(clock_, never - 1);
        for (const auto &[latest, index] : by_latest_) {
            if (latest > end) {
                break;
            }
            ASSERT_TRUE(running_[index].is_for_next_pass)
                << "late: timer " << index << " by " << end - latest;
        }
    }

    void on_fired(Node &node, Time now)
    {
        ++fired_;
        ASSERT_EQ(now, clock_);
        size_t index = 0;
        while (index < nodes_.size() && nodes_[index].get() != &node) {
            ++index;
        }
        ASSERT_LT(index, nodes_.size()) << "a node that was freed";
        const Running &running = running_[index];
        ASSERT_TRUE(running.is_running);
        ASSERT_FALSE(running.is_for_next_pass);
        ASSERT_NE(running.deadline, never);
        ASSERT_LE(running.deadline, now) << "early";
        if (!Scheme::traits.any_order) {
            ASSERT_EQ(*by_ttl_[running.ttl].begin(), running.sequence)
                << "out of order";
        }
        forget(index);
        ASSERT_FALSE(scheme_.stop(node)) << "not idle in its callback";
        if (callbacks_act_) {
            for (unsigned i = any_of(4); i > 0; --i) {
                act();
            }
            if (any_of(4) == 0) {
                start(index, random_ttl());
            }
        }
    }

    std::mt19937_64 random_;
    Config config_;
    Scheme scheme_;
    Time clock_ = 0;
    Time advanced_ = 0; // the latest advance, or the beginning
    unsigned max_ttl_bits_ = 0;
    unsigned max_jump_bits_ = 0;
    bool is_passing_ = false;
    bool callbacks_act_ = true;
    size_t fired_ = 0;
    uint64_t sequence_ = 0;
    std::vector<Time> favourite_ttls_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<Running> running_;
    std::multimap<Time, size_t> by_latest_;
    std::map<Time, std::set<uint64_t>> by_ttl_; // running, by start
};

} // namespace

#endif
