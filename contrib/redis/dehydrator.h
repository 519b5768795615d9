// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A dehydrator: elements, each with an id, that come out when their TTL has
// passed, in the order in which it has.
//
// It is the Lawn as published (A. Lev-Libfeld, "Lawn", 2019, arXiv:1906.10860,
// figure 2): a FIFO of elements for each TTL, sorted by itself, as elements of
// one TTL become due in the order in which they came. The paper looks at the
// head of each FIFO in each tick. Here nobody ticks: a heap of the FIFOs, by
// the due time of their heads, tells a poll what is due, and when to come back.
// With t TTLs, all is O(1) but what changes a head: O(log t).
//
//     ids:    hash of the id  -> element
//     FIFOs:  hash of the TTL -> head ... tail, of elements linked by number
//     heap:   due time of the head, FIFO
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
    uint64_t ttl; // what its FIFO is for
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

    // False if the id is there already, or there are 2^31 elements. `ttl` says
    // in which FIFO it is filed, and may be anything: what is due before the
    // last in there gets a FIFO of its own.
    bool add(const Item &item);

    // Returns false if there is no such id. Leaves out item->ttl.
    bool find(Text id, Item *item) const;
    bool remove(Text id);

    // Gives the id another due time.
    bool move(Text id, uint64_t due, uint64_t ttl);

    // The one with the least due time. There must be one.
    void first(Item *item) const;
    void remove_first();
    uint64_t next() const
    {
        return heap_[0].due;
    }

    uint32_t count() const
    {
        return count_;
    }
    uint32_t fifos() const
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
            const Fifo &fifo = fifos_[heap_[i].fifo];
            for (uint32_t at = fifo.head; !(at & in_fifo);
                 at = elements_[at]->next) {
                describe(elements_[at], &item);
                item.ttl = fifo.ttl;
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

private:
    static constexpr uint32_t none = Hash::none;
    static constexpr uint32_t in_fifo = 1u << 31;

    // The sizes of id and element follow as varints, and then both.
    struct Element {
        uint64_t due;
        uint32_t prev; // or in_fifo | its FIFO, of the head
        uint32_t next; // the same of the tail
        uint32_t chain;
    };
    static constexpr size_t header = 20; // without what aligns the end

    struct Fifo {
        uint64_t ttl;
        uint32_t head;
        uint32_t tail;
        uint32_t place; // in the heap
        uint32_t chain;
        bool is_listed; // by its TTL
    };
    struct Head {
        uint64_t due;
        uint32_t fifo;
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
    uint32_t find_fifo(uint64_t ttl) const;
    uint32_t open_fifo(uint64_t ttl, bool is_listed);
    void close_fifo(uint32_t number);

    void put(uint32_t place, const Head &head);
    void rise(uint32_t place, const Head &head);
    void sink(uint32_t place, const Head &head);
    void leave_heap(uint32_t place);

    Table<Element *> elements_; // by number; of free ones: the next one
    uint32_t free_element_ = none;
    Hash ids_;
    Table<Fifo> fifos_;
    uint32_t free_fifo_ = none; // chained
    Hash ttls_;
    Table<Head> heap_;
    uint32_t count_ = 0;
};

} // namespace lawn_redis

#endif
