// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A client of lawn/shm.h. It may be killed after any instruction. layout.h says
// what a killed client may leave behind.

#include "base/forks.h"
#include "engine/inside.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace lawn;
using namespace lawn::shm;

struct lawn_shm_client {
    Memory memory;
    uint32_t number;
    uint32_t epoch;
    unsigned made_in; // `forks` of the client's process
    lawn_clock_fn_t clock;
    void *clock_arg;
    int owner;       // the owner's pidfd
    int bell;        // the FIFO that wakes the owner
    int own;         // the FIFO that wakes this client
    uint32_t taken;  // slots taken from its list
    uint32_t left;   // how many they can be at most
    uint32_t cursor; // where lawn_shm_alloc() begins to look; atomic
    char path[longest_name];
};

namespace
{

// Maps the file at `path`, and tells about it. If nobody holds the file's lock,
// there is no owner.
lawn_status_t map(const char *path, Memory *memory, struct stat *about_p)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? LAWN_ERR_NO_ELEM : LAWN_ERR_IO;
    }
    struct stat &about = *about_p;
    lawn_status_t status = find_lock(fd);
    if (status == LAWN_OK && fstat(fd, &about) != 0) {
        status = LAWN_ERR_IO;
    } else if (status == LAWN_OK &&
               static_cast<size_t>(about.st_size) < sizeof(Header)) {
        status = LAWN_ERR_NO_ELEM; // the owner still makes it
    }
    if (status == LAWN_OK) {
        memory->size = static_cast<size_t>(about.st_size);
        void *const at = mmap(nullptr, memory->size, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd, 0);
        memory->header = static_cast<Header *>(at);
        status = at != MAP_FAILED ? LAWN_OK : LAWN_ERR_IO;
    }
    close_fd(fd);
    return status;
}

// Stores the counts, too.
bool is_known(Memory *memory, lawn_clock_fn_t clock)
{
    const Header &header = *memory->header;
    memory->slot_count = header.slot_count;
    memory->client_count = header.client_count;
    return header.clock_source == clock_of(clock) && header.magic == magic &&
           fits(memory->slot_count, memory->client_count, memory->size);
}

lawn_status_t open_bells(lawn_shm_client_t *client)
{
    const Header &header = *client->memory.header;
    char name[longest_name];
    name_fifo(name, client->path, header.epoch, 0);
    client->owner = open_process(header.owner, header.birth);
    client->bell = open_fifo(name);
    if (client->owner < 0 || client->bell < 0) {
        return errno == ESRCH || errno == ENOENT ? LAWN_ERR_NO_ELEM
                                                 : LAWN_ERR_IO;
    }
    return LAWN_OK;
}

// Makes the owner look for clients that have come or gone.
void ring_for(const lawn_shm_client_t *client)
{
    __atomic_fetch_add(&client->memory.header->joined, 1, __ATOMIC_SEQ_CST);
    write_fifo(client->bell);
}

// Whether the owner of the memory's file may open a FIFO, too. If it may not,
// it could never wake this client.
bool is_for_owner(const struct stat &fifo, const struct stat &file)
{
    constexpr mode_t group = S_IRGRP | S_IWGRP;
    constexpr mode_t others = S_IROTH | S_IWOTH;
    return file.st_uid == 0 || fifo.st_uid == file.st_uid ||
           (fifo.st_mode & others) == others ||
           (fifo.st_gid == file.st_gid && (fifo.st_mode & group) == group);
}

// Gives a FIFO the mode, the owner and the group of the memory's file, as far
// as the system lets this process give them. Returns IO with errno if the owner
// could not open the FIFO then.
lawn_status_t give_to_owner(int fifo, const struct stat &file)
{
    fchmod(fifo, file.st_mode & 0666);
    [[maybe_unused]] const bool is_given =
        fchown(fifo, file.st_uid, file.st_gid) == 0 ||
        fchown(fifo, static_cast<uid_t>(-1), file.st_gid) == 0;
    struct stat about = {};
    if (fstat(fifo, &about) != 0) {
        return LAWN_ERR_IO;
    }
    if (!is_for_owner(about, file)) {
        errno = EACCES;
        return LAWN_ERR_IO;
    }
    return LAWN_OK;
}

