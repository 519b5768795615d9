// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A worker as a source of an engine, and requests with a limit, on virtual
// time. The worker does what a test says; UCX itself is not linked.

#include <lawn/ucx.h>

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <sys/eventfd.h>
#include <unistd.h>

namespace
{

// What stands behind a worker.
struct Worker {
    std::deque<std::function<void()>> events;
    ucs_status_t armed = UCS_OK;
    int fd = eventfd(0, 0);
    std::string cancelled;
    std::function<void()> on_cancel; // the callback of a receive

    ~Worker()
    {
        close(fd);
    }
};

Worker *of(ucp_worker_h worker)
{
    return reinterpret_cast<Worker *>(worker);
}

} // namespace

extern "C" {

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    auto &events = of(worker)->events;
    if (events.empty()) {
        return 0;
    }
    const auto event = events.front();
    events.pop_front();
    event();
    return 1;
}

ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd)
{
    *fd = of(worker)->fd;
    return *fd < 0 ? UCS_ERR_UNSUPPORTED : UCS_OK;
}

ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
    return of(worker)->armed;
}

void ucp_request_cancel(ucp_worker_h worker, void *request)
{
    of(worker)->cancelled += static_cast<const char *>(request);
    if (of(worker)->on_cancel) {
        of(worker)->on_cancel();
    }
}
}

namespace
{

class UcxTest : public testing::Test
{
protected:
    UcxTest()
    {
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now_;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
        params_.after = [](void *arg) {
            auto *const self = static_cast<UcxTest *>(arg);
            ++self->ends_;
            return self->after_ ? self->after_() : 0U;
        };
        params_.arg = this;
        lawn_ucx_limit_init(&limit_, [](lawn_ucx_limit_t *, lawn_time_t now) {
            current->late_at_ = now;
            if (current->on_late_) {
                current->on_late_();
            }
        });
        current = this;
    }

    ~UcxTest() override
    {
        lawn_ucx_close(&ucx_);
        lawn_engine_destroy(engine_);
    }

    ucp_worker_h handle()
    {
        return reinterpret_cast<ucp_worker_h>(&worker_);
    }

    void open()
    {
        EXPECT_EQ(lawn_ucx_open(&ucx_, engine_, handle(), &params_), LAWN_OK);
    }

    void add_events(unsigned count)
    {
        worker_.events.insert(worker_.events.end(), count, [] {});
    }

    // What has been cancelled when that many ticks more have passed.
    std::string cancelled_after(lawn_time_t ticks)
    {
        now_ += ticks;
        lawn_engine_progress(engine_);
        return worker_.cancelled;
    }

    static UcxTest *current;

    Worker worker_;
    lawn_time_t now_ = 1'000'000'000;
    lawn_engine_t *engine_ = nullptr;
    lawn_ucx_params_t params_ = {};
    lawn_ucx_t ucx_ = {};
    lawn_ucx_limit_t limit_ = {};
    unsigned ends_ = 0;
    lawn_time_t late_at_ = 0;
    std::function<unsigned()> after_;
    std::function<void()> on_late_;
    char request_[8] = "r ";
};

UcxTest *UcxTest::current;

TEST_F(UcxTest, APassTakesAllThatHasCome)
{
    open();
    EXPECT_EQ(lawn_engine_progress(engine_), 0U);
    add_events(5);
    EXPECT_EQ(lawn_engine_progress(engine_), 5U);
    EXPECT_EQ(ends_, 2U);
    after_ = [] { return 3U; };
    EXPECT_EQ(lawn_engine_progress(engine_), 3U);
}

TEST_F(UcxTest, APassEndsAtItsLimit)
{
    params_.limit = 4;
    open();
    add_events(6);
    EXPECT_EQ(lawn_engine_progress(engine_), 4U);
    EXPECT_EQ(lawn_engine_progress(engine_), 2U);
}

TEST_F(UcxTest, ASleeperArms)
{
    params_.sleeps = true;
    open();
    EXPECT_TRUE(lawn_ucx_arm(&ucx_));
    worker_.armed = UCS_ERR_BUSY;
    EXPECT_FALSE(lawn_ucx_arm(&ucx_));
}

TEST_F(UcxTest, CallbacksMayCloseIt)
{
    open();
    worker_.events.push_back([this] { lawn_ucx_close(&ucx_); });
    add_events(1);
    EXPECT_EQ(lawn_engine_progress(engine_), 1U);
    EXPECT_EQ(ends_, 0U);
    EXPECT_EQ(lawn_engine_progress(engine_), 0U);
    open();
    after_ = [this] {
        lawn_ucx_close(&ucx_);
        return 0U;
    };
    EXPECT_EQ(lawn_engine_progress(engine_), 1U);
    EXPECT_EQ(lawn_engine_progress(engine_), 0U);
    EXPECT_EQ(ends_, 1U);
}

TEST_F(UcxTest, ARequestThatIsLateIsCancelledOnce)
{
    open();
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, &limit_, request_, 100));
    EXPECT_EQ(cancelled_after(99), "");
    EXPECT_EQ(cancelled_after(1), "r ");
    EXPECT_EQ(late_at_, now_);
    EXPECT_EQ(cancelled_after(1000), "r ");
    EXPECT_TRUE(lawn_ucx_limit_end(&ucx_, &limit_));
}

