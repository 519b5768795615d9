// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Creates and destroys a lawn.

#include "timer/lawn_impl.h"

using namespace lawn;

namespace
{

// In debug builds, brings each later call to an assertion: the inline functions
// leave everything to the library, from where it is.
void end_lawn([[maybe_unused]] Lawn *lawn)
{
#ifndef NDEBUG
    *const_cast<volatile lawn_time_t *>(&lawn->inline_limit) = 0;
    *const_cast<volatile lawn_time_t *>(&lawn->next) = 0;
    end_life(&lawn->usage);
#endif
}

} // namespace

lawn_status_t lawn_create(const lawn_params_t *params, lawn_t **lawn_p)
{
    static const lawn_params_t defaults = {};
    params = params ? params : &defaults;
    if (!lawn_p || !allocator_is_valid(params->allocator)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    void *const memory =
        allocate(params->allocator, sizeof(Lawn) + alignof(Lawn));
    if (!memory) {
        return LAWN_ERR_NO_MEMORY;
    }
    const uintptr_t end = reinterpret_cast<uintptr_t>(memory) + alignof(Lawn);
    Lawn *const lawn = reinterpret_cast<Lawn *>(end - end % alignof(Lawn));
    *lawn = {};
    lawn->memory = memory;
    lawn->allocator = params->allocator;
    lawn->due_check = open_limit;
    lawn->due = {&lawn->due, &lawn->due};
    for (lawn_link_t &slot : lawn->slots) {
        slot = {&slot, &slot};
    }
    for (Kind &kind : lawn->kinds) {
        kind.expired = on_alarm;
    }
    begin_life(&lawn->usage);
    reopen(lawn);
    *lawn_p = lawn;
    return LAWN_OK;
}

void lawn_destroy(lawn_t *handle)
{
    if (!handle) {
        return;
    }
    assert_usable(handle);
    LAWN_ASSERT(!is_busy(handle));
    if (is_busy(handle)) {
        return;
    }
    handle->observer = nullptr;
    lawn_drain(handle, nullptr);
    Lawn *const lawn = impl_of(handle);
    const lawn_allocator_t allocator = lawn->allocator;
    while (Queue *const queue = lawn->queues) {
        lawn->queues = queue->next;
        if (queue->is_owned) {
            release(allocator, queue);
        }
    }
    end_lawn(lawn);
    release(allocator, lawn->memory);
}
