/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/numa.h - memory on the NUMA node of the thread that uses it.
 *
 *     int node = lawn_numa_node();                   // where this thread runs
 *     void *timers = lawn_numa_alloc(size, node);
 *     lawn_numa_move(timers, size, other_node);      // when its user moves
 *     lawn_numa_free(timers, size);
 *
 * Use it for the memory that a worker's timers are in (lawn/group.h). It needs
 * no library, because it makes the system calls itself: mbind(2),
 * move_pages(2), getcpu(2). If the kernel knows no nodes, everything is on node
 * 0, memory is where it was first touched, and a move returns UNSUPPORTED and
 * changes nothing.
 *
 * Threads: any thread may call these functions. They are set-up functions,
 * because they call the kernel.
 */
#ifndef LAWN_NUMA_H
#define LAWN_NUMA_H

#include <lawn/base.h>

LAWN_BEGIN_DECLS

/* Returns the node of the processor that the calling thread runs on. */
LAWN_API int lawn_numa_node(void);

/* Returns whole, zero-filled pages of at least `size` bytes, on `node` if it
 * has room. If `node` is -1 or does not exist, each page is on the node where
 * it is first touched. Returns NULL if there is no memory, or if `size` is 0 or
 * too large to round up to pages. */
LAWN_API void *lawn_numa_alloc(size_t size, int node);

/* Frees memory from lawn_numa_alloc(), and no other. `size` is the size that
 * was asked for. NULL is ignored. */
LAWN_API void lawn_numa_free(void *memory, size_t size);

/* Moves the pages that lie wholly within `memory` to `node`. A page that was
 * not touched yet goes there when it is touched. Memory that cannot move stays
 * where it is. Returns INVALID_PARAM for NULL or a negative node. Returns
 * UNSUPPORTED if the kernel has no nodes, does not know this node, or forbids
 * the call. Returns IO otherwise, with errno. */
LAWN_API lawn_status_t lawn_numa_move(void *memory, size_t size, int node);

/* Returns the node that the byte at `memory` is on. Returns -1 if the byte was
 * never touched, or if the kernel does not tell. */
LAWN_API int lawn_numa_node_of(const void *memory);

LAWN_END_DECLS

#endif
