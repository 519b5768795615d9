// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The commands' functions. module.cc has their names, and what COMMAND tells of
// them.

#ifndef LAWN_REDIS_COMMANDS_H
#define LAWN_REDIS_COMMANDS_H

#include "module.h"

namespace lawn_redis
{

int count_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int drop_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int look_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int poll_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int pull_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int push_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int pushat_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int ttn_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int update_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);
int updateat_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

} // namespace lawn_redis

#endif
