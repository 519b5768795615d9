// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests that the store has refused for a moment. The first of a shard is
// sent again after a pause, and the others when it is answered. All requests of
// the shard that come later wait behind them, so that a start that was refused
// does not undo one that came after it.

#include "durable/guard.h"
#include "durable/link_impl.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr uint64_t first_pause_us = 5000;
constexpr uint64_t longest_pause_us = 200000;

} // namespace

// `why` is empty if the request was sent to the wrong server. It is then sent
// at once to the right one.
void LinkImpl::hold_back(Request *request, std::string_view why)
{
    Held &held = *held_[request->shard];
    if (!attempt([&] { request->trouble = line_of(why); })) {
        request->trouble = no_memory;
    }
    if (!why.empty()) {
        request->pause_us =
            std::clamp(2 * request->pause_us, first_pause_us, longest_pause_us);
    }
    held.is_well = why.empty();
    if (held.first == request) {
        held.first = nullptr;
    }
    if (!held.first && !held.again.is_active()) {
        take_queued(request->shard, &held.requests);
        held.again.start_after(request->pause_us);
    }
    insert_in_order(request, &held.requests);
}

void LinkImpl::take_queued(unsigned shard, Requests *to)
{
    for (const std::unique_ptr<Node> &node : nodes_) {
        node->for_each_session([shard, to](RequestSession &session) {
            for (auto i = session.queued.begin(); i != session.queued.end();) {
                Request &request = *i++;
                if (request.shard == shard && !request.is_asking) {
                    insert_in_order(&request, to);
                }
            }
        });
    }
}

bool LinkImpl::is_in_flight(unsigned shard)
{
    bool result = false;
    for (const std::unique_ptr<Node> &node : nodes_) {
        node->for_each_session([shard, &result](const RequestSession &session) {
            result |= std::any_of(session.sent.begin(), session.sent.end(),
                                  [shard](const Request &request) {
                                      return request.shard == shard;
                                  });
        });
    }
    return result;
}

void LinkImpl::release_held(unsigned shard)
{
    Held &held = *held_[shard];
    // Those that are under way may be refused, too, and come before others.
    if (is_in_flight(shard)) {
        held.again.start_after(first_pause_us);
        return;
    }
    Requests requests;
    if (held.is_well) {
        take_requests(&held.requests, &requests);
    } else if (!held.requests.empty()) {
        held.first = &held.requests.front();
        move_request(held.first, &requests);
    }
    while (!requests.empty()) {
        try_to_route(&requests.front());
    }
}

// The store has answered the first, or it has run out of time.
void LinkImpl::note_end(const Request &request)
{
    Held *const held =
        request.shard < held_.size() ? held_[request.shard].get() : nullptr;
    if (held && held->first == &request) {
        held->first = nullptr;
        held->is_well = true;
        held->again.start_after(0);
    }
}

void LinkImpl::end_overtaken(const Request &done)
{
    Requests &held = held_[done.shard]->requests;
    for (auto i = held.begin(); i != held.end() && i->number < done.number;) {
        Request &request = *i++;
        if (!done.call.reads_only && !request.call.reads_only &&
            request.call.id == done.call.id && !done.call.id.empty()) {
            std::string error;
            attempt([&] {
                error = "not done: a later request about the same timer was "
                        "done, while the store refused this one";
                error += request.trouble.empty() ? "" : ": " + request.trouble;
            });
            finish(&request, LAWN_ERR_IO, error.c_str(), nullptr);
        }
    }
}

} // namespace lawn::durable
