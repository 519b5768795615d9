// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See client.h.

#include "client.h"

#include "src/url.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace lawnctl
{

namespace
{

int signals = -1;
bool is_signalled = false;

lawn_durable_params_t with_names(lawn_durable_params_t params,
                                 const Settings &settings)
{
    params.url = settings.url.empty() ? nullptr : settings.url.c_str();
    params.name_space =
        settings.name_space.empty() ? nullptr : settings.name_space.c_str();
    params.require_safe_store = settings.require_safe_store;
    return params;
}

} // namespace

void catch_signals()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) {
        fail(std::string("cannot watch for signals: ") + strerror(errno));
    }
}

bool was_signalled()
{
    signalfd_siginfo info;
    if (signals >= 0 && read(signals, &info, sizeof(info)) == sizeof(info)) {
        is_signalled = true;
    }
    return is_signalled;
}

int64_t monotonic_now()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

const char *reason_of(lawn_status_t status, const char *error)
{
    return error != nullptr ? error : lawn_status_string(status);
}

void require_success(lawn_status_t status, const char *error)
{
    if (status != LAWN_OK) {
        fail(reason_of(status, error));
    }
}

Client::Client(const Settings &settings, lawn_durable_params_t params)
{
    params = with_names(params, settings);
    if (lawn_durable_open(&params, &durable_) != LAWN_OK) {
        fail(lawn_durable_open_error());
    }
}

Client::~Client()
{
    look_for_warning();
    lawn_durable_close(durable_);
}

bool Client::connect(int64_t until_us)
{
    std::string error;
    const bool is_decided = run(
        [&] {
            const char *line = lawn_durable_error(durable_);
            error = line == nullptr ? "" : line;
            return !error.empty() || lawn_durable_shards(durable_) != 0;
        },
        until_us);
    if (!error.empty()) {
        fail(error);
    }
    return is_decided;
}

// Once, whatever happens: it does not keep the command from its work.
void Client::look_for_warning()
{
    for (const auto look : {lawn_durable_losses, lawn_durable_warning}) {
        const char *const warning = has_warned_ ? nullptr : look(durable_);
        if (warning != nullptr) {
            complain(std::string("warning: ") + warning);
            has_warned_ = true;
        }
    }
}

bool Client::run(const std::function<bool()> &is_done, int64_t until_us)
{
    pollfd fds[] = {{lawn_durable_fd(durable_), POLLIN, 0},
                    {signals, POLLIN, 0}};
    const nfds_t count = signals >= 0 ? 2 : 1;
    const bool was_signalled_before = was_signalled();
    for (;;) {
        lawn_durable_poll(durable_);
        look_for_warning();
        if (is_done()) {
            return true;
        }
        const int64_t left_us = until_us - monotonic_now();
        if (left_us <= 0 || (!was_signalled_before && was_signalled())) {
            return false;
        }
        // Rounded up, so that the end is not spun for.
        const int64_t left_ms =
            std::min<int64_t>(left_us / 1000 + 1, 3600 * 1000);
        if (poll(fds, count, static_cast<int>(left_ms)) < 0 && errno != EINTR) {
            fail(std::string("poll: ") + strerror(errno));
        }
    }
}

Settings take_settings(Arguments &arguments)
{
    Settings settings;
    std::string error;
    if (const auto url = arguments.take_text("--redis")) {
        lawn::durable::Url parsed;
        if (!lawn::durable::parse_url(*url, &parsed, &error)) {
            fail(error);
        }
        settings.url = *url;
    }
    settings.json = arguments.take_flag("--json");
    settings.require_safe_store = arguments.take_flag("--require-safe-store");
    if (const auto name = arguments.take_text("--namespace")) {
        if (!lawn::durable::check_name_space(*name, &error)) {
            fail("--namespace: " + error);
        }
        settings.name_space = *name;
    }
    return settings;
}

} // namespace lawnctl
