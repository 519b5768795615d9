// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structure behind lawn_durable_t, and what consumers and pumps have in
// common.

#ifndef LAWN_SRC_DURABLE_HANDLE_H
#define LAWN_SRC_DURABLE_HANDLE_H

#include "src/guard.h"
#include "src/link.h"
#include "src/repeat.h"

#include <algorithm>
#include <list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lawn::durable
{

// What lawn_durable_close() closes: consumers and pumps. They add themselves to
// `attached`, and their destructors take them out.
class Attached
{
public:
    virtual ~Attached() = default;
    // A line that says what keeps it from its work; "" if nothing does.
    virtual std::string error() const = 0;
};

// True: it goes on until somebody mends the store, or its settings. Other
// failures pass, or keep the whole client from its work, which the link tells.
inline bool is_lasting(const Answer &answer)
{
    const std::string_view error = answer.error ? answer.error : "";
    const auto begins = [error](std::string_view text) {
        return error.compare(0, text.size(), text) == 0;
    };
    if (answer.status == LAWN_ERR_TIMED_OUT && begins(not_done_in_time)) {
        // A refusal that passes, such as Redis's BUSY, is waited for: here it
        // has not passed. A server's refusal begins with a word in capitals,
        // and what we say of connections does not.
        const size_t why = sizeof(not_done_in_time) + 1; // behind ": "
        return why < error.size() && error[why] >= 'A' && error[why] <= 'Z';
    }
    return answer.status == LAWN_ERR_CORRUPT ||
           answer.status == LAWN_ERR_INVALID_PARAM ||
           answer.status == LAWN_ERR_UNSUPPORTED ||
           (answer.status != LAWN_OK && (begins("MISCONF") || begins("ERR ")));
}

} // namespace lawn::durable

struct lawn_durable {
    lawn_durable() = default;
    explicit lawn_durable(lawn::durable::Loop::Clock clock) : loop(clock)
    {
    }

    // A function of the program may be running that was called from here.
    bool may_be_callback() const
    {
        return loop.is_polling() || is_closing || is_closing_part;
    }

    lawn_durable_params_t params = {}; // without pointers; defaults filled in
    lawn::durable::Loop loop;
    std::unique_ptr<lawn::durable::Link> link;
    std::vector<lawn::durable::Attached *> attached;
    std::list<std::unique_ptr<lawn::durable::Repeat>> repeats;
    bool is_closing = false;      // lawn_durable_close() is running
    bool is_closing_part = false; // a consumer or a pump is being closed
    mutable std::string error;    // what lawn_durable_error() points to
    mutable std::string warning;  // and lawn_durable_warning()
    mutable std::string losses;   // and lawn_durable_losses()
    // What the results of the functions ending in `_sync` point to.
    std::string sync_error;
    std::string sync_payload;
};

namespace lawn::durable
{

// A consumer or a pump. It may outlive its handle to the end of a poll, as it
// may be closed from within its own callbacks.
template <typename Core>
class Attachable : public std::enable_shared_from_this<Core>
{
public:
    // Is never freed: without memory, nobody can do so after the poll in which
    // it was closed.
    void stay()
    {
        kept_ = this->shared_from_this();
    }

private:
    std::shared_ptr<Core> kept_;
};

// The program's handle of one.
template <typename Core> class Handle : public Attached
{
public:
    template <typename... Args>
    explicit Handle(lawn_durable_t *durable, Args &&...args)
        : core(std::make_shared<Core>(durable, std::forward<Args>(args)...)),
          durable_(durable)
    {
        durable_->attached.push_back(this);
        if (!attempt([this] { core->open(); })) {
            detach();
            throw std::bad_alloc();
        }
    }

    ~Handle() override
    {
        detach();
        const Within closing(&durable_->is_closing_part);
        core->close();
        if (durable_->loop.is_polling() &&
            !attempt([this] { durable_->loop.defer([keep = core] {}); })) {
            core->stay();
        }
    }

    std::string error() const override
    {
        return core->error();
    }

    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;

    const std::shared_ptr<Core> core;

private:
    void detach()
    {
        std::vector<Attached *> &all = durable_->attached;
        all.erase(std::find(all.begin(), all.end(), this));
    }

    lawn_durable_t *const durable_;
};

} // namespace lawn::durable

#endif
