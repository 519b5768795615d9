// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A service, and callbacks that tell the test. It is on the real clock, as a
// service has no other. Tests wait for what is to happen, and never for time to
// go by: a timer that must not fire is an hour away, or cancelled.

#ifndef LAWN_TEST_UNIT_SERVICE_FIXTURE_H
#define LAWN_TEST_UNIT_SERVICE_FIXTURE_H

#include "../../hang.h"

#include <lawn/service.h>

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

inline const lawn_time_t hour = lawn_time_from_sec(3600);

// All threads are in the lane of one processor, as sched_getcpu() is wrapped.
inline std::atomic<bool> is_one_lane;

// What a callback tells the test.
class Calls
{
public:
    static void note(void *arg)
    {
        Calls *const self = static_cast<Calls *>(arg);
        const std::lock_guard<std::mutex> guard(self->mutex_);
        ++self->count_;
        self->last_ = lawn_get_time();
        self->changed_.notify_all();
    }

    lawn_time_t wait_for(unsigned count)
    {
        const lawn_test::Waiting waiting("the service", "to call");
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return count_ >= count; });
        return last_;
    }

    unsigned count()
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        return count_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned count_ = 0;
    lawn_time_t last_ = 0;
};

struct Memory {
    std::atomic<unsigned> left{1'000'000};
    std::atomic<unsigned> live{0};
    std::atomic<unsigned> made{0};

    lawn_allocator_t allocator()
    {
        return {[](void *arg, size_t size) -> void * {
                    Memory *const self = static_cast<Memory *>(arg);
                    if (self->left == 0) {
                        return nullptr;
                    }
                    --self->left;
                    ++self->live;
                    ++self->made;
                    return malloc(size);
                },
                [](void *arg, void *memory) {
                    --static_cast<Memory *>(arg)->live;
                    free(memory);
                },
                this};
    }
};

class ServiceTest : public testing::Test
{
protected:
    ServiceTest()
    {
        params_.allocator = memory_.allocator();
    }

    ~ServiceTest() override
    {
        if (service_) {
            lawn_service_stop(service_, nullptr, nullptr);
            lawn_service_destroy(service_);
        }
        EXPECT_EQ(memory_.live, 0U);
    }

    void create()
    {
        ASSERT_EQ(lawn_service_create(&params_, &service_), LAWN_OK);
    }

    lawn_service_timer_t start(lawn_time_t ttl, void (*fn)(void *), void *arg)
    {
        lawn_service_timer_t handle = {};
        EXPECT_EQ(lawn_service_start(service_, ttl, fn, arg, &handle), LAWN_OK);
        return handle;
    }

    lawn_service_timer_t start(lawn_time_t ttl)
    {
        return start(ttl, Calls::note, &calls_);
    }

    lawn_status_t cancel(lawn_service_timer_t handle)
    {
        return lawn_service_cancel(service_, handle);
    }

    Memory memory_;
    lawn_service_params_t params_ = {};
    lawn_service_t *service_ = nullptr;
    Calls calls_;
};

#endif
