// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How requests end (pending.h).

#include "src/pending.h"

#include "src/guard.h"

#include <utility>

namespace lawn::durable
{

Pending::Pending(Loop &loop, Owner &owner) : loop_(loop), owner_(owner)
{
}

Request *Pending::add(Call call, Done done, uint64_t timeout_us, Requests *to)
{
    to->emplace_back(loop_, std::move(call), std::move(done));
    Request *const request = &to->back();
    request->number = ++numbers_;
    request->list = to;
    request->self = std::prev(to->end());
    request->timer.set([this, request] { on_timer(request); });
    request->deadline =
        loop_.now() + lawn_time_from_usec(static_cast<double>(timeout_us));
    request->timer.start_at(request->deadline);
    ++size_;
    return request;
}

void Pending::withdraw(Request *request)
{
    --size_;
    request->list->erase(request->self);
}

void Pending::on_timer(Request *request)
{
    // Comes back soon if this fails for want of memory.
    request->timer.start_after(retry_us);
    if (request->failure != LAWN_OK) {
        finish(request, request->failure, request->error.c_str(), nullptr);
    } else if (request->is_in_flight || request->reply) {
        finish(request, LAWN_ERR_TIMED_OUT,
               "unknown: the store has not answered in time", nullptr);
    } else {
        // It may wait behind one that was refused.
        const std::string &error = request->error.empty()
                                       ? request->list->front().error
                                       : request->error;
        const char *const why = error.empty() ? owner_.error() : error.c_str();
        const std::string text = why ? ": " + std::string(why) : "";
        finish(request, LAWN_ERR_TIMED_OUT, (not_done_in_time + text).c_str(),
               nullptr);
    }
}

void Pending::fail_later(Request *request, lawn_status_t status,
                         std::string_view error)
{
    request->failure = status;
    if (!attempt([&] { request->error = error; })) {
        request->error = no_memory;
    }
    move_request(request, &failing_);
    request->timer.start_after(0);
}

void Pending::finish(Request *request, lawn_status_t status, const char *error,
                     const redisReply *reply)
{
    Done done = std::move(request->done);
    request->done = nullptr;
    request->timer.stop();
    owner_.on_end(*request);
    Requests ended; // `error` and `reply` may be of the request
    if (!request->is_in_flight) {
        move_request(request, &ended);
    }
    if (!done) {
        return;
    }
    --size_;
    if (attempt([&] { done({status, error, reply, request->sent}); })) {
        return;
    }
    ++size_;
    request->done = std::move(done);
    request->failure = LAWN_ERR_NO_MEMORY;
    request->error = no_memory;
    if (!request->is_in_flight) {
        move_request(request, &failing_);
    }
    request->timer.start_after(retry_us);
}

void Pending::finish_all(Requests *requests, const Failure &failure)
{
    Requests failed;
    take_requests(requests, &failed);
    while (!failed.empty()) {
        finish(&failed.front(), failure.status, failure.why.c_str(), nullptr);
    }
}

} // namespace lawn::durable
