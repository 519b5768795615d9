// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What an engine counts, and how others read it while it does. An idle pass
// changes `passes` alone. What else changes, changes between two increments of
// `sequence`; who finds that one has happened while he copied copies again. The
// stores are releases and the loads acquires, which cost nothing on x86: a copy
// that has anything of a change in it then finds the sequence changed.
//
// A gap between two passes is worth a look when it is a stall, or the longest
// so far. One comparison finds both: with the smaller of the two.

#include "engine/engine.h"

#include "base/probe.h"
#include "timer/lawn_impl.h"

using namespace lawn;

namespace
{

constexpr size_t word_count = sizeof(lawn_engine_stats_t) / sizeof(uint64_t);
static_assert(sizeof(lawn_engine_stats_t) % sizeof(uint64_t) == 0,
              "a structure of words");

void set(uint64_t *field, uint64_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELEASE);
}

void set_later(uint64_t *field, uint64_t value)
{
    set(field, later_of(*field, value));
}

class Change
{
public:
    explicit Change(lawn_engine_t *engine) : sequence_(&engine->sequence)
    {
        __atomic_store_n(sequence_, *sequence_ + 1, __ATOMIC_RELAXED);
    }

    Change(const Change &) = delete;
    Change &operator=(const Change &) = delete;

    ~Change()
    {
        __atomic_store_n(sequence_, *sequence_ + 1, __ATOMIC_RELEASE);
    }

private:
    uint32_t *sequence_;
};

uint64_t *words_of(lawn_engine_stats_t *stats)
{
    return reinterpret_cast<uint64_t *>(stats);
}

const uint64_t *words_of(const lawn_engine_stats_t *stats)
{
    return reinterpret_cast<const uint64_t *>(stats);
}

void copy_words(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    }
}

void copy_stats(const lawn_engine_t *engine, lawn_engine_stats_t *stats)
{
    uint32_t before;
    uint32_t after;
    do {
        before = __atomic_load_n(&engine->sequence, __ATOMIC_ACQUIRE);
        copy_words(words_of(stats), words_of(&engine->stats), word_count);
        after = __atomic_load_n(&engine->sequence, __ATOMIC_RELAXED);
    } while (before != after || before % 2 != 0);
    stats->worst_late = __atomic_load_n(&engine->late.max, __ATOMIC_RELAXED);
}

} // namespace

LAWN_COLD_PATH bool lawn::note_gap(lawn_engine_t *engine, lawn_time_t now)
{
    // Not `now - engine->now`: after a sleep the gap counts from its end.
    const lawn_time_t gap = now - (engine->notable_at - engine->notable_gap);
    const bool is_stall = gap >= engine->stall_threshold;
    lawn_engine_stats_t *const stats = &engine->stats;
    const Change change(engine);
    if (is_stall) {
        LAWN_PROBE(stall, engine, gap, now);
        engine->stalled_at = now;
        set(&stats->stalls, stats->stalls + 1);
        set_later(&stats->worst_stall, gap);
    }
    set_later(&stats->worst_pass, gap);
    engine->notable_gap = earlier_of(engine->stall_threshold,
                                     add_saturating(stats->worst_pass, 1));
    return is_stall;
}

LAWN_COLD_PATH void lawn::note_work(lawn_engine_t *engine, Work done,
                                    lawn_time_t now)
{
    lawn_engine_stats_t *const stats = &engine->stats;
    const Change change(engine);
    set(&stats->fired, stats->fired + done.fired);
    set(&stats->moved, stats->moved + (done.touched - done.fired));
    if (done.touched >= engine->budget && lawn_next(engine->lawn) <= now) {
        set(&stats->budget_ends, stats->budget_ends + 1);
    }
}

void lawn::note_step(lawn_engine_t *engine, lawn_time_t step)
{
    lawn_engine_stats_t *const stats = &engine->stats;
    const Change change(engine);
    set(&stats->clock_steps, stats->clock_steps + 1);
    set_later(&stats->worst_step, step);
}

unsigned lawn::poll_timed(void *arg)
{
    // Freed no sooner than after the pass.
    const lawn_source_t *const source = static_cast<lawn_source_t *>(arg);
    lawn_engine_t *const engine = source->engine;
    const lawn_time_t begin = read_clock(engine);
    const unsigned work = source->timed_poll(source->timed_arg);
    const lawn_time_t took = read_clock(engine) - begin;
    lawn_engine_stats_t *const stats = &engine->stats;
    if (took > stats->worst_poll) {
        const Change change(engine);
        set(&stats->worst_poll, took);
        set(&stats->worst_poll_fn,
            reinterpret_cast<uintptr_t>(source->timed_poll));
        set(&stats->worst_poll_arg,
            reinterpret_cast<uintptr_t>(source->timed_arg));
    }
    return work;
}

void lawn_engine_query_sized(const lawn_engine_t *engine,
                             lawn_engine_stats_t *stats, size_t size)
{
    lawn_engine_stats_t copy = {};
    copy_stats(engine, &copy);
    copy_known(stats, size, &copy, sizeof(copy));
}

void lawn_engine_query_lateness(const lawn_engine_t *engine,
                                lawn_histogram_t *late)
{
    late->max = __atomic_load_n(&engine->late.max, __ATOMIC_RELAXED);
    copy_words(late->buckets, engine->late.buckets, LAWN_HISTOGRAM_BUCKETS);
}

void lawn_engine_reset_stats(lawn_engine_t *engine)
{
    const Change change(engine);
    for (size_t i = 0; i < word_count; ++i) {
        set(&words_of(&engine->stats)[i], 0);
    }
    set(&engine->late.max, 0);
    for (uint64_t &bucket : engine->late.buckets) {
        set(&bucket, 0);
    }
    // What the next gap counts from stays.
    const lawn_time_t last = engine->notable_at - engine->notable_gap;
    const bool has_passed = engine->notable_at != LAWN_TIME_INFINITY;
    engine->notable_gap = earlier_of(engine->stall_threshold, 1);
    if (has_passed) {
        expect_pass(engine, last);
    }
}

size_t lawn_engine_backlog(const lawn_engine_t *engine)
{
    return lawn_backlog(engine->lawn, engine->now, 0);
}