lawn_status_t use_fifo(lawn_shm_client_t *client, const char *name,
                       const struct stat &file)
{
    if (mkfifo(name, 0600) != 0 && errno != EEXIST) {
        return LAWN_ERR_IO;
    }
    close_fd(client->own);
    client->own = open_fifo(name);
    return client->own >= 0 ? give_to_owner(client->own, file) : LAWN_ERR_IO;
}

// Makes the FIFO that wakes this client. The owner may be another user.
lawn_status_t make_fifo(lawn_shm_client_t *client, const struct stat &file)
{
    char name[longest_name];
    name_fifo(name, client->path, client->memory.header->epoch, client->number);
    // A FIFO that is there is used again: the owner may have opened it already,
    // and in a directory such as /tmp, nobody may remove what another user has
    // left there. What cannot be used is replaced.
    lawn_status_t status = use_fifo(client, name, file);
    if (status != LAWN_OK && errno == EACCES) {
        const bool is_gone = unlink(name) == 0;
        errno = EACCES;
        status = is_gone ? use_fifo(client, name, file) : status;
    }
    // An owner that has closed the memory before may not have found the FIFO,
    // or has removed it before this client could open it. One that closes the
    // memory later finds it.
    if (Atomics::load(&client->memory.header->is_closed) != 0) {
        status = LAWN_ERR_NO_ELEM;
    }
    if (status != LAWN_OK) {
        const int error = errno;
        unlink(name);
        errno = error;
    }
    return status;
}

// In a directory such as /tmp, an owner that is another user cannot do it.
void remove_fifo(const lawn_shm_client_t *client)
{
    char name[longest_name];
    name_fifo(name, client->path, client->memory.header->epoch, client->number);
    unlink(name);
}

// Returns BUSY if there is no room. Some clients may be dead: the owner is
// rung, so that it takes their places back.
lawn_status_t join(lawn_shm_client_t *client, const struct stat &file)
{
    const Memory &memory = client->memory;
    const pid_t pid = getpid();
    for (uint32_t i = 1; i <= memory.client_count; ++i) {
        int32_t nobody = 0;
        if (!Atomics::swap(&memory.client(i).pid, &nobody, int32_t{pid})) {
            continue;
        }
        client->number = i;
        client->epoch = Atomics::load(&memory.client(i).epoch);
        Atomics::store(&memory.client(i).birth, birth_of(pid));
        const lawn_status_t status = make_fifo(client, file);
        if (status == LAWN_OK) {
            ring_for(client);
        }
        return status;
    }
    ring_for(client);
    return LAWN_ERR_BUSY;
}

// Wakes the owner if it sleeps until after `when`.
void ring(const lawn_shm_client_t *client, uint64_t when)
{
    Header &header = *client->memory.header;
    if ((Atomics::load(&header.messages) & asleep) == 0 ||
        when >= Atomics::load(&header.wake_at)) {
        return;
    }
    if ((Atomics::clear(&header.messages, asleep) & asleep) != 0) {
        write_fifo(client->bell);
    }
}

void post(const lawn_shm_client_t *client, lawn_shm_timer_t timer,
          uint32_t flags)
{
    Slot &slot = client->memory.slot(timer);
    if ((Atomics::set(&slot.flags, posted | flags) & posted) == 0) {
        push(client->memory.header->messages, slot.next_message, timer);
    }
    // Another thread that found the slot POSTED has left it to this one to
    // ring: for an earlier deadline, or for a release, if the start has expired
    // by the plain timer meanwhile and the program has let go of it.
    const bool is_released = (Atomics::load(&slot.flags) & released) != 0;
    ring(client, is_released ? 0 : Atomics::load(&slot.deadline));
}

// Frees a slot that the owner has let go of. If a start of another thread was
// still in progress at the release, and has posted the slot again, the owner's
// list has it: it stays until the owner has let go of it once more.
void give_back(Slot &slot)
{
    uint32_t flags = released | done;
    if (Atomics::swap(&slot.flags, &flags, 0U)) {
        Atomics::store(&slot.client, 0U);
    }
}

bool is_valid(const lawn_shm_client_t *client, lawn_shm_timer_t timer)
{
    const Memory &memory = client->memory;
    const bool is_own =
        timer != 0 && timer <= memory.slot_count &&
        Atomics::load(&memory.slot(timer).client) == client->number;
    LAWN_ASSERT(is_own);
    return is_own;
}

