// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests that the store has refused for a moment. The first of a shard is
// sent again after a pause, and the others when it is answered. All requests of
// the shard that come later wait behind them, so that a start that was refused
// does not undo one that came after it.
//
// So while requests are held, no later one is in a session, and none is sent
// before those that are under way are answered: they may come back, too. The
// same holds when a shard has moved to another server than that of what is
// under way.

#include "src/guard.h"
#include "src/link_impl.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr uint64_t first_pause_us = 5000;
constexpr uint64_t longest_pause_us = 200000;

} // namespace

// `why` is empty if the request was sent to the wrong server, or waits for what
// is under way at another one. It is then sent without a pause.
void LinkImpl::hold_back(Request *request, std::string_view why)
{
    Held &held = held_of(*request);
    if (!attempt([&] { request->trouble = line_of(why); })) {
        request->trouble = no_memory;
    }
    if (!why.empty()) {
        request->pause_us =
            std::clamp(2 * request->pause_us, first_pause_us, longest_pause_us);
    }
    if (held.first == request) {
        held.first = nullptr;
    }
    const bool is_alone = !held.first && held.requests.empty();
    held.is_well = why.empty() && (held.is_well || is_alone);
    if (is_alone) {
        take_queued(&held);
    }
    // If it is alone, the timer may run for requests that are held no longer.
    if (is_alone || (!held.first && !held.again.is_active())) {
        held.again.start_after(why.empty() ? 0 : request->pause_us);
    }
    insert_in_order(request, &held.requests);
}

Held &LinkImpl::held_of(const Request &request)
{
    HeldOfShard &shard = *held_[request.shard];
    return request.call.durability == LAWN_DURABLE_ASYNC ? shard.plain
                                                         : shard.waiting;
}

void LinkImpl::for_each_session(
    const Held &held, const std::function<void(RequestSession &)> &each)
{
    for (const std::unique_ptr<Node> &node : nodes_) {
        node->for_each_session([&](RequestSession &session) {
            if (session.waits() == held.waits) {
                each(session);
            }
        });
    }
}

void LinkImpl::take_queued(Held *held)
{
    for_each_session(*held, [held](RequestSession &session) {
        for (auto i = session.queued.begin(); i != session.queued.end();) {
            Request &request = *i++;
            if (request.shard == held->shard && !request.is_asking) {
                insert_in_order(&request, &held->requests);
            }
        }
    });
}

// One that was redirected by ASK is under way as soon as it is queued, for its
// server is not the one where later ones are queued.
bool LinkImpl::is_under_way(const Held &held)
{
    bool result = false;
    for_each_session(held, [&](const RequestSession &session) {
        result |= std::any_of(
            session.sent.begin(), session.sent.end(),
            [&held](const Request &i) { return i.shard == held.shard; });
        result |= std::any_of(session.queued.begin(), session.queued.end(),
                              [&held](const Request &i) {
                                  return i.shard == held.shard && i.is_asking;
                              });
    });
    return result;
}

// Those that ASK has sent to a server that cannot be reached. The slot may stay
// where it was, so they begin there again.
void LinkImpl::ask_again(RequestSession *session, const Failure &failure)
{
    Requests asking;
    for (auto i = session->queued.begin(); i != session->queued.end();) {
        Request &request = *i++;
        if (request.is_asking) {
            request.is_asking = false;
            move_request(&request, &asking);
        }
    }
    while (!asking.empty()) {
        hold_back(&asking.front(), failure.why);
    }
}

void LinkImpl::release_held(Held *held_p)
{
    Held &held = *held_p;
    if (held.requests.empty()) {
        return; // they have run out of time
    }
    // Those that are under way may be refused, too, and come before others.
    if (is_under_way(held)) {
        held.again.start_after(first_pause_us);
        return;
    }
    Requests requests;
    if (held.is_well) {
        take_requests(&held.requests, &requests);
    } else {
        held.first = &held.requests.front();
        move_request(held.first, &requests);
    }
    while (!requests.empty()) {
        try_to_route(&requests.front());
    }
}

// The store has done the first, or has refused it for good, or it has run out
// of time.
void LinkImpl::note_end(const Request &request)
{
    Held *const held =
        request.shard < held_.size() ? &held_of(request) : nullptr;
    if (held && held->first == &request) {
        held->first = nullptr;
        held->is_well = true;
        held->again.start_after(0);
    }
}

void LinkImpl::end_overtaken(const Request &done)
{
    HeldOfShard &shard = *held_[done.shard];
    for (Requests *held : {&shard.plain.requests, &shard.waiting.requests}) {
        for (auto i = held->begin();
             i != held->end() && i->number < done.number;) {
            Request &request = *i++;
            if (!done.call.reads_only && !request.call.reads_only &&
                request.call.id == done.call.id && !done.call.id.empty()) {
                std::string error;
                attempt([&] {
                    error = "not done: a later request about the same timer "
                            "was done, while the store refused this one";
                    error += request.trouble.empty() ? "" : ": ";
                    error += request.trouble;
                });
                finish(&request, LAWN_ERR_IO, error.c_str(), nullptr);
            }
        }
    }
}

} // namespace lawn::durable
