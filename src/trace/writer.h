// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Writes a trace: an observer of a lawn (lawn/observer.h) that writes each
// event to a file, as text, so that lawn_bench can replay it. doc/trace.md
// describes the format. src/engine/trace.cc chooses the file.

#ifndef LAWN_SRC_TRACE_WRITER_H
#define LAWN_SRC_TRACE_WRITER_H

#include <lawn/observer.h>

namespace lawn
{

struct Trace;

// Makes a trace, without a file as yet. Returns nullptr if there is no memory.
Trace *make_trace(const lawn_allocator_t &allocator, double ticks_per_sec,
                  unsigned budget);

// Begins to write to `fd`, which the trace then owns. Returns false, with
// errno, if the kernel does not say which file that is.
bool write_to(Trace *trace, int fd);

// What is to observe the lawn.
lawn_observer_t *observer_of(Trace *trace);

// Records the timers that run already, each with what remains of it.
void record_timers(Trace *trace, const lawn_t *lawn);

// Records what has happened to a connection, which goes by the name of its
// retransmit timer. `value` is left out if 0.
void record_conn(Trace *trace, const char *event, const lawn_timer_t *conn,
                 lawn_time_t now, uint64_t value);

void record_stall(Trace *trace, lawn_time_t gap, lawn_time_t now);

// Writes what is left, closes the file if there is one, and frees the trace.
// Its lawn must not be observed by it any more.
void end_trace(Trace *trace);

} // namespace lawn

#endif
