// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests: their way to a session, and what becomes of them when the store
// does not do them.

#include "src/guard.h"
#include "src/hash.h"
#include "src/link_impl.h"

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

} // namespace

LinkImpl::LinkImpl(Loop &loop, const lawn_durable_params_t &params,
                   const std::string &name_space, Url url)
    : params_(params), setup_{&loop,
                              std::move(url),
                              params.connect_timeout_us,
                              params.request_timeout_us,
                              params.require_safe_store,
                              0,
                              {},
                              {}},
      keys_(name_space, setup_.url.db), pending_(loop, *this),
      routes_(setup_, keys_, *this, *this),
      held_back_(loop, routes_,
                 [this](Request *request) { try_to_route(request); }),
      namespace_(setup_, params, keys_, routes_, *this),
      channels_(setup_, routes_)
{
    setup_.random.seed(static_cast<std::minstd_rand::result_type>(loop.now()));
    routes_.start();
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
    routes_.for_each_node([&](Node &node) {
        node.for_each_session([&](RequestSession &session) {
            for (Request &i : session.sent) {
                i.is_in_flight = false;
            }
            pending_.finish_all(&session.queued, failure);
            pending_.finish_all(&session.sent, unknown);
            pending_.finish_all(&session.unsynced, unknown);
        });
    });
    pending_.finish_all(&opening_, failure);
    pending_.finish_failing(failure);
    Requests held;
    held_back_.take_all(&held);
    pending_.finish_all(&held, failure);
}

Loop &LinkImpl::loop() const
{
    return *setup_.loop;
}

size_t LinkImpl::requests() const
{
    return pending_.size();
}

unsigned LinkImpl::shards() const
{
    return namespace_.shards();
}

unsigned LinkImpl::shard_of(std::string_view id) const
{
    return durable::shard_of(id, namespace_.shards());
}

bool LinkImpl::is_cluster() const
{
    return routes_.is_cluster();
}

std::string LinkImpl::key(unsigned shard, Key key) const
{
    return keys_.key(shard, key);
}

std::string LinkImpl::wake_channel(unsigned shard) const
{
    return keys_.wake_channel(shard);
}

void LinkImpl::note_time(unsigned shard, lawn_time_t sent, int64_t store_us)
{
    Node *const node = routes_.node_of(shard);
    if (node) {
        node->clock.add(sent, loop().now(), store_us);
    }
}

int64_t LinkImpl::store_time(unsigned shard, lawn_time_t time) const
{
    const Node *const node = routes_.node_of(shard);
    return node && node->clock.is_known() ? node->clock.store(time) : 0;
}

lawn_time_t LinkImpl::send_time(unsigned shard, int64_t store_us) const
{
    const Node *const node = routes_.node_of(shard);
    return node && node->clock.is_known() ? node->clock.local(store_us)
                                          : LAWN_TIME_INFINITY;
}

std::unique_ptr<Channel>
LinkImpl::open_channel(unsigned shard, std::vector<std::string> subscribe,
                       Channel::Events events)
{
    return channels_.open(shard, std::move(subscribe), std::move(events));
}

void LinkImpl::when_open(const void *owner, std::function<void()> fn)
{
    namespace_.when_open(owner, std::move(fn));
}

void LinkImpl::forget(const void *owner)
{
    namespace_.forget(owner);
}

const char *LinkImpl::error() const
{
    error_ = namespace_.error().empty() ? routes_.error(namespace_.is_open())
                                        : namespace_.error();
    return error_.empty() ? nullptr : error_.c_str();
}

Request *LinkImpl::add(Call call, Done done)
{
    const uint64_t timeout_us =
        call.timeout_us != 0 ? call.timeout_us : setup_.request_timeout_us;
    return pending_.add(std::move(call), std::move(done), timeout_us,
                        &opening_);
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
        pending_.withdraw(request);
        throw;
    }
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
        pending_.withdraw(request);
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
        head.push_back(std::to_string(namespace_.shards()));
    }
    return head;
}

void LinkImpl::route(Request *request)
{
    if (!namespace_.is_open()) {
        insert_in_order(request, &opening_);
        return;
    }
    build(request);
    if (held_back_.queue_behind(request)) {
        return;
    }
    Node *const node = request->is_asking ? routes_.node_at(request->asked_at)
                                          : routes_.node_of(request->shard);
    if (!node) {
        held_back_.hold(request, "no server has the shard now");
        routes_.refresh_soon();
    } else if (!held_back_.may_go_to(*request, node)) {
        held_back_.hold(request, "");
    } else {
        node->session(request->call.durability).add(request);
    }
}

