// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The part of the link that knows the nodes: opening the namespace, and which
// node has which slots.

#include "src/codec.h"
#include "src/link_impl.h"

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr uint64_t reopen_pause_us = 500000;
constexpr uint64_t refresh_pause_us = 100000;
constexpr uint64_t sweep_pause_us = 1000000;

// What a shard may have of a bound of the namespace. 0 is none.
uint64_t share_of(uint64_t bound, unsigned shards)
{
    return bound / shards + (bound % shards != 0);
}

} // namespace

unsigned LinkImpl::shards() const
{
    return shards_;
}

bool LinkImpl::is_cluster() const
{
    return is_cluster_;
}

Node *LinkImpl::node_of(unsigned shard) const
{
    if (!is_cluster_) {
        return nodes_[0].get();
    }
    const unsigned slot =
        shard < shard_slots_.size()
            ? shard_slots_[shard]
            : slot_of(durable_.name_space + ":" + std::to_string(shard));
    return slots_.empty() ? nullptr : slots_[slot];
}

Node *LinkImpl::node_at(const Endpoint &endpoint)
{
    for (const std::unique_ptr<Node> &node : nodes_) {
        if (node->endpoint == endpoint) {
            return node.get();
        }
    }
    nodes_.push_back(std::make_unique<Node>(*this, endpoint));
    return nodes_.back().get();
}

bool LinkImpl::has_slots(const Node &node) const
{
    return std::find(slots_.begin(), slots_.end(), &node) != slots_.end();
}

bool LinkImpl::endpoint_of(unsigned shard, Endpoint *endpoint_p) const
{
    const Node *const node = node_of(shard);
    if (node) {
        *endpoint_p = node->endpoint;
    }
    return node != nullptr;
}

void LinkImpl::note_time(unsigned shard, lawn_time_t sent, int64_t store_us)
{
    Node *const node = node_of(shard);
    if (node) {
        node->clock.add(sent, loop().now(), store_us);
    }
}

int64_t LinkImpl::store_time(unsigned shard, lawn_time_t time) const
{
    const Node *const node = node_of(shard);
    return node && node->clock.is_known() ? node->clock.store(time) : 0;
}

lawn_time_t LinkImpl::send_time(unsigned shard, int64_t store_us) const
{
    const Node *const node = node_of(shard);
    return node && node->clock.is_known() ? node->clock.local(store_us)
                                          : LAWN_TIME_INFINITY;
}

void LinkImpl::on_main_ready(Node &node)
{
    node.trouble.clear();
    if (&node == nodes_[0].get()) {
        is_cluster_ = node.main().is_cluster();
    }
    if (is_cluster_ && slots_.empty()) {
        refresh();
    } else if (node_of(0) == &node) {
        open_space();
    }
    if (is_open_) {
        prepare(node);
    }
}

// Also again when its node is back, or says that a shard is not as it was: the
// server may be empty, or have a namespace of another number of shards.
void LinkImpl::open_space()
{
    Node *const node = node_of(0);
    if (!node || !node->main().is_ready() || is_opening_) {
        return;
    }
    const lawn_durable_params_t &params = durable_.params;
    const unsigned shards = shards_ != 0 ? shards_ : params.shards;
    node->main().send(
        Words{"FCALL", "lawn_open", "1", key(0, Key::config),
              std::to_string(shards), std::to_string(params.max_pending),
              std::to_string(params.max_payload_bytes),
              std::to_string(params.keep_us),
              std::to_string(params.keep_count)},
        setup_.request_timeout_us, [this](ReplyPtr reply, lawn_time_t) {
            is_opening_ = false;
            if (reply) {
                on_opened(reply.get());
            }
        });
    is_opening_ = true;
}

