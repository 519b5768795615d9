// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The pass of an engine: it reads the clock once, polls every source, and then
// expires timers. An idle pass costs a reading of the clock, a few stores and
// one look at the lawn. Rare events, such as a stall or a removed source, cost
// the other passes one predicted branch each.

#include "engine/engine.h"

#include "clock/convert.h"
#include "conn/profiles.h"
#include "engine/page.h"
#include "engine/trace.h"

#include <limits.h>

using namespace lawn;

namespace
{

constexpr unsigned default_budget = 64;
constexpr double default_stall_msec = 10;

void configure(Engine *engine, const lawn_engine_params_t *params)
{
    *engine = {};
    engine->clock = params->clock;
    engine->clock_arg = params->clock_arg;
    engine->ticks_per_sec = params->ticks_per_sec != 0 ? params->ticks_per_sec
                                                       : lawn_time_sec_value();
    engine->usec = ticks_from(1, 1000000, engine->ticks_per_sec);
    engine->msec = ticks_from(1, 1000, engine->ticks_per_sec);
    engine->budget = params->budget != 0 ? params->budget : default_budget;
    engine->stall_threshold =
        params->stall_threshold != 0
            ? params->stall_threshold
            : ticks_from(default_stall_msec, 1000, engine->ticks_per_sec);
    engine->notable_gap = earlier_of(engine->stall_threshold, 1);
    // The first pass follows no other pass, so it is never late.
    engine->notable_at = LAWN_TIME_INFINITY;
    engine->times_sources = params->time_sources;
    engine->allocator = params->lawn.allocator;
    engine->stalled_at = LAWN_TIME_INFINITY;
    engine->epoll_fd = -1;
    engine->timer_fd = -1;
    engine->armed = LAWN_TIME_INFINITY;
    engine->now = read_ticks(engine);
}

void free_source(Engine *engine, lawn_source_t *source)
{
    (source->prev ? source->prev->next : engine->first) = source->next;
    (source->next ? source->next->prev : engine->last) = source->prev;
    release(engine->allocator, source);
}

void free_removed(Engine *engine)
{
    engine->has_removed = false;
    for (lawn_source_t *source = engine->first; source;) {
        lawn_source_t *const next = source->next;
        if (!source->poll) {
            free_source(engine, source);
        }
        source = next;
    }
}

// The sum, or UINT_MAX if it is larger.
unsigned add_work(unsigned work, uint64_t more)
{
    return LAWN_LIKELY(more <= UINT_MAX - work)
               ? work + static_cast<unsigned>(more)
               : UINT_MAX;
}

// Polls the sources up to `last`, the end of the list when the pass began.
// `last` stays in the list until the pass ends. Sources that were added since
// come after it.
unsigned poll_sources(const Engine *engine, const lawn_source_t *last,
                      unsigned work)
{
    const lawn_source_t *source = engine->first;
    for (;;) {
        if (LAWN_LIKELY(source->poll != nullptr)) {
            work = add_work(work, source->poll(source->arg));
        }
        if (source == last) {
            return work;
        }
        source = source->next;
    }
}

// Begins a pass at `notable_at` or later. After a stall, the sources are polled
// twice before a timer may expire: here, and in the pass itself. Returns the
// work done. If `notable_at` is INFINITY, no pass can be late, though the clock
// may stand there.
LAWN_COLD_PATH unsigned
begin_late_pass(Engine *engine, const lawn_source_t *last, lawn_time_t now)
{
    const bool is_stall =
        engine->notable_at != LAWN_TIME_INFINITY && note_gap(engine, now);
    return is_stall && last ? poll_sources(engine, last, 0) : 0;
}

unsigned run_hooks(const Engine *engine, lawn_time_t now, unsigned work)
{
    for (const PassHook *i = engine->hooks; i; i = i->behind) {
        if (i->pass) {
            work = add_work(work, i->pass(i->arg, now, engine->budget));
        }
    }
    return work;
}

// True for a worker of a group and for an owner of shared memory. The page is
// the engine's own hook.
bool runs_others(const Engine *engine)
{
    for (const PassHook *i = engine->hooks; i; i = i->behind) {
        if (i->arg != engine->page) {
            return true;
        }
    }
    return false;
}

// Does work that few passes have: hooks and removed sources.
unsigned do_more(Engine *engine, lawn_time_t now, unsigned work)
{
    work = run_hooks(engine, now, work);
    if (engine->has_removed) {
        free_removed(engine);
    }
    engine->has_more = engine->hooks != nullptr;
    return work;
}

// The box is a source, so an engine without a box does not pay for it.
unsigned poll_box(void *arg)
{
    Engine *const engine = static_cast<Engine *>(arg);
    return lawn_box_drain(engine->box, engine->now, engine->budget);
}

} // namespace