// Whether this is the child of a fork, and the client is its parent's.
bool is_inherited(const lawn_shm_client_t *client)
{
    return client->made_in != forks;
}

bool has_owner(const lawn_shm_client_t *client)
{
    return !is_inherited(client) &&
           Atomics::load(&client->memory.header->is_closed) == 0 &&
           !has_ended(client->owner);
}

// Returns a time to wait as a timeout for poll(), in milliseconds. More than 24
// days do not fit and become -1, which is for ever.
int msec_of(lawn_time_t ticks)
{
    const double msec = lawn_time_to_msec(ticks);
    if (ticks == LAWN_TIME_INFINITY || msec >= INT_MAX) {
        return -1;
    }
    const int whole = static_cast<int>(msec);
    return whole + (msec > whole);
}

} // namespace

lawn_status_t lawn_shm_open(const char *path, lawn_clock_fn_t clock,
                            void *clock_arg, lawn_shm_client_t **client_p)
{
    if (!path || !client_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (!count_forks()) {
        return LAWN_ERR_NO_MEMORY;
    }
    lawn_shm_client_t *const client =
        static_cast<lawn_shm_client_t *>(malloc(sizeof(*client)));
    if (!client) {
        return LAWN_ERR_NO_MEMORY;
    }
    *client = {};
    client->made_in = forks;
    client->clock = clock;
    client->clock_arg = clock_arg;
    client->owner = client->bell = client->own = -1;
    struct stat file = {};
    lawn_status_t status = make_absolute(path, client->path);
    status =
        status == LAWN_OK ? map(client->path, &client->memory, &file) : status;
    if (status != LAWN_OK) {
        free(client);
        return status;
    }
    status = is_known(&client->memory, clock) ? open_bells(client)
                                              : LAWN_ERR_UNSUPPORTED;
    if (status == LAWN_OK) {
        status = join(client, file);
    }
    if (status != LAWN_OK) {
        lawn_shm_close(client);
        return status;
    }
    *client_p = client;
    return LAWN_OK;
}

void lawn_shm_close(lawn_shm_client_t *client)
{
    if (!client) {
        return;
    }
    const int error = errno;
    if (client->number != 0 && !is_inherited(client)) {
        remove_fifo(client); // first: the place may be another client's soon
        Atomics::store(&client->memory.client(client->number).is_closed, 1U);
        ring_for(client);
    }
    // The child may have closed all descriptors, as daemons do. Then these
    // numbers are those of its own files.
    if (!is_inherited(client)) {
        close_fd(client->own);
        close_fd(client->bell);
        close_fd(client->owner);
    }
    munmap(client->memory.header, client->memory.size);
    free(client);
    errno = error;
}

uint64_t lawn_shm_id(const lawn_shm_client_t *client)
{
    return uint64_t{client->epoch} << 32 | client->number;
}

bool lawn_shm_is_open(const lawn_shm_client_t *client, uint64_t id)
{
    const Memory &memory = client->memory;
    const uint32_t number = static_cast<uint32_t>(id);
    if (number == 0) {
        return (id == 0 || id >> 32 == memory.header->epoch) &&
               has_owner(client);
    }
    if (number > memory.client_count) {
        return false;
    }
    const Client &other = memory.client(number);
    return Atomics::load(&other.pid) != 0 &&
           Atomics::load(&other.epoch) == id >> 32;
}

lawn_time_t lawn_shm_time(const lawn_shm_client_t *client)
{
    const Header &header = *client->memory.header;
    // The offset comes before the clock, for the reason that lawn_engine_time()
    // gives.
    const uint64_t offset = Atomics::load(&header.offset);
    const lawn_time_t now =
        read_ticks(client->clock, client->clock_arg) + offset;
    return later_of(now, Atomics::load(&header.latest));
}

lawn_status_t lawn_shm_alloc(lawn_shm_client_t *client, uint64_t cookie,
                             lawn_shm_timer_t *timer_p)
{
    const Memory &memory = client->memory;
    const uint32_t count = memory.slot_count;
    const uint32_t from =
        __atomic_fetch_add(&client->cursor, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t number = (from + i) % count + 1;
        Slot &slot = memory.slot(number);
        uint32_t nobody = 0;
        if (Atomics::load(&slot.client) == 0 &&
            Atomics::swap(&slot.client, &nobody, client->number)) {
            __atomic_store_n(&client->cursor, number, __ATOMIC_RELAXED);
            slot.cookie = cookie;
            *timer_p = number;
            return LAWN_OK;
        }
    }
    return LAWN_ERR_BUSY;
}

void lawn_shm_release(lawn_shm_client_t *client, lawn_shm_timer_t timer)
{
    if (!is_valid(client, timer)) {
        return;
    }
    Atomics::store(&client->memory.slot(timer).deadline, LAWN_TIME_INFINITY);
    post(client, timer, released);
}

void lawn_shm_set_cookie(lawn_shm_client_t *client, lawn_shm_timer_t timer,
                         uint64_t cookie)
{
    if (is_valid(client, timer)) {
        client->memory.slot(timer).cookie = cookie;
    }
}

bool lawn_shm_start(lawn_shm_client_t *client, lawn_shm_timer_t timer,
                    lawn_time_t deadline)
{
    if (!is_valid(client, timer)) {
        return false;
    }
    Slot &slot = client->memory.slot(timer);
    deadline = earlier_of(deadline, LAWN_TIME_INFINITY - 1);
    Atomics::exchange(&slot.deadline, deadline);
    if (Atomics::load(&client->memory.header->is_closed) != 0) {
        Atomics::store(&slot.deadline, LAWN_TIME_INFINITY);
        return false;
    }
    if (deadline < Atomics::load(&slot.cover)) {
        post(client, timer, 0);
    }
    return true;
}

bool lawn_shm_stop(lawn_shm_client_t *client, lawn_shm_timer_t timer)
{
    return is_valid(client, timer) &&
           Atomics::exchange(&client->memory.slot(timer).deadline,
                             LAWN_TIME_INFINITY) != LAWN_TIME_INFINITY;
}

bool lawn_shm_next(lawn_shm_client_t *client, lawn_shm_event_t *event)
{
    const Memory &memory = client->memory;
    uint32_t &list = memory.client(client->number).fired;
    if (client->taken == 0 && Atomics::load(&list) != 0) {
        client->taken = take(list);
        client->left = memory.slot_count;
    }
    while (client->taken != 0) {
        const uint32_t number = client->taken;
        // What somebody has spoilt is no list of slots, or has no end.
        if (number > memory.slot_count || client->left == 0) {
            client->taken = 0;
            break;
        }
        --client->left;
        Slot &slot = memory.slot(number);
        client->taken = slot.next_fired;
        const uint32_t was = Atomics::clear(&slot.flags, fired);
        const uint64_t deadline =
            Atomics::exchange(&slot.expired, LAWN_TIME_INFINITY);
        if ((was & done) != 0) {
            give_back(slot);
        } else if ((was & released) == 0 && deadline != LAWN_TIME_INFINITY) {
            *event = {number, slot.cookie, deadline};
            return true;
        }
    }
    return false;
}

lawn_status_t lawn_shm_wait(lawn_shm_client_t *client, lawn_time_t max_wait)
{
    uint32_t &list = client->memory.client(client->number).fired;
    uint32_t head = 0;
    if (client->taken != 0 || !Atomics::swap(&list, &head, asleep)) {
        return LAWN_OK;
    }
    const Header &header = *client->memory.header;
    pollfd fds[] = {{client->own, POLLIN, 0}, {client->owner, POLLIN, 0}};
    const int count = Atomics::load(&header.is_closed) != 0
                          ? 1
                          : poll(fds, 2, msec_of(max_wait));
    const int error = errno;
    Atomics::clear(&list, asleep);
    empty_fifo(client->own);
    if (count < 0) {
        errno = error;
        return LAWN_ERR_IO;
    }
    if (Atomics::load(&list) != 0) {
        return LAWN_OK;
    }
    if (fds[1].revents != 0 || Atomics::load(&header.is_closed) != 0) {
        return LAWN_ERR_NO_ELEM;
    }
    return count > 0 ? LAWN_OK : LAWN_ERR_TIMED_OUT;
}
