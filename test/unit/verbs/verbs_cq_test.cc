// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A completion queue and the events of a device as sources of an engine, on
// virtual time, with a device that has what a test gives it.

#include <lawn/verbs_events.h>

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>

#include <sys/eventfd.h>
#include <unistd.h>

namespace
{

// The library's functions find it here.
struct Device {
    ibv_context context = {};
    ibv_cq cq = {};
    ibv_comp_channel channel = {};
    std::deque<ibv_wc> completions;
    std::deque<ibv_async_event> events;
    unsigned notifications = 0; // that were not taken
    unsigned taken = 0;         // and not acknowledged
    bool is_requested = false;
    int request_error = 0;
    bool is_gone = false;
    std::string acknowledged;

    void complete(uint64_t wr_id)
    {
        ibv_wc wc = {};
        wc.wr_id = wr_id;
        completions.push_back(wc);
        notifications += is_requested;
        is_requested = false;
    }

    void report(ibv_event_type type)
    {
        ibv_async_event event = {};
        event.event_type = type;
        events.push_back(event);
    }
};

Device *device;

int poll_cq(ibv_cq *, int most, ibv_wc *wc)
{
    int count = 0;
    while (count < most && !device->completions.empty()) {
        wc[count++] = device->completions.front();
        device->completions.pop_front();
    }
    return device->is_gone ? -1 : count;
}

int request_notification(ibv_cq *, int)
{
    device->is_requested = device->request_error == 0;
    return device->request_error;
}

} // namespace

extern "C" {

int ibv_get_cq_event(ibv_comp_channel *, ibv_cq **cq, void **context)
{
    if (device->notifications == 0) {
        errno = device->is_gone ? ENODEV : EAGAIN;
        return -1;
    }
    --device->notifications;
    ++device->taken;
    *cq = &device->cq;
    *context = nullptr;
    return 0;
}

void ibv_ack_cq_events(ibv_cq *, unsigned count)
{
    device->taken -= count;
}

int ibv_get_async_event(ibv_context *, ibv_async_event *event)
{
    if (device->events.empty()) {
        errno = EAGAIN;
        return -1;
    }
    *event = device->events.front();
    device->events.pop_front();
    return 0;
}

void ibv_ack_async_event(ibv_async_event *event)
{
    device->acknowledged += std::to_string(event->event_type) + " ";
}
}

namespace
{

class VerbsCqTest : public testing::Test
{
protected:
    VerbsCqTest()
    {
        device = &device_;
        device_.context.ops.poll_cq = poll_cq;
        device_.context.ops.req_notify_cq = request_notification;
        device_.context.async_fd = eventfd(0, 0);
        device_.cq.context = &device_.context;
        device_.channel.fd = eventfd(0, 0);
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now_;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
        params_.cq = &device_.cq;
        params_.channel = &device_.channel;
        params_.completed = [](void *arg, const ibv_wc *wc) {
            static_cast<VerbsCqTest *>(arg)->completed(wc->wr_id);
        };
        params_.batched = [](void *arg) {
            static_cast<VerbsCqTest *>(arg)->seen_ += "| ";
        };
        params_.after = [](void *arg) {
            static_cast<VerbsCqTest *>(arg)->seen_ += "end ";
            return 0U;
        };
        params_.failed = [](void *arg, int error) {
            static_cast<VerbsCqTest *>(arg)->error_ = error;
        };
        params_.arg = this;
    }

    ~VerbsCqTest() override
    {
        lawn_verbs_cq_close(&cq_);
        lawn_verbs_events_close(&events_);
        EXPECT_EQ(device_.taken, 0U); // or ibv_destroy_cq() would block
        lawn_engine_destroy(engine_);
        close(device_.channel.fd);
        close(device_.context.async_fd);
    }

    void open()
    {
        EXPECT_EQ(lawn_verbs_cq_open(&cq_, engine_, &params_), LAWN_OK);
    }

    void completed(uint64_t wr_id)
    {
        seen_ += std::to_string(wr_id) + " ";
        if (on_completion_) {
            on_completion_(wr_id);
        }
    }

