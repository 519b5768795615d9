// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The files of the owner: the memory, and the bell that wakes it.

#include "shm/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace lawn;
using namespace lawn::shm;

namespace
{

lawn_status_t map_file(lawn_shm_t *shm, const lawn_shm_params_t &params)
{
    const size_t size = size_of(params.timers, params.clients);
    const int error = posix_fallocate(shm->file, 0, static_cast<off_t>(size));
    if (error != 0) {
        errno = error;
        return error == ENOSPC ? LAWN_ERR_NO_MEMORY : LAWN_ERR_IO;
    }
    void *const at =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, shm->file, 0);
    if (at == MAP_FAILED) {
        return LAWN_ERR_IO;
    }
    shm->memory = {static_cast<Header *>(at), size, params.timers,
                   params.clients};
    Header &header = *shm->memory.header;
    header.slot_count = params.timers;
    header.client_count = params.clients;
    header.owner = getpid();
    header.birth = birth_of(header.owner);
    header.clock_source = clock_of(shm->engine->clock);
    header.offset = shm->engine->offset;
    header.latest = shm->engine->now;
    header.epoch = shm->epoch;
    for (uint32_t i = 1; i <= params.clients; ++i) {
        shm->memory.client(i).epoch = shm->epoch;
    }
    for (uint32_t i = 1; i <= params.timers; ++i) {
        Slot &slot = shm->memory.slot(i);
        slot.deadline = slot.cover = slot.expired = LAWN_TIME_INFINITY;
    }
    header.magic = magic;
    return LAWN_OK;
}

} // namespace

lawn_status_t shm::make_file(lawn_shm_t *shm, const lawn_shm_params_t &params)
{
    // Only one process at a time is here. So what is left of one that was
    // killed is removed by the next.
    char name[longest_name];
    name_fifo(name, shm->path, 0, most_slots);
    unlink(name);
    shm->file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, params.mode);
    if (shm->file < 0) {
        return LAWN_ERR_IO;
    }
    lawn_status_t status = lock_file(shm->file, living);
    status = status == LAWN_OK ? map_file(shm, params) : status;
    if (status == LAWN_OK && rename(name, shm->path) != 0) {
        status = LAWN_ERR_IO;
    }
    if (status != LAWN_OK) {
        unlink(name);
    }
    return status;
}

lawn_status_t shm::make_bell(lawn_shm_t *shm, mode_t mode)
{
    char name[longest_name];
    name_fifo(name, shm->path, shm->epoch, 0);
    epoll_event event = {};
    event.events = EPOLLIN;
    if (mkfifo(name, mode) != 0) {
        return LAWN_ERR_IO;
    }
    shm->bell = open_fifo(name);
    if (shm->bell < 0) {
        const int error = errno;
        unlink(name);
        errno = error;
        return LAWN_ERR_IO;
    }
    if ((shm->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        epoll_ctl(shm->epoll, EPOLL_CTL_ADD, shm->bell, &event) != 0) {
        return LAWN_ERR_IO;
    }
    return LAWN_OK;
}

void shm::remove_bell(const lawn_shm_t *shm)
{
    if (shm->bell >= 0) {
        char name[longest_name];
        name_fifo(name, shm->path, shm->epoch, 0);
        unlink(name);
    }
}

// The memory's own file goes last: if the owner is killed before, the file
// tells the next owner what else is to be removed.
void shm::remove_files(const lawn_shm_t *shm)
{
    remove_bell(shm);
    unlink_own(shm->path, shm->file);
}
