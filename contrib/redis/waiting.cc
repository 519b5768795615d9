// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Clients that wait for a key. Redis keeps them, and tries to serve them when
// it is told that the key is ready. A key with such clients has one timer of
// Redis, at the time when its first element is due.
//
// No timer is longer than `longest`. If the element is not due then, another
// one follows:
//   - Redis's loop has the milliseconds to its next timer times 1000 in an int,
//     and does not sleep if that is negative: from 36 minutes on.
//   - A time near 2^64 microseconds is past to Redis, and then no timer of any
//     module expires.
//   - Redis's timers do not see it if the clock of the elements is set forward.
#include "key.h"

#include <algorithm>

namespace lawn_redis
{

namespace
{

constexpr uint64_t never = UINT64_MAX;
constexpr uint64_t longest = 60'000; // ms

struct Waiting {
    RedisModuleString *place; // in `all`
    RedisModuleString *key;
    unsigned clients;
    uint64_t end; // of the timer, or `never`: there is none
    RedisModuleTimerID timer;
};

RedisModuleDict *all; // by number of the database and key; NULL if empty

RedisModuleString *place_of(RedisModuleCtx *ctx, RedisModuleString *key)
{
    const int db = RedisModule_GetSelectedDb(ctx);
    const Text name = text_of(key);
    RedisModuleString *const place = RedisModule_CreateString(
        nullptr, reinterpret_cast<const char *>(&db), sizeof(db));
    RedisModule_StringAppendBuffer(nullptr, place, name.data, name.size);
    return place;
}

void on_due(RedisModuleCtx *ctx, void *data)
{
    auto *const waiting = static_cast<Waiting *>(data);
    waiting->end = never;
    const Key key(ctx, waiting->key, REDISMODULE_READ);
    if (key.get()) {
        tell_waiting(ctx, waiting->key, key.get()->next());
    }
}

void stop_timer(RedisModuleCtx *ctx, Waiting *waiting)
{
    if (waiting->end != never) {
        RedisModule_StopTimer(ctx, waiting->timer, nullptr);
        waiting->end = never;
    }
}

// Redis's timers may be a thousandth late, and never early.
void wake_at(RedisModuleCtx *ctx, Waiting *waiting, uint64_t due)
{
    if (due < waiting->end) {
        const uint64_t now = now_ms();
        const uint64_t left = due > now ? std::min(due - now, longest) : 0;
        stop_timer(ctx, waiting);
        waiting->timer = RedisModule_CreateTimer(
            ctx, static_cast<mstime_t>(left), on_due, waiting);
        waiting->end = now + left;
    }
}

// A client was served, or is gone.
void leave(RedisModuleCtx *ctx, void *data)
{
    auto *const waiting = static_cast<Waiting *>(data);
    if (--waiting->clients != 0) {
        return;
    }
    stop_timer(ctx, waiting);
    RedisModule_DictDel(all, waiting->place, nullptr);
    if (RedisModule_DictSize(all) == 0) {
        RedisModule_FreeDict(nullptr, all);
        all = nullptr;
    }
    RedisModule_FreeString(nullptr, waiting->place);
    RedisModule_FreeString(nullptr, waiting->key);
    RedisModule_Free(waiting);
}

Waiting *enter(RedisModuleCtx *ctx, RedisModuleString *key)
{
    RedisModuleString *const place = place_of(ctx, key);
    if (!all) {
        all = RedisModule_CreateDict(nullptr);
    }
    auto *waiting =
        static_cast<Waiting *>(RedisModule_DictGet(all, place, nullptr));
    if (waiting) {
        RedisModule_FreeString(nullptr, place);
    } else {
        waiting = static_cast<Waiting *>(RedisModule_Alloc(sizeof(*waiting)));
        *waiting = {place, RedisModule_CreateStringFromString(nullptr, key), 0,
                    never, 0};
        RedisModule_DictSet(all, place, waiting);
    }
    ++waiting->clients;
    return waiting;
}

} // namespace

int wait_for(RedisModuleCtx *ctx, RedisModuleString *key, long long timeout,
             uint64_t next, RedisModuleCmdFunc serve, RedisModuleCmdFunc expire)
{
    Waiting *const waiting = enter(ctx, key);
    wake_at(ctx, waiting, next);
    RedisModule_BlockClientOnKeys(ctx, serve, expire, leave, timeout, &key, 1,
                                  waiting);
    return REDISMODULE_OK;
}

void tell_waiting(RedisModuleCtx *ctx, RedisModuleString *key, uint64_t due)
{
    if (!all) {
        return;
    }
    RedisModuleString *const place = place_of(ctx, key);
    auto *const waiting =
        static_cast<Waiting *>(RedisModule_DictGet(all, place, nullptr));
    RedisModule_FreeString(nullptr, place);
    if (waiting && due > now_ms()) {
        wake_at(ctx, waiting, due);
    } else if (waiting) {
        RedisModule_SignalKeyAsReady(ctx, key);
    }
}

} // namespace lawn_redis
