// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The machine under explored threads (system.h).

#include "system.h"

#include "explorer.h"
#include "machine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>

using explore::explorer;

namespace explore
{

System the;
bool is_on;

namespace
{

System saved;
bool is_one_processor;

uint64_t nsec_of(const timespec &time)
{
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 +
           static_cast<uint64_t>(time.tv_nsec);
}

timespec timespec_of(uint64_t nsec)
{
    return {static_cast<time_t>(nsec / 1000000000),
            static_cast<long>(nsec % 1000000000)};
}

bool has_expired(const TimerFd &timer)
{
    return timer.is_set && timer.when <= the.now;
}

// When nobody goes on, the next timer runs out.
bool on_idle()
{
    lawn_time_t next = LAWN_TIME_INFINITY;
    for (const auto &[fd, timer] : the.timers) {
        if (timer.is_set && timer.when > the.now) {
            next = std::min(next, timer.when);
        }
    }
    if (next == LAWN_TIME_INFINITY) {
        return false;
    }
    the.now = next;
    return true;
}

int count_ready(const std::map<int, epoll_event> &set, epoll_event *events,
                int most)
{
    int count = 0;
    for (const auto &[fd, event] : set) {
        if (count < most && is_readable(fd)) {
            events[count] = event;
            events[count++].events = EPOLLIN;
        }
    }
    return count;
}

void *allocate(void *, size_t size)
{
    return explorer().memory().allocate(size);
}

void release(void *, void *memory)
{
    explorer().memory().release(memory);
}

} // namespace

// Whoever finds it readable learns from those who have made it so.
bool is_readable(int fd, bool learns)
{
    const View *from = nullptr;
    if (const auto i = the.timers.find(fd); i != the.timers.end()) {
        from = has_expired(i->second) ? &i->second.view : nullptr;
    } else if (const auto i = the.fifo_fds.find(fd); i != the.fifo_fds.end()) {
        const Fifo &fifo = the.fifos[i->second];
        from = fifo.is_full ? &fifo.view : nullptr;
    } else if (const auto i = the.pidfds.find(fd); i != the.pidfds.end()) {
        const auto dead = the.dead.find(i->second);
        from = dead != the.dead.end() ? &dead->second : nullptr;
    } else if (const auto i = the.epolls.find(fd); i != the.epolls.end()) {
        return std::count_if(i->second.begin(), i->second.end(),
                             [learns](const auto &one) {
                                 return is_readable(one.first, learns);
                             }) > 0;
    }
    if (from && learns && explorer().is_running()) {
        explorer().view().join(*from);
    }
    return from != nullptr;
}

void reset_system()
{
    is_on = true;
    the = {};
    the.now = 1000000;
    the.next_fd = first_fd;
    explorer().on_idle(on_idle);
}

void save_system()
{
    saved = the;
}

void restore_system()
{
    the = saved;
}

void leave_system()
{
    is_on = false;
}

lawn_time_t now()
{
    return the.now;
}

void pass_time(lawn_time_t ticks)
{
    explorer().step("time passes");
    the.now += ticks;
}

void step_back(lawn_time_t ticks)
{
    explorer().step("the counter goes back");
    the.back += ticks;
}

void use_one_processor(bool is_one)
{
    is_one_processor = is_one;
}

uint64_t hash_of_system()
{
    uint64_t hash = mix(the.now, the.back);
    for (const auto &[fd, timer] : the.timers) {
        hash = mix(hash, timer.is_set ? timer.when : 0);
    }
    for (const auto &[at, mutex] : the.mutexes) {
        hash = mix(hash, mutex.owner);
    }
    for (const auto &[name, fifo] : the.fifo_names) {
        hash = mix(hash, static_cast<uint64_t>(fifo));
    }
    for (const auto &[number, fifo] : the.fifos) {
        hash = mix(hash, fifo.is_full);
    }
    hash = mix(hash, the.fifo_fds.size());
    hash = mix(hash, the.pidfds.size());
    for (const auto &[epoll, set] : the.epolls) {
        hash = mix(hash, set.size());
    }
    for (const auto &[process, view] : the.dead) {
        hash = mix(hash, static_cast<uint64_t>(process.first));
    }
    for (const auto &[pid, birth] : the.births) {
        hash = mix(hash, birth);
    }
    return hash;
}

lawn_allocator_t allocator()
{
    lawn_allocator_t result = {};
    result.alloc = allocate;
    result.release = release;
    return result;
}

} // namespace explore

using namespace explore;

