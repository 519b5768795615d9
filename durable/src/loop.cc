// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timerfd is set when the earliest deadline is before the one it is set to,
// or when that has passed. A timer that was stopped may therefore wake the
// program once for nothing.

#include "src/loop.h"

#include "src/guard.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lawn::durable
{

namespace
{

constexpr unsigned settle_touches = 256;
constexpr unsigned advance_budget = 1024;
constexpr int max_events = 64;
constexpr uint64_t nsec_per_sec = 1000000000;
constexpr double longest_sleep_s = 3600;

// If the counter goes back by less, that is the skew between two processors,
// and the time stands still for as long. By more: the machine was suspended,
// migrated or restored.
constexpr double most_skew_ms = 1;

// The end of a sleep that `deadline` shall end.
lawn_time_t end_of_sleep(lawn_time_t deadline, lawn_time_t now)
{
    return std::min(deadline, now + lawn_time_from_sec(longest_sleep_s));
}

// What time remains until `end`, rounded up.
uint64_t nsec_until(lawn_time_t end, lawn_time_t now)
{
    // 0 would mean never.
    return end <= now ? 1
                      : static_cast<uint64_t>(lawn_time_to_nsec(end - now)) + 1;
}

} // namespace

Timer::Timer(Loop &loop, std::function<void()> expired)
    : loop_(loop), expired_(std::move(expired))
{
    lawn_timer_init(&timer_, on_expired);
}

Timer::~Timer()
{
    stop();
    if (loop_.running_ == this) {
        loop_.running_ = nullptr;
    }
}

void Timer::on_expired(lawn_timer_t *timer, lawn_time_t)
{
    Timer *const self = reinterpret_cast<Timer *>(timer);
    Loop &loop = self->loop_;
    self->prev_ = loop.last_due_;
    self->next_ = nullptr;
    (loop.last_due_ ? loop.last_due_->next_ : loop.due_) = self;
    loop.last_due_ = self;
    self->is_due_ = true;
}

void Timer::start_after(uint64_t usec)
{
    const lawn_time_t now = loop_.now();
    const lawn_time_t ticks = lawn_time_from_usec(static_cast<double>(usec));
    start_at(ticks < LAWN_TIME_INFINITY - now ? now + ticks
                                              : LAWN_TIME_INFINITY);
}

void Timer::start_at(lawn_time_t deadline)
{
    stop();
    lawn_timer_start_at(loop_.lawn_, &timer_, loop_.now(), deadline);
    loop_.arm_for(deadline);
}

void Timer::stop()
{
    if (is_due_) {
        (prev_ ? prev_->next_ : loop_.due_) = next_;
        (next_ ? next_->prev_ : loop_.last_due_) = prev_;
        is_due_ = false;
    } else if (loop_.lawn_) {
        lawn_timer_stop(loop_.lawn_, &timer_);
    }
}

bool Timer::is_active() const
{
    return is_due_ || lawn_timer_is_active(&timer_);
}

Loop::~Loop()
{
    deferred_.clear(); // may hold timers
    lawn_destroy(lawn_);
    if (timer_fd_ >= 0) {
        close(timer_fd_);
    }
    if (epoll_fd_ >= 0) {
        close(epoll_fd_);
    }
}

lawn_status_t Loop::open()
{
    const lawn_status_t status = lawn_create(nullptr, &lawn_);
    if (status != LAWN_OK) {
        return status;
    }
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = timer_fd_;
    return epoll_fd_ >= 0 && timer_fd_ >= 0 &&
                   epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, timer_fd_, &event) == 0
               ? LAWN_OK
               : LAWN_ERR_IO;
}

lawn_time_t Loop::read_counter()
{
    return lawn_get_time();
}

lawn_time_t Loop::now()
{
    const lawn_time_t time = clock_() + offset_;
    if (time >= latest_) {
        latest_ = time;
    } else if (latest_ - time > lawn_time_from_msec(most_skew_ms)) {
        offset_ += latest_ - time;
    }
    return latest_;
}

// The kernel says that it is `time`: a sleep until then has ended. If the
// counter went back meanwhile, now() has missed what had passed of the sleep.
void Loop::catch_up(lawn_time_t time)
{
    const lawn_time_t before = now();
    if (time > before && time - before > lawn_time_from_msec(most_skew_ms)) {
        offset_ += time - before;
        latest_ = time;
    }
}

void Loop::set_timer_fd(lawn_time_t deadline)
{
    itimerspec spec = {};
    armed_ = deadline;
    if (deadline != LAWN_TIME_INFINITY) {
        const lawn_time_t time = now();
        armed_ = end_of_sleep(deadline, time);
        const uint64_t nsec = nsec_until(armed_, time);
        spec.it_value.tv_sec = static_cast<time_t>(nsec / nsec_per_sec);
        spec.it_value.tv_nsec = static_cast<long>(nsec % nsec_per_sec);
    }
    if (clock_ == &read_counter) {
        // It fails for bad arguments only.
        timerfd_settime(timer_fd_, 0, &spec, nullptr);
    }
}

// Outside of a poll, the program may go to sleep without another.
void Loop::arm_for(lawn_time_t deadline)
{
    if (!is_polling_ && deadline < armed_) {
        set_timer_fd(deadline);
    }
}

void Loop::wake()
{
    if (!is_polling_ && armed_ != 0) {
        set_timer_fd(0);
    }
}

