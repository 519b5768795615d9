// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The replies of the functions of store/lawn.lua, and the entries of streams.

#include "src/codec.h"

#include <cstring>

namespace lawn::durable
{
namespace
{

// The elements of an array; none if it is no array.
class List
{
public:
    explicit List(const redisReply *reply) : reply_(reply)
    {
    }

    bool is_list() const
    {
        return reply_ && reply_->type == REDIS_REPLY_ARRAY;
    }

    size_t size() const
    {
        return is_list() ? static_cast<size_t>(reply_->elements) : 0;
    }

    const redisReply *operator[](size_t i) const
    {
        return i < size() ? reply_->element[i] : nullptr;
    }

private:
    const redisReply *reply_;
};

bool read(const redisReply *reply, std::string_view *text)
{
    if (!reply || (reply->type != REDIS_REPLY_STRING &&
                   reply->type != REDIS_REPLY_STATUS)) {
        return false;
    }
    *text = {reply->str, static_cast<size_t>(reply->len)};
    return true;
}

bool read(const redisReply *reply, int64_t *number)
{
    if (!reply || reply->type != REDIS_REPLY_INTEGER) {
        return false;
    }
    *number = reply->integer;
    return true;
}

// A number that is not less than 0 nor more than `most`.
template <class Number>
bool read(const redisReply *reply, Number *number, int64_t most)
{
    int64_t value = 0;
    if (!read(reply, &value) || value < 0 || value > most) {
        return false;
    }
    *number = static_cast<Number>(value);
    return true;
}

bool read_state(const redisReply *reply, int *state)
{
    return read(reply, state, 6);
}

bool read_id(const redisReply *reply, std::string_view *id)
{
    return read(reply, id) && id_is_valid(*id);
}

// The fields of an entry: name and value in turn, in any order.
bool read_fields(const List &fields, Entry *entry)
{
    std::string_view text;
    for (size_t i = 0; i + 1 < fields.size(); i += 2) {
        std::string_view name;
        std::string_view value;
        if (!read(fields[i], &name) || !read(fields[i + 1], &value)) {
            return false;
        }
        if (name == "i") {
            entry->id = value;
        } else if (name == "b") {
            text = value;
        } else if (name == "r") {
            entry->reason = value;
        } else if (name == "l") {
            entry->error = value;
        }
    }
    uint64_t bits = 0;
    if (!id_is_valid(entry->id) || text.size() < sizeof(bits)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bits); ++i) {
        bits |= uint64_t{static_cast<unsigned char>(text[i])} << 8 * i;
    }
    double fired = 0;
    memcpy(&fired, &bits, sizeof(fired));
    if (!(fired >= 0 && fired <= static_cast<double>(max_time))) {
        return false;
    }
    entry->fired_us = static_cast<int64_t>(fired);
    return decode_body(text.substr(sizeof(bits)), &entry->body);
}

} // namespace

bool decode_entry(const redisReply *reply, Entry *entry)
{
    const List list(reply);
    *entry = Entry();
    std::string_view number;
    if ((list.size() != 2 && list.size() != 3) || !read(list[0], &number)) {
        return false;
    }
    entry->entry = number;
    Entry read_entry = *entry;
    if ((list.size() == 3 &&
         !read(list[1], &read_entry.deliveries, UINT32_MAX)) ||
        read_entry.deliveries == 0 ||
        !read_fields(List(list[list.size() - 1]), &read_entry)) {
        return false;
    }
    *entry = read_entry;
    return true;
}

bool decode(const redisReply *reply, Opened *opened)
{
    const List list(reply);
    Opened o;
    if (list.size() != 6 || !read(list[0], &o.shards, 1024) || o.shards == 0 ||
        !read(list[1], &o.max_pending, max_time) ||
        !read(list[2], &o.max_bytes, max_time) ||
        !read(list[3], &o.keep_us, max_time) ||
        !read(list[4], &o.keep_count, max_time) ||
        !read(list[5], &o.publish_error)) {
        return false;
    }
    *opened = o;
    return true;
}

bool decode(const redisReply *reply, Prepared *prepared)
{
    const List list(reply);
    Prepared p;
    if (list.size() != 2 || !read(list[0], &p.born_us, max_time) ||
        p.born_us <= 0 || !read(list[1], &p.lost_us, max_time)) {
        return false;
    }
    *prepared = p;
    return true;
}

bool decode(const redisReply *reply, Started *started)
{
    std::string_view text;
    return read(reply, &text) && decode_started(text, started);
}

