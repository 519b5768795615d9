// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// From the lines of a trace to what they mean; see model.h.

#include "model.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

namespace trace_file
{

namespace
{

constexpr size_t none = SIZE_MAX;

// What is known of a connection so far.
struct Known {
    Time heard_at = never;
    uint64_t newest = never; // in ticks, as all below
    uint64_t oldest = never;
    bool is_outstanding = false;
    bool has_evidence = false; // the next resending is by it
    bool has_resent = false;   // since the latest Kind::conn
    size_t resent = none;      // the latest resending, in `marks`
    std::vector<std::pair<uint64_t, Time>>
        sends;                     // and in ns, some of them twice
    std::vector<uint64_t> resends; // when it sent again, in order,
    std::vector<uint64_t> asks;    // and when it asked
};

// What is known of a timer.
struct Running {
    Time deadline = never;
    bool runs = false;
    size_t connection = none; // whose retransmit or keepalive timer it is
    bool is_retransmit = false;
    size_t timer = none; // in Model::timers
};

class Builder : public Listener
{
public:
    void begin(unsigned budget) override
    {
        model_.budget = budget;
    }

    void hear(const Event &event) override
    {
        ++model_.events;
        model_.end = event.now;
        switch (event.kind) {
        case Kind::start:
            start(event);
            break;
        case Kind::stop:
        case Kind::pause:
            stop(event);
            break;
        case Kind::fire:
            fire(event);
            break;
        case Kind::poll:
            poll(event);
            break;
        case Kind::stall:
            model_.stalls.push_back({event.now, event.value[0]});
            break;
        default:
            tell(event);
            break;
        }
        if (has_polled_ && event.now == polled_at_) {
            note_backlog();
        }
    }

    Model finish()
    {
        for (size_t i = 0; i < known_.size(); ++i) {
            add_sends(model_.connections[i], known_[i]);
        }
        auto &timers = model_.timers;
        timers.erase(
            std::remove_if(timers.begin(), timers.end(),
                           [](const Timer &t) { return t.runs.empty(); }),
            timers.end());
        return std::move(model_);
    }

private:
    // ---- The engine

    void poll(const Event &event)
    {
        if (has_polled_) {
            model_.gaps.push_back(
                {event.now, (event.now - polled_at_) / event.value[0]});
        }
        has_polled_ = true;
        Due before = {never, 0};
        while (!due_.empty() && due_.front().first <= event.now) {
            std::pop_heap(due_.begin(), due_.end(), std::greater<Due>());
            const Due due = due_.back();
            due_.pop_back();
            const Running &timer = timers_[due.second];
            waiting_ +=
                timer.runs && timer.deadline == due.first && due != before;
            before = due;
        }
        polled_at_ = event.now;
    }

    // What the events at the time of a pass leave waiting: of several, the
    // last.
    void note_backlog()
    {
        std::vector<Point> &points = model_.backlog;
        if (!points.empty() && points.back().time == polled_at_) {
            points.back().value = waiting_;
        } else if (points.empty() || points.back().value != waiting_) {
            points.push_back({polled_at_, waiting_});
        }
    }

    bool is_waiting(const Running &timer) const
    {
        return has_polled_ && timer.runs && timer.deadline <= polled_at_;
    }

    // ---- Timers

    Running &timer_of(uint64_t name)
    {
        return timers_[name];
    }

    void end_run(Running &timer, Time now, bool fired)
    {
        waiting_ -= is_waiting(timer);
        if (timer.runs && timer.timer != none) {
            Timer::Run &run = model_.timers[timer.timer].runs.back();
            run.end = now;
            run.fired = fired;
        }
        timer.runs = false;
    }

