// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Replies and errors of Redis (reply.h).

#include "src/reply.h"

#include <algorithm>
#include <charconv>

namespace lawn::durable
{

namespace
{

constexpr size_t longest_line = 512;

} // namespace

std::string_view value_of(const redisReply *reply, std::string_view name)
{
    const size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        if (text_of(reply->element[i]) == name) {
            return text_of(reply->element[i + 1]);
        }
    }
    return "";
}

bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

std::string_view text_of(const redisReply *reply)
{
    const bool has_text =
        reply && (reply->type == REDIS_REPLY_STRING ||
                  reply->type == REDIS_REPLY_STATUS || is_error(reply));
    return has_text ? std::string_view(reply->str, reply->len)
                    : std::string_view();
}

bool begins_with(std::string_view text, std::string_view prefix)
{
    return text.substr(0, prefix.size()) == prefix;
}

bool number_of(const redisReply *reply, int64_t *number_p)
{
    if (reply && reply->type == REDIS_REPLY_INTEGER) {
        *number_p = reply->integer;
        return true;
    }
    const std::string_view text = text_of(reply);
    const char *const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, *number_p);
    return !text.empty() && error == std::errc() && last == end;
}

std::string line_of(std::string_view text)
{
    std::string line = begins_with(text, "LAWN INVALID ") ? "invalid " : "";
    // These words are for programs; what follows is a sentence.
    for (const std::string_view code :
         {"LAWN FULL ", "LAWN REOPEN ", "LAWN SHARDS ", "LAWN VERSION ",
          "LAWN CORRUPT ", "LAWN INVALID "}) {
        if (begins_with(text, code)) {
            text.remove_prefix(code.size());
            break;
        }
    }
    line += text.substr(0, longest_line);
    for (char &c : line) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
            c = ' ';
        }
    }
    if (text.size() > longest_line) {
        line.resize(std::min(line.rfind(' '), longest_line));
        line += " ...";
    }
    return line;
}

lawn_status_t status_of_error(std::string_view error)
{
    struct Known {
        std::string_view prefix;
        lawn_status_t status;
    };
    static constexpr Known known[] = {
        {"LAWN FULL", LAWN_ERR_BUSY},
        {"LAWN INVALID", LAWN_ERR_INVALID_PARAM},
        {"LAWN SHARDS", LAWN_ERR_INVALID_PARAM},
        {"LAWN VERSION", LAWN_ERR_UNSUPPORTED},
        {"LAWN CORRUPT", LAWN_ERR_CORRUPT},
        {"WRONGTYPE", LAWN_ERR_CORRUPT},
        {"OOM", LAWN_ERR_NO_MEMORY},
        {"NOAUTH", LAWN_ERR_INVALID_PARAM},
        {"WRONGPASS", LAWN_ERR_INVALID_PARAM},
        {"NOPERM", LAWN_ERR_INVALID_PARAM},
        {"ERR AUTH", LAWN_ERR_INVALID_PARAM},
        {"ERR invalid password", LAWN_ERR_INVALID_PARAM},
        {"ERR DB index is out of range", LAWN_ERR_INVALID_PARAM},
        {"ERR SELECT is not allowed", LAWN_ERR_INVALID_PARAM},
        {"ERR unknown command", LAWN_ERR_UNSUPPORTED},
    };
    for (const Known &i : known) {
        if (begins_with(error, i.prefix)) {
            return i.status;
        }
    }
    return LAWN_ERR_IO;
}

bool is_passing(std::string_view error)
{
    static constexpr std::string_view passing[] = {
        "TRYAGAIN", "CLUSTERDOWN", "LOADING",  "MASTERDOWN",
        "BUSY ",    "NOREPLICAS",  "READONLY", "ERR Function not found"};
    return std::any_of(
        std::begin(passing), std::end(passing),
        [error](std::string_view i) { return begins_with(error, i); });
}

} // namespace lawn::durable