void LinkImpl::on_opened(const redisReply *reply)
{
    Opened opened;
    const bool is_good = decode(reply, &opened) &&
                         opened.shards <= LAWN_DURABLE_MAX_SHARDS &&
                         (shards_ == 0 || shards_ == opened.shards);
    if (!is_good) {
        const std::string error(text_of(reply));
        const Failure failure =
            is_error(reply)
                ? Failure{status_of_error(error), line_of(error)}
                : Failure{LAWN_ERR_CORRUPT, "the store's reply is not ours"};
        trouble_ = failure.why;
        is_open_ = is_open_ && failure.status == LAWN_ERR_IO;
        if (failure.status != LAWN_ERR_IO || durable_.params.fail_fast) {
            fail_all(&opening_, failure);
        }
        if (is_cluster_) {
            refresh_soon();
        }
        open_timer_.start_after(reopen_pause_us);
        return;
    }
    limits_.clear();
    for (const uint64_t i : {share_of(opened.max_pending, opened.shards),
                             share_of(opened.max_bytes, opened.shards),
                             opened.keep_us, opened.keep_count}) {
        limits_.push_back(std::to_string(i));
    }
    limits_.push_back(std::to_string(opened.shards));
    for (unsigned i = static_cast<unsigned>(held_.size()); i < opened.shards;
         ++i) {
        held_.push_back(std::make_unique<HeldOfShard>(
            loop(), i, [this](Held *held) { release_held(held); }));
    }
    shards_ = opened.shards;
    shard_slots_.clear();
    for (unsigned i = 0; i < shards_; ++i) {
        shard_slots_.push_back(
            slot_of(durable_.name_space + ":" + std::to_string(i)));
    }
    trouble_.clear();
    is_open_ = true;
    prepare_all();
    run_when_open();
    Requests waiting;
    take_requests(&opening_, &waiting);
    while (!waiting.empty()) {
        try_to_route(&waiting.front());
    }
}

// Until it is done for each shard, for without it a shard has no bounds. What
// keeps it from being done is told by the requests.
void LinkImpl::prepare_all()
{
    for (const std::unique_ptr<Node> &node : nodes_) {
        prepare(*node);
    }
}

void LinkImpl::prepare(Node &node)
{
    for (unsigned i = 0; i < shards_ && node.main().is_ready(); ++i) {
        if (node_of(i) == &node) {
            Words words = {"FCALL", "lawn_prepare", "1", key(i, Key::meta)};
            words.insert(words.end(), limits_.begin(), limits_.end());
            node.main().send(words, setup_.request_timeout_us,
                             [this](ReplyPtr reply, lawn_time_t) {
                                 if (reply && is_error(reply.get())) {
                                     prepare_later();
                                 }
                             });
        }
    }
}

// The slots may be where they are not thought to be.
void LinkImpl::prepare_later()
{
    if (!prepare_timer_.is_active()) {
        prepare_timer_.start_after(reopen_pause_us);
    }
    if (is_cluster_) {
        refresh_soon();
    }
}

void LinkImpl::refresh_soon()
{
    if (!refresh_timer_.is_active()) {
        refresh_timer_.start_after(refresh_pause_us);
    }
}

// Asks any node that answers.
void LinkImpl::refresh()
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

void LinkImpl::on_slots(const redisReply *reply, const Endpoint &from)
{
    std::vector<SlotRange> ranges;
    if (!read_slots(reply, from, &ranges) || ranges.empty()) {
        trouble_ = is_error(reply) ? line_of(text_of(reply))
                                   : "no server of the Cluster has slots";
        refresh_soon();
        return;
    }
    if (!is_open_) {
        trouble_.clear();
    }
    slots_.assign(cluster_slots, nullptr);
    for (const SlotRange &i : ranges) {
        Node *const node = node_at(i.master);
        node->main().start();
        std::fill(slots_.begin() + i.first, slots_.begin() + i.last + 1, node);
    }
    follow_slots();
    open_space();
}

void LinkImpl::on_moved(std::string_view error, const Endpoint &from)
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
        follow_slots();
    }
    refresh_soon();
}

// What was not sent goes to the node that has its slot now.
void LinkImpl::follow_slots()
{
    for (size_t i = 0; i < nodes_.size(); ++i) {
        Node &node = *nodes_[i];
        node.for_each_session([this, &node](RequestSession &session) {
            Requests queued;
            take_requests(&session.queued, &queued);
            while (!queued.empty()) {
                Request *const request = &queued.front();
                if (request->is_asking || node_of(request->shard) == &node) {
                    move_request(request, &session.queued);
                } else {
                    try_to_route(request);
                }
            }
        });
        if (is_open_ && node.main().is_ready()) {
            prepare(node);
        }
    }
    for (const auto &i : channels_) {
        i.first->check_endpoint();
    }
    sweep_timer_.start_after(sweep_pause_us);
}

// Frees what nothing refers to any more, outside of its own callbacks.
void LinkImpl::sweep()
{
    removed_.clear();
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

} // namespace lawn::durable
