// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The greeting is sent at once, and its replies are checked one by one; the
// first that is wrong ends the attempt. Then the functions are loaded if the
// server has none, and their version is checked again: two clients may load
// them at the same time.

#include "src/session.h"

#include "src/guard.h"
#include "src/script.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr uint64_t usec_per_sec = 1000000;
constexpr uint64_t first_pause_us = 20000;
constexpr uint64_t longest_pause_us = 2 * usec_per_sec;
constexpr uint64_t beat_us = 5 * usec_per_sec;
constexpr uint64_t stable_us = usec_per_sec; // then the pauses begin anew

const char *const beat[] = {"TIME", "PING"};

} // namespace

Session::Session(Setup &setup, Kind kind)
    : setup_(setup), kind_(kind), socket_(*setup.loop, *this),
      timer_(*setup.loop, [this] { on_timer(); })
{
}

std::string Session::place() const
{
    return endpoint_.host.empty() ? "the store"
                                  : "the store at " + endpoint_.text();
}

void Session::start()
{
    if (phase_ == Phase::idle) {
        phase_ = Phase::pausing;
        timer_.start_after(0);
    }
}

void Session::restart(std::string_view why)
{
    if (phase_ != Phase::idle && phase_ != Phase::pausing) {
        fail(LAWN_ERR_IO, why);
    }
}

void Session::connect()
{
    sentinels_asked_ = 0;
    if (!setup_.url.master.empty()) {
        ask_sentinel();
        return;
    }
    phase_ = Phase::connecting;
    if (!find(&endpoint_)) {
        fail(LAWN_ERR_IO, "no server has the shard now");
        return;
    }
    open_socket(setup_.connect_timeout_us);
}

// One address that is silent must not use up the time of the others.
void Session::open_socket(uint64_t timeout_us)
{
    socket_.open(endpoint_);
    address_timeout_us_ = timeout_us / socket_.addresses() + 1;
    timer_.start_after(address_timeout_us_);
}

void Session::ask_sentinel()
{
    const std::vector<Endpoint> &sentinels = setup_.url.endpoints;
    phase_ = Phase::asking;
    sentinel_ = setup_.sentinel;
    endpoint_ = sentinels[sentinel_ % sentinels.size()];
    open_socket(setup_.connect_timeout_us / sentinels.size()); // as there
}

void Session::next_sentinel(std::string_view why)
{
    Failure failure = {LAWN_ERR_IO, no_memory};
    attempt([&] {
        failure.why = "the sentinel at " + endpoint_.text() + ": ";
        failure.why += why;
    });
    socket_.close();
    ++setup_.sentinel;
    if (++sentinels_asked_ < setup_.url.endpoints.size()) {
        ask_sentinel();
    } else {
        pause(failure);
    }
}

void Session::on_sentinel(const redisReply *reply)
{
    int64_t port = 0;
    if (is_error(reply)) {
        next_sentinel(line_of(text_of(reply)));
    } else if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
               text_of(reply->element[0]).empty() ||
               !number_of(reply->element[1], &port) || port <= 0 ||
               port > UINT16_MAX) {
        next_sentinel("it knows no master " + setup_.url.master);
    } else {
        endpoint_ = {std::string(text_of(reply->element[0])),
                     static_cast<unsigned>(port)};
        phase_ = Phase::connecting;
        open_socket(setup_.connect_timeout_us);
    }
}

void Session::on_connected()
{
    if (phase_ != Phase::asking) {
        begin_greeting();
        return;
    }
    append_command(&socket_.out(),
                   {"SENTINEL", "get-master-addr-by-name", setup_.url.master});
    socket_.send();
}

void Session::begin_greeting()
{
    phase_ = Phase::greeting;
    questions_ = 0;
    is_cluster_ = false;
    is_replica_ = false;
    is_subscribed_ = false;
    timer_.start_after(setup_.connect_timeout_us);
    const Url &url = setup_.url;
    const Handler check = [this](ReplyPtr reply, lawn_time_t) {
        if (is_error(reply.get())) {
            fail(status_of_error(text_of(reply.get())),
                 line_of(text_of(reply.get())));
        }
    };
    if (!url.user.empty()) {
        ask({"AUTH", url.user, url.password}, check);
    } else if (!url.password.empty()) {
        ask({"AUTH", url.password}, check);
    }
    if (url.db != 0) {
        ask({"SELECT", std::to_string(url.db)}, check);
    }
    ask({"HELLO"},
        [this](ReplyPtr reply, lawn_time_t) { on_hello(reply.get()); });
}

