// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnd's server of metrics and health, with clients that are well, slow or
// hostile; and the text of the metrics.

#include "lawnd/http_server.h"
#include "lawnd/metrics.h"

#include "../../test/environment.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>

using lawnd::HttpAnswer;
using lawnd::HttpLimits;
using lawnd::HttpReply;
using lawnd::HttpServer;

namespace
{

class HttpService : public testing::Test
{
protected:
    void SetUp() override
    {
        ASSERT_EQ(loop_.open(), LAWN_OK);
        make(patient());
    }

    // No client is too slow, on no machine.
    static HttpLimits patient()
    {
        HttpLimits limits;
        limits.timeout_us = 600000000;
        return limits;
    }

    void make(const HttpLimits &limits)
    {
        server_.reset();
        server_ = std::make_unique<HttpServer>(
            loop_, "127.0.0.1:0",
            [this](std::string_view path, HttpReply reply) {
                paths_.emplace_back(path);
                if (path == "/later") {
                    replies_.push_back(std::move(reply));
                    return;
                }
                HttpAnswer answer;
                answer.body = path == "/long" ? std::string(8 << 20, 'x')
                                              : "body of " + std::string(path);
                reply(answer);
            },
            limits);
    }

    int connect_to_server()
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const std::string &text = server_->address();
        address.sin_port = htons(static_cast<uint16_t>(
            std::stoul(text.substr(text.rfind(':') + 1))));
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr *>(&address),
                          sizeof(address)),
                  0);
        return fd;
    }

    static void send_all(int fd, const std::string &bytes)
    {
        // The server may have closed already.
        [[maybe_unused]] const ssize_t ignored =
            send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }

    template <class Condition> void run_until(Condition condition)
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (!condition()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end);
            loop_.wait(1000);
        }
    }

    // Reads until the server closes.
    std::string read_all(int fd)
    {
        std::string text;
        run_until([&] {
            char bytes[65536];
            ssize_t count;
            while ((count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
                text.append(bytes, static_cast<size_t>(count));
            }
            return count == 0 || (errno != EAGAIN && errno != EINTR);
        });
        close(fd);
        return text;
    }

    std::string exchange(const std::string &request)
    {
        const int fd = connect_to_server();
        send_all(fd, request);
        return read_all(fd);
    }

    static std::string status_of(const std::string &response)
    {
        return response.substr(0, response.find("\r\n"));
    }

    lawn::durable::Loop loop_;
    std::vector<std::string> paths_;
    std::vector<HttpReply> replies_;
    std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpService, AnswersGetAndHead)
{
    EXPECT_EQ(exchange("GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 16\r\nConnection: close\r\n\r\n"
              "body of /metrics");
    EXPECT_EQ(exchange("HEAD / HTTP/1.0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 9\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(status_of(exchange("GET /lines HTTP/1.1\n\n")),
              "HTTP/1.1 200 OK");
    EXPECT_EQ(paths_, (std::vector<std::string>{"/metrics", "/", "/lines"}));
    EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(HttpService, RefusesTheRest)
{
    const struct {
        const char *request;
        const char *status;
    } cases[] = {
        {"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "405"},
        {"DELETE / HTTP/1.1\r\n\r\n", "405"},
        {"GET\r\n\r\n", "400"},
        {"GET /\r\n\r\n", "400"},
        {"GET / \r\n\r\n", "400"},
        {"GET metrics HTTP/1.1\r\n\r\n", "400"},
        {"GET http://x/ HTTP/1.1\r\n\r\n", "400"},
        {"GET / FTP/1.1\r\n\r\n", "400"},
        {"GET /a b HTTP/1.1\r\n\r\n", "400"},
        {"GET  HTTP/1.1\r\n\r\n", "400"},
        {" / HTTP/1.1\r\n\r\n", "405"},
        {"\r\n\r\n", "400"},
        {"\n\n", "400"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(exchange(c.request).substr(0, 12),
                  std::string("HTTP/1.1 ") + c.status)
            << c.request;
    }
    EXPECT_EQ(status_of(exchange("GET / HTTP/1.1\r\nA: " +
                                 std::string(5000, 'x') + "\r\n\r\n")),
              "HTTP/1.1 431 Request Header Fields Too Large");
    EXPECT_EQ(status_of(exchange(std::string(100000, 'x'))),
              "HTTP/1.1 431 Request Header Fields Too Large");
    EXPECT_TRUE(paths_.empty());
    EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(HttpService, RequestMayComeInPieces)
{
    const int fd = connect_to_server();
    for (const char c : std::string("GET /slow HTTP/1.1\r\n\r\n")) {
        send_all(fd, std::string(1, c));
        loop_.wait(1000);
    }
    EXPECT_EQ(status_of(read_all(fd)), "HTTP/1.1 200 OK");
}

TEST_F(HttpService, LongAnswerIsSentWhole)
{
    const std::string response = exchange("GET /long HTTP/1.1\r\n\r\n");
    EXPECT_EQ(response.size() - response.find("\r\n\r\n") - 4, 8U << 20);
}

TEST_F(HttpService, SlowClientIsDropped)
{
    HttpLimits limits;
    // Long enough for a request that is sent at once.
    limits.timeout_us = 500000;
    make(limits);
    EXPECT_EQ(exchange(""), "");
    EXPECT_EQ(exchange("GET / HTTP"), "");
    // It asks, and does not read.
    const int fd = connect_to_server();
    send_all(fd, "GET /long HTTP/1.1\r\n\r\n");
    run_until([&] { return paths_.size() == 1 && server_->clients() == 0; });
    close(fd);
}

TEST_F(HttpService, OldestOfTooManyClientsIsDropped)
{
    HttpLimits limits = patient();
    limits.clients = 4;
    make(limits);
    std::vector<int> fds;
    for (unsigned i = 0; i < 10; ++i) {
        fds.push_back(connect_to_server());
        loop_.wait(1000);
        EXPECT_LE(server_->clients(), 4U);
    }
    run_until([&] { return server_->clients() == 4; });
    EXPECT_EQ(exchange("GET / HTTP/1.1\r\n\r\n").substr(0, 12), "HTTP/1.1 200");
    send_all(fds[9], "GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(read_all(fds[9]).substr(0, 12), "HTTP/1.1 200");
    fds.pop_back();
    EXPECT_EQ(read_all(fds[0]), "");
    fds.erase(fds.begin());
    for (const int fd : fds) {
        close(fd);
    }
    run_until([&] { return server_->clients() == 0; });
}

TEST_F(HttpService, AnswerMayComeLater)
{
    const int fd = connect_to_server();
    const int gone = connect_to_server();
    send_all(fd, "GET /later HTTP/1.1\r\n\r\n");
    send_all(gone, "GET /later HTTP/1.1\r\n\r\n");
    run_until([&] { return replies_.size() == 2; });
    send_all(fd, "more that nobody reads");
    close(gone);
    HttpAnswer answer;
    answer.status = 503;
    answer.body = "later";
    for (const HttpReply &reply : replies_) {
        reply(answer);
        reply(answer); // once is enough; no more than that
    }
    const std::string response = read_all(fd);
    EXPECT_EQ(status_of(response), "HTTP/1.1 503 Service Unavailable");
    EXPECT_EQ(response.substr(response.size() - 5), "later");
    EXPECT_EQ(server_->clients(), 0U);
}

// Some clients close their half of the connection behind the request.
TEST_F(HttpService, AClientThatSendsNoMoreIsAnswered)
{
    const int fd = connect_to_server();
    const int silent = connect_to_server();
    send_all(fd, "GET /later HTTP/1.1\r\n\r\n");
    shutdown(fd, SHUT_WR);
    shutdown(silent, SHUT_WR); // without a request
    run_until([&] { return replies_.size() == 1 && server_->clients() == 1; });
    loop_.wait(1000);
    EXPECT_EQ(server_->clients(), 1U);
    HttpAnswer answer;
    answer.body = "later";
    replies_[0](answer);
    const std::string response = read_all(fd);
    EXPECT_EQ(status_of(response), "HTTP/1.1 200 OK");
    EXPECT_EQ(read_all(silent), "");
    EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(HttpService, APortAloneIsThatOfAllAddresses)
{
    const HttpServer server(loop_, ":0",
                            [](std::string_view, const HttpReply &) {});
    const size_t colon = server.address().rfind(':');
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(
        static_cast<uint16_t>(std::stoul(server.address().substr(colon + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 newer = {};
    newer.sin6_family = AF_INET6;
    newer.sin6_port = address.sin_port;
    newer.sin6_addr = in6addr_loopback;
    const auto reaches = [](const auto &to) {
        const int fd = socket(reinterpret_cast<const sockaddr &>(to).sa_family,
                              SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int result =
            connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof(to));
        close(fd);
        return result == 0;
    };
    EXPECT_TRUE(reaches(address));
    const bool has_ipv6 = server.address().front() == '[';
    EXPECT_EQ(reaches(newer), has_ipv6);
}

TEST_F(HttpService, NoBytesDoHarm)
{
    const uint64_t seed = lawn_test::environment("LAWN_TEST_SEED", 14);
    SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::string pieces[] = {
        "GET",  " ",  "/",  "HTTP/1.1", "\r\n", "\n",      "?", ":",
        "HEAD", "\r", "/a", "\xff",     "POST", "HTTP/1.", "x", "\r\n\r\n"};
    HttpLimits limits;
    limits.timeout_us = 2000;
    make(limits);
    for (uint64_t i = 0; i < lawn_test::scaled(200) + 1; ++i) {
        std::string request;
        for (uint64_t n = random() % 12; n > 0; --n) {
            request += pieces[random() % std::size(pieces)];
        }
        if (random() % 4 == 0) {
            request += '\0';
        }
        const std::string response = exchange(request);
        EXPECT_TRUE(response.empty() ||
                    response.compare(0, 9, "HTTP/1.1 ") == 0)
            << response;
    }
    EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(HttpService, RefusesAddressesWithOneLine)
{
    const auto refusal_of = [this](const std::string &address) -> std::string {
        try {
            const HttpServer server(loop_, address,
                                    [](std::string_view, const HttpReply &) {});
        } catch (const std::runtime_error &error) {
            return error.what();
        }
        return "";
    };
    for (const std::string address :
         {"", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
          "127.0.0.1:65536", "127.0.0.1:-1", "::1:9464",
          "127.0.0.1:99999999"}) {
        EXPECT_EQ(refusal_of(address), "not HOST:PORT: '" + address + "'");
    }
    EXPECT_EQ(refusal_of("203.0.113.1:0").find("cannot listen on "), 0U);
    EXPECT_EQ(refusal_of(server_->address()), "cannot listen on '" +
                                                  server_->address() +
                                                  "': Address already in use");
    EXPECT_EQ(refusal_of(":0"), "");
}

// The loop sleeps, although somebody waits to be accepted.
TEST_F(HttpService, WaitsWhenThereAreNoDescriptors)
{
    const int client = connect_to_server();
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few = {256, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<int> fds;
    for (int fd = dup(client); fd >= 0; fd = dup(client)) {
        fds.push_back(fd);
    }
    ASSERT_EQ(errno, EMFILE);
    run_until([&] { return loop_.wait(1) == LAWN_ERR_TIMED_OUT; });
    for (const int fd : fds) {
        close(fd);
    }
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    send_all(client, "GET /x HTTP/1.1\r\n\r\n");
    EXPECT_NE(read_all(client).find("body of /x"), std::string::npos);
}

TEST(Metrics, AreTextOfPrometheus)
{
    lawnd::Metrics metrics;
    metrics.shards.resize(2);
    metrics.shards[0].is_up = true;
    metrics.shards[0].stats.pending = 12345678901000;
    metrics.shards[0].stats.died = 3;
    metrics.shards[1].is_up = true;
    metrics.shards[1].stats.pending = 234;
    metrics.name_space = "main";
    metrics.is_store_up = true;
    metrics.http.retried = 5;
    for (const uint64_t usec : {0U, 63U, 64U, 100U, 5000U, 2000000U}) {
        lawn_histogram_add(&metrics.pump.lateness_us, usec);
    }
    const std::string text = lawnd::format_metrics(metrics);
    for (const char *const line :
         {"lawnd_store_up{namespace=\"main\"} 1\n",
          "# TYPE lawn_durable_pending gauge\n",
          "lawn_durable_shards{namespace=\"main\"} 2\n",
          "lawn_durable_pending{namespace=\"main\"} 12345678901234\n",
          "# TYPE lawn_durable_shard_pending gauge\n",
          "lawn_durable_shard_pending{namespace=\"main\",shard=\"0\"} "
          "12345678901000\n",
          "lawn_durable_shard_pending{namespace=\"main\",shard=\"1\"} 234\n",
          "lawn_durable_shard_up{namespace=\"main\",shard=\"1\"} 1\n",
          "lawn_durable_dead_total{namespace=\"main\"} 3\n",
          "lawnd_deliveries_total{namespace=\"main\",via=\"http\","
          "result=\"retry\"} 5\n",
          "# TYPE lawnd_lateness_seconds histogram\n",
          "lawnd_lateness_seconds_bucket{namespace=\"main\",le=\"0.000063\"} "
          "2\n",
          "lawnd_lateness_seconds_bucket{namespace=\"main\",le=\"0.000127\"} "
          "4\n",
          "lawnd_lateness_seconds_bucket{namespace=\"main\",le=\"0.008191\"} "
          "5\n",
          "lawnd_lateness_seconds_bucket{namespace=\"main\",le=\"+Inf\"} 6\n",
          "lawnd_lateness_seconds_count{namespace=\"main\"} 6\n"}) {
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    }
    const std::string sum = "lawnd_lateness_seconds_sum{namespace=\"main\"} ";
    const double seconds = std::stod(text.substr(text.find(sum) + sum.size()));
    EXPECT_GE(seconds, 2.005227);
    EXPECT_LE(seconds, 2.005227 * 1.125);
    // Of a shard that has not answered, nothing; and so no totals.
    metrics.shards[1].is_up = false;
    const std::string some = lawnd::format_metrics(metrics);
    EXPECT_NE(some.find("shard_up{namespace=\"main\",shard=\"1\"} 0\n"),
              std::string::npos);
    EXPECT_NE(some.find("shard_pending{namespace=\"main\",shard=\"0\"} "),
              std::string::npos);
    EXPECT_EQ(some.find("shard_pending{namespace=\"main\",shard=\"1\"} "),
              std::string::npos);
    EXPECT_EQ(some.find("lawn_durable_pending"), std::string::npos);
    EXPECT_EQ(some.find("lawn_durable_shards"), std::string::npos);
    metrics.shards.clear();
    EXPECT_EQ(lawnd::format_metrics(metrics).find("lawn_durable_"),
              std::string::npos);
}

} // namespace
