// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See cast.h.

#include "cast.h"

#include "arguments.h"
#include "client.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lawnctl
{

namespace
{

constexpr int64_t second_us = 1000000;
constexpr useconds_t step_us = 10000; // between two looks at something

std::string own_program()
{
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
    if (size <= 0 || size == sizeof(path)) {
        fail("cannot find this program in /proc/self/exe");
    }
    return std::string(path, static_cast<size_t>(size));
}

// Beside this program where both are installed, or where both are built.
std::string pump_program()
{
    std::string directory = own_program();
    directory.erase(directory.rfind('/'));
    for (const char *path : {"/lawnd", "/../lawnd/lawnd"}) {
        if (access((directory + path).c_str(), X_OK) == 0) {
            return directory + path;
        }
    }
    return "lawnd";
}

std::string store_program()
{
    const char *path = getenv("LAWN_REDIS_SERVER");
    return path != nullptr && *path != '\0' ? path : "redis-server";
}

bool answers_ping(const std::string &path)
{
    const timeval limit = {1, 0};
    redisContext *context = redisConnectUnixWithTimeout(path.c_str(), limit);
    if (context == nullptr) {
        return false;
    }
    redisSetTimeout(context, limit);
    auto *reply = static_cast<redisReply *>(
        context->err == 0 ? redisCommand(context, "PING") : nullptr);
    const bool answers = reply != nullptr && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    redisFree(context);
    return answers;
}

} // namespace

Cast::Cast(const std::string &directory, const Sizes &sizes)
    : directory_(directory), sizes_(sizes)
{
    const auto add = [this](Role role, const std::string &name,
                            unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            members_.push_back(std::make_unique<Member>());
            members_.back()->role = role;
            members_.back()->name = count == 1 && role == Role::store
                                        ? name
                                        : name + "-" + std::to_string(i + 1);
        }
    };
    add(Role::store, "redis", 1);
    add(Role::pump, "pump", sizes.pumps);
    add(Role::consumer, "consumer", sizes.consumers);
    add(Role::client, "client", sizes.clients);

    start(0);
    await_store();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fail(std::string("pipe: ") + strerror(errno));
    }
    proxy_input_ = ends[1];
    const std::string last_link =
        directory_ + "/link-" + std::to_string(victims() - 2) + ".sock";
    proxy_.start({own_program(), "verify-proxy", "--directory", directory_,
                  "--links", std::to_string(victims() - 1)},
                 directory_ + "/proxy.log", ends[0]);
    close(ends[0]);
    const int64_t until_us = monotonic_now() + 60 * second_us;
    while (access(last_link.c_str(), F_OK) != 0) {
        if (!proxy_.is_running() || monotonic_now() > until_us) {
            fail("the proxy does not start; see " + directory_ + "/proxy.log");
        }
        usleep(step_us);
    }
    for (unsigned i = 1; i < victims(); ++i) {
        start(i);
    }
}

Cast::~Cast()
{
    if (proxy_input_ >= 0) {
        close(proxy_input_);
    }
}

unsigned Cast::victims() const
{
    return static_cast<unsigned>(members_.size());
}

std::string Cast::victim_name(unsigned victim) const
{
    return members_[victim]->name;
}

std::string Cast::store_url() const
{
    return "unix:" + directory_ + "/redis.sock";
}

std::string Cast::history() const
{
    return directory_ + "/history.txt";
}

std::string Cast::log(unsigned victim) const
{
    return directory_ + "/" + members_[victim]->name + ".log";
}

