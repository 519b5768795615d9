// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The reader of traces, on any text. What it refuses, it refuses with one line
// that names the file and the line, which is no event, while those before are a
// trace; what it accepts means what the text says, and can be replayed.

#include "input.h"

#include "page.h"
#include "qlog.h"
#include "replay.h"

#include <lawn/timer.h>

#include <cinttypes>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

std::vector<void *> bench::expired;

namespace
{

using bench::Time;
using Call = bench::Trace::Call;

constexpr Time most_polls = 1000; // of a trace that is replayed

// A file in memory, made once.
class File
{
public:
    File() : fd_(memfd_create("trace", 0))
    {
        FUZZ_CHECK(fd_ >= 0);
        path_ = "/proc/self/fd/" + std::to_string(fd_);
    }

    const std::string &path() const
    {
        return path_;
    }

    void write(const std::string &text) const
    {
        FUZZ_CHECK(ftruncate(fd_, 0) == 0);
        FUZZ_CHECK(pwrite(fd_, text.data(), text.size(), 0) ==
                   static_cast<ssize_t>(text.size()));
    }

private:
    int fd_;
    std::string path_;
};

std::vector<std::string> lines_of(const std::string &text)
{
    std::vector<std::string> lines;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = text.find('\n', begin);
        lines.push_back(text.substr(begin, end - begin));
        begin = end == std::string::npos ? text.size() : end + 1;
    }
    return lines;
}

// The number of the line at fault, from 1.
size_t refused_line(const std::string &message, const std::string &path)
{
    FUZZ_CHECK(message.compare(0, path.size() + 1, path + ":") == 0);
    FUZZ_CHECK(message.size() < path.size() + 400);
    for (const char c : message) {
        FUZZ_CHECK(c >= ' ' && c <= '~');
    }
    char *end = nullptr;
    const size_t line = strtoul(&message[path.size() + 1], &end, 10);
    FUZZ_CHECK(line >= 1 && end[0] == ':' && end[1] == ' ' && end[2] != 0);
    return line;
}

// True if it is a trace; else `*line` is at fault.
bool read(const File &file, const std::string &text, bench::Trace *trace,
          size_t *line)
{
    file.write(text);
    try {
        *trace = bench::read_trace(file.path().c_str());
        return true;
    } catch (const std::runtime_error &error) {
        *line = refused_line(error.what(), file.path());
        return false;
    }
}

// In ns, or `never`, as the reader has it.
bool is_time(Time ns, uint64_t ticks, double rate)
{
    const double wanted = static_cast<double>(ticks) * (1e9 / rate);
    if (ns == bench::never) {
        return wanted >= 0x1p62;
    }
    if (rate == 1e9) {
        return ns == ticks;
    }
    const double error = static_cast<double>(ns) - wanted;
    return std::fabs(error) <= 0.5 + wanted * 1e-15;
}

