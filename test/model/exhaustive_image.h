// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A region of memory as the state of a search: what changes in it is found by
// comparing it, cache line by cache line, with a copy; so it can be undone, and
// the whole has a hash that costs no more than the changes.

#ifndef LAWN_TEST_MODEL_EXHAUSTIVE_IMAGE_H
#define LAWN_TEST_MODEL_EXHAUSTIVE_IMAGE_H

#include "base/mix.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <array>
#include <vector>

namespace exhaustive
{

using Line = std::array<uint64_t, 8>;

struct Change {
    size_t line;
    Line before;
    uint64_t hash_before;
};

using Changes = std::vector<Change>;

class Image
{
public:
    // `size` is a multiple of a line's.
    void reset(void *memory, size_t size)
    {
        memory_ = static_cast<unsigned char *>(memory);
        copy_.assign(memory_, memory_ + size);
        hashes_.resize(size / sizeof(Line));
        hash_ = 0;
        for (size_t line = 0; line < hashes_.size(); ++line) {
            hashes_[line] = hash_of(line);
            hash_ += hashes_[line];
        }
    }

    // Of all bytes: equal states have equal hashes, and among a million states
    // two that differ have with a probability below 2^-24.
    uint64_t hash() const
    {
        return hash_;
    }

    // What changed since the last call.
    void record(Changes *changes)
    {
        changes->clear();
        for (size_t page = 0; page < copy_.size(); page += page_size) {
            const size_t left = copy_.size() - page;
            const size_t size = left < page_size ? left : page_size;
            if (is_changed(page, size)) {
                record_page(page, size, changes);
            }
        }
    }

    void undo(const Changes &changes)
    {
        for (const Change &change : changes) {
            const size_t at = change.line * sizeof(Line);
            memcpy(memory_ + at, &change.before, sizeof(Line));
            memcpy(copy_.data() + at, &change.before, sizeof(Line));
            hash_ += change.hash_before - hashes_[change.line];
            hashes_[change.line] = change.hash_before;
        }
    }

private:
    static constexpr size_t page_size = 2048; // compared at once

    bool is_changed(size_t at, size_t size) const
    {
        return memcmp(memory_ + at, copy_.data() + at, size) != 0;
    }

    void record_page(size_t page, size_t size, Changes *changes)
    {
        for (size_t at = page; at < page + size; at += sizeof(Line)) {
            if (is_changed(at, sizeof(Line))) {
                record_line(at / sizeof(Line), changes);
            }
        }
    }

    void record_line(size_t line, Changes *changes)
    {
        const size_t at = line * sizeof(Line);
        Change change = {line, {}, hashes_[line]};
        memcpy(&change.before, copy_.data() + at, sizeof(Line));
        changes->push_back(change);
        memcpy(copy_.data() + at, memory_ + at, sizeof(Line));
        hashes_[line] = hash_of(line);
        hash_ += hashes_[line] - change.hash_before;
    }

    uint64_t hash_of(size_t line) const
    {
        Line now;
        memcpy(&now, memory_ + line * sizeof(Line), sizeof(Line));
        uint64_t hash = line + 1;
        for (const uint64_t word : now) {
            hash = lawn::mix64(hash ^ word);
        }
        return hash;
    }

    unsigned char *memory_ = nullptr;
    std::vector<unsigned char> copy_;
    std::vector<uint64_t> hashes_; // of each line
    uint64_t hash_ = 0;            // their sum
};

} // namespace exhaustive

#endif
