// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A module whose commands do nothing, and reply as LAWN.PUSH and LAWN.POLL do:
// what a module costs at least. But NOTHING.DELETE makes it delete each key of
// which a module tells an event.
#define LAWN_REDIS_DEFINES_API
#include "redis_api.h"

namespace
{

int push(RedisModuleCtx *ctx, RedisModuleString **, int)
{
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

// NOTHING.POLL key COUNT n element
int poll(RedisModuleCtx *ctx, RedisModuleString **argv, int)
{
    long long count = 0;
    RedisModule_StringToLongLong(argv[3], &count);
    RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
    for (long long i = 0; i < count; ++i) {
        RedisModule_ReplyWithArray(ctx, 2);
        RedisModule_ReplyWithStringBuffer(ctx, "000000000000", 12);
        RedisModule_ReplyWithString(ctx, argv[4]);
    }
    RedisModule_ReplySetArrayLength(ctx, static_cast<long>(count));
    return REDISMODULE_OK;
}

int delete_key(RedisModuleCtx *ctx, int, const char *, RedisModuleString *key)
{
    RedisModuleCallReply *const reply = RedisModule_Call(ctx, "DEL", "s", key);
    RedisModule_FreeCallReply(reply);
    return REDISMODULE_OK;
}

int delete_keys(RedisModuleCtx *ctx, RedisModuleString **, int)
{
    RedisModule_SubscribeToKeyspaceEvents(ctx, REDISMODULE_NOTIFY_MODULE,
                                          delete_key);
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int
RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **, int)
{
    return RedisModule_Init(ctx, "nothing", 1, REDISMODULE_APIVER_1) ==
                       REDISMODULE_OK &&
                   RedisModule_CreateCommand(ctx, "nothing.push", push,
                                             "write deny-oom fast", 1, 1,
                                             1) == REDISMODULE_OK &&
                   RedisModule_CreateCommand(ctx, "nothing.poll", poll, "write",
                                             1, 1, 1) == REDISMODULE_OK &&
                   RedisModule_CreateCommand(ctx, "nothing.delete", delete_keys,
                                             "", 0, 0, 0) == REDISMODULE_OK
               ? REDISMODULE_OK
               : REDISMODULE_ERR;
}
