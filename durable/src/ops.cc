// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Start, stop, update, get and count (lawn/durable.h).

#include "base/base.h"
#include "src/codec.h"
#include "src/cron.h"
#include "src/guard.h"
#include "src/handle.h"
#include "src/refusal.h"
#include "src/url.h"

#include <time.h>

#include <algorithm>
#include <memory>

using namespace lawn;
using namespace lawn::durable;

namespace
{

constexpr uint64_t usec_per_msec = 1000;
constexpr uint64_t min_every_us = 10000; // pumps must be able to keep up

void tell(lawn_durable_fn_t done, void *arg,
          const lawn_durable_result_t &result)
{
    if (done) {
        done(arg, &result);
    }
}

// Answers with what `read` makes of the reply; false: it is not as it should
// be.
template <typename Read>
Done answer_with(lawn_durable_fn_t done, void *arg, const Read &read)
{
    return [done, arg, read](const Answer &answer) {
        lawn_durable_result_t result = {};
        result.status = answer.status;
        if (answer.status == LAWN_OK && !read(answer, &result)) {
            result = {};
            result.status = LAWN_ERR_CORRUPT;
            result.error = "the store's reply is not ours";
        } else if (result.status != LAWN_OK && !result.error) {
            result.error = answer.error;
        }
        tell(done, arg, result);
    };
}

lawn_status_t check_request(const lawn_durable_t *durable, const char *id)
{
    std::string error;
    if (durable->is_closing) {
        return refuse("the client is being closed");
    }
    if (!id) {
        return refuse("there is no id");
    }
    if (!check_id(id, &error)) {
        return refuse("the id " + error);
    }
    return durable->link->requests() < durable->params.max_requests
               ? LAWN_OK
               : LAWN_ERR_BUSY;
}

// What a start and an update have in common: why not; "" if they may be.
std::string refusal_of(int64_t due_us, uint64_t delay_us, const void *payload,
                       size_t size, int durability)
{
    if (due_us < 0 || due_us > max_time) {
        return "due_us is not from 0 to " + std::to_string(max_time);
    }
    if (delay_us > static_cast<uint64_t>(max_time)) {
        return "delay_us is more than " + std::to_string(max_time);
    }
    if (size > LAWN_DURABLE_MAX_PAYLOAD) {
        return "the payload has more than 65536 bytes";
    }
    if (!payload && size != 0) {
        return "the payload is NULL, and its size is not 0";
    }
    if (!check_durability(durability)) {
        return "there is no durability " + std::to_string(durability);
    }
    return "";
}

std::string_view view(const void *payload, size_t size)
{
    return {static_cast<const char *>(payload), size};
}

// The argument of lawn_start and lawn_update.
std::string when(int64_t due_us, uint64_t delay_us)
{
    return due_us != 0 ? std::to_string(due_us)
                       : "+" + std::to_string(delay_us);
}

// Rounds up. False: too long for 32 bits.
bool to_msec(uint64_t usec, uint32_t *msec_p)
{
    const uint64_t msec = usec / usec_per_msec + (usec % usec_per_msec != 0);
    *msec_p = static_cast<uint32_t>(msec);
    return msec <= UINT32_MAX;
}

// Why not; "" if they may be.
std::string read_options(const lawn_durable_start_t &start, Options *options)
{
    options->token = start.token;
    options->max_attempts = static_cast<uint16_t>(start.max_attempts);
    options->misfire = static_cast<uint8_t>(start.misfire);
    options->every_us = static_cast<int64_t>(start.every_us);
    options->cron = start.cron ? start.cron : "";
    options->zone = start.cron && start.zone ? start.zone : "";
    options->target = start.target ? start.target : "";
    std::string error;
    if (start.max_attempts > UINT16_MAX) {
        return "max_attempts is more than 65535";
    }
    if (static_cast<unsigned>(start.misfire) > LAWN_DURABLE_COALESCE) {
        return "there is no misfire policy " +
               std::to_string(static_cast<int>(start.misfire));
    }
    if (!to_msec(start.backoff_min_us, &options->backoff_min_ms) ||
        !to_msec(start.backoff_max_us, &options->backoff_max_ms) ||
        !to_msec(start.misfire_us, &options->misfire_ms)) {
        return "backoff_min_us, backoff_max_us or misfire_us is more than 49 "
               "days";
    }
    if (start.every_us != 0 && start.cron) {
        return "every_us and cron exclude each other";
    }
    if (start.every_us != 0 && start.every_us < min_every_us) {
        return "every_us is less than 10 ms";
    }
    if (start.every_us > static_cast<uint64_t>(max_time)) {
        return "every_us is more than " + std::to_string(max_time);
    }
    return start.target && !check_target(start.target, &error) ? error : "";
}

int64_t realtime_us()
{
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

// A cron timer takes its times from the store's clock, which is known when the
// request is sent. (Before the first answer of a node of a Cluster, that of
// another node, or this machine's, has to do: the first time only is by it.)
struct CronStart {
    lawn_durable_start_t start;
    Cron cron;
    std::string line;
    std::string zone;
    std::string payload;
    std::string target;
    Options options;
};

void complete(const Link &link, CronStart *cron, unsigned shard, Args *args)
{
    const lawn_time_t time = link.loop().now();
    int64_t now = link.store_time(shard, time);
    now = now != 0 ? now : link.store_time(0, time);
    now = now != 0 ? now : realtime_us();
    const lawn_durable_start_t &start = cron->start;
    int64_t due = start.due_us;
    if (due == 0 && start.delay_us != 0) {
        due = now + static_cast<int64_t>(start.delay_us);
    } else if (due == 0 && !cron->cron.next(now, &due)) {
        due = max_time; // beyond what can be stored
    }
    int64_t next = 0;
    cron->options.next_us = cron->cron.next(due, &next) ? next : 0;
    args->push_back(std::to_string(due));
    args->push_back(encode_tail(cron->options, cron->payload));
}

// The function that completes the arguments of a cron timer.
bool read_cron(const lawn_durable_t *durable, const lawn_durable_start_t &start,
               Options options,
               std::function<void(unsigned, Args *)> *complete_p,
               std::string *why)
{
    const auto cron = std::make_shared<CronStart>();
    cron->start = start;
    cron->line = start.cron;
    cron->zone = start.zone ? start.zone : "";
    cron->payload = view(start.payload, start.payload_size);
    cron->target = options.target;
    options.cron = cron->line;
    options.zone = cron->zone;
    options.target = cron->target;
    cron->options = options;
    const Link *const link = durable->link.get();
    *complete_p = [link, cron](unsigned shard, Args *args) {
        complete(*link, cron.get(), shard, args);
    };
    return cron->cron.parse(cron->line, cron->zone, why);
}

lawn_status_t start(lawn_durable_t *durable, const lawn_durable_start_t &start,
                    lawn_durable_fn_t done, void *arg)
{
    const lawn_status_t status = check_request(durable, start.id);
    Options options;
    if (status != LAWN_OK) {
        return status;
    }
    std::string why = refusal_of(start.due_us, start.delay_us, start.payload,
                                 start.payload_size, start.durability);
    why = why.empty() ? read_options(start, &options) : why;
    if (why.empty() && start.until_known && start.token == 0) {
        why = "until_known needs a token";
    }
    if (!why.empty()) {
        return refuse(why);
    }
    Call call = {};
    call.function = "lawn_start";
    call.tells_shards = true;
    call.keys = {Key::due, Key::body, Key::meta, Key::ended0, Key::ended1};
    call.joins = true;
    call.id = start.id;
    call.args = {start.id};
    call.durability = start.durability;
    if (start.cron) {
        if (!read_cron(durable, start, options, &call.prepare, &why)) {
            return refuse(why);
        }
    } else {
        call.args.push_back(when(start.due_us, start.delay_us));
        call.args.push_back(
            encode_tail(options, view(start.payload, start.payload_size)));
    }
    Done read = answer_with(
        done, arg, [](const Answer &answer, lawn_durable_result_t *result) {
            Started started;
            const bool is_good = decode(answer.reply, &started);
            result->state = static_cast<lawn_durable_state_t>(started.state);
            result->generation = started.generation;
            result->due_us = started.due_us;
            return is_good;
        });
    if (start.until_known) {
        Repeat::make(durable, std::move(call), std::move(read));
    } else {
        durable->link->call(std::move(call), std::move(read));
    }
    return LAWN_OK;
}

lawn_status_t update(lawn_durable_t *durable,
                     const lawn_durable_update_t &update,
                     lawn_durable_fn_t done, void *arg)
{
    const lawn_status_t status = check_request(durable, update.id);
    if (status != LAWN_OK) {
        return status;
    }
    const bool has_due = update.due_us != 0 || update.delay_us != 0;
    const std::string why =
        refusal_of(update.due_us, update.delay_us, update.payload,
                   update.payload_size, update.durability);
    if (!why.empty() || (!has_due && !update.set_payload)) {
        return refuse(why.empty() ? "the update changes nothing" : why);
    }
    Call call = {};
    call.function = "lawn_update";
    call.tells_shards = true;
    call.keys = {Key::due, Key::body, Key::meta};
    call.id = update.id;
    call.args = {update.id, std::to_string(update.generation),
                 has_due ? when(update.due_us, update.delay_us) : ""};
    call.durability = update.durability;
    if (update.set_payload) {
        call.args.emplace_back(view(update.payload, update.payload_size));
    }
    durable->link->call(
        std::move(call),
        answer_with(
            done, arg, [](const Answer &answer, lawn_durable_result_t *result) {
                Updated updated;
                const bool is_good = decode(answer.reply, &updated);
                result->generation = updated.generation;
                if (updated.updated) {
                    result->state = LAWN_DURABLE_PENDING;
                    result->due_us = updated.due_us;
                } else {
                    result->state =
                        static_cast<lawn_durable_state_t>(updated.state);
                    result->status = LAWN_ERR_NO_ELEM;
                    result->error = "it is not pending with that generation";
                }
                return is_good;
            }));
    return LAWN_OK;
}

bool read_got(const Answer &answer, lawn_durable_result_t *result)
{
    Got got;
    if (!decode(answer.reply, &got)) {
        return false;
    }
    result->state = static_cast<lawn_durable_state_t>(got.state);
    if (got.state == LAWN_DURABLE_PENDING ||
        got.state == LAWN_DURABLE_DELIVERED) {
        result->generation = got.body.generation;
        result->due_us = got.body.due_us;
        result->attempt = got.body.attempt;
        result->payload = got.body.payload.data();
        result->payload_size = got.body.payload.size();
    } else if (got.state != LAWN_DURABLE_UNKNOWN) {
        result->generation = got.end.generation;
        result->due_us = got.end.due_us;
        result->attempt = got.end.attempt;
    }
    return true;
}

// The sum over all shards. The first failure is the result's.
struct Count {
    lawn_durable_fn_t done;
    void *arg;
    unsigned missing = 0;
    uint64_t sum = 0;
    lawn_status_t status = LAWN_OK;
    std::string error;
};

void add(Count *count, const Answer &answer)
{
    if (count->missing == 0) {
        return; // it was told that there is no memory for the rest
    }
    if (answer.status != LAWN_OK) {
        count->status = answer.status;
        attempt([&] { count->error = answer.error; });
    } else if (answer.reply->type != REDIS_REPLY_INTEGER ||
               answer.reply->integer < 0) {
        count->status = LAWN_ERR_CORRUPT;
        count->error = "the store's reply is not ours";
    } else {
        count->sum += static_cast<uint64_t>(answer.reply->integer);
    }
    if (--count->missing == 0) {
        lawn_durable_result_t result = {};
        result.status = count->status;
        result.error =
            count->status == LAWN_OK ? nullptr : count->error.c_str();
        result.count = count->status == LAWN_OK ? count->sum : 0;
        tell(count->done, count->arg, result);
    }
}

void count_shards(Link *link, const std::shared_ptr<Count> &count)
{
    count->missing = link->shards();
    for (unsigned i = 0; i < link->shards(); ++i) {
        Call call;
        call.function = "lawn_count";
        call.keys = {Key::due, Key::body, Key::cron};
        call.shard = i;
        call.reads_only = true;
        link->call(std::move(call),
                   [count](const Answer &answer) { add(count.get(), answer); });
    }
}

} // namespace

lawn_status_t lawn_durable_start_sized(lawn_durable_t *durable,
                                       const lawn_durable_start_t *params,
                                       size_t size, lawn_durable_fn_t done,
                                       void *arg)
{
    return guarded([&] {
        lawn_durable_start_t known;
        return read_known(params, size, &known)
                   ? start(durable, known, done, arg)
                   : LAWN_ERR_UNSUPPORTED;
    });
}

lawn_status_t lawn_durable_update_sized(lawn_durable_t *durable,
                                        const lawn_durable_update_t *params,
                                        size_t size, lawn_durable_fn_t done,
                                        void *arg)
{
    return guarded([&] {
        lawn_durable_update_t known;
        return read_known(params, size, &known)
                   ? update(durable, known, done, arg)
                   : LAWN_ERR_UNSUPPORTED;
    });
}

lawn_status_t lawn_durable_stop(lawn_durable_t *durable, const char *id,
                                int durability, lawn_durable_fn_t done,
                                void *arg)
{
    return guarded([&] {
        const lawn_status_t status = check_request(durable, id);
        if (status != LAWN_OK) {
            return status;
        }
        if (!check_durability(durability)) {
            return refuse("there is no durability " +
                          std::to_string(durability));
        }
        Call call = {};
        call.function = "lawn_stop";
        call.tells_shards = true;
        call.keys = {Key::due, Key::body, Key::meta, Key::ended0, Key::ended1};
        call.id = id;
        call.args = {id};
        call.durability = durability;
        durable->link->call(
            std::move(call),
            answer_with(
                done, arg,
                [](const Answer &answer, lawn_durable_result_t *result) {
                    Stopped stopped;
                    const bool is_good = decode(answer.reply, &stopped);
                    result->state =
                        static_cast<lawn_durable_state_t>(stopped.state);
                    result->generation = stopped.generation;
                    return is_good;
                }));
        return LAWN_OK;
    });
}

lawn_status_t lawn_durable_get(lawn_durable_t *durable, const char *id,
                               lawn_durable_fn_t done, void *arg)
{
    return guarded([&] {
        const lawn_status_t status = check_request(durable, id);
        if (status != LAWN_OK) {
            return status;
        }
        Call call = {};
        call.function = "lawn_get";
        call.tells_shards = true;
        call.keys = {Key::due, Key::body, Key::meta, Key::ended0, Key::ended1};
        call.id = id;
        call.args = {id};
        call.reads_only = true;
        durable->link->call(std::move(call), answer_with(done, arg, read_got));
        return LAWN_OK;
    });
}

lawn_status_t lawn_durable_count(lawn_durable_t *durable,
                                 lawn_durable_fn_t done, void *arg)
{
    return guarded([&] {
        const lawn_status_t status = check_request(durable, "-");
        if (status != LAWN_OK) {
            return status;
        }
        const auto count = std::make_shared<Count>();
        count->done = done;
        count->arg = arg;
        // How many shards there are is known when this is answered.
        Call call = {};
        call.function = "lawn_version";
        call.reads_only = true;
        Link *const link = durable->link.get();
        link->call(std::move(call), [link, count](const Answer &answer) {
            if (answer.status == LAWN_OK) {
                count_shards(link, count);
            } else {
                count->missing = 1;
                add(count.get(), answer);
            }
        });
        return LAWN_OK;
    });
}
