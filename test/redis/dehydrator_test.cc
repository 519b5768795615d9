// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The dehydrator of contrib/redis beside a model, and how much it allocates.
#include "dehydrator.h"

#include <gtest/gtest.h>

#include <malloc.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace lawn_redis
{

// Redis's allocator, which a module has.
static size_t allocated;

void *allocate(size_t size)
{
    void *const memory = malloc(size);
    allocated += malloc_usable_size(memory);
    return memory;
}

void *reallocate(void *memory, size_t size)
{
    if (memory) {
        allocated -= malloc_usable_size(memory);
    }
    memory = realloc(memory, size);
    allocated += malloc_usable_size(memory);
    return memory;
}

void release(void *memory)
{
    if (memory) {
        allocated -= malloc_usable_size(memory);
    }
    free(memory);
}

size_t size_of(void *memory)
{
    return malloc_usable_size(memory);
}

namespace
{

Text text(const std::string &string)
{
    return {string.data(), string.size()};
}

std::string string(Text from)
{
    return {from.data, from.size};
}

std::string first_id(const Dehydrator &of)
{
    Item item;
    of.first(&item);
    return string(item.id);
}

TEST(Dehydrator, GivesTheElementsInTheOrderOfTheirTimes)
{
    Dehydrator of;
    EXPECT_TRUE(of.add({30, 30, text("c"), text("C")}));
    EXPECT_TRUE(of.add({10, 10, text("a"), text("A")}));
    EXPECT_TRUE(of.add({20, 10, text("b"), text("B")}));
    EXPECT_FALSE(of.add({1, 1, text("a"), text("again")}));
    EXPECT_EQ(of.fifos(), 2u);
    for (const char *const id : {"a", "b", "c"}) {
        Item item;
        of.first(&item);
        EXPECT_EQ(string(item.id), id);
        EXPECT_EQ(item.due, of.next());
        of.remove_first();
        EXPECT_TRUE(of.check());
    }
    EXPECT_EQ(of.count(), 0u);
    EXPECT_EQ(of.fifos(), 0u);
}

// As when a clock has stepped back.
TEST(Dehydrator, WhatIsDueBeforeTheTailOfItsFifoStandsAlone)
{
    Dehydrator of;
    of.add({100, 10, text("a"), text("")});
    of.add({90, 10, text("b"), text("")});
    of.add({110, 10, text("c"), text("")});
    EXPECT_EQ(of.fifos(), 1u);
    EXPECT_EQ(of.heads(), 2u);
    EXPECT_EQ(first_id(of), "b");
    of.remove_first();
    EXPECT_EQ(of.heads(), 1u);
    EXPECT_TRUE(of.remove(text("a")));
    EXPECT_EQ(first_id(of), "c");
    EXPECT_TRUE(of.check());
}

// A FIFO for each would be larger than what it is for.
TEST(Dehydrator, TtlsThatDoNotRepeatHaveFewFifos)
{
    Dehydrator of;
    constexpr unsigned count = 16000;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned ttl = i * 7 % count;
        of.add({ttl, ttl, text(std::to_string(ttl)), text("element")});
    }
    EXPECT_LE(of.fifos(), 64 + count / 16);
    EXPECT_EQ(of.heads(), count);
    EXPECT_TRUE(of.check());
    std::map<std::string, uint64_t> ttls;
    of.for_each([&ttls](const Item &item) {
        EXPECT_EQ(item.due, item.ttl);
        ttls[string(item.id)] = item.ttl;
    });
    EXPECT_EQ(ttls.size(), count);
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(first_id(of), std::to_string(i));
        of.remove_first();
    }
}