// A small step back is skew between the counters of two processors. The
// engine's time then stands still until the clock has caught up. If `offset`
// grew with each such step, a thread that goes to and fro between the two
// processors would increase it again and again. The limit is a millisecond:
// kernels do not let programs use counters that differ by more than
// microseconds, and any scheduler may delay a timer by a millisecond. A larger
// step means that the machine was suspended, migrated or restored. The engine's
// time then goes on from the latest time that its timers know. A start may have
// read it after the latest pass: if the time went on from that pass, timers
// that are due in between would be touched in each pass until it had caught up.
LAWN_COLD_PATH lawn_time_t lawn::go_on(lawn_engine_t *handle, lawn_time_t now)
{
    Engine *const engine = impl_of(handle);
    if (engine->now - now > engine->msec) {
        const lawn_time_t latest =
            later_of(engine->now, latest_seen(engine->lawn));
        const lawn_time_t step = latest - now;
        // This sum wraps modulo 2^64, as the sum of clock and offset does.
        __atomic_store_n(&engine->offset, engine->offset + step,
                         __ATOMIC_RELAXED);
        note_step(engine, step);
        return latest;
    }
    return engine->now;
}

lawn_status_t lawn_engine_create_sized(const lawn_engine_params_t *given,
                                       size_t size, lawn_engine_t **engine_p)
{
    lawn_engine_params_t params;
    if (!read_known(given, size, &params)) {
        return LAWN_ERR_UNSUPPORTED;
    }
    const lawn_allocator_t &allocator = params.lawn.allocator;
    if (!engine_p || !allocator_is_valid(allocator) ||
        !rate_is_valid(params.ticks_per_sec)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    Engine *const engine =
        static_cast<Engine *>(allocate(allocator, sizeof(*engine)));
    if (!engine) {
        return LAWN_ERR_NO_MEMORY;
    }
    configure(engine, &params);
    lawn_status_t status = lawn_create(&params.lawn, &engine->lawn);
    if (status == LAWN_OK) {
        // Or a trace would begin when the counter was 0.
        lawn_see(engine->lawn, engine->now);
        count_late(engine->lawn, &engine->late);
        status = open_trace(engine);
    }
    if (status == LAWN_OK) {
        status = open_page(engine, params.stats_name);
    }
    if (status != LAWN_OK) {
        lawn_destroy(engine->lawn);
        close_trace(engine);
        release(allocator, engine);
        return status;
    }
    begin_life(&engine->usage);
    *engine_p = engine;
    return LAWN_OK;
}

void lawn_engine_destroy(lawn_engine_t *handle)
{
    Engine *const engine = impl_of(handle);
    if (!engine) {
        return;
    }
    assert_usable(engine);
    LAWN_ASSERT(!is_inside(engine));
    if (is_inside(engine)) {
        return;
    }
    LAWN_ASSERT(!runs_others(engine));
    if (runs_others(engine)) {
        return;
    }
    close_page(engine);
    lawn_box_destroy(engine->box);
    close_sleep(engine);
    lawn_destroy(engine->lawn);
    close_trace(engine);
    close_profiles(engine);
    const lawn_allocator_t allocator = engine->allocator;
    for (lawn_source_t *source = engine->first; source;) {
        lawn_source_t *const next = source->next;
        release(allocator, source);
        source = next;
    }
    end_life(&engine->usage);
    release(allocator, engine);
}

lawn_status_t lawn_engine_add(lawn_engine_t *handle, lawn_poll_fn_t poll,
                              void *arg, int fd, lawn_source_t **source_p)
{
    Engine *const engine = impl_of(handle);
    if (!engine || !poll || fd < -1) {
        return LAWN_ERR_INVALID_PARAM;
    }
    assert_usable(engine);
    lawn_source_t *const source = static_cast<lawn_source_t *>(
        allocate(engine->allocator, sizeof(*source)));
    if (!source) {
        return LAWN_ERR_NO_MEMORY;
    }
    if (fd >= 0) {
        const lawn_status_t status = watch(engine, fd);
        if (status != LAWN_OK) {
            release(engine->allocator, source);
            return status;
        }
    }
    *source = {nullptr, engine->last, poll, arg, fd, poll, arg, engine};
    if (engine->times_sources) {
        source->poll = poll_timed;
        source->arg = source;
    }
    (engine->last ? engine->last->next : engine->first) = source;
    engine->last = source;
    if (source_p) {
        *source_p = source;
    }
    return LAWN_OK;
}

void lawn_engine_remove(lawn_engine_t *handle, lawn_source_t *source)
{
    Engine *const engine = impl_of(handle);
    assert_usable(engine);
    LAWN_ASSERT(source->poll);
    if (!source->poll) {
        return; // removed twice in one pass
    }
    source->poll = nullptr;
    unwatch(engine, source);
    if (engine->in_pass) {
        engine->has_removed = true;
        engine->has_more = true;
    } else {
        free_source(engine, source);
    }
}

unsigned lawn_engine_progress(lawn_engine_t *handle)
{
    Engine *const engine = impl_of(handle);
    assert_usable(engine);
    LAWN_ASSERT(!is_inside(engine));
    if (LAWN_UNLIKELY(is_inside(engine))) {
        return 0;
    }
    const lawn_time_t now = read_clock(engine);
    unsigned work = 0;
    engine->in_pass = true;
    enter_usage(&engine->usage);
    __atomic_store_n(&engine->now, now, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->stats.passes, engine->stats.passes + 1,
                     __ATOMIC_RELAXED);
    const lawn_source_t *const last = engine->last;
    if (LAWN_UNLIKELY(now >= engine->notable_at)) {
        work = begin_late_pass(engine, last, now);
    }
    expect_pass(engine, now);
    if (last) {
        work = poll_sources(engine, last, work);
    }
    // Expire timers as of `now`, even if a source has read the clock since.
    // Nothing was polled at that later time, and the process may have been
    // stopped in between.
    const Work done = advance_as_of(engine->lawn, now, engine->budget);
    if (done.touched != 0) {
        note_work(engine, done, now);
        work = add_work(work, done.touched);
    }
    if (LAWN_UNLIKELY(engine->has_more)) {
        work = do_more(engine, now, work);
    }
    leave_usage(&engine->usage);
    engine->in_pass = false;
    return work;
}

lawn_time_t lawn_engine_now(const lawn_engine_t *engine)
{
    return engine->now;
}

lawn_time_t lawn_engine_time(const lawn_engine_t *engine)
{
    // The order matters. If the clock were read first, the offset for a step
    // back could be added to a reading from before the step. The sum would be
    // far in the future.
    const lawn_time_t offset =
        __atomic_load_n(&engine->offset, __ATOMIC_ACQUIRE);
    const lawn_time_t now = read_ticks(engine) + offset;
    return later_of(now, __atomic_load_n(&engine->now, __ATOMIC_RELAXED));
}

lawn_t *lawn_engine_lawn(lawn_engine_t *engine)
{
    return engine->lawn;
}

lawn_box_t *lawn_engine_box(lawn_engine_t *handle)
{
    Engine *const engine = impl_of(handle);
    assert_usable(engine);
    if (!engine->box &&
        lawn_box_create(engine->lawn, &engine->box) == LAWN_OK) {
        if (lawn_engine_add(engine, poll_box, engine, -1, nullptr) != LAWN_OK) {
            lawn_box_destroy(engine->box);
            engine->box = nullptr;
            return nullptr;
        }
        lawn_box_on_wake(engine->box, wake, handle);
    }
    return engine->box;
}

void lawn_engine_start(lawn_engine_t *engine, lawn_timer_t *timer,
                       lawn_time_t ttl)
{
    assert_usable(engine);
    LAWN_ASSERT(is_span(ttl) && "the TTL is no negative difference");
    lawn_timer_start(engine->lawn, timer, read_clock(engine), ttl);
}

bool lawn_engine_stop(lawn_engine_t *engine, lawn_timer_t *timer)
{
    assert_usable(engine);
    return lawn_timer_stop(engine->lawn, timer);
}

lawn_time_t lawn_engine_next(const lawn_engine_t *engine)
{
    return next_of(engine);
}