bool decode(const redisReply *reply, Stopped *stopped)
{
    const List list(reply);
    Stopped s;
    if (list.size() != 2 || !read_state(list[0], &s.state) ||
        !read(list[1], &s.generation, max_time)) {
        return false;
    }
    *stopped = s;
    return true;
}

bool decode(const redisReply *reply, Updated *updated)
{
    const List list(reply);
    Updated u;
    if (!read(list[0], &u.updated, 1) ||
        !read(list[1], &u.generation, max_time) ||
        list.size() != (u.updated ? 4U : 3U)) {
        return false;
    }
    if (u.updated ? !read(list[2], &u.due_us, max_time) ||
                        !read(list[3], &u.now_us, max_time)
                  : !read_state(list[2], &u.state)) {
        return false;
    }
    *updated = u;
    return true;
}

bool decode(const redisReply *reply, Got *got)
{
    const List list(reply);
    Got g;
    std::string_view text;
    if (list.size() != 3 || !read_state(list[0], &g.state) ||
        !read(list[1], &g.now_us, max_time) || !read(list[2], &text)) {
        return false;
    }
    if (g.state == 1 || g.state == 2) {
        if (!decode_body(text, &g.body)) {
            return false;
        }
    } else if (g.state > 2) {
        if (!decode_end(text, &g.end) || g.end.state != g.state) {
            return false;
        }
    }
    *got = g;
    return true;
}

bool decode(const redisReply *reply, Fired *fired)
{
    std::string_view text;
    return read(reply, &text) && decode_fired(text, fired);
}

bool decode(const redisReply *reply, Taken *taken)
{
    const List list(reply);
    Taken t;
    if (list.size() != 2 || !read(list[0], &t.more, 1) ||
        !List(list[1]).is_list()) {
        return false;
    }
    t.entries = list[1];
    *taken = t;
    return true;
}

bool decode(const redisReply *reply, Replayed *replayed)
{
    const List list(reply);
    Replayed r;
    if (list.size() != 3 || !read(list[0], &r.replayed, 1) ||
        !read(list[1], &r.generation, max_time) ||
        !read(list[2], &r.due_us, max_time)) {
        return false;
    }
    *replayed = r;
    return true;
}

bool decode(const redisReply *reply, Listed *listed)
{
    const List list(reply);
    const List timers(list[1]);
    Listed read_list;
    if (list.size() != 2 || !read(list[0], &read_list.cursor) ||
        !timers.is_list()) {
        return false;
    }
    for (size_t i = 0; i < timers.size(); ++i) {
        const List timer(timers[i]);
        Listed::Timer t;
        if (timer.size() != 5 || !read_id(timer[0], &t.id) ||
            !read_state(timer[1], &t.state) ||
            !read(timer[2], &t.generation, max_time) ||
            !read(timer[3], &t.due_us, max_time) ||
            !read(timer[4], &t.attempt, UINT16_MAX)) {
            return false;
        }
        read_list.timers.push_back(t);
    }
    *listed = std::move(read_list);
    return true;
}

bool decode(const redisReply *reply, Stats *stats)
{
    const List list(reply);
    Stats read_stats;
    if (!list.is_list() || list.size() % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < list.size(); i += 2) {
        std::string_view name;
        int64_t value = 0;
        if (!read(list[i], &name) || !read(list[i + 1], &value)) {
            return false;
        }
        read_stats.emplace_back(name, value);
    }
    *stats = std::move(read_stats);
    return true;
}

bool decode(const redisReply *reply, Results *results)
{
    std::string_view digits;
    if (!read(reply, &digits) ||
        digits.find_first_not_of("01234") != std::string_view::npos) {
        return false;
    }
    results->digits = digits;
    return true;
}

bool decode(const redisReply *reply, CronTimers *timers)
{
    const List both(reply);
    CronTimers all;
    if (both.size() != 2 || !read(both[0], &all.removed, UINT32_MAX)) {
        return false;
    }
    const List list(both[1]);
    for (size_t i = 0; i < list.size(); ++i) {
        const List timer(list[i]);
        CronTimer t;
        if (timer.size() != 5 || !read_id(timer[0], &t.id) ||
            !read(timer[1], &t.generation, max_time) ||
            !read(timer[2], &t.after_us, max_time) ||
            !read(timer[3], &t.expression) || !read(timer[4], &t.zone)) {
            return false;
        }
        all.timers.push_back(t);
    }
    *timers = std::move(all);
    return list.is_list();
}

bool decode(const redisReply *reply, std::vector<std::string_view> *texts)
{
    const List list(reply);
    std::vector<std::string_view> all(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
        if (!read(list[i], &all[i])) {
            return false;
        }
    }
    *texts = std::move(all);
    return list.is_list();
}

} // namespace lawn::durable
