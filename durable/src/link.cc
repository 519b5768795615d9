// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests: their way to a session, what becomes of them when the store does
// not do them, and their end. The nodes and the slots are in routes.cc.

#include "src/guard.h"
#include "src/hash.h"
#include "src/link_impl.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr unsigned max_redirections = 8;

// The functions of the store say which key is of a wrong type. Redis does not;
// `args` of a command has the one that the command is about.
std::string key_of(const Request &request, std::string_view error)
{
    const bool is_needed = !request.call.function &&
                           !request.call.args.empty() &&
                           begins_with(error, "WRONGTYPE");
    return is_needed ? ": " + line_of(request.call.args[0]) : "";
}

const char *name_of(Key key)
{
    switch (key) {
    case Key::due:
        return "due";
    case Key::body:
        return "body";
    case Key::meta:
        return "meta";
    case Key::out:
        return "out";
    case Key::push:
        return "push";
    case Key::dead:
        return "dead";
    case Key::ended0:
        return "ended0";
    case Key::ended1:
        return "ended1";
    case Key::cron:
        return "cron";
    case Key::config:
        return "config";
    case Key::pumps:
        return "pumps";
    }
    return "";
}

} // namespace

bool is_passing(std::string_view error)
{
    static constexpr std::string_view passing[] = {
        "TRYAGAIN", "CLUSTERDOWN", "LOADING",  "MASTERDOWN",
        "BUSY ",    "NOREPLICAS",  "READONLY", "ERR Function not found"};
    return std::any_of(
        std::begin(passing), std::end(passing),
        [error](std::string_view i) { return begins_with(error, i); });
}

LinkImpl::LinkImpl(lawn_durable &durable, Url url)
    : durable_(durable), setup_{&durable.loop,
                                std::move(url),
                                durable.params.connect_timeout_us,
                                durable.params.request_timeout_us,
                                0,
                                {}},
      open_timer_(durable.loop, [this] { open_space(); }),
      prepare_timer_(durable.loop, [this] { prepare_all(); }),
      refresh_timer_(durable.loop, [this] { refresh(); }),
      sweep_timer_(durable.loop, [this] { sweep(); }),
      when_open_timer_(durable.loop, [this] { run_when_open(); })
{
    setup_.random.seed(
        static_cast<std::minstd_rand::result_type>(lawn_get_time()));
    // With sentinels, the session finds the server.
    node_at(setup_.url.endpoints[0])->main().start();
}

LinkImpl::~LinkImpl()
{
    is_ending_ = true;
    Failure failure = {LAWN_ERR_IO, ""};
    Failure unknown = {LAWN_ERR_IO, ""};
    attempt([&] {
        failure.why = "the client was closed";
        unknown.why = "unknown: the client was closed";
    });
    for (const std::unique_ptr<Node> &node : nodes_) {
        node->for_each_session([&](RequestSession &session) {
            for (Request &i : session.sent) {
                i.is_in_flight = false;
            }
            fail_all(&session.queued, failure);
            fail_all(&session.sent, unknown);
            fail_all(&session.unsynced, unknown);
        });
    }
    fail_all(&opening_, failure);
    fail_all(&failing_, failure);
    for (const std::unique_ptr<HeldOfShard> &shard : held_) {
        fail_all(&shard->plain.requests, failure);
        fail_all(&shard->waiting.requests, failure);
    }
}

Loop &LinkImpl::loop() const
{
    return durable_.loop;
}

size_t LinkImpl::requests() const
{
    return unanswered_;
}

std::string LinkImpl::key(unsigned shard, Key key) const
{
    return head(shard) + name_of(key);
}

std::string LinkImpl::wake_channel(unsigned shard) const
{
    return head(shard) + "wake";
}

// The server's library knows a shard by the names of its keys, and cannot see
// in which database they are; nor can those who listen to a channel.
std::string LinkImpl::head(unsigned shard) const
{
    const unsigned db = setup_.url.db;
    return (db ? std::to_string(db) : "") + "{" + durable_.name_space + ":" +
           std::to_string(shard) + "}:";
}

unsigned LinkImpl::shard_of(std::string_view id) const
{
    return durable::shard_of(id, shards_);
}

Request *LinkImpl::add(Call call, Done done)
{
    const uint64_t timeout_us =
        call.timeout_us != 0 ? call.timeout_us : setup_.request_timeout_us;
    opening_.emplace_back(durable_.loop, std::move(call), std::move(done));
    Request *const request = &opening_.back();
    request->number = ++numbers_;
    request->list = &opening_;
    request->self = std::prev(opening_.end());
    request->timer.set([this, request] { on_timer(request); });
    request->deadline =
        loop().now() + lawn_time_from_usec(static_cast<double>(timeout_us));
    request->timer.start_at(request->deadline);
    ++unanswered_;
    return request;
}

