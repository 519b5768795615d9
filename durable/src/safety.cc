// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Whether a server is configured to lose what it has acknowledged (node.h). It
// is asked when a session begins and now and then, for an operator may change
// that at any time.
//
// A policy for all keys drops timers when the memory is full. One for keys that
// expire does not, as ours do not expire.

#include "src/node.h"

namespace lawn::durable
{

namespace
{

// The text of a line of INFO, or "".
std::string_view info_text(std::string_view info, std::string_view name)
{
    const size_t at = info.find(name);
    if (at == info.npos) {
        return "";
    }
    const std::string_view rest = info.substr(at + name.size());
    return rest.substr(0, rest.find_first_of("\r\n"));
}

} // namespace

void RequestSession::ask_safety(
    const Words &question,
    void (RequestSession::*told)(const redisReply *reply))
{
    const Handler handler = [this, told](ReplyPtr reply, lawn_time_t) {
        if (reply) {
            (this->*told)(reply.get());
        }
    };
    if (is_ready()) {
        send(question, setup_.request_timeout_us, handler);
    } else {
        ask(question, handler);
    }
}

void RequestSession::ask_safety()
{
    ask_safety({"CONFIG", "GET", "maxmemory-policy", "appendonly", "save"},
               &RequestSession::on_config);
}

void RequestSession::on_config(const redisReply *reply)
{
    if (is_error(reply)) { // the user may not ask, but maybe this
        ask_safety({"INFO", "memory", "persistence"}, &RequestSession::on_info);
        return;
    }
    judge_safety(value_of(reply, "maxmemory-policy"),
                 value_of(reply, "appendonly") == "yes" ||
                     !value_of(reply, "save").empty());
}

// It does not tell of snapshots.
void RequestSession::on_info(const redisReply *reply)
{
    const std::string_view info = is_error(reply) ? "" : text_of(reply);
    judge_safety(info_text(info, "maxmemory_policy:"),
                 info_text(info, "aof_enabled:") == "1");
}

void RequestSession::judge_safety(std::string_view policy, bool keeps)
{
    std::string why;
    if (policy.empty()) {
        why = "it may not be asked for its maxmemory-policy (by CONFIG GET or "
              "INFO): it may drop timers when its memory is full";
    } else if (begins_with(policy, "allkeys-")) {
        why = "its maxmemory-policy is " + line_of(policy) +
              ", which drops timers when its memory is full: set noeviction";
    }
    if (!setup_.requires_safe_store) {
        setup_.warnings.set(Warnings::Matter::policy, place(), why);
        return;
    }
    if (why.empty() && keeps) {
        return;
    }
    why = "no safe store: " +
          (why.empty() ? "it keeps nothing on its disk, or may not be asked "
                         "whether it does: set appendonly yes"
                       : why);
    if (is_ready()) {
        restart(why);
    } else {
        fail(LAWN_ERR_UNSUPPORTED, why);
    }
}

} // namespace lawn::durable
