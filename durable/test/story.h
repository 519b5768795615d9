// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A history that a test makes up for the judge.

#ifndef LAWN_TEST_DURABLE_STORY_H
#define LAWN_TEST_DURABLE_STORY_H

#include "lawn-verify/judge.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace lawn_test
{

// Writes a history. Times are in microseconds from its beginning.
class Story
{
public:
    // The word of a start, a stop or an update is its durability.
    Story &start(int64_t time, uint64_t operation, const char *id,
                 const char *word = "")
    {
        return add(lawn_verify::EventKind::start, time, operation, id, 0, word);
    }

    Story &started(int64_t time, uint64_t operation, const char *id,
                   uint64_t generation, int64_t due)
    {
        add(lawn_verify::EventKind::started, time, operation, id, generation);
        events_.back().due_us = due;
        return *this;
    }

    // Both at once.
    Story &timer(int64_t time, uint64_t operation, const char *id,
                 uint64_t generation, int64_t due, const char *word = "")
    {
        return start(time, operation, id, word)
            .started(time + 1, operation, id, generation, due);
    }

    Story &unheard(int64_t time, uint64_t operation, const char *id)
    {
        return add(lawn_verify::EventKind::unheard, time, operation, id, 0);
    }

    Story &refused(int64_t time, uint64_t operation, const char *id)
    {
        return add(lawn_verify::EventKind::refused, time, operation, id, 0);
    }

    Story &stop(int64_t time, uint64_t operation, const char *id,
                const char *word = "")
    {
        return add(lawn_verify::EventKind::stop, time, operation, id, 0, word);
    }

    Story &stopped(int64_t time, uint64_t operation, const char *id,
                   uint64_t generation, const char *word)
    {
        add(lawn_verify::EventKind::stopped, time, operation, id, generation);
        events_.back().word = word;
        return *this;
    }

    Story &update(int64_t time, uint64_t operation, const char *id,
                  uint64_t generation, const char *word = "")
    {
        return add(lawn_verify::EventKind::update, time, operation, id,
                   generation, word);
    }

    Story &updated(int64_t time, uint64_t operation, const char *id,
                   uint64_t generation, int64_t due)
    {
        add(lawn_verify::EventKind::updated, time, operation, id, generation);
        events_.back().due_us = due;
        return *this;
    }

    Story &deliver(int64_t time, uint64_t operation, const char *id,
                   uint64_t generation, int64_t due, int64_t fired,
                   unsigned attempt = 1)
    {
        add(lawn_verify::EventKind::deliver, time, operation, id, generation);
        events_.back().due_us = due;
        events_.back().fired_us = fired;
        events_.back().attempt = attempt;
        return *this;
    }

    Story &periodic(int64_t time, const char *id, int64_t first, int64_t every)
    {
        add(lawn_verify::EventKind::periodic, time, 0, id, 1);
        events_.back().due_us = first;
        events_.back().fired_us = every;
        return *this;
    }

    // Of a periodic timer, in time.
    Story &occur(const char *id, std::initializer_list<int64_t> dues)
    {
        for (const int64_t due : dues) {
            deliver(due + 2, 0, id, 1, due, due + 1);
        }
        return *this;
    }

    // Asked for, and acknowledged.
    Story &retry(int64_t time, const char *id, uint64_t generation,
                 unsigned attempt)
    {
        for (const lawn_verify::EventKind kind :
             {lawn_verify::EventKind::answer,
              lawn_verify::EventKind::answered}) {
            add(kind, time, 0, id, generation);
            events_.back().attempt = attempt;
            events_.back().word = "retry";
        }
        return *this;
    }

    Story &fault(int64_t from, int64_t to)
    {
        add(lawn_verify::EventKind::fault, from, 0, "", 0);
        events_.back().due_us = to;
        events_.back().word = "kill";
        return *this;
    }

    // What was done between the two times may be lost.
    Story &failover(int64_t from, int64_t to)
    {
        add(lawn_verify::EventKind::fault, from, 0, "", 0,
            lawn_verify::word_failover);
        events_.back().fired_us = to;
        events_.back().due_us = to + 10;
        return *this;
    }

    lawn_verify::Verdict
    verdict(const lawn_verify::Limits &limits = lawn_verify::Limits()) const
    {
        return lawn_verify::judge(events_, limits);
    }

private:
    Story &add(lawn_verify::EventKind kind, int64_t time, uint64_t operation,
               const char *id, uint64_t generation, const char *word = "")
    {
        lawn_verify::Event event;
        event.kind = kind;
        event.time_us = time;
        event.operation = operation;
        event.id = id;
        event.generation = generation;
        event.word = word;
        events_.push_back(event);
        return *this;
    }

    std::vector<lawn_verify::Event> events_;
};

// Exactly one kind of violation.
inline void expect_only(const lawn_verify::Verdict &verdict,
                        const char *violation)
{
    EXPECT_FALSE(verdict.is_good());
    EXPECT_EQ(verdict.violations.size(), 1u);
    EXPECT_GT(verdict.count(violation), 0u) << violation;
    EXPECT_FALSE(verdict.examples.empty());
}

} // namespace lawn_test

#endif
