// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Opening, polling and closing a namespace (lawn/durable.h).

#include "src/guard.h"
#include "src/handle.h"
#include "src/link_impl.h"
#include "src/refusal.h"

#include "base/base.h"

#include <algorithm>

using namespace lawn;
using namespace lawn::durable;

namespace
{

constexpr unsigned default_max_requests = 65536;
constexpr uint64_t default_timeout_us = 5000000;
constexpr uint64_t longest_timeout_us = uint64_t{86400} * 1000000;
constexpr uint64_t default_keep_us = uint64_t{3600} * 1000000;
constexpr uint64_t default_keep_count = 100000;
constexpr uint64_t largest_limit = 9000000000000000; // exact in a double

template <typename Number> void set_default(Number *number, Number value)
{
    if (*number == 0) {
        *number = value;
    }
}

bool check(const lawn_durable_params_t &params, std::string *error_p)
{
    const uint64_t limits[] = {params.max_pending, params.max_payload_bytes,
                               params.keep_us, params.keep_count};
    if (params.shards > LAWN_DURABLE_MAX_SHARDS) {
        *error_p = "the number of shards is more than 1024";
    } else if (params.connect_timeout_us > longest_timeout_us ||
               params.request_timeout_us > longest_timeout_us) {
        *error_p = "a time-out is longer than a day";
    } else if (std::any_of(std::begin(limits), std::end(limits),
                           [](uint64_t i) { return i > largest_limit; })) {
        *error_p = "a limit is too large";
    }
    return error_p->empty();
}

lawn_status_t open(const lawn_durable_params_t &params,
                   lawn_durable_t **durable_p, std::string *error_p)
{
    const char *const url_text =
        params.url ? params.url : "redis://127.0.0.1:6379";
    const char *const name_space =
        params.name_space ? params.name_space : "lawn";
    Url url;
    if (is_tls_url(url_text)) {
        parse_url(url_text, &url, error_p);
        return LAWN_ERR_UNSUPPORTED;
    }
    if (!parse_url(url_text, &url, error_p) ||
        !check_name_space(name_space, error_p) || !check(params, error_p)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    auto durable = std::make_unique<lawn_durable>();
    durable->params = params;
    durable->params.url = nullptr;
    durable->params.name_space = nullptr;
    set_default(&durable->params.max_requests, default_max_requests);
    set_default(&durable->params.connect_timeout_us, default_timeout_us);
    set_default(&durable->params.request_timeout_us, default_timeout_us);
    set_default(&durable->params.keep_us, default_keep_us);
    set_default(&durable->params.keep_count, default_keep_count);
    const lawn_status_t status = durable->loop.open();
    if (status != LAWN_OK) {
        *error_p = lawn_status_string(status);
        return status;
    }
    durable->link = std::make_unique<LinkImpl>(durable->loop, durable->params,
                                               name_space, url);
    *durable_p = durable.release();
    return LAWN_OK;
}

std::string &open_error()
{
    static thread_local std::string error;
    return error;
}

// The line that `make` returns, or NULL if it is empty.
template <typename Make>
const char *keep_line(std::string *kept, const Make &make)
{
    if (!attempt([&] { *kept = make(); })) {
        return "out of memory";
    }
    return kept->empty() ? nullptr : kept->c_str();
}

std::string &latest_refusal()
{
    static thread_local std::string why;
    return why;
}

} // namespace

lawn_status_t lawn_durable_open_sized(const lawn_durable_params_t *params,
                                      size_t size, lawn_durable_t **durable_p)
{
    return guarded([&] {
        std::string &error = open_error();
        error.clear();
        lawn_durable_params_t known;
        if (!durable_p) {
            error = "there is no place for the result";
            return LAWN_ERR_INVALID_PARAM;
        }
        if (!read_known(params, size, &known)) {
            error = "a parameter is set that this library does not know";
            return LAWN_ERR_UNSUPPORTED;
        }
        return open(known, durable_p, &error);
    });
}

const char *lawn_durable_open_error(void)
{
    return open_error().c_str();
}

void lawn::durable::keep_refusal(std::string_view why)
{
    if (!attempt([why] { latest_refusal() = why; })) {
        latest_refusal().clear();
    }
}

const char *lawn_durable_refusal(void)
{
    return latest_refusal().c_str();
}

void lawn_durable_close(lawn_durable_t *durable)
{
    if (!durable) {
        return;
    }
    const bool may_be_callback = durable->may_be_callback();
    LAWN_ASSERT(!may_be_callback);
    if (may_be_callback) {
        return;
    }
    durable->is_closing = true;
    while (!durable->attached.empty()) {
        delete durable->attached.front();
    }
    // What they have said last, such as answers of consumers.
    attempt([&] { durable->loop.flush_marked(); });
    Repeat::end_all(durable);
    // Not by reset(): those who are called back may still ask the link.
    delete durable->link.get();
    static_cast<void>(durable->link.release());
    delete durable;
}

int lawn_durable_fd(const lawn_durable_t *durable)
{
    return durable->loop.fd();
}

unsigned lawn_durable_poll(void *durable)
{
    lawn_durable_t *const self = static_cast<lawn_durable_t *>(durable);
    unsigned count = 1; // if it fails, the next poll goes on
    attempt([&] { count = self->may_be_callback() ? 0 : self->loop.poll(); });
    return count;
}

lawn_status_t lawn_durable_wait(lawn_durable_t *durable, uint64_t max_wait_us)
{
    return guarded([&] {
        return durable->may_be_callback()
                   ? refuse("it is called from a callback")
                   : durable->loop.wait(max_wait_us);
    });
}

const char *lawn_durable_error(const lawn_durable_t *durable)
{
    const char *result = "out of memory";
    attempt([&] {
        const char *error = durable->link->error();
        for (auto i = durable->attached.begin();
             !error && i != durable->attached.end(); ++i) {
            durable->error = (*i)->error();
            error = durable->error.empty() ? nullptr : durable->error.c_str();
        }
        result = error;
    });
    return result;
}

const char *lawn_durable_warning(const lawn_durable_t *durable)
{
    return keep_line(&durable->warning,
                     [durable] { return durable->link->warning(); });
}

const char *lawn_durable_losses(const lawn_durable_t *durable)
{
    return keep_line(&durable->losses,
                     [durable] { return durable->link->losses(); });
}

unsigned lawn_durable_shards(const lawn_durable_t *durable)
{
    return durable->link->shards();
}

int64_t lawn_durable_now(const lawn_durable_t *durable)
{
    return durable->link->store_time(0, durable->link->loop().now());
}

const char *lawn_durable_state_string(lawn_durable_state_t state)
{
    switch (state) {
    case LAWN_DURABLE_PENDING:
        return "pending";
    case LAWN_DURABLE_DELIVERED:
        return "delivered";
    case LAWN_DURABLE_SUCCESS:
        return "success";
    case LAWN_DURABLE_FAIL:
        return "fail";
    case LAWN_DURABLE_STOPPED:
        return "stopped";
    case LAWN_DURABLE_DEAD:
        return "dead";
    case LAWN_DURABLE_UNKNOWN:
        break;
    }
    return "unknown";
}