    void start(const Event &event)
    {
        Running &timer = timer_of(event.name);
        end_run(timer, event.now, false);
        const Time ttl = event.value[0];
        timer.deadline = ttl >= never - event.now ? never : event.now + ttl;
        timer.runs = true;
        waiting_ += is_waiting(timer);
        if (timer.deadline != never && !is_waiting(timer)) {
            due_.push_back({timer.deadline, event.name});
            std::push_heap(due_.begin(), due_.end(), std::greater<Due>());
        }
        if (timer.is_retransmit) {
            model_.connections[timer.connection].timer.push_back(
                set_to(event.now, timer.deadline));
        }
        if (timer.connection == none) {
            add_run(timer, event);
        }
    }

    // 0 and `never` have another meaning in Connection::timer.
    static Point set_to(Time now, Time deadline)
    {
        return {now, std::clamp<Time>(deadline, 1, never - 1)};
    }

    // Whether it is a connection's shows in the next line, if at all: then
    // disown() takes the run away.
    void add_run(Running &timer, const Event &event)
    {
        if (timer.timer == none) {
            timer.timer = model_.timers.size();
            model_.timers.push_back({event.name, {}});
        }
        model_.timers[timer.timer].runs.push_back(
            {event.now, timer.deadline, never, false});
    }

    void stop(const Event &event)
    {
        Running &timer = timer_of(event.name);
        const bool ran = timer.runs;
        end_run(timer, event.now, false);
        if (ran && timer.is_retransmit) {
            model_.connections[timer.connection].timer.push_back(
                {event.now, 0});
        }
        if (timer.is_retransmit) {
            known_[timer.connection].is_outstanding =
                known_[timer.connection].is_outstanding &&
                event.kind == Kind::pause;
        }
    }

    void fire(const Event &event)
    {
        Running &timer = timer_of(event.name);
        const Time deadline = timer.deadline;
        const bool ran = timer.runs;
        end_run(timer, event.now, true);
        if (ran) {
            model_.late.push_back(
                {event.now, event.now > deadline ? event.now - deadline : 0});
        }
        if (timer.is_retransmit) {
            model_.connections[timer.connection].timer.push_back(
                {event.now, never});
        }
    }

    // ---- Connections

    size_t connection_of(uint64_t name)
    {
        Running &timer = timer_of(name);
        if (timer.connection == none) {
            timer.connection = model_.connections.size();
            timer.is_retransmit = true;
            Connection connection = {};
            connection.name = name;
            // Its timer has just been started, as a timer of its own.
            if (timer.runs) {
                connection.timer.push_back(set_to(model_.end, timer.deadline));
            }
            disown(timer);
            model_.connections.push_back(std::move(connection));
            known_.emplace_back();
        }
        return timer.connection;
    }

    // Its runs are told by its connection.
    void disown(Running &timer)
    {
        if (timer.timer != none) {
            model_.timers[timer.timer].runs.clear();
            timer.timer = none;
        }
    }

    void tell(const Event &event)
    {
        const size_t which = connection_of(event.name);
        Connection &connection = model_.connections[which];
        Known &known = known_[which];
        const auto mark = [&](Mark what, uint64_t value = 0) {
            connection.marks.push_back(
                {event.now, event.now_ticks, what, value, never, false});
        };
        switch (event.kind) {
        case Kind::conn:
            learn(event, connection, known);
            break;
        case Kind::keepalive:
            own_keepalive(event, which);
            break;
        case Kind::evidence:
            known.has_evidence = true;
            break;
        case Kind::resend:
            known.resent = connection.marks.size();
            known.resends.push_back(event.now_ticks);
            mark(known.has_evidence ? Mark::by_evidence : Mark::by_silence);
            connection.marks.back().sent_at = known.oldest;
            connection.marks.back().by_evidence = known.has_evidence;
            known.has_evidence = false;
            known.has_resent = true;
            break;
        case Kind::needless:
            if (known.resent != none) {
                Marked &resent = connection.marks[known.resent];
                resent.mark = Mark::unneeded;
                resent.value = event.now - resent.time;
            }
            break;
        case Kind::ask:
            known.asks.push_back(event.now_ticks);
            mark(Mark::ask);
            break;
        case Kind::probe:
            mark(Mark::probe);
            break;
        case Kind::excuse:
            mark(Mark::excuse);
            break;
        case Kind::undo:
            mark(Mark::undo);
            break;
        default:
            mark(Mark::dead, event.value[0]);
            break;
        }
    }

