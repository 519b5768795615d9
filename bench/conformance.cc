// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The check of a contender; see conformance.h. A contender with a clock of its
// own cannot be told what time it is, so it is only seen whether it fires what
// is due after a wait, once, and nothing else.

#include "conformance.h"

#include "schemes/model.h"

#include <algorithm>
#include <set>

namespace bench
{

namespace
{

constexpr Time sec = 1'000'000'000;

// A contender in use, with whatever was the first thing wrong with it.
class Check
{
public:
    Check(const Contender &contender, const Config &config)
        : contender_(contender), config_(config),
          scheme_(contender.create(config)), nodes_(contender, config.capacity),
          model_(traits_of(contender), config, now_, config.capacity)
    {
        if (!scheme_) {
            note("it cannot be created");
        }
        expired.clear();
    }

    ~Check()
    {
        if (scheme_) {
            contender_.destroy(scheme_);
        }
    }

    Check(const Check &) = delete;
    Check &operator=(const Check &) = delete;

    const std::string &wrong() const
    {
        return wrong_;
    }

    bool is_good() const
    {
        return wrong_.empty();
    }

    size_t fired() const
    {
        return fired_;
    }

    // All that runs can expire, and does.
    void expire_all()
    {
        advance(Time{1} << 60, 0);
        advance(1, 0);
        if (model_.count() != 0) {
            note("a timer never fired");
        }
    }

    void start(size_t index, Time ttl)
    {
        if (contender_.traits.bounded_ttl) {
            ttl = std::min(ttl, config_.longest_ttl);
        }
        declared_.insert(ttl);
        contender_.start(scheme_, node(index), now_,
                         contender_.declare ? contender_.declare(scheme_, ttl)
                                            : ttl);
        model_.start(index, now_, ttl);
    }

    void stop(size_t index)
    {
        if (contender_.stop(scheme_, node(index)) != model_.is_running(index)) {
            note("a stop did not tell whether the timer was running");
        }
        model_.stop(index);
    }

    void advance(Time by, unsigned budget)
    {
        now_ += by;
        model_.begin_pass(now_);
        const unsigned count = contender_.advance(scheme_, now_, budget);
        for (const void *fired : expired) {
            const size_t index = index_of(fired);
            note(index < config_.capacity ? model_.fire(index)
                                          : "something fired that is no timer");
        }
        fired_ += expired.size();
        expired.clear();
        if (contender_.has_more) {
            note(model_.end_pass(count, budget, budget != 0 && has_more()));
        } else {
            note(model_.end_pass(count, contender_.no_budget ? 0 : budget));
        }
    }

    // Advances that may fire less than is due must come to an end. What they
    // touch besides the timers is known to be no more than one thing for each
    // TTL, and everything at most four times.
    void finish_work(unsigned budget)
    {
        const size_t touched = 4 * (config_.capacity + declared_.size());
        for (size_t left = touched / budget + 4; has_more(); --left) {
            if (left == 0) {
                note("advances never come to an end");
                return;
            }
            advance(0, budget);
        }
    }

    bool has_more()
    {
        return contender_.has_more(scheme_, now_);
    }

    // For a contender with a clock of its own: model time follows it.
    void wait(Time time)
    {
        contender_.wait(scheme_, time);
        now_ += time;
    }

    // Nothing is left running but what runs in the model too.
    void stop_all()
    {
        for (size_t i = 0; i < config_.capacity && is_good(); ++i) {
            stop(i);
        }
    }

private:
    // Time in a contender's own clock goes on by itself, so a timer may fire
    // before the model has been told of the time.
    static Traits traits_of(const Contender &contender)
    {
        Traits traits = contender.traits;
        traits.may_be_early = traits.may_be_early || contender.wait;
        traits.any_order = traits.any_order || contender.wait;
        return traits;
    }

    void note(const char *what)
    {
        if (what && wrong_.empty()) {
            wrong_ = what;
        }
    }

    void *node(size_t index)
    {
        return nodes_.begin() + index * contender_.node_size;
    }

