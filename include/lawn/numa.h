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
 * For the memory that a worker's timers are in (lawn/group.h). By the kernel's
 * own calls, so that no library is needed: mbind(2), move_pages(2), getcpu(2).
 * Where the kernel knows no nodes, everything is node 0, memory is where it was
 * first touched, and moving says UNSUPPORTED and changes nothing.
 *
 * Set-up functions: they call the kernel. Threads: any.
 */
#ifndef LAWN_NUMA_H
#define LAWN_NUMA_H

#include <lawn/base.h>

LAWN_BEGIN_DECLS

/* The node of the processor that the calling thread runs on. */
LAWN_API int lawn_numa_node(void);

/* Whole pages, zero-filled, at least `size` bytes, on `node` if it has room;
 * -1: where they are first touched. NULL when there is no memory, or size is 0.
 * A node that does not exist is as -1. */
LAWN_API void *lawn_numa_alloc(size_t size, int node);

/* Frees what lawn_numa_alloc() gave, with the size that was asked for. NULL
 * does nothing. */
LAWN_API void lawn_numa_free(void *memory, size_t size);

/* Brings the pages that lie wholly within `memory` to `node`, those that were
 * not touched yet when they are. Memory that cannot move stays where it is.
 * INVALID_PARAM for NULL or a negative node, UNSUPPORTED where there are no
 * nodes or not this one, IO otherwise, with errno. */
LAWN_API lawn_status_t lawn_numa_move(void *memory, size_t size, int node);

/* The node that the byte at `memory` is on; -1 when it was never touched, or
 * where the kernel does not tell. */
LAWN_API int lawn_numa_node_of(const void *memory);

LAWN_END_DECLS

#endif
