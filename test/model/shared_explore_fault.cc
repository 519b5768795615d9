// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "shared_explore_fault.h"

#include "shared/box.h"

namespace shared_explore
{

uint64_t Weakness::access(const Access &access, const Context &context)
{
    const unsigned thread = explorer_->running();
    if (!fault_ || thread == nobody) {
        return explorer_->access(access);
    }
    if (access.kind == fault_->kind && context.field == fault_->field &&
        context.what == fault_->what) {
        return weak(access, context);
    }
    const uint64_t was = explorer_->access(access);
    Access &late = late_[thread];
    if (late.at && access.kind == fault_->until &&
        context.field == fault_->until_field) {
        const Access then = late;
        late.at = nullptr;
        explorer_->access(then);
    }
    return was;
}

uint64_t Weakness::split(Access access, Kind kind)
{
    const uint64_t value = access.value;
    const Kind was_kind = access.kind;
    access.kind = Kind::load;
    const uint64_t was = explorer_->access(access);
    explorer_->remember(was);
    if (was_kind == Kind::swap && was != access.expected) {
        return was;
    }
    access.kind = kind;
    access.value = was_kind == Kind::set     ? was | value
                   : was_kind == Kind::clear ? was & ~value
                   : was_kind == Kind::add   ? was + value
                                             : value;
    explorer_->access(access);
    return was;
}

uint64_t Weakness::weak(Access access, const Context &context)
{
    switch (fault_->how) {
    case How::buffered:
        access.kind = Kind::put;
        return explorer_->access(access);
    case How::split:
        return split(access, Kind::store);
    case How::split_put:
        return split(access, Kind::put);
    case How::late:
        // Not what undoes it: null in `running`, one user less.
        if (access.value == 0 ||
            (access.kind == Kind::add && access.value != 1)) {
            return explorer_->access(access);
        }
        late_[explorer_->running()] = access;
        access.kind = Kind::load;
        return explorer_->access(access);
    case How::lost:
        access.kind = Kind::load;
        return explorer_->access(access);
    case How::zero:
        explorer_->access(access);
        return 0;
    case How::stale:
        explorer_->access(access);
        return context.cover;
    case How::own:
        explorer_->access(access);
        return context.deadline;
    case How::untagged:
        access.value &= ~uint64_t{lawn::tags};
        return explorer_->access(access);
    case How::alive:
        return explorer_->access(access) & ~uint64_t{lawn::retired};
    }
    return 0;
}

} // namespace shared_explore
