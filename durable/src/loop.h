// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn_durable_poll() runs: one epoll set, one timerfd, and a lawn for all
// time-outs, pauses and held timers. Times are those of Loop::now().

#ifndef LAWN_SRC_DURABLE_LOOP_H
#define LAWN_SRC_DURABLE_LOOP_H

#include <lawn/timer.h>

#include <functional>
#include <map>
#include <vector>

namespace lawn::durable
{

class Loop;

// A descriptor in the epoll set.
class Watched
{
public:
    virtual void on_events(uint32_t events) = 0;
    // Called at the end of a poll, after Loop::mark(). If it throws, it is
    // called again in the next poll.
    virtual void flush() = 0;

protected:
    ~Watched() = default;

private:
    friend class Loop;
    Watched *next_ = nullptr; // of those that are marked
    bool is_marked_ = false;
};

// Calls `expired` once, in a poll, when its time has come; and a little later
// again if it throws without having started the timer itself. Exceptions may
// not pass through liblawn, so the lawn only lists what is due, and the loop
// calls.
class Timer
{
public:
    Timer(Loop &loop, std::function<void()> expired);
    ~Timer();
    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    void set(std::function<void()> expired)
    {
        expired_ = std::move(expired);
    }
    void start_after(uint64_t usec);
    void start_at(lawn_time_t deadline);
    void stop();
    bool is_active() const;

private:
    friend class Loop;
    static void on_expired(lawn_timer_t *timer, lawn_time_t now);

    lawn_timer_t timer_; // first: on_expired() casts
    Loop &loop_;
    std::function<void()> expired_;
    Timer *next_ = nullptr; // of those that are due
    Timer *prev_ = nullptr;
    bool is_due_ = false;
};

class Loop
{
public:
    using Clock = lawn_time_t (*)();

    // Tests have a clock of their own, of which the kernel knows nothing: who
    // sets it polls then, too.
    explicit Loop(Clock clock = &read_counter) : clock_(clock)
    {
    }
    ~Loop();
    Loop(const Loop &) = delete;
    Loop &operator=(const Loop &) = delete;

    lawn_status_t open(); // IO, NO_MEMORY
    int fd() const
    {
        return epoll_fd_;
    }

    // When it wants to be polled at the latest, if nothing happens before; for
    // those with a clock of their own.
    lawn_time_t sleeps_until() const
    {
        return armed_;
    }

    // Ticks of the clock, lawn_get_time(), that do not go back. When the
    // counter goes back, they go on from the latest reading, or from the time
    // of the sleep that has ended since.
    lawn_time_t now();

    // One pass without blocking; returns what there was to do.
    unsigned poll();
    bool is_polling() const
    {
        return is_polling_;
    }
    // LAWN_ERR_TIMED_OUT: nothing to do within the time.
    lawn_status_t wait(uint64_t max_wait_us);

    // Sets the events of a descriptor. False: see errno.
    bool watch(int fd, Watched *watched, uint32_t events);
    // Has flush() called at the end of this poll; outside of one, at the end of
    // the next, which comes at once.
    void mark(Watched *watched);
    // Before the descriptor is closed and `watched` destroyed.
    void forget(int fd, Watched *watched);
    // Has `fn`, which throws nothing, called in the next poll, which comes at
    // once.
    void defer(std::function<void()> fn);
    // Flushes what is marked now; for the end, after which there is no poll.
    void flush_marked();

private:
    friend class Timer;
    static lawn_time_t read_counter();
    void catch_up(lawn_time_t time);
    void set_timer_fd(lawn_time_t deadline);
    void arm_for(lawn_time_t deadline);
    void wake();
    void arm();
    unsigned run_pass();
    unsigned run_due();
    void run_first_due();
    unsigned run_deferred();

    const Clock clock_;
    int epoll_fd_ = -1;
    int timer_fd_ = -1;
    lawn_t *lawn_ = nullptr;
    lawn_time_t offset_ = 0; // how far the counter has gone back
    lawn_time_t latest_ = 0; // reading of now()
    lawn_time_t armed_ = LAWN_TIME_INFINITY;
    bool is_expired_ = false; // `armed_` has passed
    Timer *due_ = nullptr;
    Timer *last_due_ = nullptr;
    Timer *running_ = nullptr;
    std::map<int, Watched *> watched_;
    Watched *marked_ = nullptr;
    Watched *flushing_ = nullptr;
    std::vector<std::function<void()>> deferred_;
    bool is_polling_ = false;
};

} // namespace lawn::durable

#endif
