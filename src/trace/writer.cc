// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Formats each event into a buffer. Writes the buffer when it is full or a
// second old, because programs that poll are killed rather than ended. The
// buffer holds whole lines, so a file that ends early ends well.
//
// The program must not notice this. A write that fails ends the trace, raises
// no signal and leaves errno alone. The child of a fork has a copy of the
// buffer and the parent's file. It writes neither.
//
// Daemons close all descriptors, and then open other files, which get the same
// numbers. So the trace recognises its file before it writes to it or closes
// it, by what fstat() says. If the file is another one, the trace ends.

#include "trace/writer.h"

#include "base/base.h"
#include "base/ticks.h"
#include "clock/convert.h"
#include "conn/state.h"
#include "timer/inside.h"

#include <algorithm>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace lawn
{

namespace
{

constexpr size_t buffer_size = 65536;
constexpr size_t longest_event = 512; // with what stands beside it

} // namespace

struct Trace : lawn_observer_t {
    lawn_allocator_t allocator;
    int fd;       // -1: ended
    dev_t device; // of the file,
    ino_t inode;  // by which it is recognised
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

bool owns_file(const Trace *trace)
{
    struct stat file = {};
    return fstat(trace->fd, &file) == 0 && file.st_dev == trace->device &&
           file.st_ino == trace->inode;
}

// A child of a fork may have a copy of the descriptor, which would keep the
// lock of engine/trace.cc. So the owner takes the lock away.
void end(Trace *trace)
{
    if (owns_file(trace)) {
        struct flock lock = {};
        lock.l_type = F_UNLCK;
        lock.l_whence = SEEK_SET;
        if (trace->owner == getpid()) {
            fcntl(trace->fd, F_OFD_SETLK, &lock);
        }
        close(trace->fd);
    }
    trace->fd = -1;
}

void flush(Trace *trace)
{
    const int error = errno;
    size_t done = 0;
    if (trace->owner != getpid() || !owns_file(trace)) {
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

// Of the events that have a line of their own.
const char *const names[] = {" start ", " stop ", " pause ", " fire "};

static_assert(LAWN_EVENT_STOP == 1 && LAWN_EVENT_PAUSE == 2 &&
                  LAWN_EVENT_FIRE == 3,
              "the names are in this order");

// Returns false when the trace has ended.
bool is_recording(Trace *trace, lawn_time_t now)
{
    if (trace->fd >= 0 && !trace->has_begun) {
        trace->has_begun = true;
        trace->last = now;
        trace->flushed = now;
    }
    return trace->fd >= 0;
}

bool begin_line(Trace *trace, bool last_poll_fires, lawn_time_t now)
{
    if (!is_recording(trace, now)) {
        return false;
    }
    flush_polls(trace, last_poll_fires);
    put_time(trace, now);
    return true;
}

void end_line(Trace *trace)
{
    put(trace, "\n");
    if (trace->length > buffer_size - longest_event) {
        flush(trace);
    }
}

void put_name(Trace *trace, const lawn_timer_t *timer)
{
    put_number(trace, reinterpret_cast<uintptr_t>(timer), 16);
}

// How long ago: shorter than the time itself.
void put_age(Trace *trace, lawn_time_t time)
{
    put(trace, " ");
    if (time == 0 || time == LAWN_TIME_INFINITY) {
        put(trace, "-");
    } else {
        put_number(trace, trace->last - earlier_of(time, trace->last), 10);
    }
}

void put_span(Trace *trace, lawn_time_t span)
{
    put(trace, " ");
    put_number(trace, span, 10);
}

// Behind a start or a pause of a timer: if it is a connection's, what the
// connection knows now. Only the reader keeps what it knew before, and finds
// out what the connection was told. A pause has no time of its own: it may be
// that of an ACK, which the connection has just heard.
void put_conn(Trace *trace, const lawn_timer_t *timer)
{
    if (const lawn_conn_t *const conn = conn_of_retransmit(timer)) {
        put(trace, "\n");
        put_time(trace, conn->heard_at);
        put(trace, " conn ");
        put_name(trace, timer);
        put_age(trace, conn->heard_at);
        put_age(trace, conn->oldest);
        put_age(trace, conn->newest);
        put_span(trace, conn->rto);
        put_span(trace, conn->srtt >> 3);
        put_span(trace, conn->rttvar >> 2);
    } else if (const lawn_conn_t *const idle = conn_of_keepalive(timer)) {
        put(trace, "\n0 keepalive ");
        put_name(trace, &idle->retransmit);
        put(trace, " ");
        put_name(trace, timer);
    }
}

void on_event(lawn_observer_t *observer, lawn_event_t event,
              const lawn_timer_t *timer, lawn_time_t now, lawn_time_t ttl)
{
    Trace *const trace = static_cast<Trace *>(observer);
    if (event == LAWN_EVENT_ADVANCE) {
        if (is_recording(trace, now)) {
            note_poll(trace, now);
        }
        return;
    }
    if (!begin_line(trace, event == LAWN_EVENT_FIRE, now)) {
        return;
    }
    put(trace, names[event]);
    put_name(trace, timer);
    if (event == LAWN_EVENT_START) {
        put(trace, " ");
        if (ttl == LAWN_TIME_INFINITY) {
            put(trace, "inf");
        } else {
            put_number(trace, ttl, 10);
        }
    }
    if (event == LAWN_EVENT_START || event == LAWN_EVENT_PAUSE) {
        put_conn(trace, timer);
    }
    end_line(trace);
}

// What runs already is in the trace with what remains of it.
void record_running(const lawn_timer_t *timer, void *arg)
{
    Trace *const trace = static_cast<Trace *>(arg);
    const lawn_time_t deadline = lawn_timer_deadline(timer);
    on_event(trace, LAWN_EVENT_START, timer, trace->last,
             deadline == LAWN_TIME_INFINITY
                 ? deadline
                 : later_of(deadline, trace->last) - trace->last);
}

} // namespace

Trace *make_trace(const lawn_allocator_t &allocator, double ticks_per_sec,
                  unsigned budget)
{
    Trace *const trace =
        static_cast<Trace *>(allocate(allocator, sizeof(Trace)));
    if (!trace) {
        return nullptr;
    }
    memset(trace, 0, sizeof(*trace));
    trace->event = on_event;
    trace->allocator = allocator;
    trace->fd = -1;
    trace->owner = getpid();
    trace->second = ticks_from(1, 1, ticks_per_sec);
    trace->length = static_cast<size_t>(snprintf(
        trace->buffer, longest_event,
        "lawn-trace 2 ticks_per_sec %.17g budget %u\n", ticks_per_sec, budget));
    // The program's locale may have a decimal comma.
    std::replace(trace->buffer, trace->buffer + trace->length, ',', '.');
    return trace;
}

bool write_to(Trace *trace, int fd)
{
    struct stat file = {};
    if (fstat(fd, &file) != 0) {
        return false;
    }
    trace->device = file.st_dev;
    trace->inode = file.st_ino;
    trace->fd = fd;
    flush(trace);
    return true;
}

lawn_observer_t *observer_of(Trace *trace)
{
    return trace;
}

void record_timers(Trace *trace, const lawn_t *lawn)
{
    trace->has_begun = true;
    trace->last = lawn_now(lawn);
    trace->flushed = trace->last;
    for_each_running(lawn, record_running, trace);
}

void record_conn(Trace *trace, const char *event, const lawn_timer_t *conn,
                 lawn_time_t now, uint64_t value)
{
    if (!begin_line(trace, false, now)) {
        return;
    }
    put(trace, " ");
    put(trace, event);
    put(trace, " ");
    put_name(trace, conn);
    if (value != 0) {
        put_span(trace, value);
    }
    end_line(trace);
}

void record_stall(Trace *trace, lawn_time_t gap, lawn_time_t now)
{
    if (begin_line(trace, false, now)) {
        put(trace, " stall");
        put_span(trace, gap);
        end_line(trace);
    }
}

void end_trace(Trace *trace)
{
    if (trace->fd >= 0) {
        flush_polls(trace, false);
        flush(trace);
    }
    if (trace->fd >= 0) {
        end(trace);
    }
    const lawn_allocator_t allocator = trace->allocator;
    release(allocator, trace);
}

} // namespace lawn
