// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Memory as C11 has it (memory.h).

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

// Of the linker: what the program's variables lie between.
extern "C" char __data_start, _end; // NOLINT

namespace explore
{

namespace
{

// The same in each process, so that its addresses are.
void *const where = reinterpret_cast<void *>(uintptr_t{0x4c0000000000});

uint64_t hash_word(size_t index, uint64_t value)
{
    return value == 0 ? 0 : mix(mix(0x1234567, index), value);
}

} // namespace

void View::raise(unsigned location, uint32_t age)
{
    oldest[location] = std::max(oldest[location], static_cast<uint16_t>(age));
}

void View::join(const View &other)
{
    for (unsigned i = 0; i < most_threads; ++i) {
        clock[i] = std::max(clock[i], other.clock[i]);
    }
    for (unsigned i = 0; i < most_locations; ++i) {
        oldest[i] = std::max(oldest[i], other.oldest[i]);
    }
}

Memory::Memory(size_t size) : size_(size)
{
    void *const memory =
        mmap(where, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        abort();
    }
    base_ = reinterpret_cast<uintptr_t>(memory);
    shadow_.resize(size);
    granules_.resize(size / 8);
    known_.resize(size / 8);
}

Memory::~Memory()
{
    munmap(reinterpret_cast<void *>(base_), size_);
}

void Memory::clear()
{
    memset(reinterpret_cast<void *>(base_), 0, used_);
    std::fill(known_.begin(), known_.end(), 0);
    used_ = 0;
    content_ = 0;
    allocated_.clear();
    kept_.clear();
    dirty_.clear();
    locations_.clear();
    by_number_.clear();
    ++run_;
}

void Memory::save()
{
    for (size_t i = 0; i < (used_ + 7) / 8; ++i) {
        rehash(i);
    }
    const char *const bytes = reinterpret_cast<const char *>(base_);
    saved_.assign(bytes, bytes + used_);
    saved_allocated_ = allocated_;
    saved_known_.assign(known_.begin(), known_.begin() + static_cast<ptrdiff_t>(
                                                             (used_ + 7) / 8));
    saved_content_ = content_;
    kept_.clear();
    dirty_.clear();
}

void Memory::reset()
{
    if (used_ > saved_.size()) {
        memset(reinterpret_cast<char *>(base_) + saved_.size(), 0,
               used_ - saved_.size());
        std::fill(known_.begin() +
                      static_cast<ptrdiff_t>((saved_.size() + 7) / 8),
                  known_.begin() + static_cast<ptrdiff_t>((used_ + 7) / 8), 0);
    }
    memcpy(reinterpret_cast<void *>(base_), saved_.data(), saved_.size());
    std::copy(saved_known_.begin(), saved_known_.end(), known_.begin());
    used_ = saved_.size();
    content_ = saved_content_;
    allocated_ = saved_allocated_;
    for (const auto &[at, bytes] : kept_) {
        memcpy(reinterpret_cast<void *>(at), bytes.data(), bytes.size());
    }
    kept_.clear();
    ++run_;
    for (Location *const location : by_number_) {
        location->messages.clear();
        location->newest_sc = 0;
    }
    dirty_.clear();
    for (View &view : views_) {
        view = View();
    }
    plain_ = {};
}

void Memory::keep(void *at, size_t size)
{
    const auto address = reinterpret_cast<uintptr_t>(at);
    const bool is_global =
        address >= reinterpret_cast<uintptr_t>(&__data_start) &&
        address < reinterpret_cast<uintptr_t>(&_end);
    const char *const bytes = static_cast<const char *>(at);
    if (is_global) {
        kept_.try_emplace(address, bytes, bytes + size);
    }
}

void *Memory::allocate(size_t size)
{
    const size_t at = (used_ + 127) / 128 * 128;
    if (at + size > size_) {
        return nullptr;
    }
    used_ = at + size;
    allocated_[base_ + at] = size;
    return reinterpret_cast<void *>(base_ + at);
}

// It is not given to anybody else in this run.
void Memory::release(const void *memory)
{
    const auto at = reinterpret_cast<uintptr_t>(memory);
    const size_t size = allocated_.at(at);
    for (size_t i = at - base_; i < at - base_ + size; ++i) {
        Shadow &shadow = shadow_[i];
        if (shadow.run != run_) {
            shadow = {};
            shadow.run = run_;
        }
        shadow.is_free = true;
    }
}

void Memory::begin_threads(unsigned threads, uint32_t most_back)
{
    threads_ = threads;
    most_back_ = most_back;
    for (unsigned i = 0; i < most_threads; ++i) {
        views_[i].clock[i] = 1;
    }
}

Location &Memory::location(void *at, unsigned size)
{
    const auto address = reinterpret_cast<uintptr_t>(at);
    std::unique_ptr<Location> &found = locations_[address];
    if (!found) {
        found = std::make_unique<Location>();
        found->number = static_cast<unsigned>(by_number_.size());
        found->at = address;
        found->size = static_cast<uint8_t>(size);
        by_number_.push_back(found.get());
        if (by_number_.size() > most_locations) {
            fprintf(stderr, "more than %u locations\n", most_locations);
            abort();
        }
    }
    if (found->messages.empty()) { // in this run
        found->messages.push_back({value_at(*found), false, View()});
    }
    return *found;
}

uint64_t Memory::value_at(const Location &location) const
{
    uint64_t value = 0;
    memcpy(&value, reinterpret_cast<const void *>(location.at), location.size);
    return value;
}

void Memory::write_through(const Location &location, uint64_t value)
{
    memcpy(reinterpret_cast<void *>(location.at), &value, location.size);
    if (has(reinterpret_cast<void *>(location.at))) {
        rehash((location.at - base_) / 8);
    }
}

uint32_t Memory::oldest_for(const View &view, const Location &location) const
{
    const auto newest = static_cast<uint32_t>(location.messages.size() - 1);
    return std::max(view.oldest_of(location.number),
                    newest > most_back_ ? newest - most_back_ : 0);
}

uint32_t Memory::choices(unsigned thread, const Location &location,
                         bool is_sc) const
{
    const auto newest = static_cast<uint32_t>(location.messages.size() - 1);
    uint32_t oldest = oldest_for(views_[thread], location);
    if (is_sc) {
        oldest = std::max(oldest, location.newest_sc);
    }
    return newest - oldest + 1;
}

uint32_t Memory::newest(unsigned location) const
{
    return static_cast<uint32_t>(by_number_[location]->messages.size() - 1);
}

uint64_t Memory::load(unsigned thread, Location &location, uint32_t back,
                      bool acquires)
{
    const auto age = static_cast<uint32_t>(location.messages.size() - 1) - back;
    const Message &message = location.messages[age];
    views_[thread].raise(location.number, age);
    if (acquires && message.is_released) {
        views_[thread].join(message.view);
    }
    return message.value;
}

void Memory::append(unsigned thread, Location &location, uint64_t value,
                    bool releases, bool is_sc, const View *before)
{
    const auto age = static_cast<uint32_t>(location.messages.size());
    View &view = views_[thread];
    view.raise(location.number, age);
    Message message = {value, releases || before, View()};
    if (releases) {
        message.view = view;
    }
    if (before) {
        message.view.join(*before);
    }
    message.view.raise(location.number, age);
    location.messages.push_back(std::move(message));
    if (is_sc) {
        location.newest_sc = age;
    }
    ++view.clock[thread];
    write_through(location, value);
}

void Memory::store(unsigned thread, Location &location, uint64_t value,
                   bool releases, bool is_sc)
{
    append(thread, location, value, releases, is_sc, nullptr);
}

void Memory::store_after(unsigned thread, Location &location, uint64_t value,
                         bool releases, bool is_sc)
{
    const Message &last = location.messages.back();
    const View before = last.view;
    append(thread, location, value, releases, is_sc,
           last.is_released ? &before : nullptr);
}

// Whether the shadow of the first byte stands for all.
bool Memory::is_whole(size_t first, size_t size)
{
    Granule &granule = granules_[first / 8];
    const size_t offset = first % 8;
    if (!granule.is_split && granule.size == 0 && offset + size <= 8) {
        granule = {static_cast<uint8_t>(offset), static_cast<uint8_t>(size),
                   false};
    }
    if (!granule.is_split && granule.first == offset && granule.size == size) {
        return true;
    }
    for (size_t k = first / 8; k <= (first + size - 1) / 8; ++k) {
        Granule &one = granules_[k];
        const size_t begin = k * 8 + one.first;
        for (size_t i = 1; !one.is_split && i < one.size; ++i) {
            shadow_[begin + i] = shadow_[begin];
        }
        one.is_split = true;
    }
    return false;
}

void Memory::touch(Shadow *shadow, const Access &access, Wrong *wrong)
{
    const unsigned thread = access.thread;
    const auto &clock = views_[thread].clock;
    if (shadow->run != run_) {
        *shadow = {};
        shadow->run = run_;
    }
    wrong->is_free |= shadow->is_free;
    bool is_race = shadow->wrote > clock[shadow->writer];
    for (unsigned k = 0; k < most_threads; ++k) {
        is_race |= !access.is_atomic && shadow->atomic_wrote[k] > clock[k];
        is_race |= access.writes && shadow->read[k] > clock[k];
        is_race |= access.writes && !access.is_atomic &&
                   shadow->atomic_read[k] > clock[k];
    }
    wrong->is_race |= is_race;
    if (access.writes && access.is_atomic) {
        shadow->atomic_wrote[thread] = clock[thread];
    } else if (access.writes) {
        shadow->wrote = clock[thread];
        shadow->writer = static_cast<uint8_t>(thread);
    } else if (access.is_atomic) {
        shadow->atomic_read[thread] = clock[thread];
    } else {
        shadow->read[thread] = clock[thread];
    }
}

const char *Memory::check(unsigned thread, const void *at, size_t size,
                          bool writes, bool is_atomic)
{
    if (!has(at) || size == 0) {
        return nullptr;
    }
    const size_t first = reinterpret_cast<uintptr_t>(at) - base_;
    const Access access = {thread, writes, is_atomic};
    Wrong wrong = {};
    const size_t count = is_whole(first, size) ? 1 : size;
    for (size_t i = first; i < std::min(first + count, size_); ++i) {
        touch(&shadow_[i], access, &wrong);
    }
    const auto &clock = views_[thread].clock;
    if (!is_atomic) {
        plain_[thread] = clock[thread];
    }
    if (writes && !is_atomic) {
        // It is written after this. Words are looked at in hash().
        for (size_t i = first / 8; i <= (first + size - 1) / 8; ++i) {
            dirty_.push_back(static_cast<uint32_t>(i));
        }
    }
    return wrong.is_free   ? "use of memory that was released"
           : wrong.is_race ? "data race"
                           : nullptr;
}

void Memory::publish(unsigned thread, View *to)
{
    to->join(views_[thread]);
    ++views_[thread].clock[thread];
}

void Memory::learn(unsigned thread, const View &from)
{
    views_[thread].join(from);
}

void Memory::rehash(uintptr_t word)
{
    uint64_t value;
    memcpy(&value, reinterpret_cast<const void *>(base_ + word * 8), 8);
    content_ ^= hash_word(word, known_[word]) ^ hash_word(word, value);
    known_[word] = value;
}

// What is older than what each thread may load has no effect any more, so ages
// count from there.
uint64_t Memory::hash()
{
    for (const uint32_t word : dirty_) {
        rehash(word);
    }
    dirty_.clear();
    uint64_t hash = content_;
    std::array<uint32_t, most_locations> least;
    least.fill(UINT32_MAX);
    for (const Location *const location : by_number_) {
        for (unsigned i = 0; i < threads_ && !location->messages.empty(); ++i) {
            uint32_t &one = least[location->number];
            one = std::min(one, oldest_for(views_[i], *location));
        }
    }
    for (unsigned i = 0; i < threads_; ++i) {
        for (unsigned k = 0; k < threads_; ++k) {
            hash = mix(hash, views_[i].clock[k] >= plain_[k]);
        }
    }
    for (const Location *const one : by_number_) {
        const Location &location = *one;
        if (location.messages.empty()) {
            continue;
        }
        const uint32_t oldest = least[location.number];
        if (!has(reinterpret_cast<const void *>(location.at))) {
            hash = mix(hash, location.messages.back().value);
        }
        if (oldest + 1 == location.messages.size()) {
            continue; // all know the newest
        }
        hash = mix(hash, location.at);
        for (size_t i = oldest; i < location.messages.size(); ++i) {
            const Message &message = location.messages[i];
            hash = mix(hash, message.value * 2 + message.is_released);
            for (unsigned k = 0; k < by_number_.size(); ++k) {
                if (message.view.oldest[k] > least[k]) {
                    hash = mix(hash, by_number_[k]->at);
                    hash = mix(hash, message.view.oldest[k] - least[k]);
                }
            }
        }
        for (unsigned i = 0; i < threads_; ++i) {
            hash = mix(hash, oldest_for(views_[i], location) - oldest);
        }
        hash =
            mix(hash,
                location.newest_sc > oldest ? location.newest_sc - oldest : 0);
    }
    return hash;
}

} // namespace explore
