// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Sleeping: how an engine lets its program block until there is work. One epoll
// descriptor covers the sources' fds and a timerfd. The timerfd is needed
// because the timeout of epoll_wait() counts milliseconds, and a timerfd
// nanoseconds.
//
// The timerfd is set only if the deadline to wait for has changed, or if the
// timerfd has run out. Setting it also makes it unreadable again, so it is
// never read. No pass makes a system call for it.
//
// It counts the time in suspend, as the engine's clock may. If that stood still
// instead, the engine wakes early, finds nothing due, and sleeps for the rest.
//
// A sleep is not a stall. After a sleep, `notable_at` counts from the time
// until which the program may be away: the armed deadline, or the return of
// lawn_engine_wait() if that is earlier. If the program is stopped while it
// sleeps, it is late for that deadline, so its next pass is a stall. One case
// cannot be told from a sleep: a source wakes the program before the deadline,
// and the program is stopped before its own poll() returns.
//
// A sleep may also end an absence, as a pass may: nothing is due then, and no
// source is known to have work. So the gap is counted when the sleep begins.
//
// The child of a fork has the parent's descriptors, and what it does to them
// affects the parent. So the child opens its own when it needs them. A count of
// forks tells it that it is a child.
//
// Daemons close all descriptors, in a child or not, and then open other files,
// which get the same numbers. So the engine recognises a descriptor as its own
// before it uses or closes it, by system calls that change nothing in any file.
// Its timerfd has an interval that no other timerfd has, and that never passes.
// Its epoll descriptor has that timerfd registered in it. If the timerfd is
// gone, an epoll descriptor cannot be told from a foreign one, and stays open.

#include "engine/engine.h"

#include "base/forks.h"
#include "base/probe.h"
#include "clock/convert.h"
#include "engine/page.h"

#include <errno.h>
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

// An engine waits for a far deadline in steps, so that no 64-bit value
// overflows what the kernel takes. After a step it wakes, finds nothing due,
// and sleeps again.
constexpr uint64_t longest_nsec = 3600 * nsec_per_sec;

// The most timers that are looked at to find out when to wake. That takes a few
// us at most, as long as the system calls of going to sleep. If it is not
// enough, the engine wakes early, and then moves all of these timers and more.
constexpr unsigned settle_touches = 256;

// The timerfd may run out later than the engine's clock says by this much
// before it is set again, which is a system call. A wake-up takes longer.
constexpr uint64_t most_skew_nsec = 20000;

// The interval of each engine's timerfd is this number of seconds (57 years),
// plus the engine's signature in nanoseconds.
constexpr time_t interval_sec = 0x6c61776e;

// Signatures used so far, by this process and the ones that it was forked from.
unsigned signature_count;

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

// Adds the sources' fds when the descriptors are opened again. In the child of
// a fork, an fd that it still has wakes it, too. Most failures are ignored: the
// child may have closed an fd, or its number may belong to another file by now.
lawn_status_t add_inherited_fds(const Engine *engine, int epoll_fd)
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

// Sets the timerfd to `nsec` from now. 0 means never.
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

// Also gives, if wanted, the nanoseconds until the timerfd runs out; 0 if it is
// not set.
bool is_signed(int timer_fd, unsigned signature, uint64_t *left_p = nullptr)
{
    itimerspec spec;
    if (timer_fd < 0 || timerfd_gettime(timer_fd, &spec) != 0) {
        return false;
    }
    if (left_p) {
        *left_p = static_cast<uint64_t>(spec.it_value.tv_sec) * nsec_per_sec +
                  static_cast<uint64_t>(spec.it_value.tv_nsec);
    }
    return static_cast<uint64_t>(spec.it_interval.tv_sec - interval_sec) *
                   nsec_per_sec +
               static_cast<uint64_t>(spec.it_interval.tv_nsec) ==
           signature;
}

bool owns_timer_fd(const Engine *engine, uint64_t *left_p = nullptr)
{
    return is_signed(engine->timer_fd, engine->signature, left_p);
}

// For an engine that owns its timerfd, which is registered in no other epoll
// set. The call registers it again without a change. That makes no difference,
// not even to a parent that shares both descriptors.
bool owns_epoll_fd(const Engine *engine)
{
    return control(engine->epoll_fd, EPOLL_CTL_MOD, engine->timer_fd,
                   timer_event);
}

