// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is on its way, by its time of arrival. Most of it arrives in the order
// in which it was sent and needs no heap: it is appended to a list that is
// sorted anyway. Only what overtakes the latest of that list is in a heap.

#ifndef LAWN_BENCH_RTO_ARRIVALS_H
#define LAWN_BENCH_RTO_ARRIVALS_H

#include "rto/contender.h"

#include <algorithm>
#include <cstddef>

namespace bench::rto
{

struct Arrival {
    enum Kind : uint8_t {
        data,   // of message `id`, at the peer
        asking, // at the peer
        timer,  // of a delayed ACK, at the peer
        ack,    // of message `id`, or of all before it
        answer, // to asking; like an ACK where those are cumulative
    };

    Tick at;
    Sending sending; // that is answered
    uint32_t id;
    Kind kind;
};

class Arrivals
{
public:
    void clear()
    {
        sorted.clear();
        first = 0;
        heap.clear();
    }

    Tick next() const
    {
        const Tick of_sorted = first < sorted.size() ? sorted[first].at : never;
        return heap.empty() ? of_sorted : std::min(of_sorted, heap.front().at);
    }

    void push(const Arrival &arrival)
    {
        if (first == sorted.size()) {
            sorted.clear();
            first = 0;
        }
        if (sorted.empty() || arrival.at >= sorted.back().at) {
            sorted.push_back(arrival);
        } else {
            heap.push_back(arrival);
            std::push_heap(heap.begin(), heap.end(), is_later);
        }
    }

    // There must be one. Of two that come at once, the one from the list was
    // sent first.
    Arrival pop()
    {
        if (heap.empty() ||
            (first < sorted.size() && sorted[first].at <= heap.front().at)) {
            const Arrival arrival = sorted[first++];
            if (first == compact_at) {
                sorted.erase(sorted.begin(),
                             sorted.begin() + static_cast<long>(first));
                first = 0;
            }
            return arrival;
        }
        std::pop_heap(heap.begin(), heap.end(), is_later);
        const Arrival arrival = heap.back();
        heap.pop_back();
        return arrival;
    }

private:
    // So many that were taken are dropped at once.
    static constexpr size_t compact_at = 4096;

    static bool is_later(const Arrival &a, const Arrival &b)
    {
        return a.at > b.at;
    }

    std::vector<Arrival> sorted;
    size_t first = 0;
    std::vector<Arrival> heap;
};

} // namespace bench::rto

#endif
