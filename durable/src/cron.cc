// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The search goes from one change of the zone's offset to the next. Between two
// changes the civil time and real time run alike, so the first civil minute
// that matches is the answer unless the offset changes before it.

#include "src/cron.h"

#include <cctz/civil_time.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace lawn::durable
{

namespace
{

using Seconds = cctz::time_point<cctz::seconds>;

constexpr int64_t end_us = int64_t{1} << 53; // doubles are exact up to here
constexpr int64_t usec_per_sec = 1000000;
constexpr int last_year = 2256; // what is beyond `end_us` in every zone

struct Field {
    const char *name;
    unsigned first;
    unsigned last;
    const char *words; // of the values from `first` on, three letters each
};

constexpr std::array<Field, 5> field_table = {{
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day of the month", 1, 31, ""},
    {"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
    {"day of the week", 0, 7, "SUNMONTUEWEDTHUFRISAT"},
}};
constexpr const Field *weekday_field = &field_table[4];
constexpr uint64_t all_hours = (uint64_t{1} << 24) - 1;

struct Nickname {
    const char *name;
    const char *line;
};

constexpr Nickname nicknames[] = {
    {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

uint64_t bit(unsigned n)
{
    return uint64_t{1} << n;
}

bool has(uint64_t set, int n)
{
    return (set >> n & 1) != 0;
}

// For an error of one line: printable, and no longer than a line.
std::string quoted(std::string_view text)
{
    std::string out = "'";
    for (const char c : text.substr(0, 60)) {
        out += c >= ' ' && c <= '~' ? c : '?';
    }
    out += text.size() > 60 ? "...'" : "'";
    return out;
}

bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

char upper(char c)
{
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

std::string_view take_until(std::string_view *rest, char separator)
{
    const size_t end = rest->find(separator);
    const std::string_view part = rest->substr(0, end);
    rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
    return part;
}

bool parse_number(std::string_view text, unsigned *value)
{
    if (text.empty() || text.size() > 4) {
        return false;
    }
    unsigned number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            return false;
        }
        number = number * 10 + static_cast<unsigned>(c - '0');
    }
    *value = number;
    return true;
}

bool parse_value(std::string_view text, const Field &field, unsigned *value)
{
    if (parse_number(text, value)) {
        return *value >= field.first && *value <= field.last;
    }
    const std::string_view words = field.words;
    for (size_t i = 0; text.size() == 3 && i < words.size(); i += 3) {
        if (upper(text[0]) == words[i] && upper(text[1]) == words[i + 1] &&
            upper(text[2]) == words[i + 2]) {
            *value = field.first + static_cast<unsigned>(i / 3);
            return true;
        }
    }
    return false;
}

// One element of the list: *, a, a-b, */n or a-b/n.
bool parse_element(std::string_view text, const Field &field, uint64_t *set)
{
    const bool has_step = text.find('/') != std::string_view::npos;
    std::string_view rest = text;
    std::string_view range = take_until(&rest, '/');
    unsigned step = 1;
    if (has_step && (!parse_number(rest, &step) || step == 0)) {
        return false;
    }
    unsigned first = field.first;
    unsigned last = field.last;
    if (range != "*") {
        const bool is_range = range.find('-') != std::string_view::npos;
        const std::string_view low = take_until(&range, '-');
        if (!parse_value(low, field, &first) || (has_step && !is_range)) {
            return false;
        }
        last = first;
        if (is_range && !parse_value(range, field, &last)) {
            return false;
        }
        if (&field == weekday_field && is_range && last == 0 && first > 0 &&
            range != "0") {
            last = 7; // FRI-SUN
        }
    } else if (&field == weekday_field) {
        last = 6; // so that */7 is Sunday alone, once
    }
    if (first > last) {
        return false;
    }
    for (unsigned n = first; n <= last; n += step) {
        *set |= bit(&field == weekday_field && n == 7 ? 0 : n);
    }
    return true;
}

bool parse_field(std::string_view text, const Field &field, uint64_t *set,
                 std::string *error)
{
    // A comma at the end leaves an empty element, which is refused.
    std::string_view rest = text;
    for (bool is_last = false; !is_last;) {
        is_last = rest.find(',') == std::string_view::npos;
        if (!parse_element(take_until(&rest, ','), field, set)) {
            *error =
                "not a valid " + std::string(field.name) + ": " + quoted(text);
            return false;
        }
    }
    return true;
}

std::string_view without_spaces(std::string_view text)
{
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

// A name that cctz may look up. It reads any file that a name leads to, and
// remembers every name for ever, also those that have no file.
bool is_zone(std::string_view name)
{
    if (name.empty() || name.size() > Cron::longest_zone ||
        name.front() == '/' || name.find("..") != std::string_view::npos) {
        return false;
    }
    for (const char c : name) {
        if (!(upper(c) >= 'A' && upper(c) <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '/' && c != '_' && c != '-' && c != '+') {
            return false;
        }
    }
    const char *const folder = getenv("TZDIR");
    const std::string path =
        std::string(folder && *folder ? folder : "/usr/share/zoneinfo") + '/' +
        std::string(name);
    // Opened, because cctz also remembers that it could not open a file, as the
    // process had no descriptor left.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status = {};
    const bool is_file =
        fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (fd >= 0) {
        close(fd);
    }
    return is_file;
}

bool load_zone(std::string_view name, cctz::time_zone *zone)
{
    if (name.empty() || name == "UTC") {
        *zone = cctz::utc_time_zone();
        return true;
    }
    return is_zone(name) && cctz::load_time_zone(std::string(name), zone);
}

int first_of(uint64_t set, int from)
{
    const uint64_t rest = set >> from << from;
    return rest == 0 ? 64 : __builtin_ctzll(rest);
}

} // namespace

bool Cron::parse_fields(std::string_view line, Fields *fields,
                        std::string *error)
{
    const std::array<uint64_t *, 5> sets = {&fields->minutes, &fields->hours,
                                            &fields->days, &fields->months,
                                            &fields->weekdays};
    unsigned restricted_days = 0;
    size_t count = 0;
    for (size_t begin = 0; begin < line.size(); ++count) {
        size_t end = begin;
        while (end < line.size() && !is_space(line[end])) {
            ++end;
        }
        const std::string_view text = line.substr(begin, end - begin);
        if (count < sets.size()) {
            const Field &field = field_table[count];
            if (!parse_field(text, field, sets[count], error)) {
                return false;
            }
            restricted_days +=
                (count == 2 || count == 4) && text.front() != '*';
        }
        for (begin = end; begin < line.size() && is_space(line[begin]);) {
            ++begin;
        }
    }
    if (count != sets.size()) {
        *error = "a cron line has 5 fields, not " + std::to_string(count) +
                 ": " + quoted(line);
        return false;
    }
    fields->both_days_match = restricted_days < 2;
    return true;
}

// True if some day of the calendar matches. Every date falls on every day of
// the week at some time, 29 February too. So it is enough to look at the dates.
bool Cron::has_a_day(const Fields &fields)
{
    static constexpr int lengths[] = {31, 29, 31, 30, 31, 30,
                                      31, 31, 30, 31, 30, 31};
    for (int month = 1; month <= 12; ++month) {
        if (has(fields.months, month) &&
            (!fields.both_days_match ||
             first_of(fields.days, 1) <= lengths[month - 1])) {
            return true;
        }
    }
    return false;
}

bool Cron::parse(std::string_view line, std::string_view zone,
                 std::string *error)
{
    if (line.size() > longest_line) {
        *error = "the cron line is longer than 255 bytes";
        return false;
    }
    const std::string_view given = without_spaces(line);
    std::string_view expanded = given;
    for (const Nickname &nickname : nicknames) {
        expanded = given == nickname.name ? nickname.line : expanded;
    }
    Fields fields;
    if (!parse_fields(expanded, &fields, error)) {
        return false;
    }
    if (!has_a_day(fields)) {
        *error = "no day ever matches the cron line " + quoted(given);
        return false;
    }
    cctz::time_zone loaded;
    if (!load_zone(zone, &loaded)) {
        *error = "not a time zone: " + quoted(zone);
        return false;
    }
    fields_ = fields;
    zone_ = loaded;
    return true;
}

bool Cron::matches(cctz::civil_day day) const
{
    const bool date_matches = has(fields_.days, day.day());
    // cctz counts from Monday.
    const int weekday = (static_cast<int>(cctz::get_weekday(day)) + 1) % 7;
    const bool weekday_matches = has(fields_.weekdays, weekday);
    return fields_.both_days_match ? date_matches && weekday_matches
                                   : date_matches || weekday_matches;
}

bool Cron::first_minute(cctz::civil_second at_least,
                        cctz::civil_minute *found) const
{
    cctz::civil_minute from(at_least);
    from += at_least.second() != 0;
    while (from.year() <= last_year) {
        const cctz::civil_month month(from);
        const cctz::civil_day day(from);
        const cctz::civil_hour hour(from);
        if (!has(fields_.months, month.month())) {
            from = cctz::civil_minute(month + 1);
        } else if (!matches(day)) {
            from = cctz::civil_minute(day + 1);
        } else if (!has(fields_.hours, hour.hour())) {
            const int next = first_of(fields_.hours, hour.hour());
            from = cctz::civil_minute(cctz::civil_hour(day) +
                                      (next < 24 ? next : 24));
        } else if (!has(fields_.minutes, from.minute())) {
            const int next = first_of(fields_.minutes, from.minute());
            from = cctz::civil_minute(hour) + (next < 60 ? next : 60);
        } else {
            *found = from;
            return true;
        }
    }
    return false;
}

bool Cron::next(int64_t after_us, int64_t *next_us) const
{
    if (after_us < 0 || after_us >= end_us || fields_.minutes == 0) {
        return false;
    }
    const bool is_fixed = fields_.hours != all_hours;
    Seconds now{cctz::seconds(after_us / usec_per_sec)};
    cctz::civil_second at_least = cctz::convert(now, zone_) + 1;
    cctz::time_zone::civil_transition change;
    if (is_fixed && zone_.prev_transition(now + cctz::seconds(1), &change) &&
        change.from > at_least) {
        at_least = change.from; // what is repeated now has had its turn
    }
    for (;;) {
        cctz::civil_minute minute;
        if (!first_minute(at_least, &minute)) {
            return false;
        }
        const cctz::civil_second found(minute);
        const cctz::civil_second start = cctz::convert(now, zone_);
        Seconds time = now + cctz::seconds(found - start);
        if (zone_.next_transition(now, &change) && found >= change.from) {
            now += cctz::seconds(change.from - start);
            if (!is_fixed || found >= change.to) {
                at_least =
                    is_fixed ? std::max(change.from, change.to) : change.to;
                continue;
            }
            time = now; // the first moment after the gap
        }
        const int64_t seconds = time.time_since_epoch().count();
        if (seconds >= end_us / usec_per_sec) {
            return false;
        }
        *next_us = seconds * usec_per_sec;
        return true;
    }
}

} // namespace lawn::durable
