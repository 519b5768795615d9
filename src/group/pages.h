// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The memory of a shard that may move to another NUMA node: it has pages of its
// own, because only whole pages move.

#ifndef LAWN_SRC_GROUP_PAGES_H
#define LAWN_SRC_GROUP_PAGES_H

#include "base/base.h"

#include <lawn/group.h>

namespace lawn
{

// Rounds `size` up to whole pages. If that overflows, the result is less than
// `size`.
size_t whole_pages(size_t size);

// Its allocations have pages of their own.
lawn_allocator_t page_allocator();

// The pages of `memory`, which page_allocator() has allocated.
lawn_region_t region_of(void *memory);

} // namespace lawn

#endif
