// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection that is kept up: it finds the server, connects, greets
// (password, database, role, functions), and does so again after growing pauses
// when it is lost. A server that does not answer in time counts as lost.

#ifndef LAWN_SRC_DURABLE_SESSION_H
#define LAWN_SRC_DURABLE_SESSION_H

#include "src/reply.h"
#include "src/socket.h"
#include "src/warnings.h"

#include <deque>
#include <random>

namespace lawn::durable
{

using Words = std::vector<std::string>;

// What all sessions of a link share.
struct Setup {
    Loop *loop;
    Url url;
    uint64_t connect_timeout_us;
    uint64_t request_timeout_us;
    bool requires_safe_store = false;
    size_t sentinel = 0; // the one to ask first
    std::minstd_rand random;
    Warnings warnings;
};

// Why a session has failed. `status` is IO if it may work the next time, as far
// as one can tell, and something else if the server refuses this client.
struct Failure {
    lawn_status_t status;
    std::string why;
};

class Session : private Socket::Owner
{
public:
    // Is called with the reply, or with none when the session is lost.
    using Handler = std::function<void(ReplyPtr reply, lawn_time_t sent)>;

    enum class Kind {
        plain,    // no functions are needed
        functions // loads the functions, unless the server is a replica
    };

    Session(Setup &setup, Kind kind);
    virtual ~Session() = default;

    void start();
    void restart(std::string_view why); // loses the connection, if any
    bool is_ready() const
    {
        return phase_ == Phase::ready;
    }
    // Of the connection that is made, or was made last.
    const Endpoint &endpoint() const
    {
        return endpoint_;
    }
    bool is_cluster() const
    {
        return is_cluster_;
    }

    // Sends bytes that ask for one reply. Only when it is ready.
    void send(std::string_view wire, uint64_t timeout_us, Handler handler);
    void send(const Words &words, uint64_t timeout_us, Handler handler);
    size_t unanswered() const
    {
        return expected_.size();
    }

protected:
    // Where to connect, unless sentinels know. False: it is not known now.
    virtual bool find(Endpoint *endpoint_p) = 0;
    // What to ask in addition before the session is ready. Each handler returns
    // false after a call of fail(), or if it has no objection.
    virtual void greet()
    {
    }
    virtual void on_ready() = 0;
    // After the handlers of all that was sent were called. Neither these nor it
    // are called again if they throw.
    virtual void on_failed(const Failure &failure) = 0;
    virtual void on_message(const redisReply &)
    {
    }
    // The store's clock, in the greeting and about every five seconds.
    virtual void on_time(lawn_time_t, int64_t)
    {
    }

    // For greet(): the session is not ready before all is answered.
    void ask(const Words &words, Handler handler);
    void fail(lawn_status_t status, std::string_view why);
    void subscribe(const Words &channels);
    // Tells on_time() of a reply to TIME.
    void note_time(const redisReply *reply, lawn_time_t sent);
    Loop &loop() const
    {
        return *setup_.loop;
    }
    std::string place() const; // for people

    Setup &setup_;

private:
    enum class Phase { idle, asking, connecting, greeting, ready, pausing };
    enum class Loaded { not_yet, now, not_as_it_has_one };

    struct Expected {
        Handler handler;
        lawn_time_t sent;
        lawn_time_t limit;
    };

    void on_connected() override;
    void on_reply(ReplyPtr reply) override;
    void on_closed(lawn_status_t status, std::string_view why) override;

    void connect();
    void open_socket(uint64_t timeout_us);
    void ask_sentinel();
    void on_sentinel(const redisReply *reply);
    void next_sentinel(std::string_view why);
    void begin_greeting();
    void on_hello(const redisReply *reply);
    void go_on_greeting();
    void check_functions(Loaded loaded);
    void on_version(const redisReply *reply, Loaded loaded);
    void on_greeted();
    void expect(Handler handler, uint64_t timeout_us);
    void on_timer();
    void send_beat();
    void pause(const Failure &failure);

    Kind kind_;
    Phase phase_ = Phase::idle;
    Endpoint endpoint_;
    Socket socket_;
    Timer timer_; // of the phase: the limit, the end of a pause, the next beat
    std::deque<Expected> expected_;
    size_t questions_ = 0; // unanswered ones of the greeting
    size_t sentinel_ = 0;  // the one that was asked last
    size_t sentinels_asked_ = 0;
    uint64_t pause_us_ = 0;
    uint64_t address_timeout_us_ = 0;
    lawn_time_t ready_since_ = 0;
    bool is_cluster_ = false;
    bool is_replica_ = false;
    bool is_subscribed_ = false;
    bool is_idle_ = false; // for a beat at least
};

} // namespace lawn::durable

#endif
