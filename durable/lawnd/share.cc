// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "share.h"

#include <algorithm>

namespace lawnd
{

namespace
{

constexpr uint64_t least_pause_us = 1000000;
constexpr uint64_t most_pause_us = 120000000;
// Of what is put off in a pause, so much may come back for each post that ends
// in it, and so many in any case.
constexpr uint64_t returns_per_post = 4;
constexpr uint64_t least_returns = 4;

// Whether a target that has `own` may have one more, when all targets together
// have `all`.
bool has_room(size_t own, size_t most_own, size_t all, size_t most)
{
    return all < most && own < most_own && own <= (most - all) / 4;
}

} // namespace

bool Share::may_post(const DeliveryLimits &limits, const Posts &posts) const
{
    if (posts.all() >= limits.posts) {
        return false;
    }
    switch (standing_) {
    case Standing::good:
        return has_room(posts_, limits.posts_per_target, posts.all(),
                        limits.posts);
    case Standing::untried:
        return posts_ < std::min(limits.posts_per_untried,
                                 limits.posts_per_target) &&
               posts.of(standing_) < limits.posts / 2;
    case Standing::silent:
        return posts_ == 0 && posts.of(standing_) < limits.posts / 4;
    }
    return false;
}

bool Share::may_wait(const DeliveryLimits &limits, size_t own, size_t all) const
{
    const size_t most = standing_ == Standing::good      ? limits.queued
                        : standing_ == Standing::untried ? limits.queued / 4 * 3
                                                         : 0;
    return posts_ > 0 && has_room(own, limits.queue_per_target, all, most);
}

Standing Share::begin(Posts *posts)
{
    ++posts_;
    ++posts->counts[static_cast<size_t>(standing_)];
    return standing_;
}

void Share::end(Standing begun, Posts *posts, lawn_time_t now)
{
    --posts_;
    --posts->counts[static_cast<size_t>(begun)];
    adapt(now);
    ++ended_;
}

uint64_t Share::put_off_us(lawn_time_t now)
{
    adapt(now);
    ++put_off_;
    return pause_us_;
}

// Each that was put off comes back once in a pause.
void Share::adapt(lawn_time_t now)
{
    const double pause = static_cast<double>(pause_us_);
    if (now < since_ + lawn_time_from_usec(pause)) {
        return;
    }
    const uint64_t most = returns_per_post * ended_ + least_returns;
    if (put_off_ > most) {
        pause_us_ = std::min(2 * pause_us_, most_pause_us);
    } else if (2 * put_off_ < most) {
        pause_us_ = pause_us_ / 2;
    }
    pause_us_ = std::max(pause_us_, least_pause_us);
    put_off_ = ended_ = 0;
    since_ = now;
}

} // namespace lawnd
