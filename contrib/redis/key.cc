// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
#include "key.h"

#include <strings.h>

namespace lawn_redis
{

int wrong_type(RedisModuleCtx *ctx)
{
    return RedisModule_ReplyWithError(ctx, REDISMODULE_ERRORMSG_WRONGTYPE);
}

int reply_text(RedisModuleCtx *ctx, Text text)
{
    return RedisModule_ReplyWithStringBuffer(ctx, text.data, text.size);
}

bool get_ms(RedisModuleCtx *ctx, const RedisModuleString *string,
            const char *error, uint64_t *ms)
{
    long long value;
    if (RedisModule_StringToLongLong(string, &value) != REDISMODULE_OK ||
        value < 0 || value > static_cast<long long>(latest)) {
        RedisModule_ReplyWithError(ctx, error);
        return false;
    }
    *ms = static_cast<uint64_t>(value);
    return true;
}

bool is_word(const RedisModuleString *string, const char *word)
{
    const Text text = text_of(string);
    return text.size == strlen(word) &&
           strncasecmp(text.data, word, text.size) == 0;
}

bool get_ttl(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int at,
             uint64_t due, uint64_t *ttl)
{
    if (argc == at) {
        *ttl = due;
        return true;
    }
    if (argc == at + 2 && is_word(argv[at], "TTL")) {
        return get_ms(ctx, argv[at + 1], bad_ttl, ttl);
    }
    RedisModule_ReplyWithError(ctx, "ERR syntax error");
    return false;
}

} // namespace lawn_redis
