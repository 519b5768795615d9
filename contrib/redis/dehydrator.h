// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A dehydrator: elements, each with an id, that come out when their TTL has
// passed, in the order in which it has.
//
// It is the Lawn as published (A. Lev-Libfeld, "Lawn", 2019, arXiv:1906.10860,
// figure 2): a FIFO of elements for each TTL, sorted by itself, as elements of
// one TTL become due in the order in which they came. The paper looks at the
// head of each FIFO in each tick. Here nobody ticks: a heap of the heads, by
// their due times, tells a poll what is due, and when to come back. With t
// TTLs, all is O(1) but what changes a head: O(log t).
//
//     ids:    hash of the id  -> element
//     FIFOs:  hash of the TTL -> tail, of elements linked by number
//     heap:   due time, element: the head of a FIFO, or one that stands alone
//
// A FIFO pays if TTLs repeat. So there are no more than 64, and one for every
// 16 elements: what has none stands alone in the heap, and so does what is due
// before the tail of its FIFO, as when the clock has stepped back.
//
// It is not liblawn's lawn_t: that fires in no order, tells its next deadline
// early rather than exactly, and takes 22 KiB, where a server may have a
// million keys. Elements have numbers of 31 bits, and links have those instead
// of addresses: so they take half, and an element may move (defragmentation).

#ifndef LAWN_REDIS_DEHYDRATOR_H
#define LAWN_REDIS_DEHYDRATOR_H

#include "siphash.h"
#include "table.h"

namespace lawn_redis
{

struct Text {
    const char *data;
    size_t size;
};

// Texts of a dehydrator stay until its next change.
struct Item {
    uint64_t due; // milliseconds
    uint64_t ttl; // what its FIFO is for; `due` if it has none
    Text id;
    Text element;
};

// Of all ids. To be set at first.
extern SipKey hash_key;

class Dehydrator
{
public:
    Dehydrator() = default;
    ~Dehydrator();
    Dehydrator(const Dehydrator &) = delete;
    Dehydrator &operator=(const Dehydrator &) = delete;

    // False if the id is there already, or there are 2^31 elements. `due` is at
    // most INT64_MAX. `ttl` says in which FIFO it is filed, and may be
    // anything.
    bool add(const Item &item);

    // Returns false if there is no such id. Leaves out item->ttl.
    bool find(Text id, Item *item) const;
    bool remove(Text id);

    // Gives the id another due time.
    bool move(Text id, uint64_t due, uint64_t ttl);

    // The one with the least due time. There must be one. Leaves out item->ttl.
    void first(Item *item) const;
    void remove_first();
    uint64_t next() const
    {
        return elements_[heap_[0].element]->due;
    }

    uint32_t count() const
    {
        return ids_.count();
    }
    uint32_t fifos() const
    {
        return ttls_.count();
    }
    uint32_t heads() const // of FIFOs, and those that stand alone
    {
        return heap_.size();
    }

    // Of all that it has allocated, the elements being as large as the first
    // `samples` of them in the mean. 0: it looks at all.
    size_t bytes(size_t samples) const;

    // Calls each(item), FIFO by FIFO, from head to tail.
    template <typename Each> void for_each(const Each &each) const
    {
        Item item;
        for (uint32_t i = 0; i < heap_.size(); ++i) {
            item.ttl = ttl_of(heap_[i].element);
            for (uint32_t at = heap_[i].element; !(at & edge);
                 at = elements_[at]->next) {
                describe(elements_[at], &item);
                each(item);
            }
        }
    }

    // Calls moved(address), which returns where the element is now, for each
    // from `*cursor` on, until stop(). Returns whether some are left.
    template <typename Moved, typename Stop>
    bool defragment(unsigned long *cursor, const Moved &moved, const Stop &stop)
    {
        while (*cursor < elements_.size()) {
            Element **const element =
                &elements_[static_cast<uint32_t>(*cursor)];
            if (!is_free(*element)) {
                *element = static_cast<Element *>(moved(*element));
            }
            ++*cursor;
            if (stop()) {
                return *cursor < elements_.size();
            }
        }
        return false;
    }

    // For tests: whether all of it holds together.
    bool check() const;
    // And how many FIFOs the search for one looks at, at most.
    uint32_t longest_search() const;

private:
    static constexpr uint32_t none = Hash::none;
    static constexpr uint32_t edge = 1u << 31;

    // The sizes of id and element follow as varints, and then both.
    struct Element {
        uint64_t due;
        uint32_t prev; // of a head: edge | its place in the heap
        uint32_t next; // of a tail: edge | its FIFO. None: it stands alone
        uint32_t chain;
    };
    static constexpr size_t header = 20; // without what aligns the end

    struct Fifo {
        uint64_t ttl;
        uint32_t tail;
        uint32_t chain;
    };
    struct Head {
        int32_t rough; // of its due time: see head_of()
        uint32_t element;
    };

    struct Ids {
        Table<Element *> *elements;
        uint32_t &chain(uint32_t number) const;
        uint64_t hash(uint32_t number) const;
    };
    struct Ttls {
        Table<Fifo> *fifos;
        uint32_t &chain(uint32_t number) const;
        uint64_t hash(uint32_t number) const;
    };

    static bool is_free(const Element *element)
    {
        return (reinterpret_cast<uintptr_t>(element) & 1) != 0;
    }
    static void describe(const Element *element, Item *item);

    uint32_t lookup(Text id, uint64_t hash) const;
    uint32_t make(const Item &item);
    void forget(uint32_t at);
    void take_out(uint32_t at, uint64_t hash);

    void append(uint32_t at, uint64_t ttl);
    void unlink(uint32_t at);
    uint64_t ttl_of(uint32_t head) const;
    uint32_t find_fifo(uint64_t ttl) const;
    uint32_t open_fifo(uint64_t ttl, uint32_t tail);
    void close_fifo(uint32_t number);

    Head head_of(uint32_t at) const;
    bool is_before(const Head &head, const Head &other) const;
    void put(uint32_t place, const Head &head);
    void rise(uint32_t place, const Head &head);
    void sink(uint32_t place, const Head &head);
    void enter_heap(uint32_t at);
    void leave_heap(uint32_t place);

    Table<Element *> elements_; // by number; of free ones: the next one
    uint32_t free_element_ = none;
    Hash ids_;
    Table<Fifo> fifos_;
    uint32_t free_fifo_ = none; // chained
    Hash ttls_;
    Table<Head> heap_;
    uint64_t middle_ = 0; // see head_of()
};

} // namespace lawn_redis

#endif