void LinkImpl::call(Call call, Done done)
{
    if (is_ending_) {
        done({LAWN_ERR_IO, "the client is being closed", nullptr, 0});
        return;
    }
    Request *const request = add(std::move(call), std::move(done));
    try {
        route(request);
    } catch (...) {
        withdraw(request);
        throw;
    }
}

// Nobody will be answered, for the caller is told at once.
void LinkImpl::withdraw(Request *request)
{
    --unanswered_;
    request->list->erase(request->self);
}

void LinkImpl::command(unsigned shard, const Args &command, Done done)
{
    if (is_ending_) {
        done({LAWN_ERR_IO, "the client is being closed", nullptr, 0});
        return;
    }
    Call call = {};
    call.shard = shard;
    Request *const request = add(std::move(call), std::move(done));
    request->shard = shard;
    request->has_shard = true;
    try {
        append_words(&request->wire, command);
        request->words = command.size();
        if (command.size() > 1) {
            request->call.args = {command[1]};
        }
        route(request);
    } catch (...) {
        withdraw(request);
        throw;
    }
}

void LinkImpl::build(Request *request) const
{
    const Call &call = request->call;
    if (!request->has_shard) {
        request->shard = call.id.empty() ? call.shard : shard_of(call.id);
        request->has_shard = true;
    }
    if (request->words != 0) {
        return;
    }
    // All of it, or nothing: without memory, it is done again.
    Args prepared;
    if (call.prepare) {
        prepared = call.args;
        call.prepare(request->shard, &prepared);
    }
    const Args &args = call.prepare ? prepared : call.args;
    std::string wire;
    append_words(&wire, args);
    request->wire = std::move(wire);
    request->words = args.size();
    request->call.args.clear();
}

Args LinkImpl::head_of(const Request &request) const
{
    const Call &call = request.call;
    if (!call.function) {
        return {}; // a command of Redis, whose words are all arguments
    }
    Args head = {call.reads_only ? "FCALL_RO" : "FCALL", call.function,
                 std::to_string(call.keys.size())};
    for (const Key i : call.keys) {
        head.push_back(key(request.shard, i));
    }
    if (call.tells_shards) {
        head.push_back(std::to_string(shards_));
    }
    return head;
}

void LinkImpl::route(Request *request)
{
    if (!is_open_) {
        insert_in_order(request, &opening_);
        return;
    }
    build(request);
    Held &held = held_of(*request);
    if (held.first ? held.first != request : !held.requests.empty()) {
        insert_in_order(request, &held.requests);
        return;
    }
    Node *const node = request->is_asking ? node_at(request->asked_at)
                                          : node_of(request->shard);
    // What is under way at another server may come back, and comes first.
    if (!node) {
        hold_back(request, "no server has the shard now");
        refresh_soon();
    } else if (node != held.node && is_under_way(held)) {
        hold_back(request, "");
    } else {
        held.node = node;
        node->session(request->call.durability).add(request);
    }
}

// Without memory, a little later.
void LinkImpl::try_to_route(Request *request)
{
    if (!attempt([&] { route(request); })) {
        hold_back(request, no_memory);
    }
}

void LinkImpl::on_timer(Request *request)
{
    // Comes back soon if this fails for want of memory.
    request->timer.start_after(retry_us);
    if (request->failure != LAWN_OK) {
        finish(request, request->failure, request->trouble.c_str(), nullptr);
    } else if (request->is_in_flight || request->reply) {
        finish(request, LAWN_ERR_TIMED_OUT,
               "unknown: the store has not answered in time", nullptr);
    } else {
        // It may wait behind one that was refused.
        const std::string &trouble = request->trouble.empty()
                                         ? request->list->front().trouble
                                         : request->trouble;
        const char *const why = trouble.empty() ? error() : trouble.c_str();
        const std::string text = why ? ": " + std::string(why) : "";
        finish(request, LAWN_ERR_TIMED_OUT, (not_done_in_time + text).c_str(),
               nullptr);
    }
}

void LinkImpl::fail_later(Request *request, lawn_status_t status,
                          std::string_view error)
{
    request->failure = status;
    if (!attempt([&] { request->trouble = error; })) {
        request->trouble = no_memory;
    }
    move_request(request, &failing_);
    request->timer.start_after(0);
}

void LinkImpl::finish(Request *request, lawn_status_t status, const char *error,
                      const redisReply *reply)
{
    Done done = std::move(request->done);
    request->done = nullptr;
    request->timer.stop();
    note_end(*request);
    Requests ended; // `error` and `reply` may be of the request
    if (!request->is_in_flight) {
        move_request(request, &ended);
    }
    if (!done) {
        return;
    }
    --unanswered_;
    if (attempt([&] { done({status, error, reply, request->sent}); })) {
        return;
    }
    ++unanswered_;
    request->done = std::move(done);
    request->failure = LAWN_ERR_NO_MEMORY;
    request->trouble = no_memory;
    if (!request->is_in_flight) {
        move_request(request, &failing_);
    }
    request->timer.start_after(retry_us);
}

