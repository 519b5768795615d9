// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Replaying traces; see replay.h.

#include "replay.h"

#include "reader.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace bench
{

namespace
{

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Keeps what a contender can do, without what the connections have told.
class Timers : public trace_file::Listener
{
public:
    void begin(unsigned budget) override
    {
        trace.budget = budget;
    }

    void hear(const trace_file::Event &event) override
    {
        if (event.kind > trace_file::Kind::poll) {
            return;
        }
        Trace::Event kept = {event.now, 0, 0, call_of(event.kind)};
        if (kept.call == Trace::Call::poll) {
            kept.value = event.value[0];
        } else {
            const auto next = static_cast<uint32_t>(numbers_.size());
            kept.timer = numbers_.try_emplace(event.name, next).first->second;
        }
        if (kept.call == Trace::Call::start) {
            kept.value = event.value[0];
            if (kept.value != never) {
                trace.longest_ttl = std::max(trace.longest_ttl, kept.value);
            }
        }
        trace.events.push_back(kept);
        trace.timers = numbers_.size();
    }

    Trace trace;

private:
    static Trace::Call call_of(trace_file::Kind kind)
    {
        switch (kind) {
        case trace_file::Kind::start:
            return Trace::Call::start;
        case trace_file::Kind::stop:
            return Trace::Call::stop;
        case trace_file::Kind::pause:
            return Trace::Call::pause;
        case trace_file::Kind::fire:
            return Trace::Call::fire;
        default:
            return Trace::Call::poll;
        }
    }

    std::unordered_map<uint64_t, uint32_t> numbers_; // of timers
};

// One replay, with a scheme and nodes of its own.
class Player
{
public:
    Player(const Trace &trace, const Contender &contender)
        : trace_(trace), contender_(contender), nodes_(contender, trace.timers)
    {
        Config config;
        config.tick = contender_tick;
        config.capacity = trace.timers;
        config.longest_ttl = trace.longest_ttl;
        if (contender.traits.bounded_ttl && trace.longest_ttl != 0) {
            longest_ttl_ = trace.longest_ttl;
        }
        scheme_ = contender.create(config);
        expired.assign(trace.timers, nullptr);
        expired.clear();
        can_play_ = scheme_ && read_values();
    }

    ~Player()
    {
        if (scheme_) {
            contender_.destroy(scheme_);
        }
    }

    Player(const Player &) = delete;
    Player &operator=(const Player &) = delete;

    bool can_play() const
    {
        return can_play_;
    }

    // Seconds; nothing when they are more than `allowance`.
    Result play(double allowance)
    {
        poll(0); // what time it is; a wheel may have some way to go
        const auto begin = Clock::now();
        Time last = 0;
        unsigned turn = 0;
        const auto is_too_slow = [&] {
            return ++turn % 4096 == 0 && seconds_since(begin) > allowance;
        };
        for (const Trace::Event &event : trace_.events) {
            if (event.call == Trace::Call::poll) {
                const Time step = (event.now - last) / event.value;
                for (Time left = event.value; left > 1; --left) {
                    last += step;
                    poll(last);
                    if (is_too_slow()) {
                        return {};
                    }
                }
            }
            last = event.now;
            perform(event);
            if (is_too_slow()) {
                return {};
            }
        }
        return seconds_since(begin);
    }

private:
    // What each start is given: its TTL, or what the contender wants instead.
    // False if there are too many TTLs for a program to know them.
    bool read_values()
    {
        constexpr size_t most_declared = 1000;
        std::unordered_map<Time, Time> declared;
        for (const Trace::Event &event : trace_.events) {
            Time value = 0;
            if (event.call == Trace::Call::start) {
                value = std::min(event.value, longest_ttl_);
                if (contender_.declare) {
                    const auto [place, is_new] = declared.emplace(value, 0);
                    if (is_new) {
                        place->second = contender_.declare(scheme_, value);
                    }
                    value = place->second;
                }
            }
            values_.push_back(value);
        }
        return declared.size() <= most_declared;
    }

    void perform(const Trace::Event &event)
    {
        void *const node = nodes_.begin() + event.timer * contender_.node_size;
        switch (event.call) {
        case Trace::Call::start:
            contender_.start(
                scheme_, node, origin + event.now,
                values_[static_cast<size_t>(&event - trace_.events.data())]);
            break;
        case Trace::Call::stop:
        case Trace::Call::pause:
            contender_.stop(scheme_, node);
            break;
        case Trace::Call::fire:
            break;
        case Trace::Call::poll:
            poll(event.now);
            break;
        }
    }

    void poll(Time now)
    {
        const unsigned fired =
            contender_.advance(scheme_, origin + now, trace_.budget);
        if (fired != expired.size()) {
            throw std::runtime_error(std::string(contender_.traits.name) +
                                     ": wrong number of expired timers");
        }
        expired.clear();
    }

    static constexpr Time origin = 1'000'000'000;

    const Trace &trace_;
    const Contender &contender_;
    Time longest_ttl_ = never;
    void *scheme_;
    const Nodes nodes_;
    std::vector<Time> values_; // by event
    bool can_play_;
};

} // namespace

Trace read_trace(const char *path)
{
    static_assert(never == trace_file::never);
    Timers timers;
    trace_file::read(path, timers);
    return std::move(timers.trace);
}

Result replay(const Trace &trace, const Contender &contender, const Load &load)
{
    if (contender.wait) {
        return Result::unavailable();
    }
    double events = 0;
    for (const Trace::Event &event : trace.events) {
        events += event.call == Trace::Call::poll
                      ? static_cast<double>(event.value)
                      : event.call != Trace::Call::fire;
    }
    if (events == 0) {
        return Result::unavailable();
    }
    const double allowance = 4 * load.limit_sec + 1e-6 * events;
    const auto begin = Clock::now();
    double seconds = 0;
    double replays = 0;
    do {
        Player player(trace, contender);
        if (!player.can_play()) {
            return Result::unavailable();
        }
        const Result once = player.play(allowance);
        if (!once) {
            return {};
        }
        seconds += *once;
        ++replays;
    } while (seconds < load.limit_sec &&
             seconds_since(begin) < 4 * load.limit_sec);
    return seconds * 1e9 / (replays * events);
}

} // namespace bench
