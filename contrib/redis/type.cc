// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The type of the keys: what Redis does with a value without knowing what is in
// it.
#include "module.h"

#include <new>

namespace lawn_redis
{

RedisModuleType *type;

Dehydrator *create_dehydrator()
{
    return new (RedisModule_Alloc(sizeof(Dehydrator))) Dehydrator;
}

namespace
{

constexpr int encoding = 1;

const Dehydrator *as_dehydrator(const void *value)
{
    return static_cast<const Dehydrator *>(value);
}

// Redis may call it in another thread.
void free_value(void *value)
{
    static_cast<Dehydrator *>(value)->~Dehydrator();
    RedisModule_Free(value);
}

// ---- A snapshot: the number of items, and of each TTL, due time, id, element.

void save(RedisModuleIO *rdb, void *value)
{
    const Dehydrator *const of = as_dehydrator(value);
    RedisModule_SaveUnsigned(rdb, of->count());
    of->for_each([rdb](const Item &item) {
        RedisModule_SaveUnsigned(rdb, item.ttl);
        RedisModule_SaveUnsigned(rdb, item.due);
        RedisModule_SaveStringBuffer(rdb, item.id.data, item.id.size);
        RedisModule_SaveStringBuffer(rdb, item.element.data, item.element.size);
    });
}

struct Loaded {
    RedisModuleIO *rdb;
    char *data;
    size_t size;

    explicit Loaded(RedisModuleIO *from)
        : rdb(from), data(RedisModule_LoadStringBuffer(from, &size))
    {
    }
    Loaded(const Loaded &) = delete;
    Loaded &operator=(const Loaded &) = delete;
    ~Loaded()
    {
        if (data) {
            RedisModule_Free(data);
        }
    }
    Text text() const
    {
        return {data, size};
    }
};

bool load_item(RedisModuleIO *rdb, Dehydrator *into)
{
    const uint64_t ttl = RedisModule_LoadUnsigned(rdb);
    const uint64_t due = RedisModule_LoadUnsigned(rdb);
    const Loaded id(rdb);
    if (RedisModule_IsIOError(rdb) || !id.data) {
        return false;
    }
    const Loaded element(rdb);
    return !RedisModule_IsIOError(rdb) && element.data && due <= latest &&
           ttl <= latest && into->add({due, ttl, id.text(), element.text()});
}

// NULL if it is not what save() writes, which is an error of whoever loads.
void *load(RedisModuleIO *rdb, int version)
{
    if (version != encoding) {
        RedisModule_LogIOError(rdb, "warning", "lawn: unknown encoding %d",
                               version);
        return nullptr;
    }
    const uint64_t count = RedisModule_LoadUnsigned(rdb);
    if (RedisModule_IsIOError(rdb) || count == 0) {
        return nullptr;
    }
    Dehydrator *const of = create_dehydrator();
    for (uint64_t i = 0; i < count; ++i) {
        if (!load_item(rdb, of)) {
            free_value(of);
            return nullptr;
        }
    }
    return of;
}

void rewrite(RedisModuleIO *aof, RedisModuleString *key, void *value)
{
    as_dehydrator(value)->for_each([aof, key](const Item &item) {
        RedisModule_EmitAOF(aof, "LAWN.PUSHAT", "slbbcl", key,
                            static_cast<long long>(item.due), item.id.data,
                            item.id.size, item.element.data, item.element.size,
                            "TTL", static_cast<long long>(item.ttl));
    });
}

// ---- The rest.

size_t memory_usage(RedisModuleKeyOptCtx *, const void *value, size_t samples)
{
    return as_dehydrator(value)->bytes(samples);
}

size_t free_effort(RedisModuleKeyOptCtx *, const void *value)
{
    return as_dehydrator(value)->count();
}

// TTLs are left out: they say where an element is filed, which may differ.
void digest(RedisModuleDigest *of, void *value)
{
    as_dehydrator(value)->for_each([of](const Item &item) {
        RedisModule_DigestAddStringBuffer(of, item.id.data, item.id.size);
        RedisModule_DigestAddStringBuffer(of, item.element.data,
                                          item.element.size);
        RedisModule_DigestAddLongLong(of, static_cast<long long>(item.due));
        RedisModule_DigestEndSequence(of);
    });
}

void *copy(RedisModuleKeyOptCtx *, const void *value)
{
    Dehydrator *const to = create_dehydrator();
    as_dehydrator(value)->for_each([to](const Item &item) { to->add(item); });
    return to;
}

// Returns whether Redis is to call again.
int defragment(RedisModuleDefragCtx *ctx, RedisModuleString *, void **value)
{
    unsigned long cursor = 0;
    RedisModule_DefragCursorGet(ctx, &cursor);
    const bool is_more = static_cast<Dehydrator *>(*value)->defragment(
        &cursor,
        [ctx](void *memory) {
            void *const now = RedisModule_DefragAlloc(ctx, memory);
            return now ? now : memory;
        },
        [ctx] { return RedisModule_DefragShouldStop(ctx) != 0; });
    if (is_more) {
        RedisModule_DefragCursorSet(ctx, cursor);
    }
    return is_more;
}

} // namespace

int create_type(RedisModuleCtx *ctx)
{
    RedisModuleTypeMethods methods = {};
    methods.version = REDISMODULE_TYPE_METHOD_VERSION;
    methods.rdb_load = load;
    methods.rdb_save = save;
    methods.aof_rewrite = rewrite;
    methods.digest = digest;
    methods.free = free_value;
    methods.defrag = defragment;
    methods.mem_usage2 = memory_usage;
    methods.free_effort2 = free_effort;
    methods.copy2 = copy;
    type = RedisModule_CreateDataType(ctx, "lawn-dehy", encoding, &methods);
    return type ? REDISMODULE_OK : REDISMODULE_ERR;
}

} // namespace lawn_redis