// The heap looks at the times themselves where 32 bits cannot tell them apart.
// Whoever may choose TTLs cannot make all of them meet in one bucket.
TEST(Dehydrator, TtlsThatAreChosenAreFoundAsSoon)
{
    hash_key = {0x0123456789abcdef, 0xfedcba9876543210};
    constexpr uint64_t count = 1000;
    for (const uint64_t factor :
         {uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 48,
          uint64_t{0xf1de83e19937733d}}) { // 1 / 0x9e37...15, modulo 2^64
        Dehydrator of;
        for (uint64_t i = 0; i < 17 * count; ++i) {
            of.add({i, i < 16 * count ? 0 : i % count * factor,
                    text(std::to_string(i)), text("")});
        }
        EXPECT_GE(of.fifos(), count);
        EXPECT_LT(of.longest_search(), 12u);
        EXPECT_TRUE(of.check());
    }
    hash_key = {};
}

TEST(Dehydrator, OrdersTimesThatAreNearAndFar)
{
    std::mt19937_64 random(1);
    for (const unsigned bits : {3u, 6u, 20u, 37u, 38u, 44u, 63u}) {
        Dehydrator of;
        std::multiset<uint64_t> times;
        for (unsigned i = 0; i < 1000; ++i) {
            const uint64_t due = random() >> (64 - bits);
            of.add({due, i, text(std::to_string(i)), text("")});
            times.insert(due);
        }
        EXPECT_TRUE(of.check());
        for (const uint64_t due : times) {
            ASSERT_EQ(of.next(), due) << bits;
            of.remove_first();
        }
    }
}

TEST(Dehydrator, FindsAndMovesById)
{
    Dehydrator of;
    Item item;
    EXPECT_FALSE(of.find(text("a"), &item));
    EXPECT_FALSE(of.remove(text("a")));
    EXPECT_FALSE(of.move(text("a"), 1, 1));
    of.add({10, 10, text("a"), text("A")});
    of.add({20, 20, text("b"), text("B")});
    EXPECT_TRUE(of.move(text("a"), 30, 20));
    EXPECT_EQ(of.fifos(), 1u);
    EXPECT_EQ(first_id(of), "b");
    EXPECT_TRUE(of.find(text("a"), &item));
    EXPECT_EQ(string(item.element), "A");
    EXPECT_EQ(item.due, 30u);
}

// With sizes of one, two and three bytes.
TEST(Dehydrator, KeepsAnyBytes)
{
    Dehydrator of;
    for (const size_t size : {0u, 1u, 127u, 128u, 16383u, 16384u, 3000000u}) {
        std::string id(size, '\0');
        std::string element(size + 1, '\xff');
        if (size != 0) {
            id[size / 2] = 'x';
        }
        ASSERT_TRUE(of.add({size, 5, text(id), text(element)}));
        Item item;
        ASSERT_TRUE(of.find(text(id), &item));
        EXPECT_EQ(string(item.id), id);
        EXPECT_EQ(string(item.element), element);
    }
}

// Ids with their times and elements, and the ids by time.
class Model
{
public:
    explicit Model(unsigned seed) : random_(seed)
    {
    }

    void run(unsigned steps)
    {
        for (unsigned i = 0; i < steps; ++i) {
            step();
            ASSERT_EQ(of_.count(), items_.size());
            if (i % 256 == 0) {
                ASSERT_TRUE(of_.check());
            }
        }
        while (!items_.empty()) {
            take_first();
        }
        EXPECT_EQ(of_.count(), 0u);
        EXPECT_TRUE(of_.check());
    }

private:
    unsigned below(unsigned limit)
    {
        return static_cast<unsigned>(random_() % limit);
    }

    void step()
    {
        const std::string id = std::to_string(below(ids_));
        const uint64_t ttl = below(ttls_);
        now_ += below(3);
        switch (below(16)) {
        case 0: // other ids and TTLs for a while
            ids_ = 1u << below(14);
            ttls_ = 1u << below(14);
            break;
        case 1:
            now_ -= std::min<uint64_t>(now_, below(50));
            break;
        case 2:
        case 3:
        case 4: {
            const bool is_known = items_.erase(id) != 0;
            EXPECT_EQ(of_.remove(text(id)), is_known);
            break;
        }
        case 5:
        case 6: {
            const auto found = items_.find(id);
            EXPECT_EQ(of_.move(text(id), now_ + ttl, ttl),
                      found != items_.end());
            if (found != items_.end()) {
                found->second.first = now_ + ttl;
            }
            break;
        }
        case 7:
        case 8:
            for (unsigned i = below(20); i > 0 && !items_.empty(); --i) {
                take_first();
            }
            break;
        default: {
            const std::string element(below(40), 'x');
            EXPECT_EQ(
                of_.add({now_ + ttl, ttl, text(id), text(element)}),
                items_.emplace(id, std::make_pair(now_ + ttl, element)).second);
        }
        }
    }

