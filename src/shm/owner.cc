// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The owner of lawn/shm.h: its engine takes the messages and runs the timers.

#include "shm/owner.h"

#include "timer/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace lawn;
using namespace lawn::shm;

namespace
{

constexpr unsigned default_timers = 65536;
constexpr unsigned default_clients = 64;

uint32_t number_of(const Timer *timer)
{
    return static_cast<uint32_t>(timer - timer->shm->timers) + 1;
}

Slot &slot_of(const Timer *timer)
{
    return timer->shm->memory.slot(number_of(timer));
}

// If the deadline is before the cover, re-arms the plain timer for it and
// lowers the cover.
void cover(Timer *timer)
{
    Slot &slot = slot_of(timer);
    const lawn_time_t deadline = Atomics::load(&slot.deadline);
    if (deadline < slot.cover) {
        lawn_t *const lawn = timer->shm->engine->lawn;
        hide(lawn, !lawn_timer_is_active(&timer->timer));
        lawn_timer_start_at(lawn, &timer->timer, lawn->now, deadline);
        Atomics::store(&slot.cover, deadline);
    }
}

// A drain has taken the plain timer out of the lawn.
void on_drain(lawn_timer_t *plain)
{
    Timer *const timer = reinterpret_cast<Timer *>(plain);
    unhide(timer->shm->engine->lawn);
    if (is_inherited(timer->shm)) {
        return;
    }
    // In this order, so that a start that comes meanwhile finds the plain timer
    // idle and sends a message, or is ended here.
    Slot &slot = slot_of(timer);
    Atomics::store(&slot.cover, LAWN_TIME_INFINITY);
    Atomics::exchange(&slot.deadline, LAWN_TIME_INFINITY);
}

// Nothing is due in the child of a fork.
lawn_time_t deadline_of(const lawn_timer_t *plain)
{
    const Timer *const timer = reinterpret_cast<const Timer *>(plain);
    return is_inherited(timer->shm) ? LAWN_TIME_INFINITY
                                    : Atomics::load(&slot_of(timer).deadline);
}

// Puts a slot that has expired, or that the owner has let go of, into the list
// of its client. Wakes the client if it sleeps.
void deliver(Timer *timer, uint32_t flags)
{
    const lawn_shm_t *const shm = timer->shm;
    Slot &slot = slot_of(timer);
    const uint32_t client = Atomics::load(&slot.client);
    if (client == 0 || client > shm->memory.client_count ||
        (Atomics::set(&slot.flags, fired | flags) & fired) != 0) {
        return;
    }
    uint32_t &list = shm->memory.client(client).fired;
    if (push(list, slot.next_fired, number_of(timer)) &&
        (Atomics::clear(&list, asleep) & asleep) != 0) {
        wake_client(shm, client);
    }
}

// Calls the program's function, if there is one. Returns true if the timer runs
// again.
bool goes_on(Timer *timer, lawn_time_t deadline, lawn_time_t now)
{
    lawn_shm_t *const shm = timer->shm;
    if (!shm->expired) {
        return false;
    }
    Slot &slot = slot_of(timer);
    const lawn_time_t next =
        shm->expired(shm->arg, number_of(timer), slot.cookie, deadline, now);
    lawn_time_t stopped = LAWN_TIME_INFINITY;
    // If the client has started the timer meanwhile, its start is the later one
    // and stays.
    if (next == LAWN_TIME_INFINITY ||
        !Atomics::swap(&slot.deadline, &stopped, next)) {
        return false;
    }
    cover(timer);
    return true;
}

// Takes the latest start of a timer, whose plain timer is idle, if its deadline
// is at or before `until`. Returns false if there is nothing to fire.
bool take_start(Timer *timer, lawn_time_t until, lawn_time_t *deadline_p)
{
    Slot &slot = slot_of(timer);
    Atomics::store(&slot.cover, LAWN_TIME_INFINITY);
    lawn_time_t deadline = Atomics::load(&slot.deadline);
    bool is_taken = false;
    while (!is_taken && deadline <= until) {
        is_taken = Atomics::swap(&slot.deadline, &deadline, LAWN_TIME_INFINITY);
    }
    if (!is_taken) {
        cover(timer);
        return false;
    }
    *deadline_p = deadline;
    // The program's function may have let the timer go on after its release,
    // which the owner learns of by a message that it has not taken yet.
    return (Atomics::load(&slot.flags) & released) == 0;
}

void fire(Timer *timer, lawn_time_t deadline, lawn_time_t now)
{
    if (!goes_on(timer, deadline, now)) {
        Atomics::store(&slot_of(timer).expired, deadline);
        deliver(timer, 0);
    }
}

void on_expired(lawn_timer_t *plain, lawn_time_t now)
{
    Timer *const timer = reinterpret_cast<Timer *>(plain);
    lawn_t *const lawn = timer->shm->engine->lawn;
    lawn_time_t deadline;
    unhide(lawn);
    if (is_inherited(timer->shm) || !take_start(timer, now, &deadline)) {
        note_unfired(lawn);
        return;
    }
    note_late(lawn, now - deadline);
    fire(timer, deadline, now);
}

// Handles a message: a start or a release.
void receive(Timer *timer)
{
    Slot &slot = slot_of(timer);
    const uint32_t was = Atomics::clear(&slot.flags, posted);
    if ((was & released) == 0) {
        cover(timer);
        return;
    }
    stop(timer);
    Atomics::store(&slot.deadline, LAWN_TIME_INFINITY);
    Atomics::store(&slot.cover, LAWN_TIME_INFINITY);
    deliver(timer, done);
}

// Stores what clients need to compute the engine's time.
void publish(lawn_shm_t *shm, lawn_time_t now)
{
    Header &header = *shm->memory.header;
    if (header.offset != shm->engine->offset) {
        Atomics::store(&header.offset, uint64_t{shm->engine->offset});
    }
    if (now - header.latest > shm->engine->msec) {
        Atomics::store(&header.latest, uint64_t{now});
    }
}

unsigned poll(void *arg)
{
    lawn_shm_t *const shm = static_cast<lawn_shm_t *>(arg);
    if (is_inherited(shm)) {
        // What wakes the parent must not wake the child, which would not take
        // it.
        unwatch(shm->engine, shm->source);
        return 0;
    }
    const lawn_time_t now = shm->engine->now;
    unsigned work = 0;
    publish(shm, now);
    if (shm->has_slept || now >= shm->look_at ||
        Atomics::load(&shm->memory.header->joined) != shm->joined) {
        work = look(shm);
        shm->has_slept = false;
        shm->look_at = add_saturating(now, shm->engine->msec);
    }
    lawn_see(shm->engine->lawn, now);
    return work + drain(shm, shm->engine->budget);
}

unsigned pass(void *, lawn_time_t, unsigned)
{
    return 0;
}

// A client that could not be watched, because there are too many open files for
// example, is tried again soon.
lawn_time_t next_look(void *arg)
{
    const lawn_shm_t *const shm = static_cast<lawn_shm_t *>(arg);
    return shm->is_incomplete && !is_inherited(shm) ? shm->look_at
                                                    : LAWN_TIME_INFINITY;
}

bool sleep(void *arg, lawn_time_t until)
{
    lawn_shm_t *const shm = static_cast<lawn_shm_t *>(arg);
    if (is_inherited(shm)) {
        unwatch(shm->engine, shm->source);
        return true;
    }
    if (shm->taken != 0) {
        return false;
    }
    Header &header = *shm->memory.header;
    shm->has_slept = true;
    Atomics::store(&header.wake_at, uint64_t{until});
    uint32_t head = 0;
    return (Atomics::swap(&header.messages, &head, asleep) || head == asleep) &&
           Atomics::load(&header.joined) == shm->joined;
}

lawn_status_t make_timers(lawn_shm_t *shm, const lawn_shm_params_t &params)
{
    const lawn_allocator_t &allocator = shm->engine->allocator;
    shm->timers = static_cast<Timer *>(
        allocate(allocator, params.timers * sizeof(Timer)));
    shm->watches = static_cast<Watch *>(
        allocate(allocator, params.clients * sizeof(Watch)));
    if (!shm->timers || !shm->watches) {
        return LAWN_ERR_NO_MEMORY;
    }
    for (uint32_t i = 1; i <= params.timers; ++i) {
        Timer &timer = timer_of(shm, i);
        lawn_timer_init(&timer.timer, on_expired);
        timer.shm = shm;
    }
    for (uint32_t i = 1; i <= params.clients; ++i) {
        watch_of(shm, i) = {-1, -1};
    }
    return LAWN_OK;
}

lawn_status_t board(lawn_shm_t *shm)
{
    lawn_engine_t *const engine = shm->engine;
    const lawn_status_t status =
        lawn_engine_add(engine, poll, shm, shm->epoll, &shm->source);
    if (status == LAWN_OK) {
        set_kind(engine->lawn, kind_shm,
                 {on_expired, false, on_drain, deadline_of});
        shm->hook = {pass, next_look, sleep, shm, nullptr};
        add_hook(engine, &shm->hook);
    }
    return status;
}

void leave(lawn_shm_t *shm)
{
    remove_hook(shm->engine, &shm->hook);
    lawn_engine_remove(shm->engine, shm->source);
}

lawn_status_t make(lawn_shm_t *shm, const lawn_shm_params_t &params)
{
    int locked = -1;
    size_t found = 0;
    bool is_new = false;
    lawn_status_t status =
        lock_path(shm->path, params.mode, &locked, &found, &is_new);
    if (status != LAWN_OK) {
        return status;
    }
    remove_leftovers(shm->path, locked, found);
    // The file is made last, because it tells clients that everything is there.
    status = make_timers(shm, params);
    status = status == LAWN_OK ? make_bell(shm, params.mode) : status;
    status = status == LAWN_OK ? board(shm) : status;
    status = status == LAWN_OK ? make_file(shm, params) : status;
    if (status != LAWN_OK && shm->source) {
        leave(shm);
    }
    if (status != LAWN_OK && is_new) {
        const int error = errno;
        unlink(shm->path);
        errno = error;
    }
    close(locked);
    return status;
}

void free_all(lawn_shm_t *shm)
{
    const lawn_allocator_t allocator = shm->engine->allocator;
    if (!is_inherited(shm)) { // or they may be the child's own files by now
        close_fd(shm->epoll);
        close_fd(shm->bell);
        close_fd(shm->file);
    }
    if (shm->memory.header) {
        munmap(shm->memory.header, shm->memory.size);
    }
    release(allocator, shm->watches);
    release(allocator, shm->timers);
    release(allocator, shm);
}

bool is_valid(const lawn_shm_params_t &params)
{
    return params.timers <= most_slots && params.clients <= most_slots;
}

// Another one for each owner, so that neither the owner nor a client of it is
// taken for those of an earlier one. Never 0.
uint32_t new_epoch()
{
    const uint64_t unique = lawn_get_time() ^ static_cast<uint64_t>(getpid())
                                                  << 40;
    return static_cast<uint32_t>(unique * 0x9e3779b97f4a7c15U >> 34) | 1;
}

} // namespace

