// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Loading: what Redis is told of the module and its commands.
#define LAWN_REDIS_DEFINES_API
#include "commands.h"

namespace lawn_redis
{

void *allocate(size_t size)
{
    return RedisModule_Alloc(size);
}

void *reallocate(void *memory, size_t size)
{
    return RedisModule_Realloc(memory, size);
}

void release(void *memory)
{
    if (memory) {
        RedisModule_Free(memory);
    }
}

size_t size_of(void *memory)
{
    return RedisModule_MallocSize(memory);
}

namespace
{

using Arg = RedisModuleCommandArg;

constexpr Arg key_arg = {
    "key",  REDISMODULE_ARG_TYPE_KEY, 0, nullptr, nullptr, nullptr, 0, nullptr,
    nullptr};

constexpr Arg arg(const char *name, RedisModuleCommandArgType of,
                  const char *token = nullptr, int flags = 0)
{
    return {name, of, -1, token, nullptr, nullptr, flags, nullptr, nullptr};
}

constexpr auto text = REDISMODULE_ARG_TYPE_STRING;
constexpr auto number = REDISMODULE_ARG_TYPE_INTEGER;
constexpr auto optional = REDISMODULE_CMD_ARG_OPTIONAL;

struct Command {
    const char *name;
    RedisModuleCmdFunc call;
    const char *flags;
    const char *categories;
    uint64_t key_flags;
    int arity;
    const char *summary;
    const char *complexity;
    Arg args[6];
};

const Command commands[] = {
    {"lawn.push",
     push_command,
     "write deny-oom fast",
     "write fast",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT,
     5,
     "Adds an element that comes out when its TTL has passed.",
     "O(1); O(log(T)) if it is the only one of its TTL, with T TTLs",
     {key_arg, arg("ttl-ms", number), arg("id", text), arg("element", text)}},
    {"lawn.pushat",
     pushat_command,
     "write deny-oom fast",
     "write fast",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT,
     -5,
     "Adds an element that comes out at a time.",
     "As LAWN.PUSH",
     {key_arg, arg("unix-time-ms", REDISMODULE_ARG_TYPE_UNIX_TIME),
      arg("id", text), arg("element", text),
      arg("ttl-ms", number, "TTL", optional)}},
    {"lawn.pull",
     pull_command,
     "write fast",
     "write fast",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS |
         REDISMODULE_CMD_KEY_DELETE,
     3,
     "Takes out an element by its id, also before its time.",
     "O(1); O(log(T)) if it is the first of its TTL, with T TTLs",
     {key_arg, arg("id", text)}},
    {"lawn.drop",
     drop_command,
     "write",
     "write slow",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_DELETE,
     -3,
     "Removes elements by their ids.",
     "O(N) for N ids",
     {key_arg, arg("id", text, nullptr, REDISMODULE_CMD_ARG_MULTIPLE)}},
    {"lawn.poll",
     poll_command,
     "write blocking",
     "write blocking slow",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_ACCESS |
         REDISMODULE_CMD_KEY_DELETE,
     -2,
     "Takes out elements whose TTL has passed, in that order.",
     "O(N*log(T)) for N elements, with T TTLs",
     {key_arg, arg("count", number, "COUNT", optional),
      arg("timeout-ms", number, "BLOCK", optional)}},
    {"lawn.look",
     look_command,
     "readonly fast",
     "read fast",
     REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS,
     3,
     "Returns an element by its id.",
     "O(1)",
     {key_arg, arg("id", text)}},
    {"lawn.update",
     update_command,
     "write deny-oom fast",
     "write fast",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE,
     4,
     "Gives an element another TTL, from now on.",
     "As LAWN.PULL",
     {key_arg, arg("id", text), arg("ttl-ms", number)}},
    {"lawn.updateat",
     updateat_command,
     "write deny-oom fast",
     "write fast",
     REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE,
     -4,
     "Gives an element another time to come out.",
     "As LAWN.PULL",
     {key_arg, arg("id", text),
      arg("unix-time-ms", REDISMODULE_ARG_TYPE_UNIX_TIME),
      arg("ttl-ms", number, "TTL", optional)}},
    {"lawn.ttn",
     ttn_command,
     "readonly fast",
     "read fast",
     REDISMODULE_CMD_KEY_RO,
     2,
     "Returns the milliseconds until the next element comes out.",
     "O(1)",
     {key_arg}},
    {"lawn.count",
     count_command,
     "readonly fast",
     "read fast",
     REDISMODULE_CMD_KEY_RO,
     2,
     "Returns the number of elements.",
     "O(1)",
     {key_arg}},
};

// For ACLs: from Redis 7.4 on.
void set_categories(RedisModuleCommand *command, const char *categories)
{
    int (*set)(RedisModuleCommand *, const char *) = nullptr;
    if (RedisModule_GetApi("RedisModule_SetCommandACLCategories", &set) ==
        REDISMODULE_OK) {
        set(command, categories);
    }
}

int create(RedisModuleCtx *ctx, const Command &of)
{
    if (RedisModule_CreateCommand(ctx, of.name, of.call, of.flags, 1, 1, 1) !=
        REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    RedisModuleCommandKeySpec keys[2] = {};
    keys[0].flags = of.key_flags;
    keys[0].begin_search_type = REDISMODULE_KSPEC_BS_INDEX;
    keys[0].bs.index.pos = 1;
    keys[0].find_keys_type = REDISMODULE_KSPEC_FK_RANGE;
    keys[0].fk.range = {0, 1, 0};
    Arg args[6];
    memcpy(args, of.args, sizeof(args));
    RedisModuleCommandInfo info = {};
    info.version = REDISMODULE_COMMAND_INFO_VERSION;
    info.summary = of.summary;
    info.complexity = of.complexity;
    info.since = "0.7.0";
    info.arity = of.arity;
    info.key_specs = keys;
    info.args = args;
    RedisModuleCommand *const command = RedisModule_GetCommand(ctx, of.name);
    set_categories(command, of.categories);
    return RedisModule_SetCommandInfo(command, &info);
}

int load(RedisModuleCtx *ctx, int argc)
{
    if (argc != 0) {
        RedisModule_Log(ctx, "warning", "lawn: it takes no arguments");
        return REDISMODULE_ERR;
    }
    RedisModule_SetModuleOptions(
        ctx, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS |
                 REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD |
                 REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    RedisModule_GetRandomBytes(reinterpret_cast<unsigned char *>(&hash_key),
                               sizeof(hash_key));
    if (create_type(ctx) != REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    for (const Command &command : commands) {
        if (create(ctx, command) != REDISMODULE_OK) {
            RedisModule_Log(ctx, "warning", "lawn: cannot create %s",
                            command.name);
            return REDISMODULE_ERR;
        }
    }
    return REDISMODULE_OK;
}

} // namespace

} // namespace lawn_redis

extern "C" __attribute__((visibility("default"))) int
RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **, int argc)
{
    if (RedisModule_Init(ctx, "lawn", 1, REDISMODULE_APIVER_1) !=
        REDISMODULE_OK) {
        return REDISMODULE_ERR;
    }
    if (!RedisModule_SetCommandInfo) {
        RedisModule_Log(ctx, "warning", "lawn: it needs Redis 7.0 or later");
        return REDISMODULE_ERR;
    }
    return lawn_redis::load(ctx, argc);
}
