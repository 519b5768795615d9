// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Who is told of all that is done to a lawn (lawn/observer.h). While there is
// somebody, the inline limit is 0, so that no inline function does anything
// alone.

#include "timer/lawn_impl.h"

using namespace lawn;

lawn_status_t lawn_observe(lawn_t *lawn, lawn_observer_t *observer)
{
    if (!lawn || !observer || !observer->event) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (is_busy(lawn) || lawn->observer) {
        return LAWN_ERR_BUSY;
    }
    lawn->observer = observer;
    reopen(impl_of(lawn));
    return LAWN_OK;
}

lawn_status_t lawn_unobserve(lawn_t *lawn, const lawn_observer_t *observer)
{
    if (!lawn || !observer || lawn->observer != observer) {
        return LAWN_ERR_NO_ELEM;
    }
    if (is_busy(lawn)) {
        return LAWN_ERR_BUSY;
    }
    lawn->observer = nullptr;
    reopen(impl_of(lawn));
    return LAWN_OK;
}
