// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A hash table of chains, one for each engine. It doubles when there are as
// many profiles as buckets. If there is no memory for that, the chains become
// longer, and nothing else happens.

#include "conn/profile.h"

#include "base/base.h"
#include "base/mix.h"
#include "base/ticks.h"
#include "conn/profiles.h"
#include "engine/inside.h"

#include <string.h>
#include <sys/random.h>

namespace lawn
{

// What an engine keeps for its connections.
struct Profiles {
    lawn_conn_profile **buckets;
    size_t bucket_count; // a power of two
    size_t count;
    // One that no connection has, kept for the next: a program that closes its
    // only connection and opens another allocates nothing.
    lawn_conn_profile *unused;
    uint64_t seed; // of jitters, where a program gives none
};

namespace
{

constexpr size_t first_bucket_count = 4;

uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// All that makes profiles differ.
struct Words {
    uint64_t word[16];

    Words(const lawn_conn_params_t &params, const lawn_conn_ops_t &ops)
        : word{params.rto_initial,
               params.rto_min,
               params.rto_max,
               params.rto_fixed,
               bits_of(params.backoff),
               uint64_t{params.max_retries} << 32 | params.keepalive_probes,
               params.peer_timeout,
               params.keepalive_idle,
               params.keepalive_interval,
               params.keepalive_jitter,
               bits_of(params.rto_jitter),
               params.jitter_seed,
               reinterpret_cast<uintptr_t>(ops.retransmit),
               reinterpret_cast<uintptr_t>(ops.probe),
               reinterpret_cast<uintptr_t>(ops.dead),
               reinterpret_cast<uintptr_t>(ops.ask)}
    {
    }

    uint64_t hash() const
    {
        uint64_t hash = 0;
        for (const uint64_t i : word) {
            hash = mix64(hash ^ i) + 1;
        }
        return hash;
    }

    bool equal(const lawn_conn_profile &profile) const
    {
        const Words other(profile.params, profile.ops);
        return memcmp(word, other.word, sizeof(word)) == 0;
    }
};

lawn_conn_profile **bucket_of(const Profiles *profiles, uint64_t hash)
{
    return &profiles->buckets[hash & (profiles->bucket_count - 1)];
}

// Gives the table `count` buckets, and returns whether there was memory.
bool rehash(lawn_engine_t *engine, size_t count)
{
    Profiles *const profiles = engine->profiles;
    lawn_conn_profile **const buckets = static_cast<lawn_conn_profile **>(
        allocate(engine->allocator, count * sizeof(*buckets)));
    if (!buckets) {
        return false;
    }
    memset(buckets, 0, count * sizeof(*buckets));
    const Profiles old = *profiles;
    profiles->buckets = buckets;
    profiles->bucket_count = count;
    for (size_t i = 0; i < old.bucket_count; ++i) {
        for (lawn_conn_profile *at = old.buckets[i]; at;) {
            lawn_conn_profile *const next = at->next;
            lawn_conn_profile **const bucket = bucket_of(profiles, at->hash);
            at->next = *bucket;
            *bucket = at;
            at = next;
        }
    }
    release(engine->allocator, old.buckets);
    return true;
}

// Returns the engine's table, made if it is not there; nullptr without memory.
Profiles *table_of(lawn_engine_t *engine)
{
    if (engine->profiles) {
        return engine->profiles;
    }
    Profiles *const profiles =
        static_cast<Profiles *>(allocate(engine->allocator, sizeof(*profiles)));
    if (!profiles) {
        return nullptr;
    }
    *profiles = {};
    engine->profiles = profiles;
    if (!rehash(engine, first_bucket_count)) {
        close_profiles(engine);
        return nullptr;
    }
    if (getrandom(&profiles->seed, sizeof(profiles->seed), GRND_NONBLOCK) !=
        sizeof(profiles->seed)) {
        profiles->seed = mix64(lawn_get_time());
    }
    return profiles;
}

// Works out what connections need again and again.
void fill(lawn_conn_profile *profile, lawn_engine_t *engine,
          const lawn_conn_params_t &params, const lawn_conn_ops_t &ops)
{
    const bool is_fixed = params.rto_fixed != 0;
    const bool has_timeout =
        params.peer_timeout != 0 && params.peer_timeout != LAWN_TIME_INFINITY;
    profile->lawn = engine->lawn;
    profile->engine = engine;
    profile->peer_timeout =
        has_timeout ? params.peer_timeout : LAWN_TIME_INFINITY;
    profile->rto_max = is_fixed ? params.rto_fixed : params.rto_max;
    profile->rto_share =
        is_fixed || !has_timeout ? LAWN_TIME_INFINITY : params.peer_timeout / 4;
    profile->rto_limit = earlier_of(profile->rto_max, profile->rto_share);
    profile->rto_min = is_fixed ? params.rto_fixed : params.rto_min;
    profile->rto_is_first =
        params.rto_jitter == 0 && params.rto_fixed <= profile->peer_timeout;
    profile->is_plain = profile->rto_is_first && !ops.ask;
    profile->granularity = engine->usec;
    profile->seed =
        params.jitter_seed != 0 ? params.jitter_seed : engine->profiles->seed;
    profile->params = params;
    profile->ops = ops;
}

} // namespace

lawn_conn_profile *share_profile(lawn_engine_t *engine,
                                 const lawn_conn_params_t &params,
                                 const lawn_conn_ops_t &ops)
{
    Profiles *const profiles = table_of(engine);
    if (!profiles) {
        return nullptr;
    }
    const Words words(params, ops);
    const uint64_t hash = words.hash();
    for (lawn_conn_profile *i = *bucket_of(profiles, hash); i; i = i->next) {
        if (i->hash == hash && words.equal(*i)) {
            if (i->connections++ == 0) {
                profiles->unused = nullptr;
            }
            return i;
        }
    }
    lawn_conn_profile *const profile = static_cast<lawn_conn_profile *>(
        allocate(engine->allocator, sizeof(*profile)));
    if (!profile) {
        return nullptr;
    }
    if (profiles->count == profiles->bucket_count) {
        rehash(engine, profiles->bucket_count * 2);
    }
    *profile = {};
    fill(profile, engine, params, ops);
    profile->connections = 1;
    profile->hash = hash;
    lawn_conn_profile **const bucket = bucket_of(profiles, hash);
    profile->next = *bucket;
    *bucket = profile;
    profiles->count++;
    return profile;
}

void unshare_profile(lawn_conn_profile *profile)
{
    if (--profile->connections != 0) {
        return;
    }
    lawn_engine_t *const engine = profile->engine;
    lawn_conn_profile *const unused = engine->profiles->unused;
    engine->profiles->unused = profile;
    if (!unused) {
        return;
    }
    lawn_conn_profile **link = bucket_of(engine->profiles, unused->hash);
    while (*link != unused) {
        link = &(*link)->next;
    }
    *link = unused->next;
    engine->profiles->count--;
    release(engine->allocator, unused);
}

void close_profiles(lawn_engine_t *engine)
{
    Profiles *const profiles = engine->profiles;
    if (!profiles) {
        return;
    }
    for (size_t i = 0; i < profiles->bucket_count; ++i) {
        for (lawn_conn_profile *at = profiles->buckets[i]; at;) {
            lawn_conn_profile *const next = at->next;
            release(engine->allocator, at);
            at = next;
        }
    }
    release(engine->allocator, profiles->buckets);
    release(engine->allocator, profiles);
    engine->profiles = nullptr;
}

} // namespace lawn
