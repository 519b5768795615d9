// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// WAIT counts the replicas that have the latest write of its own connection. A
// request that is repeated after its connection was lost may write nothing, and
// WAIT would then promise nothing. So each batch ends with a write of its own.

#include "durable/node.h"

#include "durable/guard.h"
#include "durable/link_impl.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr uint64_t restart_pause_us = 10000;
constexpr uint64_t wait_slack_us = 1000000;
constexpr double wait_share = 0.9; // of the time that is left
constexpr size_t most_joined = 500;
// After calls that were joined from so many, the next ones wait, until there is
// enough for them.
constexpr size_t many_joined = 8;
constexpr size_t enough_joined = 100;
constexpr uint64_t apart_us = 2000;
constexpr size_t most_joined_bytes = 256 << 10;

// The number after `name` in the text of INFO; 0 if there is none.
unsigned info_number(std::string_view info, std::string_view name)
{
    const size_t at = info.find(name);
    unsigned number = 0;
    for (size_t i = at == info.npos ? info.size() : at + name.size();
         i < info.size() && info[i] >= '0' && info[i] <= '9' && number < 10000;
         ++i) {
        number = number * 10 + static_cast<unsigned>(info[i] - '0');
    }
    return number;
}

// redis_version:7.2.1 and later have WAITAOF.
bool has_waitaof(std::string_view info)
{
    constexpr std::string_view name = "redis_version:";
    const unsigned major = info_number(info, name);
    const unsigned minor =
        info_number(info, std::string(name) + std::to_string(major) + ".");
    return major > 7 || (major == 7 && minor >= 2);
}

} // namespace

void move_request(Request *request, Requests *to)
{
    to->splice(to->end(), *request->list, request->self);
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
    : Session(node.link.setup(), Kind::functions), node_(node),
      durability_(durability), send_(*setup_.loop,
                                     [this] {
                                         if (joined_ == 0) {
                                             transmit_queued();
                                         }
                                     }),
      batch_(*setup_.loop, [this] { end_batch(); }),
      restart_(*setup_.loop, [this] { restart_when_idle(); })
{
}

bool RequestSession::find(Endpoint *endpoint_p)
{
    *endpoint_p = node_.endpoint;
    return true;
}

void RequestSession::greet()
{
    if (durability_ == LAWN_DURABLE_ASYNC) {
        ask({"TIME"}, [this](ReplyPtr reply, lawn_time_t asked) {
            note_time(reply.get(), asked);
        });
    }
    if (durability_ != LAWN_DURABLE_FSYNC) {
        return;
    }
    ask({"INFO", "persistence"}, [this](ReplyPtr reply, lawn_time_t) {
        has_append_file_ =
            info_number(text_of(reply.get()), "aof_enabled:") == 1;
    });
    ask({"INFO", "server"}, [this](ReplyPtr reply, lawn_time_t) {
        has_waitaof_ = has_waitaof(text_of(reply.get()));
    });
    // It may be forbidden, and then the answer is no.
    ask({"CONFIG", "GET", "appendfsync"}, [this](ReplyPtr reply, lawn_time_t) {
        syncs_always_ = reply->type == REDIS_REPLY_ARRAY &&
                        reply->elements == 2 &&
                        text_of(reply->element[1]) == "always";
    });
}

bool RequestSession::is_supported() const
{
    return durability_ != LAWN_DURABLE_FSYNC ||
           (has_append_file_ && (syncs_always_ || has_waitaof_));
}

bool RequestSession::waits() const
{
    return durability_ > 0 ||
           (durability_ == LAWN_DURABLE_FSYNC && !syncs_always_);
}

void RequestSession::on_ready()
{
    is_waiting_ = false;
    if (durability_ == LAWN_DURABLE_ASYNC) {
        node_.link.on_main_ready(node_);
    }
    transmit_queued();
}

void RequestSession::on_failed(const Failure &failure)
{
    restart_.stop();
    send_.stop();
    batch_.stop();
    is_waiting_ = false;
    Requests lost;
    take_requests(&unsynced, &lost);
    while (!lost.empty()) {
        node_.link.on_lost(&lost.front());
    }
    node_.link.on_session_failed(node_, *this, failure,
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
    send_.start_at(std::max(not_before_, lawn_get_time()));
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
                      : lawn_get_time() + lawn_time_from_usec(apart_us);
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
                                  "yes, and appendfsync always or Redis 7.2";
        for (Request *const request : batch) {
            node_.link.fail_later(request, LAWN_ERR_UNSUPPORTED, error);
        }
        return;
    }
    const Request &first = *batch.front();
    const lawn_time_t now = loop().now();
    const Words head = node_.link.head_of(first);
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
            node_.link.on_lost(request);
        } else if (is_error(reply.get())) {
            on_refused(request, text_of(reply.get()));
        } else if (!joins) {
            on_answer(request, std::move(reply));
        } else if (is_list) {
            on_answer(request,
                      ReplyPtr(std::exchange(reply->element[i], nullptr)));
        } else {
            node_.link.finish(request, LAWN_ERR_CORRUPT,
                              "the store's reply is not ours", nullptr);
        }
    }
}