void shm::stop(Timer *timer)
{
    lawn_t *const lawn = timer->shm->engine->lawn;
    unhide(lawn, lawn_timer_stop(lawn, &timer->timer));
}

unsigned shm::drain(lawn_shm_t *shm, unsigned budget)
{
    unsigned count = 0;
    // First the messages that were left over, then those that are there now.
    // Messages that come meanwhile are left for the next call.
    for (bool is_taken = false;;) {
        if (const uint32_t number = shm->taken) {
            if (budget != 0 && count == budget) {
                return count;
            }
            // What somebody has spoilt ends here: the list is no list of
            // slots, or has no end.
            if (number > shm->memory.slot_count || shm->left == 0) {
                shm->taken = 0;
                continue;
            }
            // This comes before receive(), which clears the flag: after that,
            // the client may push the slot again.
            shm->taken = shm->memory.slot(number).next_message;
            --shm->left;
            receive(&timer_of(shm, number));
            ++count;
        } else if (is_taken ||
                   Atomics::load(&shm->memory.header->messages) == 0) {
            return count;
        } else {
            is_taken = true;
            shm->taken = take(shm->memory.header->messages);
            shm->left = shm->memory.slot_count;
        }
    }
}

lawn_status_t lawn_shm_create_sized(lawn_engine_t *engine, const char *path,
                                    const lawn_shm_params_t *given, size_t size,
                                    lawn_shm_t **shm_p)
{
    lawn_shm_params_t all;
    if (!read_known(given, size, &all)) {
        return LAWN_ERR_UNSUPPORTED;
    }
    all.timers = all.timers != 0 ? all.timers : default_timers;
    all.clients = all.clients != 0 ? all.clients : default_clients;
    all.mode = all.mode != 0 ? all.mode : 0600;
    if (!engine || is_inside(engine) || !path || !shm_p || !is_valid(all) ||
        strlen(path) >= longest_name) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (!count_forks()) {
        return LAWN_ERR_NO_MEMORY;
    }
    lawn_shm_t *const shm =
        static_cast<lawn_shm_t *>(allocate(engine->allocator, sizeof(*shm)));
    if (!shm) {
        return LAWN_ERR_NO_MEMORY;
    }
    *shm = {};
    shm->engine = engine;
    shm->made_in = forks;
    shm->expired = all.expired;
    shm->arg = all.arg;
    shm->epoch = new_epoch();
    shm->file = shm->bell = shm->epoll = -1;
    lawn_status_t status = make_absolute(path, shm->path);
    status = status == LAWN_OK ? make(shm, all) : status;
    if (status != LAWN_OK) {
        const int error = errno;
        remove_bell(shm);
        free_all(shm);
        errno = error;
        return status;
    }
    *shm_p = shm;
    return LAWN_OK;
}

