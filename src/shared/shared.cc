// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of lawn/shared.h, by the steps of shared_ops.h.

#include "shared/shared_ops.h"

#include "base/forks.h"
#include "base/usage.h"

namespace lawn
{

namespace
{

void on_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_shared_t *const shared = SharedOps::of(timer);
    __atomic_store_n(&shared->box->runner, this_thread(), __ATOMIC_RELAXED);
    SharedOps::expire(shared, now);
}

void on_drain(lawn_timer_t *timer)
{
    SharedOps::uncover(SharedOps::of(timer));
}

} // namespace

} // namespace lawn

using namespace lawn;

lawn_status_t lawn_box_create(lawn_t *lawn, lawn_box_t **box_p)
{
    if (!lawn || !box_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (!count_forks()) {
        return LAWN_ERR_NO_MEMORY;
    }
    lawn_box_t *const box =
        static_cast<lawn_box_t *>(allocate(allocator_of(lawn), sizeof(*box)));
    if (!box) {
        return LAWN_ERR_NO_MEMORY;
    }
    SharedOps::open(box, lawn, on_expired, on_drain);
    *box_p = box;
    return LAWN_OK;
}

void lawn_box_destroy(lawn_box_t *box)
{
    if (!box) {
        return;
    }
    LAWN_ASSERT(box->busy == 0);
    if (box->busy != 0) {
        return;
    }
    SharedOps::destroy(box, on_expired);
}

unsigned lawn_box_drain(lawn_box_t *box, lawn_time_t now, unsigned budget)
{
    if (LAWN_LIKELY(__atomic_load_n(&box->head, __ATOMIC_RELAXED) == 0 &&
                    !box->taken)) {
        return 0;
    }
    return SharedOps::drain(box, now, budget);
}

bool lawn_box_sleep(lawn_box_t *box, lawn_time_t until)
{
    return SharedOps::sleep(box, until);
}

void lawn_box_on_wake(lawn_box_t *box, void (*wake)(void *arg), void *arg)
{
    box->wake = wake;
    box->wake_arg = arg;
}

void lawn_shared_init(lawn_shared_t *timer, lawn_box_t *box,
                      lawn_shared_fn_t expired)
{
    SharedOps::init(timer, box, on_expired, expired);
}

bool lawn_shared_start(lawn_shared_t *timer, lawn_time_t deadline)
{
    LAWN_ASSERT((Atomics::load(&timer->flags) & retired) == 0);
    return SharedOps::start(timer, deadline);
}

bool lawn_shared_start_slow(lawn_shared_t *timer, lawn_time_t deadline)
{
    LAWN_ASSERT((Atomics::load(&timer->flags) & retired) == 0);
    return SharedOps::start_local(timer, deadline);
}

bool lawn_shared_stop(lawn_shared_t *timer)
{
    return SharedOps::stop(timer);
}

void lawn_shared_sync(lawn_shared_t *timer)
{
    const lawn_box_t *const box = timer->box;
    // A callback of the parent has never ended in the child of a fork, where a
    // new thread may have the parent's number.
    const bool is_own =
        Atomics::load(&box->running) == timer &&
        __atomic_load_n(&box->runner, __ATOMIC_RELAXED) == this_thread() &&
        __atomic_load_n(&box->running_in, __ATOMIC_RELAXED) == forks;
    LAWN_ASSERT(!is_own);
    if (!is_own) {
        SharedOps::sync(timer);
    }
}

void lawn_shared_retire(lawn_shared_t *timer, lawn_shared_fn_t released)
{
    LAWN_ASSERT((Atomics::load(&timer->flags) & retired) == 0);
    SharedOps::retire(timer, released);
}
