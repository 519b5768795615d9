// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What all sources share: assertions, memory, and structures of programs that
// were built with another version of the library.

#ifndef LAWN_SRC_BASE_BASE_H
#define LAWN_SRC_BASE_BASE_H

#include <lawn/base.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// For misuse by the programmer. It is an assertion in debug builds. In release
// builds (NDEBUG) the behaviour is defined, and each function states it.
#define LAWN_ASSERT(condition) assert(condition)

// Keeps rare code out of a hot function, which then need not save the registers
// of the rare code.
#define LAWN_COLD_PATH __attribute__((noinline))

namespace lawn
{

// An allocator has both functions or neither. Only one is a mistake.
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

// Fills the structure of a program, which knows `size` bytes of it. These may
// be fewer or more bytes than the library knows. What the library does not know
// becomes 0.
inline void copy_known(void *to, size_t size, const void *known,
                       size_t known_size)
{
    const size_t both = size < known_size ? size : known_size;
    memcpy(to, known, both);
    memset(static_cast<char *>(to) + both, 0, size - both);
}

// Reads the structure of a program, which knows `size` bytes of it. What the
// program does not know becomes 0. If `from` is NULL, everything becomes 0.
// Returns false if the program sets something that the library does not know.
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
