// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How the namespace is opened (namespace.h).

#include "src/namespace.h"

#include "src/codec.h"
#include "src/guard.h"

#include <ctime>

namespace lawn::durable
{

namespace
{

constexpr uint64_t reopen_pause_us = 500000;
constexpr uint64_t watch_us = 30000000;

// What a shard may have of a bound of the namespace. 0 is none.
uint64_t share_of(uint64_t bound, unsigned shards)
{
    return bound / shards + (bound % shards != 0);
}

// As 2026-11-30T03:25:18Z.
std::string utc_text(int64_t us)
{
    const time_t seconds = us / 1000000;
    tm parts = {};
    char text[64] = "";
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

} // namespace

Namespace::Namespace(Setup &setup, const lawn_durable_params_t &params,
                     const Keys &keys, Routes &routes, Owner &owner)
    : setup_(setup), params_(params), keys_(keys), routes_(routes),
      owner_(owner), open_timer_(*setup.loop, [this] { open(); }),
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
        Words{"FCALL", "lawn_open", "2", keys_.key(0, Key::config),
              keys_.key(0, Key::meta), std::to_string(shards),
              std::to_string(params_.max_pending),
              std::to_string(params_.max_payload_bytes),
              std::to_string(params_.keep_us),
              std::to_string(params_.keep_count),
              routes_.is_cluster() ? "8" : "1"},
        setup_.request_timeout_us, [this, node](ReplyPtr reply, lawn_time_t) {
            is_opening_ = false;
            look_at_refusal(node, reply.get());
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
    births_.resize(opened.shards);
    owner_.on_shards(opened.shards);
    shards_ = opened.shards;
    error_.clear();
    is_open_ = true;
    open_timer_.start_after(watch_us);
    prepare_all();
    run_when_open();
    owner_.on_open();
}

// The session of a server that is not what it was when it was greeted is of no
// use any more. While nothing is open, no request would notice that.
void Namespace::look_at_refusal(Node *node, const redisReply *reply)
{
    if (reply && is_error(reply)) {
        node->main().look_at_refusal(text_of(reply));
    }
}

void Namespace::on_refused(const Failure &failure)
{
    error_ = failure.why;
    is_open_ = is_open_ && failure.status == LAWN_ERR_IO;
    owner_.on_refused(failure);
    reopen_later();
}

// Only after the record was seen: another program may have made the namespace
// anew, with other shards.
void Namespace::prepare_all()
{
    for (unsigned i = 0; i < shards_; ++i) {
        Node *const node = routes_.node_of(i);
        if (node && node->main().is_ready()) {
            prepare(*node, i);
            if (is_watching_) {
                look(*node, i);
            }
        }
    }
}

void Namespace::prepare(Node &node, unsigned shard)
{
    Words words = {"FCALL",
                   "lawn_prepare",
                   "3",
                   keys_.key(shard, Key::due),
                   keys_.key(shard, Key::body),
                   keys_.key(shard, Key::meta)};
    words.insert(words.end(), limits_.begin(), limits_.end());
    words.push_back(std::to_string(births_[shard]));
    node.main().send(words, setup_.request_timeout_us,
                     [this, shard, at = &node](ReplyPtr reply, lawn_time_t) {
                         Prepared prepared;
                         look_at_refusal(at, reply.get());
                         if (reply && is_error(reply.get())) {
                             reopen_later();
                         } else if (reply && decode(reply.get(), &prepared)) {
                             births_[shard] = prepared.born_us;
                             note_loss(shard, prepared.lost_us);
                         }
                     });
}

void Namespace::watch()
{
    is_watching_ = true;
    open();
}

void Namespace::look(Node &node, unsigned shard)
{
    Words words = {"FCALL", "lawn_look", "6"};
    for (const Key key :
         {Key::due, Key::body, Key::meta, Key::out, Key::push, Key::cron}) {
        words.push_back(keys_.key(shard, key));
    }
    node.main().send(words, setup_.request_timeout_us,
                     [this, shard](ReplyPtr reply, lawn_time_t) {
                         int64_t lost_us = 0;
                         std::string why;
                         if (reply && is_error(reply.get())) {
                             why =
                                 "it is not seen whether timers are missing: " +
                                 line_of(text_of(reply.get()));
                         } else if (reply && number_of(reply.get(), &lost_us)) {
                             note_loss(shard, lost_us);
                         } else {
                             return;
                         }
                         setup_.warnings.set(Warnings::Matter::looking,
                                             keys_.tag(shard), why);
                     });
}

void Namespace::note_loss(unsigned shard, int64_t lost_us)
{
    setup_.warnings.set(Warnings::Matter::loss, keys_.tag(shard),
                        lost_us == 0 ? ""
                                     : "timers were lost, as keys were removed "
                                       "or the server has forgotten them; seen "
                                       "at " +
                                           utc_text(lost_us));
}

// Until it is done for each shard, for without it a shard has no bounds. What
// keeps it from being done is told by the requests. The slots may be where they
// are not thought to be.
void Namespace::reopen_later()
{
    open_timer_.start_after(reopen_pause_us);
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