    void own_keepalive(const Event &event, size_t which)
    {
        Running &timer = timer_of(event.value[0]);
        if (timer.connection == none) {
            timer.connection = which;
            disown(timer);
        }
        model_.connections[which].keepalive = event.value[0];
    }

    // A connection that waited for an answer has heard one. Several may come
    // at one time; each leaves something other, but for one that is of nothing
    // new.
    static bool is_ack(const Event &event, const Known &known)
    {
        const uint64_t *const value = event.value;
        return known.is_outstanding && value[heard_at] != never &&
               (value[heard_at] != known.heard_at || value[oldest] == never ||
                event.ticks[newest] != known.newest ||
                (event.ticks[oldest] != known.oldest && !known.has_resent &&
                 value[heard_at] == event.now));
    }

    // If an ACK names a later transmission than all before, that is the round
    // trip.
    static void learn(const Event &event, Connection &connection, Known &known)
    {
        const uint64_t *const value = event.value;
        const bool is_outstanding = value[oldest] != never;
        uint64_t rtt = 0;
        if (is_ack(event, known)) {
            const uint64_t named = event.ticks[newest];
            const bool is_new = named != never && named != known.newest;
            if (is_new) {
                rtt = event.now - std::min(event.now, value[newest]);
            }
            if (is_new && !std::binary_search(known.asks.begin(),
                                              known.asks.end(), named)) {
                known.sends.push_back({named, value[newest]});
            }
            connection.marks.push_back({event.now, event.now_ticks, Mark::ack,
                                        rtt, is_new ? named : never, false});
        }
        known.has_resent = false;
        if (is_outstanding) {
            known.sends.push_back({event.ticks[oldest], value[oldest]});
        }
        known.heard_at = value[heard_at];
        known.newest = event.ticks[newest];
        known.oldest = event.ticks[oldest];
        known.is_outstanding = is_outstanding;
        const Metrics metrics = {event.now, value[rto], value[srtt],
                                 value[rttvar], rtt};
        connection.metrics.push_back(metrics);
    }

    // Each time at which something was sent for the first time.
    static void add_sends(Connection &connection, Known &known)
    {
        std::sort(known.sends.begin(), known.sends.end());
        known.sends.erase(std::unique(known.sends.begin(), known.sends.end()),
                          known.sends.end());
        for (const auto &[ticks, send] : known.sends) {
            if (ticks != 0 && !std::binary_search(known.resends.begin(),
                                                  known.resends.end(), ticks)) {
                connection.marks.push_back(
                    {send, ticks, Mark::send, 0, ticks, false});
            }
        }
        std::stable_sort(
            connection.marks.begin(), connection.marks.end(),
            [](const Marked &a, const Marked &b) { return a.ticks < b.ticks; });
    }

    Model model_;
    std::vector<Known> known_; // of model_.connections
    std::unordered_map<uint64_t, Running> timers_;
    // A heap of the starts by deadline, and of what was stopped or started
    // again meanwhile.
    using Due = std::pair<Time, uint64_t>;
    std::vector<Due> due_;
    size_t waiting_ = 0; // was due at the latest pass, and runs
    bool has_polled_ = false;
    Time polled_at_ = 0;
};

} // namespace

const char *name_of(Mark mark)
{
    static const char *const names[] = {
        "send", "ack",   "evidence", "silence", "needless",
        "ask",  "probe", "excuse",   "undo",    "dead",
    };
    return names[static_cast<size_t>(mark)];
}

Model read_model(const char *path)
{
    Builder builder;
    read(path, builder);
    return builder.finish();
}

} // namespace trace_file
