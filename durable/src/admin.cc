// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What operators ask for: the list of timers, statistics, draining, and
// acknowledging a loss.

#include "src/admin.h"

#include <optional>

namespace lawn::durable
{

namespace
{

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
        call.keys = {Key::due,    Key::body,   Key::meta,
                     Key::ended0, Key::ended1, Key::cron};
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

// The same call for each shard.
class ForEachShard : public PlainRequest
{
public:
    ForEachShard(lawn_durable_t *durable, Call call, lawn_durable_fn_t done,
                 void *arg)
        : PlainRequest(durable, done, arg), call_(std::move(call))
    {
    }

private:
    void begin() override
    {
        send(call_, static_cast<Handler>(&ForEachShard::on_done));
    }

    void on_done(const redisReply *)
    {
        if (++call_.shard == link_.shards()) {
            finish();
            return;
        }
        begin();
    }

    Call call_;
};

// Where the numbers of lawn_stats go; some add up.
struct Sum {
    const char *name;
    uint64_t lawn_durable_stats_t::*field;
};

constexpr Sum sums[] = {
    {"pending", &lawn_durable_stats_t::pending},
    {"due", &lawn_durable_stats_t::due},
    {"out_in_flight", &lawn_durable_stats_t::in_flight},
    {"push_in_flight", &lawn_durable_stats_t::in_flight},
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
    {"superseded", &lawn_durable_stats_t::superseded},
    {"deferred", &lawn_durable_stats_t::deferred},
    {"entries", &lawn_durable_stats_t::entries},
    {"dropped_letters", &lawn_durable_stats_t::dropped_letters},
};

// Asks one shard, or all at once.
class Statistics : public AdminRequest
{
public:
    Statistics(lawn_durable_t *durable, std::optional<unsigned> only,
               lawn_durable_stats_fn_t done, void *arg)
        : AdminRequest(durable), only_(only), done_(done), arg_(arg)
    {
    }

private:
    void begin() override
    {
        stats_.shards = link_.shards();
        unsigned next = only_.value_or(0);
        if (next >= link_.shards()) {
            fail(LAWN_ERR_INVALID_PARAM, "there are not so many shards");
            return;
        }
        const unsigned end = only_ ? next + 1 : link_.shards();
        left_ = end - next;
        while (next < end && attempt([&] { ask(next); })) {
            ++next;
        }
        for (; next < end; ++next) {
            fail(LAWN_ERR_NO_MEMORY, no_memory);
        }
    }

    void ask(unsigned shard)
    {
        Call call;
        call.function = "lawn_stats";
        call.keys = {Key::due,  Key::body, Key::meta, Key::out,
                     Key::push, Key::dead, Key::cron};
        call.shard = shard;
        call.reads_only = true;
        send(std::move(call), static_cast<Handler>(&Statistics::on_statistics));
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

    const std::optional<unsigned> only_;
    const lawn_durable_stats_fn_t done_;
    void *const arg_;
    lawn_durable_stats_t stats_ = {};
    std::string error_;
    unsigned left_ = 0;
};

} // namespace

} // namespace lawn::durable

using namespace lawn::durable;

lawn_status_t lawn_durable_list(lawn_durable_t *durable,
                                lawn_durable_state_t state, uint64_t limit,
                                lawn_durable_item_fn_t each,
                                lawn_durable_fn_t done, void *arg)
{
    if (!each) {
        return refuse("there is no function for the timers");
    }
    if (state < LAWN_DURABLE_UNKNOWN || state > LAWN_DURABLE_DEAD) {
        return refuse("there is no such state");
    }
    return make<List>(durable, state, limit, each, done, arg);
}

lawn_status_t lawn_durable_stats(lawn_durable_t *durable,
                                 lawn_durable_stats_fn_t done, void *arg)
{
    return done ? make<Statistics>(durable, std::nullopt, done, arg)
                : refuse("there is no function for the statistics");
}

lawn_status_t lawn_durable_shard_stats(lawn_durable_t *durable, unsigned shard,
                                       lawn_durable_stats_fn_t done, void *arg)
{
    return done ? make<Statistics>(durable, shard, done, arg)
                : refuse("there is no function for the statistics");
}

lawn_status_t lawn_durable_drain(lawn_durable_t *durable, bool begin,
                                 lawn_durable_fn_t done, void *arg)
{
    return guarded([&] {
        Call call;
        call.function = "lawn_drain";
        call.keys = {Key::meta};
        call.args = {begin ? "1" : "0"};
        return make<ForEachShard>(durable, call, done, arg);
    });
}

lawn_status_t lawn_durable_acknowledge(lawn_durable_t *durable,
                                       lawn_durable_fn_t done, void *arg)
{
    return guarded([&] {
        Call call;
        call.function = "lawn_acknowledge";
        call.keys = {Key::due, Key::body, Key::meta,
                     Key::out, Key::push, Key::cron};
        return make<ForEachShard>(durable, call, done, arg);
    });
}
