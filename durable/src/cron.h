// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Cron expressions with five fields (minute, hour, day of the month, month, day
// of the week) in a time zone.
//
//     lawn::durable::Cron cron;
//     std::string error;
//     if (cron.parse("30 2 * * MON-FRI", "Europe/Berlin", &error)) {
//         found = cron.next(now_us, &next_us);
//     }
//
// A field is a list, separated by commas, of `*`, a value, a range `a-b`, or a
// `*` or a range with a step `/n`. Months and days of the week may have their
// English names of three letters, in either case. 0 and 7 both are Sunday. If
// both day fields are restricted, that is, neither begins with `*`, a day
// matches when one of them does. Otherwise both must match. @hourly, @daily,
// @midnight, @weekly, @monthly, @yearly and @annually are accepted instead of
// the five fields.
//
// When clocks change, it depends on the field of the hours:
//   - If it allows every hour, the expression follows real time. A minute that
//     does not exist is left out, and a minute that exists twice matches twice.
//   - Otherwise a minute that does not exist gives the first moment after the
//     gap, and a minute that exists twice matches the first time only. So a
//     daily task runs once on every day.
//
// A Cron owns its memory, and any thread may use it when no other does. parse()
// and the first use of a zone read the zone's file, and may allocate.
#ifndef LAWN_DURABLE_CRON_H
#define LAWN_DURABLE_CRON_H

#include <cctz/time_zone.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lawn::durable
{

class Cron
{
public:
    static constexpr size_t longest_line = 255; // bytes
    static constexpr size_t longest_zone = 64;

    // Takes the expression over. `zone` is an IANA name; empty means UTC.
    // Returns false, and one printable line in *error, if the line or the zone
    // is not valid or if no day ever matches (30 February). The object then is
    // as it was.
    bool parse(std::string_view line, std::string_view zone,
               std::string *error);

    // Puts into *next_us the first matching time after `after_us`, both in
    // microseconds since 1970. Returns false if `after_us` is negative, or if
    // there is none before 2^53 microseconds (the year 2255), which is the end
    // of what a timer's due time can hold. The search is bounded: it visits the
    // days of 40 years at most, and no minute in vain.
    bool next(int64_t after_us, int64_t *next_us) const;

private:
    struct Fields {
        uint64_t minutes = 0;
        uint64_t hours = 0;
        uint64_t days = 0;
        uint64_t months = 0;
        uint64_t weekdays = 0;       // bit 0: Sunday
        bool both_days_match = true; // or one is enough
    };

    static bool parse_fields(std::string_view line, Fields *fields,
                             std::string *error);
    static bool has_a_day(const Fields &fields);
    bool first_minute(cctz::civil_second at_least,
                      cctz::civil_minute *found) const;
    bool matches(cctz::civil_day day) const;

    Fields fields_;
    cctz::time_zone zone_;
};

} // namespace lawn::durable

#endif
