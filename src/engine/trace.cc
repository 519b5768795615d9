// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The recorder: formats each event into a buffer, and writes the buffer when
// it is full or a second old, since programs that poll are killed rather than
// ended. It holds whole lines, so that a file that ends early ends well.
//
// Nothing here may be felt by the program. A write that fails ends the
// recording, raises no signal and leaves errno alone. A child of a fork has a
// copy of the buffer and the parent's file, and writes neither; processes that
// are told the same name, as a server and its client, take different ones.

#include "engine/trace.h"

#include "base/ticks.h"
#include "clock/convert.h"
#include "engine/engine.h"
#include "timer/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace lawn
{

unsigned trace_count;

namespace
{

constexpr size_t buffer_size = 65536;
constexpr size_t longest_event = 256; // with the polls before it

} // namespace

struct Trace : Observer {
    int fd; // -1: ended
    pid_t owner;
    bool has_begun;
    lawn_time_t last;        // time of the line written last
    uint64_t polls;          // that are not written yet,
    lawn_time_t last_poll;   // the time of the last of them,
    lawn_time_t before_last; // and of the one before
    lawn_time_t second;
    lawn_time_t flushed; // when
    off_t written;       // bytes in the file
    size_t length;       // in the buffer
    char buffer[buffer_size];
};

namespace
{

// write(2), without the signal that a broken pipe or a limit of the file's
// size would raise: it is made to wait, and taken away unless one waited.
ssize_t write_quietly(int fd, const char *data, size_t size)
{
    sigset_t signals;
    sigset_t old_mask;
    sigset_t pending;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &signals, &old_mask);
    ssize_t count;
    do {
        count = write(fd, data, size);
    } while (count < 0 && errno == EINTR);
    if (count < 0 && (errno == EPIPE || errno == EFBIG)) {
        const int raised = errno == EPIPE ? SIGPIPE : SIGXFSZ;
        const timespec at_once = {0, 0};
        sigemptyset(&signals);
        sigaddset(&signals, raised);
        if (sigismember(&pending, raised) == 0) {
            sigtimedwait(&signals, nullptr, &at_once);
        }
    }
    pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
    return count;
}

void end(Trace *trace)
{
    close(trace->fd);
    trace->fd = -1;
}

void flush(Trace *trace)
{
    const int error = errno;
    size_t done = 0;
    if (trace->owner != getpid()) {
        end(trace);
    }
    while (trace->fd >= 0 && done < trace->length) {
        const ssize_t count = write_quietly(trace->fd, trace->buffer + done,
                                            trace->length - done);
        if (count > 0) {
            done += static_cast<size_t>(count);
        } else {
            // Without the part of a line; what has no length keeps it.
            [[maybe_unused]] const int ignored =
                ftruncate(trace->fd, trace->written);
            end(trace);
        }
    }
    trace->written += static_cast<off_t>(trace->length);
    trace->length = 0;
    errno = error;
}

void put(Trace *trace, const char *text)
{
    const size_t size = strlen(text);
    memcpy(trace->buffer + trace->length, text, size);
    trace->length += size;
}

void put_number(Trace *trace, uint64_t number, unsigned base)
{
    char digits[24];
    char *first = digits + sizeof(digits);
    *--first = '\0';
    do {
        *--first = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    put(trace, first);
}

// Begins a line. Time does not go back: a fire whose pass is older than what a
// callback has brought meanwhile is recorded with the time of that.
void put_time(Trace *trace, lawn_time_t now)
{
    now = later_of(now, trace->last);
    put_number(trace, now - trace->last, 10);
    trace->last = now;
}

void put_polls(Trace *trace, uint64_t count, lawn_time_t now)
{
    if (count != 0) {
        put_time(trace, now);
        put(trace, " poll ");
        put_number(trace, count, 10);
        put(trace, "\n");
    }
}

// What was idle until now goes to one line. Polls that fire timers have one of
// their own, since only the time of the last of a line is exact.
void flush_polls(Trace *trace, bool last_fires)
{
    if (last_fires && trace->polls > 1) {
        put_polls(trace, trace->polls - 1, trace->before_last);
        trace->polls = 1;
    }
    put_polls(trace, trace->polls, trace->last_poll);
    trace->polls = 0;
}

void note_poll(Trace *trace, lawn_time_t now)
{
    ++trace->polls;
    trace->before_last = trace->last_poll;
    trace->last_poll = now;
    if (now - trace->flushed >= trace->second) {
        trace->flushed = now;
        flush(trace);
    }
}

const char *name_of(Event event)
{
    switch (event) {
    case Event::start:
        return " start ";
    case Event::stop:
        return " stop ";
    case Event::pause:
        return " pause ";
    case Event::fire:
        return " fire ";
    case Event::advance:
        break;
    }
    return " ? ";
}

void on_event(Observer *observer, Event event, const lawn_timer_t *timer,
              lawn_time_t now, lawn_time_t ttl)
{
    Trace *const trace = static_cast<Trace *>(observer);
    if (trace->fd < 0) {
        return;
    }
    if (!trace->has_begun) {
        trace->has_begun = true;
        trace->last = now;
        trace->flushed = now;
    }
    if (event == Event::advance) {
        note_poll(trace, now);
        return;
    }
    flush_polls(trace, event == Event::fire);
    put_time(trace, now);
    put(trace, name_of(event));
    put_number(trace, reinterpret_cast<uintptr_t>(timer), 16);
    if (event == Event::start) {
        put(trace, " ");
        if (ttl == LAWN_TIME_INFINITY) {
            put(trace, "inf");
        } else {
            put_number(trace, ttl, 10);
        }
    }
    put(trace, "\n");
    if (trace->length > buffer_size - longest_event) {
        flush(trace);
    }
}

// A lock of the process's, gone when it is, and not inherited. False, with
// errno, when another process has it; a file that cannot be locked needs none.
bool take_file(int fd)
{
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(fd, F_SETLK, &lock) != 0 &&
        (errno == EACCES || errno == EAGAIN)) {
        return false;
    }
    // Not emptied before, for it may have been another's.
    [[maybe_unused]] const int ignored = ftruncate(fd, 0);
    return true;
}

int open_to_write(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}

// Opens the first of `name`, name.1, name.2, ... that is neither another
// engine's of this process nor being written by another process. -1, with
// errno, when it cannot be opened.
int open_first(const char *name)
{
    for (;;) {
        char path[PATH_MAX];
        const unsigned number =
            __atomic_fetch_add(&trace_count, 1, __ATOMIC_RELAXED);
        const int length = snprintf(path, sizeof(path),
                                    number == 0 ? "%s" : "%s.%u", name, number);
        if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open_to_write(path);
        if (fd < 0 || take_file(fd)) {
            return fd;
        }
        close(fd);
    }
}

int open_this(const char *path)
{
    const int fd = open_to_write(path);
    if (fd >= 0 && !take_file(fd)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// What runs already is in the trace with what remains of it.
void record_running(const lawn_timer_t *timer, void *arg)
{
    Trace *const trace = static_cast<Trace *>(arg);
    const lawn_time_t deadline = lawn_timer_deadline(timer);
    on_event(trace, Event::start, timer, trace->last,
             deadline == LAWN_TIME_INFINITY
                 ? deadline
                 : later_of(deadline, trace->last) - trace->last);
}

// Records to what `open_file` opens of `name`.
lawn_status_t begin(lawn_engine_t *engine, const char *name,
                    int (*open_file)(const char *name))
{
    Trace *const trace =
        static_cast<Trace *>(allocate(engine->allocator, sizeof(Trace)));
    if (!trace) {
        return LAWN_ERR_NO_MEMORY;
    }
    memset(trace, 0, sizeof(*trace));
    trace->fd = open_file(name);
    if (trace->fd < 0) {
        const int error = errno;
        release(engine->allocator, trace);
        errno = error;
        return LAWN_ERR_IO;
    }
    trace->event = on_event;
    trace->owner = getpid();
    trace->second = ticks_from(1, 1, engine->ticks_per_sec);
    trace->length = static_cast<size_t>(
        snprintf(trace->buffer, longest_event,
                 "lawn-trace 1 ticks_per_sec %.17g budget %u\n",
                 engine->ticks_per_sec, engine->budget));
    flush(trace);
    engine->trace = trace;
    return LAWN_OK;
}

} // namespace

lawn_status_t open_trace(lawn_engine_t *engine)
{
    const char *const name = secure_getenv("LAWN_TRACE");
    if (!name || *name == '\0') {
        return LAWN_OK;
    }
    const lawn_status_t status = begin(engine, name, open_first);
    if (status == LAWN_OK) {
        observe(engine->lawn, engine->trace);
    } else if (status == LAWN_ERR_IO) {
        // Whoever has set the variable is seldom who sees the status.
        const int error = errno;
        fprintf(stderr, "lawn: LAWN_TRACE=%s: %s\n", name, strerror(error));
        errno = error;
    }
    return status;
}

void close_trace(lawn_engine_t *engine)
{
    Trace *const trace = engine->trace;
    if (!trace) {
        return;
    }
    if (trace->fd >= 0) {
        flush_polls(trace, false);
        flush(trace);
    }
    if (trace->fd >= 0) {
        end(trace);
    }
    release(engine->allocator, trace);
    engine->trace = nullptr;
}

} // namespace lawn

using namespace lawn;

lawn_status_t lawn_engine_trace(lawn_engine_t *engine, const char *path)
{
    if (!engine || is_busy(engine->lawn)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    observe(engine->lawn, nullptr);
    close_trace(engine);
    if (!path) {
        return LAWN_OK;
    }
    const lawn_status_t status = begin(engine, path, open_this);
    if (status == LAWN_OK) {
        Trace *const trace = engine->trace;
        trace->has_begun = true;
        trace->last = lawn_now(engine->lawn);
        trace->flushed = trace->last;
        lawn_for_each(engine->lawn, record_running, trace);
        observe(engine->lawn, trace);
    }
    return status;
}
