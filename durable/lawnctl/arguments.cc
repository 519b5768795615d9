// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line; see arguments.h.

#include "arguments.h"

#include "output.h"

#include "src/codec.h"
#include "src/url.h"

#include <cctz/time_zone.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace lawnctl
{

namespace
{

constexpr int64_t second_us = 1000000;
constexpr size_t time_digits = 12; // a million years would not fit

bool is_digits(const std::string &text)
{
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= '0' && c <= '9';
    });
}

} // namespace

void complain(const std::string &line)
{
    const std::string text = payload_text(line.data(), line.size());
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, text.c_str());
}

void fail(const std::string &line)
{
    complain(line);
    exit(EXIT_FAILURE);
}

Arguments::Arguments(int argc, char **argv, const std::set<std::string> &flags)
{
    bool has_options = true;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (!has_options || word.size() < 2 || word[0] != '-') {
            words_.push_back(word);
            continue;
        }
        if (word == "--") {
            has_options = false;
            continue;
        }
        const size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const bool is_flag = flags.count(name) != 0;
        std::string value;
        if (equals != std::string::npos) {
            if (is_flag) {
                fail(name + " takes no value");
            }
            value = word.substr(equals + 1);
        } else if (!is_flag) {
            if (++i == argc) {
                last_ = name;
            } else {
                value = argv[i];
            }
        }
        if (!options_.emplace(name, value).second) {
            fail(name + " was given twice");
        }
    }
}

bool Arguments::take_flag(const std::string &name)
{
    return options_.erase(name) != 0;
}

std::optional<std::string> Arguments::take_text(const std::string &name)
{
    const auto found = options_.find(name);
    if (found == options_.end()) {
        return std::nullopt;
    }
    if (name == last_) {
        fail(name + " needs a value; see --help");
    }
    std::string value = found->second;
    options_.erase(found);
    return value;
}

std::optional<uint64_t> Arguments::take_number(const std::string &name,
                                               uint64_t least, uint64_t most)
{
    const std::optional<std::string> text = take_text(name);
    if (!text) {
        return std::nullopt;
    }
    // 18 digits do not overflow.
    const bool is_number = is_digits(*text) && text->size() <= 18;
    const uint64_t value = is_number ? strtoull(text->c_str(), nullptr, 10) : 0;
    if (!is_number || value < least || value > most) {
        fail(name + " takes whole numbers from " + std::to_string(least) +
             " to " + std::to_string(most) + ", not '" + *text + "'");
    }
    return value;
}

std::optional<uint64_t> Arguments::take_duration(const std::string &name)
{
    const std::optional<std::string> text = take_text(name);
    if (!text) {
        return std::nullopt;
    }
    uint64_t usec = 0;
    std::string error;
    if (!lawn::durable::parse_duration(*text, &usec, &error)) {
        fail(name + ": " + error);
    }
    return usec;
}

std::string Arguments::take_word(const std::string &what)
{
    if (words_.empty() && options_.count(last_) != 0) {
        finish(); // that is what is wrong
    }
    if (words_.empty()) {
        fail(what + " is missing; see --help");
    }
    std::string word = words_.front();
    words_.erase(words_.begin());
    return word;
}

void Arguments::finish() const
{
    if (!options_.empty()) {
        fail("there is no option " + options_.begin()->first +
             " here; see --help");
    }
    if (!words_.empty()) {
        fail("'" + words_.front() + "' is too much; see --help");
    }
}

namespace
{

int64_t parse_seconds(const std::string &text)
{
    const size_t point = text.find('.');
    const std::string whole = text.substr(0, point);
    std::string fraction =
        point == std::string::npos ? "0" : text.substr(point + 1);
    if (!is_digits(whole) || whole.size() > time_digits ||
        !is_digits(fraction) || fraction.size() > 6) {
        fail("'" + text +
             "' is no time in seconds since 1970, or like 2026-12-24T18:00Z");
    }
    fraction.resize(6, '0');
    return strtoll(whole.c_str(), nullptr, 10) * second_us +
           strtoll(fraction.c_str(), nullptr, 10);
}

using Time = cctz::time_point<std::chrono::microseconds>;

// What follows the date and the hour may be left out.
bool parse_date(const std::string &text, const std::string &offset, Time *time)
{
    for (const char *const format :
         {"%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H"}) {
        if (cctz::parse(format + offset, text, cctz::utc_time_zone(), time)) {
            return true;
        }
    }
    return false;
}

// ISO 8601 with an offset or Z, or of a zone.
int64_t parse_iso_time(const std::string &text, const std::string &zone_name)
{
    Time time;
    if (parse_date(text, "%Ez", &time)) {
        if (!zone_name.empty()) {
            fail("'" + text + "' has an offset: --zone is for times without");
        }
        return time.time_since_epoch().count();
    }
    if (!parse_date(text, "", &time)) {
        fail("'" + text + "' is no time like 2026-12-24T18:00:00Z");
    }
    if (zone_name.empty()) {
        fail("'" + text + "' is of no zone: add Z, an offset or --zone");
    }
    cctz::time_zone zone;
    if (!cctz::load_time_zone(zone_name, &zone)) {
        fail("not a time zone: '" + zone_name + "'");
    }
    const auto second =
        std::chrono::time_point_cast<cctz::seconds>(time); // is after 1970
    const auto found =
        zone.lookup(cctz::convert(second, cctz::utc_time_zone()));
    if (found.kind == cctz::time_zone::civil_lookup::SKIPPED) {
        fail("'" + text + "' does not exist in " + zone_name +
             ", where clocks are put forward then");
    }
    return Time(found.pre).time_since_epoch().count() +
           (time - Time(second)).count();
}

} // namespace

int64_t parse_time(const std::string &text, const std::string &zone)
{
    const bool is_date = text.find('-', 1) != std::string::npos;
    if (!is_date && !zone.empty()) {
        fail("--zone is for --cron, and for dates without an offset");
    }
    const int64_t usec =
        is_date ? parse_iso_time(text, zone) : parse_seconds(text);
    if (usec < 0) {
        fail("'" + text + "' is before 1970");
    }
    if (usec > lawn::durable::max_time) {
        fail("'" + text + "' is after the year 2255, too late for a timer");
    }
    return usec;
}

} // namespace lawnctl
