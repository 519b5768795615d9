// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The functions that wait for their answer (lawn/durable.h).

#include "base/base.h"
#include "src/guard.h"
#include "src/handle.h"
#include "src/refusal.h"

using namespace lawn;
using namespace lawn::durable;

namespace
{

struct Waiter {
    lawn_durable_t *durable;
    lawn_durable_result_t result;
    bool is_answered;
};

// Keeps what the result points to.
void on_answer(void *arg, const lawn_durable_result_t *result)
{
    Waiter *const waiter = static_cast<Waiter *>(arg);
    lawn_durable_t *const durable = waiter->durable;
    waiter->is_answered = true;
    waiter->result = *result;
    try {
        durable->sync_error = result->error ? result->error : "";
        durable->sync_payload.assign(static_cast<const char *>(result->payload),
                                     result->payload_size);
    } catch (const std::exception &) {
        waiter->result = {};
        waiter->result.status = LAWN_ERR_NO_MEMORY;
        return;
    }
    if (result->error) {
        waiter->result.error = durable->sync_error.c_str();
    }
    if (result->payload) {
        waiter->result.payload = durable->sync_payload.data();
    }
}

template <typename Begin>
lawn_status_t wait_for(lawn_durable_t *durable, lawn_durable_result_t *result_p,
                       size_t result_size, const Begin &begin)
{
    Waiter waiter = {durable, {}, false};
    if (durable->may_be_callback()) {
        waiter.result.status = refuse("it is called from a callback");
    } else {
        waiter.result.status = begin(&waiter);
        const bool is_begun = waiter.result.status == LAWN_OK;
        while (is_begun && !waiter.is_answered) {
            lawn_durable_wait(durable, UINT64_MAX);
        }
    }
    if (waiter.result.status != LAWN_OK && !waiter.result.error) {
        waiter.result.error = waiter.result.status == LAWN_ERR_INVALID_PARAM
                                  ? lawn_durable_refusal()
                                  : lawn_status_string(waiter.result.status);
    }
    if (result_p) {
        copy_known(result_p, result_size, &waiter.result,
                   sizeof(waiter.result));
    }
    return waiter.result.status;
}

} // namespace

lawn_status_t lawn_durable_start_sync_sized(lawn_durable_t *durable,
                                            const lawn_durable_start_t *start,
                                            size_t size,
                                            lawn_durable_result_t *result_p,
                                            size_t result_size)
{
    return wait_for(durable, result_p, result_size, [&](Waiter *waiter) {
        return lawn_durable_start_sized(durable, start, size, on_answer,
                                        waiter);
    });
}

lawn_status_t lawn_durable_update_sync_sized(
    lawn_durable_t *durable, const lawn_durable_update_t *update, size_t size,
    lawn_durable_result_t *result_p, size_t result_size)
{
    return wait_for(durable, result_p, result_size, [&](Waiter *waiter) {
        return lawn_durable_update_sized(durable, update, size, on_answer,
                                         waiter);
    });
}

lawn_status_t lawn_durable_stop_sync_sized(lawn_durable_t *durable,
                                           const char *id, int durability,
                                           lawn_durable_result_t *result_p,
                                           size_t result_size)
{
    return wait_for(durable, result_p, result_size, [&](Waiter *waiter) {
        return lawn_durable_stop(durable, id, durability, on_answer, waiter);
    });
}

lawn_status_t lawn_durable_get_sync_sized(lawn_durable_t *durable,
                                          const char *id,
                                          lawn_durable_result_t *result_p,
                                          size_t result_size)
{
    return wait_for(durable, result_p, result_size, [&](Waiter *waiter) {
        return lawn_durable_get(durable, id, on_answer, waiter);
    });
}

lawn_status_t lawn_durable_count_sync_sized(lawn_durable_t *durable,
                                            lawn_durable_result_t *result_p,
                                            size_t result_size)
{
    return wait_for(durable, result_p, result_size, [&](Waiter *waiter) {
        return lawn_durable_count(durable, on_answer, waiter);
    });
}
