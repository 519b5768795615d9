// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One server of the store: a session for requests, one for each durability that
// is more than async, and an estimate of its clock.

#ifndef LAWN_SRC_DURABLE_NODE_H
#define LAWN_SRC_DURABLE_NODE_H

#include "src/keys.h"
#include "src/link.h"
#include "src/session.h"
#include "src/store_clock.h"

#include <list>
#include <map>

namespace lawn::durable
{

struct Request;
using Requests = std::list<Request>;

// A request is in one of the lists of the link and its sessions until it is
// answered. One that has timed out while the store works on it stays there,
// without `done`, until its reply comes or the session is lost.
struct Request {
    Request(Loop &loop, Call what, Done whom)
        : call(std::move(what)), done(std::move(whom)), timer(loop, nullptr)
    {
    }

    Call call;
    std::string wire; // the arguments; made when the shard is known
    size_t words = 0; // of them
    Done done;
    Timer timer; // of the deadline, or of its failure
    lawn_time_t deadline = 0;
    lawn_time_t sent = 0;
    uint64_t number = 0;   // requests of a link are numbered as they come
    uint64_t pause_us = 0; // the last one before it was sent again
    lawn_status_t failure = LAWN_OK; // to answer with when the timer runs out
    std::string error; // the last reason why it was not done; for messages
    unsigned shard = 0;
    bool has_shard = false;
    bool is_in_flight = false; // a session has it, and will get a reply
    bool is_asking = false;    // ASK: to a node that is about to get the slot
    Endpoint asked_at;         // that node
    unsigned redirections = 0;
    ReplyPtr reply; // kept while the replicas, or the disk, are waited for
    Requests *list = nullptr;
    Requests::iterator self;
};

void move_request(Request *request, Requests *to);
// Before those with higher numbers. The list must be in order.
void insert_in_order(Request *request, Requests *to);
// All of them. Answering them one by one may bring new ones into `from`.
void take_requests(Requests *from, Requests *to);

class Node;

// Sends the requests of one durability, those about one timer in their order.
//
// Calls that may be joined are sent at the end of a poll, as one, and those
// that come while it is under way form the next one. So an idle store answers
// at once, and a busy one gets more work with each call. For that, calls that
// were joined from several are a little apart.
//
// Replicas are waited for with WAIT, and the disk with WAITAOF, or, if
// appendfsync is `always`, by asking whether it still is. They count for all
// requests sent before them on the connection. So those that come while a WAIT
// is under way wait for the next.
class RequestSession final : public Session
{
    using Batch = std::vector<Request *>; // sent as one call

public:
    RequestSession(Node &node, int durability);

    // Sends it now, or as soon as it can.
    void add(Request *request);
    bool waits() const; // for replicas or the disk, behind each batch
    // Connects again if this says that the server is not what it was when it
    // was greeted: it has no functions, or is a replica.
    void look_at_refusal(std::string_view error);

    Requests queued;
    Requests sent;
    Requests unsynced; // answered, but not yet by the replicas or the disk

private:
    bool find(Endpoint *endpoint_p) override;
    void greet() override;
    void on_ready() override;
    void on_failed(const Failure &failure) override;
    void on_time(lawn_time_t asked, int64_t store_us) override;

    void send_soon();
    void transmit_queued();
    Batch take_batch();
    void transmit(const Batch &batch);
    void on_replies(const Batch &batch, ReplyPtr reply);
    void on_answer(Request *request, ReplyPtr reply);
    void on_refused(Request *request, std::string_view error);
    bool is_supported() const;
    void end_batch();
    void send_wait();
    // In durability.cc. `ends_batch`: the answer is for what is not answered.
    void ask_settings(bool ends_batch);
    void on_settings(const redisReply *reply);
    void on_asked(const redisReply *reply);
    void on_waited(const redisReply *reply);
    void end_unsynced(lawn_status_t status, const std::string &error);
    // In safety.cc.
    void ask_safety(const Words &question,
                    void (RequestSession::*told)(const redisReply *reply));
    void ask_safety();
    void on_config(const redisReply *reply);
    void on_info(const redisReply *reply);
    void judge_safety(std::string_view policy, bool keeps);
    bool may_transmit() const;
    void restart_when_idle();
    void restart_soon();

    Node &node_;
    int durability_;
    bool syncs_always_ = false;    // appendfsync always, also in a rewrite
    bool has_append_file_ = false; // appendonly yes
    bool has_waitaof_ = false;
    bool is_waiting_ = false;    // it is sent and not answered
    std::string mark_error_;     // of the write before WAIT; "" if it was done
    unsigned joined_ = 0;        // calls that others join, not answered
    lawn_time_t not_before_ = 0; // the next of them
    Timer send_;                 // what is queued, at the end of this poll
    Timer batch_;   // to send WAIT behind what is sent in this poll
    Timer restart_; // after the replies that are under way
    Timer watch_;   // when to ask whether the server is safe
};

class Node
{
public:
    // Decides what becomes of requests. Those functions that are told of one
    // have their way without memory, too.
    class Owner
    {
    public:
        virtual void on_main_ready(Node &node) = 0;
        virtual void on_session_failed(Node &node, RequestSession &session,
                                       const Failure &failure,
                                       bool is_main) = 0;
        // What is sent before the arguments of a request.
        virtual Args head_of(const Request &request) const = 0;
        // The store has done it, but maybe not yet its replicas, or the disk.
        virtual void on_done(const Request &request) = 0;
        // The store has not done it.
        virtual void on_error(Request *request, const RequestSession &session,
                              std::string_view error) = 0;
        // Nobody knows whether the store has done it.
        virtual void on_lost(Request *request) = 0;
        // As in pending.h.
        virtual void finish(Request *request, lawn_status_t status,
                            const char *error, const redisReply *reply) = 0;
        virtual void fail_later(Request *request, lawn_status_t status,
                                std::string_view error) = 0;

    protected:
        ~Owner() = default;
    };

    Node(Setup &for_sessions, const Keys &of_namespace, Owner &of_requests,
         Endpoint where);

    RequestSession &session(int durability);
    RequestSession &main()
    {
        return main_;
    }
    template <typename Each> void for_each_session(const Each &each)
    {
        each(main_);
        for (const auto &i : others_) {
            each(*i.second);
        }
    }
    bool is_idle(); // nothing is queued or sent

    Setup &setup;
    const Keys &keys;
    Owner &owner;
    const Endpoint endpoint;
    StoreClock clock;
    std::string error; // why the main session is not ready; "" if it is

private:
    RequestSession main_;
    std::map<int, std::unique_ptr<RequestSession>> others_;
};

} // namespace lawn::durable

#endif
