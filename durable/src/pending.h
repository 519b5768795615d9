// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The end of requests: each is answered once, at its deadline at the latest.

#ifndef LAWN_SRC_DURABLE_PENDING_H
#define LAWN_SRC_DURABLE_PENDING_H

#include "src/node.h"

#include <string_view>

namespace lawn::durable
{

class Pending
{
public:
    class Owner
    {
    public:
        // The request is about to be answered.
        virtual void on_end(const Request &request) = 0;
        // What keeps requests from being answered, or nullptr.
        virtual const char *error() const = 0;

    protected:
        ~Owner() = default;
    };

    Pending(Loop &loop, Owner &owner);

    // Those that have no answer.
    size_t size() const
    {
        return size_;
    }

    // Makes a request at the end of `to`.
    Request *add(Call call, Done done, uint64_t timeout_us, Requests *to);
    // Nobody will be answered, for the caller is told at once.
    void withdraw(Request *request);

    // These allocate nothing that they cannot do without.

    // Answers a request and ends it. One that the store still works on stays,
    // without `done`.
    void finish(Request *request, lawn_status_t status, const char *error,
                const redisReply *reply);
    void finish_all(Requests *requests, const Failure &failure);
    // The same in the next poll.
    void fail_later(Request *request, lawn_status_t status,
                    std::string_view error);
    // Those that fail_later() has taken, now.
    void finish_failing(const Failure &failure)
    {
        finish_all(&failing_, failure);
    }

private:
    void on_timer(Request *request);

    Loop &loop_;
    Owner &owner_;
    Requests failing_; // to be answered with their failures
    size_t size_ = 0;
    uint64_t numbers_ = 0; // of requests
};

} // namespace lawn::durable

#endif
