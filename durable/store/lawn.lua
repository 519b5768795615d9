#!lua name=lawn
-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- The store's half of the durable tier: each function is one atomic step on the
-- keys of one shard. PROTOCOL, version 4
--
-- Keys of shard S of namespace N; all have the hash tag {N:S}. In a database
-- other than 0, its number comes before it, as in 3{N:S}:due: what is
-- remembered of a shard (shard.lua) goes by the names of its keys.
--
--   {N:S}:due     ZSET    id -> when it is due, microseconds since 1970
--   {N:S}:body    HASH    id -> body; a timer that is pending or delivered
--   {N:S}:meta    HASH    generation counter, limits, groups, counters, when the
--                         keys were made, and the number of shards that it was
--                         prepared for
--   {N:S}:out     STREAM  what has fired for the namespace's consumers
--   {N:S}:push    STREAM  what has fired for a target; lawnd's group reads it
--   {N:S}:dead    STREAM  dead letters
--   {N:S}:ended0, {N:S}:ended1
--                 HASH    id -> how it ended; filled in turn
--   {N:S}:cron    SET     ids of cron timers whose time after next is not known
--   {N:0}:config  HASH    what all clients must agree on
--   {N:0}:pumps   ZSET    pump -> when it was last heard of
--   {N:S}:wake    channel: a timer has become the first that is due; its time
--
-- A body, little-endian:
--
--   generation f64, due f64, attempt u16   the identity of a delivery, 18 bytes
--   flags u8                                here the tail begins
--   1:  token, 8 bytes
--   2:  max_attempts u16, backoff_min_ms u32, backoff_max_ms u32
--   4:  misfire u8 (0 fire, 1 skip, 2 coalesce), misfire_ms u32
--       misfire + 128: behind them what the start was answered, generation f64
--       and due f64, as it is no longer in the head; not by start
--   8:  every f64, microseconds
--   16: then f64, the next occurrence while this is tried again; not by start.
--       Of cron, and not after the due time: it is not known yet, and to be
--       looked for after `then`
--   32: next f64 (the occurrence after this, or 0), cron u8 + text, zone u8 +
--       text
--   64: target u16 + text
--   128: mark, 8 bytes: the update or the replay that has put it in place, so
--       that a repeat is known. Of a periodic timer, the first 4 are of its
--       start, and all its occurrences have them; the update has the others.
--       Not in the tail of a start
--   payload, the rest
--
-- An entry of a stream: `i` id, `b` the store's time when it fired f64 + body.
-- A dead letter has also `r` the reason and `l` the last error. An end: state
-- u8, identity, the time of the end f64, and if it has a token, that, and what
-- the start was answered, if the identity does not have it.
--
-- States: 0 unknown, 1 pending, 2 delivered, 3 success, 4 fail, 5 stopped,
-- 6 dead. Times are microseconds, integers; so are all numbers of replies, some
-- of which are packed like bodies.
--
-- FUNCTION, its keys: its arguments -> its reply
--
-- `shards` is the number of shards by lawn_open. Functions that have it as the
-- first argument answer with LAWN REOPEN if the shard is not prepared for it.
--
-- lawn_version: -> 5
-- lawn_open, config and meta of shard 0: shards (0: any), max_pending, max_bytes, keep_us,
--     keep_count, shards if nobody says how many
--     -> [shards, max_pending, max_bytes, keep_us, keep_count, why the user may
--     not publish or ""], as recorded by the first
-- lawn_prepare, due body meta: max_pending, max_bytes, keep_us, keep_count of
--     this shard, shards, when it was born as far as the caller knows, or 0
--     -> [born, when timers of it were lost or 0]; for each shard after
--     lawn_open, after a server came back empty, and now and then. The bounds
--     are the shard's shares of those of the namespace
-- lawn_look, due body meta out push cron: -> when timers were lost, or 0
-- lawn_acknowledge, due body meta out push cron: -> 1; what is lost by now is
--     not told any more
-- lawn_start, due body meta ended0 ended1: shards, for each: id, when, tail
--     -> [generation f64 + due f64 + now f64 + repeated u8 + state u8, or an
--     error, ..]
--     when: "+D" from now, or "T". A cron timer has its `next` in the tail.
--     The ended keys may be left out if no tail has a token.
-- lawn_stop, due body meta ended0 ended1: shards, id [, generation]
--     -> [state, generation]; 5: it is stopped, by this call or before. Of a
--     periodic timer, the generation is then above that of all that has fired
-- lawn_update, due body meta: shards, id, generation, when or "" [, payload]
--     -> [1, generation, due, now], also if the latest update was the same; or
--     [0, generation now or 0, state]
-- lawn_get, due body meta ended0 ended1: shards, id
--     -> [state, now, body or end or ""]
-- lawn_fire, due body meta out push ended0 ended1 cron: shards,
--     limit (1..500), horizon_us, count (1..64)
--     -> now f64 + cron timers to renew u32 + more u8 + times u8 + so many f64,
--     and of each that has fired, its due time f64. more: to call again at once,
--     as more is due or to be trimmed; times: the first that is due, if there is
--     one, and those after it until now + horizon; ascending, of the first
--     `count` timers
-- lawn_answer, due body meta STREAM ended0 ended1 dead: group, then for each:
--     entry, id, identity, verdict: "d" done | "f" + error |
--     "r" + delay_us + " " + deliveries of the entry + " " + error |
--     "w" + delay_us + " " + deliveries, the last of which is no attempt
--     -> a digit for each: 0 too late, or not of the first group; 1 taken; 2 dead
--     letter; 3 not tried again, as the next occurrence comes first, another
--     occurrence waits to be tried again, or the timer was updated; 4 no answer,
--     which changes nothing
-- lawn_take, due body meta STREAM ended0 ended1 dead: group, consumer,
--     lease_us, count (1..500) [, entry, ..]
--     -> [more 0|1, [[entry, deliveries, [fields]], ..]]: those whose lease is
--     over, now this consumer's, and whether to ask again at once for others;
--     or, of the entries, those that it has, given once more. Those that have
--     no attempt left become dead letters.
-- lawn_bury, due body meta STREAM ended0 ended1 dead: group, entry, .. -> how
--     many of them, which could not be read, have become dead letters; those of
--     another than the first group are acknowledged
-- lawn_release, STREAM: group, consumer, entry, .. -> how many of them it had;
--     their lease is over, and this delivery does not count
-- lawn_extend, STREAM: group, consumer, entry, .. -> those still its own
-- lawn_join, meta STREAM: group [, first]
--     -> first group of the stream; forgets names of consumers that have gone.
--     On shard 0 without `first`; its reply is
--     `first` for the others.
-- lawn_cron, body cron: count (1..500)
--     -> [removed, [[id, generation, after, expression, zone], ..]]: how many of
--     the SET needed no time and are in it no more; and for each of the others,
--     the first time of the expression after `after` is wanted by
-- lawn_renew, due body meta cron: id, generation, next, .. -> how many it took;
--     next 0: the expression has no further time, the timer ends with the next
-- lawn_replay, due body meta dead: shards, entry or "", id
--     -> [1, generation, due], also if there is a timer that was replayed; or
--     [0, 0, 0] if there is no such letter, or [0, generation, 0] if there is
--     another timer of its id
-- lawn_list, due body meta ended0 ended1 cron: state (1..6), cursor ("0"),
--     count
--     -> [cursor ("0" then: that was all), [[id, state, generation, due or end,
--     attempt], ..]]
-- lawn_count, due body cron: -> how many timers are pending
-- lawn_drain, meta: 0|1 -> 1; while it is 1, starts are refused with LAWN FULL
-- lawn_stats, due body meta out push dead cron: -> [name, number, ..]; of a
--     stream in flight: what the first group has not answered, given to it or
--     not
-- lawn_beat, pumps: pump, stay 0|1, alive_us -> [pumps that are alive, ..]
--
-- Errors of their own begin with LAWN and a word: INVALID argument, FULL,
-- SHARDS, VERSION, CORRUPT, REOPEN. An error has changed nothing: what can
-- fail, a key of a wrong type for one, is read before anything is written.

