// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Sets of operations for a scenario.

#ifndef LAWN_TEST_MODEL_EXHAUSTIVE_ALPHABET_H
#define LAWN_TEST_MODEL_EXHAUSTIVE_ALPHABET_H

#include "exhaustive_world.h"

#include <initializer_list>
#include <vector>

namespace exhaustive
{

class Alphabet
{
public:
    // Of `actors` timers, with each of `ttls`.
    Alphabet &starts(unsigned actors, size_t ttls, Kind kind = Kind::start)
    {
        for (uint8_t ttl = 0; ttl < ttls; ++ttl) {
            on_each(kind, actors, ttl);
        }
        return *this;
    }

    // The same with each of these deadlines.
    Alphabet &starts_at(unsigned actors, std::initializer_list<Target> targets)
    {
        for (const Target target : targets) {
            on_each(Kind::start_at, actors, 0, target);
        }
        return *this;
    }

    // In each queue; and what closes it.
    Alphabet &queues(unsigned actors, size_t queues)
    {
        for (uint8_t queue = 0; queue < queues; ++queue) {
            on_each(Kind::enqueue, actors, queue);
            on_each(Kind::close, 1, queue);
        }
        return *this;
    }

    Alphabet &on_each(Kind kind, unsigned actors, uint8_t which = 0,
                      Target target = Target::now)
    {
        for (uint8_t timer = 0; timer < actors; ++timer) {
            Op op = {kind};
            op.timer = timer;
            op.which = which;
            op.target = target;
            ops_.push_back(op);
        }
        return *this;
    }

    // Of what goes to a time: to each target.
    Alphabet &moves(Kind kind, std::initializer_list<Target> targets,
                    std::initializer_list<uint8_t> limits = {0},
                    std::initializer_list<Reaction> reactions = {{}},
                    uint8_t which = 0)
    {
        for (const Target target : targets) {
            for (const uint8_t limit : limits) {
                for (const Reaction reaction : reactions) {
                    Op op = {kind};
                    op.target = target;
                    op.limit = limit;
                    op.reaction = reaction;
                    op.which = which;
                    ops_.push_back(op);
                }
            }
        }
        return *this;
    }

    Alphabet &settles(std::initializer_list<uint8_t> limits)
    {
        return moves(Kind::settle, {Target::now}, limits);
    }

    Alphabet &drains(std::initializer_list<Reaction> reactions)
    {
        return moves(Kind::drain, {Target::now}, {0}, reactions);
    }

    operator std::vector<Op>() const
    {
        return ops_;
    }

private:
    std::vector<Op> ops_;
};

} // namespace exhaustive

#endif
