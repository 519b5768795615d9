// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnd's delivery by HTTP, to targets that are well, slow, broken or hostile.

#include "delivery_fixture.h"

#include "lawnd/target.h"
#include "src/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

namespace
{

using namespace lawn_test;

TEST_F(HttpDelivery, PostsThePayloadAndWhatIdentifiesIt)
{
    HttpTarget target(
        [](const HttpRequest &) { return HttpTarget::status(200); });
    const std::string payload("any\0bytes\r\n\r\n\xff", 14);
    submit(target.url("/a?b=c"), "order-17\xc3\xa9", payload);
    submit(target.url("/empty"), "empty", "");
    submit(target.url("/long"), "long", std::string(65536, 'x'));
    run_until_finished(3);
    for (const auto &[id, outcome] : outcomes_) {
        EXPECT_EQ(outcome.verdict, Verdict::done) << outcome.error;
        EXPECT_EQ(outcome.error, "");
    }
    unsigned seen = 0;
    for (HttpRequest request : target.requests()) {
        EXPECT_EQ(request.headers["content-type"], "application/octet-stream");
        EXPECT_EQ(request.headers["lawn-attempt"], "2");
        EXPECT_EQ(request.headers["lawn-due"], "1700000000123456");
        EXPECT_EQ(request.headers.count("expect"), 0U);
        if (request.line == "POST /a?b=c HTTP/1.1") {
            EXPECT_EQ(request.headers["idempotency-key"], "order-17\xc3\xa9/7");
            EXPECT_EQ(request.body, payload);
            seen |= 1;
        } else if (request.line == "POST /empty HTTP/1.1") {
            EXPECT_EQ(request.headers["content-length"], "0");
            seen |= 2;
        } else {
            EXPECT_EQ(request.body.size(), 65536U);
            seen |= 4;
        }
    }
    EXPECT_EQ(seen, 7U);
    EXPECT_EQ(delivery_->targets(), 0U);
}

TEST_F(HttpDelivery, StatusDecides)
{
    const struct {
        unsigned status;
        Verdict verdict;
    } cases[] = {
        {200, Verdict::done},  {202, Verdict::done},  {204, Verdict::done},
        {301, Verdict::again}, {304, Verdict::again}, {400, Verdict::fail},
        {401, Verdict::fail},  {404, Verdict::fail},  {408, Verdict::again},
        {410, Verdict::fail},  {422, Verdict::fail},  {425, Verdict::again},
        {429, Verdict::again}, {500, Verdict::again}, {501, Verdict::again},
        {503, Verdict::again}, {599, Verdict::again},
    };
    for (const auto &c : cases) {
        std::string head = "HTTP/1.1 " + std::to_string(c.status) + " X\r\n";
        head += c.status == 204 || c.status == 304
                    ? "\r\n"
                    : "Content-Length: 0\r\n\r\n";
        const Outcome outcome = outcome_of(HttpReaction{head, true, false});
        EXPECT_EQ(outcome.verdict, c.verdict) << c.status;
        EXPECT_EQ(outcome.delay_us, -1) << c.status;
        EXPECT_EQ(outcome.error,
                  c.verdict == Verdict::done
                      ? ""
                      : "HTTP status " + std::to_string(c.status));
    }
}

TEST_F(HttpDelivery, RetryAfterIsHonouredADayAtMost)
{
    const struct {
        unsigned status;
        const char *value;
        int64_t delay_us;
    } cases[] = {
        {429, "7", 7 * usec},
        {503, "120", 120 * usec},
        {503, "99999999", 24 * 3600 * usec},
        {503, "99999999999999999999", 24 * 3600 * usec},
        {429, "00", -1},
        {503, "Fri, 31 Dec 2100 23:59:59 GMT", 24 * 3600 * usec},
        {503, "Fri, 31 Dec 1999 23:59:59 GMT", -1},
        {503, "-5", -1},
        {503, "soon", -1},
        {429, "", -1},
        {500, "7", -1},
        {408, "7", -1},
    };
    for (const auto &c : cases) {
        const Outcome outcome = outcome_of(HttpTarget::status(
            c.status, std::string("Retry-After: ") + c.value + "\r\n"));
        EXPECT_EQ(outcome.verdict, Verdict::again) << c.value;
        EXPECT_EQ(outcome.delay_us, c.delay_us) << c.value;
    }
}

TEST_F(HttpDelivery, RedirectsAreNotFollowed)
{
    HttpTarget other(
        [](const HttpRequest &) { return HttpTarget::status(200); });
    for (const unsigned status : {301U, 302U, 303U, 307U, 308U}) {
        for (const std::string &location :
             std::vector<std::string>{other.url(), "file:///etc/passwd"}) {
            EXPECT_EQ(outcome_of(HttpTarget::status(
                                     status, "Location: " + location + "\r\n"))
                          .verdict,
                      Verdict::again);
        }
    }
    EXPECT_EQ(other.connections(), 0U);
}

TEST_F(HttpDelivery, WhatIsNoUrlOfHttpFails)
{
    for (const char *const url :
         {"", "http", "http:", "http://", "//host/path", "ftp://127.0.0.1/",
          "file:///etc/passwd", "gopher://127.0.0.1/", "stream:key",
          "telnet://127.0.0.1", "http://[::1/", "http://a b/",
          "http://127.0.0.1:99999/", "http://127.0.0.1:x/", "127.0.0.1",
          "http://a\r\nb/", "javascript:alert(1)", "http://\x01/"}) {
        const Outcome outcome = outcome_of(std::string(url));
        EXPECT_EQ(outcome.verdict, Verdict::fail) << url;
        EXPECT_EQ(outcome.error, "not a URL of http or https");
    }
    EXPECT_EQ(outcome_of("http:" + std::string(100000, '/')).verdict,
              Verdict::fail);
}

// A target that may be started with is one that can be posted to. What the log
// calls it has nothing of the user and the password.
TEST_F(HttpDelivery, WhatMayBeStartedIsAUrl)
{
    const char *const parts[] = {"a",   "0",  ":",    "/",  "@",  "?",   "#",
                                 "[",   "]",  "%",    ".",  "-",  "_",   "//",
                                 "::1", "%2", "%40",  "80", "'",  "&",   "=",
                                 "\\",  "~",  "\xc3", "!",  "+",  ",",   ";",
                                 "B",   "$",  "*",    "(",  "\"", "%00", "%7f"};
    std::minstd_rand random(1);
    unsigned known = 0;
    for (int i = 0; i < 300000; ++i) {
        std::string text = random() % 2 ? "http://" : "https://";
        text += random() % 3 == 0 ? "user:secret@" : "";
        for (size_t left = random() % 6; left > 0; --left) {
            text += parts[random() % std::size(parts)];
        }
        std::string error;
        const std::string place = lawnd::target_of(text);
        EXPECT_EQ(place.find("secret"), place.npos) << text;
        if (lawn::durable::check_target(text, &error)) {
            ++known;
            EXPECT_NE(place, "") << text;
        } else {
            EXPECT_EQ(error.find("secret"), error.npos) << error;
        }
    }
    EXPECT_GT(known, 10000U);
}

// Each attempt of the store's is one request, and what breaks it is told. The
// target may have carried it out.
TEST_F(HttpDelivery, AConnectionThatBreaksIsNoReasonToPostAgain)
{
    for (const char *const payload : {"", "payload"}) {
        HttpTarget target([&](const HttpRequest &request) {
            const bool is_first =
                request.headers.at("idempotency-key") == "warm/7";
            return is_first ? HttpTarget::status(200)
                            : HttpReaction{"", true, false};
        });
        payloads_.clear();
        outcomes_.clear();
        submit(target.url(), "warm", payload);
        run_until_finished(1);
        submit(target.url(), "broken", payload);
        run_until_finished(2);
        EXPECT_EQ(outcomes_["warm"].verdict, Verdict::done);
        EXPECT_EQ(outcomes_["broken"].verdict, Verdict::again);
        EXPECT_EQ(outcomes_["broken"].error,
                  "no answer: the connection has broken");
        EXPECT_EQ(target.requests().size(), 2U);
        EXPECT_EQ(target.connections(), 1U);
    }
}

TEST_F(HttpDelivery, BrokenAnswersAreTriedAgain)
{
    const HttpReaction broken[] = {
        {"", true, false},
        {"HTTP/1.1 20", true, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true,
         false},
        {"I speak no HTTP\r\n\r\n", true, false},
        {"HTTP/1.1 999999 OK\r\n\r\n", true, false},
        {std::string(1000, '\0'), true, false},
        {"HTTP/1.1 100 Continue\r\n\r\n", true, true},
    };
    for (const HttpReaction &reaction : broken) {
        const Outcome outcome = outcome_of(reaction);
        EXPECT_EQ(outcome.verdict, Verdict::again)
            << reaction.bytes.substr(0, 40);
        EXPECT_EQ(outcome.error.find("no answer: "), 0U) << outcome.error;
        EXPECT_LT(outcome.error.size(), 300U);
    }
}

// libcurl takes no line of over 100 KB, and says that there is no memory.
TEST_F(HttpDelivery, LinesOfAnyLengthAreAnAnswer)
{
    const std::string line(150000, 'x');
    const struct {
        const char *head;
        Verdict verdict;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nA: ", Verdict::done},
        {"HTTP/1.1 404 No\r\nA: ", Verdict::fail},
        {"HTTP/1.1 500 No\r\nA: ", Verdict::again},
        {"HTTP/1.1 200 ", Verdict::again},
    };
    for (const auto &c : cases) {
        const Outcome outcome =
            outcome_of(HttpReaction{c.head + line + "\r\n\r\n", true, false});
        EXPECT_EQ(outcome.verdict, c.verdict) << c.head << outcome.error;
    }
}

TEST_F(HttpDelivery, AnswerWithoutEndIsCutOff)
{
    EXPECT_EQ(outcome_of(HttpReaction{"HTTP/1.1 200 OK\r\n\r\n" +
                                          std::string(10000, 'x'),
                                      true, true})
                  .verdict,
              Verdict::done);
    EXPECT_EQ(outcome_of(HttpReaction{"HTTP/1.1 500 No\r\n\r\n" +
                                          std::string(10000, 'x'),
                                      true, true})
                  .verdict,
              Verdict::again);
    // A head that never ends.
    EXPECT_EQ(outcome_of(HttpReaction{"HTTP/1.1 500 No\r\nA: " +
                                          std::string(10000, 'x') + "\r\n",
                                      true, true})
                  .verdict,
              Verdict::again);
}

TEST_F(HttpDelivery, TargetThatCannotBeReachedIsTriedAgain)
{
    std::string url;
    {
        HttpTarget target(
            [](const HttpRequest &) { return HttpTarget::status(200); });
        url = target.url();
    }
    const Outcome outcome = outcome_of(url); // nobody listens now
    EXPECT_EQ(outcome.verdict, Verdict::again);
    EXPECT_EQ(outcome.error.find("no answer: "), 0U) << outcome.error;
}

TEST_F(HttpDelivery, WithoutDescriptorsNoAttemptIsMade)
{
    HttpTarget target(
        [](const HttpRequest &) { return HttpTarget::status(200); });
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    // The first that is free. With less, the target could not even poll.
    const int free = dup(0);
    ASSERT_GE(free, 0);
    close(free);
    const rlimit none = {static_cast<rlim_t>(free), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const Outcome connecting = outcome_of(target.url());
    const Outcome looking_up =
        outcome_of(std::string("http://nobody.invalid/"));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(connecting.verdict, Verdict::defer) << connecting.error;
    EXPECT_EQ(looking_up.verdict, Verdict::defer) << looking_up.error;
    EXPECT_EQ(outcome_of(target.url()).verdict, Verdict::done);
}

TEST_F(HttpDelivery, TargetThatDoesNotAnswerIsTriedAgain)
{
    DeliveryLimits limits = patient();
    limits.timeout_us = 100000;
    make(limits);
    HttpTarget target([&target](const HttpRequest &) {
        target.hold();
        return HttpTarget::status(200);
    });
    const Outcome outcome = outcome_of(target.url());
    EXPECT_EQ(outcome.verdict, Verdict::again);
    EXPECT_EQ(outcome.error.find("no answer: "), 0U) << outcome.error;
    EXPECT_EQ(delivery_->posting(), 0U);
}

} // namespace
