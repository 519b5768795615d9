// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How the namespace is opened (namespace.h).

#include "src/namespace.h"

#include "src/codec.h"
#include "src/guard.h"

namespace lawn::durable
{

namespace
{

constexpr uint64_t reopen_pause_us = 500000;

// What a shard may have of a bound of the namespace. 0 is none.
uint64_t share_of(uint64_t bound, unsigned shards)
{
    return bound / shards + (bound % shards != 0);
}

} // namespace

Namespace::Namespace(Setup &setup, const lawn_durable_params_t &params,
                     const Keys &keys, Routes &routes, Owner &owner)
    : setup_(setup), params_(params), keys_(keys), routes_(routes),
      owner_(owner), open_timer_(*setup.loop, [this] { open(); }),
      prepare_timer_(*setup.loop, [this] { prepare_all(); }),
      when_open_timer_(*setup.loop, [this] { run_when_open(); })
{
}

void Namespace::open()
{
    Node *const node = routes_.node_of(0);
    if (!node || !node->main().is_ready() || is_opening_) {
        return;
    }
    const unsigned shards = shards_ != 0 ? shards_ : params_.shards;
    node->main().send(
        Words{"FCALL", "lawn_open", "1", keys_.key(0, Key::config),
              std::to_string(shards), std::to_string(params_.max_pending),
              std::to_string(params_.max_payload_bytes),
              std::to_string(params_.keep_us),
              std::to_string(params_.keep_count),
              routes_.is_cluster() ? "8" : "1"},
        setup_.request_timeout_us, [this](ReplyPtr reply, lawn_time_t) {
            is_opening_ = false;
            if (reply && !attempt([&] { on_reply(reply.get()); })) {
                open_timer_.start_after(retry_us);
            }
        });
    is_opening_ = true;
}

void Namespace::on_reply(const redisReply *reply)
{
    Opened opened;
    const bool is_good = decode(reply, &opened) &&
                         opened.shards <= LAWN_DURABLE_MAX_SHARDS &&
                         (shards_ == 0 || shards_ == opened.shards);
    if (!is_good) {
        const std::string error(text_of(reply));
        on_refused(
            is_error(reply)
                ? Failure{status_of_error(error), line_of(error)}
                : Failure{LAWN_ERR_CORRUPT, "the store's reply is not ours"});
        return;
    }
    const std::string why(opened.publish_error);
    setup_.warnings.set(Warnings::Matter::publishing, keys_.wake_channel(0),
                        why.empty() ? ""
                                    : "what this program starts may fire half "
                                      "a minute late, since it may not "
                                      "publish there: " +
                                          line_of(why));
    limits_.clear();
    for (const uint64_t i : {share_of(opened.max_pending, opened.shards),
                             share_of(opened.max_bytes, opened.shards),
                             opened.keep_us, opened.keep_count}) {
        limits_.push_back(std::to_string(i));
    }
    limits_.push_back(std::to_string(opened.shards));
    owner_.on_shards(opened.shards);
    shards_ = opened.shards;
    error_.clear();
    is_open_ = true;
    prepare_all();
    run_when_open();
    owner_.on_open();
}

void Namespace::on_refused(const Failure &failure)
{
    error_ = failure.why;
    is_open_ = is_open_ && failure.status == LAWN_ERR_IO;
    owner_.on_refused(failure);
    routes_.refresh_soon();
    open_timer_.start_after(reopen_pause_us);
}

// Until it is done for each shard, for without it a shard has no bounds. What
// keeps it from being done is told by the requests.
void Namespace::prepare_all()
{
    routes_.for_each_node([this](Node &node) { prepare(node); });
}

void Namespace::prepare(Node &node)
{
    for (unsigned i = 0; is_open_ && i < shards_ && node.main().is_ready();
         ++i) {
        if (routes_.node_of(i) == &node) {
            Words words = {"FCALL", "lawn_prepare", "1",
                           keys_.key(i, Key::meta)};
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
void Namespace::prepare_later()
{
    if (!prepare_timer_.is_active()) {
        prepare_timer_.start_after(reopen_pause_us);
    }
    routes_.refresh_soon();
}

void Namespace::when_open(const void *owner, std::function<void()> fn)
{
    when_open_.emplace_back(owner, std::move(fn));
    if (is_open_) {
        when_open_timer_.start_after(0);
    }
}

void Namespace::forget(const void *owner)
{
    when_open_.remove_if([owner](const auto &i) { return i.first == owner; });
}

void Namespace::run_when_open()
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

} // namespace lawn::durable
