// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A scheme against the model, under random operations from a seed; its
// callbacks act too, and nodes are freed as soon as they may be.

#ifndef LAWN_TEST_UNIT_SCHEMES_TRIAL_H
#define LAWN_TEST_UNIT_SCHEMES_TRIAL_H

#include "hashed_wheel.h"
#include "hashed_wheel_sorted.h"
#include "hierarchical_wheel.h"
#include "hierarchical_wheel_nomigration.h"
#include "lawn_intrusive.h"
#include "lawn_textbook.h"
#include "model.h"
#include "multipass_wheel.h"
#include "ordered_list.h"
#include "resizing_wheel.h"
#include "simple_wheel.h"
#include "tree.h"
#include "unordered_list.h"

#include <gtest/gtest.h>

#include <algorithm>
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
        : dice_(seed), config_(random_config(timers)),
          max_ttl_bits_(1 + dice_.any_of(63)),
          max_jump_bits_(
              1 + dice_.any_of(dice_.any_of(2) == 0 ? max_ttl_bits_ : 62)),
          clock_(dice_.any_of(4) == 0 ? never - dice_.magnitude(62)
                                      : dice_.magnitude(40)),
          scheme_(config_), model_(Scheme::traits, config_, clock_, timers)
    {
        for (size_t i = 0; i < timers; ++i) {
            nodes_.push_back(std::make_unique<Node>());
        }
        for (int i = 0; i < 4; ++i) {
            favourite_ttls_.push_back(dice_.magnitude(max_ttl_bits_));
        }
    }

    void step()
    {
        if (dice_.any_of(100) < 60) {
            act();
        } else {
            clock_ = bench::deadline_of(clock_, jump());
            advance(dice_.any_of(3) == 0 ? 0 : 1 + dice_.any_of(20));
        }
    }

    // Everything that can expire does in the end, in one jump or after it.
    void finish()
    {
        clock_ = never;
        callbacks_act_ = false;
        advance(0);
        advance(0);
        for (size_t i = 0; i < nodes_.size(); ++i) {
            ASSERT_EQ(scheme_.stop(*nodes_[i]), model_.is_running(i));
        }
    }

    size_t fired() const
    {
        return fired_;
    }

private:
    Config random_config(size_t timers)
    {
        const Time ticks[] = {1, 1, 3, 64, 1000};
        Config config = config_with(ticks[dice_.any_of(5)], timers);
        if (Scheme::traits.bounded_ttl || dice_.any_of(4) == 0) {
            config.longest_ttl = 100000;
        }
        return config;
    }

    Time jump()
    {
        return dice_.any_of(4) == 0 ? dice_.any_of(3)
                                    : dice_.magnitude(max_jump_bits_);
    }

    Time random_ttl()
    {
        Time ttl = 0;
        if (dice_.any_of(2) == 0) {
            ttl = favourite_ttls_[dice_.any_of(4)];
        } else if (dice_.any_of(100) == 0) {
            ttl = never - dice_.any_of(3);
        } else {
            ttl = dice_.magnitude(max_ttl_bits_);
        }
        return Scheme::traits.bounded_ttl ? std::min(ttl, config_.longest_ttl)
                                          : ttl;
    }

    void act()
    {
        const size_t index = dice_.any_of(static_cast<unsigned>(nodes_.size()));
        if (dice_.any_of(100) < 70) {
            start(index);
            return;
        }
        ASSERT_EQ(scheme_.stop(*nodes_[index]), model_.is_running(index));
        model_.stop(index);
        if (dice_.any_of(2) == 0) {
            // Frees the memory: the scheme must not look at it again.
            nodes_[index] = std::make_unique<Node>();
        }
    }

    void start(size_t index)
    {
        const Time ttl = random_ttl();
        scheme_.start(*nodes_[index], clock_, ttl);
        model_.start(index, clock_, ttl);
    }

    void advance(unsigned budget)
    {
        model_.begin_pass(clock_);
        const unsigned count =
            scheme_.advance(clock_, budget, [this](Node &node, Time now) {
                on_fired(node, now);
            });
        EXPECT_STREQ(model_.end_pass(count, budget), nullptr);
        fired_ += count;
    }

    void on_fired(Node &node, Time now)
    {
        ASSERT_EQ(now, clock_);
        size_t index = 0;
        while (index < nodes_.size() && nodes_[index].get() != &node) {
            ++index;
        }
        ASSERT_LT(index, nodes_.size()) << "a node that was freed";
        ASSERT_STREQ(model_.fire(index), nullptr) << "timer " << index;
        ASSERT_FALSE(scheme_.stop(node)) << "not idle in its callback";
        if (callbacks_act_) {
            for (unsigned i = dice_.any_of(4); i > 0; --i) {
                act();
            }
            if (dice_.any_of(4) == 0) {
                start(index);
            }
        }
    }

    bench::Dice dice_;
    Config config_;
    unsigned max_ttl_bits_;
    unsigned max_jump_bits_;
    Time clock_;
    Scheme scheme_;
    bench::Model model_;
    bool callbacks_act_ = true;
    size_t fired_ = 0;
    std::vector<Time> favourite_ttls_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

} // namespace

#endif
