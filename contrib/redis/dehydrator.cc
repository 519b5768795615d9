// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#include "dehydrator.h"

namespace lawn_redis
{

SipKey hash_key;

namespace
{

uint64_t hash_of(Text id)
{
    return siphash(hash_key, id.data, id.size);
}

__extension__ typedef unsigned __int128 uint128;

// TTLs are strangers' choice, too. They are of one length, so a secret product,
// of which both halves count, is enough.
uint64_t hash_of(uint64_t ttl)
{
    const uint128 product =
        static_cast<uint128>(ttl ^ hash_key.low) * (hash_key.high | 1);
    return static_cast<uint64_t>(product >> 64 ^ product);
}

unsigned char *put_size(unsigned char *at, size_t size)
{
    for (; size >= 0x80; size >>= 7) {
        *at++ = static_cast<unsigned char>(size | 0x80);
    }
    *at++ = static_cast<unsigned char>(size);
    return at;
}

const unsigned char *get_size(const unsigned char *at, size_t *size)
{
    unsigned shift = 0;
    *size = 0;
    for (; *at & 0x80; ++at, shift += 7) {
        *size |= static_cast<size_t>(*at & 0x7f) << shift;
    }
    *size |= static_cast<size_t>(*at) << shift;
    return at + 1;
}

} // namespace

// ---- Elements.

uint32_t &Dehydrator::Ids::chain(uint32_t number) const
{
    return (*elements)[number]->chain;
}

uint64_t Dehydrator::Ids::hash(uint32_t number) const
{
    Item item;
    describe((*elements)[number], &item);
    return hash_of(item.id);
}

void Dehydrator::describe(const Element *element, Item *item)
{
    const auto *at = reinterpret_cast<const unsigned char *>(element) + header;
    at = get_size(at, &item->id.size);
    at = get_size(at, &item->element.size);
    item->due = element->due;
    item->id.data = reinterpret_cast<const char *>(at);
    item->element.data = item->id.data + item->id.size;
}

uint32_t Dehydrator::lookup(Text id, uint64_t hash) const
{
    Item item;
    for (uint32_t at = ids_.first(hash); at != none;
         at = elements_[at]->chain) {
        describe(elements_[at], &item);
        if (item.id.size == id.size &&
            memcmp(item.id.data, id.data, id.size) == 0) {
            return at;
        }
    }
    return none;
}

uint32_t Dehydrator::make(const Item &item)
{
    unsigned char sizes[20];
    unsigned char *end = put_size(sizes, item.id.size);
    end = put_size(end, item.element.size);
    const size_t size_bytes = static_cast<size_t>(end - sizes);
    auto *const element = static_cast<Element *>(
        allocate(header + size_bytes + item.id.size + item.element.size));
    auto *at = reinterpret_cast<unsigned char *>(element) + header;
    memcpy(at, sizes, size_bytes);
    at += size_bytes;
    memcpy(at, item.id.data, item.id.size);
    memcpy(at + item.id.size, item.element.data, item.element.size);
    element->due = item.due;
    const uint32_t number = free_element_;
    if (number == none) {
        elements_.push(element);
        return elements_.size() - 1;
    }
    free_element_ = static_cast<uint32_t>(
        reinterpret_cast<uintptr_t>(elements_[number]) >> 1);
    elements_[number] = element;
    return number;
}

void Dehydrator::forget(uint32_t at)
{
    release(elements_[at]);
    elements_[at] = reinterpret_cast<Element *>(
        static_cast<uintptr_t>(free_element_) << 1 | 1);
    free_element_ = at;
}

Dehydrator::~Dehydrator()
{
    for (uint32_t i = 0; i < elements_.size(); ++i) {
        if (!is_free(elements_[i])) {
            release(elements_[i]);
        }
    }
}

bool Dehydrator::add(const Item &item)
{
    const uint64_t hash = hash_of(item.id);
    if (count() == edge - 1 || lookup(item.id, hash) != none) {
        return false;
    }
    const uint32_t at = make(item);
    Ids ids = {&elements_};
    ids_.insert(&ids, at, hash);
    append(at, item.ttl);
    return true;
}

bool Dehydrator::find(Text id, Item *item) const
{
    const uint32_t at = lookup(id, hash_of(id));
    if (at != none) {
        describe(elements_[at], item);
    }
    return at != none;
}

void Dehydrator::take_out(uint32_t at, uint64_t hash)
{
    Ids ids = {&elements_};
    unlink(at);
    ids_.remove(&ids, at, hash);
    forget(at);
}

bool Dehydrator::remove(Text id)
{
    const uint64_t hash = hash_of(id);
    const uint32_t at = lookup(id, hash);
    if (at == none) {
        return false;
    }
    take_out(at, hash);
    return true;
}

bool Dehydrator::move(Text id, uint64_t due, uint64_t ttl)
{
    const uint32_t at = lookup(id, hash_of(id));
    if (at == none) {
        return false;
    }
    unlink(at);
    elements_[at]->due = due;
    append(at, ttl);
    return true;
}

void Dehydrator::first(Item *item) const
{
    describe(elements_[heap_[0].element], item);
}

void Dehydrator::remove_first()
{
    const uint32_t at = heap_[0].element;
    take_out(at, Ids{&elements_}.hash(at));
}

size_t Dehydrator::bytes(size_t samples) const
{
    size_t elements = 0;
    size_t looked_at = 0;
    for (uint32_t i = 0;
         i < elements_.size() && (samples == 0 || looked_at < samples); ++i) {
        if (!is_free(elements_[i])) {
            elements += size_of(elements_[i]);
            ++looked_at;
        }
    }
    return sizeof(*this) + (looked_at ? elements * count() / looked_at : 0) +
           elements_.bytes() + ids_.bytes() + fifos_.bytes() + ttls_.bytes() +
           heap_.bytes();
}

// ---- FIFOs.

uint32_t &Dehydrator::Ttls::chain(uint32_t number) const
{
    return (*fifos)[number].chain;
}

uint64_t Dehydrator::Ttls::hash(uint32_t number) const
{
    return hash_of((*fifos)[number].ttl);
}

uint32_t Dehydrator::find_fifo(uint64_t ttl) const
{
    uint32_t at = ttls_.first(hash_of(ttl));
    while (at != none && fifos_[at].ttl != ttl) {
        at = fifos_[at].chain;
    }
    return at;
}

uint32_t Dehydrator::open_fifo(uint64_t ttl, uint32_t tail)
{
    uint32_t number = free_fifo_;
    const Fifo fifo = {ttl, tail, none};
    if (number == none) {
        fifos_.push(fifo);
        number = fifos_.size() - 1;
    } else {
        free_fifo_ = fifos_[number].chain;
        fifos_[number] = fifo;
    }
    Ttls ttls = {&fifos_};
    ttls_.insert(&ttls, number, hash_of(ttl));
    return number;
}

void Dehydrator::close_fifo(uint32_t number)
{
    Ttls ttls = {&fifos_};
    ttls_.remove(&ttls, number, hash_of(fifos_[number].ttl));
    fifos_[number].chain = free_fifo_;
    free_fifo_ = number;
}

uint64_t Dehydrator::ttl_of(uint32_t head) const
{
    const Element *element = elements_[head];
    while (!(element->next & edge)) {
        element = elements_[element->next];
    }
    return element->next == none ? element->due
                                 : fifos_[element->next & ~edge].ttl;
}

void Dehydrator::append(uint32_t at, uint64_t ttl)
{
    Element *const element = elements_[at];
    uint32_t number = find_fifo(ttl);
    if (number == none) {
        if (fifos() < 64 + count() / 16) {
            number = open_fifo(ttl, at);
        }
    } else if (elements_[fifos_[number].tail]->due <= element->due) {
        Fifo &fifo = fifos_[number];
        element->prev = fifo.tail;
        element->next = edge | number;
        elements_[fifo.tail]->next = at;
        fifo.tail = at;
        return;
    } else {
        number = none;
    }
    element->next = edge | number;
    enter_heap(at);
}

void Dehydrator::unlink(uint32_t at)
{
    const Element *const element = elements_[at];
    const bool is_head = element->prev & edge;
    const bool is_tail = element->next & edge;
    if (is_head && is_tail) {
        leave_heap(element->prev & ~edge);
        if (element->next != none) {
            close_fifo(element->next & ~edge);
        }
        return;
    }
    if (is_tail) {
        fifos_[element->next & ~edge].tail = element->prev;
    } else {
        elements_[element->next]->prev = element->prev;
    }
    if (is_head) {
        sink(element->prev & ~edge, head_of(element->next));
    } else {
        elements_[element->prev]->next = element->next;
    }
}

// ---- The heap, with the least due time at place 0.

// A number of 32 bits does for nearly all comparisons: two years before and
// after the first element of a heap that was empty, to 32 ms.
Dehydrator::Head Dehydrator::head_of(uint32_t at) const
{
    const int64_t from = (static_cast<int64_t>(elements_[at]->due) -
                          static_cast<int64_t>(middle_)) >>
                         5;
    const int64_t rough = from < INT32_MIN   ? INT32_MIN
                          : from > INT32_MAX ? INT32_MAX
                                             : from;
    return {static_cast<int32_t>(rough), at};
}

bool Dehydrator::is_before(const Head &head, const Head &other) const
{
    return head.rough != other.rough
               ? head.rough < other.rough
               : elements_[head.element]->due < elements_[other.element]->due;
}

void Dehydrator::put(uint32_t place, const Head &head)
{
    heap_[place] = head;
    elements_[head.element]->prev = edge | place;
}

void Dehydrator::rise(uint32_t place, const Head &head)
{
    while (place != 0 && is_before(head, heap_[(place - 1) / 2])) {
        put(place, heap_[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(place, head);
}

void Dehydrator::sink(uint32_t place, const Head &head)
{
    for (uint32_t child = 2 * place + 1; child < heap_.size();
         child = 2 * place + 1) {
        if (child + 1 < heap_.size() &&
            is_before(heap_[child + 1], heap_[child])) {
            ++child;
        }
        if (!is_before(heap_[child], head)) {
            break;
        }
        put(place, heap_[child]);
        place = child;
    }
    put(place, head);
}

void Dehydrator::enter_heap(uint32_t at)
{
    if (heap_.size() == 0) {
        middle_ = elements_[at]->due;
    }
    heap_.push({});
    rise(heap_.size() - 1, head_of(at));
}

void Dehydrator::leave_heap(uint32_t place)
{
    const Head last = heap_[heap_.size() - 1];
    heap_.pop();
    if (place == heap_.size()) {
        return;
    }
    if (place != 0 && is_before(last, heap_[(place - 1) / 2])) {
        rise(place, last);
    } else {
        sink(place, last);
    }
}

// ---- For tests.

bool Dehydrator::check() const
{
    uint32_t seen = 0;
    uint32_t seen_fifos = 0;
    for (uint32_t i = 0; i < heap_.size(); ++i) {
        uint32_t at = heap_[i].element;
        uint32_t before = edge | i;
        uint64_t due = 0;
        if (head_of(at).rough != heap_[i].rough ||
            (i != 0 && is_before(heap_[i], heap_[(i - 1) / 2]))) {
            return false;
        }
        while (!(at & edge)) {
            const Element *const element = elements_[at];
            Item item;
            describe(element, &item);
            if (element->prev != before || element->due < due ||
                lookup(item.id, hash_of(item.id)) != at) {
                return false;
            }
            before = at;
            due = element->due;
            at = element->next;
            ++seen;
        }
        if (at == none) {
            continue;
        }
        const Fifo &fifo = fifos_[at & ~edge];
        if (fifo.tail != before || find_fifo(fifo.ttl) != (at & ~edge)) {
            return false;
        }
        ++seen_fifos;
    }
    return seen == count() && seen_fifos == fifos();
}

uint32_t Dehydrator::longest_search() const
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < fifos_.size(); ++i) {
        uint32_t steps = 0;
        for (uint32_t at = ttls_.first(hash_of(fifos_[i].ttl)); at != none;
             at = fifos_[at].chain) {
            ++steps;
        }
        longest = steps > longest ? steps : longest;
    }
    return longest;
}

} // namespace lawn_redis
