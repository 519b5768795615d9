// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#ifndef LAWN_BENCH_THREADS_SPIN_LOCK_H
#define LAWN_BENCH_THREADS_SPIN_LOCK_H

#include <atomic>
#include <thread>

namespace bench
{

// Yields, since two threads may share a processor.
class SpinLock
{
public:
    void lock()
    {
        while (is_taken_.exchange(true, std::memory_order_acquire)) {
            while (is_taken_.load(std::memory_order_relaxed)) {
                std::this_thread::yield();
            }
        }
    }

    void unlock()
    {
        is_taken_.store(false, std::memory_order_release);
    }

private:
    std::atomic<bool> is_taken_{false};
};

} // namespace bench

#endif
