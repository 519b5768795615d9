// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Watches the clients for the owner: it learns when they come, close or die,
// and takes back what they had.

#include "shm/owner.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

using namespace lawn;
using namespace lawn::shm;

namespace
{

// Closes the descriptors for a client and removes its FIFO. epoll must be told
// to drop the pidfd: a close does not do it if the child of a fork has the
// pidfd, too. In that child, the numbers may be those of other files.
void forget(const lawn_shm_t *shm, uint32_t client)
{
    if (is_inherited(shm)) {
        return;
    }
    Watch &watch = watch_of(shm, client);
    if (watch.pidfd >= 0) {
        epoll_ctl(shm->epoll, EPOLL_CTL_DEL, watch.pidfd, nullptr);
    }
    close_fd(watch.pidfd);
    close_fd(watch.fifo);
    watch = {-1, -1};
    char name[longest_name];
    name_fifo(name, shm->path, shm->epoch, client);
    unlink(name);
}

// Takes back everything that a client had. The client does nothing any more.
// When all messages have been taken, its slots are in no list except its own.
void sweep(lawn_shm_t *shm, uint32_t client)
{
    drain(shm, 0);
    const Memory &memory = shm->memory;
    for (uint32_t i = 1; i <= memory.slot_count; ++i) {
        Slot &slot = memory.slot(i);
        if (Atomics::load(&slot.client) == client) {
            stop(&timer_of(shm, i));
            Atomics::store(&slot.deadline, LAWN_TIME_INFINITY);
            Atomics::store(&slot.cover, LAWN_TIME_INFINITY);
            Atomics::store(&slot.expired, LAWN_TIME_INFINITY);
            Atomics::store(&slot.flags, 0U);
            Atomics::store(&slot.client, 0U);
        }
    }
    forget(shm, client);
    Client &place = memory.client(client);
    Atomics::store(&place.fired, 0U);
    Atomics::store(&place.is_closed, 0U);
    Atomics::store(&place.birth, uint64_t{0});
    Atomics::store(&place.epoch, (place.epoch + 1) & epoch_mask);
    Atomics::store(&place.pid, 0);
}

// Opens a pidfd and adds it to epoll. Returns NO_ELEM if the process is gone,
// or IO with nothing done.
lawn_status_t watch_process(const lawn_shm_t *shm, uint32_t client, pid_t pid)
{
    // If `birth` is 0, the client is still joining: it has stored its pid, but
    // not yet its birth.
    const int fd =
        open_process(pid, Atomics::load(&shm->memory.client(client).birth));
    if (fd < 0) {
        return errno == ESRCH ? LAWN_ERR_NO_ELEM : LAWN_ERR_IO;
    }
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u32 = client;
    if (epoll_ctl(shm->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close_fd(fd);
        return LAWN_ERR_IO;
    }
    watch_of(shm, client).pidfd = fd;
    return LAWN_OK;
}

void open_fifo_of(const lawn_shm_t *shm, uint32_t client)
{
    Watch &watch = watch_of(shm, client);
    if (watch.fifo < 0) {
        char name[longest_name];
        name_fifo(name, shm->path, shm->epoch, client);
        watch.fifo = open_fifo(name);
    }
}

// Looks at one client: it may be new, may not have finished joining at the last
// look, or may be closed. Returns false if it must be looked at again, because
// it lacks a descriptor.
bool welcome(lawn_shm_t *shm, uint32_t client)
{
    const Client &place = shm->memory.client(client);
    const pid_t pid = Atomics::load(&place.pid);
    Watch &watch = watch_of(shm, client);
    if (pid == 0) {
        return true;
    }
    if (Atomics::load(&place.is_closed) != 0) {
        sweep(shm, client);
        return true;
    }
    if (watch.pidfd < 0 &&
        watch_process(shm, client, pid) == LAWN_ERR_NO_ELEM) {
        ++shm->deaths;
        sweep(shm, client);
        return true;
    }
    if (watch.fifo < 0) {
        open_fifo_of(shm, client);
        wake_client(shm, client); // it may have slept without
    }
    return watch.pidfd >= 0 && watch.fifo >= 0;
}

} // namespace

unsigned shm::look(lawn_shm_t *shm)
{
    constexpr int most_events = 16;
    epoll_event events[most_events];
    const int count = epoll_wait(shm->epoll, events, most_events, 0);
    for (int i = 0; i < count; ++i) {
        const uint32_t client = events[i].data.u32;
        if (client == 0) {
            empty_fifo(shm->bell);
        } else {
            shm->deaths +=
                Atomics::load(&shm->memory.client(client).is_closed) == 0;
            sweep(shm, client);
        }
    }
    const uint32_t joined = Atomics::load(&shm->memory.header->joined);
    if (joined != shm->joined || shm->is_incomplete) {
        shm->joined = joined;
        shm->is_incomplete = false;
        for (uint32_t i = 1; i <= shm->memory.client_count; ++i) {
            shm->is_incomplete |= !welcome(shm, i);
        }
    }
    // A client that is killed between taking its place and counting itself is
    // found in its turn.
    shm->turn = shm->turn < shm->memory.client_count ? shm->turn + 1 : 1;
    shm->is_incomplete |= !welcome(shm, shm->turn);
    return count > 0 ? static_cast<unsigned>(count) : 0;
}

void shm::wake_client(const lawn_shm_t *shm, uint32_t client)
{
    const int fifo = watch_of(shm, client).fifo;
    if (fifo >= 0) {
        write_fifo(fifo);
    }
}

// A client may have come since the latest look, and sleep already.
void shm::unwatch_all(lawn_shm_t *shm)
{
    for (uint32_t i = 1; i <= shm->memory.client_count; ++i) {
        if (!is_inherited(shm)) {
            if (Atomics::load(&shm->memory.client(i).pid) != 0) {
                open_fifo_of(shm, i);
            }
            wake_client(shm, i);
        }
        forget(shm, i);
    }
}