// HELLO says what INFO and ROLE would, and any user may ask it. A server that
// does not know it, as it was renamed, is taken for what the URL says: a
// master, and no part of a Cluster.
void Session::on_hello(const redisReply *reply)
{
    const std::string_view error = is_error(reply) ? text_of(reply) : "";
    if (begins_with(error, "ERR unknown command")) {
        setup_.warnings.set(Warnings::Matter::server, place(),
                            "it does not know HELLO: that it is a replica, or "
                            "part of a Cluster, is not noticed");
        go_on_greeting();
        return;
    } else if (!error.empty()) {
        // The rest of it is advice for this command.
        fail(status_of_error(error), begins_with(error, "NOAUTH")
                                         ? "NOAUTH Authentication required."
                                         : line_of(error));
        return;
    }
    const std::string_view role = value_of(reply, "role");
    is_cluster_ = value_of(reply, "mode") == "cluster";
    is_replica_ = role == "replica";
    if (role != "master" && !is_replica_) {
        fail(LAWN_ERR_CORRUPT, "it is no Redis server that keeps data");
    } else if (is_replica_ && !is_cluster_) {
        fail(LAWN_ERR_IO, "it is a replica, not a master");
    } else {
        setup_.warnings.set(Warnings::Matter::server, place(), "");
        go_on_greeting();
    }
}

void Session::go_on_greeting()
{
    if (!is_replica_ && kind_ == Kind::functions) {
        check_functions(Loaded::not_yet);
    }
    greet();
}

void Session::check_functions(Loaded loaded)
{
    ask({"FCALL_RO", "lawn_version", "0"},
        [this, loaded](ReplyPtr reply, lawn_time_t) {
            on_version(reply.get(), loaded);
        });
}

void Session::on_version(const redisReply *reply, Loaded loaded)
{
    int64_t version = 0;
    const std::string_view text = text_of(reply);
    const bool is_missing = is_error(reply) && text == "ERR Function not found";
    if (is_missing && loaded == Loaded::not_yet) {
        ask({"FUNCTION", "LOAD", script()},
            [this](ReplyPtr answer, lawn_time_t) {
                const std::string_view error = text_of(answer.get());
                if (!is_error(answer.get())) {
                    check_functions(Loaded::now);
                } else if (error.find("already exists") != error.npos) {
                    check_functions(Loaded::not_as_it_has_one);
                } else {
                    fail(status_of_error(error), line_of(error));
                }
            });
    } else if (is_missing && loaded == Loaded::now) {
        fail(LAWN_ERR_IO, "the functions that it was given are gone");
    } else if (is_missing) {
        fail(LAWN_ERR_UNSUPPORTED,
             "it has a function library 'lawn' that is not ours");
    } else if (is_error(reply)) {
        fail(status_of_error(text), line_of(text));
    } else if (!number_of(reply, &version) || version != script_version) {
        fail(LAWN_ERR_UNSUPPORTED,
             "its function library is version " +
                 (version > 0 ? std::to_string(version) : "unknown") +
                 ", this program needs " + std::to_string(script_version));
    }
}

void Session::subscribe(const Words &channels)
{
    for (const std::string &channel : channels) {
        ask({"SUBSCRIBE", channel}, [this](ReplyPtr reply, lawn_time_t) {
            if (is_error(reply.get())) {
                fail(status_of_error(text_of(reply.get())),
                     line_of(text_of(reply.get())));
            }
        });
        is_subscribed_ = true;
    }
}

void Session::ask(const Words &words, Handler handler)
{
    ++questions_;
    append_command(&socket_.out(), words);
    socket_.send();
    expect(
        [this, asked = std::move(handler)](ReplyPtr reply, lawn_time_t sent) {
            if (!reply) {
                return;
            }
            asked(std::move(reply), sent);
            if (phase_ == Phase::greeting && --questions_ == 0) {
                on_greeted();
            }
        },
        setup_.connect_timeout_us);
}

void Session::on_greeted()
{
    phase_ = Phase::ready;
    ready_since_ = loop().now();
    timer_.start_after(beat_us);
    on_ready();
}

void Session::expect(Handler handler, uint64_t timeout_us)
{
    const lawn_time_t now = loop().now();
    const lawn_time_t limit =
        now + lawn_time_from_usec(static_cast<double>(timeout_us));
    if (is_ready() && expected_.empty()) {
        timer_.start_at(limit);
    }
    is_idle_ = false;
    expected_.push_back({std::move(handler), now, limit});
}

