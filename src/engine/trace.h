// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The traces of an engine: with LAWN_TRACE=FILE in the environment, or after
// lawn_engine_trace(), trace/writer.h writes everything that is done to the
// engine's timers to a file.

#ifndef LAWN_SRC_ENGINE_TRACE_H
#define LAWN_SRC_ENGINE_TRACE_H

#include <lawn/engine.h>

namespace lawn
{

struct Engine;

// Traces that this process has begun: the number in the name of the next.
extern unsigned trace_count;

// Begins the trace that the environment asks for, if it does. NO_MEMORY, or IO
// when the file cannot be opened.
lawn_status_t open_trace(Engine *engine);

// Records a stall of `gap` ticks, if the engine writes a trace.
void trace_stall(const Engine *engine, lawn_time_t gap, lawn_time_t now);

// Ends the engine's trace, if there is one; its lawn is not observed any more,
// or gone.
void close_trace(Engine *engine);

} // namespace lawn

#endif
