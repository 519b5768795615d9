// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What users write: URLs, durations, durabilities, names, targets.

#include "src/url.h"

#include <gtest/gtest.h>
#include <lawn/durable.h>

namespace
{

using namespace lawn::durable;

Url parsed(std::string_view text)
{
    Url url;
    std::string error;
    EXPECT_TRUE(parse_url(text, &url, &error)) << text << ": " << error;
    return url;
}

std::string error_of_url(std::string_view text)
{
    Url url;
    std::string error;
    EXPECT_FALSE(parse_url(text, &url, &error)) << text;
    return error;
}

TEST(DurableUrl, NamesAHostAndAPort)
{
    EXPECT_EQ(parsed("redis://").endpoints[0].text(), "127.0.0.1:6379");
    EXPECT_EQ(parsed("redis://store").endpoints[0].text(), "store:6379");
    EXPECT_EQ(parsed("redis://store:1/").endpoints[0].text(), "store:1");
    EXPECT_EQ(parsed("redis://[::1]").endpoints[0].text(), "[::1]:6379");
    EXPECT_EQ(parsed("redis://[::1]:7").endpoints[0].text(), "[::1]:7");
    EXPECT_EQ(parsed("redis://store:65535/15").db, 15U);
    EXPECT_TRUE(parsed("redis://store").master.empty());
}

TEST(DurableUrl, NamesAUserAndAPassword)
{
    const Url user = parsed("redis://me:secret@store:5/2");
    EXPECT_EQ(user.user, "me");
    EXPECT_EQ(user.password, "secret");
    EXPECT_EQ(user.endpoints[0].text(), "store:5");
    EXPECT_EQ(user.db, 2U);
    const Url password = parsed("redis://:a%40b%3A%2f@store");
    EXPECT_EQ(password.user, "");
    EXPECT_EQ(password.password, "a@b:/");
}

TEST(DurableUrl, NamesASocket)
{
    const Url url = parsed("unix:/run/redis.sock");
    EXPECT_EQ(url.endpoints[0].text(), "/run/redis.sock");
    EXPECT_EQ(url.endpoints[0].port, 0U);
    EXPECT_EQ(parsed("unix:///run/redis.sock?db=3").endpoints[0].text(),
              "/run/redis.sock");
    EXPECT_EQ(parsed("unix:///run/redis.sock?db=3").db, 3U);
}

TEST(DurableUrl, NamesSentinels)
{
    const Url url = parsed("sentinel://u:p@one,two:5,[::1]:6/mymaster/4");
    ASSERT_EQ(url.endpoints.size(), 3U);
    EXPECT_EQ(url.endpoints[0].text(), "one:26379");
    EXPECT_EQ(url.endpoints[1].text(), "two:5");
    EXPECT_EQ(url.endpoints[2].text(), "[::1]:6");
    EXPECT_EQ(url.master, "mymaster");
    EXPECT_EQ(url.db, 4U);
    EXPECT_EQ(url.password, "p");
}

TEST(DurableUrl, IsRefusedInOneLine)
{
    for (const std::string_view text : {"",
                                        "store",
                                        "http://store",
                                        "redis:/store",
                                        "redis://store:",
                                        "redis://:1",
                                        "redis://store:0",
                                        "redis://store:65536",
                                        "redis://store:-1",
                                        "redis://store:1x",
                                        "redis://store:1/x",
                                        "redis://store:1/-1",
                                        "redis://store:1/1/2",
                                        "redis://sto re",
                                        "redis://st\nore",
                                        "redis://[::1",
                                        "redis://[::1]x",
                                        "redis://me@store",
                                        "redis://me:@store",
                                        "redis://me:%4@store",
                                        "redis://me:%zz@store",
                                        "redis://me:%00@store",
                                        "redis://store?db=1",
                                        "unix:",
                                        "unix:?db=1",
                                        "unix:/a?base=1",
                                        "unix:/a?db=",
                                        "unix:/a?db=x",
                                        "sentinel://store",
                                        "sentinel://store/",
                                        "sentinel:///master",
                                        "sentinel://a,,b/master",
                                        "sentinel://a//1",
                                        "sentinel://a/master/x",
                                        "sentinel://a:0/master"}) {
        const std::string error = error_of_url(text);
        EXPECT_FALSE(error.empty());
        EXPECT_EQ(error.find('\n'), error.npos);
        EXPECT_LT(error.size(), 200U);
    }
    EXPECT_NE(error_of_url("unix:/" + std::string(107, 'x')).find("107"),
              std::string::npos);
    for (const std::string_view text :
         {"unix:/x?password=secret", "unix::secret@/x", "unix://a:secret@/x",
          "unix:/x?db=secret", "redis://:secret", "redis://me:secret",
          "redis://secret@host", "redis://host/0?password=secret",
          "redis://[secret", "sentinel://me:secret/master",
          "sentinel://h/master/secret"}) {
        const std::string error = error_of_url(text);
        EXPECT_EQ(error.find("secret"), error.npos) << error;
    }
    EXPECT_EQ(error_of_url("redis://me:secret@sto re").find("secret"),
              std::string::npos);
}

TEST(DurableUrl, OfTlsIsRefusedAsSuch)
{
    EXPECT_TRUE(is_tls_url("rediss://store"));
    EXPECT_FALSE(is_tls_url("redis://store"));
    EXPECT_NE(error_of_url("rediss://store").find("TLS"), std::string::npos);
}

TEST(DurableDuration, HasAUnit)
{
    struct Known {
        std::string_view text;
        uint64_t usec;
    };
    for (const Known &i :
         std::initializer_list<Known>{{"250us", 250},
                                      {"250ms", 250000},
                                      {"2s", 2000000},
                                      {"1.5s", 1500000},
                                      {"5m", 300000000},
                                      {"3h", 10800000000},
                                      {"10d", 864000000000},
                                      {"0", 0},
                                      {"0s", 0},
                                      {"0.0000001s", 1},
                                      {"36500d", 3153600000000000}}) {
        uint64_t usec = 1;
        std::string error;
        EXPECT_TRUE(parse_duration(i.text, &usec, &error)) << error;
        EXPECT_EQ(usec, i.usec) << i.text;
        EXPECT_EQ(error, "");
    }
}

TEST(DurableDuration, IsRefusedInOneLine)
{
    for (const std::string_view text :
         {"", "5", "s", "-5s", "+5s", "5 s", " 5s", "5S", "5sec", "5s ", "infs",
          "nans", "0x5s", "1e3s", "5s5s", "36601d", "99999999999999999999d",
          ".5s"}) {
        uint64_t usec = 7;
        std::string error;
        EXPECT_FALSE(parse_duration(text, &usec, &error)) << text;
        EXPECT_FALSE(error.empty());
        EXPECT_EQ(usec, 7U) << text;
    }
}

TEST(DurableDurability, IsOneOfThree)
{
    int durability = 0;
    std::string error;
    EXPECT_TRUE(parse_durability("fsync", &durability, &error));
    EXPECT_EQ(durability, LAWN_DURABLE_FSYNC);
    EXPECT_TRUE(parse_durability("async", &durability, &error));
    EXPECT_EQ(durability, LAWN_DURABLE_ASYNC);
    EXPECT_TRUE(parse_durability("replicated:2", &durability, &error));
    EXPECT_EQ(durability, 2);
    EXPECT_TRUE(check_durability(100));
    EXPECT_FALSE(check_durability(101));
    EXPECT_FALSE(check_durability(-2));
    for (const std::string_view text :
         {"", "sync", "Async", "replicated", "replicated:", "replicated:0",
          "replicated:-1", "replicated:101", "replicated:1x"}) {
        error.clear();
        EXPECT_FALSE(parse_durability(text, &durability, &error)) << text;
        EXPECT_FALSE(error.empty());
    }
}

TEST(DurableName, OfANamespaceIsShortAndPlain)
{
    std::string error;
    EXPECT_TRUE(check_name_space("Orders-2_a.b", &error)) << error;
    EXPECT_TRUE(check_name_space(std::string(64, 'x'), &error));
    for (const std::string_view text :
         {"", "a b", "a:b", "{a}", "a/b", "\x80"}) {
        EXPECT_FALSE(check_name_space(text, &error)) << text;
    }
    EXPECT_FALSE(check_name_space(std::string(65, 'x'), &error));
}

TEST(DurableName, OfATimerHasNoSpaces)
{
    std::string error;
    EXPECT_TRUE(check_id("order-17/\xc3\xa4", &error)) << error;
    EXPECT_TRUE(check_id(std::string(255, 'x'), &error));
    EXPECT_FALSE(check_id(std::string(256, 'x'), &error));
    EXPECT_FALSE(check_id("", &error));
    EXPECT_FALSE(check_id("a b", &error));
    EXPECT_FALSE(check_id("a\n", &error));
    EXPECT_FALSE(check_id("a\x7f", &error));
    EXPECT_FALSE(check_id(std::string_view("a\0", 2), &error));
}

TEST(DurableTarget, IsHttpOrAStream)
{
    std::string error;
    for (const std::string_view text :
         {"http://host/path?a=b", "https://host", "stream:{a}:key",
          "http://127.0.0.1:8080/", "http://[::1]",
          "http://[fe80::1%25eth0]:80/a", "http://host?a", "http://host#a",
          "http://user:word@host:1/a@b:c", "http://a_b.c-d",
          "http://b\xc3\xbc"
          "cher",
          "http://a%2db"}) {
        EXPECT_TRUE(check_target(text, &error)) << error;
    }
    for (const std::string_view text : {"",
                                        "http://",
                                        "https:///path",
                                        "ftp://host",
                                        "stream:",
                                        "host",
                                        "http://a b",
                                        "http://a\r\nX: y",
                                        "HTTP://host",
                                        "http://a:99999/",
                                        "http://a:b",
                                        "http://:80/",
                                        "http://[",
                                        "http://[::1",
                                        "http://?x",
                                        "http://#x",
                                        "http://%zz/",
                                        "http://a%00",
                                        "http://@",
                                        "http://a:0/",
                                        "http://user@",
                                        "http://user@:1",
                                        "http://<x>",
                                        "http://a\"b",
                                        "http://a\\b",
                                        "http://[::1]x",
                                        "http://[host]",
                                        "http://a[b]",
                                        "http://a:1:2",
                                        "http://user:word@host:x",
                                        "http://a:word@c:word@host/"}) {
        error.clear();
        EXPECT_FALSE(check_target(text, &error)) << text;
        EXPECT_NE(error, "") << text;
        EXPECT_EQ(error.find("word"), error.npos) << error;
    }
    EXPECT_FALSE(check_target("http://" + std::string(2042, 'x'), &error));
}

} // namespace