    void open_events()
    {
        const auto event = [](void *arg, const ibv_async_event *event) {
            auto *const self = static_cast<VerbsCqTest *>(arg);
            self->seen_ += "event " + std::to_string(event->event_type) + " ";
            if (self->on_event_) {
                self->on_event_();
            }
        };
        EXPECT_EQ(lawn_verbs_events_open(&events_, engine_, &device_.context,
                                         event, this),
                  LAWN_OK);
    }

    std::string pass(unsigned work)
    {
        seen_.clear();
        EXPECT_EQ(lawn_engine_progress(engine_), work);
        return seen_;
    }

    Device device_;
    lawn_time_t now_ = 1'000'000'000;
    lawn_engine_t *engine_ = nullptr;
    lawn_verbs_cq_params_t params_ = {};
    lawn_verbs_cq_t cq_ = {};
    lawn_verbs_events_t events_ = {};
    std::string seen_;
    int error_ = 0;
    std::function<void(uint64_t)> on_completion_;
    std::function<void()> on_event_;
};

TEST_F(VerbsCqTest, APassTakesAllCompletionsInBatches)
{
    open();
    EXPECT_EQ(pass(0), "| end ");
    for (uint64_t i = 0; i < LAWN_VERBS_BATCH + 2; ++i) {
        device_.complete(i);
    }
    const std::string seen = pass(LAWN_VERBS_BATCH + 2);
    EXPECT_EQ(seen.substr(seen.find('|')), "| 32 33 | end ");
    EXPECT_EQ(error_, 0);
}

TEST_F(VerbsCqTest, APassEndsAtItsLimit)
{
    params_.limit = LAWN_VERBS_BATCH;
    open();
    for (uint64_t i = 0; i < 3 * LAWN_VERBS_BATCH; ++i) {
        device_.complete(i);
    }
    EXPECT_EQ(pass(LAWN_VERBS_BATCH).substr(0, 4), "0 1 ");
    EXPECT_EQ(pass(LAWN_VERBS_BATCH).substr(0, 6), "32 33 ");
    EXPECT_EQ(lawn_verbs_cq_progress(&cq_), unsigned{LAWN_VERBS_BATCH});
    EXPECT_EQ(pass(0), "| end ");
}

// An ACK that has arrived stops its timer, however late the pass.
TEST_F(VerbsCqTest, CompletionsComeBeforeTimers)
{
    open();
    lawn_timer_t timer;
    lawn_timer_init(&timer, [](lawn_timer_t *, lawn_time_t) { FAIL(); });
    lawn_engine_start(engine_, &timer, 10);
    on_completion_ = [&](uint64_t) { lawn_engine_stop(engine_, &timer); };
    device_.complete(7);
    now_ += 1'000'000'000;
    // After a stall, the sources are polled twice.
    lawn_engine_progress(engine_);
    EXPECT_FALSE(lawn_timer_is_active(&timer));
}

TEST_F(VerbsCqTest, ASleeperArmsAndPassesOnceMore)
{
    open();
    EXPECT_FALSE(lawn_verbs_cq_arm(&cq_));
    EXPECT_EQ(pass(0), "| end ");
    EXPECT_TRUE(lawn_verbs_cq_arm(&cq_));
    device_.complete(1);
    EXPECT_EQ(pass(1), "1 | end ");
    EXPECT_EQ(device_.taken, 0U); // it is acknowledged
    EXPECT_FALSE(lawn_verbs_cq_arm(&cq_));
    EXPECT_TRUE(device_.is_requested);
}

TEST_F(VerbsCqTest, WhatCameBeforeTheRequestIsFoundByTheSecondPass)
{
    open();
    device_.complete(1);
    EXPECT_FALSE(lawn_verbs_cq_arm(&cq_));
    EXPECT_EQ(pass(1), "1 | end ");
    EXPECT_TRUE(lawn_verbs_cq_arm(&cq_));
}

TEST_F(VerbsCqTest, AQueueWithoutAChannelNeverSleeps)
{
    params_.channel = nullptr;
    open();
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(lawn_verbs_cq_arm(&cq_));
    }
    EXPECT_FALSE(device_.is_requested);
}

TEST_F(VerbsCqTest, ACallbackMayCloseIt)
{
    open();
    device_.complete(1);
    device_.complete(2);
    on_completion_ = [this](uint64_t) { lawn_verbs_cq_close(&cq_); };
    EXPECT_EQ(pass(1), "1 ");
    EXPECT_EQ(pass(0), "");
    open(); // and open it again
    on_completion_ = nullptr;
    device_.complete(3);
    EXPECT_EQ(pass(1), "3 | end ");
}

