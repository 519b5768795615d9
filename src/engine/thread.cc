// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Starts and ends the threads of the library (thread.h). Each thread is a
// hook of its engine, to keep the engine from sleeping when the thread is
// to end.

#include "engine/thread.h"

#include <errno.h>
#include <signal.h>

using namespace lawn;

namespace
{

// The one that this thread is. A pthread_t would not tell, because it may be
// that of another thread when the thread has ended.
thread_local const EngineThread *own;

bool is_ending(const EngineThread *thread)
{
    return __atomic_load_n(&thread->is_ending, __ATOMIC_SEQ_CST);
}

// The end may come after the thread has looked at `is_ending` and before it
// sleeps. The timerfd is already set then, so the thread either sees the end
// here or is woken.
bool may_sleep(void *arg, lawn_time_t)
{
    return !is_ending(static_cast<EngineThread *>(arg));
}

void *run(void *arg)
{
    EngineThread *const thread = static_cast<EngineThread *>(arg);
    own = thread;
    while (!is_ending(thread)) {
        if (lawn_engine_progress(thread->engine) == 0) {
            lawn_engine_wait(thread->engine, LAWN_TIME_INFINITY);
        }
    }
    return nullptr;
}

} // namespace

bool lawn::start_thread(EngineThread *thread, lawn_engine_t *engine)
{
    // Opens the engine's descriptors here, where a failure can be returned.
    if (lawn_engine_fd(engine) < 0) {
        return false;
    }
    thread->engine = engine;
    thread->is_ending = false;
    thread->hook = {nullptr, nullptr, may_sleep, thread, nullptr};
    add_hook(engine, &thread->hook);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread->thread, nullptr, run, thread);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) {
        remove_hook(engine, &thread->hook);
        errno = error;
    }
    return error == 0;
}

void lawn::end_thread(EngineThread *thread)
{
    __atomic_store_n(&thread->is_ending, true, __ATOMIC_SEQ_CST);
    wake(thread->engine);
    pthread_join(thread->thread, nullptr);
    remove_hook(thread->engine, &thread->hook);
}

bool lawn::is_own(const EngineThread *thread)
{
    return own == thread;
}
