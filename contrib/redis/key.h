// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What all commands do: they open a key, and read their arguments.

#ifndef LAWN_REDIS_KEY_H
#define LAWN_REDIS_KEY_H

#include "module.h"

namespace lawn_redis
{

constexpr int writing = REDISMODULE_READ | REDISMODULE_WRITE;

// A key that a command is about.
class Key
{
public:
    Key(RedisModuleCtx *ctx, RedisModuleString *name, int mode)
        : ctx_(ctx), name_(name), key_(static_cast<RedisModuleKey *>(
                                      RedisModule_OpenKey(ctx, name, mode)))
    {
        // Without REDISMODULE_WRITE, a key that is missing is NULL.
        if (!key_ || RedisModule_KeyType(key_) == REDISMODULE_KEYTYPE_EMPTY) {
            return;
        }
        is_ours_ = RedisModule_ModuleTypeGetType(key_) == type;
        if (is_ours_) {
            of_ =
                static_cast<Dehydrator *>(RedisModule_ModuleTypeGetValue(key_));
        }
    }
    ~Key()
    {
        if (key_) {
            RedisModule_CloseKey(key_);
        }
    }
    Key(const Key &) = delete;
    Key &operator=(const Key &) = delete;

    bool is_ours() const
    {
        return is_ours_;
    }

    Dehydrator *get() const // NULL if there is no such key
    {
        return of_;
    }

    // For a key that is missing. An empty value must not stay.
    Dehydrator *make()
    {
        if (!of_) {
            of_ = create_dehydrator();
            RedisModule_ModuleTypeSetValue(key_, type, of_);
        }
        return of_;
    }

    // To be called at the end of a command that has changed the value, which
    // is closed then: who is told may delete it.
    void changed(const char *event)
    {
        const bool is_empty = of_->count() == 0;
        RedisModule_SignalModifiedKey(ctx_, name_);
        if (is_empty) {
            RedisModule_DeleteKey(key_);
        }
        RedisModule_CloseKey(key_);
        key_ = nullptr;
        of_ = nullptr;
        RedisModule_NotifyKeyspaceEvent(ctx_, REDISMODULE_NOTIFY_MODULE, event,
                                        name_);
        if (is_empty) {
            RedisModule_NotifyKeyspaceEvent(ctx_, REDISMODULE_NOTIFY_GENERIC,
                                            "del", name_);
        }
    }

private:
    RedisModuleCtx *ctx_;
    RedisModuleString *name_;
    RedisModuleKey *key_;
    Dehydrator *of_ = nullptr;
    bool is_ours_ = true; // or missing
};

int wrong_type(RedisModuleCtx *ctx);
int reply_text(RedisModuleCtx *ctx, Text text);

constexpr char bad_ttl[] = "ERR ttl-ms is not a number of milliseconds";
constexpr char bad_time[] = "ERR the time is not a number of milliseconds";

// A number of milliseconds. Replies with `error` if it is none.
bool get_ms(RedisModuleCtx *ctx, const RedisModuleString *string,
            const char *error, uint64_t *ms);

// In capitals or not.
bool is_word(const RedisModuleString *string, const char *word);

// [TTL ttl] at argv[at], and nothing else. Without it, any will do: elements of
// one time are in one FIFO.
bool get_ttl(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, int at,
             uint64_t due, uint64_t *ttl);

} // namespace lawn_redis

#endif
