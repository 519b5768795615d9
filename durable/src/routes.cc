// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which node has a shard (routes.h).

#include "src/routes.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr uint64_t refresh_pause_us = 100000;
constexpr uint64_t sweep_pause_us = 1000000;

} // namespace

Routes::Routes(Setup &setup, const Keys &keys, Node::Owner &node_owner,
               Owner &owner)
    : setup_(setup), keys_(keys), node_owner_(node_owner), owner_(owner),
      refresh_timer_(*setup.loop, [this] { refresh(); }),
      sweep_timer_(*setup.loop, [this] { sweep(); })
{
    node_at(setup_.url.endpoints[0]);
}

void Routes::start()
{
    nodes_[0]->main().start();
}

void Routes::on_ready(Node &node)
{
    if (&node == nodes_[0].get()) {
        is_cluster_ = node.main().is_cluster();
    }
    if (is_cluster_ && slots_.empty()) {
        refresh();
    }
}

void Routes::set_shards(unsigned shards)
{
    shard_slots_.clear();
    for (unsigned i = 0; i < shards; ++i) {
        shard_slots_.push_back(slot_of(keys_.tag(i)));
    }
}

Node *Routes::node_of(unsigned shard) const
{
    if (!is_cluster_) {
        return nodes_[0].get();
    }
    const unsigned slot = shard < shard_slots_.size()
                              ? shard_slots_[shard]
                              : slot_of(keys_.tag(shard));
    return slots_.empty() ? nullptr : slots_[slot];
}

Node *Routes::node_at(const Endpoint &endpoint)
{
    for (const std::unique_ptr<Node> &node : nodes_) {
        if (node->endpoint == endpoint) {
            return node.get();
        }
    }
    nodes_.push_back(
        std::make_unique<Node>(setup_, keys_, node_owner_, endpoint));
    return nodes_.back().get();
}

bool Routes::endpoint_of(unsigned shard, Endpoint *endpoint_p) const
{
    const Node *const node = node_of(shard);
    if (node) {
        *endpoint_p = node->endpoint;
    }
    return node != nullptr;
}

bool Routes::has_slots(const Node &node) const
{
    return std::find(slots_.begin(), slots_.end(), &node) != slots_.end();
}

void Routes::refresh_soon()
{
    if (is_cluster_ && !refresh_timer_.is_active()) {
        refresh_timer_.start_after(refresh_pause_us);
    }
}

// Asks any node that answers.
void Routes::refresh()
{
    if (is_refreshing_) {
        return;
    }
    const size_t first = setup_.random() % nodes_.size();
    for (size_t i = 0; i < nodes_.size(); ++i) {
        RequestSession &session = nodes_[(first + i) % nodes_.size()]->main();
        if (!session.is_ready()) {
            continue;
        }
        const Endpoint from = session.endpoint();
        session.send(Words{"CLUSTER", "SLOTS"}, setup_.request_timeout_us,
                     [this, from](ReplyPtr reply, lawn_time_t) {
                         is_refreshing_ = false;
                         if (reply) {
                             on_slots(reply.get(), from);
                         } else {
                             refresh_soon();
                         }
                     });
        is_refreshing_ = true;
        return;
    }
    refresh_soon();
}

void Routes::on_slots(const redisReply *reply, const Endpoint &from)
{
    std::vector<SlotRange> ranges;
    if (!read_slots(reply, from, &ranges) || ranges.empty()) {
        error_ = is_error(reply) ? line_of(text_of(reply))
                                 : "no server of the Cluster has slots";
        refresh_soon();
        return;
    }
    error_.clear();
    slots_.assign(cluster_slots, nullptr);
    for (const SlotRange &i : ranges) {
        Node *const node = node_at(i.master);
        node->main().start();
        std::fill(slots_.begin() + i.first, slots_.begin() + i.last + 1, node);
    }
    announce(true);
}

void Routes::on_moved(std::string_view error, const Endpoint &from)
{
    unsigned slot = 0;
    Endpoint endpoint;
    if (!is_cluster_ || slots_.empty() ||
        !read_redirection(error, from, &slot, &endpoint)) {
        return;
    }
    Node *const node = node_at(endpoint);
    if (slots_[slot] != node) {
        slots_[slot] = node;
        node->main().start();
        announce(false);
    }
    refresh_soon();
}

void Routes::announce(bool is_all)
{
    sweep_timer_.start_after(sweep_pause_us);
    owner_.on_slots(is_all);
}

// Frees the nodes that nothing refers to any more, outside of their callbacks.
void Routes::sweep()
{
    bool is_left = false;
    for (size_t i = nodes_.size(); i-- > 1;) {
        const bool is_used = has_slots(*nodes_[i]);
        if (!is_used && nodes_[i]->is_idle()) {
            nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(i));
        } else {
            is_left = is_left || !is_used;
        }
    }
    if (is_left) {
        sweep_timer_.start_after(sweep_pause_us);
    }
}

std::string Routes::error(bool is_open) const
{
    std::string result = error_;
    for (const std::unique_ptr<Node> &node : nodes_) {
        if (result.empty() && !node->main().is_ready() &&
            (!is_cluster_ || !is_open || has_slots(*node))) {
            result = node->error;
        }
    }
    return result;
}

} // namespace lawn::durable
