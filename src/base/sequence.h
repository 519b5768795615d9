// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A sequence counter for words that one thread changes. Other threads or
// processes copy several such words as one. The writer increments the counter
// before and after each change. A reader copies again if the counter is odd, or
// if it differs after the copy.
//
// The stores are releases and the loads are acquires, which cost nothing on
// x86. So if a copy contains anything of a change, the reader finds the counter
// changed.

#ifndef LAWN_SRC_BASE_SEQUENCE_H
#define LAWN_SRC_BASE_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

namespace lawn
{

// The words may change while an object of this class lives.
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

// Whether a change was under way while the words were copied, by the counter
// before and after.
inline bool is_torn(uint32_t before, uint32_t after)
{
    return ((before ^ after) | before % 2) != 0;
}

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
