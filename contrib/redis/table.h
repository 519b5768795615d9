// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An array that grows and shrinks at its end without moving what is in it, so
// that no call takes long; and a hash of numbers, of which the same is true: it
// grows by one bucket at a time (W. Litwin, "Linear hashing", 1980).

#ifndef LAWN_REDIS_TABLE_H
#define LAWN_REDIS_TABLE_H

#include <stddef.h>
#include <stdint.h>

namespace lawn_redis
{

// Never NULL: Redis ends when memory does. The module defines them by what
// Redis has, so that its limit of memory counts.
void *allocate(size_t size);
void *reallocate(void *memory, size_t size);
void release(void *memory);
size_t size_of(void *memory); // as allocated

// T is copied by its bytes.
template <typename T> class Table
{
public:
    Table() = default;
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;

    ~Table()
    {
        for (uint32_t i = 0; i < parts_; ++i) {
            release(part_[i]);
        }
        release(part_);
    }

    uint32_t size() const
    {
        return size_;
    }

    T &operator[](uint32_t i)
    {
        return part_[i / whole][i % whole];
    }
    const T &operator[](uint32_t i) const
    {
        return part_[i / whole][i % whole];
    }

    void push(const T &value)
    {
        if (size_ == capacity_) {
            grow();
        }
        ++size_;
        (*this)[size_ - 1] = value;
    }

    // The last part but one stays, so that a size that goes to and fro does not
    // allocate each time.
    void pop()
    {
        --size_;
        if (parts_ > 1 && capacity_ - size_ >= 2 * whole) {
            release(part_[--parts_]);
            capacity_ -= whole;
        }
    }

    size_t bytes() const
    {
        return capacity_ * sizeof(T) + room_ * sizeof(T *);
    }

private:
    static constexpr uint32_t whole = 512;

    // The first part doubles, as small arrays are many.
    void grow()
    {
        if (parts_ == room_) {
            room_ = room_ == 0 ? 1 : 2 * room_;
            part_ = static_cast<T **>(reallocate(part_, room_ * sizeof(T *)));
        }
        if (capacity_ < whole) {
            void *const old = parts_ == 0 ? nullptr : part_[0];
            capacity_ = capacity_ == 0 ? 2 : 2 * capacity_;
            part_[0] = static_cast<T *>(reallocate(old, capacity_ * sizeof(T)));
            parts_ = 1;
        } else {
            part_[parts_++] = static_cast<T *>(allocate(whole * sizeof(T)));
            capacity_ += whole;
        }
    }

    T **part_ = nullptr;
    uint32_t parts_ = 0;
    uint32_t room_ = 0; // for addresses of parts
    uint32_t size_ = 0;
    uint32_t capacity_ = 0;
};

// Nodes has, for the number of each node, chain(number), where the number of
// the next one is kept, and hash(number).
class Hash
{
public:
    static constexpr uint32_t none = UINT32_MAX;

    uint32_t count() const
    {
        return count_;
    }

    uint32_t first(uint64_t hash) const
    {
        return buckets_.size() == 0 ? none : buckets_[bucket(hash)];
    }

    template <typename Nodes>
    void insert(Nodes *nodes, uint32_t number, uint64_t hash)
    {
        if (count_ == buckets_.size()) {
            split(nodes);
        }
        ++count_;
        uint32_t *const head = &buckets_[bucket(hash)];
        nodes->chain(number) = *head;
        *head = number;
    }

    template <typename Nodes>
    void remove(Nodes *nodes, uint32_t number, uint64_t hash)
    {
        uint32_t *at = &buckets_[bucket(hash)];
        while (*at != number) {
            at = &nodes->chain(*at);
        }
        *at = nodes->chain(number);
        --count_;
        if (buckets_.size() > 4 * count_ + 8) {
            merge(nodes);
        }
    }

    size_t bytes() const
    {
        return buckets_.bytes();
    }

private:
    // The greatest power of two that is not above `n`.
    static uint32_t power(uint32_t n)
    {
        return 1u << (31 - __builtin_clz(n));
    }

    uint32_t bucket(uint64_t hash) const
    {
        const uint32_t half = power(buckets_.size());
        const uint32_t at = static_cast<uint32_t>(hash) & (2 * half - 1);
        return at < buckets_.size() ? at : at - half;
    }

    // What belongs to the new bucket is in the one that had its hashes so far.
    template <typename Nodes> void split(Nodes *nodes)
    {
        const uint32_t fresh = buckets_.size();
        buckets_.push(none);
        if (fresh == 0) {
            return;
        }
        const uint32_t mask = 2 * power(fresh) - 1;
        uint32_t *at = &buckets_[fresh - power(fresh)];
        uint32_t *to = &buckets_[fresh];
        while (*at != none) {
            const uint32_t number = *at;
            uint32_t *const chain = &nodes->chain(number);
            if ((static_cast<uint32_t>(nodes->hash(number)) & mask) == fresh) {
                *at = *chain;
                *to = number;
                *chain = none;
                to = chain;
            } else {
                at = chain;
            }
        }
    }

    template <typename Nodes> void merge(Nodes *nodes)
    {
        const uint32_t last = buckets_.size() - 1;
        uint32_t *at = &buckets_[last - power(last)];
        while (*at != none) {
            at = &nodes->chain(*at);
        }
        *at = buckets_[last];
        buckets_.pop();
    }

    Table<uint32_t> buckets_;
    uint32_t count_ = 0;
};

} // namespace lawn_redis

#endif
