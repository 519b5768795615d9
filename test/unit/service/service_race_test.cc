// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What comes in the middle of a call of the service: the expiry of a shared
// timer that a cancelled start has left armed, a cancel, or another start. The
// tests bring it about where the call enters a lane, where it arms the shared
// timer, and where it writes the handle.

#include "../../yield.h"
#include "service_fixture.h"

#include <functional>

#include <lawn/shared.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

// Called once, by whoever is there first.
std::atomic<void (*)()> before_lane;
std::atomic<void (*)(lawn_shared_t *timer)> before_arming;

std::atomic<lawn_shared_t *> armed;

} // namespace

extern "C" {

int __real_sched_getcpu();
bool __real_lawn_shared_start(lawn_shared_t *timer, lawn_time_t deadline);

int __wrap_sched_getcpu()
{
    if (auto *const call = before_lane.exchange(nullptr)) {
        call();
    }
    return is_one_lane ? 0 : __real_sched_getcpu();
}

bool __wrap_lawn_shared_start(lawn_shared_t *timer, lawn_time_t deadline)
{
    armed = timer;
    if (auto *const call = before_arming.exchange(nullptr)) {
        call(timer);
    }
    return __real_lawn_shared_start(timer, deadline);
}
}

namespace
{

using lawn_test::Thread;
using lawn_test::wait_for;

// As if the timer had been left armed by a start that was cancelled. Returns
// when the service has seen it.
void expire(lawn_shared_t *timer)
{
    __real_lawn_shared_start(timer, 0);
    wait_for("the service", "to see the timer",
             [=] { return lawn_shared_deadline(timer) != 0; });
    lawn_shared_sync(timer);
}

class ServiceRace : public ServiceTest
{
public:
    using ServiceTest::calls_;
    using ServiceTest::cancel;
    using ServiceTest::memory_;
    using ServiceTest::service_;
    using ServiceTest::start;

    ServiceRace()
    {
        is_one_lane = true;
        self = this;
    }

    ~ServiceRace() override
    {
        is_one_lane = false;
    }

    static ServiceRace *self;

