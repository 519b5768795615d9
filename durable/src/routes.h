// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which node has a shard. Without a Cluster, one node has all of them. In a
// Cluster, the node of a shard is that of its slot; redirections and lost
// sessions make the routes ask for the slots again.

#ifndef LAWN_SRC_DURABLE_ROUTES_H
#define LAWN_SRC_DURABLE_ROUTES_H

#include "src/cluster.h"
#include "src/keys.h"
#include "src/node.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lawn::durable
{

class Routes
{
public:
    class Owner
    {
    public:
        // Shards may have moved. `is_all`: a server has told all slots.
        virtual void on_slots(bool is_all) = 0;

    protected:
        ~Owner() = default;
    };

    Routes(Setup &setup, const Keys &keys, Node::Owner &node_owner,
           Owner &owner);

    // Connects to the node of the URL. With sentinels, its session finds the
    // server.
    void start();
    // The main session of the node is ready.
    void on_ready(Node &node);
    void set_shards(unsigned shards);

    bool is_cluster() const
    {
        return is_cluster_;
    }
    // nullptr: no server is known to have the shard.
    Node *node_of(unsigned shard) const;
    // Makes the node if there is none.
    Node *node_at(const Endpoint &endpoint);
    bool endpoint_of(unsigned shard, Endpoint *endpoint_p) const;
    // `each` may make nodes.
    template <typename Each> void for_each_node(const Each &each) const
    {
        for (size_t i = 0; i < nodes_.size(); ++i) {
            each(*nodes_[i]);
        }
    }

    // After a redirection by the server at `from`.
    void on_moved(std::string_view error, const Endpoint &from);
    // Asks a Cluster for its slots, after a pause; without one, does nothing.
    void refresh_soon();

    // Why the slots, or a server, cannot be reached; "" if they can. Before the
    // namespace is open, each server counts.
    std::string error(bool is_open) const;

private:
    void refresh();
    void on_slots(const redisReply *reply, const Endpoint &from);
    void announce(bool is_all);
    bool has_slots(const Node &node) const;
    void sweep();

    Setup &setup_;
    const Keys &keys_;
    Node::Owner &node_owner_;
    Owner &owner_;
    std::vector<std::unique_ptr<Node>> nodes_; // the first is that of the URL
    std::vector<Node *> slots_;                // of a Cluster
    std::vector<unsigned> shard_slots_;
    bool is_cluster_ = false;
    bool is_refreshing_ = false;
    std::string error_; // of the slots
    Timer refresh_timer_;
    Timer sweep_timer_;
};

} // namespace lawn::durable

#endif