-- A library has no globals while it is loaded, so the first call sets these.
local call, try, byte, char, sub, find, format, concat
local pack, unpack_struct, band, floor

local function bind()
    call, try = redis.call, redis.pcall
    byte, char, sub, find = string.byte, string.char, string.sub, string.find
    format, concat = string.format, table.concat
    pack, unpack_struct = struct.pack, struct.unpack
    band, floor = bit.band, math.floor
end

local VERSION = 5
local MOST = 9e15        -- microseconds; an integer that a double holds
local HEAD = 18          -- bytes of an identity
local MAX_ID = 255
local MAX_PAYLOAD = 65536
local MAX_TARGET = 2048
local MAX_BATCH = 1000
local MAX_ATTEMPTS = 10  -- where the timer says nothing
local LEAST_EVERY = 10000 -- of a start; a call fires one occurrence of a timer
local MOST_MISSED = 10000 -- occurrences that are past at a start
local KEEP_US = 3600e6   -- where the namespace says nothing
local KEEP_COUNT = 100000
local CONSUMER_IDLE_MS = 3600000
local MOST_TRIMMED = 2 * MAX_BATCH -- entries by a call, which answers MAX_BATCH
local MOST_SKIMMED = 512 * 1024 -- bytes; of entries that are read to be counted,
local SKIMMED_AT_ONCE = 50      -- so many at once
local HELD_MS = 1000    -- an entry that is unanswered for so long holds up others,
local HELD_LENGTH = 10000 -- if the stream is longer than this

