// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the owner has to itself: its plain timers, and what it knows about its
// clients. owner_files.cc makes the memory, owner.cc runs the timers, and
// watch.cc watches the clients.

#ifndef LAWN_SRC_SHM_OWNER_H
#define LAWN_SRC_SHM_OWNER_H

#include "base/forks.h"
#include "engine/inside.h"
#include "shm/layout.h"

namespace lawn::shm
{

struct Timer {
    lawn_timer_t timer; // first, so that a timer can be cast
    lawn_shm_t *shm;
};

// The owner's descriptors for a client. -1 if there is none, or not yet.
struct Watch {
    int pidfd;
    int fifo;
};

} // namespace lawn::shm

struct lawn_shm {
    lawn_engine_t *engine;
    lawn_source_t *source;
    lawn::PassHook hook;
    lawn::shm::Memory memory;
    lawn::shm::Timer *timers;
    lawn::shm::Watch *watches;
    uint32_t taken;      // messages taken that the budget has left over
    uint32_t left;       // how many they can be at most
    uint32_t joined;     // `joined` of the header at the latest look
    uint32_t turn;       // the client that the latest look has looked at anyway
    lawn_time_t look_at; // when to look for clients again
    bool has_slept;      // since the latest look
    bool is_incomplete;  // a client lacks a descriptor
    uint64_t deaths;
    unsigned made_in; // `forks` of the owner's process
    lawn_shm_expired_fn_t expired;
    void *arg;
    uint32_t epoch; // the header's
    int file;
    int bell;
    int epoll; // watches the bell and the clients' pidfds
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

// Whether this is a child of the owner's process. The memory, the FIFOs and
// what epoll watches are the parent's, so the child only runs its copies of the
// plain timers, for nobody.
inline bool is_inherited(const lawn_shm_t *shm)
{
    return shm->made_in != forks;
}

// Makes the memory in a new file, which then replaces the file at `path`. A
// process that has mapped the old file keeps it.
lawn_status_t make_file(lawn_shm_t *shm, const lawn_shm_params_t &params);

lawn_status_t make_bell(lawn_shm_t *shm, mode_t mode);

void remove_bell(const lawn_shm_t *shm);

// Removes the bell, and the memory's file unless somebody has replaced it.
void remove_files(const lawn_shm_t *shm);

// Stops the plain timer.
void stop(Timer *timer);

// Takes at most `budget` messages (0: no limit). Returns how many it took.
unsigned drain(lawn_shm_t *shm, unsigned budget);

// Looks for clients that have come, and for those that are gone. Returns the
// number of events that it saw.
unsigned look(lawn_shm_t *shm);

// Wakes a client that sleeps.
void wake_client(const lawn_shm_t *shm, uint32_t client);

// Wakes all clients, closes the descriptors for them and removes their FIFOs.
// In a child of the owner's process, it only closes.
void unwatch_all(lawn_shm_t *shm);

} // namespace lawn::shm

#endif
