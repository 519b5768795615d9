// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A shard's memory where it may move to another NUMA node: pages of its own.

#ifndef LAWN_SRC_GROUP_PAGES_H
#define LAWN_SRC_GROUP_PAGES_H

#include "base/base.h"

#include <lawn/group.h>

namespace lawn
{

// Up to the next border of a page; less than `size` when that overflows.
size_t whole_pages(size_t size);

// Each allocation in pages of its own.
lawn_allocator_t page_allocator();

// The pages of what that has allocated.
lawn_region_t region_of(void *memory);

} // namespace lawn

#endif
