// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The program on virtual time; see measurement.h. It sees inside the lawn: how
// many timers an advance has touched so far.

#include "evaluation/measurement.h"

#include "timer/lawn_impl.h"

#include <lawn/queue.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <stdexcept>
#include <vector>

namespace evaluation
{

namespace
{

class Program;

struct Object {
    lawn_timer_t timer; // first
    Program *program;
    Time ttl;
    unsigned group;
};

// What will happen to a timer before it expires.
struct Event {
    Time at;
    Object *object;
    Fate fate;

    bool operator<(const Event &other) const
    {
        return at > other.at; // the earliest has the highest priority
    }
};

// When timers start.
class Starts
{
public:
    Starts(const Load &load, Random &random) : load_(load), random_(random)
    {
        step();
    }

    Time next() const
    {
        return static_cast<Time>(at_);
    }

    void step()
    {
        const double gap = 1 / load_.rate;
        switch (load_.arrivals) {
        case Arrivals::poisson:
            at_ += random_.exponential(gap);
            break;
        case Arrivals::periodic:
            at_ += gap;
            break;
        case Arrivals::bursty:
            step_in_bursts(gap);
            break;
        }
    }

private:
    // The time within bursts passes as for Poisson; the time between is added.
    void step_in_bursts(double gap)
    {
        constexpr double on = burst_on;
        constexpr double period = burst_period;
        within_ += random_.exponential(gap * on / period);
        while (within_ >= on) {
            within_ -= on;
            burst_ += period;
        }
        at_ = burst_ + within_;
    }

    const Load &load_;
    Random &random_;
    double at_ = 0;
    double burst_ = 0;  // its begin
    double within_ = 0; // the burst
};

class Program
{
public:
    Program(const Load &load, uint64_t seed)
        : load_(load), random_(seed), starts_(load, random_)
    {
        if (lawn_create(nullptr, &lawn_) != LAWN_OK) {
            throw std::runtime_error("cannot make a lawn");
        }
    }

    ~Program()
    {
        lawn_destroy(lawn_); // the queues with it
    }

    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    Measurement run(Time length)
    {
        const Time begin = longest(load_.ttls) + burst_period;
        const Time middle = begin + length / 2;
        const Time end = begin + length;
        const Time sample = length / 16;
        Time next_sample = begin;
        while (now_ < end) {
            const Time before = now_;
            now_ = next_;
            is_measuring_ = now_ >= begin;
            serve_events();
            if (is_measuring_) {
                weigh(static_cast<double>(now_ - before));
            }
            if (now_ >= next_sample) {
                next_sample += sample;
                look();
            }
            pass();
            if (before < middle && now_ >= middle) {
                backlog_at_middle_ = overdue();
                started_at_middle_ = started_;
            }
        }
        return result();
    }

private:
    void serve_events()
    {
        for (;;) {
            const bool has_event = !events_.empty() && events_.top().at <= now_;
            if (starts_.next() <= now_ &&
                (!has_event || starts_.next() <= events_.top().at)) {
                begin_life(starts_.next());
                starts_.step();
            } else if (has_event) {
                const Event event = events_.top();
                events_.pop();
                serve(event);
            } else {
                return;
            }
        }
    }

    void begin_life(Time at)
    {
        const Ttl ttl = ttl_at(load_.ttls, random_.uniform());
        objects_.push_back({{}, this, ttl.ttl, ttl.group});
        Object *const object = &objects_.back();
        lawn_timer_init(&object->timer, on_expired);
        ++running_[ttl.group];
        ++started_;
        arm(object, at);
    }

    void arm(Object *object, Time at)
    {
        if (load_.filing == Filing::queues) {
            lawn_queue_t *&queue = queues_[object->ttl];
            if (!queue &&
                lawn_queue_create(lawn_, object->ttl, &queue) != LAWN_OK) {
                throw std::runtime_error("cannot make a queue");
            }
            lawn_queue_start(queue, &object->timer, at);
        } else {
            lawn_timer_start(lawn_, &object->timer, at, object->ttl);
        }
        const Fate fate = draw(load_.fates, random_);
        if (fate != Fate::expire) {
            const double wait =
                random_.uniform() * static_cast<double>(object->ttl);
            events_.push({at + static_cast<Time>(wait), object, fate});
        }
    }

    void serve(const Event &event)
    {
        lawn_see(lawn_, event.at);
        if (event.fate == Fate::rearm) {
            arm(event.object, event.at);
            return;
        }
        --running_[event.object->group];
        if (event.fate == Fate::stop) {
            lawn_timer_stop(lawn_, &event.object->timer);
        } else {
            lawn_timer_pause(lawn_, &event.object->timer);
        }
    }

