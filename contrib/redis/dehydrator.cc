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

// A TTL is of no stranger's choice but the hash's: any odd factor will do.
uint64_t hash_of(uint64_t ttl)
{
    return ttl * 0x9e3779b97f4a7c15 >> 32;
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
    ++count_;
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
    --count_;
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
    if (count_ == in_fifo - 1 || lookup(item.id, hash) != none) {
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
    const Fifo &fifo = fifos_[heap_[0].fifo];
    describe(elements_[fifo.head], item);
    item->ttl = fifo.ttl;
}

void Dehydrator::remove_first()
{
    const uint32_t at = fifos_[heap_[0].fifo].head;
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
    return sizeof(*this) + (looked_at ? elements * count_ / looked_at : 0) +
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

uint32_t Dehydrator::open_fifo(uint64_t ttl, bool is_listed)
{
    uint32_t number = free_fifo_;
    const Fifo fifo = {ttl, none, none, none, none, is_listed};
    if (number == none) {
        fifos_.push(fifo);
        number = fifos_.size() - 1;
    } else {
        free_fifo_ = fifos_[number].chain;
        fifos_[number] = fifo;
    }
    if (is_listed) {
        Ttls ttls = {&fifos_};
        ttls_.insert(&ttls, number, hash_of(ttl));
    }
    return number;
}

void Dehydrator::close_fifo(uint32_t number)
{
    leave_heap(fifos_[number].place);
    if (fifos_[number].is_listed) {
        Ttls ttls = {&fifos_};
        ttls_.remove(&ttls, number, hash_of(fifos_[number].ttl));
    }
    fifos_[number].chain = free_fifo_;
    free_fifo_ = number;
}

void Dehydrator::append(uint32_t at, uint64_t ttl)
{
    Element *const element = elements_[at];
    uint32_t number = find_fifo(ttl);
    const bool is_known = number != none;
    const bool is_sorted =
        is_known && elements_[fifos_[number].tail]->due <= element->due;
    if (!is_sorted) {
        number = open_fifo(ttl, !is_known);
    }
    Fifo &fifo = fifos_[number];
    element->next = in_fifo | number;
    if (is_sorted) {
        element->prev = fifo.tail;
        elements_[fifo.tail]->next = at;
        fifo.tail = at;
        return;
    }
    element->prev = in_fifo | number;
    fifo.head = fifo.tail = at;
    heap_.push({});
    rise(heap_.size() - 1, {element->due, number});
}

void Dehydrator::unlink(uint32_t at)
{
    const Element *const element = elements_[at];
    const bool is_head = element->prev & in_fifo;
    const bool is_tail = element->next & in_fifo;
    if (is_head && is_tail) {
        close_fifo(element->prev & ~in_fifo);
        return;
    }
    if (is_tail) {
        fifos_[element->next & ~in_fifo].tail = element->prev;
    } else {
        elements_[element->next]->prev = element->prev;
    }
    if (is_head) {
        const uint32_t number = element->prev & ~in_fifo;
        fifos_[number].head = element->next;
        sink(fifos_[number].place, {elements_[element->next]->due, number});
    } else {
        elements_[element->prev]->next = element->next;
    }
}

// ---- The heap, with the least due time at place 0.

void Dehydrator::put(uint32_t place, const Head &head)
{
    heap_[place] = head;
    fifos_[head.fifo].place = place;
}

void Dehydrator::rise(uint32_t place, const Head &head)
{
    while (place != 0 && head.due < heap_[(place - 1) / 2].due) {
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
            heap_[child + 1].due < heap_[child].due) {
            ++child;
        }
        if (head.due <= heap_[child].due) {
            break;
        }
        put(place, heap_[child]);
        place = child;
    }
    put(place, head);
}

void Dehydrator::leave_heap(uint32_t place)
{
    const Head last = heap_[heap_.size() - 1];
    heap_.pop();
    if (place == heap_.size()) {
        return;
    }
    if (place != 0 && last.due < heap_[(place - 1) / 2].due) {
        rise(place, last);
    } else {
        sink(place, last);
    }
}

// ---- For tests.

bool Dehydrator::check() const
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < heap_.size(); ++i) {
        const Fifo &fifo = fifos_[heap_[i].fifo];
        if (fifo.place != i || heap_[i].due != elements_[fifo.head]->due ||
            (i != 0 && heap_[i].due < heap_[(i - 1) / 2].due) ||
            (fifo.is_listed && find_fifo(fifo.ttl) != heap_[i].fifo)) {
            return false;
        }
        uint32_t before = in_fifo | heap_[i].fifo;
        uint64_t due = 0;
        uint32_t at = fifo.head;
        while (!(at & in_fifo)) {
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
        if (at != (in_fifo | heap_[i].fifo) || fifo.tail != before) {
            return false;
        }
    }
    return seen == count_;
}

} // namespace lawn_redis
