// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A target of posts: an HTTP server of the test's own, which answers as it is
// told, well or badly.
//
//     HttpTarget target([](const HttpRequest &request) {
//         return HttpTarget::status(200);
//     });
//     target.url();                  // http://127.0.0.1:PORT/path
//
// Each connection has a thread. The function is called in it, and may wait.
#ifndef LAWN_TEST_DURABLE_HTTP_TARGET_H
#define LAWN_TEST_DURABLE_HTTP_TARGET_H

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace lawn_test
{

struct HttpRequest {
    std::string line;                           // "POST /path HTTP/1.1"
    std::map<std::string, std::string> headers; // names in lower case
    std::string body;
};

struct HttpReaction {
    std::string bytes;       // sent as they are
    bool then_close = false; // or read the next request
    bool for_ever = false;   // send the bytes again and again
};

// A target is reached directly, whatever the machine's proxy is.
void forget_proxies();

class HttpTarget
{
public:
    using Handler = std::function<HttpReaction(const HttpRequest &)>;

    explicit HttpTarget(Handler handler);
    ~HttpTarget();

    HttpTarget(const HttpTarget &) = delete;
    HttpTarget &operator=(const HttpTarget &) = delete;

    static HttpReaction status(unsigned status,
                               const std::string &headers = "");

    std::string url(const std::string &path = "/path") const;
    std::vector<HttpRequest> requests();
    unsigned connections();
    // The most requests that were handled at the same time.
    unsigned most_at_once();

    // Has handlers wait in hold() until release(), or until the end.
    void hold();
    void release();

private:
    void accept_all();
    void serve(int fd);
    bool read_request(int fd, std::string *buffer, HttpRequest *request);
    bool react(int fd, const HttpReaction &reaction);

    Handler handler_;
    int listen_fd_ = -1;
    unsigned port_ = 0;
    std::thread acceptor_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<std::thread> threads_;
    std::set<int> fds_;
    std::vector<HttpRequest> requests_;
    unsigned connections_ = 0;
    unsigned at_once_ = 0;
    unsigned most_at_once_ = 0;
    bool is_released_ = false;
    bool has_ended_ = false;
};

} // namespace lawn_test

#endif
