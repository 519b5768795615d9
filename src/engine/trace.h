// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Recording of traces: with LAWN_TRACE=FILE in the environment, everything
// that is done to an engine's timers goes to a file, as text, to be replayed by
// lawn_bench. doc/trace.md describes the format.

#ifndef LAWN_SRC_ENGINE_TRACE_H
#define LAWN_SRC_ENGINE_TRACE_H

#include <lawn/engine.h>

namespace lawn
{

struct Trace;

// Traces that this process has begun: the number in the name of the next.
extern unsigned trace_count;

// Begins the trace that the environment asks for, if it does; *trace_p is
// nullptr else. NO_MEMORY, or IO when the file cannot be opened.
lawn_status_t open_trace(const lawn_engine_t *engine, Trace **trace_p);

// Ends it, after its lawn. nullptr does nothing.
void close_trace(const lawn_engine_t *engine, Trace *trace);

} // namespace lawn

#endif