    lawn_service_timer_t first_ = {};
    lawn_service_timer_t second_ = {};
    lawn_service_timer_t third_ = {};
};

ServiceRace *ServiceRace::self;

TEST_F(ServiceRace, WhatWasCancelledDoesNotEndTheNextStart)
{
    create();
    before_arming = expire;
    first_ = start(hour);
    EXPECT_EQ(cancel(first_), LAWN_OK) << "it has ended";
    EXPECT_EQ(calls_.count(), 0U);
}

// The first start is called before its thread has armed the timer, so that
// thread arms it for the second one, and too early. As the service arms it for
// the second, that one is cancelled, and the third armed.
TEST_F(ServiceRace, AStartThatWasArmedByAnotherThreadIsCalledInTime)
{
    create();
    before_arming = [](lawn_shared_t *timer) {
        expire(timer);
        self->calls_.wait_for(1);
        self->second_ = self->start(hour);
        before_arming = [](lawn_shared_t *) {
            EXPECT_EQ(self->cancel(self->second_), LAWN_OK);
            self->third_ = self->start(lawn_time_from_msec(20));
        };
    };
    first_ = start(0);
    calls_.wait_for(2);
    EXPECT_EQ(second_.index, first_.index);
    EXPECT_EQ(third_.index, first_.index);
    EXPECT_EQ(cancel(third_), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_service_pending(service_), 0U);
}

TEST_F(ServiceRace, AStartThatWasArmedTooEarlyIsCalled)
{
    create();
    before_arming = [](lawn_shared_t *timer) {
        expire(timer);
        self->calls_.wait_for(1);
        self->second_ = self->start(lawn_time_from_msec(20));
    };
    first_ = start(0);
    calls_.wait_for(2);
    EXPECT_EQ(second_.index, first_.index);
}

// Where a start writes its handle: a page that cannot be written until the
// shared timer has expired.
struct Page {
    void *memory;
    size_t size;
    Calls *calls;
    unsigned count; // of the calls, then
};
Page page;

void open_page(int)
{
    expire(armed);
    page.count = page.calls->count();
    mprotect(page.memory, page.size, PROT_READ | PROT_WRITE);
}

TEST_F(ServiceRace, AHandleIsWrittenBeforeTheTimerCanExpire)
{
    create();
    page.size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    page.memory =
        mmap(nullptr, page.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page.calls = &calls_;
    page.count = 7;
    ASSERT_NE(page.memory, MAP_FAILED);
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = open_page;
    ASSERT_EQ(sigaction(SIGSEGV, &action, &before), 0);
    first_ = start(hour);
    EXPECT_EQ(cancel(first_), LAWN_OK);
    auto *const handle = static_cast<lawn_service_timer_t *>(page.memory);
    EXPECT_EQ(lawn_service_start(service_, 0, Calls::note, &calls_, handle),
              LAWN_OK);
    sigaction(SIGSEGV, &before, nullptr);
    EXPECT_EQ(page.count, 0U) << "called without a handle";
    EXPECT_EQ(handle->index, first_.index);
    calls_.wait_for(1);
    munmap(page.memory, page.size);
}

// Whether the cancel that is interrupted is in time or not, afterwards nothing
// is pending.
TEST_F(ServiceRace, WhatHasEndedIsNotCounted)
{
    params_.max_pending = 1;
    create();
    first_ = start(hour);
    before_lane = [] {
        self->cancel(self->first_);
        EXPECT_EQ(lawn_service_pending(self->service_), 0U);
        self->second_ = self->start(hour);
    };
    cancel(first_);
    EXPECT_EQ(lawn_service_pending(service_), 1U);
    EXPECT_EQ(cancel(first_), LAWN_ERR_NO_ELEM);
    EXPECT_EQ(cancel(second_), LAWN_OK);
}

// A start has been let in below the limit, but gets no memory.
TEST_F(ServiceRace, AStartIsRefusedOnlyAtTheLimit)
{
    static std::atomic<bool> waits;
    static Thread other;
    waits = false;
    static const auto start_other = [] {
        on_yield = [] {
            waits = true;
            __real_sched_yield();
        };
        self->second_ = self->start(hour);
        on_yield = nullptr;
        waits = true;
    };
    params_.max_pending = 1;
    params_.allocator.alloc = [](void *arg, size_t size) -> void * {
        if (static_cast<Memory *>(arg)->left == 0 && !other.joinable()) {
            static_cast<Memory *>(arg)->left = 1;
            other = Thread("the other starter", start_other);
            wait_for("the other starter", "to wait", [] { return +waits; });
            return nullptr;
        }
        return self->memory_.allocator().alloc(arg, size);
    };
    create();
    memory_.left = 0;
    // BUSY if the other has been faster
    EXPECT_NE(lawn_service_start(service_, hour, Calls::note, &calls_, &first_),
              LAWN_OK);
    other.join();
    EXPECT_EQ(lawn_service_pending(service_), 1U);
    EXPECT_EQ(cancel(second_), LAWN_OK);
}

// There is no memory for more, but a timer is cancelled meanwhile.
TEST_F(ServiceRace, AStartGetsWhatAnotherThreadHasJustGivenBack)
{
    constexpr unsigned chunk = 64; // nodes that are allocated at first
    static bool is_asked;
    is_asked = false;
    params_.allocator.alloc = [](void *arg, size_t size) -> void * {
        void *const memory = self->memory_.allocator().alloc(arg, size);
        if (!memory && !is_asked) {
            is_asked = true;
            Thread("the canceller", [] {
                EXPECT_EQ(self->cancel(self->first_), LAWN_OK);
            }).join();
        }
        return memory;
    };
    create();
    first_ = start(hour);
    memory_.left = 0;
    for (unsigned i = 1; i < chunk; ++i) {
        start(hour);
    }
    second_ = start(hour);
    EXPECT_TRUE(is_asked);
    EXPECT_EQ(second_.index, first_.index);
    EXPECT_EQ(lawn_service_pending(service_), chunk);
    EXPECT_EQ(lawn_service_start(service_, hour, Calls::note, &calls_, nullptr),
              LAWN_ERR_NO_MEMORY);
}

} // namespace