    size_t index_of(const void *node) const
    {
        return (reinterpret_cast<uintptr_t>(node) -
                reinterpret_cast<uintptr_t>(nodes_.begin())) /
               contender_.node_size;
    }

    const Contender &contender_;
    const Config config_;
    Time now_ = sec;
    void *scheme_;
    const Nodes nodes_;
    Model model_;
    std::set<Time> declared_;
    size_t fired_ = 0;
    std::string wrong_;
};

Config config_of(size_t timers, Time tick, Time longest_ttl)
{
    Config config;
    config.tick = tick;
    config.capacity = timers;
    config.longest_ttl = longest_ttl;
    return config;
}

// Random operations, then everything expires after a jump.
std::string random_operations(const Contender &contender, uint64_t seed,
                              unsigned steps, unsigned ttl_bits)
{
    Dice dice(seed);
    const size_t timers = seed % 4 == 0 ? 300 : 1 + dice.any_of(60);
    Check check(contender, config_of(timers, seed % 2 == 0 ? 1024 : 1,
                                     Time{1} << ttl_bits));
    const unsigned jump_bits = 1 + dice.any_of(ttl_bits);
    const Time favourites[] = {dice.magnitude(ttl_bits),
                               dice.magnitude(ttl_bits)};
    for (unsigned i = 0; i < steps && check.is_good(); ++i) {
        const size_t index = dice.any_of(static_cast<unsigned>(timers));
        const unsigned choice = dice.any_of(100);
        if (choice < 25) {
            check.start(index, dice.magnitude(ttl_bits));
        } else if (choice < 50) {
            check.start(index, favourites[dice.any_of(2)]);
        } else if (choice < 65) {
            check.stop(index);
        } else {
            const Time by = dice.any_of(4) == 0 ? dice.any_of(3)
                                                : dice.magnitude(jump_bits);
            const unsigned budget =
                dice.any_of(3) == 0 ? 0 : 1 + dice.any_of(20);
            check.advance(by, budget);
            if (contender.has_more && budget != 0 && dice.any_of(2) == 0) {
                check.finish_work(budget);
            }
        }
    }
    if (check.is_good()) {
        check.expire_all();
        check.stop_all();
    }
    if (check.is_good() && check.fired() == 0) {
        return "nothing has ever fired";
    }
    return check.wrong();
}

// Some timers that expire, some that are re-armed or stopped before, and some
// for much later.
std::string one_wait(const Contender &contender)
{
    constexpr Time shortest = 5'000'000;
    constexpr size_t timers = 400;
    Check check(contender, config_of(timers, 1024, 1000 * sec));
    if (!check.is_good()) {
        return check.wrong();
    }
    for (size_t i = 0; i < timers; ++i) {
        check.start(i, shortest + i * 10'000);
    }
    for (size_t i = 0; i < timers; ++i) {
        if (i % 4 == 1) {
            check.stop(i);
        } else if (i % 4 == 2) {
            check.start(i, 2 * shortest);
        } else if (i % 4 == 3) {
            check.start(i, 1000 * sec);
        }
    }
    check.wait(20'000'000);
    check.advance(0, 0);
    check.advance(0, 0);
    if (check.is_good() && check.fired() != timers / 2) {
        return "it fired " + std::to_string(check.fired()) + " timers of " +
               std::to_string(timers / 2);
    }
    check.stop_all();
    return check.wrong();
}

} // namespace

std::string nonconformance(const Contender &contender)
{
    if (contender.wait) {
        return one_wait(contender);
    }
    constexpr uint64_t seeds = 40;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        // TTLs of a second as a rule, of hours now and then.
        const bool is_far = seed % 8 == 0;
        const std::string wrong = random_operations(
            contender, seed, is_far ? 200 : 1500,
            is_far ? 42 : 24 + static_cast<unsigned>(seed % 6));
        if (!wrong.empty()) {
            return wrong + " (seed " + std::to_string(seed) + ")";
        }
    }
    return {};
}

} // namespace bench
