// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Sleeping: one epoll descriptor over the sources' fds and a timerfd, since
// the timeout of epoll_wait() counts milliseconds and a timerfd nanoseconds.
//
// The timerfd is set only when the deadline to wait for has changed or it has
// run out, and setting it also ends its readability: no pass pays for it, and
// it is never read.
//
// A sleep is no stall. Until the next pass, `notable_at` counts from the time
// up to which the program may be away: the deadline that was armed, and after
// lawn_engine_wait() its return if that came before. A program that was
// stopped while it slept is late for that deadline, and so its pass is a
// stall; one that a source woke before it, and was stopped before its own
// poll() returned, cannot be told from a sleeper.
//
// The child of a fork has the parent's descriptors, and what it did to them
// would be done to the parent: it opens its own when it needs them. It knows by
// a count of forks.
//
// Daemons close all descriptors, in a child or not, and open other files, which
// get the same numbers. So the engine's own are recognised before they are used
// or closed, by system calls that change nothing in any file: the timerfd by
// its interval, which it never comes to and which no other has, and the epoll
// descriptor by the timerfd that is registered in it. An epoll descriptor whose
// timerfd is gone cannot be told from a foreign one and stays open.

#include "engine/engine.h"

#include "base/probe.h"
#include "clock/convert.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

using namespace lawn;

