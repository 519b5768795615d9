// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is in the shared memory, and who may write what. lawn/shm.h tells the
// idea; what holds for deadlines, covers and messages is in
// src/shared/shared_ops.h, and is the same here.
//
// A slot is a timer. Its client and its owner each have a list that a slot is
// in at most once: messages to the owner (POSTED), and what has expired
// (FIRED). Who sets such a flag pushes the slot, who takes it out clears the
// flag first. Lists are only ever pushed to, or taken whole.
//
// A client that is killed may leave, of its slots alone: a deadline without a
// message, POSTED without a message, and whatever it had taken. Its list is
// read by nobody else, and the owner's is whole between any two instructions of
// a push. So when the owner learns that a client is dead it takes all messages,
// after which no slot of that client is in any list but the client's, and
// clears the client and its slots.

#ifndef LAWN_SRC_SHM_LAYOUT_H
#define LAWN_SRC_SHM_LAYOUT_H

#include "base/atomics.h"
#include "base/base.h"
#include "base/ticks.h"

#include <lawn/shm.h>

#include <sys/types.h>

namespace lawn::shm
{

constexpr uint64_t magic = 0x316d68736e77616cU; // "lawnshm1"

// In a list's head, beside the number of a slot: its reader sleeps.
constexpr uint32_t asleep = 1U << 31;
constexpr uint32_t most_slots = asleep - 2;

// Of an id, which has the number below it.
constexpr uint32_t epoch_mask = (1U << 30) - 1;

// In a slot's flags.
constexpr uint32_t posted = 1;   // in the messages, or on its way there
constexpr uint32_t fired = 2;    // in the client's list, or on its way there
constexpr uint32_t released = 4; // by the client
constexpr uint32_t done = 8;     // the owner has let go of a released one

// Slots and clients are numbered from 1; 0 is none.
struct alignas(64) Slot {
    // Atomic.
    uint64_t deadline; // INFINITY: stopped
    uint64_t cover;    // until when the owner's plain timer looks at it
    uint64_t expired;  // the deadline of an event that was not read; INFINITY
    uint32_t flags;
    uint32_t client; // whose it is
    // Of who has the slot in a list.
    uint32_t next_message;
    uint32_t next_fired;
    // The client's.
    uint64_t cookie;
};

struct alignas(64) Client {
    // Atomic.
    uint32_t fired;     // its list
    int32_t pid;        // 0: free. Set by the client, cleared by the owner
    uint32_t is_closed; // by the client: it needs nothing any more
    uint32_t epoch;     // how many have been here before; the owner's
    uint64_t birth;     // when the process was started, by its kernel
};

struct alignas(64) Header {
    uint64_t magic;
    uint32_t slot_count;
    uint32_t client_count;
    int32_t owner;
    uint32_t clock_source;
    // Atomic.
    alignas(64) uint32_t messages; // the list
    uint32_t is_closed;
    uint32_t joined;  // clients that have come, for the owner to look
    uint64_t wake_at; // until when the owner sleeps
    uint64_t offset;  // by which its clock has gone back
    uint64_t latest;  // what its clock has shown, within a millisecond
};

// The memory: a header, the clients, the slots.
struct Memory {
    Header *header;
    size_t size;

    Client &client(uint32_t number) const
    {
        return reinterpret_cast<Client *>(header + 1)[number - 1];
    }

    Slot &slot(uint32_t number) const
    {
        return reinterpret_cast<Slot *>(
            &client(header->client_count + 1))[number - 1];
    }
};

inline size_t size_of(uint32_t slots, uint32_t clients)
{
    return sizeof(Header) + size_t{clients} * sizeof(Client) +
           size_t{slots} * sizeof(Slot);
}

// Puts slot `number` into a list. True: the reader sleeps.
inline bool push(uint32_t &list, uint32_t &next, uint32_t number)
{
    uint32_t head = Atomics::load(&list);
    do {
        next = head & ~asleep;
    } while (!Atomics::swap(&list, &head, number | (head & asleep)));
    return (head & asleep) != 0;
}

// Takes a list whole.
inline uint32_t take(uint32_t &list)
{
    return Atomics::exchange(&list, 0U) & ~asleep;
}

// What a process reads for a time: its counter, or a clock of its own.
constexpr uint32_t own_clock = UINT32_MAX;
uint32_t clock_of(lawn_clock_fn_t clock);

// By the owner, as long as it lives.
bool lock_file(int fd);
bool is_locked(int fd);

// When the process was started, in the kernel's own units; 0: there is none.
uint64_t birth_of(pid_t pid);

constexpr size_t longest_name = 4096;

// The name of a FIFO: the owner's for 0, or a client's. False: too long.
bool name_fifo(char *name, const char *path, pid_t owner, uint32_t number);

// -1 is none.
void close_fd(int fd);

// Open for reading and writing, so that no end is ever missing; -1, with errno.
int open_fifo(const char *name);

// Wakes whoever reads it. A full one has woken it already.
void write_fifo(int fd);

// Reads all that is there.
void empty_fifo(int fd);

} // namespace lawn::shm

#endif
