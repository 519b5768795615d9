// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A host with several addresses, of which the first drops what is sent to it.

#include "client_fixture.h"
#include "lawn-verify/server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace
{

const char *const two_addresses = "two-addresses.invalid";

addrinfo *resolve(const char *node, const char *service, const addrinfo *hints,
                  int *result_p)
{
    using Function =
        int (*)(const char *, const char *, const addrinfo *, addrinfo **);
    static const Function libc =
        reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
    addrinfo *list = nullptr;
    *result_p = libc(node, service, hints, &list);
    return list;
}

} // namespace

// Takes the place of the C library's.
extern "C" int getaddrinfo(const char *node, const char *service,
                           const addrinfo *hints, addrinfo **list_p)
{
    int result = 0;
    if (!node || strcmp(node, two_addresses) != 0) {
        *list_p = resolve(node, service, hints, &result);
        return result;
    }
    *list_p = resolve("127.0.0.2", service, hints, &result);
    if (result == 0) {
        (*list_p)->ai_next = resolve("127.0.0.1", service, hints, &result);
    }
    return result;
}

namespace
{

using namespace lawn_test;

// It accepts nothing, and its queue is full.
class SilentPort
{
public:
    explicit SilentPort(int port)
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(port));
        EXPECT_EQ(inet_pton(AF_INET, "127.0.0.2", &address.sin_addr), 1);
        EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr *>(&address),
                       sizeof(address)),
                  0);
        EXPECT_EQ(listen(listener_, 0), 0);
        EXPECT_EQ(connect(first_, reinterpret_cast<sockaddr *>(&address),
                          sizeof(address)),
                  0);
    }
    ~SilentPort()
    {
        close(listener_);
        close(first_);
    }
    SilentPort(const SilentPort &) = delete;
    SilentPort &operator=(const SilentPort &) = delete;

private:
    int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int first_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST(DurableAddress, TheSecondIsTriedWhenTheFirstIsSilent)
{
    const int port = lawn_verify::free_port();
    RedisServer server({"--port", std::to_string(port), "--bind", "127.0.0.1"});
    SilentPort silent(port);
    Client client("redis://" + std::string(two_addresses) + ":" +
                      std::to_string(port),
                  [](lawn_durable_params_t *params) {
                      params->connect_timeout_us = 1000000;
                  });
    EXPECT_EQ(client.start("a").status, LAWN_OK);
}

} // namespace