// True if both descriptors are open and belong to this engine alone.
bool is_whole(const Engine *engine, uint64_t *left_p = nullptr)
{
    return engine->forks == forks && owns_timer_fd(engine, left_p) &&
           owns_epoll_fd(engine);
}

lawn_status_t open_sleep(Engine *engine, uint64_t *left_p = nullptr)
{
    if (LAWN_LIKELY(is_whole(engine, left_p))) {
        return LAWN_OK;
    }
    close_sleep(engine);
    if (left_p) {
        *left_p = 0;
    }
    if (!count_forks()) {
        return LAWN_ERR_IO;
    }
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    const int timer_fd =
        timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    const unsigned signature =
        __atomic_fetch_add(&signature_count, 1, __ATOMIC_RELAXED);
    if (epoll_fd >= 0 && timer_fd >= 0 &&
        set_timer_fd(timer_fd, signature, 0) &&
        add_fd(epoll_fd, timer_fd, timer_event) == LAWN_OK &&
        add_inherited_fds(engine, epoll_fd) == LAWN_OK) {
        engine->epoll_fd = epoll_fd;
        __atomic_store_n(&engine->timer_fd, timer_fd, __ATOMIC_RELAXED);
        __atomic_store_n(&engine->forks, forks, __ATOMIC_RELAXED);
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

// Rounds up, so that the sleeper does not wake early.
uint64_t nsec_of(const Engine *engine, lawn_time_t ticks)
{
    const double nsec = ticks_to(ticks, nsec_per_sec, engine->ticks_per_sec);
    return nsec < static_cast<double>(longest_nsec)
               ? static_cast<uint64_t>(nsec) + 1
               : longest_nsec;
}

// What an engine knows when it is about to sleep.
struct Evening {
    lawn_time_t now;
    lawn_time_t next; // the next pass, at the latest
    uint64_t left;    // nanoseconds until the timerfd runs out; 0: not set
    bool expired;     // the timerfd has run out
};

// Returns BUSY if a source has work. Looks at the timerfd, too.
lawn_status_t look(Engine *engine, Evening *evening)
{
    if (open_sleep(engine, &evening->left) != LAWN_OK) {
        return LAWN_ERR_IO;
    }
    // One event may be the timerfd's. So two show whether there is another.
    epoll_event events[2];
    const int count = epoll_wait(engine->epoll_fd, events, 2, 0);
    if (count < 0) {
        return LAWN_ERR_IO;
    }
    for (int i = 0; i < count; ++i) {
        if (events[i].data.u64 != timer_event) {
            return LAWN_ERR_BUSY;
        }
        evening->expired = true;
    }
    return LAWN_OK;
}

// Finds out when to wake. Returns what look() returns, and BUSY also if a timer
// is due. It reads the clock last: the steps before take time, and the timerfd
// counts from when it is set.
lawn_status_t prepare(Engine *engine, Evening *evening)
{
    lawn_settle(engine->lawn, settle_touches);
    evening->next = next_of(engine);
    const lawn_status_t status = look(engine, evening);
    evening->now = read_clock(engine);
    return status == LAWN_OK && evening->next <= evening->now ? LAWN_ERR_BUSY
                                                              : status;
}

bool may_sleep(const Engine *engine, lawn_time_t until)
{
    bool may = !engine->box || lawn_box_sleep(engine->box, until);
    for (const PassHook *i = engine->hooks; i && may; i = i->behind) {
        may = i->sleep(i->arg, until);
    }
    return may;
}

// Returns BUSY if the engine must not sleep, for example because another thread
// has started a timer meanwhile. `until` has not come yet, so the time now is
// not INFINITY.
lawn_status_t set_timer(Engine *engine, const Evening &evening,
                        lawn_time_t until)
{
    const uint64_t nsec =
        until != LAWN_TIME_INFINITY ? nsec_of(engine, until - evening.now) : 0;
    // The engine's clock may have gone forward since the timerfd was set, by a
    // jump or because it is a little faster than the kernel's.
    const bool is_late = nsec != 0 && evening.left > nsec + most_skew_nsec;
    if (until != engine->armed || evening.expired || is_late) {
        if (!set_timer_fd(engine->timer_fd, engine->signature, nsec)) {
            return LAWN_ERR_IO;
        }
        engine->armed = until;
    }
    if (!may_sleep(engine, until)) {
        return LAWN_ERR_BUSY;
    }
    if (evening.now >= engine->notable_at) {
        note_gap(engine, evening.now);
        show_asleep(engine);
    }
    expect_pass(engine, until);
    LAWN_PROBE(sleep, engine, until, evening.now);
    return LAWN_OK;
}

// Blocks until the timerfd has run out (TIMED_OUT), or until a source is ready
// or a signal has come (OK).
lawn_status_t block(const Engine *engine)
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

// False in a pass, and for no engine.
bool may_be_left(const Engine *engine)
{
    if (!engine) {
        return false;
    }
    assert_usable(engine);
    return !is_inside(engine);
}

// Blocks until something is ready or `limit` has come. The timerfd is set anew
// after each step of a long wait.
lawn_status_t wait_until(Engine *engine, lawn_time_t limit)
{
    for (;;) {
        Evening evening = {};
        lawn_status_t status = prepare(engine, &evening);
        if (status != LAWN_OK) {
            return status == LAWN_ERR_BUSY ? LAWN_OK : status;
        }
        const lawn_time_t until = earlier_of(evening.next, limit);
        const bool sleeps = evening.now < until;
        status = LAWN_ERR_TIMED_OUT;
        if (sleeps) {
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
        if (sleeps) {
            expect_pass(engine, earlier_of(now, until));
        }
        LAWN_PROBE(wake, engine, until, now);
        if (status == LAWN_OK) {
            return LAWN_OK;
        }
        // A clock that stands still (virtual time) never reaches `until`. What
        // another thread has sent shows at no fd but the timerfd.
        if (now >= until || now == evening.now) {
            const bool is_ready =
                evening.next <= limit || !may_sleep(engine, until);
            return is_ready ? LAWN_OK : LAWN_ERR_TIMED_OUT;
        }
        // A step of a long wait has ended, or the kernel's clock is a little
        // faster than the engine's. Wait for the rest.
    }
}

} // namespace

lawn_status_t lawn::watch(Engine *engine, int fd)
{
    if (open_sleep(engine) != LAWN_OK) {
        return LAWN_ERR_IO;
    }
    return add_source_fd(engine->epoll_fd, fd);
}

void lawn::unwatch(lawn_engine_t *handle, lawn_source_t *source)
{
    const Engine *const engine = impl_of(handle);
    const int fd = source->fd;
    source->fd = -1;
    if (fd < 0 || !is_whole(engine)) {
        return;
    }
    for (const lawn_source_t *i = engine->first; i; i = i->next) {
        if (i->poll && i->fd == fd) {
            return;
        }
    }
    // This fails if the fd was closed before. Then it has left the set already.
    epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, nullptr);
}

void lawn::close_sleep(Engine *engine)
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

// Makes the timerfd run out now. The owner sets it before it says that it
// sleeps, so this call comes after that. If this call comes when the owner is
// awake again, the next look() sees that the timerfd has run out, and the owner
// sets it again.
void lawn::wake(void *arg)
{
    const Engine *const engine = impl_of(static_cast<lawn_engine_t *>(arg));
    const int timer_fd = __atomic_load_n(&engine->timer_fd, __ATOMIC_RELAXED);
    const unsigned signature =
        __atomic_load_n(&engine->signature, __ATOMIC_RELAXED);
    if (__atomic_load_n(&engine->forks, __ATOMIC_RELAXED) == forks &&
        is_signed(timer_fd, signature)) {
        set_timer_fd(timer_fd, signature, 1);
    }
}

lawn_status_t lawn_engine_arm(lawn_engine_t *handle)
{
    Engine *const engine = impl_of(handle);
    if (!may_be_left(engine)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    Evening evening = {};
    const lawn_status_t status = prepare(engine, &evening);
    return status == LAWN_OK ? set_timer(engine, evening, evening.next)
                             : status;
}

int lawn_engine_fd(lawn_engine_t *handle)
{
    Engine *const engine = impl_of(handle);
    return open_sleep(engine) == LAWN_OK ? engine->epoll_fd : -1;
}

lawn_status_t lawn_engine_wait(lawn_engine_t *handle, lawn_time_t max_wait)
{
    Engine *const engine = impl_of(handle);
    if (!may_be_left(engine)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    // A wait that ends is not one for ever, even at the end of time.
    const lawn_time_t limit =
        max_wait == LAWN_TIME_INFINITY
            ? max_wait
            : earlier_of(add_saturating(read_clock(engine), max_wait), never);
    enter_usage(&engine->usage);
    const lawn_status_t status = wait_until(engine, limit);
    leave_usage(&engine->usage);
    return status;
}
