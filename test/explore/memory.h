// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Memory as C11 has it, for a few threads that take turns.
//
// An atomic location has all values that were ever stored in it, in one order,
// the newest last (its modification order is the order in which the stores are
// executed). A thread may load any of them that it does not know to be
// overwritten. What it knows is its view: of each location, the oldest value
// that it may still load. A release store takes the view of its thread along,
// and an acquire load that reads it joins that to its own. A read-modify-write
// reads the newest value, and passes on the view of what it has read (release
// sequences). A sequentially consistent load does not read what is older than
// the newest sequentially consistent store.
//
// Clocks say the same of accesses that are not atomic: one that nothing orders
// with another of the same bytes, of which one writes, is a data race.
//
// Not covered: values that a thread loads before they are stored (load
// buffering), and stores of several threads that take effect in another order
// than they are executed in (2+2W). No compiler or machine that the library
// runs on makes the first of what it does: its relaxed loads decide nothing
// that is stored elsewhere without an acquire.

#ifndef LAWN_TEST_EXPLORE_MEMORY_H
#define LAWN_TEST_EXPLORE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace explore
{

constexpr unsigned most_threads = 4;
constexpr unsigned most_locations = 256; // that are atomic

// `value` and then some more.
inline uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

// What one thread knows of all: how far each has come, and of each location the
// oldest value that it may load.
struct View {
    std::array<uint16_t, most_threads> clock = {};
    std::array<uint16_t, most_locations> oldest = {}; // by number

    uint32_t oldest_of(unsigned location) const
    {
        return oldest[location];
    }
    void raise(unsigned location, uint32_t age);
    void join(const View &other);
};

struct Message {
    uint64_t value;
    bool is_released; // then its view counts
    View view;
};

struct Location {
    unsigned number;
    uintptr_t at;
    uint8_t size;
    std::vector<Message> messages;
    uint32_t newest_sc = 0; // the newest that was stored by seq_cst
};

class Memory
{
public:
    // Memory whose accesses are looked at. All of it is zero.
    explicit Memory(size_t size);
    ~Memory();
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    // Nothing is allocated or stored.
    void clear();
    // What there is now is what reset() brings back before each run.
    void save();
    void reset();
    void *allocate(size_t size);
    void release(const void *memory);
    bool has(const void *at) const
    {
        const auto address = reinterpret_cast<uintptr_t>(at);
        return address - base_ < size_;
    }

    // A variable of the library's own is about to change. reset() undoes it.
    void keep(void *at, size_t size);

    // What is there now is what every thread starts with.
    // What is older than `most_back` values is forgotten.
    void begin_threads(unsigned threads, uint32_t most_back);

    Location &location(void *at, unsigned size);
    View &view_of(unsigned thread)
    {
        return views_[thread];
    }

    // How many values a load may choose from; the first is the newest.
    uint32_t choices(unsigned thread, const Location &location,
                     bool is_sc) const;
    static uint64_t value_of(const Location &location, uint32_t back)
    {
        return location.messages[location.messages.size() - 1 - back].value;
    }
    // The age of the newest value.
    uint32_t newest(unsigned location) const;
    uint64_t load(unsigned thread, Location &location, uint32_t back,
                  bool acquires);
    void store(unsigned thread, Location &location, uint64_t value,
               bool releases, bool is_sc);
    // After load(.., 0, ..): the store of a read-modify-write.
    void store_after(unsigned thread, Location &location, uint64_t value,
                     bool releases, bool is_sc);

    // Accesses that are not atomic, and the bytes of those that are. Returns
    // what is wrong, or nullptr.
    const char *check(unsigned thread, const void *at, size_t size, bool writes,
                      bool is_atomic);

    // The same for what orders threads otherwise: a mutex, a thread's end.
    void publish(unsigned thread, View *to);
    void learn(unsigned thread, const View &from);

    // Of all bytes and of all that the threads know, but relative to what has
    // no more effect.
    uint64_t hash();

private:
    // Of a byte, the clocks of those who accessed it last.
    struct Shadow {
        uint32_t run;
        uint16_t wrote; // plainly
        uint8_t writer;
        bool is_free;
        std::array<uint16_t, most_threads> read;
        std::array<uint16_t, most_threads> atomic_wrote;
        std::array<uint16_t, most_threads> atomic_read;
    };

    // Eight bytes. While all accesses are to the same of them, the first one's
    // shadow stands for all.
    struct Granule {
        uint8_t first;
        uint8_t size; // 0: none yet
        bool is_split;
    };
    struct Access {
        unsigned thread;
        bool writes;
        bool is_atomic;
    };
    struct Wrong {
        bool is_free;
        bool is_race;
    };

    bool is_whole(size_t first, size_t size);
    void touch(Shadow *shadow, const Access &access, Wrong *wrong);
    uint64_t value_at(const Location &location) const;
    void write_through(const Location &location, uint64_t value);
    void append(unsigned thread, Location &location, uint64_t value,
                bool releases, bool is_sc, const View *before);
    void rehash(uintptr_t word);
    uint32_t oldest_for(const View &view, const Location &location) const;

    uintptr_t base_ = 0;
    size_t size_;
    size_t used_ = 0;
    std::map<uintptr_t, size_t> allocated_;
    std::vector<char> saved_; // bytes
    std::map<uintptr_t, size_t> saved_allocated_;
    std::vector<uint64_t> saved_known_;
    uint64_t saved_content_ = 0;
    uint32_t run_ = 0;
    unsigned threads_ = most_threads;
    uint32_t most_back_ = 0;
    std::array<uint16_t, most_threads> plain_ = {}; // the last such access
    std::array<View, most_threads> views_;
    std::unordered_map<uintptr_t, std::unique_ptr<Location>> locations_;
    std::map<uintptr_t, std::vector<char>> kept_;
    std::vector<Location *> by_number_;
    std::vector<Shadow> shadow_;
    std::vector<Granule> granules_;
    std::vector<uint64_t> known_; // the words that `content_` has
    std::vector<uint32_t> dirty_;
    uint64_t content_ = 0;
};

} // namespace explore

#endif
