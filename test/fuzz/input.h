// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One input of a fuzzer, read as a program. The main line comes from the front
// of the bytes, what callbacks do from the back: so a callback more or less
// does not change the meaning of all that follows, and a mutation stays small.
// Beyond the end there are zeros, which mean the least in every place.

#ifndef LAWN_TEST_FUZZ_INPUT_H
#define LAWN_TEST_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// What a target claims. Not assert(), which a build may leave out.
#define FUZZ_CHECK(condition)                                                  \
    (__builtin_expect(!!(condition), 1)                                        \
         ? (void)0                                                             \
         : fuzz::fail(__FILE__, __LINE__, #condition))

namespace fuzz
{

[[noreturn]] inline void fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

// What one input may do in all, so that none takes long.
constexpr unsigned most_work = 20000;

class Input
{
public:
    Input(const uint8_t *data, size_t size) : front_(data), back_(data + size)
    {
    }

    bool is_empty() const
    {
        return front_ == back_;
    }

    size_t left() const
    {
        return static_cast<size_t>(back_ - front_);
    }

    uint8_t byte()
    {
        return is_empty() ? uint8_t{0} : *front_++;
    }

    uint8_t byte_at_end()
    {
        return is_empty() ? uint8_t{0} : *--back_;
    }

    // `length` bytes of the front, or as many as there are.
    const uint8_t *bytes(size_t *length)
    {
        const uint8_t *const begin = front_;
        *length = *length < left() ? *length : left();
        front_ += *length;
        return begin;
    }

    // Any number of 64 bits with a byte or three: where timers break is at and
    // around powers of two, and where the same number comes again.
    uint64_t number()
    {
        return number_from([this] { return byte(); });
    }

    uint64_t number_at_end()
    {
        return number_from([this] { return byte_at_end(); });
    }

private:
    template <class Next> static uint64_t number_from(Next next)
    {
        const unsigned head = next();
        const uint64_t power = uint64_t{1} << head % 64;
        if (head == 0) {
            return 0;
        }
        switch (head / 64) {
        case 0:
            return power;
        case 1:
            return power - 1;
        case 2:
            return power + next() - 128;
        default: {
            const uint64_t high = next();
            return high * (power / 256 + 1) + next();
        }
        }
    }

    const uint8_t *front_;
    const uint8_t *back_;
};

} // namespace fuzz

#endif