namespace
{

// What an event of the epoll descriptor is about.
enum Event : uint64_t { timer_event, source_event };

constexpr uint64_t nsec_per_sec = 1000000000;

// Far deadlines are waited for in steps, so that no 64-bit value overflows
// what the kernel takes: it wakes, finds nothing due, and sleeps again.
constexpr uint64_t longest_nsec = 3600 * nsec_per_sec;

// Timers looked at to find out when to wake: a few us at most, as the system
// calls of going to sleep. Where that is not enough the engine wakes early, and
// moves all of them and more.
constexpr unsigned settle_touches = 256;

// The seconds of the interval of every engine's timerfd, 57 years; its
// nanoseconds are the engine's own.
constexpr time_t interval_sec = 0x6c61776e;

unsigned signature_count; // of the process, and of those that it is a fork of

bool control(int epoll_fd, int operation, int fd, Event event)
{
    epoll_event events = {};
    events.events = EPOLLIN;
    events.data.u64 = event;
    return epoll_ctl(epoll_fd, operation, fd, &events) == 0;
}

lawn_status_t add_fd(int epoll_fd, int fd, Event event)
{
    return control(epoll_fd, EPOLL_CTL_ADD, fd, event) ? LAWN_OK : LAWN_ERR_IO;
}

// Sources may share an fd, as completion queues share a channel.
lawn_status_t add_source_fd(int epoll_fd, int fd)
{
    const lawn_status_t status = add_fd(epoll_fd, fd, source_event);
    return status != LAWN_OK && errno == EEXIST ? LAWN_OK : status;
}

// In the child of a fork: what it still has of the sources' fds wakes it, too;
// one that it has closed, or that is something else by now, does not.
lawn_status_t add_inherited_fds(const lawn_engine_t *engine, int epoll_fd)
{
    for (const lawn_source_t *i = engine->first; i; i = i->next) {
        if (i->poll && i->fd >= 0 &&
            add_source_fd(epoll_fd, i->fd) != LAWN_OK &&
            (errno == ENOMEM || errno == ENOSPC)) {
            return LAWN_ERR_IO;
        }
    }
    return LAWN_OK;
}

unsigned fork_count; // between this process and the first that slept

void count_fork()
{
    ++fork_count;
}

// Threads that come here together count each fork twice, which does no harm.
bool count_forks()
{
    static bool are_counted;
    if (!__atomic_load_n(&are_counted, __ATOMIC_RELAXED)) {
        const int error = pthread_atfork(nullptr, nullptr, count_fork);
        if (error != 0) {
            errno = error;
            return false;
        }
        __atomic_store_n(&are_counted, true, __ATOMIC_RELAXED);
    }
    return true;
}

// Sets the timerfd to `nsec` from now; 0: to never.
bool set_timer_fd(int timer_fd, unsigned signature, uint64_t nsec)
{
    itimerspec spec = {};
    spec.it_interval.tv_sec =
        interval_sec + static_cast<time_t>(signature / nsec_per_sec);
    spec.it_interval.tv_nsec = static_cast<long>(signature % nsec_per_sec);
    spec.it_value.tv_sec = static_cast<time_t>(nsec / nsec_per_sec);
    spec.it_value.tv_nsec = static_cast<long>(nsec % nsec_per_sec);
    return timerfd_settime(timer_fd, 0, &spec, nullptr) == 0;
}

bool is_signed(int timer_fd, unsigned signature)
{
    itimerspec spec;
    return timer_fd >= 0 && timerfd_gettime(timer_fd, &spec) == 0 &&
           static_cast<uint64_t>(spec.it_interval.tv_sec - interval_sec) *
                       nsec_per_sec +
                   static_cast<uint64_t>(spec.it_interval.tv_nsec) ==
               signature;
}

bool owns_timer_fd(const lawn_engine_t *engine)
{
    return is_signed(engine->timer_fd, engine->signature);
}

// Of an engine that owns its timerfd, which is registered nowhere else. To be
// registered anew as it is makes no difference, also to a parent that shares
// both.
bool owns_epoll_fd(const lawn_engine_t *engine)
{
    return control(engine->epoll_fd, EPOLL_CTL_MOD, engine->timer_fd,
                   timer_event);
}

// Both descriptors are there, and the engine's alone.
bool is_open(const lawn_engine_t *engine)
{
    return engine->forks == fork_count && owns_timer_fd(engine) &&
           owns_epoll_fd(engine);
}

lawn_status_t open_sleep(lawn_engine_t *engine)
{
    if (LAWN_LIKELY(is_open(engine))) {
        return LAWN_OK;
    }
    close_sleep(engine);
    if (!count_forks()) {
        return LAWN_ERR_IO;
    }
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    const int timer_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    const unsigned signature =
        __atomic_fetch_add(&signature_count, 1, __ATOMIC_RELAXED);
    if (epoll_fd >= 0 && timer_fd >= 0 &&
        set_timer_fd(timer_fd, signature, 0) &&
        add_fd(epoll_fd, timer_fd, timer_event) == LAWN_OK &&
        add_inherited_fds(engine, epoll_fd) == LAWN_OK) {
        engine->epoll_fd = epoll_fd;
        __atomic_store_n(&engine->timer_fd, timer_fd, __ATOMIC_RELAXED);
        __atomic_store_n(&engine->forks, fork_count, __ATOMIC_RELAXED);
        __atomic_store_n(&engine->signature, signature, __ATOMIC_RELAXED);
        return LAWN_OK;
    }
    const int error = errno;
    if (epoll_fd >= 0) {
        close(epoll_fd);
    }
    if (timer_fd >= 0) {
        close(timer_fd);
    }
    errno = error;
    return LAWN_ERR_IO;
}

// Never less than the ticks, so that the sleeper is not early.
uint64_t nsec_of(const lawn_engine_t *engine, lawn_time_t ticks)
{
    const double nsec = ticks_to(ticks, nsec_per_sec, engine->ticks_per_sec);
    return nsec < static_cast<double>(longest_nsec)
               ? static_cast<uint64_t>(nsec) + 1
               : longest_nsec;
}

// BUSY when a source has work. `expired_p`: the timerfd has run out.
lawn_status_t look(lawn_engine_t *engine, bool *expired_p)
{
    if (open_sleep(engine) != LAWN_OK) {
        return LAWN_ERR_IO;
    }
    // One is the timerfd, so two tell whether there is another.
    epoll_event events[2];
    const int count = epoll_wait(engine->epoll_fd, events, 2, 0);
    if (count < 0) {
        return LAWN_ERR_IO;
    }
    *expired_p = false;
    for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 != timer_event) {
            return LAWN_ERR_BUSY;
        }
        *expired_p = true;
    }
    return LAWN_OK;
}

// What an engine knows that is about to sleep.
struct Evening {
    lawn_time_t now;
    lawn_time_t next; // when to pass again
    bool expired;     // the timerfd has run out
};

// The same, and BUSY when a timer is due, having found out when to wake. The
// clock is read last: what is before takes its time, and the timerfd counts
// from when it is set.
lawn_status_t prepare(lawn_engine_t *engine, Evening *evening)
{
    lawn_settle(engine->lawn, settle_touches);
    evening->next = next_of(engine);
    const lawn_status_t status = look(engine, &evening->expired);
    evening->now = read_clock(engine);
    return status == LAWN_OK && evening->next <= evening->now ? LAWN_ERR_BUSY
                                                              : status;
}

bool may_sleep(const lawn_engine_t *engine, lawn_time_t until)
{
    bool may = !engine->box || lawn_box_sleep(engine->box, until);
    for (const Passenger *i = engine->passengers; i && may; i = i->behind) {
        may = i->sleep(i->arg, until);
    }
    return may;
}

