// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What an acknowledgement waits for besides the store's reply (node.h).
//
// WAIT counts the replicas that have the latest write of its own connection. A
// request that is repeated after its connection was lost may write nothing, and
// WAIT would then promise nothing. So each batch ends with a write of its own,
// which a server at its maxmemory must not refuse: it has done the stops.
//
// A server with appendfsync `always` has written to its disk before it answers,
// unless it has no-appendfsync-on-rewrite `yes` and rewrites its file. Whether
// it still has these settings is asked behind each batch: an operator may
// change them at any time, and the connection does not notice.

#include "src/guard.h"
#include "src/node.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

constexpr uint64_t wait_slack_us = 1000000;
constexpr double wait_share = 0.9; // of the time that is left

// HSET itself is refused at maxmemory.
constexpr const char *mark_script =
    "#!lua flags=allow-oom\n"
    "return redis.call('HSET', KEYS[1], 'synced', '1')";

Words settings_question()
{
    return {"CONFIG", "GET", "appendonly", "appendfsync",
            "no-appendfsync-on-rewrite"};
}

// The number after `name` in the text of INFO; 0 if there is none.
unsigned info_number(std::string_view info, std::string_view name)
{
    const size_t at = info.find(name);
    unsigned number = 0;
    for (size_t i = at == info.npos ? info.size() : at + name.size();
         i < info.size() && info[i] >= '0' && info[i] <= '9' && number < 10000;
         ++i) {
        number = number * 10 + static_cast<unsigned>(info[i] - '0');
    }
    return number;
}

// redis_version:7.2.1 and later have WAITAOF.
bool has_waitaof(std::string_view info)
{
    constexpr std::string_view name = "redis_version:";
    const unsigned major = info_number(info, name);
    const unsigned minor =
        info_number(info, std::string(name) + std::to_string(major) + ".");
    return major > 7 || (major == 7 && minor >= 2);
}

} // namespace

void RequestSession::greet()
{
    if (durability_ == LAWN_DURABLE_ASYNC) {
        ask({"TIME"}, [this](ReplyPtr reply, lawn_time_t asked) {
            note_time(reply.get(), asked);
        });
        ask_safety();
    }
    if (durability_ != LAWN_DURABLE_FSYNC) {
        return;
    }
    ask({"INFO", "persistence"}, [this](ReplyPtr reply, lawn_time_t) {
        has_append_file_ =
            info_number(text_of(reply.get()), "aof_enabled:") == 1;
    });
    ask({"INFO", "server"}, [this](ReplyPtr reply, lawn_time_t) {
        has_waitaof_ = has_waitaof(text_of(reply.get()));
    });
    ask(settings_question(),
        [this](ReplyPtr reply, lawn_time_t) { on_settings(reply.get()); });
}

// The question may be forbidden, and then appendfsync is not known.
void RequestSession::on_settings(const redisReply *reply)
{
    const std::string_view appendonly = value_of(reply, "appendonly");
    if (!appendonly.empty()) {
        has_append_file_ = appendonly == "yes";
    }
    syncs_always_ = value_of(reply, "appendfsync") == "always" &&
                    value_of(reply, "no-appendfsync-on-rewrite") == "no";
}

bool RequestSession::is_supported() const
{
    return durability_ != LAWN_DURABLE_FSYNC ||
           (has_append_file_ && (syncs_always_ || has_waitaof_));
}

bool RequestSession::waits() const
{
    return durability_ != LAWN_DURABLE_ASYNC;
}

void RequestSession::end_batch()
{
    if (!is_ready() || (sent.empty() && unsynced.empty())) {
        return;
    }
    if (durability_ == LAWN_DURABLE_FSYNC && syncs_always_) {
        ask_settings(true);
    } else {
        send_wait();
    }
    is_waiting_ = true;
}

void RequestSession::ask_settings(bool ends_batch)
{
    send(settings_question(), setup_.request_timeout_us,
         [this, ends_batch](ReplyPtr reply, lawn_time_t) {
             if (reply && ends_batch) { // on_failed() does it otherwise
                 on_asked(reply.get());
             } else if (reply) {
                 on_settings(reply.get());
             }
         });
}

void RequestSession::send_wait()
{
    const Requests &last = sent.empty() ? unsynced : sent;
    const lawn_time_t now = loop().now();
    lawn_time_t end = now;
    for (const Requests *i : {&sent, &unsynced}) {
        for (const Request &request : *i) {
            end = std::max(end, request.deadline);
        }
    }
    // Before the requests time out, so that they can tell the number. 0 would
    // mean for ever.
    const uint64_t msec =
        static_cast<uint64_t>(lawn_time_to_msec(end - now) * wait_share) + 1;
    const std::string msec_text = std::to_string(msec);
    mark_error_ = no_memory; // if there is none for the reply's text
    send(Words{"EVAL", mark_script, "1",
               node_.keys.key(last.back().shard, Key::meta)},
         setup_.request_timeout_us, [this](ReplyPtr reply, lawn_time_t) {
             if (reply) {
                 mark_error_ =
                     is_error(reply.get()) ? line_of(text_of(reply.get())) : "";
             }
         });
    send(durability_ > 0 ? Words{"WAIT", std::to_string(durability_), msec_text}
                         : Words{"WAITAOF", "1", "0", msec_text},
         msec * 1000 + wait_slack_us, [this](ReplyPtr reply, lawn_time_t) {
             if (reply) {
                 on_waited(reply.get());
             }
         });
}

void RequestSession::on_asked(const redisReply *reply)
{
    is_waiting_ = false;
    on_settings(reply);
    if (has_append_file_ && syncs_always_) {
        end_unsynced(LAWN_OK, "");
    } else {
        end_unsynced(LAWN_ERR_IO, "unknown: " + endpoint().text() +
                                      " has no longer appendonly yes and "
                                      "appendfsync always");
    }
}

void RequestSession::on_waited(const redisReply *reply)
{
    is_waiting_ = false;
    const bool is_local = durability_ == LAWN_DURABLE_FSYNC;
    const bool has_element =
        is_local && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;
    int64_t count = 0;
    const bool is_good =
        mark_error_.empty() && !is_error(reply) &&
        number_of(has_element ? reply->element[0] : reply, &count);
    const int64_t needed = is_local ? 1 : durability_;
    if (!is_good) {
        end_unsynced(LAWN_ERR_IO, "unknown: " + (mark_error_.empty()
                                                     ? line_of(text_of(reply))
                                                     : mark_error_));
    } else if (count >= needed) {
        end_unsynced(LAWN_OK, "");
    } else {
        end_unsynced(LAWN_ERR_TIMED_OUT,
                     is_local
                         ? "unknown: it is not on the disk yet"
                         : "unknown: only " + std::to_string(count) + " of " +
                               std::to_string(needed) + " replicas have it");
    }
}

void RequestSession::end_unsynced(lawn_status_t status,
                                  const std::string &error)
{
    Requests synced;
    take_requests(&unsynced, &synced);
    while (!synced.empty()) {
        Request *const request = &synced.front();
        node_.owner.finish(request, status, error.c_str(),
                           status == LAWN_OK ? request->reply.get() : nullptr);
    }
    transmit_queued();
}

} // namespace lawn::durable
