// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a target of posts may have of the daemon: a circuit breaker. Whoever has
// answered its last post may have many at a time. One that is not known yet, or
// whose last post had no answer in time, has one at a time, and all of these
// together have a part of all posts only. So however many targets hang, there
// is room for those that answer.
//
// What finds no room is put off, for longer and longer while much more comes
// back than is posted: what waits for a target that hangs, or is slower than
// its timers, costs next to nothing while it waits.

#ifndef LAWND_SHARE_H
#define LAWND_SHARE_H

#include <lawn/time.h>

#include <cstddef>
#include <cstdint>

namespace lawnd
{

struct DeliveryLimits {
    unsigned posts_per_target = 16;
    unsigned posts_per_untried = 1; // of one that has not answered
    unsigned queue_per_target = 64;
    unsigned posts = 1024; // of all targets
    unsigned queued = 512;
    unsigned idle_targets = 10000; // that are remembered
    uint64_t connect_timeout_us = 5000000;
    uint64_t timeout_us = 30000000; // of a post, connecting included
    uint64_t queue_timeout_us = 10000000;
    size_t answer_bytes = 65536; // of headers and body, each; more is cut off
};

enum class Standing {
    untried, // no post of it has ended
    good,    // the last one had an answer, if only that it is not there
    silent   // the last one had none in time
};

// The posts of all targets, by the standing that theirs had when they began.
struct Posts {
    size_t of(Standing standing) const
    {
        return counts[static_cast<size_t>(standing)];
    }
    size_t all() const
    {
        return counts[0] + counts[1] + counts[2];
    }

    size_t counts[3] = {};
};

// Of one target.
class Share
{
public:
    Standing standing() const
    {
        return standing_;
    }
    void set_standing(Standing standing)
    {
        standing_ = standing;
    }

    bool may_post(const DeliveryLimits &limits, const Posts &posts) const;
    // When it has `own` in its queue, and all targets have `all` in theirs.
    // Only behind a post of its own, whose end begins the next.
    bool may_wait(const DeliveryLimits &limits, size_t own, size_t all) const;

    // The standing that the post counts for.
    Standing begin(Posts *posts);
    void end(Standing begun, Posts *posts, lawn_time_t now);
    size_t posts() const
    {
        return posts_;
    }

    // For how long one more post is put off.
    uint64_t put_off_us(lawn_time_t now);

private:
    void adapt(lawn_time_t now);

    Standing standing_ = Standing::untried;
    size_t posts_ = 0;
    uint64_t pause_us_ = 0;
    lawn_time_t since_ = 0; // the counts begin; a pause long
    uint64_t put_off_ = 0;
    uint64_t ended_ = 0;
};

} // namespace lawnd

#endif
