// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Reading and replaying traces; see replay.h. The reader takes what
// doc/trace.md allows and nothing else: a damaged file must not become a
// measurement.

#include "replay.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bench
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr size_t longest_line = 200; // of an event; comments may be longer
constexpr size_t most_events = 50'000'000;
constexpr Time latest = Time{1} << 62; // in ns: a century and more

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::string_view> split(std::string_view line)
{
    std::vector<std::string_view> fields;
    for (;;) {
        const size_t space = line.find(' ');
        fields.push_back(line.substr(0, space));
        if (space == std::string_view::npos) {
            return fields;
        }
        line.remove_prefix(space + 1);
    }
}

class Reader
{
public:
    explicit Reader(const char *path)
        : path_(path), file_(fopen(path, "r"), fclose)
    {
        if (!file_) {
            fail();
        }
    }

    Trace read()
    {
        std::string line;
        if (!next_line(line)) {
            refuse("empty, without the header of a trace");
        }
        read_header(line);
        while (next_line(line)) {
            if (line[0] != '#') {
                read_event(line);
            }
        }
        trace_.timers = numbers_.size();
        return std::move(trace_);
    }

private:
    [[noreturn]] void fail() const
    {
        throw std::runtime_error(path_ + ": " + strerror(errno));
    }

    [[noreturn]] void refuse(const std::string &what) const
    {
        throw std::runtime_error(path_ + ":" + std::to_string(line_) + ": " +
                                 what);
    }

    [[noreturn]] void refuse(const std::string &what,
                             std::string_view text) const
    {
        refuse(what + " '" + std::string(text) + "'");
    }

    // False at the end of the file. What is returned is printable.
    bool next_line(std::string &line)
    {
        ++line_;
        line.clear();
        for (int c; (c = getc(file_.get())) != '\n';) {
            if (c == EOF && ferror(file_.get())) {
                fail();
            }
            if (c == EOF && line.empty()) {
                return false;
            }
            if (c == EOF) {
                refuse("the last line is incomplete");
            }
            if (!line.empty() && line[0] == '#') {
                continue;
            }
            if (c < ' ' || c > '~') {
                refuse("not text");
            }
            if (line.size() == longest_line) {
                refuse("the line is too long");
            }
            line += static_cast<char>(c);
        }
        if (line.empty()) {
            refuse("the line is empty");
        }
        return true;
    }

    // `base`: of an integer, if it is not 10.
    template <class Number, class... Base>
    Number number(std::string_view text, const char *what, Base... base) const
    {
        Number value = 0;
        const char *const end = text.data() + text.size();
        const auto result = std::from_chars(text.data(), end, value, base...);
        if (result.ptr != end || result.ec != std::errc()) {
            refuse(std::string("bad ") + what, text);
        }
        return value;
    }

    void read_header(const std::string &line)
    {
        const std::vector<std::string_view> fields = split(line);
        if (fields[0] != "lawn-trace") {
            refuse("not the header of a trace");
        }
        if (fields.size() < 2 || fields[1] != "1") {
            refuse("a version that is not known here; this is 1");
        }
        if (fields.size() != 6 || fields[2] != "ticks_per_sec" ||
            fields[4] != "budget") {
            refuse("the header has other fields");
        }
        const double rate = number<double>(fields[3], "ticks_per_sec");
        if (!(rate >= 1 && rate <= 1e15)) {
            refuse("bad ticks_per_sec", fields[3]);
        }
        ns_per_tick_ = 1e9 / rate;
        trace_.budget = number<unsigned>(fields[5], "budget");
    }

    // The nearest, so that no two ticks change places and one TTL stays one.
    // From `latest` on: `never`.
    Time ns_of(Time ticks) const
    {
        const double ns = static_cast<double>(ticks) * ns_per_tick_;
        if (!(ns < static_cast<double>(latest))) {
            return never;
        }
        return ns_per_tick_ == 1 ? ticks : static_cast<Time>(std::llround(ns));
    }

    void read_time(std::string_view text)
    {
        const Time delta = number<Time>(text, "time");
        now_ = delta > never - ticks_ ? never : ns_of(ticks_ + delta);
        ticks_ += delta;
        if (now_ == never) {
            refuse("the trace is too long a time");
        }
    }

    uint32_t timer(std::string_view text)
    {
        const uint64_t name = number<uint64_t>(text, "timer", 16);
        const auto next = static_cast<uint32_t>(numbers_.size());
        return numbers_.try_emplace(name, next).first->second;
    }

    Time ttl(std::string_view text)
    {
        if (text == "inf") {
            return never;
        }
        const Time ttl = ns_of(number<Time>(text, "TTL"));
        if (ttl != never) {
            trace_.longest_ttl = std::max(trace_.longest_ttl, ttl);
        }
        return ttl;
    }

    Time count(std::string_view text) const
    {
        const Time count = number<Time>(text, "count");
        if (count == 0) {
            refuse("bad count", text);
        }
        return count;
    }

    void read_event(const std::string &line)
    {
        struct Kind {
            std::string_view name;
            Trace::Call call;
            size_t fields;
        };
        static constexpr Kind kinds[] = {
            {"start", Trace::Call::start, 4}, {"stop", Trace::Call::stop, 3},
            {"pause", Trace::Call::pause, 3}, {"fire", Trace::Call::fire, 3},
            {"poll", Trace::Call::poll, 3},
        };
        const std::vector<std::string_view> fields = split(line);
        if (fields.size() < 2) {
            refuse("no event");
        }
        const Kind *const kind =
            std::find_if(std::begin(kinds), std::end(kinds),
                         [&](const Kind &k) { return k.name == fields[1]; });
        if (kind == std::end(kinds)) {
            refuse("unknown event", fields[1]);
        }
        if (fields.size() != kind->fields) {
            refuse("wrong number of fields for", kind->name);
        }
        if (trace_.events.size() == most_events) {
            refuse("more than " + std::to_string(most_events) + " events");
        }
        read_time(fields[0]);
        Trace::Event event = {now_, 0, 0, kind->call};
        if (kind->call == Trace::Call::poll) {
            event.value = count(fields[2]);
            has_polled_ = true;
        } else {
            event.timer = timer(fields[2]);
        }
        if (kind->call == Trace::Call::start) {
            event.value = ttl(fields[3]);
        }
        if (kind->call == Trace::Call::fire && !has_polled_) {
            refuse("a timer fires before any poll");
        }
        trace_.events.push_back(event);
    }

    const std::string path_;
    const std::unique_ptr<FILE, int (*)(FILE *)> file_;
    size_t line_ = 0;
    double ns_per_tick_ = 1;
    Time ticks_ = 0; // since the beginning
    Time now_ = 0;   // that, in ns
    bool has_polled_ = false;
    std::unordered_map<uint64_t, uint32_t> numbers_; // of timers
    Trace trace_;
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
    return Reader(path).read();
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
