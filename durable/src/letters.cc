// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Dead letters: their list, and their replay.

#include "src/admin.h"
#include "src/url.h"

#include <charconv>

namespace lawn::durable
{

namespace
{

// The dead letters of a shard, page by page.
const redisReply *letters_of(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ARRAY ? reply : nullptr;
}

// The number of an entry, as "1700000000000-0".
bool read_number(std::string_view text, std::pair<uint64_t, uint64_t> *number_p)
{
    const char *const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, number_p->first);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') {
        return false;
    }
    const auto second = std::from_chars(first.ptr + 1, end, number_p->second);
    return second.ec == std::errc() && second.ptr == end;
}

// Whether each number of a page is beyond those before it, and all are beyond
// `from`, where the page begins ("(" and a number, or an end of the stream).
// Otherwise there may be no end of pages.
bool is_ordered(const redisReply *letters, std::string_view from, bool descends)
{
    std::pair<uint64_t, uint64_t> last;
    bool has_last =
        from.substr(0, 1) == "(" && read_number(from.substr(1), &last);
    for (size_t i = 0; i < letters->elements; ++i) {
        Entry entry;
        std::pair<uint64_t, uint64_t> number;
        decode_entry(letters->element[i], &entry);
        if (!read_number(entry.entry, &number) ||
            (has_last && (descends ? number >= last : number <= last))) {
            return false;
        }
        last = number;
        has_last = true;
    }
    return true;
}

// Calls visit(entry, is_ours) for each letter of a page, and returns false as
// soon as `visit` does. Of one that is not ours, only the number is known.
// `beyond_p` becomes the end of a range that excludes what was read.
template <class Visit>
bool each_letter(const redisReply *letters, std::string *beyond_p, Visit visit)
{
    for (size_t i = 0; i < letters->elements; ++i) {
        Entry entry;
        const bool is_ours = decode_entry(letters->element[i], &entry);
        *beyond_p = "(" + std::string(entry.entry);
        if (!visit(entry, is_ours)) {
            return false;
        }
    }
    return true;
}

class ListDead : public PlainRequest
{
public:
    ListDead(lawn_durable_t *durable, uint64_t limit,
             lawn_durable_item_fn_t each, lawn_durable_fn_t done, void *arg)
        : PlainRequest(durable, done, arg), limit_(limit), each_(each),
          arg_(arg)
    {
    }

private:
    void begin() override
    {
        send(shard_,
             {"XRANGE", link_.key(shard_, Key::dead), from_, "+", "COUNT",
              std::to_string(page)},
             static_cast<Handler>(&ListDead::on_letters));
    }

    void on_letters(const redisReply *reply)
    {
        const redisReply *const letters = letters_of(reply);
        if (!letters || !is_ordered(letters, from_, false)) {
            fail_corrupt();
            return;
        }
        const auto tell_each = [this](const Entry &entry, bool is_ours) {
            if (is_ours) {
                tell(entry);
            } else {
                tell_unreadable(entry);
            }
            return ++result_.count != limit_;
        };
        if (!each_letter(letters, &from_, tell_each)) {
            finish();
            return;
        }
        if (letters->elements < page) {
            from_ = "-";
            if (++shard_ == link_.shards()) {
                finish();
                return;
            }
        }
        begin();
    }

    void tell(const Entry &entry)
    {
        const std::string id(entry.id);
        const std::string reason(entry.reason);
        const std::string error(entry.error);
        lawn_durable_item_t item = {};
        item.id = id.c_str();
        item.state = LAWN_DURABLE_DEAD;
        item.generation = entry.body.generation;
        item.due_us = entry.body.due_us;
        item.attempt = entry.body.attempt;
        item.payload = entry.body.payload.data();
        item.payload_size = entry.body.payload.size();
        item.reason = reason.empty() ? nullptr : reason.c_str();
        item.error = error.empty() ? nullptr : error.c_str();
        each_(arg_, &item);
    }

    void tell_unreadable(const Entry &entry)
    {
        const std::string where = "entry " + std::string(entry.entry) + " of " +
                                  link_.key(shard_, Key::dead);
        lawn_durable_item_t item = {};
        item.id = "";
        item.state = LAWN_DURABLE_DEAD;
        item.reason = "unreadable";
        item.error = where.c_str();
        each_(arg_, &item);
    }

    const uint64_t limit_;
    const lawn_durable_item_fn_t each_;
    void *const arg_;
    unsigned shard_ = 0;
    std::string from_ = "-";
};

// Finds the latest dead letter of the timer, and has it replayed.
class Replay : public PlainRequest
{
public:
    Replay(lawn_durable_t *durable, std::string id, lawn_durable_fn_t done,
           void *arg)
        : PlainRequest(durable, done, arg), id_(std::move(id))
    {
    }

private:
    void begin() override
    {
        shard_ = link_.shard_of(id_);
        send(shard_,
             {"XREVRANGE", link_.key(shard_, Key::dead), before_, "-", "COUNT",
              std::to_string(page)},
             static_cast<Handler>(&Replay::on_letters));
    }

    void on_letters(const redisReply *reply)
    {
        const redisReply *const letters = letters_of(reply);
        if (!letters || !is_ordered(letters, before_, true)) {
            fail_corrupt();
            return;
        }
        std::string found;
        const auto is_another = [&](const Entry &entry, bool is_ours) {
            found = is_ours && entry.id == id_ ? entry.entry : "";
            return found.empty();
        };
        if (!each_letter(letters, &before_, is_another)) {
            replay(std::move(found));
            return;
        }
        if (letters->elements < page) {
            replay(""); // it may be replayed already
            return;
        }
        begin();
    }

    void replay(std::string entry)
    {
        Call call;
        call.function = "lawn_replay";
        call.tells_shards = true;
        call.keys = {Key::due, Key::body, Key::meta, Key::dead};
        call.args = {std::move(entry), id_};
        call.shard = shard_;
        send(std::move(call), static_cast<Handler>(&Replay::on_replayed));
    }

    void on_replayed(const redisReply *reply)
    {
        Replayed replayed;
        if (!decode(reply, &replayed)) {
            fail_corrupt();
            return;
        }
        result_.generation = replayed.generation;
        if (!replayed.replayed) {
            fail(LAWN_ERR_NO_ELEM,
                 replayed.generation > 0
                     ? "there is a newer timer of this id"
                     : "there is no dead letter of this timer");
            return;
        }
        result_.state = LAWN_DURABLE_PENDING;
        result_.due_us = replayed.due_us;
        result_.attempt = 1;
        finish();
    }

    const std::string id_;
    unsigned shard_ = 0;
    std::string before_ = "+";
};

} // namespace

} // namespace lawn::durable

using namespace lawn::durable;

lawn_status_t lawn_durable_list_dead(lawn_durable_t *durable, uint64_t limit,
                                     lawn_durable_item_fn_t each,
                                     lawn_durable_fn_t done, void *arg)
{
    if (!each) {
        return refuse("there is no function for the letters");
    }
    return make<ListDead>(durable, limit, each, done, arg);
}

lawn_status_t lawn_durable_replay(lawn_durable_t *durable, const char *id,
                                  lawn_durable_fn_t done, void *arg)
{
    return guarded([&] {
        std::string error;
        if (!check_id(id ? id : "", &error)) {
            return refuse("the id " + error);
        }
        return make<Replay>(durable, id, done, arg);
    });
}
