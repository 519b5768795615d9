// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The reader of traces; see reader.h.

#include "reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trace_file
{

namespace
{

constexpr size_t longest_line = 200; // of an event; comments may be longer
constexpr size_t most_events = 50'000'000;
constexpr Time latest = Time{1} << 62; // in ns: a century and more

// The fields behind the name of an event, a letter for each: a timer (t), a TTL
// (T), a count (c), an age (a), a span (s), a reason (r).
struct Shape {
    std::string_view name;
    std::string_view fields;
    Kind kind;
    unsigned version; // since which
};

constexpr Shape shapes[] = {
    {"start", "tT", Kind::start, 1},
    {"stop", "t", Kind::stop, 1},
    {"pause", "t", Kind::pause, 1},
    {"fire", "t", Kind::fire, 1},
    {"poll", "c", Kind::poll, 1},
    {"conn", "taaasss", Kind::conn, 2},
    {"keepalive", "tt", Kind::keepalive, 2},
    {"resend", "t", Kind::resend, 2},
    {"evidence", "t", Kind::evidence, 2},
    {"ask", "t", Kind::ask, 2},
    {"probe", "t", Kind::probe, 2},
    {"needless", "t", Kind::needless, 2},
    {"undo", "t", Kind::undo, 2},
    {"excuse", "t", Kind::excuse, 2},
    {"dead", "tr", Kind::dead, 2},
    {"stall", "s", Kind::stall, 2},
};

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
    Reader(const char *path, Listener &listener)
        : path_(path), file_(fopen(path, "r"), fclose), listener_(listener)
    {
        if (!file_) {
            fail();
        }
    }

    void read()
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
        if (fields.size() < 2 || (fields[1] != "1" && fields[1] != "2")) {
            refuse("a version that is not known here; these are 1 and 2");
        }
        version_ = fields[1] == "1" ? 1 : 2;
        if (fields.size() != 6 || fields[2] != "ticks_per_sec" ||
            fields[4] != "budget") {
            refuse("the header has other fields");
        }
        const double rate = number<double>(fields[3], "ticks_per_sec");
        if (!(rate >= 1 && rate <= 1e15)) {
            refuse("bad ticks_per_sec", fields[3]);
        }
        ns_per_tick_ = 1e9 / rate;
        listener_.begin(number<unsigned>(fields[5], "budget"));
    }

    // The nearest, so that no two ticks change places and one TTL stays one.
    // From `latest` on: `never`.
    Time ns_of(Time ticks) const
    {
        const double ns = static_cast<double>(ticks) * ns_per_tick_;
        if (ticks == never || !(ns < static_cast<double>(latest))) {
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

    Time ttl(std::string_view text) const
    {
        return text == "inf" ? never : ns_of(number<Time>(text, "TTL"));
    }

    Time span(std::string_view text) const
    {
        return ns_of(number<Time>(text, "span"));
    }

    // When that was, in ticks.
    Time time_of_age(std::string_view text) const
    {
        if (text == "-") {
            return never;
        }
        const Time age = number<Time>(text, "age");
        return age < ticks_ ? ticks_ - age : 0;
    }

    // Of a count, or of a reason, which are few.
    Time positive(std::string_view text, const char *what, Time most) const
    {
        const Time value = number<Time>(text, what);
        if (value == 0 || value > most) {
            refuse(std::string("bad ") + what, text);
        }
        return value;
    }

    uint64_t field(char shape, std::string_view text) const
    {
        switch (shape) {
        case 't':
            return number<uint64_t>(text, "timer", 16);
        case 'T':
            return ttl(text);
        case 'a':
            return time_of_age(text);
        case 's':
            return span(text);
        case 'r':
            return positive(text, "reason", 3);
        default:
            return positive(text, "count", never);
        }
    }

    void read_event(const std::string &line)
    {
        const std::vector<std::string_view> fields = split(line);
        if (fields.size() < 2) {
            refuse("no event");
        }
        const Shape *const shape = std::find_if(
            std::begin(shapes), std::end(shapes), [&](const Shape &s) {
                return s.name == fields[1] && s.version <= version_;
            });
        if (shape == std::end(shapes)) {
            refuse("unknown event", fields[1]);
        }
        if (fields.size() != 2 + shape->fields.size()) {
            refuse("wrong number of fields for", shape->name);
        }
        if (events_++ == most_events) {
            refuse("more than " + std::to_string(most_events) + " events");
        }
        read_time(fields[0]);
        Event event = {};
        event.now = now_;
        event.now_ticks = ticks_;
        event.kind = shape->kind;
        size_t values = 0;
        for (size_t i = 0; i < shape->fields.size(); ++i) {
            const uint64_t value = field(shape->fields[i], fields[2 + i]);
            if (i == 0 && shape->fields[0] == 't') {
                event.name = value;
            } else if (shape->fields[i] == 'a') {
                event.ticks[values] = value;
                event.value[values++] = ns_of(value);
            } else {
                event.value[values++] = value;
            }
        }
        has_polled_ = has_polled_ || event.kind == Kind::poll;
        if (event.kind == Kind::fire && !has_polled_) {
            refuse("a timer fires before any poll");
        }
        listener_.hear(event);
    }

    const std::string path_;
    const std::unique_ptr<FILE, int (*)(FILE *)> file_;
    size_t line_ = 0;
    double ns_per_tick_ = 1;
    Time ticks_ = 0; // since the beginning
    Time now_ = 0;   // that, in ns
    bool has_polled_ = false;
    size_t events_ = 0;
    unsigned version_ = 1;
    Listener &listener_;
};

} // namespace

void read(const char *path, Listener &listener)
{
    Reader(path, listener).read();
}

} // namespace trace_file
