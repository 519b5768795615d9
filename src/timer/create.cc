// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Creates and destroys a lawn.

#include "timer/lawn_impl.h"

using namespace lawn;

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
    reopen(lawn);
    *lawn_p = lawn;
    return LAWN_OK;
}

void lawn_destroy(lawn_t *handle)
{
    LAWN_ASSERT(!handle || !is_busy(handle));
    if (!handle || is_busy(handle)) {
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
    release(allocator, lawn->memory);
}
