// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The contenders of this build: Lawn, the floor, the reference schemes, and
// what the C++ library offers a program that has no timer library.

#include "contender.h"
#include "floor.h"
#include "peers/peers.h"

#include "schemes/hashed_wheel.h"
#include "schemes/hashed_wheel_sorted.h"
#include "schemes/hierarchical_wheel.h"
#include "schemes/hierarchical_wheel_nomigration.h"
#include "schemes/lawn_intrusive.h"
#include "schemes/lawn_textbook.h"
#include "schemes/multimap.h"
#include "schemes/multipass_wheel.h"
#include "schemes/ordered_list.h"
#include "schemes/resizing_wheel.h"
#include "schemes/simple_wheel.h"
#include "schemes/tree.h"
#include "schemes/unordered_list.h"

#include <algorithm>

namespace bench
{

namespace
{

// A binary heap with lazy deletion, what most event loops do: a stop or re-arm
// leaves the old entry behind. It is thrown away when it comes up, or with all
// others of its kind when they are more than half of the heap, as in Python's
// asyncio; without that the heap would grow with every re-arm, and what is put
// off would come after the measuring. An entry points to its node, so that
// memory may not be freed after a stop.
class PriorityQueue
{
public:
    static constexpr Traits traits{
        "priority-queue",
        "std::push_heap, lazy deletion",
        false,
        false,
        true,
        false,
    };

    struct Node {
        uint64_t start = 0; // number of the start that counts; 0: idle
    };

    explicit PriorityQueue(const Config &)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        running_ += node.start == 0;
        node.start = ++starts_;
        heap_.push_back(
            {ttl > never - now ? never : now + ttl, starts_, &node});
        std::push_heap(heap_.begin(), heap_.end());
        compact();
    }

    bool stop(Node &node)
    {
        if (node.start == 0) {
            return false;
        }
        node.start = 0;
        --running_;
        compact();
        return true;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        unsigned count = 0;
        while (!heap_.empty() && heap_.front().deadline <= now &&
               (budget == 0 || count < budget)) {
            const Entry entry = heap_.front();
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
            if (!is_stale(entry)) {
                entry.node->start = 0;
                --running_;
                ++count;
                fired(*entry.node, now);
            }
        }
        return count;
    }

private:
    struct Entry {
        Time deadline;
        uint64_t start;
        Node *node;

        bool operator<(const Entry &other) const
        {
            return deadline != other.deadline ? deadline > other.deadline
                                              : start > other.start;
        }
    };

    static bool is_stale(const Entry &entry)
    {
        return entry.node->start != entry.start;
    }

    void compact()
    {
        if (heap_.size() > 2 * running_ + 100) {
            heap_.erase(std::remove_if(heap_.begin(), heap_.end(), is_stale),
                        heap_.end());
            std::make_heap(heap_.begin(), heap_.end());
        }
    }

    std::vector<Entry> heap_;
    size_t running_ = 0;
    uint64_t starts_ = 0;
};

std::vector<Contender> all_contenders()
{
    const std::pair<Family, std::vector<Contender>> families[] = {
        {Family::lawn, {lawn(), lawn_pause(), lawn_queue(), memory_floor()}},
        {Family::sorted,
         {contender_of<UnorderedList>(), contender_of<OrderedList>(),
          contender_of<Tree>(), contender_of<Multimap>(),
          contender_of<PriorityQueue>()}},
        {Family::wheel,
         {contender_of<SimpleWheel>(), contender_of<HashedWheelSorted>(),
          contender_of<HashedWheel>(), contender_of<HierarchicalWheel>(),
          contender_of<NoMigrationWheel>(), contender_of<ResizingWheel>(),
          contender_of<MultipassWheel>()}},
        {Family::fifos,
         {contender_of<LawnTextbook>(), contender_of<LawnIntrusive>()}},
        {Family::library, peers()},
    };
    std::vector<Contender> list;
    for (const auto &[family, members] : families) {
        for (Contender contender : members) {
            contender.family = family;
            list.push_back(contender);
        }
    }
    return list;
}

} // namespace

const std::vector<Contender> &contenders()
{
    static const std::vector<Contender> all = all_contenders();
    return all;
}

} // namespace bench