    // Of those with the least time, any.
    void take_first()
    {
        Item item;
        of_.first(&item);
        const auto found = items_.find(string(item.id));
        ASSERT_NE(found, items_.end());
        EXPECT_EQ(found->second.second, string(item.element));
        for (const auto &other : items_) {
            if (items_.size() > 300 && below(50) != 0) {
                continue;
            }
            EXPECT_LE(item.due, other.second.first);
        }
        items_.erase(found);
        of_.remove_first();
    }

    std::mt19937 random_;
    Dehydrator of_;
    std::map<std::string, std::pair<uint64_t, std::string>> items_;
    uint64_t now_ = 0;
    unsigned ids_ = 100;
    unsigned ttls_ = 10;
};

TEST(Dehydrator, DoesWhatAModelDoes)
{
    for (unsigned seed = 0; seed < 8; ++seed) {
        Model(seed).run(10000);
    }
    EXPECT_EQ(allocated, 0u);
}

// However it is filled and emptied: what it says that it takes is what it
// takes.
TEST(Dehydrator, KnowsItsMemory)
{
    {
        Dehydrator of;
        for (unsigned i = 0; i < 20000; ++i) {
            of.add({i, i % 5000, text(std::to_string(i)), text("element")});
        }
        EXPECT_NEAR(static_cast<double>(of.bytes(0)),
                    static_cast<double>(allocated + sizeof(of)),
                    static_cast<double>(allocated) / 100);
        for (unsigned i = 0; i < 20000; i += 2) {
            of.remove(text(std::to_string(i)));
        }
        EXPECT_NEAR(static_cast<double>(of.bytes(0)),
                    static_cast<double>(allocated + sizeof(of)),
                    static_cast<double>(allocated) / 100);
        EXPECT_TRUE(of.check());
    }
    EXPECT_EQ(allocated, 0u);
}

TEST(Dehydrator, AFewElementsTakeLittle)
{
    Dehydrator of;
    of.add({1, 1, text("id"), text("element")});
    EXPECT_LE(of.bytes(0), 500u);
}

// An element moves, as for defragmentation, a few in each call.
TEST(Dehydrator, ElementsMayMove)
{
    Dehydrator of;
    for (unsigned i = 0; i < 1000; ++i) {
        of.add({i, i % 7, text(std::to_string(i)), text("element")});
    }
    for (unsigned i = 0; i < 1000; i += 3) {
        of.remove(text(std::to_string(i)));
    }
    unsigned long cursor = 0;
    unsigned moves = 0;
    unsigned calls = 1;
    const auto moved = [&moves](void *memory) {
        const size_t size = size_of(memory);
        void *const to = allocate(size);
        memcpy(to, memory, size);
        release(memory);
        ++moves;
        return to;
    };
    while (
        of.defragment(&cursor, moved, [&moves] { return moves % 10 == 0; })) {
        ++calls;
    }
    EXPECT_EQ(moves, 666u);
    EXPECT_GT(calls, 60u);
    EXPECT_TRUE(of.check());
}

// SipHash-1-3 of its authors' key and messages: what Rust's and Python's are.
TEST(Siphash, IsTheKnownOne)
{
    SipKey key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    std::string message;
    std::set<uint64_t> values;
    for (char i = 0; i < 64; ++i) {
        values.insert(siphash(key, message.data(), message.size()));
        message += i;
    }
    EXPECT_EQ(values.size(), 64u);
    EXPECT_EQ(siphash(key, "", 0), 0xabac0158050fc4dcu);
    EXPECT_EQ(siphash(key, "\0", 1), 0xc9f49bf37d57ca93u);
}

} // namespace

} // namespace lawn_redis