// Without memory, a little later.
void LinkImpl::try_to_route(Request *request)
{
    if (!attempt([&] { route(request); })) {
        held_back_.hold(request, no_memory);
    }
}

void LinkImpl::finish(Request *request, lawn_status_t status, const char *error,
                      const redisReply *reply)
{
    pending_.finish(request, status, error, reply);
}

void LinkImpl::fail_later(Request *request, lawn_status_t status,
                          std::string_view error)
{
    pending_.fail_later(request, status, error);
}

void LinkImpl::on_end(const Request &request)
{
    held_back_.note_end(request);
}

// Its replicas, or the disk, do not matter for the order.
void LinkImpl::on_done(const Request &request)
{
    Requests overtaken;
    held_back_.take_overtaken(request, &overtaken);
    while (!overtaken.empty()) {
        Request *const earlier = &overtaken.front();
        std::string error;
        attempt([&] {
            error = "not done: a later request about the same timer was done, "
                    "while the store refused this one";
            error += earlier->error.empty() ? "" : ": ";
            error += earlier->error;
        });
        finish(earlier, LAWN_ERR_IO, error.c_str(), nullptr);
    }
    held_back_.note_end(request);
}

void LinkImpl::on_lost(Request *request)
{
    if (request->done && request->call.reads_only) {
        held_back_.hold(request, "the connection was lost");
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
        held_back_.hold(request, no_memory);
    }
}

void LinkImpl::refuse(Request *request, const RequestSession &session,
                      std::string_view error)
{
    const bool is_redirected =
        begins_with(error, "MOVED ") || begins_with(error, "ASK ");
    if (!request->done) {
        finish(request, LAWN_OK, "", nullptr);
    } else if (routes_.is_cluster() && is_redirected) {
        redirect(request, error, session.endpoint());
    } else if (begins_with(error, "LAWN REOPEN")) {
        namespace_.open();
        held_back_.hold(request, error);
    } else if (is_passing(error)) {
        held_back_.hold(request, error);
        if (begins_with(error, "CLUSTERDOWN")) {
            routes_.refresh_soon();
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
        held_back_.hold(request, error);
    } else if (!read_redirection(error, from, &slot, &endpoint)) {
        finish(request, LAWN_ERR_CORRUPT, line_of(error).c_str(), nullptr);
    } else if (begins_with(error, "ASK ")) {
        request->is_asking = true;
        request->asked_at = std::move(endpoint);
        held_back_.hold(request, "");
    } else {
        // Those sent after it will come back, too, and then go in their order.
        // It is held first, so that what is queued behind it does not go to the
        // other server before it.
        held_back_.hold(request, "");
        routes_.on_moved(error, from);
    }
}

void LinkImpl::on_session_failed(Node &node, RequestSession &session,
                                 const Failure &failure, bool is_main)
{
    if (is_main && !attempt([&] { node.error = failure.why; })) {
        node.error = no_memory;
    }
    if (failure.status != LAWN_ERR_IO || params_.fail_fast) {
        pending_.finish_all(&session.queued, failure);
        if (!namespace_.is_open()) {
            pending_.finish_all(&opening_, failure);
        }
    }
    held_back_.take_back(&session, failure.why);
    routes_.refresh_soon();
}

void LinkImpl::on_main_ready(Node &node)
{
    node.error.clear();
    routes_.on_ready(node);
    namespace_.open();
}

void LinkImpl::on_shards(unsigned shards)
{
    held_back_.set_shards(shards);
    routes_.set_shards(shards);
}

void LinkImpl::on_open()
{
    Requests waiting;
    take_requests(&opening_, &waiting);
    while (!waiting.empty()) {
        try_to_route(&waiting.front());
    }
}

void LinkImpl::on_refused(const Failure &failure)
{
    if (failure.status != LAWN_ERR_IO || params_.fail_fast) {
        pending_.finish_all(&opening_, failure);
    }
}

void LinkImpl::on_slots(bool is_all)
{
    if (is_all && !namespace_.is_open()) {
        namespace_.clear_error();
    }
    routes_.for_each_node([this](Node &node) { reroute_queued(node); });
    channels_.check_endpoints();
    if (is_all) {
        namespace_.open();
    }
}

// What was not sent goes to the node that has its slot now.
void LinkImpl::reroute_queued(Node &node)
{
    node.for_each_session([this, &node](RequestSession &session) {
        Requests queued;
        take_requests(&session.queued, &queued);
        while (!queued.empty()) {
            Request *const request = &queued.front();
            if (request->is_asking ||
                routes_.node_of(request->shard) == &node) {
                move_request(request, &session.queued);
            } else {
                try_to_route(request);
            }
        }
    });
}

} // namespace lawn::durable
