// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The commands. Only the server that is written to decides that an element is
// due: replicas and the AOF are told what was added with its due time, and what
// was taken out by its id.
#include "commands.h"

#include "key.h"

namespace lawn_redis
{

namespace
{

// ---- In.

// A command that says the due time and the TTL is told to replicas as it is.
struct Times {
    uint64_t due;
    uint64_t ttl;
    RedisModuleString *ttl_text; // or NULL: the command has said both
};

int push(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *id,
         RedisModuleString *element, const Times &times)
{
    Key key(ctx, name, writing);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    if (!key.make()->add(
            {times.due, times.ttl, text_of(id), text_of(element)})) {
        return RedisModule_ReplyWithLongLong(ctx, 0);
    }
    if (times.ttl_text) {
        RedisModule_Replicate(ctx, "LAWN.PUSHAT", "slsscs", name,
                              static_cast<long long>(times.due), id, element,
                              "TTL", times.ttl_text);
    } else {
        RedisModule_ReplicateVerbatim(ctx);
    }
    key.changed("lawn.push");
    tell_waiting(ctx, name, times.due);
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

int update(RedisModuleCtx *ctx, RedisModuleString *name, RedisModuleString *id,
           const Times &times)
{
    Key key(ctx, name, writing);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    if (!key.get() || !key.get()->move(text_of(id), times.due, times.ttl)) {
        return RedisModule_ReplyWithLongLong(ctx, 0);
    }
    if (times.ttl_text) {
        RedisModule_Replicate(ctx, "LAWN.UPDATEAT", "sslcs", name, id,
                              static_cast<long long>(times.due), "TTL",
                              times.ttl_text);
    } else {
        RedisModule_ReplicateVerbatim(ctx);
    }
    key.changed("lawn.update");
    tell_waiting(ctx, name, times.due);
    return RedisModule_ReplyWithLongLong(ctx, 1);
}

uint64_t due_after(uint64_t ttl)
{
    const uint64_t now = now_ms();
    return ttl < latest - now ? now + ttl : latest;
}

// ---- Out.

// What has been taken out, for replicas and the AOF.
class Taken
{
public:
    Taken(RedisModuleCtx *ctx, RedisModuleString *key) : ctx_(ctx), key_(key)
    {
    }
    ~Taken()
    {
        tell();
    }
    Taken(const Taken &) = delete;
    Taken &operator=(const Taken &) = delete;

    void add(Text id)
    {
        ids_[count_++] = RedisModule_CreateString(nullptr, id.data, id.size);
        if (count_ == most) {
            tell();
        }
    }

private:
    static constexpr size_t most = 128;

    void tell()
    {
        if (count_ != 0) {
            RedisModule_Replicate(ctx_, "LAWN.DROP", "sv", key_, ids_, count_);
        }
        for (; count_ != 0; --count_) {
            RedisModule_FreeString(nullptr, ids_[count_ - 1]);
        }
    }

    RedisModuleCtx *ctx_;
    RedisModuleString *key_;
    RedisModuleString *ids_[most];
    size_t count_ = 0;
};

// Replies with up to `most` that are due, in the order in which they are.
// Returns false without a reply if there are none.
bool take_due(RedisModuleCtx *ctx, RedisModuleString *name, Key *key,
              uint64_t most)
{
    Dehydrator *const of = key->get();
    const uint64_t now = now_ms();
    if (!of || of->next() > now) {
        return false;
    }
    long taken = 0;
    {
        Taken ids(ctx, name);
        Item item;
        RedisModule_ReplyWithArray(ctx, REDISMODULE_POSTPONED_LEN);
        for (; of->count() != 0 && of->next() <= now && most != 0; --most) {
            of->first(&item);
            RedisModule_ReplyWithArray(ctx, 2);
            reply_text(ctx, item.id);
            reply_text(ctx, item.element);
            ids.add(item.id);
            of->remove_first();
            ++taken;
        }
        RedisModule_ReplySetArrayLength(ctx, taken);
    }
    key->changed("lawn.poll");
    return true;
}

struct PollOptions {
    uint64_t most;
    bool blocks;
    long long timeout;
};

bool get_poll_options(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                      PollOptions *options)
{
    *options = {UINT64_MAX, false, 0};
    for (int i = 2; i < argc; i += 2) {
        long long value;
        const bool is_count = is_word(argv[i], "COUNT");
        if (!is_count && !is_word(argv[i], "BLOCK")) {
            RedisModule_ReplyWithError(ctx, "ERR syntax error");
            return false;
        }
        if (i + 1 == argc ||
            RedisModule_StringToLongLong(argv[i + 1], &value) !=
                REDISMODULE_OK ||
            value < (is_count ? 1 : 0) ||
            value > static_cast<long long>(latest)) {
            RedisModule_ReplyWithError(
                ctx, is_count ? "ERR COUNT is not a positive number"
                              : "ERR BLOCK is not a number of milliseconds");
            return false;
        }
        if (is_count) {
            options->most = static_cast<uint64_t>(value);
        } else {
            // Redis adds it to its clock, and 0 is for ever.
            constexpr long long century = 100LL * 365 * 24 * 3600 * 1000;
            options->blocks = true;
            options->timeout = value < century ? value : 0;
        }
    }
    return true;
}

// Of a client that waits. Redis leaves it where it is if this returns an error.
int serve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    PollOptions options;
    if ((RedisModule_GetContextFlags(ctx) & REDISMODULE_CTX_FLAGS_READONLY) ||
        !get_poll_options(ctx, argv, argc, &options)) {
        return REDISMODULE_ERR;
    }
    // While clients are paused (CLIENT PAUSE, FAILOVER), Redis ends with an
    // assertion if something is taken out. So it is tried again.
    if (RedisModule_AvoidReplicaTraffic()) {
        constexpr uint64_t later_ms = 10;
        tell_waiting(ctx, argv[1], now_ms() + later_ms);
        return REDISMODULE_ERR;
    }
    Key key(ctx, argv[1], writing);
    if (!key.is_ours()) {
        return REDISMODULE_ERR;
    }
    if (take_due(ctx, argv[1], &key, options.most)) {
        return REDISMODULE_OK;
    }
    if (key.get()) {
        tell_waiting(ctx, argv[1], key.get()->next());
    }
    return REDISMODULE_ERR;
}

int give_up(RedisModuleCtx *ctx, RedisModuleString **, int)
{
    return RedisModule_ReplyWithNullArray(ctx);
}

} // namespace

int push_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    uint64_t ttl;
    if (argc != 5) {
        return RedisModule_WrongArity(ctx);
    }
    return get_ms(ctx, argv[2], bad_ttl, &ttl)
               ? push(ctx, argv[1], argv[3], argv[4],
                      {due_after(ttl), ttl, argv[2]})
               : REDISMODULE_OK;
}