// A number of 64 bits in so many digits.
bool is_number(const std::string &text, unsigned base)
{
    uint64_t value = 0;
    for (const char c : text) {
        const char *const digits = "0123456789abcdef0123456789ABCDEF";
        const char *const at = c ? strchr(digits, c) : nullptr;
        const auto digit = static_cast<uint64_t>(at ? (at - digits) % 16 : 16);
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    return !text.empty();
}

// By the grammar of doc/trace.md. What depends on the lines before, the time of
// the trace and whether there was a poll, is left to the reader: no `fire`
// here, nor a time that could be too long.
bool is_event(const std::string &line)
{
    std::vector<std::string> fields(1);
    for (const char c : line) {
        if (c == ' ') {
            fields.emplace_back();
        } else {
            fields.back() += c;
        }
    }
    if (fields.size() < 3 || line.size() > 200 || !is_number(fields[0], 10) ||
        fields[0].size() > 9) {
        return false;
    }
    const std::string &name = fields[1];
    if (name == "poll") {
        return fields.size() == 3 && is_number(fields[2], 10) &&
               fields[2].find_first_not_of('0') != std::string::npos;
    }
    if (!is_number(fields[2], 16)) {
        return false;
    }
    if (name == "start") {
        return fields.size() == 4 &&
               (fields[3] == "inf" || is_number(fields[3], 10));
    }
    return (name == "stop" || name == "pause") && fields.size() == 3;
}

// What a replay leaves out.
bool is_of_connection(const std::string &name)
{
    static const std::set<std::string> names = {
        "conn",     "keepalive", "resend", "evidence", "ask",   "probe",
        "needless", "undo",      "excuse", "dead",     "stall",
    };
    return names.count(name) == 1;
}

Call call_of(const char *name)
{
    static const std::map<std::string, Call> calls = {
        {"start", Call::start}, {"stop", Call::stop}, {"pause", Call::pause},
        {"fire", Call::fire},   {"poll", Call::poll},
    };
    FUZZ_CHECK(calls.count(name) == 1);
    return calls.at(name);
}

// Reads what was accepted once more, with another's eyes. Returns true if the
// trace is so long that one more line may make it too long.
bool check(const bench::Trace &trace, const std::string &text)
{
    const std::vector<std::string> lines = lines_of(text);
    double rate = 0;
    unsigned budget = 0;
    FUZZ_CHECK(text.back() == '\n');
    unsigned version = 0;
    FUZZ_CHECK(sscanf(lines[0].c_str(),
                      "lawn-trace %u ticks_per_sec %lf budget %u", &version,
                      &rate, &budget) == 3);
    FUZZ_CHECK(version == 1 || version == 2);
    FUZZ_CHECK(rate >= 1 && rate <= 1e15 && budget == trace.budget);
    std::map<uint64_t, uint32_t> names;
    uint64_t ticks = 0;
    size_t n = 0;
    Time longest = 0;
    for (size_t i = 1; i < lines.size(); ++i) {
        if (lines[i][0] == '#') {
            continue;
        }
        uint64_t delta = 0;
        char name[12] = {};
        char third[200] = {};
        char fourth[200] = {};
        const int fields =
            sscanf(lines[i].c_str(), "%" SCNu64 " %11s %199s %199s", &delta,
                   name, third, fourth);
        if (is_of_connection(name)) {
            FUZZ_CHECK(version == 2);
            ticks += delta;
            continue;
        }
        FUZZ_CHECK(n < trace.events.size());
        const bench::Trace::Event &event = trace.events[n++];
        const Call call = call_of(name);
        FUZZ_CHECK(event.call == call);
        FUZZ_CHECK(fields == (call == Call::start ? 4 : 3));
        ticks += delta;
        FUZZ_CHECK(ticks >= delta && is_time(event.now, ticks, rate));
        FUZZ_CHECK(event.now != bench::never);
        if (call == Call::poll) {
            FUZZ_CHECK(event.value == strtoull(third, nullptr, 10));
            FUZZ_CHECK(event.value != 0);
            continue;
        }
        const uint64_t timer = strtoull(third, nullptr, 16);
        const auto next = static_cast<uint32_t>(names.size());
        FUZZ_CHECK(event.timer == names.try_emplace(timer, next).first->second);
        if (call != Call::start) {
            FUZZ_CHECK(event.value == 0);
        } else if (strcmp(fourth, "inf") == 0) {
            FUZZ_CHECK(event.value == bench::never);
        } else {
            FUZZ_CHECK(
                is_time(event.value, strtoull(fourth, nullptr, 10), rate));
            longest = event.value == bench::never
                          ? longest
                          : std::max(longest, event.value);
        }
    }
    FUZZ_CHECK(n == trace.events.size() && names.size() == trace.timers);
    FUZZ_CHECK(longest == trace.longest_ttl);
    return static_cast<double>(ticks) * (1e9 / rate) > 1U << 30;
}

// What lawn_trace writes is whole, whatever the trace says.
void show(const std::string &path)
{
    const trace_file::Model model = trace_file::read_model(path.c_str());
    const std::string page = trace_file::page_of(model, path);
    FUZZ_CHECK(page.compare(page.size() - 8, 8, "</html>\n") == 0);
    const std::string qlog = trace_file::qlog_of(model, path, 0);
    FUZZ_CHECK(qlog[0] == '\x1e' && qlog.back() == '\n');
}

bench::Contender contender()
{
    bench::Contender c = {};
    c.traits.name = "lawn";
    c.node_size = sizeof(lawn_timer_t);
    c.create = [](const bench::Config &) -> void * {
        lawn_t *lawn = nullptr;
        FUZZ_CHECK(lawn_create(nullptr, &lawn) == LAWN_OK);
        return lawn;
    };
    c.destroy = [](void *lawn) { lawn_destroy(static_cast<lawn_t *>(lawn)); };
    c.make_nodes = [](void *memory, size_t count) {
        auto *const nodes = static_cast<lawn_timer_t *>(memory);
        for (size_t i = 0; i < count; ++i) {
            lawn_timer_init(&nodes[i], [](lawn_timer_t *timer, lawn_time_t) {
                bench::expired.push_back(timer);
            });
        }
    };
    c.end_nodes = [](void *, size_t) {};
    c.start = [](void *lawn, void *node, Time now, Time ttl) {
        lawn_timer_start(static_cast<lawn_t *>(lawn),
                         static_cast<lawn_timer_t *>(node), now, ttl);
    };
    c.stop = [](void *lawn, void *node) {
        return lawn_timer_stop(static_cast<lawn_t *>(lawn),
                               static_cast<lawn_timer_t *>(node));
    };
    c.advance = [](void *lawn, Time now, unsigned budget) {
        return lawn_advance(static_cast<lawn_t *>(lawn), now, budget);
    };
    return c;
}

void replay(const bench::Trace &trace)
{
    Time polls = 0;
    for (const bench::Trace::Event &event : trace.events) {
        if (event.call == Call::poll) {
            polls += std::min(event.value, most_polls + 1);
        }
    }
    if (polls <= most_polls) {
        bench::replay(trace, contender(), bench::Load());
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const File file;
    const std::string text(reinterpret_cast<const char *>(data), size);
    bench::Trace trace;
    size_t line = 0;
    if (read(file, text, &trace, &line)) {
        check(trace, text);
        replay(trace);
        show(file.path());
        return 0;
    }
    const std::vector<std::string> lines = lines_of(text);
    FUZZ_CHECK(line <= lines.size() + 1);
    if (line > 1) { // a trace may end after any line
        std::string before;
        for (size_t i = 0; i + 1 < line; ++i) {
            before += lines[i] + "\n";
        }
        bench::Trace shorter;
        size_t none = 0;
        FUZZ_CHECK(read(file, before, &shorter, &none));
        const bool may_be_too_long = check(shorter, before);
        const bool is_cut = line == lines.size() && text.back() != '\n';
        FUZZ_CHECK(line > lines.size() || is_cut || may_be_too_long ||
                   !is_event(lines[line - 1]));
    }
    return 0;
}
