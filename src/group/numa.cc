// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Memory on NUMA nodes (lawn/numa.h), by system calls instead of a library.

#include "group/pages.h"

#include <lawn/numa.h>

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace lawn;

namespace
{

constexpr int most_nodes = 1024; // the most that Linux can be configured for
constexpr unsigned word_bits = 8 * sizeof(unsigned long);

size_t page_size()
{
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Asks the kernel to put the pages of [begin, end) on `node`, including pages
// that are not there yet. Returns false if it refuses. The node is only
// preferred: if it has no room, the next best is used.
bool bind(uintptr_t begin, uintptr_t end, int node)
{
    const unsigned bit = static_cast<unsigned>(node);
    unsigned long nodes[most_nodes / word_bits] = {};
    nodes[bit / word_bits] = 1UL << bit % word_bits;
    return syscall(SYS_mbind, begin, end - begin, MPOL_PREFERRED, nodes,
                   most_nodes + 1, MPOL_MF_MOVE) == 0;
}

} // namespace

size_t lawn::whole_pages(size_t size)
{
    return (size + page_size() - 1) & ~(page_size() - 1);
}

int lawn_numa_node(void)
{
    unsigned node = 0;
    return syscall(SYS_getcpu, nullptr, &node, nullptr) == 0
               ? static_cast<int>(node)
               : 0;
}

void *lawn_numa_alloc(size_t size, int node)
{
    const size_t bytes = whole_pages(size);
    if (bytes < size || bytes == 0) {
        return nullptr;
    }
    void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    if (node >= 0) {
        const int error = errno;
        lawn_numa_move(memory, bytes, node);
        errno = error; // on failure, the first touch decides
    }
    return memory;
}

void lawn_numa_free(void *memory, size_t size)
{
    if (memory) {
        munmap(memory, whole_pages(size));
    }
}

lawn_status_t lawn_numa_move(void *memory, size_t size, int node)
{
    if (!memory || node < 0) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (node >= most_nodes) {
        return LAWN_ERR_UNSUPPORTED;
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t begin = whole_pages(address);
    const uintptr_t end = (address + size) & ~(page_size() - 1);
    if (begin >= end || bind(begin, end, node)) {
        return LAWN_OK;
    }
    return errno == ENOSYS || errno == EINVAL || errno == EPERM
               ? LAWN_ERR_UNSUPPORTED
               : LAWN_ERR_IO;
}

int lawn_numa_node_of(const void *memory)
{
    void *page = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(memory) &
                                          ~(page_size() - 1));
    int status = -1;
    return syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &status, 0) == 0 &&
                   status >= 0
               ? status
               : -1;
}
