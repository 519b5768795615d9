// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics of an engine, and how other threads read them while they
// change. An idle pass changes only `passes`. All other fields of `stats`
// change between two increments of `sequence` (base/sequence.h).
//
// The histogram of the lateness changes outside of them, at each timer. A copy
// of it may lack what was counted meanwhile, but it takes the buckets before
// the maximum, which was stored before the bucket was. Only a reset makes both
// less: `resets` is the sequence counter for that.
//
// A gap between two passes is notable if it is a stall or the longest so far.
// One comparison, with the smaller of the two limits, finds both.

#include "engine/engine.h"
#include "engine/trace.h"

#include "base/probe.h"
#include "base/sequence.h"
#include "timer/inside.h"

using namespace lawn;

namespace
{

constexpr size_t word_count = sizeof(lawn_engine_stats_t) / sizeof(uint64_t);
static_assert(sizeof(lawn_engine_stats_t) % sizeof(uint64_t) == 0,
              "a structure of words");

void set_later(uint64_t *field, uint64_t value)
{
    set_word(field, later_of(*field, value));
}

uint64_t *words_of(lawn_engine_stats_t *stats)
{
    return reinterpret_cast<uint64_t *>(stats);
}

const uint64_t *words_of(const lawn_engine_stats_t *stats)
{
    return reinterpret_cast<const uint64_t *>(stats);
}

void copy_stats(const Engine *engine, lawn_engine_stats_t *stats)
{
    uint32_t before;
    uint32_t after;
    do {
        before = __atomic_load_n(&engine->sequence, __ATOMIC_ACQUIRE);
        copy_words(words_of(stats), words_of(&engine->stats), word_count);
        stats->worst_late =
            __atomic_load_n(&engine->late.max, __ATOMIC_ACQUIRE);
        after = __atomic_load_n(&engine->sequence, __ATOMIC_RELAXED);
    } while (is_torn(before, after));
}

} // namespace

LAWN_COLD_PATH bool lawn::note_gap(Engine *engine, lawn_time_t now)
{
    // Not `now - engine->now`: after a sleep, the gap counts from the end of
    // the sleep.
    const lawn_time_t gap = now - (engine->notable_at - engine->notable_gap);
    const bool is_stall = gap >= engine->stall_threshold;
    lawn_engine_stats_t *const stats = &engine->stats;
    const Change change(&engine->sequence);
    if (is_stall) {
        LAWN_PROBE(stall, engine, gap, now);
        trace_stall(engine, gap, now);
        engine->stalled_at = now;
        set_word(&stats->stalls, stats->stalls + 1);
        set_later(&stats->worst_stall, gap);
    }
    set_later(&stats->worst_pass, gap);
    engine->notable_gap = earlier_of(engine->stall_threshold,
                                     add_saturating(stats->worst_pass, 1));
    return is_stall;
}

LAWN_COLD_PATH void lawn::note_work(Engine *engine, Work done, lawn_time_t now)
{
    lawn_engine_stats_t *const stats = &engine->stats;
    const Change change(&engine->sequence);
    set_word(&stats->fired, stats->fired + done.fired);
    set_word(&stats->moved, stats->moved + (done.touched - done.fired));
    if (done.touched >= engine->budget && lawn_next(engine->lawn) <= now) {
        set_word(&stats->budget_ends, stats->budget_ends + 1);
    }
}

void lawn::note_step(Engine *engine, lawn_time_t step)
{
    lawn_engine_stats_t *const stats = &engine->stats;
    const Change change(&engine->sequence);
    set_word(&stats->clock_steps, stats->clock_steps + 1);
    set_later(&stats->worst_step, step);
}

LAWN_COLD_PATH void lawn::note_conn(lawn_engine_t *handle,
                                    uint64_t lawn_engine_stats_t::*number)
{
    Engine *const engine = impl_of(handle);
    uint64_t *const word = &(engine->stats.*number);
    const Change change(&engine->sequence);
    set_word(word, *word + 1);
}

unsigned lawn::poll_timed(void *arg)
{
    // The source is not freed before the pass has ended.
    const lawn_source_t *const source = static_cast<lawn_source_t *>(arg);
    Engine *const engine = source->engine;
    const lawn_time_t begin = read_clock(engine);
    const unsigned work = source->timed_poll(source->timed_arg);
    // The clock may go back within a pass, to the pass's own time at most.
    const lawn_time_t took = later_of(read_clock(engine), begin) - begin;
    lawn_engine_stats_t *const stats = &engine->stats;
    if (took > stats->worst_poll) {
        const Change change(&engine->sequence);
        set_word(&stats->worst_poll, took);
        set_word(&stats->worst_poll_fn,
                 reinterpret_cast<uintptr_t>(source->timed_poll));
        set_word(&stats->worst_poll_arg,
                 reinterpret_cast<uintptr_t>(source->timed_arg));
    }
    return work;
}

void lawn_engine_query_sized(const lawn_engine_t *handle,
                             lawn_engine_stats_t *stats, size_t size)
{
    const Engine *const engine = impl_of(handle);
    lawn_engine_stats_t copy = {};
    copy_stats(engine, &copy);
    copy_known(stats, size, &copy, sizeof(copy));
}

void lawn_engine_query_lateness(const lawn_engine_t *handle,
                                lawn_histogram_t *late)
{
    const Engine *const engine = impl_of(handle);
    uint32_t before;
    uint32_t after;
    do {
        before = __atomic_load_n(&engine->resets, __ATOMIC_ACQUIRE);
        copy_words(late->buckets, engine->late.buckets, LAWN_HISTOGRAM_BUCKETS);
        late->max = __atomic_load_n(&engine->late.max, __ATOMIC_ACQUIRE);
        after = __atomic_load_n(&engine->resets, __ATOMIC_RELAXED);
    } while (is_torn(before, after));
}

void lawn_engine_reset_stats(lawn_engine_t *handle)
{
    Engine *const engine = impl_of(handle);
    const Change change(&engine->sequence);
    const Change reset(&engine->resets);
    for (size_t i = 0; i < word_count; ++i) {
        set_word(&words_of(&engine->stats)[i], 0);
    }
    set_word(&engine->late.max, 0);
    for (uint64_t &bucket : engine->late.buckets) {
        set_word(&bucket, 0);
    }
    // The time from which the next gap counts stays the same.
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
