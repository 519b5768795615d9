// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input
// PRF", 2012), as whoever chooses ids should not choose their buckets.

#ifndef LAWN_REDIS_SIPHASH_H
#define LAWN_REDIS_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace lawn_redis
{

struct SipKey {
    uint64_t low;
    uint64_t high;
};

struct SipState {
    uint64_t v0, v1, v2, v3;

    static uint64_t rotated(uint64_t x, unsigned by)
    {
        return x << by | x >> (64 - by);
    }

    void round()
    {
        v0 += v1;
        v1 = rotated(v1, 13) ^ v0;
        v0 = rotated(v0, 32);
        v2 += v3;
        v3 = rotated(v3, 16) ^ v2;
        v0 += v3;
        v3 = rotated(v3, 21) ^ v0;
        v2 += v1;
        v1 = rotated(v1, 17) ^ v2;
        v2 = rotated(v2, 32);
    }

    void take(uint64_t word)
    {
        v3 ^= word;
        round();
        v0 ^= word;
    }
};

inline uint64_t siphash(const SipKey &key, const char *data, size_t size)
{
    SipState state = {
        key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d,
        key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573};
    uint64_t word = 0;
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        memcpy(&word, data + at, 8);
        state.take(word);
    }
    word = 0;
    memcpy(&word, data + at, size - at);
    state.take(word | static_cast<uint64_t>(size) << 56);
    state.v2 ^= 0xff;
    for (int i = 0; i < 3; ++i) {
        state.round();
    }
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

} // namespace lawn_redis

#endif
