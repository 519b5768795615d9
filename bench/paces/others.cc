// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Other ways to pace. All stamp the next packet of a flow with the time at
// which it may go, and file it by that:
//   - Carousel (Saeed et al., SIGCOMM 2017): a wheel of slots. A time before
//     the front goes to the front, and one beyond the horizon to the last slot,
//     from where it leaves too early.
//   - A binary heap.
//   - A list in the order of the times, which is searched from its end.

#include "paces/paces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace bench
{

namespace
{

struct Stamped {
    Stamped *prev;
    Stamped *next;
    double at; // when the next packet may go
    double gap;
    uint64_t sent;
};

class StampedPaces : public Paces
{
public:
    StampedPaces(const char *name, size_t bytes, size_t count)
        : Paces(name, bytes), flows_(count)
    {
    }

    void begin(size_t i, lawn_time_t now, double gap, double phase) override
    {
        flows_[i].at = static_cast<double>(now) + phase * gap;
        flows_[i].gap = gap;
        flows_[i].sent = 0;
        file(&flows_[i]);
    }

    uint64_t sent(size_t i) const override
    {
        return flows_[i].sent;
    }

protected:
    virtual void file(Stamped *flow) = 0;

    // A packet goes, and the next one is stamped.
    void send(Stamped *flow, lawn_time_t now)
    {
        ++flow->sent;
        ++packets;
        const double earliest = static_cast<double>(now) - most_behind;
        flow->at = std::max(flow->at, earliest) + flow->gap;
    }

    std::vector<Stamped> flows_;
};

class Carousel : public StampedPaces
{
public:
    explicit Carousel(size_t count)
        : StampedPaces("wheel, Carousel", sizeof(Stamped), count)
    {
    }

    void pass(lawn_time_t now) override
    {
        const lawn_time_t last = now / slot_width;
        for (; front_ <= last; ++front_) {
            Stamped **const slot = &slots_[front_ % slot_count];
            while (Stamped *const flow = *slot) {
                *slot = flow->next;
                send(flow, now);
                file(flow);
            }
        }
    }

private:
    static constexpr size_t slot_count = 4096;
    static constexpr lawn_time_t slot_width = 1000;

    // Never before its time: the slot is rounded up.
    void file(Stamped *flow) override
    {
        const lawn_time_t slot =
            static_cast<lawn_time_t>(std::ceil(flow->at / slot_width));
        const lawn_time_t filed =
            std::min(std::max(slot, front_), front_ + slot_count - 1);
        flow->next = slots_[filed % slot_count];
        slots_[filed % slot_count] = flow;
    }

    std::array<Stamped *, slot_count> slots_ = {};
    lawn_time_t front_ = 0;
};

class PaceHeap : public StampedPaces
{
public:
    explicit PaceHeap(size_t count)
        : StampedPaces("heap", sizeof(Stamped) + sizeof(Entry), count)
    {
        heap_.reserve(count);
    }

    void pass(lawn_time_t now) override
    {
        while (heap_.front().first <= static_cast<double>(now)) {
            std::pop_heap(heap_.begin(), heap_.end(), is_later);
            Stamped *const flow = heap_.back().second;
            heap_.pop_back();
            send(flow, now);
            file(flow);
        }
    }

private:
    using Entry = std::pair<double, Stamped *>;

    static bool is_later(const Entry &a, const Entry &b)
    {
        return a.first > b.first;
    }

    void file(Stamped *flow) override
    {
        heap_.emplace_back(flow->at, flow);
        std::push_heap(heap_.begin(), heap_.end(), is_later);
    }

    std::vector<Entry> heap_;
};

class PaceList : public StampedPaces
{
public:
    explicit PaceList(size_t count)
        : StampedPaces("sorted list", sizeof(Stamped), count)
    {
        head_.prev = head_.next = &head_;
    }

    // At the beginning, where they come in any order, all are sorted at once.
    void begin(size_t i, lawn_time_t now, double gap, double phase) override
    {
        is_filed_ = false;
        StampedPaces::begin(i, now, gap, phase);
        if (i + 1 == flows_.size()) {
            file_all();
        }
    }

    void pass(lawn_time_t now) override
    {
        while (head_.next->at <= static_cast<double>(now) &&
               head_.next != &head_) {
            Stamped *const flow = head_.next;
            flow->next->prev = &head_;
            head_.next = flow->next;
            send(flow, now);
            file(flow);
        }
    }

private:
    void file_all()
    {
        std::vector<Stamped *> all;
        for (Stamped &flow : flows_) {
            all.push_back(&flow);
        }
        std::sort(
            all.begin(), all.end(),
            [](const Stamped *a, const Stamped *b) { return a->at < b->at; });
        is_filed_ = true;
        for (Stamped *flow : all) {
            file(flow);
        }
    }

    void file(Stamped *flow) override
    {
        if (!is_filed_) {
            return;
        }
        Stamped *before = head_.prev;
        while (before != &head_ && before->at > flow->at) {
            before = before->prev;
        }
        flow->prev = before;
        flow->next = before->next;
        before->next->prev = flow;
        before->next = flow;
    }

    Stamped head_ = {};
    bool is_filed_ = false;
};

} // namespace

std::unique_ptr<Paces> make_carousel(size_t count)
{
    return std::make_unique<Carousel>(count);
}

std::unique_ptr<Paces> make_pace_heap(size_t count)
{
    return std::make_unique<PaceHeap>(count);
}

std::unique_ptr<Paces> make_pace_list(size_t count)
{
    return std::make_unique<PaceList>(count);
}

} // namespace bench