TEST_F(VerbsCqTest, CloseAcknowledgesWhatHasCome)
{
    open();
    lawn_verbs_cq_arm(&cq_);
    device_.complete(1);
    lawn_verbs_cq_close(&cq_);
    EXPECT_EQ(device_.notifications, 0U);
}

TEST_F(VerbsCqTest, ADeviceThatFailsIsTold)
{
    open();
    device_.request_error = EIO;
    EXPECT_FALSE(lawn_verbs_cq_arm(&cq_));
    EXPECT_EQ(error_, EIO);
    error_ = 0;
    device_.is_gone = true;
    EXPECT_EQ(pass(0), "| end ");
    EXPECT_EQ(error_, EIO);
    device_.is_gone = false;
    device_.request_error = 0;
    lawn_verbs_cq_arm(&cq_);
    device_.is_gone = true;
    pass(0);
    EXPECT_NE(error_, 0);
}

TEST_F(VerbsCqTest, BadInputIsRefused)
{
    lawn_verbs_cq_params_t bad = params_;
    EXPECT_EQ(lawn_verbs_cq_open(nullptr, engine_, &bad),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_verbs_cq_open(&cq_, nullptr, &bad), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_verbs_cq_open(&cq_, engine_, nullptr),
              LAWN_ERR_INVALID_PARAM);
    bad.cq = nullptr;
    EXPECT_EQ(lawn_verbs_cq_open(&cq_, engine_, &bad), LAWN_ERR_INVALID_PARAM);
    bad = params_;
    bad.completed = nullptr;
    EXPECT_EQ(lawn_verbs_cq_open(&cq_, engine_, &bad), LAWN_ERR_INVALID_PARAM);
    ibv_comp_channel none = {};
    none.fd = -1;
    bad = params_;
    bad.channel = &none;
    EXPECT_EQ(lawn_verbs_cq_open(&cq_, engine_, &bad), LAWN_ERR_IO);
    open();
    EXPECT_EQ(lawn_verbs_cq_open(&cq_, engine_, &params_), LAWN_ERR_BUSY);
}

TEST_F(VerbsCqTest, EventsAreLookedForNowAndThen)
{
    open_events();
    device_.report(IBV_EVENT_PORT_ERR);
    const std::string name = std::to_string(IBV_EVENT_PORT_ERR) + " ";
    const std::string one = "event " + name;
    EXPECT_EQ(pass(1), one);
    device_.report(IBV_EVENT_PORT_ERR);
    now_ += lawn_time_from_msec(9);
    EXPECT_EQ(pass(0), "");
    now_ += lawn_time_from_msec(1);
    EXPECT_EQ(pass(1), one);
    device_.report(IBV_EVENT_PORT_ERR);
    lawn_verbs_events_arm(&events_); // it may be what wakes the sleeper
    EXPECT_EQ(pass(1), one);
    EXPECT_EQ(device_.acknowledged, name + name + name);
}

// To destroy a queue pair waits until its events are acknowledged.
TEST_F(VerbsCqTest, AnEventMayDestroyWhatItIsAbout)
{
    open_events();
    device_.report(IBV_EVENT_QP_FATAL);
    on_event_ = [this] {
        EXPECT_EQ(device_.acknowledged,
                  std::to_string(IBV_EVENT_QP_FATAL) + " ");
    };
    EXPECT_NE(pass(1), "");
}

TEST_F(VerbsCqTest, AnEventMayEndTheEvents)
{
    open_events();
    device_.report(IBV_EVENT_DEVICE_FATAL);
    device_.report(IBV_EVENT_DEVICE_FATAL);
    on_event_ = [this] { lawn_verbs_events_close(&events_); };
    pass(1);
    pass(0);
    EXPECT_EQ(device_.events.size(), 1U);
    EXPECT_EQ(device_.acknowledged,
              std::to_string(IBV_EVENT_DEVICE_FATAL) + " ");
    EXPECT_EQ(lawn_verbs_events_open(&events_, engine_, &device_.context,
                                     nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
}

} // namespace
