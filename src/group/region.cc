// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The memory that moves with a shard to another NUMA node: allocations in pages
// of their own (pages.h), and regions of the program.

#include "group/group_impl.h"
#include "group/pages.h"

using namespace lawn;

namespace
{

// The size of an allocation stands before it. The header is as large as the
// largest alignment that an allocation needs.
constexpr size_t header_size = 64;

void *alloc_pages(void *, size_t size)
{
    const size_t bytes = whole_pages(size + header_size);
    void *const memory = bytes > size ? lawn_numa_alloc(bytes, -1) : nullptr;
    if (!memory) {
        return nullptr;
    }
    *static_cast<size_t *>(memory) = bytes;
    return static_cast<char *>(memory) + header_size;
}

void release_pages(void *, void *memory)
{
    const lawn_region_t region = region_of(memory);
    lawn_numa_free(region.memory, region.size);
}

} // namespace

lawn_allocator_t lawn::page_allocator()
{
    return {alloc_pages, release_pages, nullptr};
}

lawn_region_t lawn::region_of(void *memory)
{
    void *const begin = static_cast<char *>(memory) - header_size;
    return {begin, *static_cast<size_t *>(begin), nullptr};
}

void lawn_shard_hold(lawn_shard_t *shard, lawn_region_t *region)
{
    const Locked locked(shard->group);
    region->next = shard->regions;
    shard->regions = region;
}

void lawn_shard_drop(lawn_shard_t *shard, lawn_region_t *region)
{
    const Locked locked(shard->group);
    lawn_region_t **link = &shard->regions;
    while (*link && *link != region) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = region->next;
    }
}
