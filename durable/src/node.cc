// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How requests are sent (node.h).

#include "src/node.h"

#include "src/guard.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr uint64_t restart_pause_us = 10000;
constexpr size_t most_joined = 200;
// After calls that were joined from so many, the next ones wait, until there is
// enough for them.
constexpr size_t many_joined = 8;
constexpr size_t enough_joined = 100;
constexpr uint64_t apart_us = 2000;
constexpr size_t most_joined_bytes = 256 << 10;
constexpr uint64_t watch_us = 30000000;

} // namespace

void move_request(Request *request, Requests *to)
{
    to->splice(to->end(), *request->list, request->self);
    request->list = to;
}

void insert_in_order(Request *request, Requests *to)
{
    Requests::iterator at = to->end();
    while (at != to->begin() && std::prev(at)->number > request->number) {
        --at;
    }
    to->splice(at, *request->list, request->self);
    request->list = to;
}

void take_requests(Requests *from, Requests *to)
{
    for (Request &i : *from) {
        i.list = to;
    }
    to->splice(to->end(), *from);
}

RequestSession::RequestSession(Node &node, int durability)
    : Session(node.setup, Kind::functions), node_(node),
      durability_(durability), send_(*setup_.loop,
                                     [this] {
                                         if (joined_ == 0) {
                                             transmit_queued();
                                         }
                                     }),
      batch_(*setup_.loop, [this] { end_batch(); }),
      restart_(*setup_.loop, [this] { restart_when_idle(); }),
      watch_(*setup_.loop, [this] {
          ask_safety();
          watch_.start_after(watch_us);
      })
{
}

bool RequestSession::find(Endpoint *endpoint_p)
{
    *endpoint_p = node_.endpoint;
    return true;
}

void RequestSession::on_ready()
{
    is_waiting_ = false;
    if (durability_ == LAWN_DURABLE_ASYNC) {
        watch_.start_after(watch_us);
        node_.owner.on_main_ready(node_);
    }
    transmit_queued();
}

void RequestSession::on_failed(const Failure &failure)
{
    if (durability_ == LAWN_DURABLE_ASYNC) {
        setup_.warnings.forget(place());
    }
    restart_.stop();
    watch_.stop();
    send_.stop();
    batch_.stop();
    is_waiting_ = false;
    Requests lost;
    take_requests(&unsynced, &lost);
    while (!lost.empty()) {
        node_.owner.on_lost(&lost.front());
    }
    node_.owner.on_session_failed(node_, *this, failure,
                                  durability_ == LAWN_DURABLE_ASYNC);
}

void RequestSession::on_time(lawn_time_t asked, int64_t store_us)
{
    node_.clock.add(asked, loop().now(), store_us);
}

void RequestSession::add(Request *request)
{
    move_request(request, &queued);
    start();
    if (!may_transmit()) {
        return;
    }
    const bool is_behind = queued.size() > 1 && !request->call.id.empty();
    if (!request->call.joins && !is_behind) {
        move_request(request, &sent);
        transmit({request});
    } else if (joined_ == 0) {
        send_soon();
    }
}

// At the end of this poll, or a little later.
void RequestSession::send_soon()
{
    const bool is_enough = queued.size() >= enough_joined;
    if (send_.is_active() && (not_before_ == 0 || !is_enough)) {
        return;
    }
    if (is_enough) {
        not_before_ = 0;
    }
    send_.start_at(std::max(not_before_, setup_.loop->now()));
}

void RequestSession::transmit_queued()
{
    size_t joined = 0;
    while (!queued.empty() && may_transmit()) {
        Batch batch;
        if (attempt([&] { batch = take_batch(); }) &&
            attempt([&] { transmit(batch); })) {
            joined += batch.front()->call.joins ? batch.size() : 0;
            continue;
        }
        // None of it was sent. The order stays.
        std::for_each(batch.rbegin(), batch.rend(), [this](Request *request) {
            queued.splice(queued.begin(), *request->list, request->self);
            request->list = &queued;
        });
        send_.start_after(retry_us);
        return;
    }
    not_before_ = joined < many_joined
                      ? 0
                      : setup_.loop->now() + lawn_time_from_usec(apart_us);
}

// The first of the queue, and those behind it that can be joined to it. Nothing
// that cannot be joined is overtaken, as it may be about the same timer.
RequestSession::Batch RequestSession::take_batch()
{
    const auto first = queued.begin();
    const auto joins = [&first](const Request &i) {
        return i.call.joins && !i.is_asking &&
               std::string_view(i.call.function) == first->call.function;
    };
    Batch batch = {&*first};
    size_t bytes = first->wire.size();
    for (auto i = std::next(first);
         i != queued.end() && joins(*first) && joins(*i) &&
         batch.size() < most_joined && bytes < most_joined_bytes;
         ++i) {
        if (i->shard == first->shard) {
            batch.push_back(&*i);
            bytes += i->wire.size();
        }
    }
    for (Request *const request : batch) {
        move_request(request, &sent);
    }
    return batch;
}

