// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests of operators. Each goes through the shards with one call after the
// other. How many shards there are is known when the store has answered a first
// call, so each begins with one.

#ifndef LAWN_SRC_DURABLE_ADMIN_H
#define LAWN_SRC_DURABLE_ADMIN_H

#include "src/codec.h"
#include "src/guard.h"
#include "src/handle.h"
#include "src/refusal.h"

#include <memory>
#include <utility>

namespace lawn::durable
{

constexpr unsigned page = 200; // entries of one call

constexpr const char *not_ours = "the store's reply is not as it should be";

// A request that makes calls one after the other. Each call's function keeps it
// alive.
class AdminRequest : public std::enable_shared_from_this<AdminRequest>
{
public:
    AdminRequest(lawn_durable_t *durable) : link_(*durable->link)
    {
    }
    virtual ~AdminRequest() = default;

    void open()
    {
        Call call;
        call.function = "lawn_version";
        call.reads_only = true;
        send(std::move(call), &AdminRequest::on_open);
    }

protected:
    using Handler = void (AdminRequest::*)(const redisReply *reply);

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
class PlainRequest : public AdminRequest
{
public:
    PlainRequest(lawn_durable_t *durable, lawn_durable_fn_t done, void *arg)
        : AdminRequest(durable), done_(done), arg_(arg)
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

// Makes a request and opens it. BUSY if too many are unanswered.
template <typename Kind, typename... Args>
lawn_status_t make(lawn_durable_t *durable, Args... args)
{
    return guarded([&] {
        if (!durable || durable->is_closing) {
            return refuse("there is no client, or it is being closed");
        }
        if (durable->link->requests() >= durable->params.max_requests) {
            return LAWN_ERR_BUSY;
        }
        std::make_shared<Kind>(durable, args...)->open();
        return LAWN_OK;
    });
}

} // namespace lawn::durable

#endif
