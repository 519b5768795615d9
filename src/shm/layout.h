// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The layout of the shared memory, and which process may write what. The owner
// and its clients are built on it. lawn/shm.h explains the idea. The rules for
// deadlines, covers and messages are those of src/shared/shared_ops.h.
//
// A slot is a timer. There are two kinds of lists: messages to the owner, and
// the expired timers of each client. A slot is in a list of each kind at most
// once, and a flag marks it: POSTED for messages, FIRED for expired timers. The
// process that sets the flag pushes the slot. The process that takes the slot
// out clears the flag before it handles the slot. A list is only pushed to, or
// taken as a whole.
//
// A client that is killed can leave only its own slots unfinished: with a
// deadline but no message, with POSTED but no message, or taken from its list.
// Nobody else reads its list. The owner's list is sound between any two
// instructions of a push. When the owner learns that a client is dead, it first
// takes all messages. After that, the client's slots are in no list except the
// client's. Then the owner clears the client and its slots.

#ifndef LAWN_SRC_SHM_LAYOUT_H
#define LAWN_SRC_SHM_LAYOUT_H

#include "base/atomics.h"
#include "base/base.h"
#include "base/ticks.h"

#include <lawn/shm.h>

#include <limits.h>
#include <sys/types.h>

namespace lawn::shm
{

constexpr uint64_t magic = 0x326d68736e77616cU; // "lawnshm2"

// In the head of a list, beside the number of a slot: the reader of the list
// sleeps.
constexpr uint32_t asleep = 1U << 31;
constexpr uint32_t most_slots = asleep - 2;

// Epochs have 30 bits, and begin anywhere. In an id, the epoch stands above the
// client's number. The owner's is 0.
constexpr uint32_t epoch_mask = (1U << 30) - 1;

// The flags of a slot.
constexpr uint32_t posted = 1;   // in the messages, or on its way there
constexpr uint32_t fired = 2;    // in the client's list, or on its way there
constexpr uint32_t released = 4; // the client has released it
constexpr uint32_t done = 8;     // the owner has let go of a released slot

// Slots and clients are numbered from 1; 0 is none.
struct alignas(64) Slot {
    // Atomic.
    uint64_t deadline; // INFINITY: stopped
    uint64_t cover;    // deadline of the owner's plain timer; INFINITY: idle
    uint64_t expired;  // deadline of an event that was not read; INFINITY: none
    uint32_t flags;
    uint32_t client; // that has the slot; 0: free
    // Links in the lists. They belong to the process that pushes or has taken
    // the slot.
    uint32_t next_message;
    uint32_t next_fired;
    // Written by the client only.
    uint64_t cookie;
};

struct alignas(64) Client {
    // Atomic.
    uint32_t fired;     // its list of expired timers
    int32_t pid;        // 0: free. Set by the client, cleared by the owner
    uint32_t is_closed; // set by the client when it needs nothing more
    uint32_t epoch;     // the next for each client here; set by the owner
    uint64_t birth;     // start of the client's process: birth_of()
};

// What is written often has a cache line of its own, hence the padding.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct alignas(64) Header {
    uint64_t magic;
    uint32_t slot_count;
    uint32_t client_count;
    int32_t owner;
    uint32_t clock_source;
    uint64_t birth; // of the owner
    uint32_t epoch; // of the owner, and of the first clients
    // Atomic.
    alignas(64) uint32_t messages; // the list of messages
    uint32_t is_closed;
    uint32_t joined;  // incremented to make the owner look at its clients
    uint64_t wake_at; // time until which the owner sleeps
    uint64_t offset;  // by which the owner's clock has gone back
    uint64_t latest;  // time of the owner's latest pass, within 1 ms
};

// The mapped memory: a header, then the clients, then the slots. The counts are
// copies: whatever other processes write to the header, nobody reaches beyond
// the memory.
struct Memory {
    Header *header;
    size_t size;
    uint32_t slot_count;
    uint32_t client_count;

