// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What will happen in the world, earliest first; what happens at one time in
// the order in which it was decided.

#ifndef LAWN_TEST_SIM_EVENTS_H
#define LAWN_TEST_SIM_EVENTS_H

#include "units.h"

#include <queue>
#include <vector>

namespace sim
{

enum class Happening : uint8_t {
    arrival, // of the packet `index`
    reopen,  // the connection `index`
    fault,   // the next of kind `index`
    resume,  // the host `index`, if it is the same boot
    thaw,    // its clock, likewise
    restart, // the host `index`
    sweep,   // look for what should have happened
    calm,    // the end of all faults
    quiet,   // nobody says anything new
};

struct Event {
    Nsec at;
    uint64_t order;
    uint32_t index;
    uint32_t boot;
    Happening what;
};

class EventQueue
{
public:
    void add(Nsec at, Happening what, uint32_t index, uint32_t boot = 0)
    {
        heap_.push({at, ++order_, index, boot, what});
    }

    Nsec next() const
    {
        return heap_.empty() ? never : heap_.top().at;
    }

    Event take()
    {
        const Event event = heap_.top();
        heap_.pop();
        return event;
    }

private:
    struct Later {
        bool operator()(const Event &a, const Event &b) const
        {
            return a.at != b.at ? a.at > b.at : a.order > b.order;
        }
    };

    std::priority_queue<Event, std::vector<Event>, Later> heap_;
    uint64_t order_ = 0;
};

} // namespace sim

#endif