void LinkImpl::fail_all(Requests *requests, const Failure &failure)
{
    Requests failed;
    take_requests(requests, &failed);
    while (!failed.empty()) {
        finish(&failed.front(), failure.status, failure.why.c_str(), nullptr);
    }
}

void LinkImpl::on_lost(Request *request)
{
    if (request->done && request->call.reads_only) {
        hold_back(request, "the connection was lost");
    } else {
        finish(request, LAWN_ERR_IO,
               "unknown: the connection was lost before the answer", nullptr);
    }
}

// The store has not done it, so it may be asked again.
void LinkImpl::on_error(Request *request, const RequestSession &session,
                        std::string_view error)
{
    if (!attempt([&] { refuse(request, session, error); })) {
        hold_back(request, no_memory);
    }
}

void LinkImpl::refuse(Request *request, const RequestSession &session,
                      std::string_view error)
{
    const bool is_redirected =
        begins_with(error, "MOVED ") || begins_with(error, "ASK ");
    if (!request->done) {
        finish(request, LAWN_OK, "", nullptr);
    } else if (is_cluster_ && is_redirected) {
        redirect(request, error, session.endpoint());
    } else if (begins_with(error, "LAWN REOPEN")) {
        open_space();
        hold_back(request, error);
    } else if (is_passing(error)) {
        hold_back(request, error);
        if (is_cluster_ && begins_with(error, "CLUSTERDOWN")) {
            refresh_soon();
        }
    } else if (is_redirected) {
        finish(request, LAWN_ERR_CORRUPT, line_of(error).c_str(), nullptr);
    } else {
        finish(request, status_of_error(error),
               (line_of(error) + key_of(*request, error)).c_str(), nullptr);
    }
}

void LinkImpl::redirect(Request *request, std::string_view error,
                        const Endpoint &from)
{
    unsigned slot = 0;
    Endpoint endpoint;
    if (++request->redirections % max_redirections == 0) {
        hold_back(request, error);
    } else if (!read_redirection(error, from, &slot, &endpoint)) {
        finish(request, LAWN_ERR_CORRUPT, line_of(error).c_str(), nullptr);
    } else if (begins_with(error, "ASK ")) {
        request->is_asking = true;
        request->asked_at = std::move(endpoint);
        hold_back(request, "");
    } else {
        // Those sent after it will come back, too, and then go in their order.
        // It is held first, so that what is queued behind it does not go to the
        // other server before it.
        hold_back(request, "");
        on_moved(error, from);
    }
}

void LinkImpl::on_session_failed(Node &node, RequestSession &session,
                                 const Failure &failure, bool is_main)
{
    if (is_main && !attempt([&] { node.trouble = failure.why; })) {
        node.trouble = no_memory;
    }
    if (failure.status != LAWN_ERR_IO || durable_.params.fail_fast) {
        fail_all(&session.queued, failure);
        if (!is_open_) {
            fail_all(&opening_, failure);
        }
    }
    ask_again(&session, failure);
    if (is_cluster_) {
        refresh_soon();
    }
}

std::unique_ptr<Channel>
LinkImpl::open_channel(unsigned shard, std::vector<std::string> subscribe,
                       Channel::Events events)
{
    auto session = std::make_unique<ChannelSession>(
        *this, shard, std::move(subscribe), std::move(events));
    ChannelSession *const channel = session.get();
    auto handle = std::make_unique<ChannelHandle>(*this, channel);
    channels_[channel] = std::move(session);
    channel->start();
    return handle;
}

void LinkImpl::remove(ChannelSession *channel)
{
    const auto found = channels_.find(channel);
    if (found == channels_.end()) {
        return; // there was no memory to open it
    }
    channel->mute();
    removed_.insert(channels_.extract(found)); // allocates nothing
    sweep_timer_.start_after(0);
}

void LinkImpl::when_open(const void *owner, std::function<void()> fn)
{
    when_open_.emplace_back(owner, std::move(fn));
    if (is_open_) {
        when_open_timer_.start_after(0);
    }
}

void LinkImpl::forget(const void *owner)
{
    when_open_.remove_if([owner](const auto &i) { return i.first == owner; });
}

void LinkImpl::run_when_open()
{
    while (!when_open_.empty()) {
        WhenOpen now;
        now.splice(now.begin(), when_open_, when_open_.begin());
        if (!attempt(now.front().second)) {
            when_open_.splice(when_open_.begin(), now);
            when_open_timer_.start_after(retry_us);
            return;
        }
    }
}

const char *LinkImpl::error() const
{
    error_ = trouble_;
    for (const std::unique_ptr<Node> &node : nodes_) {
        if (error_.empty() && !node->main().is_ready() &&
            (!is_cluster_ || !is_open_ || has_slots(*node))) {
            error_ = node->trouble;
        }
    }
    return error_.empty() ? nullptr : error_.c_str();
}

} // namespace lawn::durable
