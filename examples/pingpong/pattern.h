/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The payload of messages. Its bytes follow from the connection, the number of
 * the message and its direction. So the receiver can tell by the payload alone
 * whether the message that it delivers is the expected one. The same generator
 * also decides which sends are dropped.
 */
#ifndef PINGPONG_PATTERN_H
#define PINGPONG_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SplitMix64: the state is a counter, and the output is its finaliser. */
static inline uint64_t pattern_next(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

static inline uint64_t pattern_seed(uint32_t connection, uint32_t seq,
                                    bool from_client)
{
    uint64_t state = (uint64_t)connection << 32 | seq;
    uint64_t seed = pattern_next(&state);
    return from_client ? seed : ~seed;
}

static inline void pattern_fill(uint8_t *payload, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size;) {
        uint64_t word = pattern_next(&seed);
        for (unsigned n = 0; n < 8 && i < size; ++n, ++i) {
            payload[i] = (uint8_t)(word >> 8 * n);
        }
    }
}

static inline bool pattern_matches(const uint8_t *payload, size_t size,
                                   uint64_t seed)
{
    for (size_t i = 0; i < size;) {
        uint64_t word = pattern_next(&seed);
        for (unsigned n = 0; n < 8 && i < size; ++n, ++i) {
            if (payload[i] != (uint8_t)(word >> 8 * n)) {
                return false;
            }
        }
    }
    return true;
}

#endif