// However late the pass: what has come is taken before timers run.
TEST_F(UcxTest, ARequestThatHasCompletedIsNotLate)
{
    open();
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, &limit_, request_, 100));
    bool was_late = true;
    worker_.events.push_back(
        [&] { was_late = lawn_ucx_limit_end(&ucx_, &limit_); });
    now_ += 1'000'000;
    lawn_engine_progress(engine_);
    EXPECT_FALSE(was_late);
    EXPECT_EQ(worker_.cancelled, "");
    // It may begin anew.
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, &limit_, request_, 100));
    EXPECT_EQ(cancelled_after(100), "r ");
}

// By force, of the endpoint: UCX completes its requests then.
TEST_F(UcxTest, ALateRequestMayEndInItsOwnCallback)
{
    open();
    on_late_ = [this] { EXPECT_TRUE(lawn_ucx_limit_end(&ucx_, &limit_)); };
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, &limit_, request_, 0));
    lawn_engine_progress(engine_);
    EXPECT_EQ(late_at_, now_);
    EXPECT_EQ(worker_.cancelled, "");
    EXPECT_FALSE(lawn_timer_is_active(&limit_.timer));
}

TEST_F(UcxTest, AReceiveThatIsCancelledMayFreeItsLimit)
{
    open();
    auto limit = std::make_unique<lawn_ucx_limit_t>(limit_);
    worker_.on_cancel = [&] {
        EXPECT_EQ(late_at_, now_);
        EXPECT_TRUE(lawn_ucx_limit_end(&ucx_, limit.get()));
        limit.reset();
    };
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, limit.get(), request_, 100));
    now_ += 100;
    lawn_engine_progress(engine_);
    EXPECT_EQ(limit, nullptr);
}

TEST_F(UcxTest, ALateRequestMayGetMoreTime)
{
    open();
    on_late_ = [this] {
        on_late_ = nullptr;
        EXPECT_TRUE(lawn_ucx_limit_start(&ucx_, &limit_, request_, 100));
    };
    ASSERT_TRUE(lawn_ucx_limit_start(&ucx_, &limit_, request_, 100));
    EXPECT_EQ(cancelled_after(100), "");
    EXPECT_EQ(cancelled_after(99), "");
    EXPECT_EQ(cancelled_after(1), "r ");
}

TEST_F(UcxTest, WhatIsCompletedAlreadyNeedsNoLimit)
{
    open();
    EXPECT_FALSE(lawn_ucx_limit_start(&ucx_, &limit_, nullptr, 100));
    EXPECT_FALSE(lawn_ucx_limit_start(&ucx_, &limit_,
                                      UCS_STATUS_PTR(UCS_ERR_NO_MEMORY), 100));
    EXPECT_FALSE(lawn_timer_is_active(&limit_.timer));
}

TEST_F(UcxTest, BadInputIsRefused)
{
    EXPECT_EQ(lawn_ucx_open(nullptr, engine_, handle(), &params_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_ucx_open(&ucx_, nullptr, handle(), &params_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_ucx_open(&ucx_, engine_, nullptr, &params_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_ucx_open(&ucx_, engine_, handle(), nullptr),
              LAWN_ERR_INVALID_PARAM);
    close(worker_.fd);
    worker_.fd = -1;
    params_.sleeps = true;
    EXPECT_EQ(lawn_ucx_open(&ucx_, engine_, handle(), &params_),
              LAWN_ERR_UNSUPPORTED);
    params_.sleeps = false;
    open();
    EXPECT_EQ(lawn_ucx_open(&ucx_, engine_, handle(), &params_), LAWN_ERR_BUSY);
}

} // namespace
