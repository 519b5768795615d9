// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnd as a process, with a server of the test's own.

#ifndef LAWN_TEST_DURABLE_LAWND_FIXTURE_H
#define LAWN_TEST_DURABLE_LAWND_FIXTURE_H

#include "http_target.h"
#include "lawn-verify/process.h"
#include "redis_server.h"

#include <curl/curl.h>
#include <gtest/gtest.h>
#include <lawn/durable.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

namespace lawn_test
{

constexpr const char *name_space = "test";

// Waits until it is so, for a minute.
template <class Condition> bool becomes(Condition condition)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

inline size_t take(char *data, size_t size, size_t count, void *text)
{
    static_cast<std::string *>(text)->append(data, size * count);
    return size * count;
}

// The status, or 0, and the body.
inline std::pair<long, std::string> get(const std::string &url)
{
    std::string body;
    long status = 0;
    CURL *const easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    if (curl_easy_perform(easy) == CURLE_OK) {
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    }
    curl_easy_cleanup(easy);
    return {status, body};
}

class Lawnd : public testing::Test
{
protected:
    void SetUp() override
    {
        forget_proxies();
        const char *const program = getenv("LAWN_LAWND");
        ASSERT_NE(program, nullptr) << "LAWN_LAWND names the program";
        program_ = program;
    }

    // Ends lawnd as its users do, and not by SIGKILL: whatever it was doing, it
    // frees what it has, and coverage counts what it has run.
    void TearDown() override
    {
        if (lawnd_.is_running()) {
            lawnd_.signal(SIGTERM);
            lawnd_.signal(SIGINT);
            EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
            EXPECT_EQ(lawnd_.status(), 0) << log();
        }
        lawn_durable_close(client_);
    }

    std::string log_path() const
    {
        return server_.directory() + "/lawnd.log";
    }

    std::string log() const
    {
        std::ifstream file(log_path());
        return {std::istreambuf_iterator<char>(file), {}};
    }

    void start(Words options = {})
    {
        Words words = {program_,      "--redis",  server_.url(),
                       "--namespace", name_space, "--http-listen",
                       "127.0.0.1:0"};
        words.insert(words.end(), options.begin(), options.end());
        lawnd_.start(words, log_path());
        ASSERT_TRUE(becomes([&] {
            return log().find("fires the timers of test, ") !=
                   std::string::npos;
        })) << log();
    }

    // Runs to the end; returns what it has printed.
    std::string run(const Words &options, int *status)
    {
        Words words = {program_};
        words.insert(words.end(), options.begin(), options.end());
        std::ofstream(log_path()).close(); // empty
        lawnd_.start(words, log_path());
        EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); }));
        lawnd_.kill();
        *status = lawnd_.status().value_or(-1);
        return log();
    }

    std::string url(const std::string &path) const
    {
        const std::string text = log();
        const std::string head = "listens on ";
        const size_t begin = text.rfind(head) + head.size();
        return text.substr(begin, text.find('\n', begin) - begin) + path;
    }

    lawn_durable_t *client()
    {
        if (!client_) {
            const std::string store = server_.url();
            lawn_durable_params_t params = {};
            params.url = store.c_str();
            params.name_space = name_space;
            params.request_timeout_us = 60000000;
            EXPECT_EQ(lawn_durable_open(&params, &client_), LAWN_OK);
        }
        return client_;
    }

    void start_timer(const std::string &id, const std::string &target,
                     unsigned max_attempts = 0)
    {
        lawn_durable_start_t start = {};
        start.id = id.c_str();
        start.delay_us = 1000;
        start.payload = "payload";
        start.payload_size = 7;
        start.target = target.empty() ? nullptr : target.c_str();
        start.max_attempts = max_attempts;
        start.backoff_min_us = 1000;
        start.backoff_max_us = 2000;
        lawn_durable_result_t result = {};
        ASSERT_EQ(lawn_durable_start_sync(client(), &start, &result), LAWN_OK)
            << result.error;
    }

    std::string state_of(const std::string &id)
    {
        lawn_durable_result_t result = {};
        const lawn_status_t status =
            lawn_durable_get_sync(client(), id.c_str(), &result);
        return status == LAWN_OK ? lawn_durable_state_string(result.state)
                                 : lawn_status_string(status);
    }

    void expect_state(const std::string &id, const std::string &state)
    {
        EXPECT_TRUE(becomes([&] { return state_of(id) == state; }))
            << id << ": " << state_of(id) << "\n"
            << log();
    }

    // The value of a metric; -1 if there is none.
    double metric(const std::string &name, const std::string &labels = "")
    {
        const std::string text = get(url("/metrics")).second;
        const std::string head = name + "{namespace=\"test\"" + labels + "} ";
        const size_t at = text.find("\n" + head);
        return at == std::string::npos
                   ? -1
                   : std::stod(text.substr(at + 1 + head.size()));
    }

    RedisServer server_;
    std::string program_;
    lawn_verify::Process lawnd_;
    lawn_durable_t *client_ = nullptr;
};

} // namespace lawn_test

#endif
