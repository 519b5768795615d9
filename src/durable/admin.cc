// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What operators ask for: lists, dead letters, statistics, draining. Each
// request goes through the shards. How many there are is known when the store
// has answered a first call, so each begins with one.

#include "base/base.h"
#include "durable/codec.h"
#include "durable/guard.h"
#include "durable/handle.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr unsigned page = 200; // entries of one call

const char *const not_ours = "the store's reply is not as it should be";

// A request that makes calls one after the other. Each call's function keeps it
// alive.
class Request : public std::enable_shared_from_this<Request>
{
public:
    Request(lawn_durable_t *durable) : link_(*durable->link)
    {
    }
    virtual ~Request() = default;

    void open()
    {
        Call call;
        call.function = "lawn_version";
        call.reads_only = true;
        send(std::move(call), &Request::on_open);
    }

protected:
    using Handler = void (Request::*)(const redisReply *reply);

    // The next step of the request, once the number of shards is known.
    virtual void begin() = 0;
    virtual void fail(lawn_status_t status, const char *error) = 0;

    // Has `handler` called if the store does it, and fail() otherwise.
    void send(Call call, Handler handler)
    {
        link_.call(std::move(call), on_answer(handler));
    }

    void send(unsigned shard, const Args &command, Handler handler)
    {
        link_.command(shard, command, on_answer(handler));
    }

    Link &link_;

private:
    Done on_answer(Handler handler)
    {
        return [self = shared_from_this(), handler](const Answer &answer) {
            if (answer.status == LAWN_OK) {
                (self.get()->*handler)(answer.reply);
            } else {
                self->fail(answer.status, answer.error);
            }
        };
    }

    void on_open(const redisReply *)
    {
        begin();
    }
};

// A request whose result is a lawn_durable_result_t.
class PlainRequest : public Request
{
public:
    PlainRequest(lawn_durable_t *durable, lawn_durable_fn_t done, void *arg)
        : Request(durable), done_(done), arg_(arg)
    {
    }

protected:
    void finish()
    {
        if (done_) {
            done_(arg_, &result_);
        }
    }

    void fail(lawn_status_t status, const char *error) override
    {
        result_.status = status;
        result_.error = error;
        finish();
    }

    void fail_corrupt()
    {
        fail(LAWN_ERR_CORRUPT, not_ours);
    }

    lawn_durable_result_t result_ = {};

private:
    const lawn_durable_fn_t done_;
    void *const arg_;
};

// Finds out that the cursors of a list come again, as they never do by
// themselves: it would have no end. It remembers the cursor after so many steps
// as a power of two, and so needs no more than one.
class Cycle
{
public:
    // Whether `cursor` has come before; maybe only in a later round.
    bool closes(std::string_view cursor)
    {
        if (cursor == seen_) {
            return true;
        }
        if (++steps_ == limit_) {
            steps_ = 0;
            limit_ *= 2;
            seen_ = cursor;
        }
        return false;
    }

private:
    std::string seen_; // no cursor is empty
    uint64_t steps_ = 0;
    uint64_t limit_ = 1;
};

class List : public PlainRequest
{
public:
    List(lawn_durable_t *durable, lawn_durable_state_t state, uint64_t limit,
         lawn_durable_item_fn_t each, lawn_durable_fn_t done, void *arg)
        : PlainRequest(durable, done, arg), limit_(limit), each_(each),
          arg_(arg), first_(state ? state : 1), last_(state ? state : 6),
          state_(first_)
    {
    }

private:
    void begin() override
    {
        Call call;
        call.function = "lawn_list";
        call.keys = {Key::due, Key::body, Key::meta, Key::ended0, Key::ended1};
        call.args = {std::to_string(state_), cursor_, std::to_string(page)};
        call.shard = shard_;
        call.reads_only = true;
        send(std::move(call), static_cast<Handler>(&List::on_listed));
    }

    void on_listed(const redisReply *reply)
    {
        Listed listed;
        if (!decode(reply, &listed)) {
            fail_corrupt();
            return;
        }
        for (const Listed::Timer &timer : listed.timers) {
            const std::string id(timer.id);
            lawn_durable_item_t item = {};
            item.id = id.c_str();
            item.state = static_cast<lawn_durable_state_t>(timer.state);
            item.generation = timer.generation;
            item.due_us = timer.due_us;
            item.attempt = timer.attempt;
            each_(arg_, &item);
            if (++result_.count == limit_) {
                finish();
                return;
            }
        }
        cursor_ = listed.cursor;
        if (cursor_ != "0") {
            if (cycle_.closes(cursor_)) {
                fail_corrupt();
                return;
            }
        } else {
            cycle_ = Cycle();
            if (++shard_ == link_.shards()) {
                shard_ = 0;
                if (++state_ > last_) {
                    finish();
                    return;
                }
            }
        }
        begin();
    }

    const uint64_t limit_;
    const lawn_durable_item_fn_t each_;
    void *const arg_;
    const int first_;
    const int last_;
    int state_;
    unsigned shard_ = 0;
    std::string cursor_ = "0";
    Cycle cycle_;
};

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