void Session::send(std::string_view wire, uint64_t timeout_us, Handler handler)
{
    // Without memory for one of these, nothing is sent: the replies must go to
    // those who have asked.
    socket_.out().reserve(socket_.out().size() + wire.size());
    socket_.send();
    expect(std::move(handler), timeout_us);
    socket_.out().append(wire);
}

void Session::send(const Words &words, uint64_t timeout_us, Handler handler)
{
    std::string wire;
    append_command(&wire, words);
    send(wire, timeout_us, std::move(handler));
}

void Session::on_reply(ReplyPtr reply)
{
    if (phase_ == Phase::asking) {
        socket_.close();
        on_sentinel(reply.get());
        return;
    }
    if (is_subscribed_ && reply->type == REDIS_REPLY_ARRAY &&
        reply->elements == 3 && text_of(reply->element[0]) == "message") {
        on_message(*reply);
        return;
    }
    if (expected_.empty()) {
        fail(LAWN_ERR_CORRUPT, "a reply to nothing that was asked");
        return;
    }
    const Expected expected = std::move(expected_.front());
    expected_.pop_front();
    expected.handler(std::move(reply), expected.sent);
}

// One timer looks after all limits: a reply that is late ends the session, so
// that what waits behind it is sent on another connection. A session that is
// found idle sends a beat, which finds a server that has gone.
void Session::on_timer()
{
    switch (phase_) {
    case Phase::idle:
        break;
    case Phase::pausing:
        connect();
        break;
    case Phase::asking:
    case Phase::connecting:
    case Phase::greeting:
        if (socket_.open_next()) {
            timer_.start_after(address_timeout_us_);
        } else if (phase_ == Phase::asking) {
            next_sentinel("it does not answer");
        } else {
            fail(LAWN_ERR_IO, "it does not answer");
        }
        break;
    case Phase::ready:
        if (!expected_.empty() && expected_.front().limit <= loop().now()) {
            fail(LAWN_ERR_IO, "it does not answer");
            break;
        }
        if (expected_.empty() && is_idle_) {
            send_beat();
        } else if (expected_.empty()) {
            is_idle_ = true;
            timer_.start_after(beat_us);
        } else {
            timer_.start_at(expected_.front().limit);
        }
        break;
    }
}

void Session::send_beat()
{
    send(Words{beat[is_subscribed_]}, setup_.request_timeout_us,
         [this](ReplyPtr reply, lawn_time_t sent) {
             note_time(reply.get(), sent);
         });
}

void Session::note_time(const redisReply *reply, lawn_time_t sent)
{
    constexpr int64_t max_sec = int64_t{1} << 33; // doubles are exact
    int64_t sec = 0;
    int64_t usec = 0;
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        number_of(reply->element[0], &sec) && sec >= 0 && sec < max_sec &&
        number_of(reply->element[1], &usec) && usec >= 0 && usec < 1000000) {
        on_time(sent, sec * 1000000 + usec);
    }
}

void Session::on_closed(lawn_status_t status, std::string_view why)
{
    if (phase_ == Phase::asking) {
        next_sentinel(why);
    } else {
        fail(status, why);
    }
}

void Session::fail(lawn_status_t status, std::string_view why)
{
    if (phase_ == Phase::idle || phase_ == Phase::pausing) {
        return;
    }
    Failure failure = {status, no_memory};
    attempt([&] {
        failure.why = place() + ": ";
        failure.why += why;
    });
    pause(failure);
}

void Session::pause(const Failure &failure)
{
    const bool was_stable =
        is_ready() &&
        lawn_time_to_usec(loop().now() - ready_since_) > stable_us;
    if (!setup_.url.master.empty() &&
        (phase_ == Phase::connecting || phase_ == Phase::greeting)) {
        // It may name a dead master since it hears of nobody. Other sessions
        // may have been told the same, so this one does not count from where
        // they are.
        setup_.sentinel = sentinel_ + 1;
    }
    phase_ = Phase::pausing;
    socket_.close();
    pause_us_ = was_stable || pause_us_ == 0
                    ? first_pause_us
                    : std::min(2 * pause_us_, longest_pause_us);
    // With jitter, so that not all clients come back together.
    timer_.start_after(pause_us_ / 2 + setup_.random() % (pause_us_ / 2));
    // Nothing is sent, and so nothing expected, in this phase.
    while (!expected_.empty()) {
        const Expected lost = std::move(expected_.front());
        expected_.pop_front();
        attempt([&] { lost.handler(nullptr, lost.sent); });
    }
    attempt([&] { on_failed(failure); });
}

} // namespace lawn::durable