void Loop::arm()
{
    if (due_ || !deferred_.empty()) {
        set_timer_fd(0);
        return;
    }
    lawn_settle(lawn_, settle_touches);
    const lawn_time_t next = lawn_next(lawn_);
    if (next < armed_ || is_expired_) {
        set_timer_fd(next);
        is_expired_ = false;
    }
}

// Only what was due when it began, so that timers of no time cannot keep it.
unsigned Loop::run_due()
{
    const lawn_time_t time = now();
    if (armed_ <= time) {
        is_expired_ = true;
    }
    unsigned count = 0;
    if (lawn_next(lawn_) <= time) {
        lawn_advance(lawn_, time, advance_budget);
    }
    for (; due_; ++count) {
        run_first_due();
    }
    return count;
}

// The function may destroy its timer, and `running_` is nullptr then.
void Loop::run_first_due()
{
    running_ = due_;
    running_->stop();
    std::function<void()> expired = std::move(running_->expired_);
    const bool is_done = attempt(expired);
    if (running_) {
        running_->expired_ = std::move(expired);
        if (!is_done && !running_->is_active()) {
            running_->start_after(retry_us);
        }
    }
    running_ = nullptr;
}

void Loop::flush_marked()
{
    while (marked_) {
        flushing_ = marked_;
        marked_ = flushing_->next_;
        flushing_->is_marked_ = false;
        try {
            flushing_->flush();
        } catch (...) {
            // In the next poll, and behind the others.
            Watched **last = &marked_;
            while (*last) {
                last = &(*last)->next_;
            }
            if (flushing_ && !flushing_->is_marked_) {
                *last = flushing_;
                flushing_->next_ = nullptr;
                flushing_->is_marked_ = true;
            }
            flushing_ = nullptr;
            throw;
        }
    }
    flushing_ = nullptr;
}

unsigned Loop::run_deferred()
{
    std::vector<std::function<void()>> deferred;
    deferred.swap(deferred_);
    for (const std::function<void()> &fn : deferred) {
        fn();
    }
    return static_cast<unsigned>(deferred.size());
}

unsigned Loop::poll()
{
    if (is_polling_) {
        return 0;
    }
    try {
        return run_pass();
    } catch (...) {
        set_timer_fd(0); // what is left is done in the next poll
        throw;
    }
}

unsigned Loop::run_pass()
{
    const Within polling(&is_polling_);
    unsigned count = run_deferred();
    epoll_event events[max_events];
    const int ready = epoll_wait(epoll_fd_, events, max_events, 0);
    for (int i = 0; i < ready; ++i) {
        if (events[i].data.fd == timer_fd_) {
            is_expired_ = true;
            catch_up(armed_);
            continue;
        }
        // An earlier event may have closed this one's descriptor.
        const auto found = watched_.find(events[i].data.fd);
        if (found != watched_.end()) {
            ++count;
            found->second->on_events(events[i].events);
        }
    }
    count += run_due();
    flush_marked();
    arm();
    return count;
}

lawn_status_t Loop::wait(uint64_t max_wait_us)
{
    if (is_polling_) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (poll() != 0) {
        return LAWN_OK;
    }
    const lawn_time_t begin = now();
    const lawn_time_t span =
        lawn_time_from_usec(static_cast<double>(max_wait_us));
    const lawn_time_t end =
        span < LAWN_TIME_INFINITY - begin ? begin + span : LAWN_TIME_INFINITY;
    for (lawn_time_t i = begin; i < end; i = now()) {
        const lawn_time_t until = end_of_sleep(end, i);
        const uint64_t msec = nsec_until(until, i) / 1000000 + 1;
        epoll_event event;
        const int ready =
            epoll_wait(epoll_fd_, &event, 1, static_cast<int>(msec));
        if (ready < 0) {
            return errno == EINTR ? LAWN_OK : LAWN_ERR_IO;
        }
        if (ready == 0) {
            catch_up(until);
        }
        if (poll() != 0) {
            return LAWN_OK;
        }
    }
    return LAWN_ERR_TIMED_OUT;
}

bool Loop::watch(int fd, Watched *watched, uint32_t events)
{
    epoll_event event = {};
    event.events = events;
    event.data.fd = fd;
    const bool is_known = watched_.count(fd) != 0;
    if (!is_known && !attempt([&] { watched_[fd] = watched; })) {
        errno = ENOMEM;
        return false;
    }
    if (epoll_ctl(epoll_fd_, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
                  &event) != 0) {
        const int error = errno;
        watched_.erase(fd);
        errno = error;
        return false;
    }
    return true;
}

void Loop::mark(Watched *watched)
{
    if (!watched->is_marked_) {
        watched->next_ = marked_;
        watched->is_marked_ = true;
        marked_ = watched;
        wake();
    }
}

void Loop::forget(int fd, Watched *watched)
{
    if (watched_.erase(fd) != 0) {
        epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
    }
    if (watched->is_marked_) {
        Watched **at = &marked_;
        while (*at != watched) {
            at = &(*at)->next_;
        }
        *at = watched->next_;
        watched->is_marked_ = false;
    }
    if (flushing_ == watched) {
        flushing_ = nullptr;
    }
}

void Loop::defer(std::function<void()> fn)
{
    deferred_.push_back(std::move(fn));
    wake();
}

} // namespace lawn::durable
