// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The link itself (link.h). A request waits in `opening_` until the namespace
// is open, then in a session of the node that has its shard. What the store has
// certainly not done is held back and sent again, until its deadline.

#ifndef LAWN_SRC_DURABLE_LINK_IMPL_H
#define LAWN_SRC_DURABLE_LINK_IMPL_H

#include "src/channel.h"
#include "src/held_back.h"
#include "src/namespace.h"
#include "src/pending.h"
#include "src/routes.h"

namespace lawn::durable
{

class LinkImpl final : public Link,
                       private Node::Owner,
                       private Routes::Owner,
                       private Namespace::Owner,
                       private Pending::Owner
{
public:
    // The loop and the parameters outlive it.
    LinkImpl(Loop &loop, const lawn_durable_params_t &params,
             const std::string &name_space, Url url);
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
    const char *error() const override; // also for `pending_`
    std::string warning() const override
    {
        return setup_.warnings.text();
    }
    std::string losses() const override
    {
        return setup_.warnings.losses();
    }
    void watch() override
    {
        namespace_.watch();
    }

private:
    // Node::Owner
    void on_main_ready(Node &node) override;
    void on_session_failed(Node &node, RequestSession &session,
                           const Failure &failure, bool is_main) override;
    Args head_of(const Request &request) const override;
    void on_done(const Request &request) override;
    void on_error(Request *request, const RequestSession &session,
                  std::string_view error) override;
    void on_lost(Request *request) override;
    void finish(Request *request, lawn_status_t status, const char *error,
                const redisReply *reply) override;
    void fail_later(Request *request, lawn_status_t status,
                    std::string_view error) override;
    // Routes::Owner
    void on_slots(bool is_all) override;
    // Namespace::Owner
    void on_shards(unsigned shards) override;
    void on_open() override;
    void on_refused(const Failure &failure) override;
    // Pending::Owner
    void on_end(const Request &request) override;

    Request *add(Call call, Done done);
    void build(Request *request) const;
    void route(Request *request);
    void try_to_route(Request *request);
    void reroute_queued(Node &node);
    void refuse(Request *request, const RequestSession &session,
                std::string_view error);
    void redirect(Request *request, std::string_view error,
                  const Endpoint &from);

    const lawn_durable_params_t &params_;
    Setup setup_;
    const Keys keys_;
    Pending pending_;
    Requests opening_; // the namespace is not open
    Routes routes_;
    HeldBack held_back_;
    Namespace namespace_;
    Channels channels_;
    bool is_ending_ = false;
    mutable std::string error_;
};

} // namespace lawn::durable

#endif
