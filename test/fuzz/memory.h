// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Memory whose end is noticed. What is buried may not be looked at, which
// AddressSanitizer sees to, nor written to, which shows when it is dug up.
//
// It is static, and the fuzzers are linked without PIE: addresses decide the
// order of its lists, so an input must find the same ones in
// every run.

#ifndef LAWN_TEST_FUZZ_MEMORY_H
#define LAWN_TEST_FUZZ_MEMORY_H

#include "input.h"

#include <lawn/base.h>

#include <string.h>

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)0)
#endif

namespace fuzz
{

constexpr uint8_t earth = 0xa5;

inline void bury(void *memory, size_t size)
{
    memset(memory, earth, size);
    ASAN_POISON_MEMORY_REGION(memory, size);
}

inline void dig_up(void *memory, size_t size)
{
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    const uint8_t *const bytes = static_cast<const uint8_t *>(memory);
    for (size_t i = 0; i < size; ++i) {
        FUZZ_CHECK(bytes[i] == earth);
    }
}

// An allocator that gives each byte once, and fails when it is told to.
class Arena
{
public:
    Arena()
    {
        ASAN_UNPOISON_MEMORY_REGION(bytes_, sizeof(bytes_));
    }

    ~Arena()
    {
        FUZZ_CHECK(live_ == 0);
        ASAN_UNPOISON_MEMORY_REGION(bytes_, sizeof(bytes_));
    }

    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    lawn_allocator_t allocator()
    {
        return {alloc, release, this};
    }

    // From now on, until told otherwise.
    void set_failing(bool is_failing)
    {
        is_failing_ = is_failing;
    }

    unsigned allocations() const
    {
        return allocations_;
    }

    unsigned refusals() const
    {
        return refusals_;
    }

private:
    static constexpr size_t header = 64; // the size, and what must stay unused

    static void *alloc(void *arg, size_t size)
    {
        Arena *const arena = static_cast<Arena *>(arg);
        const size_t rounded = (size + header - 1) / header * header;
        if (arena->is_failing_ || rounded < size ||
            rounded + header > sizeof(bytes_) - arena->used_) {
            ++arena->refusals_;
            return nullptr;
        }
        uint8_t *const block = bytes_ + arena->used_;
        memcpy(block, &size, sizeof(size));
        ASAN_POISON_MEMORY_REGION(block, header);
        // Not zeros: what needs them has to write them.
        memset(block + header, earth, size);
        arena->used_ += header + rounded;
        ++arena->allocations_;
        ++arena->live_;
        return block + header;
    }

    static void release(void *arg, void *memory)
    {
        uint8_t *const block = static_cast<uint8_t *>(memory) - header;
        ASAN_UNPOISON_MEMORY_REGION(block, header);
        size_t size = 0;
        memcpy(&size, block, sizeof(size));
        FUZZ_CHECK(size != 0); // not released before
        memset(block, 0, sizeof(size));
        ASAN_POISON_MEMORY_REGION(block, header);
        bury(memory, size);
        --static_cast<Arena *>(arg)->live_;
    }

    alignas(64) static inline uint8_t bytes_[1 << 20];
    size_t used_ = 0;
    unsigned allocations_ = 0;
    unsigned refusals_ = 0;
    unsigned live_ = 0;
    bool is_failing_ = false;
};

} // namespace fuzz

#endif