    Client &client(uint32_t number) const
    {
        return reinterpret_cast<Client *>(header + 1)[number - 1];
    }

    Slot &slot(uint32_t number) const
    {
        return reinterpret_cast<Slot *>(&client(client_count + 1))[number - 1];
    }
};

inline size_t size_of(uint32_t slots, uint32_t clients)
{
    return sizeof(Header) + size_t{clients} * sizeof(Client) +
           size_t{slots} * sizeof(Slot);
}

// Whether a file of that size has that many slots and clients.
inline bool fits(uint32_t slots, uint32_t clients, size_t size)
{
    return slots <= most_slots && clients <= most_slots &&
           size_of(slots, clients) == size;
}

// Puts slot `number` into a list. Returns true if the reader of the list
// sleeps.
inline bool push(uint32_t &list, uint32_t &next, uint32_t number)
{
    uint32_t head = Atomics::load(&list);
    do {
        next = head & ~asleep;
    } while (!Atomics::swap(&list, &head, number | (head & asleep)));
    return (head & asleep) != 0;
}

// Takes a list as a whole. Returns its first slot.
inline uint32_t take(uint32_t &list)
{
    return Atomics::exchange(&list, 0U) & ~asleep;
}

// Which clock a process reads: a lawn_clock_source_t, or own_clock if the
// program passes a clock of its own.
constexpr uint32_t own_clock = UINT32_MAX;
uint32_t clock_of(lawn_clock_fn_t clock);

// The owner locks its file for as long as it lives. Who is about to become the
// owner has another lock of the file that is there. lock_file() returns BUSY if
// another process has the lock, and find_lock() NO_ELEM if none has either.
// Both return IO with errno if the file cannot be locked at all.
enum Lock { living, making };
lawn_status_t lock_file(int fd, Lock which);
lawn_status_t find_lock(int fd);

// Opens and locks `path`. Returns BUSY if there is an owner, or somebody is
// about to become it, or IO with errno: if the file cannot be locked or looked
// at, it is left, empty, and one that is no memory of timers is left as it is.
// Stores the size of what a dead owner has left, and whether the call has made
// the file.
lawn_status_t lock_path(const char *path, mode_t mode, int *fd_p,
                        size_t *size_p, bool *is_new_p);

// Closes the memory of an owner that ended without lawn_shm_destroy(), wakes
// its clients, and removes its FIFOs. If that owner has called exec(), its
// process still runs, and nothing else tells the clients.
void remove_leftovers(const char *path, int fd, size_t size);

// Returns when the process was started, in the kernel's units, or 0 if /proc
// does not tell.
uint64_t birth_of(pid_t pid);

// Opens a pidfd. Returns -1 with errno, which is ESRCH if no process of that
// number and birth runs. A birth of 0 is not known. If /proc does not tell, the
// process is taken for the right one.
int open_process(pid_t pid, uint64_t birth);

// Whether the process of a pidfd has ended. It need not have been reaped. A
// process about which the system does not tell is taken for alive.
bool has_ended(int process);

// One more than the kernel takes: it refuses a name that was cut off here, with
// ENAMETOOLONG.
constexpr size_t longest_name = PATH_MAX + 1;

// Stores a path that stays good when the process changes its directory. Returns
// IO with errno if there is none.
lawn_status_t make_absolute(const char *path, char (&to)[longest_name]);

// Writes the name of a FIFO: the owner's if `number` is 0, else that of a
// client.
void name_fifo(char *name, const char *path, uint32_t epoch, uint32_t number);

// Ignores -1, and leaves errno alone.
void close_fd(int fd);

// Removes a file that is open, unless its name is that of another file by now.
void unlink_own(const char *name, int fd);

// Opens a FIFO for reading and writing, so that no end is ever missing. Returns
// -1 with errno if it fails.
int open_fifo(const char *name);

// Wakes the reader of a FIFO. If the FIFO is full, the reader is awake already.
void write_fifo(int fd);

// Reads everything that is in a FIFO.
void empty_fifo(int fd);

} // namespace lawn::shm

#endif
