// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Words that one thread changes and others read meanwhile, several as one. They
// change between two increments of a sequence counter; who finds it odd, or
// another after he copied than before, copies again. The stores are releases
// and the loads acquires, which cost nothing on x86: a copy that has anything
// of a change in it then finds the sequence changed.

#ifndef LAWN_SRC_BASE_SEQUENCE_H
#define LAWN_SRC_BASE_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

namespace lawn
{

// While it lives, the words change.
class Change
{
public:
    explicit Change(uint32_t *sequence) : sequence_(sequence)
    {
        __atomic_store_n(sequence_, *sequence_ + 1, __ATOMIC_RELAXED);
    }

    Change(const Change &) = delete;
    Change &operator=(const Change &) = delete;

    ~Change()
    {
        __atomic_store_n(sequence_, *sequence_ + 1, __ATOMIC_RELEASE);
    }

private:
    uint32_t *sequence_;
};

inline void set_word(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

inline void copy_words(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    }
}

} // namespace lawn

#endif