// Calls visit(entry) for each letter of a page that is ours, and returns false
// as soon as `visit` does. `beyond_p` becomes the end of a range that excludes
// what was read.
template <class Visit>
bool each_letter(const redisReply *letters, std::string *beyond_p, Visit visit)
{
    for (size_t i = 0; i < letters->elements; ++i) {
        Entry entry;
        const bool is_ours = decode_entry(letters->element[i], &entry);
        *beyond_p = "(" + std::string(entry.entry);
        if (is_ours && !visit(entry)) {
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
        const auto tell_each = [this](const Entry &entry) {
            tell(entry);
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
        const auto is_another = [this, &found](const Entry &entry) {
            found = entry.id == id_ ? entry.entry : std::string_view();
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

class Drain : public PlainRequest
{
public:
    Drain(lawn_durable_t *durable, bool begin, lawn_durable_fn_t done,
          void *arg)
        : PlainRequest(durable, done, arg), begin_(begin)
    {
    }

private:
    void begin() override
    {
        Call call;
        call.function = "lawn_drain";
        call.keys = {Key::meta};
        call.args = {begin_ ? "1" : "0"};
        call.shard = shard_;
        send(std::move(call), static_cast<Handler>(&Drain::on_drained));
    }

    void on_drained(const redisReply *)
    {
        if (++shard_ == link_.shards()) {
            finish();
            return;
        }
        begin();
    }

    const bool begin_;
    unsigned shard_ = 0;
};

// Where the numbers of lawn_stats go; some add up.
struct Sum {
    const char *name;
    uint64_t lawn_durable_stats_t::*field;
};

constexpr Sum sums[] = {
    {"pending", &lawn_durable_stats_t::pending},
    {"due", &lawn_durable_stats_t::due},
    {"delivered", &lawn_durable_stats_t::in_flight},
    {"dead_letters", &lawn_durable_stats_t::dead},
    {"bytes", &lawn_durable_stats_t::payload_bytes},
    {"started", &lawn_durable_stats_t::started},
    {"stopped", &lawn_durable_stats_t::stopped},
    {"fired", &lawn_durable_stats_t::fired},
    {"success", &lawn_durable_stats_t::succeeded},
    {"fail", &lawn_durable_stats_t::failed},
    {"retried", &lawn_durable_stats_t::retried},
    {"dead", &lawn_durable_stats_t::died},
    {"missed", &lawn_durable_stats_t::missed},
    {"corrupt", &lawn_durable_stats_t::corrupt},
};

// Asks all shards at once.
class Statistics : public Request
{
public:
    Statistics(lawn_durable_t *durable, lawn_durable_stats_fn_t done, void *arg)
        : Request(durable), done_(done), arg_(arg)
    {
    }

private:
    void begin() override
    {
        stats_.shards = link_.shards();
        left_ = link_.shards();
        for (unsigned shard = 0; shard < link_.shards(); ++shard) {
            Call call;
            call.function = "lawn_stats";
            call.keys = {Key::due,  Key::body, Key::meta, Key::out,
                         Key::push, Key::dead, Key::cron};
            call.shard = shard;
            call.reads_only = true;
            send(std::move(call),
                 static_cast<Handler>(&Statistics::on_statistics));
        }
    }

    void on_statistics(const redisReply *reply)
    {
        Stats numbers;
        if (!decode(reply, &numbers)) {
            fail(LAWN_ERR_CORRUPT, not_ours);
            return;
        }
        for (const auto &[name, number] : numbers) {
            for (const Sum &sum : sums) {
                if (name == sum.name && number > 0) {
                    stats_.*(sum.field) += static_cast<uint64_t>(number);
                }
            }
        }
        finish_one();
    }

    void fail(lawn_status_t status, const char *error) override
    {
        stats_.status = status;
        error_ = error;
        if (left_ == 0) {
            left_ = 1; // the first call
        }
        finish_one();
    }

    void finish_one()
    {
        if (--left_ == 0) {
            stats_.error = stats_.status == LAWN_OK ? nullptr : error_.c_str();
            done_(arg_, &stats_);
        }
    }

    const lawn_durable_stats_fn_t done_;
    void *const arg_;
    lawn_durable_stats_t stats_ = {};
    std::string error_;
    unsigned left_ = 0;
};

// Makes a request and opens it. BUSY if too many are unanswered.
template <typename Kind, typename... Args>
lawn_status_t make(lawn_durable_t *durable, Args... args)
{
    return guarded([&] {
        if (!durable || durable->is_closing) {
            return LAWN_ERR_INVALID_PARAM;
        }
        if (durable->link->requests() >= durable->params.max_requests) {
            return LAWN_ERR_BUSY;
        }
        std::make_shared<Kind>(durable, args...)->open();
        return LAWN_OK;
    });
}

} // namespace

} // namespace lawn::durable

using namespace lawn::durable;

lawn_status_t lawn_durable_list(lawn_durable_t *durable,
                                lawn_durable_state_t state, uint64_t limit,
                                lawn_durable_item_fn_t each,
                                lawn_durable_fn_t done, void *arg)
{
    if (!each || state < LAWN_DURABLE_UNKNOWN || state > LAWN_DURABLE_DEAD) {
        return LAWN_ERR_INVALID_PARAM;
    }
    return make<List>(durable, state, limit, each, done, arg);
}

lawn_status_t lawn_durable_list_dead(lawn_durable_t *durable, uint64_t limit,
                                     lawn_durable_item_fn_t each,
                                     lawn_durable_fn_t done, void *arg)
{
    if (!each) {
        return LAWN_ERR_INVALID_PARAM;
    }
    return make<ListDead>(durable, limit, each, done, arg);
}

lawn_status_t lawn_durable_replay(lawn_durable_t *durable, const char *id,
                                  lawn_durable_fn_t done, void *arg)
{
    if (!id || !id_is_valid(id)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    return make<Replay>(durable, id, done, arg);
}

lawn_status_t lawn_durable_stats(lawn_durable_t *durable,
                                 lawn_durable_stats_fn_t done, void *arg)
{
    return done ? make<Statistics>(durable, done, arg) : LAWN_ERR_INVALID_PARAM;
}

lawn_status_t lawn_durable_drain(lawn_durable_t *durable, bool begin,
                                 lawn_durable_fn_t done, void *arg)
{
    return make<Drain>(durable, begin, done, arg);
}
