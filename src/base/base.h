// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the sources share: assertions, branch hints, memory.

#ifndef LAWN_SRC_BASE_BASE_H
#define LAWN_SRC_BASE_BASE_H

#include <lawn/base.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Misuse by the programmer: an assertion in debug builds, defined behaviour in
// release builds (NDEBUG), stated at each function.
#define LAWN_ASSERT(condition) assert(condition)

// Keeps what is rare, and the registers it would save, out of a hot function.
#define LAWN_COLD_PATH __attribute__((noinline))

namespace lawn
{

// Both functions or neither; half an allocator is a mistake.
inline bool allocator_is_valid(const lawn_allocator_t &allocator)
{
    return (allocator.alloc == nullptr) == (allocator.release == nullptr);
}

inline void *allocate(const lawn_allocator_t &allocator, size_t size)
{
    return allocator.alloc ? allocator.alloc(allocator.arg, size)
                           : malloc(size);
}

inline void release(const lawn_allocator_t &allocator, void *memory)
{
    if (!allocator.release) {
        free(memory);
    } else if (memory) {
        allocator.release(allocator.arg, memory);
    }
}

// Fills the structure of a program that knows `size` bytes of it, which may be
// less or more than the library does.
inline void copy_known(void *to, size_t size, const void *known,
                       size_t known_size)
{
    const size_t both = size < known_size ? size : known_size;
    memcpy(to, known, both);
    memset(static_cast<char *>(to) + both, 0, size - both);
}

// Reads the structure of a program that knows `size` bytes of it: what the
// program does not know is 0. NULL is all zeros. False if the program sets
// something that the library does not know.
template <typename Params>
bool read_known(const Params *from, size_t size, Params *params)
{
    *params = {};
    if (!from) {
        return true;
    }
    memcpy(static_cast<void *>(params), from,
           size < sizeof(Params) ? size : sizeof(Params));
    const char *const bytes = reinterpret_cast<const char *>(from);
    for (size_t i = sizeof(Params); i < size; ++i) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

} // namespace lawn

#endif