// NOLINTBEGIN: names are the linker's
extern "C" {

lawn_time_t __wrap_lawn_clock_read()
{
    const lawn_time_t read = the.now - the.back;
    explorer().learned(read);
    return read;
}

double __wrap_lawn_time_sec_value()
{
    return 1e9;
}

int __wrap_timerfd_create(int, int)
{
    the.timers[the.next_fd] = {};
    return the.next_fd++;
}

int __wrap_timerfd_settime(int fd, int, const itimerspec *spec, itimerspec *)
{
    explorer().step("timerfd_settime");
    const auto timer = the.timers.find(fd);
    if (timer == the.timers.end()) {
        errno = EBADF;
        return -1;
    }
    const uint64_t nsec = nsec_of(spec->it_value);
    timer->second.is_set = nsec != 0;
    // One that runs out now has run out.
    timer->second.when = the.now + (nsec > 1 ? nsec : 0);
    timer->second.interval = nsec_of(spec->it_interval);
    if (explorer().is_running()) {
        timer->second.view.join(explorer().view());
    }
    return 0;
}

int __wrap_timerfd_gettime(int fd, itimerspec *spec)
{
    const auto timer = the.timers.find(fd);
    if (timer == the.timers.end()) {
        errno = EBADF;
        return -1;
    }
    if (explorer().is_running()) {
        explorer().step("timerfd_gettime", false);
        explorer().view().join(timer->second.view);
        explorer().learned(timer->second.is_set ? timer->second.when : 0);
    }
    const lawn_time_t when = has_expired(timer->second)
                                 ? timer->second.when + timer->second.interval
                                 : timer->second.when;
    spec->it_value = timespec_of(timer->second.is_set ? when - the.now : 0);
    spec->it_interval = timespec_of(timer->second.interval);
    return 0;
}

int __wrap_epoll_create1(int)
{
    the.epolls[the.next_fd] = {};
    return the.next_fd++;
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event *event)
{
    auto &set = the.epolls[epoll];
    if (operation == EPOLL_CTL_DEL) {
        set.erase(fd);
    } else if (operation == EPOLL_CTL_MOD && set.count(fd) == 0) {
        errno = ENOENT;
        return -1;
    } else {
        set[fd] = *event;
    }
    return 0;
}

int __wrap_epoll_wait(int epoll, epoll_event *events, int most, int msec)
{
    const auto &set = the.epolls[epoll];
    if (explorer().is_running()) {
        if (msec == 0) {
            explorer().step("epoll_wait 0", false);
        } else {
            explorer().wait("epoll_wait",
                            [epoll] { return is_readable(epoll, false); });
        }
    }
    const int count = count_ready(set, events, most);
    explorer().learned(static_cast<uint64_t>(count));
    return count;
}

int __real_close(int fd);

int __wrap_close(int fd)
{
    if (!is_on) {
        return __real_close(fd);
    }
    explorer().step("close");
    the.timers.erase(fd);
    the.epolls.erase(fd);
    the.fifo_fds.erase(fd);
    the.pidfds.erase(fd);
    for (auto &[epoll, set] : the.epolls) {
        set.erase(fd);
    }
    return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *,
                          void *(*run)(void *), void *arg)
{
    // Its end is a step of its own, for those who wait for it.
    const unsigned number = explorer().add_thread([run, arg] {
        run(arg);
        explorer().step("ends");
        the.ended[explorer().current()].join(explorer().view());
    });
    *thread = static_cast<pthread_t>(number);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **)
{
    const auto number = static_cast<unsigned>(thread);
    explorer().wait("pthread_join",
                    [number] { return the.ended.count(number) > 0; });
    explorer().view().join(the.ended[number]);
    return 0;
}

pthread_t __real_pthread_self();

pthread_t __wrap_pthread_self()
{
    if (!is_on) {
        return __real_pthread_self();
    }
    return static_cast<pthread_t>(explorer().current());
}

int __real_pthread_mutex_init(pthread_mutex_t *mutex,
                              const pthread_mutexattr_t *attributes);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
                              const pthread_mutexattr_t *attributes)
{
    if (!is_on) {
        return __real_pthread_mutex_init(mutex, attributes);
    }
    the.mutexes[mutex] = {Explorer::nobody, View()};
    return 0;
}

int __real_pthread_mutex_destroy(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    if (!is_on) {
        return __real_pthread_mutex_destroy(mutex);
    }
    the.mutexes.erase(mutex);
    return 0;
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!is_on) {
        return __real_pthread_mutex_lock(mutex);
    }
    if (explorer().is_running()) {
        Mutex &one = the.mutexes[mutex];
        explorer().wait("pthread_mutex_lock",
                        [&one] { return one.owner == Explorer::nobody; });
        one.owner = explorer().current();
        explorer().view().join(one.view);
    }
    return 0;
}

int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (!is_on) {
        return __real_pthread_mutex_trylock(mutex);
    }
    if (explorer().is_running()) {
        Mutex &one = the.mutexes[mutex];
        explorer().step("pthread_mutex_trylock");
        explorer().learned(one.owner);
        if (one.owner != Explorer::nobody) {
            return EBUSY;
        }
        one.owner = explorer().current();
        explorer().view().join(one.view);
    }
    return 0;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (!is_on) {
        return __real_pthread_mutex_unlock(mutex);
    }
    if (explorer().is_running()) {
        Mutex &one = the.mutexes[mutex];
        explorer().step("pthread_mutex_unlock");
        explorer().memory().publish(explorer().current(), &one.view);
        one.owner = Explorer::nobody;
    }
    return 0;
}

unsigned __real_lawn_engine_progress(void *engine);

// A loop of the library's own threads: nothing is left of the last time.
unsigned __wrap_lawn_engine_progress(void *engine)
{
    explorer().end_operation(0);
    return __real_lawn_engine_progress(engine);
}

// An assertion of the library.
void __wrap___assert_fail(const char *what, const char *, unsigned,
                          const char *)
{
    explorer().assertion_failed(what);
}

int __real_nanosleep(const timespec *wanted, timespec *left);

int __wrap_nanosleep(const timespec *wanted, timespec *left)
{
    if (!is_on) {
        return __real_nanosleep(wanted, left);
    }
    explorer().nap();
    return 0;
}

int __real_sched_yield();

int __wrap_sched_yield()
{
    if (!is_on) {
        return __real_sched_yield();
    }
    explorer().pause();
    return 0;
}

int __wrap_sched_getcpu()
{
    return explorer().is_running() && !is_one_processor
               ? static_cast<int>(explorer().current())
               : 0;
}

long __real_sysconf(int name);

long __wrap_sysconf(int name)
{
    return name == _SC_NPROCESSORS_CONF ? 1 : __real_sysconf(name);
}

} // extern "C"
// NOLINTEND