    void pass()
    {
        most_ = load_.budget ? load_.budget : SIZE_MAX;
        const lawn::Work work = lawn::advance_as_of(lawn_, now_, load_.budget);
        next_ = now_ + load_.pass_cost + work.touched * load_.touch_cost;
        if (is_measuring_) {
            ++passes_;
            touched_ += work.touched;
            fired_ += work.fired;
        }
    }

    static void on_expired(lawn_timer_t *timer, lawn_time_t)
    {
        Object *const object = reinterpret_cast<Object *>(timer);
        object->program->expire(object);
    }

    void expire(const Object *object)
    {
        const size_t before = most_ - lawn::impl_of(lawn_)->budget_left;
        const Time at = now_ + (before + 1) * load_.touch_cost;
        --running_[object->group];
        if (is_measuring_) {
            late_.push_back(at - lawn_timer_deadline(&object->timer));
        }
    }

    // Counts the timers that run, for the time since the last pass.
    void weigh(double time)
    {
        time_ += time;
        population_ += time * static_cast<double>(lawn_count(lawn_));
        size_t sum = 0;
        for (unsigned i = 0; i < groups(load_.ttls); ++i) {
            by_group_[i] += time * static_cast<double>(running_[i]);
            sum += running_[i];
        }
        is_consistent_ = is_consistent_ && sum == lawn_count(lawn_);
    }

    // Walks the whole lawn, so only now and then.
    void look()
    {
        std::vector<Time> ttls;
        lawn_for_each(
            lawn_,
            [](const lawn_timer_t *timer, void *arg) {
                static_cast<std::vector<Time> *>(arg)->push_back(
                    reinterpret_cast<const Object *>(timer)->ttl);
            },
            &ttls);
        std::sort(ttls.begin(), ttls.end());
        distinct_ += static_cast<double>(std::unique(ttls.begin(), ttls.end()) -
                                         ttls.begin());
        ++looks_;
        is_consistent_ = is_consistent_ && lawn_check(lawn_) == LAWN_OK;
    }

    double overdue()
    {
        struct Count {
            Time now;
            size_t timers;
        } count = {now_, 0};
        lawn_for_each(
            lawn_,
            [](const lawn_timer_t *timer, void *arg) {
                Count *const all = static_cast<Count *>(arg);
                all->timers += lawn_timer_deadline(timer) <= all->now;
            },
            &count);
        return static_cast<double>(count.timers);
    }

    Measurement result()
    {
        Measurement m;
        m.population = population_ / time_;
        for (unsigned i = 0; i < most_groups; ++i) {
            m.by_group[i] = by_group_[i] / time_;
        }
        m.distinct_ttls = distinct_ / looks_;
        const double passes = static_cast<double>(passes_);
        m.touched = static_cast<double>(touched_) / passes;
        m.fired = static_cast<double>(fired_) / passes;
        std::sort(late_.begin(), late_.end());
        if (!late_.empty()) {
            double sum = 0;
            for (const Time late : late_) {
                sum += static_cast<double>(late);
            }
            m.late_mean = sum / static_cast<double>(late_.size());
            m.late_p50 = static_cast<double>(late_[late_.size() / 2]);
            m.late_p99 = static_cast<double>(late_[late_.size() * 99 / 100]);
        }
        m.overdue_growth = (overdue() - backlog_at_middle_) /
                           static_cast<double>(started_ - started_at_middle_);
        m.is_consistent = is_consistent_;
        return m;
    }

    const Load load_;
    Random random_;
    Starts starts_;
    lawn_t *lawn_ = nullptr;
    std::map<Time, lawn_queue_t *> queues_;
    // Each timer has its own memory for ever: a paused one stays in the lawn.
    std::deque<Object> objects_;
    std::priority_queue<Event> events_;
    Time now_ = 0;
    Time next_ = 1; // pass
    size_t most_ = 0;
    bool is_measuring_ = false;
    bool is_consistent_ = true;
    std::array<size_t, most_groups> running_ = {};
    size_t started_ = 0;
    size_t started_at_middle_ = 0;
    double backlog_at_middle_ = 0;
    double time_ = 0;
    double population_ = 0;
    std::array<double, most_groups> by_group_ = {};
    double distinct_ = 0;
    double looks_ = 0;
    size_t passes_ = 0;
    size_t touched_ = 0;
    size_t fired_ = 0;
    std::vector<Time> late_;
};

} // namespace

Measurement measure(const Load &load, Time length, uint64_t seed)
{
    Program program(load, seed);
    return program.run(length);
}

double measure_highest_rate(Load load, double expected, Time length,
                            uint64_t seed)
{
    constexpr unsigned halvings = 7;
    double from = expected / 2;
    double to = expected * 3 / 2;
    for (unsigned i = 0; i < halvings; ++i) {
        load.rate = (from + to) / 2;
        const bool keeps_up = measure(load, length, seed).overdue_growth < 0.01;
        (keeps_up ? from : to) = load.rate;
    }
    return (from + to) / 2;
}

} // namespace evaluation