int pushat_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    uint64_t due;
    uint64_t ttl;
    if (argc < 5) {
        return RedisModule_WrongArity(ctx);
    }
    return get_ms(ctx, argv[2], bad_time, &due) &&
                   get_ttl(ctx, argv, argc, 5, due, &ttl)
               ? push(ctx, argv[1], argv[3], argv[4], {due, ttl, nullptr})
               : REDISMODULE_OK;
}

int update_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    uint64_t ttl;
    if (argc != 4) {
        return RedisModule_WrongArity(ctx);
    }
    return get_ms(ctx, argv[3], bad_ttl, &ttl)
               ? update(ctx, argv[1], argv[2], {due_after(ttl), ttl, argv[3]})
               : REDISMODULE_OK;
}

int updateat_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    uint64_t due;
    uint64_t ttl;
    if (argc < 4) {
        return RedisModule_WrongArity(ctx);
    }
    return get_ms(ctx, argv[3], bad_time, &due) &&
                   get_ttl(ctx, argv, argc, 4, due, &ttl)
               ? update(ctx, argv[1], argv[2], {due, ttl, nullptr})
               : REDISMODULE_OK;
}

int poll_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    PollOptions options;
    if (argc < 2) {
        return RedisModule_WrongArity(ctx);
    }
    if (!get_poll_options(ctx, argv, argc, &options)) {
        return REDISMODULE_OK;
    }
    Key key(ctx, argv[1], writing);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    if (take_due(ctx, argv[1], &key, options.most)) {
        return REDISMODULE_OK;
    }
    if (!options.blocks) {
        return RedisModule_ReplyWithEmptyArray(ctx);
    }
    // In a transaction or a script nobody waits, as with Redis's own commands.
    if (RedisModule_GetContextFlags(ctx) &
        (REDISMODULE_CTX_FLAGS_DENY_BLOCKING | REDISMODULE_CTX_FLAGS_MULTI |
         REDISMODULE_CTX_FLAGS_LUA)) {
        return RedisModule_ReplyWithNullArray(ctx);
    }
    return wait_for(ctx, argv[1], options.timeout,
                    key.get() ? key.get()->next() : UINT64_MAX, serve, give_up);
}

int pull_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    Key key(ctx, argv[1], writing);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    Item item;
    if (!key.get() || !key.get()->find(text_of(argv[2]), &item)) {
        return RedisModule_ReplyWithNull(ctx);
    }
    reply_text(ctx, item.element);
    key.get()->remove(item.id);
    RedisModule_ReplicateVerbatim(ctx);
    key.changed("lawn.pull");
    return REDISMODULE_OK;
}

int drop_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc < 3) {
        return RedisModule_WrongArity(ctx);
    }
    Key key(ctx, argv[1], writing);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    long long dropped = 0;
    for (int i = 2; key.get() && i < argc; ++i) {
        dropped += key.get()->remove(text_of(argv[i]));
    }
    if (dropped != 0) {
        RedisModule_ReplicateVerbatim(ctx);
        key.changed("lawn.drop");
    }
    return RedisModule_ReplyWithLongLong(ctx, dropped);
}

// ---- Reading.

int look_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 3) {
        return RedisModule_WrongArity(ctx);
    }
    const Key key(ctx, argv[1], REDISMODULE_READ);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    Item item;
    return key.get() && key.get()->find(text_of(argv[2]), &item)
               ? reply_text(ctx, item.element)
               : RedisModule_ReplyWithNull(ctx);
}

int ttn_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    const Key key(ctx, argv[1], REDISMODULE_READ);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    if (!key.get()) {
        return RedisModule_ReplyWithLongLong(ctx, -1);
    }
    const uint64_t now = now_ms();
    const uint64_t next = key.get()->next();
    return RedisModule_ReplyWithLongLong(
        ctx, next > now ? static_cast<long long>(next - now) : 0);
}

int count_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2) {
        return RedisModule_WrongArity(ctx);
    }
    const Key key(ctx, argv[1], REDISMODULE_READ);
    if (!key.is_ours()) {
        return wrong_type(ctx);
    }
    return RedisModule_ReplyWithLongLong(ctx,
                                         key.get() ? key.get()->count() : 0);
}

} // namespace lawn_redis