void RequestSession::transmit(const Batch &batch)
{
    if (!is_supported()) {
        const std::string error = endpoint().text() +
                                  " cannot promise fsync: it needs appendonly "
                                  "yes, and Redis 7.2 or appendfsync always "
                                  "with no-appendfsync-on-rewrite no";
        for (Request *const request : batch) {
            node_.owner.fail_later(request, LAWN_ERR_UNSUPPORTED, error);
        }
        // For those that come later.
        ask_settings(false);
        return;
    }
    const Request &first = *batch.front();
    const lawn_time_t now = loop().now();
    const Words head = node_.owner.head_of(first);
    size_t words = head.size();
    for (Request *const request : batch) {
        words += request->words;
        request->sent = now;
    }
    std::string wire;
    append_count(&wire, words);
    append_words(&wire, head);
    for (const Request *const request : batch) {
        wire.append(request->wire);
    }
    if (first.is_asking) {
        send(Words{"ASKING"}, setup_.request_timeout_us,
             [](ReplyPtr, lawn_time_t) {});
    }
    send(wire, setup_.request_timeout_us,
         [this, batch](ReplyPtr reply, lawn_time_t) {
             on_replies(batch, std::move(reply));
         });
    joined_ += first.call.joins; // the reply comes in a later poll
    for (Request *const request : batch) {
        request->is_in_flight = true;
    }
    if (waits() && !batch_.is_active()) {
        batch_.start_after(0);
    }
}

void RequestSession::on_replies(const Batch &batch, ReplyPtr reply)
{
    Requests unanswered;
    for (Request *const request : batch) {
        request->is_in_flight = false;
        request->is_asking = false;
        move_request(request, &unanswered);
    }
    const bool joins = batch.front()->call.joins;
    if (joins) {
        --joined_;
        send_soon();
    }
    const bool is_list = reply && reply->type == REDIS_REPLY_ARRAY &&
                         reply->elements == batch.size();
    for (size_t i = 0; !unanswered.empty(); ++i) {
        Request *const request = &unanswered.front();
        if (!reply) {
            node_.owner.on_lost(request);
        } else if (is_error(reply.get())) {
            on_refused(request, text_of(reply.get()));
        } else if (!joins) {
            on_answer(request, std::exchange(reply, nullptr));
        } else if (is_list) {
            on_answer(request,
                      ReplyPtr(std::exchange(reply->element[i], nullptr)));
        } else {
            node_.owner.finish(request, LAWN_ERR_CORRUPT,
                               "the store's reply is not ours", nullptr);
        }
    }
}

void RequestSession::on_answer(Request *request, ReplyPtr reply)
{
    if (is_error(reply.get())) {
        on_refused(request, text_of(reply.get()));
        return;
    }
    node_.owner.on_done(*request);
    if (waits() && request->done) {
        request->reply = std::move(reply);
        move_request(request, &unsynced);
    } else {
        node_.owner.finish(request, LAWN_OK, "", reply.get());
    }
}

void RequestSession::look_at_refusal(std::string_view error)
{
    if (begins_with(error, "READONLY") ||
        begins_with(error, "ERR Function not found")) {
        restart_soon();
    }
}

void RequestSession::on_refused(Request *request, std::string_view error)
{
    look_at_refusal(error);
    node_.owner.on_error(request, *this, error);
}

// Not on a connection that is about to be given up.
bool RequestSession::may_transmit() const
{
    return is_ready() && !is_waiting_ && !restart_.is_active();
}

// What is under way is answered before, so that its end is known.
void RequestSession::restart_when_idle()
{
    if (sent.empty()) {
        restart("the functions are gone, or it has become a replica");
    } else {
        restart_soon();
    }
}

void RequestSession::restart_soon()
{
    if (!restart_.is_active()) {
        restart_.start_after(restart_pause_us);
    }
}

Node::Node(Setup &for_sessions, const Keys &of_namespace, Owner &of_requests,
           Endpoint where)
    : setup(for_sessions), keys(of_namespace), owner(of_requests),
      endpoint(std::move(where)), main_(*this, LAWN_DURABLE_ASYNC)
{
}

RequestSession &Node::session(int durability)
{
    if (durability == LAWN_DURABLE_ASYNC) {
        return main_;
    }
    const auto found = others_.find(durability);
    if (found != others_.end()) {
        return *found->second;
    }
    // Made first: without memory, there must be no entry without a session.
    auto session = std::make_unique<RequestSession>(*this, durability);
    return *others_.emplace(durability, std::move(session)).first->second;
}

bool Node::is_idle()
{
    bool result = true;
    for_each_session([&result](RequestSession &session) {
        result = result && session.queued.empty() && session.sent.empty() &&
                 session.unsynced.empty() && session.unanswered() == 0;
    });
    return result;
}

} // namespace lawn::durable