// BUSY when another thread has started a timer meanwhile.
lawn_status_t set_timer(lawn_engine_t *engine, const Evening &evening,
                        lawn_time_t until)
{
    if (until != engine->armed || evening.expired) {
        const uint64_t nsec = until != LAWN_TIME_INFINITY
                                  ? nsec_of(engine, until - evening.now)
                                  : 0;
        if (!set_timer_fd(engine->timer_fd, engine->signature, nsec)) {
            return LAWN_ERR_IO;
        }
        engine->armed = until;
    }
    if (!may_sleep(engine, until)) {
        return LAWN_ERR_BUSY;
    }
    expect_pass(engine, until);
    LAWN_PROBE(sleep, engine, until, evening.now);
    return LAWN_OK;
}

// Blocks until the timerfd has run out (TIMED_OUT), a source is ready or a
// signal has come (OK).
lawn_status_t block(const lawn_engine_t *engine)
{
    epoll_event events[2];
    const int count = epoll_wait(engine->epoll_fd, events, 2, -1);
    if (count < 0) {
        return errno == EINTR ? LAWN_OK : LAWN_ERR_IO;
    }
    for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 != timer_event) {
            return LAWN_OK;
        }
    }
    return LAWN_ERR_TIMED_OUT;
}

} // namespace

lawn_status_t lawn::watch(lawn_engine_t *engine, int fd)
{
    if (open_sleep(engine) != LAWN_OK) {
        return LAWN_ERR_IO;
    }
    return add_source_fd(engine->epoll_fd, fd);
}

void lawn::unwatch(lawn_engine_t *engine, const lawn_source_t *source)
{
    if (!is_open(engine)) {
        return;
    }
    for (const lawn_source_t *i = engine->first; i; i = i->next) {
        if (i->poll && i->fd == source->fd) {
            return;
        }
    }
    // Fails when the fd was closed before; then it is out already.
    epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, source->fd, nullptr);
}

void lawn::close_sleep(lawn_engine_t *engine)
{
    if (owns_timer_fd(engine)) {
        if (owns_epoll_fd(engine)) {
            close(engine->epoll_fd);
        }
        close(engine->timer_fd);
    }
    engine->epoll_fd = -1;
    __atomic_store_n(&engine->timer_fd, -1, __ATOMIC_RELAXED);
    engine->armed = LAWN_TIME_INFINITY;
}

// Has the timerfd run out now. The owner set it before it said that it sleeps,
// so this comes after; should it come when the owner is up again, the next
// look() sees that the timerfd has run out, and sets it anew.
void lawn::wake(void *arg)
{
    const lawn_engine_t *const engine = static_cast<lawn_engine_t *>(arg);
    const int timer_fd = __atomic_load_n(&engine->timer_fd, __ATOMIC_RELAXED);
    const unsigned signature =
        __atomic_load_n(&engine->signature, __ATOMIC_RELAXED);
    if (__atomic_load_n(&engine->forks, __ATOMIC_RELAXED) == fork_count &&
        is_signed(timer_fd, signature)) {
        set_timer_fd(timer_fd, signature, 1);
    }
}

lawn_status_t lawn_engine_arm(lawn_engine_t *engine)
{
    if (!engine || is_inside(engine)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    Evening evening = {};
    const lawn_status_t status = prepare(engine, &evening);
    return status == LAWN_OK ? set_timer(engine, evening, evening.next)
                             : status;
}

int lawn_engine_fd(lawn_engine_t *engine)
{
    return open_sleep(engine) == LAWN_OK ? engine->epoll_fd : -1;
}

lawn_status_t lawn_engine_wait(lawn_engine_t *engine, lawn_time_t max_wait)
{
    if (!engine || is_inside(engine)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const lawn_time_t limit = add_saturating(read_clock(engine), max_wait);
    for (;;) {
        Evening evening = {};
        lawn_status_t status = prepare(engine, &evening);
        if (status != LAWN_OK) {
            return status == LAWN_ERR_BUSY ? LAWN_OK : status;
        }
        const lawn_time_t until = earlier_of(evening.next, limit);
        status = LAWN_ERR_TIMED_OUT;
        if (evening.now < until) {
            status = set_timer(engine, evening, until);
            status = status == LAWN_OK ? block(engine) : status;
        }
        if (status == LAWN_ERR_BUSY) {
            return LAWN_OK;
        }
        if (status == LAWN_ERR_IO) {
            return status;
        }
        const lawn_time_t now = read_clock(engine);
        expect_pass(engine, earlier_of(now, until));
        LAWN_PROBE(wake, engine, until, now);
        if (status == LAWN_OK) {
            return LAWN_OK;
        }
        // A clock that stands still (virtual time) never comes to `until`.
        if (now >= until || now == evening.now) {
            return evening.next <= limit ? LAWN_OK : LAWN_ERR_TIMED_OUT;
        }
        // A step of a long wait has ended, or the kernel's clock is a little
        // faster than the engine's: wait for the rest.
    }
}
