// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A thread of the library that runs an engine, and sleeps when there is nothing
// to do. Groups and services use it. All signals are blocked in it, because
// they are for the program's own threads.

#ifndef LAWN_SRC_ENGINE_THREAD_H
#define LAWN_SRC_ENGINE_THREAD_H

#include "engine/inside.h"

#include <pthread.h>

namespace lawn
{

struct EngineThread {
    lawn_engine_t *engine;
    pthread_t thread;
    PassHook hook;  // refuses to sleep when the thread is to end
    bool is_ending; // atomic
};

// Afterwards the engine belongs to the thread. Returns false, with errno, if
// the engine cannot sleep or the thread cannot be made.
bool start_thread(EngineThread *thread, lawn_engine_t *engine);

// Ends the thread, and waits until it has finished its pass. Afterwards the
// engine belongs to the caller again.
void end_thread(EngineThread *thread);

// True in the thread itself, which must not wait for its own end.
bool is_own(const EngineThread *thread);

} // namespace lawn

#endif