void RequestSession::on_answer(Request *request, ReplyPtr reply)
{
    if (is_error(reply.get())) {
        on_refused(request, text_of(reply.get()));
    } else if (waits() && request->done) {
        request->reply = std::move(reply);
        move_request(request, &unsynced);
    } else {
        node_.link.finish(request, LAWN_OK, "", reply.get());
    }
}

void RequestSession::on_refused(Request *request, std::string_view error)
{
    if (begins_with(error, "READONLY") ||
        begins_with(error, "ERR Function not found")) {
        restart_soon();
    }
    node_.link.on_error(request, *this, error);
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

void RequestSession::end_batch()
{
    const Requests &last = sent.empty() ? unsynced : sent;
    if (!is_ready() || last.empty()) {
        return;
    }
    const lawn_time_t now = loop().now();
    lawn_time_t end = now;
    for (const Requests *i : {&sent, &unsynced}) {
        for (const Request &request : *i) {
            end = std::max(end, request.deadline);
        }
    }
    // Before the requests time out, so that they can tell the number. 0 would
    // mean for ever.
    const uint64_t msec =
        static_cast<uint64_t>(lawn_time_to_msec(end - now) * wait_share) + 1;
    const std::string msec_text = std::to_string(msec);
    is_marked_ = false;
    send(Words{"HSET", node_.link.key(last.back().shard, Key::meta), "synced",
               "1"},
         setup_.request_timeout_us, [this](ReplyPtr reply, lawn_time_t) {
             is_marked_ = reply && !is_error(reply.get());
         });
    send(durability_ > 0 ? Words{"WAIT", std::to_string(durability_), msec_text}
                         : Words{"WAITAOF", "1", "0", msec_text},
         msec * 1000 + wait_slack_us, [this](ReplyPtr reply, lawn_time_t) {
             if (reply) { // on_failed() does it otherwise
                 on_waited(reply.get());
             }
         });
    is_waiting_ = true;
}

void RequestSession::on_waited(const redisReply *reply)
{
    is_waiting_ = false;
    const bool is_local = durability_ == LAWN_DURABLE_FSYNC;
    const bool has_element =
        is_local && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;
    int64_t count = 0;
    const bool is_good =
        is_marked_ && !is_error(reply) &&
        number_of(has_element ? reply->element[0] : reply, &count);
    const int64_t needed = is_local ? 1 : durability_;
    const std::string error =
        !is_good   ? "unknown: " + line_of(text_of(reply))
        : is_local ? "unknown: it is not on the disk yet"
                   : "unknown: only " + std::to_string(count) + " of " +
                         std::to_string(needed) + " replicas have it";
    Requests synced;
    take_requests(&unsynced, &synced);
    while (!synced.empty()) {
        Request *const request = &synced.front();
        if (!is_good) {
            node_.link.finish(request, LAWN_ERR_IO, error.c_str(), nullptr);
        } else if (count < needed) {
            node_.link.finish(request, LAWN_ERR_TIMED_OUT, error.c_str(),
                              nullptr);
        } else {
            node_.link.finish(request, LAWN_OK, "", request->reply.get());
        }
    }
    transmit_queued();
}

Node::Node(LinkImpl &owner, Endpoint where)
    : link(owner), endpoint(std::move(where)), main_(*this, LAWN_DURABLE_ASYNC)
{
}

RequestSession &Node::session(int durability)
{
    if (durability == LAWN_DURABLE_ASYNC) {
        return main_;
    }
    std::unique_ptr<RequestSession> &session = others_[durability];
    if (!session) {
        session = std::make_unique<RequestSession>(*this, durability);
    }
    return *session;
}

void Node::for_each_session(const std::function<void(RequestSession &)> &each)
{
    each(main_);
    for (const auto &i : others_) {
        each(*i.second);
    }
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