std::vector<std::string> Cast::words(unsigned victim)
{
    if (victim == 0) {
        return {store_program(),
                "--port",
                "0",
                "--unixsocket",
                directory_ + "/redis.sock",
                "--dir",
                directory_,
                "--save",
                "",
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--daemonize",
                "no"};
    }
    const Member &member = *members_[victim];
    const std::string url =
        "unix:" + directory_ + "/link-" + std::to_string(victim - 1) + ".sock";
    if (member.role == Role::pump) {
        return {pump_program(), "--redis", url, "--namespace", "verify"};
    }
    ++incarnations_;
    const bool is_client = member.role == Role::client;
    std::vector<std::string> all = {
        own_program(),
        "--redis",
        url,
        "--namespace",
        "verify",
        is_client ? "verify-client" : "verify-consumer",
        "--history",
        history(),
        "--process",
        std::to_string(incarnations_),
        "--seed",
        std::to_string((sizes_.seed * 1000003 + incarnations_) % 1000000007)};
    if (is_client) {
        const uint64_t rate =
            std::max<uint64_t>(sizes_.rate / std::max(sizes_.clients, 1u), 1);
        all.insert(all.end(), {"--rate", std::to_string(rate)});
    }
    return all;
}

void Cast::start(unsigned victim)
{
    members_[victim]->process.start(words(victim), log(victim));
}

void Cast::await_store()
{
    const int64_t until_us = monotonic_now() + 60 * second_us;
    while (!answers_ping(directory_ + "/redis.sock")) {
        if (!members_[0]->process.is_running()) {
            fail("redis-server does not start; see " + log(0));
        }
        if (monotonic_now() > until_us) {
            fail("redis-server does not answer; see " + log(0));
        }
        usleep(step_us);
    }
}

void Cast::tell_proxy(unsigned victim, const std::string &what)
{
    const std::string line = std::to_string(victim - 1) + " " + what + "\n";
    if (write(proxy_input_, line.data(), line.size()) !=
        static_cast<ssize_t>(line.size())) {
        fail("the proxy has ended");
    }
}

void Cast::strike(const Fault &fault)
{
    Process &process = members_[fault.victim]->process;
    switch (fault.kind) {
    case FaultKind::kill:
        process.kill();
        break;
    case FaultKind::pause:
        process.signal(SIGSTOP);
        break;
    case FaultKind::cut:
        tell_proxy(fault.victim, "cut");
        break;
    case FaultKind::hold:
        tell_proxy(fault.victim, "hold");
        break;
    case FaultKind::delay:
        tell_proxy(fault.victim, "delay " + std::to_string(fault.delay_us));
        break;
    }
}

void Cast::mend(const Fault &fault)
{
    switch (fault.kind) {
    case FaultKind::kill:
        start(fault.victim);
        if (fault.victim == 0) {
            await_store();
        }
        break;
    case FaultKind::pause:
        members_[fault.victim]->process.signal(SIGCONT);
        break;
    case FaultKind::cut:
        break;
    case FaultKind::hold:
    case FaultKind::delay:
        tell_proxy(fault.victim, "free");
        break;
    }
}

std::string Cast::find_ended()
{
    for (unsigned i = 0; i < victims(); ++i) {
        if (!members_[i]->process.is_running() &&
            members_[i]->process.status()) {
            return members_[i]->name + " has ended with status " +
                   std::to_string(*members_[i]->process.status()) + "; see " +
                   log(i);
        }
    }
    return proxy_.is_running() ? "" : "the proxy has ended";
}

std::string Cast::end(Role role, int64_t patience_us)
{
    for (const auto &member : members_) {
        if (member->role == role) {
            member->process.signal(SIGTERM);
        }
    }
    const int64_t until_us = monotonic_now() + patience_us;
    for (unsigned i = 0; i < victims(); ++i) {
        Member &member = *members_[i];
        if (member.role != role) {
            continue;
        }
        while (member.process.is_running()) {
            if (monotonic_now() > until_us) {
                return member.name + " does not end; see " + log(i);
            }
            usleep(step_us);
        }
        // One that has just been started again ends by the signal itself.
        if (member.process.status().value_or(0) != 0) {
            return member.name + " has not ended well; see " + log(i);
        }
    }
    return "";
}

std::string Cast::end_clients()
{
    return end(Role::client, 90 * second_us);
}

std::string Cast::end_others()
{
    const std::string wrong = end(Role::consumer, 60 * second_us);
    return wrong.empty() ? end(Role::pump, 60 * second_us) : wrong;
}

} // namespace lawnctl
