// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the parts of the module know of each other. README.md says what it does.

#ifndef LAWN_REDIS_MODULE_H
#define LAWN_REDIS_MODULE_H

#include "dehydrator.h"
#include "redis_api.h"

namespace lawn_redis
{

// The latest time that Redis can tell.
constexpr uint64_t latest = INT64_MAX;

// ---- The type of keys (type.cc).

extern RedisModuleType *type;

// Returns REDISMODULE_ERR, and Redis logs why, if it cannot be.
int create_type(RedisModuleCtx *ctx);

Dehydrator *create_dehydrator();

// ---- Clients that wait (waiting.cc). All of them are on Redis's main thread.

// Blocks the client of `ctx` until serve() has something for it, which is tried
// whenever the key gets something due. `serve` and `expire` are a command's
// functions; `timeout` is in milliseconds, 0 for ever. `next`: when the key's
// first element is due, or UINT64_MAX.
int wait_for(RedisModuleCtx *ctx, RedisModuleString *key, long long timeout,
             uint64_t next, RedisModuleCmdFunc serve,
             RedisModuleCmdFunc expire);

// An element of `key` is due at `due`: so there may be somebody to wake then,
// or at once.
void tell_waiting(RedisModuleCtx *ctx, RedisModuleString *key, uint64_t due);

inline uint64_t now_ms()
{
    return static_cast<uint64_t>(RedisModule_Milliseconds());
}

inline Text text_of(const RedisModuleString *string)
{
    Text text;
    text.data = RedisModule_StringPtrLen(string, &text.size);
    return text;
}

} // namespace lawn_redis

#endif
