// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the owner has to itself: the plain timers, and what it knows of its
// clients. owner.cc runs the timers; watch.cc knows the clients.

#ifndef LAWN_SRC_SHM_OWNER_H
#define LAWN_SRC_SHM_OWNER_H

#include "engine/engine.h"
#include "shm/layout.h"

namespace lawn::shm
{

struct Timer {
    lawn_timer_t timer; // first
    lawn_shm_t *shm;
};

// Of a client; -1 for what is not there, or not yet.
struct Watch {
    int pidfd;
    int fifo;
};

} // namespace lawn::shm

struct lawn_shm {
    lawn_engine_t *engine;
    lawn_source_t *source;
    lawn::Passenger passenger;
    lawn::shm::Memory memory;
    lawn::shm::Timer *timers;
    lawn::shm::Watch *watches;
    uint32_t taken;      // messages that the budget has left
    uint32_t joined;     // clients that were looked for
    lawn_time_t look_at; // when to ask the kernel again
    bool has_slept;      // since then
    uint64_t deaths;
    lawn_shm_expired_fn_t expired;
    void *arg;
    int file;
    int bell;
    int epoll; // of the bell and the clients' pidfds
    char path[lawn::shm::longest_name];
};

namespace lawn::shm
{

inline Timer &timer_of(const lawn_shm_t *shm, uint32_t number)
{
    return shm->timers[number - 1];
}

inline Watch &watch_of(const lawn_shm_t *shm, uint32_t client)
{
    return shm->watches[client - 1];
}

// Takes messages; 0: all. Returns how many.
unsigned drain(lawn_shm_t *shm, unsigned budget);

// Looks for clients that have come, and for those that are gone. Returns how
// much there was to see.
unsigned look(lawn_shm_t *shm);

// Wakes a client that has gone to sleep.
void wake_client(const lawn_shm_t *shm, uint32_t client);

// Forgets what is known of all clients.
void unwatch_all(lawn_shm_t *shm);

} // namespace lawn::shm

#endif
