// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A thread of the library's that runs an engine, and sleeps when there is
// nothing to do. All signals are blocked in it: they are for the program's own
// threads.

#ifndef LAWN_SRC_ENGINE_THREAD_H
#define LAWN_SRC_ENGINE_THREAD_H

#include "engine/engine.h"

#include <pthread.h>

namespace lawn
{

struct EngineThread {
    lawn_engine_t *engine;
    pthread_t thread;
    Passenger passenger; // which does not let it sleep through its end
    bool is_ending;      // atomic
};

// The engine is the thread's from then on. False, with errno, when the engine
// cannot sleep or there can be no thread.
bool start_thread(EngineThread *thread, lawn_engine_t *engine);

// Waits until it has finished its pass; the engine is the caller's again.
void end_thread(EngineThread *thread);

// Who would wait for itself.
inline bool is_own(const EngineThread *thread)
{
    return pthread_equal(thread->thread, pthread_self()) != 0;
}

} // namespace lawn

#endif
