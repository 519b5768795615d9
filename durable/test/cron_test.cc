// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Cron expressions: what is accepted, and the times that follow from it. Next
// to examples there is an oracle that knows no rule of a search: it walks
// through time minute by minute, with the C library's time zones.

#include "src/cron.h"

#include "../../test/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <set>
#include <string>

using lawn::durable::Cron;

namespace
{

constexpr int64_t usec = 1000000;

// The time of an ISO text such as "2024-03-31T02:30Z" in the zone UTC.
int64_t utc(const char *text)
{
    tm parts = {};
    const char *const end = strptime(text, "%Y-%m-%dT%H:%M", &parts);
    EXPECT_TRUE(end && std::string(end) == "Z") << text;
    return timegm(&parts);
}

std::string text_of(int64_t seconds)
{
    const auto time = static_cast<time_t>(seconds);
    tm parts = {};
    gmtime_r(&time, &parts);
    char text[64];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M", &parts);
    return std::string(text) + (seconds % 60 ? "+Z" : "Z");
}

std::string next_of(const std::string &line, const char *zone, int64_t after)
{
    Cron cron;
    std::string error;
    if (!cron.parse(line, zone, &error)) {
        return error;
    }
    int64_t next = 0;
    if (!cron.next(after * usec, &next)) {
        return "never";
    }
    EXPECT_GT(next, after * usec);
    EXPECT_EQ(next % usec, 0);
    return text_of(next / usec);
}

std::string refusal_of(const std::string &line, const std::string &zone = "")
{
    Cron cron;
    std::string error;
    return cron.parse(line, zone, &error) ? "accepted" : error;
}

TEST(Cron, FindsTheNextTime)
{
    const int64_t after = utc("2024-02-10T12:34Z"); // a Saturday
    const struct {
        const char *line;
        const char *next;
    } cases[] = {
        {"* * * * *", "2024-02-10T12:35Z"},
        {"34 12 * * *", "2024-02-11T12:34Z"},
        {"*/15 * * * *", "2024-02-10T12:45Z"},
        {"3-50/7 13 * * *", "2024-02-10T13:03Z"},
        {"0 0 29 2 *", "2024-02-29T00:00Z"},
        {"0 0 29 2 */7", "2032-02-29T00:00Z"}, // both: on a Sunday
        {"0 0 13 * FRI", "2024-02-13T00:00Z"}, // either
        {"0 0 */13 * FRI", "2024-03-01T00:00Z"},
        {"0 0 1 jan,Jul *", "2024-07-01T00:00Z"},
        {"5 4 * * sun", "2024-02-11T04:05Z"},
        {"5 4 * * 7", "2024-02-11T04:05Z"},
        {"5 4 * * 6-7", "2024-02-11T04:05Z"},
        {"5 4 * * FRI-SUN", "2024-02-11T04:05Z"},
        {"5 4 * * SUN-MON", "2024-02-11T04:05Z"},
        {"5 4 * * 1-5", "2024-02-12T04:05Z"},
        {"59 23 31 12 *", "2024-12-31T23:59Z"},
        {" 0\t0  1 1 * ", "2025-01-01T00:00Z"},
        {"@hourly", "2024-02-10T13:00Z"},
        {"@daily", "2024-02-11T00:00Z"},
        {"@midnight", "2024-02-11T00:00Z"},
        {"@weekly", "2024-02-11T00:00Z"},
        {"@monthly", "2024-03-01T00:00Z"},
        {"@yearly", "2025-01-01T00:00Z"},
        {"@annually", "2025-01-01T00:00Z"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(next_of(c.line, "", after), c.next) << c.line;
    }
}

TEST(Cron, NextIsLaterByAMicrosecondAtLeast)
{
    Cron cron;
    std::string error;
    ASSERT_TRUE(cron.parse("* * * * *", "UTC", &error)) << error;
    int64_t next = 0;
    ASSERT_TRUE(cron.next(60 * usec - 1, &next));
    EXPECT_EQ(next, 60 * usec);
    ASSERT_TRUE(cron.next(60 * usec, &next));
    EXPECT_EQ(next, 120 * usec);
    ASSERT_TRUE(cron.next(60 * usec + 1, &next));
    EXPECT_EQ(next, 120 * usec);
}

TEST(Cron, TimeThatDoesNotExistGivesTheEndOfTheGap)
{
    const char *const berlin = "Europe/Berlin"; // 02:00 to 03:00 at 01:00Z
    const int64_t before = utc("2024-03-31T00:30Z");
    EXPECT_EQ(next_of("30 2 * * *", berlin, before), "2024-03-31T01:00Z");
    EXPECT_EQ(next_of("30 2 * * *", berlin, utc("2024-03-31T01:00Z")),
              "2024-04-01T00:30Z");
    EXPECT_EQ(next_of("0 3 * * *", berlin, before), "2024-03-31T01:00Z");
    EXPECT_EQ(next_of("15 2,3 * * *", berlin, before), "2024-03-31T01:00Z");
    EXPECT_EQ(next_of("15 2,3 * * *", berlin, utc("2024-03-31T01:00Z")),
              "2024-03-31T01:15Z");
    // 30 December 2011 is no day in Samoa.
    EXPECT_EQ(next_of("0 12 30 12 *", "Pacific/Apia", utc("2011-06-01T00:00Z")),
              "2011-12-30T10:00Z");
}

TEST(Cron, TimeThatExistsTwiceMatchesOnce)
{
    const char *const berlin = "Europe/Berlin"; // 03:00 to 02:00 at 01:00Z
    EXPECT_EQ(next_of("30 2 * * *", berlin, utc("2024-10-27T00:00Z")),
              "2024-10-27T00:30Z");
    EXPECT_EQ(next_of("30 2 * * *", berlin, utc("2024-10-27T00:30Z")),
              "2024-10-28T01:30Z");
    EXPECT_EQ(next_of("30 2 * * *", berlin, utc("2024-10-27T01:10Z")),
              "2024-10-28T01:30Z");
    EXPECT_EQ(next_of("*/20 2-3 * * *", berlin, utc("2024-10-27T00:40Z")),
              "2024-10-27T02:00Z");
}

TEST(Cron, LineForEveryHourFollowsRealTime)
{
    const char *const berlin = "Europe/Berlin";
    EXPECT_EQ(next_of("30 * * * *", berlin, utc("2024-03-31T00:30Z")),
              "2024-03-31T01:30Z");
    EXPECT_EQ(next_of("30 * * * *", berlin, utc("2024-10-27T00:30Z")),
              "2024-10-27T01:30Z");
    EXPECT_EQ(next_of("*/40 0-23 * * *", berlin, utc("2024-10-27T00:40Z")),
              "2024-10-27T01:00Z");
}

TEST(Cron, RefusesWhatIsNoCronLineWithOneLine)
{
    for (const char *const line : {"",
                                   " ",
                                   "*",
                                   "* * * *",
                                   "* * * * * *",
                                   "60 * * * *",
                                   "-1 * * * *",
                                   "* 24 * * *",
                                   "* * 0 * *",
                                   "* * 32 * *",
                                   "* * * 0 *",
                                   "* * * 13 *",
                                   "* * * * 8",
                                   "* * * JANU *",
                                   "* * * * MO",
                                   "5/15 * * * *",
                                   "*/0 * * * *",
                                   "*/ * * * *",
                                   "*/5/5 * * * *",
                                   "5-1 * * * *",
                                   "1- * * * *",
                                   "-5 * * * *",
                                   "1-2-3 * * * *",
                                   ", * * * *",
                                   "1, * * * *",
                                   "1,,2 * * * *",
                                   "** * * * *",
                                   "*5 * * * *",
                                   "00001 * * * *",
                                   "99999999999999999999 * * * *",
                                   "+5 * * * *",
                                   "0x5 * * * *",
                                   "1.5 * * * *",
                                   "@reboot",
                                   "@",
                                   "\n* * * * *",
                                   "* * * * *\n",
                                   "* * * * \xff",
                                   "* * * * 6-0",
                                   "* * L * *",
                                   "0 0 30 2 *",
                                   "0 0 31 4,6,9,11 *"}) {
        const std::string error = refusal_of(line);
        EXPECT_NE(error, "accepted") << line;
        EXPECT_FALSE(error.empty()) << line;
        EXPECT_LT(error.size(), 160U) << line;
        EXPECT_TRUE(std::all_of(error.begin(), error.end(), [](char c) {
            return c >= ' ' && c <= '~';
        })) << line;
    }
    EXPECT_EQ(refusal_of("* 25 * * *"), "not a valid hour: '25'");
    EXPECT_EQ(refusal_of("* * * *"),
              "a cron line has 5 fields, not 4: '* * * *'");
    EXPECT_EQ(refusal_of("0 0 30 2 *"),
              "no day ever matches the cron line '0 0 30 2 *'");
    EXPECT_EQ(refusal_of(std::string(256, ' ')),
              "the cron line is longer than 255 bytes");
    EXPECT_EQ(refusal_of(std::string("* * * * *\0", 10)),
              "not a valid day of the week: '*?'");
}

TEST(Cron, RefusesWhatIsNoZone)
{
    for (const std::string zone :
         {"Mars/Olympus", "/etc/localtime", "../../../etc/localtime", "Europe",
          "Europe/", "Europe/Berlin ", "libc:Europe/Berlin", ":UTC", "zone.tab",
          "Europe/../UTC", "Fixed/UTC+01:00:00"}) {
        const std::string error = refusal_of("* * * * *", zone);
        EXPECT_EQ(error, "not a time zone: '" + zone + "'");
    }
    EXPECT_EQ(refusal_of("* * * * *", std::string("UTC\0", 4)),
              "not a time zone: 'UTC?'");
    EXPECT_NE(refusal_of("* * * * *", std::string(1000, 'A')), "accepted");
    for (const char *const zone : {"", "UTC", "Etc/GMT+7", "Asia/Kathmandu"}) {
        EXPECT_EQ(refusal_of("* * * * *", zone), "accepted") << zone;
    }
}

TEST(Cron, RefusalLeavesTheObjectAsItWas)
{
    Cron cron;
    std::string error;
    int64_t next = 0;
    EXPECT_FALSE(cron.next(0, &next)); // it has no expression yet
    ASSERT_TRUE(cron.parse("7 * * * *", "", &error));
    EXPECT_FALSE(cron.parse("* * * * 9", "", &error));
    EXPECT_FALSE(cron.parse("* * * * *", "Nowhere", &error));
    ASSERT_TRUE(cron.next(0, &next));
    EXPECT_EQ(next, 7 * 60 * usec);
}

TEST(Cron, TimeEndsWhereDuesEnd)
{
    Cron cron;
    std::string error;
    ASSERT_TRUE(cron.parse("* * * * *", "Europe/Berlin", &error)) << error;
    constexpr int64_t end = int64_t{1} << 53;
    int64_t next = 0;
    EXPECT_TRUE(cron.next(end - 120 * usec, &next));
    EXPECT_LT(next, end);
    EXPECT_FALSE(cron.next(end - 1, &next));
    EXPECT_FALSE(cron.next(end, &next));
    EXPECT_FALSE(cron.next(INT64_MAX, &next));
    EXPECT_FALSE(cron.next(-1, &next));
    EXPECT_FALSE(cron.next(INT64_MIN, &next));
    ASSERT_TRUE(cron.parse("0 0 29 2 */7", "", &error));
    ASSERT_TRUE(cron.next(utc("2088-03-01T00:00Z") * usec, &next));
    EXPECT_EQ(text_of(next / usec), "2128-02-29T00:00Z"); // the longest wait
    EXPECT_FALSE(cron.next(utc("2253-01-01T00:00Z") * usec, &next));
}

//
// The oracle.
//

struct Expression {
    std::string line;
    std::set<int> values[5];
    bool is_restricted[5] = {};
};

constexpr int lowest[] = {0, 0, 1, 1, 0};
constexpr int highest[] = {59, 23, 31, 12, 7};

using Random = std::mt19937_64;

int pick(Random &random, int first, int last)
{
    return std::uniform_int_distribution<int>(first, last)(random);
}

std::string element(Random &random, int field, std::set<int> *values)
{
    int first = lowest[field];
    int last = field == 4 ? 6 : highest[field];
    int step = 1;
    std::string text = "*";
    const int kind = pick(random, 0, 9);
    if (kind < 8) {
        first = pick(random, lowest[field], highest[field]);
        last = kind < 4 ? first : pick(random, first, highest[field]);
        text = std::to_string(first);
        text += kind < 4 ? "" : "-" + std::to_string(last);
    }
    if (kind == 6 || kind == 7 || kind == 9) {
        step = pick(random, 1, 1 + highest[field]);
        text += "/" + std::to_string(step);
    }
    for (int value = first; value <= last; value += step) {
        values->insert(field == 4 ? value % 7 : value);
    }
    return text;
}

Expression make_expression(Random &random)
{
    Expression made;
    for (int field = 0; field < 5; ++field) {
        std::string text = "*";
        if (pick(random, 0, field < 2 ? 5 : 2) == 0) {
            element(random, field, &made.values[field]);
            made.values[field].clear();
            for (int v = lowest[field]; v <= highest[field]; ++v) {
                made.values[field].insert(field == 4 ? v % 7 : v);
            }
        } else {
            text = element(random, field, &made.values[field]);
            while (pick(random, 0, 2) == 0) {
                text += "," + element(random, field, &made.values[field]);
            }
        }
        made.is_restricted[field] = text[0] != '*';
        made.line += (field ? " " : "") + text;
    }
    return made;
}

// `wall` is what clocks on the wall show, as if it were UTC.
bool matches(const Expression &e, int64_t wall)
{
    const auto time = static_cast<time_t>(wall);
    tm parts = {};
    gmtime_r(&time, &parts);
    const bool day = e.values[2].count(parts.tm_mday) != 0;
    const bool weekday = e.values[4].count(parts.tm_wday) != 0;
    return e.values[0].count(parts.tm_min) &&
           e.values[1].count(parts.tm_hour) &&
           e.values[3].count(parts.tm_mon + 1) &&
           (e.is_restricted[2] && e.is_restricted[4] ? day || weekday
                                                     : day && weekday);
}

int64_t wall_of(int64_t seconds)
{
    const auto time = static_cast<time_t>(seconds);
    tm parts = {};
    localtime_r(&time, &parts);
    return seconds + parts.tm_gmtoff;
}

constexpr int64_t hour = 3600;
constexpr int64_t most = 40 * 24 * hour; // that the oracle walks

// In the zone of the environment. Returns after + most if there is none.
int64_t walk(const Expression &e, int64_t after)
{
    const bool follows_real_time = e.values[1].size() == 24;
    // Clocks have shown what they showed in the two days before.
    const int64_t first = (after / 60 - 2 * 24 * 60) * 60;
    int64_t shown = wall_of(first);
    for (int64_t t = first + 60; t < after + most; t += 60) {
        const int64_t wall = wall_of(t);
        bool is_hit = false;
        if (follows_real_time) {
            is_hit = t > after && matches(e, wall);
        } else {
            for (int64_t w = shown + 60; w <= wall && t > after; w += 60) {
                is_hit = is_hit || matches(e, w);
            }
        }
        if (is_hit) {
            return t;
        }
        shown = std::max(shown, wall);
    }
    return after + most;
}

// A time next to a change of the offset, if there is one within 400 days.
int64_t near_a_change(Random &random, int64_t from)
{
    const int64_t offset = wall_of(from) - from;
    for (int64_t t = from; t < from + 400 * 24 * hour; t += 6 * hour) {
        if (wall_of(t) - t != offset) {
            return t + pick(random, -36 * 3600, 30 * 3600);
        }
    }
    return from;
}

class CronOracle : public testing::Test
{
protected:
    void SetUp() override
    {
        const char *const zone = getenv("TZ");
        had_zone_ = zone != nullptr;
        zone_ = zone ? zone : "";
    }

    void TearDown() override
    {
        if (had_zone_) {
            setenv("TZ", zone_.c_str(), 1);
        } else {
            unsetenv("TZ");
        }
        tzset();
    }

private:
    bool had_zone_ = false;
    std::string zone_;
};

TEST_F(CronOracle, WalkingMinuteByMinuteFindsTheSame)
{
    const uint64_t seed = lawn_test::environment("LAWN_TEST_SEED", 14);
    SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
    Random random(seed);
    unsigned found = 0;
    for (const char *const zone :
         {"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns",
          "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Kathmandu",
          "Africa/Casablanca", "Asia/Gaza", "Pacific/Apia"}) {
        setenv("TZ", zone, 1);
        tzset();
        for (uint64_t i = 0; i < lawn_test::scaled(10) + 2; ++i) {
            const Expression e = make_expression(random);
            int64_t after = pick(random, 70000000, 2100000000);
            if (i % 4 != 0) {
                after = near_a_change(random, after);
            } else if (std::string(zone) == "Pacific/Apia") {
                after = utc("2011-12-29T00:00Z") + pick(random, 0, 200000);
            }
            SCOPED_TRACE(e.line + " in " + zone + " after " +
                         std::to_string(after));
            Cron cron;
            std::string error;
            if (!cron.parse(e.line, zone, &error)) {
                ASSERT_EQ(error.find("no day ever matches"), 0U) << error;
                ASSERT_EQ(walk(e, after), after + most);
                continue;
            }
            int64_t next = (after + most) * usec;
            const bool is_found = cron.next(after * usec, &next);
            const int64_t wanted = walk(e, after);
            if (wanted == after + most) {
                ASSERT_TRUE(!is_found || next >= wanted * usec);
            } else {
                ASSERT_TRUE(is_found);
                ASSERT_EQ(next, wanted * usec);
                ++found;
            }
        }
    }
    EXPECT_GT(found, 0U);
}

} // namespace
