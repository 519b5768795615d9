// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The hashed wheel (Varghese and Lauck 1987, scheme 6), as programs share it:
// all of it behind one mutex, or with a lock for each bucket, so that threads
// seldom meet. Its tick is a millisecond.

#include "schemes/hashed_wheel.h"
#include "threads/sharing.h"
#include "threads/spin_lock.h"

#include <array>
#include <mutex>

namespace bench
{

namespace
{

lawn_time_t tick()
{
    return lawn_time_from_msec(1);
}

class MutexWheel final : public Sharing
{
public:
    MutexWheel() : Sharing("mutex + wheel")
    {
    }

    void start(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        const std::lock_guard<std::mutex> guard(lock_);
        wheel_.start(nodes_[i], now, deadline - now);
    }

    bool stop(size_t i) override
    {
        const std::lock_guard<std::mutex> guard(lock_);
        return wheel_.stop(nodes_[i]);
    }

    void pass(lawn_time_t now) override
    {
        const std::lock_guard<std::mutex> guard(lock_);
        wheel_.advance(now, pass_budget, [](HashedWheel::Node &, Time) {});
    }

    void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        start(timer_count + i, now, deadline);
    }

private:
    std::mutex lock_;
    HashedWheel wheel_{{tick(), 4096, 0}};
    std::array<HashedWheel::Node, 2 * timer_count> nodes_;
};

// A node is in the bucket that it names, if in any; who starts or stops it
// knows which that is, since nobody else does meanwhile but the owner, who
// takes it out under the lock of that bucket.
class BucketWheel final : public Sharing
{
public:
    BucketWheel() : Sharing("wheel, lock/bucket")
    {
    }

    void start(size_t i, lawn_time_t, lawn_time_t deadline) override
    {
        Node &node = nodes_[i];
        stop(i);
        node.tick = deadline / tick_ + 1;
        node.bucket = node.tick % buckets_.size();
        Bucket &bucket = buckets_[node.bucket];
        const std::lock_guard<SpinLock> guard(bucket.lock);
        bucket.nodes.push_back(node);
    }

    bool stop(size_t i) override
    {
        Node &node = nodes_[i];
        const std::lock_guard<SpinLock> guard(buckets_[node.bucket].lock);
        return unlink(node);
    }

    void pass(lawn_time_t now) override
    {
        const lawn_time_t present = now / tick_;
        if (present - position_ > buckets_.size()) {
            position_ = present - buckets_.size();
        }
        for (; position_ < present; ++position_) {
            Bucket &bucket = buckets_[(position_ + 1) % buckets_.size()];
            const std::lock_guard<SpinLock> guard(bucket.lock);
            bucket.nodes.each([present](Node &node) {
                if (node.tick <= present) {
                    unlink(node);
                }
            });
        }
    }

    void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        start(timer_count + i, now, deadline);
    }

private:
    struct Node : Link {
        lawn_time_t tick = 0;
        size_t bucket = 0;
    };

    struct alignas(64) Bucket {
        SpinLock lock;
        List<Node> nodes;
    };

    const lawn_time_t tick_ = tick();
    lawn_time_t position_ = 0;
    std::array<Bucket, 4096> buckets_;
    std::array<Node, 2 * timer_count> nodes_;
};

} // namespace

void add_wheels(Sharings *all)
{
    all->push_back(std::make_unique<MutexWheel>());
    all->push_back(std::make_unique<BucketWheel>());
}

} // namespace bench
