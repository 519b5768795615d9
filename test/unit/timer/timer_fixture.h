// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A lawn with timers that note when they fired, and do what they are told then.

#ifndef LAWN_TEST_UNIT_TIMER_FIXTURE_H
#define LAWN_TEST_UNIT_TIMER_FIXTURE_H

#include <lawn/queue.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace lawn_test
{

using Times = std::vector<lawn_time_t>;

class TimerFixture : public testing::Test
{
protected:
    struct Probe {
        lawn_timer_t timer; // first
        TimerFixture *owner;
        Times fired_at;
        std::function<void(lawn_time_t)> then;
    };

    using Probes = std::vector<Probe *>;

    TimerFixture()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }

    ~TimerFixture() override
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
    }

    static Probe *probe_of(lawn_timer_t *timer)
    {
        return reinterpret_cast<Probe *>(timer);
    }

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        EXPECT_LE(lawn_timer_deadline(timer) + 1, now + 1); // INFINITY is 0
        on_drained(timer, now);
    }

    static void on_drained(lawn_timer_t *timer, lawn_time_t now)
    {
        Probe *const probe = probe_of(timer);
        EXPECT_FALSE(lawn_timer_is_active(timer));
        probe->fired_at.push_back(now);
        probe->owner->fired_.push_back(probe);
        if (probe->then) {
            probe->then(now);
        }
    }

    Probe &probe()
    {
        probes_.push_back(std::make_unique<Probe>());
        lawn_timer_init(&probes_.back()->timer, on_expired);
        probes_.back()->owner = this;
        return *probes_.back();
    }

    Probes make(size_t count)
    {
        Probes made;
        while (made.size() < count) {
            made.push_back(&probe());
        }
        return made;
    }

    // Frees the probe; its timer must be idle.
    void free_probe(Probe *probe)
    {
        for (auto &i : probes_) {
            if (i.get() == probe) {
                i.reset();
            }
        }
    }

    lawn_queue_t *create(lawn_time_t after)
    {
        lawn_queue_t *queue = nullptr;
        EXPECT_EQ(lawn_queue_create(lawn_, after, &queue), LAWN_OK);
        return queue;
    }

    void start(Probe &probe, lawn_time_t now, lawn_time_t ttl)
    {
        lawn_timer_start(lawn_, &probe.timer, now, ttl);
    }

    // What has fired since the last call, in order.
    Probes fired()
    {
        Probes fired;
        fired.swap(fired_);
        return fired;
    }

    lawn_t *lawn_ = nullptr;
    std::vector<std::unique_ptr<Probe>> probes_;

private:
    Probes fired_;
};

} // namespace lawn_test

#endif
