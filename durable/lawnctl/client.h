// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A client of the durable tier as the commands use it: it waits, notices
// signals, and ends the program with one line when the store cannot be used.

#ifndef LAWN_LAWNCTL_CLIENT_H
#define LAWN_LAWNCTL_CLIENT_H

#include "arguments.h"

#include <lawn/durable.h>

#include <cstdint>
#include <functional>
#include <string>

namespace lawnctl
{

struct Settings {
    std::string url; // empty: the library's default
    std::string name_space;
    bool json = false;
    bool require_safe_store = false;
};

// Takes --redis, --namespace, --json and --require-safe-store.
Settings take_settings(Arguments &arguments);

// From now on SIGTERM and SIGINT do not end the program, but are noticed by
// was_signalled() and end waits.
void catch_signals();
bool was_signalled();

class Client
{
public:
    // `params` without url and name_space. Fails if they are refused.
    explicit Client(const Settings &settings,
                    lawn_durable_params_t params = lawn_durable_params_t());
    ~Client();

    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    lawn_durable_t *get() const
    {
        return durable_;
    }

    // Waits until the store was reached for the first time. Fails if that is
    // not possible. False: a signal was caught before, or the time has come.
    bool connect(int64_t until_us = INT64_MAX);

    // Works until `is_done` says so (true), the first signal is caught, or the
    // time, as CLOCK_MONOTONIC has it, has come (false).
    bool run(const std::function<bool()> &is_done,
             int64_t until_us = INT64_MAX);

private:
    void look_for_warning();

    lawn_durable_t *durable_ = nullptr;
    bool has_warned_ = false;
};

// CLOCK_MONOTONIC in microseconds.
int64_t monotonic_now();

// What is wrong: the error, or the name of the status if there is none.
const char *reason_of(lawn_status_t status, const char *error);

// Fails unless the status is OK.
void require_success(lawn_status_t status, const char *error);

} // namespace lawnctl

#endif
