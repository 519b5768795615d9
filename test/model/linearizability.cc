// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "linearizability.h"

#include "base/mix.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace history
{

namespace
{

// How much of each thread's events was put in order, and the deadline of the
// run that goes on.
struct Point {
    std::array<uint32_t, most_threads> done;
    uint64_t deadline;

    bool operator==(const Point &other) const
    {
        return deadline == other.deadline && done == other.done;
    }
};

struct Hash {
    size_t operator()(const Point &point) const
    {
        uint64_t hash = point.deadline;
        for (const uint32_t done : point.done) {
            hash = lawn::mix64(hash + done + 1);
        }
        return hash;
    }
};

constexpr uint64_t stopped = UINT64_MAX;

class Search
{
public:
    explicit Search(const History &history) : history_(history)
    {
        for (const std::vector<Event> &events : history) {
            total_ += events.size();
        }
    }

    // By depth, without recursion, and first what had returned first. Points
    // are remembered where there is more than one way on.
    std::string run()
    {
        std::vector<Point> open = {{{}, stopped}};
        while (!open.empty()) {
            const Point point = open.back();
            open.pop_back();
            const uint64_t depth = depth_of(point);
            if (depth == total_ && point.deadline == stopped) {
                return "";
            }
            if (depth >= best_depth_) {
                best_depth_ = depth;
                best_ = point;
            }
            if (open.empty()) {
                seen_.clear(); // there is nowhere to come back from
            }
            const std::vector<Way> ways = ways_from(point);
            for (const Way &way : ways) {
                if (ways.size() == 1 || seen_.insert(way.to).second) {
                    open.push_back(way.to);
                }
            }
        }
        return describe();
    }

private:
    struct Way {
        uint64_t end; // of the event
        Point to;
    };

    uint64_t depth_of(const Point &point) const
    {
        uint64_t depth = 0;
        for (const uint32_t done : point.done) {
            depth += done;
        }
        return depth;
    }

    const Event *next_of(const Point &point, size_t thread) const
    {
        const std::vector<Event> &events = history_[thread];
        return point.done[thread] < events.size() ? &events[point.done[thread]]
                                                  : nullptr;
    }

    // False when it cannot be that.
    static bool apply(const Event &event, uint64_t *deadline)
    {
        switch (event.what) {
        case What::start:
            *deadline = event.time;
            return true;
        case What::stopped:
            if (*deadline == stopped) {
                return false;
            }
            break;
        case What::not_stopped:
            return *deadline == stopped;
        case What::fired:
            if (*deadline == stopped || *deadline > event.time) {
                return false;
            }
            break;
        }
        *deadline = stopped;
        return true;
    }

    // What returned last comes first, as it is taken from the end.
    std::vector<Way> ways_from(const Point &point) const
    {
        uint64_t first_end = UINT64_MAX;
        for (size_t i = 0; i < history_.size(); ++i) {
            if (const Event *const event = next_of(point, i)) {
                first_end = std::min(first_end, event->end);
            }
        }
        std::vector<Way> ways;
        for (size_t i = 0; i < history_.size(); ++i) {
            const Event *const event = next_of(point, i);
            if (!event || event->begin > first_end) {
                continue;
            }
            uint64_t deadline = point.deadline;
            if (apply(*event, &deadline)) {
                ways.push_back({event->end, {point.done, deadline}});
                ++ways.back().to.done[i];
            }
        }
        std::sort(ways.begin(), ways.end(),
                  [](const Way &a, const Way &b) { return a.end > b.end; });
        return ways;
    }

    std::string describe() const
    {
        static const char *const names[] = {"start at ", "stop: true",
                                            "stop: false", "callback at "};
        std::string text = "after " + std::to_string(best_depth_) + " of " +
                           std::to_string(total_) + " events";
        text += best_.deadline == stopped
                    ? ", stopped"
                    : ", runs to " + std::to_string(best_.deadline);
        for (size_t i = 0; i < history_.size(); ++i) {
            if (const Event *const event = next_of(best_, i)) {
                text += "; thread " + std::to_string(i) + ": ";
                text += names[static_cast<int>(event->what)];
                if (event->time != 0) {
                    text += std::to_string(event->time);
                }
                text += " in [" + std::to_string(event->begin) + ", " +
                        std::to_string(event->end) + "]";
            }
        }
        return text;
    }

    const History &history_;
    uint64_t total_ = 0;
    std::unordered_set<Point, Hash> seen_;
    Point best_ = {};
    uint64_t best_depth_ = 0;
};

} // namespace

std::string check(const History &history)
{
    if (history.size() > most_threads) {
        return "too many threads";
    }
    return Search(history).run();
}

} // namespace history
