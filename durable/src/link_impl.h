// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The link itself (link.h). Without a Cluster, one node has all shards. In a
// Cluster, the node of a shard is that of its slot; redirections and lost
// sessions make the link ask for the slots again.
//
// A request waits in `opening_` until the namespace is open, then in a session
// of its node. What the store has certainly not done is held back and sent
// again after a pause, until its deadline (held.cc).

#ifndef LAWN_SRC_DURABLE_LINK_IMPL_H
#define LAWN_SRC_DURABLE_LINK_IMPL_H

#include "src/channel.h"
#include "src/cluster.h"
#include "src/handle.h"
#include "src/node.h"

#include <set>

namespace lawn::durable
{

// Requests of a shard that were refused, and those that came later, in their
// order.
struct Held {
    Held(Loop &loop, unsigned of_shard, bool is_waiting,
         const std::function<void(Held *)> &release)
        : shard(of_shard), waits(is_waiting),
          again(loop, [this, release] { release(this); })
    {
    }

    const unsigned shard;
    const bool waits; // for replicas or the disk
    Requests requests;
    Request *first = nullptr; // is sent, and the others wait for its answer
    bool is_well = true;      // the store does not refuse requests
    Timer again;              // when the first, or all, are sent
    // Where requests went last; what is under way is there. Not to be followed:
    // a node with nothing under way may be gone.
    const Node *node = nullptr;
};

// Requests of different durabilities have no order. Those that wait for more
// than the server are apart: one that was refused may have to stay behind a
// WAIT until that runs out of time, and must not keep the others waiting.
struct HeldOfShard {
    HeldOfShard(Loop &loop, unsigned shard,
                const std::function<void(Held *)> &release)
        : plain(loop, shard, false, release),
          waiting(loop, shard, true, release)
    {
    }

    Held plain;
    Held waiting;
};

class LinkImpl final : public Link
{
public:
    LinkImpl(lawn_durable &durable, Url url);
    ~LinkImpl() override;

    Loop &loop() const override;
    void call(Call call, Done done) override;
    void command(unsigned shard, const Args &command, Done done) override;
    size_t requests() const override;
    std::unique_ptr<Channel> open_channel(unsigned shard,
                                          std::vector<std::string> subscribe,
                                          Channel::Events events) override;
    void when_open(const void *owner, std::function<void()> fn) override;
    void forget(const void *owner) override;
    unsigned shards() const override;
    unsigned shard_of(std::string_view id) const override;
    bool is_cluster() const override;
    std::string key(unsigned shard, Key key) const override;
    std::string wake_channel(unsigned shard) const override;
    void note_time(unsigned shard, lawn_time_t sent, int64_t store_us) override;
    int64_t store_time(unsigned shard, lawn_time_t time) const override;
    lawn_time_t send_time(unsigned shard, int64_t store_us) const override;
    const char *error() const override;

    // For sessions.
    Setup &setup()
    {
        return setup_;
    }
    void on_main_ready(Node &node);
    void on_session_failed(Node &node, RequestSession &session,
                           const Failure &failure, bool is_main);
    // These have their way without memory, too.
    void on_error(Request *request, const RequestSession &session,
                  std::string_view error);
    void on_lost(Request *request);
    // Answers the requests that are held back although a later one about the
    // same timer, `done`, was done: to do them now would undo that.
    void end_overtaken(const Request &done);
    // Those that are held behind a request need wait no longer. Does nothing
    // the second time.
    void note_end(const Request &request);
    // What is sent before the arguments of a request.
    Args head_of(const Request &request) const;
    // Answers a request and ends it. One that the store still works on stays,
    // without `done`.
    void finish(Request *request, lawn_status_t status, const char *error,
                const redisReply *reply);
    // The same in the next poll.
    void fail_later(Request *request, lawn_status_t status,
                    std::string_view error);

    // For channels.
    bool endpoint_of(unsigned shard, Endpoint *endpoint_p) const;
    // After a redirection by the server at `from`.
    void on_moved(std::string_view error, const Endpoint &from);
    void remove(ChannelSession *channel);

private:
    Request *add(Call call, Done done);
    void withdraw(Request *request);
    void on_timer(Request *request);
    void route(Request *request);
    void try_to_route(Request *request);
    // In held.cc.
    void hold_back(Request *request, std::string_view why);
    void release_held(Held *held);
    Held &held_of(const Request &request);
    void for_each_session(const Held &held,
                          const std::function<void(RequestSession &)> &each);
    void take_queued(Held *held);
    bool is_under_way(const Held &held);
    void ask_again(RequestSession *session, const Failure &failure);
    void refuse(Request *request, const RequestSession &session,
                std::string_view error);
    void redirect(Request *request, std::string_view error,
                  const Endpoint &from);
    void fail_all(Requests *requests, const Failure &failure);
    void build(Request *request) const;

    Node *node_of(unsigned shard) const;
    Node *node_at(const Endpoint &endpoint);
    void open_space();
    void on_opened(const redisReply *reply);
    void prepare_all();
    void prepare(Node &node);
    void prepare_later();
    void run_when_open();
    void refresh_soon();
    void refresh();
    void on_slots(const redisReply *reply, const Endpoint &from);
    void follow_slots();
    void sweep();
    std::string head(unsigned shard) const;
    bool has_slots(const Node &node) const;

    lawn_durable &durable_;
    Setup setup_;
    std::vector<std::unique_ptr<Node>> nodes_; // the first is that of the URL
    std::vector<Node *> slots_;                // of a Cluster
    std::vector<unsigned> shard_slots_;
    std::vector<std::string> limits_; // arguments of lawn_prepare
    bool is_cluster_ = false;
    bool is_open_ = false;
    bool is_opening_ = false; // lawn_open is sent and not answered
    bool is_refreshing_ = false;
    bool is_ending_ = false;
    unsigned shards_ = 0;
    size_t unanswered_ = 0;
    std::string trouble_; // what keeps the namespace from being opened
    mutable std::string error_;
    Requests opening_;
    Requests failing_; // to be answered with their failures
    std::vector<std::unique_ptr<HeldOfShard>> held_; // by the shard
    uint64_t numbers_ = 0;                           // of requests
    using WhenOpen = std::list<std::pair<const void *, std::function<void()>>>;
    WhenOpen when_open_;
    using Channels =
        std::map<ChannelSession *, std::unique_ptr<ChannelSession>>;
    Channels channels_;
    Channels removed_;
    Timer open_timer_;
    Timer prepare_timer_;
    Timer refresh_timer_;
    Timer sweep_timer_;
    Timer when_open_timer_;
};

} // namespace lawn::durable

#endif