local PENDING, DELIVERED, SUCCESS, FAIL, STOPPED, DEAD = 1, 2, 3, 4, 5, 6
local TOKEN, RETRY, MISFIRE, EVERY, THEN, CRON, TARGET, MARK =
    1, 2, 4, 8, 16, 32, 64, 128
local SKIP, COALESCE = 1, 2
local ANSWERED = 128 -- in `misfire`

local function invalid(what)
    return redis.error_reply('LAWN INVALID ' .. what)
end

local function time()
    local t = call('TIME')
    return t[1] * 1000000 + t[2]
end

-- An integer of [least, most], or nil.
local function integer(text, least, most)
    local n = tonumber(text)
    if n and n >= least and n <= most and n % 1 == 0 then
        return n
    end
    return nil
end

local function id_is_valid(id)
    return #id <= MAX_ID and find(id, '^[\33-\126\128-\255]+$') ~= nil
end

-- The absolute time of "+D" and "T", or nil.
local function due_of(when, now)
    local n = integer(when, 0, MOST)
    if n and byte(when) == 43 then
        n = n + now
        return n <= MOST and n or nil
    end
    return n
end

local TYPES = {
    due = 'zset', body = 'hash', meta = 'hash', out = 'stream', push = 'stream',
    dead = 'stream', ended0 = 'hash', ended1 = 'hash', cron = 'set',
    config = 'hash', pumps = 'zset',
}

-- Redis says that a key is of a wrong type, but not which one. Returns a better
-- message, or nil if it is about something else.
local function name_wrong_key(message, keys)
    for _, key in ipairs(find(message, '^%-?WRONGTYPE') and keys or {}) do
        local wanted = TYPES[string.match(key, '[^:]*$')]
        local present = call('TYPE', key).ok
        if wanted and present ~= wanted and present ~= 'none' then
            return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' ..
                present .. ', not a ' .. wanted)
        end
    end
    return nil
end

-- Redis says what is wrong with what a key holds, but not which key that is.
-- What is wrong with its type, name_wrong_key() says. What the user may not do
-- is no fault of the key.
local function name_key(failure, key)
    local why = string.match(failure.err, '^%-?ERR (.*)')
    if not why or find(why, '[Uu]ser ') then
        return failure
    end
    return redis.error_reply('LAWN CORRUPT ' .. key .. ': ' .. why)
end

-- Registers a function that wants so many keys and arguments.
local function register(name, keys_wanted, args_least, args_most, flags, run)
    redis.register_function{
        function_name = name,
        flags = flags,
        callback = function(keys, args)
            if not call then
                bind()
            end
            if #keys < keys_wanted then
                return invalid(name .. ' wants ' .. keys_wanted .. ' keys')
            end
            if #args < args_least or #args > args_most then
                return invalid('number of arguments of ' .. name)
            end
            local is_run, reply = pcall(run, keys, args)
            if is_run and not (type(reply) == 'table' and reply.err) then
                return reply
            end
            local message = is_run and reply.err or tostring(reply)
            if not find(message, '^%-?%u+ ') then
                message = 'ERR ' .. message -- a fault of ours
            end
            return name_wrong_key(message, keys) or is_run and reply or
                redis.error_reply(message)
        end,
    }
end

-- The same for a function whose first argument is how many shards the caller
-- takes the namespace for, and whose third key is `meta`. If all was deleted,
-- and maybe another program has made the namespace anew, the caller must open
-- it again: nobody may look after a shard that it would write to.
local function register_of_shard(name, keys_wanted, args_least, args_most,
    flags, run)
    register(name, keys_wanted, args_least + 1, args_most + 1, flags,
        function(keys, args)
            local shards = table.remove(args, 1)
            if call('HGET', keys[3], 'shards') ~= shards then
                return redis.error_reply('LAWN REOPEN this is no shard of a ' ..
                    'namespace of ' .. sub(shards, 1, 10) .. ' shards')
            end
            return run(keys, args)
        end)
end

register('lawn_version', 0, 0, 0, {'no-writes', 'allow-stale'}, function()
    return VERSION
end)