void lawn_shm_destroy(lawn_shm_t *shm)
{
    if (!shm) {
        return;
    }
    LAWN_ASSERT(!is_inside(shm->engine));
    if (is_inside(shm->engine)) {
        return;
    }
    if (!is_inherited(shm)) {
        Atomics::store(&shm->memory.header->is_closed, 1U);
    }
    for (uint32_t i = 1; i <= shm->memory.slot_count; ++i) {
        stop(&timer_of(shm, i));
    }
    leave(shm);
    unwatch_all(shm);
    if (!is_inherited(shm)) {
        remove_files(shm);
    }
    free_all(shm);
}

// A message that is on its way finds the timer stopped, or started anew.
unsigned lawn_shm_drain(lawn_shm_t *shm)
{
    unsigned count = 0;
    if (is_inherited(shm)) {
        return 0;
    }
    for (uint32_t i = 1; i <= shm->memory.slot_count; ++i) {
        Timer &timer = timer_of(shm, i);
        lawn_time_t deadline;
        stop(&timer);
        if (take_start(&timer, LAWN_TIME_INFINITY - 1, &deadline)) {
            fire(&timer, deadline, shm->engine->now);
            ++count;
        }
    }
    return count;
}

uint64_t lawn_shm_owner_id(const lawn_shm_t *shm)
{
    return uint64_t{shm->epoch} << 32;
}

void lawn_shm_query_sized(const lawn_shm_t *shm, lawn_shm_stats_t *stats,
                          size_t size)
{
    lawn_shm_stats_t known = {};
    known.deaths = shm->deaths;
    for (uint32_t i = 1; i <= shm->memory.client_count; ++i) {
        known.clients += Atomics::load(&shm->memory.client(i).pid) != 0;
    }
    for (uint32_t i = 1; i <= shm->memory.slot_count; ++i) {
        known.timers += Atomics::load(&shm->memory.slot(i).client) != 0;
    }
    copy_known(stats, size, &known, sizeof(known));
}
