#!lua name=lawn
-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- The store's half of the durable tier: each function is one atomic step on the
-- keys of one shard. PROTOCOL, version 1
--
-- Keys of shard S of namespace N; all have the hash tag {N:S}:
--
--   {N:S}:due     ZSET    id -> when it is due, microseconds since 1970
--   {N:S}:body    HASH    id -> body; a timer that is pending or delivered
--   {N:S}:meta    HASH    generation counter, limits, groups, counters
--   {N:S}:out     STREAM  what has fired for the namespace's consumers
--   {N:S}:push    STREAM  what has fired for a target; lawnd's group reads it
--   {N:S}:dead    STREAM  dead letters
--   {N:S}:ended0, {N:S}:ended1
--                 HASH    id -> how it ended; filled in turn, the older is dropped
--   {N:S}:cron    SET     ids of cron timers whose time after next is not known
--   {N:0}:config  HASH    what all clients must agree on
--   {N:0}:pumps   ZSET    pump -> when it was last heard of
--   {N:S}:wake    channel: a timer has become the first that is due; its time
--
-- A body, little-endian:
--
--   generation f64, due f64, attempt u16    the identity of a delivery, 18 bytes
--   flags u8                                here the tail begins
--   1:  token, 8 bytes
--   2:  max_attempts u16, backoff_min_ms u32, backoff_max_ms u32
--   4:  misfire u8 (0 fire, 1 skip, 2 coalesce), misfire_ms u32
--   8:  every f64, microseconds
--   16: then f64, the next occurrence while this one is tried again; not by start
--   32: next f64 (the occurrence after this, or 0), cron u8 + text, zone u8 + text
--   64: target u16 + text
--   payload, the rest
--
-- An entry of a stream: `i` id, `b` the store's time when it fired f64 + body; a
-- dead letter has also `r` the reason and `l` the last error. An end: state u8,
-- identity, the time of the end f64, and the token, if it has one.
--
-- States: 0 unknown, 1 pending, 2 delivered, 3 success, 4 fail, 5 stopped,
-- 6 dead. Times are microseconds, integers; so are all numbers of replies.
--
-- FUNCTION, its keys: its arguments -> its reply
--
-- lawn_version: -> 1
-- lawn_open, config: shards (0: any), max_pending, max_bytes, keep_us, keep_count
--     -> [shards, max_pending, max_bytes, keep_us, keep_count], as recorded by
--     the first
-- lawn_prepare, meta: max_pending, max_bytes, keep_us, keep_count, of this shard
--     -> 1; once per shard after lawn_open, and after a server came back empty
-- lawn_start, due body meta ended0 ended1: id, when, tail
--     -> [generation, due, repeated 0|1, now, state]
--     when: "+D" from now, or "T". A cron timer has its `next` in the tail.
--     The ended keys may be left out if the tail has no token.
-- lawn_stop, due body meta ended0 ended1: id [, generation]
--     -> [state, generation]; 5: it is stopped, by this call or before
-- lawn_update, due body meta: id, generation, when or "" [, payload]
--     -> [1, generation, due, now], or [0, generation now or 0, state]
-- lawn_get, due body meta ended0 ended1: id
--     -> [state, now, body or end or ""]
-- lawn_fire, due body meta out push ended0 ended1 cron: limit (1..500),
--     horizon_us, count (1..64)
--     -> [now, fired, more 0|1, cron timers to renew, [due times]]: the first
--     time, if there is one, and those after it until now + horizon; ascending,
--     distinct, of the first `count` timers
-- lawn_answer, due body meta STREAM ended0 ended1 dead: group, then for each:
--     entry, id, identity, verdict: "d" done | "f" + error |
--     "r" + delay_us + " " + deliveries of the entry + " " + error |
--     "w" + delay_us, which is no attempt
--     -> [result, ..]: 0 too late, or not of the first group; 1 taken; 2 dead
--     letter; 3 not tried again, as the next occurrence comes first
-- lawn_take, due body meta STREAM ended0 ended1 dead: group, consumer, lease_us,
--     count (1..500)
--     -> [[entry, deliveries, [fields]], ..]: those whose lease is over, now this
--     consumer's. Those that have no attempt left become dead letters.
-- lawn_extend, STREAM: group, consumer, entry, ..  -> those that are still its own
-- lawn_join, meta STREAM: group [, first]
--     -> first group of the stream. On shard 0 without `first`; its reply is
--     `first` for the others.
-- lawn_cron, body cron: count (1..500)
--     -> [[id, generation, after, expression, zone], ..]: for each, the first
--     time of the expression after `after` is wanted by
-- lawn_renew, due body meta cron: id, generation, next, ..   -> how many it took;
--     next 0: the expression has no further time, the timer ends with the next
-- lawn_replay, due body meta dead: entry
--     -> [1, generation, due], or [0, 0, 0] if there is no such letter, or
--     [0, generation, 0] if there is a timer of its id
-- lawn_list, due body meta ended0 ended1: state (1..6), cursor ("0"), count
--     -> [cursor ("0" then: that was all), [[id, state, generation, due or end, attempt], ..]]
-- lawn_drain, meta: 0|1 -> 1; while it is 1, starts are refused with LAWN FULL
-- lawn_stats, due body meta out push dead cron: -> [name, number, ..]
-- lawn_beat, pumps: pump, stay 0|1, alive_us -> [pumps that are alive, ..]
--
-- Errors of their own begin with LAWN and a word: INVALID argument, FULL, SHARDS,
-- VERSION. An error has changed nothing: what can fail, a key of a wrong type for
-- one, is read before anything is written.

-- A library has no globals while it is loaded, so these are set by its first call.
local call, try, byte, char, sub, find, pack, unpack_struct, band, floor

local function bind()
    call, try = redis.call, redis.pcall
    byte, char, sub, find = string.byte, string.char, string.sub, string.find
    pack, unpack_struct = struct.pack, struct.unpack
    band, floor = bit.band, math.floor
end

local VERSION = 1
local MOST = 9e15        -- microseconds; an integer that a double holds
local HEAD = 18          -- bytes of an identity
local MAX_ID = 255
local MAX_PAYLOAD = 65536
local MAX_BATCH = 1000
local MAX_ATTEMPTS = 10  -- where the timer says nothing
local KEEP_US = 3600e6   -- where the namespace says nothing
local KEEP_COUNT = 100000

local PENDING, DELIVERED, SUCCESS, FAIL, STOPPED, DEAD = 1, 2, 3, 4, 5, 6
local TOKEN, RETRY, MISFIRE, EVERY, THEN, CRON, TARGET = 1, 2, 4, 8, 16, 32, 64
local SKIP, COALESCE = 1, 2

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
    return #id >= 1 and #id <= MAX_ID and not find(id, '[%z\1-\32\127]')
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

-- The options of a body or a tail whose flags are at `at`; nil if they are cut
-- short or make no sense. `payload` is where the payload begins.
local function parse(text, at)
    local flags = byte(text, at)
    if not flags or flags >= 128 then
        return nil
    end
    local o = {flags = flags}
    local p = at + 1
    local size = #text
    local function take(n)
        local from = p
        p = p + n
        return p <= size + 1 and sub(text, from, p - 1) or nil
    end
    local function take_text(format, n)
        local length = take(n)
        return length and take((unpack_struct(format, length)))
    end
    local function is_time(field, least)
        local n = field and unpack_struct('<d', field)
        return n and n >= least and n <= MOST and n % 1 == 0
    end
    if band(flags, TOKEN) ~= 0 then
        o.token = take(8)
        if not o.token then
            return nil
        end
    end
    if band(flags, RETRY) ~= 0 then
        o.retry = take(10)
        if not o.retry then
            return nil
        end
    end
    if band(flags, MISFIRE) ~= 0 then
        o.misfire = take(5)
        if not o.misfire or byte(o.misfire) > COALESCE then
            return nil
        end
    end
    if band(flags, EVERY) ~= 0 then
        o.every = take(8)
        if not is_time(o.every, 1000) or band(flags, CRON) ~= 0 then
            return nil
        end
    end
    if band(flags, THEN) ~= 0 then
        o.after = take(8)
        if not is_time(o.after, 1) or band(flags, EVERY + CRON) == 0 then
            return nil
        end
    end
    if band(flags, CRON) ~= 0 then
        o.next = take(8)
        local from = p
        o.expression = take_text('B', 1)
        o.zone = o.expression and take_text('B', 1)
        if not is_time(o.next, 0) or not o.zone then
            return nil
        end
        o.cron = sub(text, from, p - 1)
    end
    if band(flags, TARGET) ~= 0 then
        local from = p
        if not take_text('<H', 2) then
            return nil
        end
        o.target = sub(text, from, p - 1)
    end
    o.payload = p
    return o
end

-- A tail of the options `o` and a payload.
local function tail_of(o, payload)
    local flags = (o.token and TOKEN or 0) + (o.retry and RETRY or 0) +
        (o.misfire and MISFIRE or 0) + (o.every and EVERY or 0) +
        (o.after and THEN or 0) + (o.cron and CRON or 0) +
        (o.target and TARGET or 0)
    return char(flags) .. (o.token or '') .. (o.retry or '') ..
        (o.misfire or '') .. (o.every or '') .. (o.after or '') ..
        (o.cron and o.next .. o.cron or '') .. (o.target or '') .. payload
end

local function head(generation, due, attempt)
    return pack('<ddH', generation, due, attempt)
end

-- Whether it can be taken for a body at all.
local function body_is_whole(body)
    return #body > HEAD
end

local function is_periodic(body)
    return band(byte(body, HEAD + 1), EVERY + CRON) ~= 0
end

local function token_of(body)
    return byte(body, HEAD + 1) % 2 == 1 and sub(body, HEAD + 2, HEAD + 9) or ''
end

local function generation_of(body)
    return (unpack_struct('<d', body))
end

local function attempt_of(body)
    return (unpack_struct('<H', body, 17))
end

local function attempts_of(body)
    local flags = byte(body, HEAD + 1)
    if band(flags, RETRY) ~= 0 then
        local at = HEAD + 2 + (band(flags, TOKEN) ~= 0 and 8 or 0)
        local n = #body >= at + 1 and unpack_struct('<H', body, at) or 0
        if n > 0 then
            return n
        end
    end
    return MAX_ATTEMPTS
end

-- What a body counts for the bound on bytes: its payload and options.
local function bytes_of(body)
    return body and #body - HEAD - 1 or 0
end

-- The timer `id` is due; wakes the pumps if it is the first now.
local function arm(due_key, id, due)
    if call('ZRANGE', due_key, 0, 0)[1] == id then
        call('PUBLISH', sub(due_key, 1, -4) .. 'wake', due)
    end
end

-- How ends are kept: two tables, of which one is filled; when that is old or
-- full, the other is dropped and filled. So a record stays for keep_us, unless
-- there are more than keep_count of them, and dropping costs nothing.
-- Returns the one to fill; call it before anything is written.
local function ended_key(meta, ended0, ended1, now)
    local m = call('HMGET', meta, 'cur', 'since', 'keep_us', 'keep_count')
    local cur, other = ended0, ended1
    if m[1] == '1' then
        cur, other = ended1, ended0
    end
    local count = call('HLEN', cur)
    if count == 0 then
        call('HSET', meta, 'cur', m[1] or '0', 'since', now)
    elseif count >= (tonumber(m[4]) or KEEP_COUNT) or
        now - (tonumber(m[2]) or 0) > (tonumber(m[3]) or KEEP_US) then
        call('UNLINK', other)
        call('HSET', meta, 'cur', m[1] == '1' and '0' or '1', 'since', now)
        return other
    end
    return cur
end

local function end_record(state, body, now)
    return char(state) .. sub(body, 1, HEAD) .. pack('<d', now) ..
        token_of(body)
end

-- How `id` ended, or nil.
local function find_end(meta, ended0, ended1, id)
    if call('HGET', meta, 'cur') == '1' then
        ended0, ended1 = ended1, ended0
    end
    local record = call('HGET', ended0, id) or call('HGET', ended1, id)
    return record and #record >= HEAD + 9 and record or nil
end

-- Adds to the counters of meta, given as name and number in turn.
local function count(meta, counts)
    for name, n in next, counts do
        if n ~= 0 then
            call('HINCRBY', meta, name, n)
        end
    end
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
            return run(keys, args)
        end,
    }
end

register('lawn_version', 0, 0, 0, {'no-writes', 'allow-stale'}, function()
    return VERSION
end)

-- NAMESPACES

local limits = {'max_pending', 'max_bytes', 'keep_us', 'keep_count'}

register('lawn_open', 1, 5, 5, {}, function(keys, args)
    local wanted = {}
    for i = 1, 5 do
        wanted[i] = integer(args[i], 0, i == 1 and 16384 or MOST)
        if not wanted[i] then
            return invalid(i == 1 and 'shards' or limits[i - 1])
        end
    end
    local m = call('HMGET', keys[1], 'format', 'shards', unpack(limits))
    if m[1] and m[1] ~= '1' then
        return redis.error_reply('LAWN VERSION the namespace has format ' ..
            sub(m[1], 1, 20) .. ', this library knows 1')
    end
    local shards = integer(m[2] or '', 1, 16384)
    if not shards then
        shards = wanted[1] > 0 and wanted[1] or 8
        wanted[4] = wanted[4] > 0 and wanted[4] or KEEP_US
        wanted[5] = wanted[5] > 0 and wanted[5] or KEEP_COUNT
        call('HSET', keys[1], 'format', 1, 'shards', shards,
            'max_pending', wanted[2], 'max_bytes', wanted[3],
            'keep_us', wanted[4], 'keep_count', wanted[5])
        return {shards, wanted[2], wanted[3], wanted[4], wanted[5]}
    end
    if wanted[1] > 0 and wanted[1] ~= shards then
        return redis.error_reply('LAWN SHARDS the namespace has ' .. shards ..
            ' shards, not ' .. wanted[1])
    end
    return {shards, tonumber(m[3]) or 0, tonumber(m[4]) or 0,
        tonumber(m[5]) or KEEP_US, tonumber(m[6]) or KEEP_COUNT}
end)

register('lawn_prepare', 1, 4, 4, {'allow-oom'}, function(keys, args)
    local present = call('HMGET', keys[1], unpack(limits))
    for i = 1, 4 do
        local wanted = integer(args[i], 0, MOST)
        if not wanted then
            return invalid(limits[i])
        end
        -- Without a bound there is no field, and a start reads less.
        if wanted > 0 and tonumber(present[i]) ~= wanted then
            call('HSET', keys[1], limits[i], wanted)
        elseif wanted == 0 and present[i] then
            call('HDEL', keys[1], limits[i])
        end
    end
    return 1
end)

register('lawn_beat', 1, 3, 3, {'allow-oom'}, function(keys, args)
    local alive = integer(args[3], 1, MOST)
    if not id_is_valid(args[1]) or not alive then
        return invalid('pump or time')
    end
    local now = time()
    if args[2] == '1' then
        call('ZADD', keys[1], now, args[1])
    else
        call('ZREM', keys[1], args[1])
    end
    -- One whose time is to come has a clock that has stepped back since.
    call('ZREMRANGEBYSCORE', keys[1], '-inf', now - alive)
    call('ZREMRANGEBYSCORE', keys[1], now + alive, '+inf')
    return call('ZRANGE', keys[1], 0, -1)
end)

-- OPERATIONS

-- The reply for a start that was there before, with this token; or nil.
local function repeated(keys, id, old, token, now)
    if old and body_is_whole(old) then
        if token_of(old) == token then
            local generation, due = unpack_struct('<dd', old)
            local pending = call('ZSCORE', keys[1], id)
            return {generation, due, 1, now, pending and PENDING or DELIVERED}
        end
    elseif keys[5] then
        local record = find_end(keys[3], keys[4], keys[5], id)
        if record and sub(record, HEAD + 10) == token then
            local generation, due = unpack_struct('<dd', record, 2)
            return {generation, due, 1, now, byte(record)}
        end
    end
    return nil
end

-- Puts in place a timer with this tail, instead of the body `old`, if there is
-- one, and returns the generation; or nil and an error.
local function put(keys, id, old, due, attempt, tail)
    local meta = keys[3]
    local m = call('HMGET', meta, 'gen', 'bytes', 'max_pending', 'max_bytes',
        'draining')
    local more = #tail - 1 - bytes_of(old)
    local bytes = (tonumber(m[2]) or 0) + more
    if m[5] and not old then
        return nil, redis.error_reply('LAWN FULL the namespace is being drained')
    elseif m[3] and not old and
        call('HLEN', keys[2]) >= (tonumber(m[3]) or 0) then
        return nil, redis.error_reply(
            'LAWN FULL as many timers are pending as the namespace may have')
    end
    if m[4] and more > 0 and bytes > (tonumber(m[4]) or 0) then
        return nil, redis.error_reply(
            'LAWN FULL the payloads have as many bytes as the namespace may have')
    end
    local generation = (tonumber(m[1]) or 0) + 1
    call('ZADD', keys[1], due, id)
    call('HSET', keys[2], id, head(generation, due, attempt) .. tail)
    call('HSET', meta, 'gen', generation, 'bytes', bytes)
    arm(keys[1], id, due)
    return generation
end

register('lawn_start', 3, 3, 3, {}, function(keys, args)
    local id, tail = args[1], args[3]
    if not id_is_valid(id) then
        return invalid('id')
    end
    local payload, token = 2, nil
    if byte(tail) ~= 0 then
        local o = parse(tail, 1)
        if not o or o.after then
            return invalid('options')
        end
        payload, token = o.payload, o.token
    end
    if #tail - payload + 1 > MAX_PAYLOAD then
        return invalid('payload of more than 65536 bytes')
    end
    local now = time()
    local due = due_of(args[2], now)
    if not due then
        return invalid('time')
    end
    local old = call('HGET', keys[2], id)
    local reply = token and repeated(keys, id, old, token, now)
    if reply then
        return reply
    end
    local generation, failure = put(keys, id, old, due, 1, tail)
    if failure then
        return failure
    end
    return {generation, due, 0, now, PENDING}
end)

register('lawn_stop', 5, 1, 2, {'allow-oom'}, function(keys, args)
    local id = args[1]
    local body = call('HGET', keys[2], id)
    if not body then
        local record = find_end(keys[3], keys[4], keys[5], id)
        if not record then
            return {0, 0}
        end
        return {byte(record), (unpack_struct('<d', record, 2))}
    end
    local pending = call('ZSCORE', keys[1], id)
    if not body_is_whole(body) then
        body = head(0, 0, 1) .. '\0'
    end
    local generation = generation_of(body)
    if args[2] and tonumber(args[2]) ~= generation then
        return {pending and PENDING or DELIVERED, generation}
    end
    -- A cron timer whose next time is not known yet will fire again, too.
    if not pending and not is_periodic(body) then
        return {DELIVERED, generation}
    end
    local now = time()
    local ended = ended_key(keys[3], keys[4], keys[5], now)
    call('ZREM', keys[1], id)
    call('HDEL', keys[2], id)
    call('HSET', ended, id, end_record(STOPPED, body, now))
    count(keys[3], {bytes = -bytes_of(body), stopped = 1})
    return {STOPPED, generation}
end)

register('lawn_update', 3, 3, 4, {}, function(keys, args)
    local id, payload = args[1], args[4]
    local now = time()
    local due = args[3] ~= '' and due_of(args[3], now) or nil
    if args[3] ~= '' and not due then
        return invalid('time')
    end
    if payload and #payload > MAX_PAYLOAD then
        return invalid('payload of more than 65536 bytes')
    end
    local body = call('HGET', keys[2], id)
    local o = body and parse(body, HEAD + 1)
    if not o then
        return {0, 0, 0}
    end
    local generation = generation_of(body)
    local pending = call('ZSCORE', keys[1], id)
    if generation ~= tonumber(args[2]) or not pending then
        return {0, generation, pending and PENDING or DELIVERED}
    end
    if due and o.cron then
        return invalid('time: that of a cron timer is in its expression')
    end
    if not due then
        due = (unpack_struct('<d', body, 9))
    end
    local failure
    generation, failure = put(keys, id, body, due, attempt_of(body),
        tail_of(o, payload or sub(body, o.payload)))
    if failure then
        return failure
    end
    return {1, generation, due, now}
end)

register('lawn_get', 5, 1, 1, {'no-writes'}, function(keys, args)
    local id = args[1]
    local now = time()
    local body = call('HGET', keys[2], id)
    if body then
        local pending = call('ZSCORE', keys[1], id)
        return {pending and PENDING or DELIVERED, now, body}
    end
    local record = find_end(keys[3], keys[4], keys[5], id)
    if record then
        return {byte(record), now, record}
    end
    return {0, now, ''}
end)

-- STREAMS

local function group_field(stream)
    return sub(stream, -5) == ':push' and 'group_push' or 'group_out'
end

local function is_before(a, b)
    local a1, a2 = string.match(a, '^(%d+)-(%d+)$')
    local b1, b2 = string.match(b, '^(%d+)-(%d+)$')
    a1, a2, b1, b2 = tonumber(a1), tonumber(a2), tonumber(b1), tonumber(b2)
    return a1 < b1 or (a1 == b1 and a2 < b2)
end

-- The least entry that `group` has not answered, or one before it. `info` is
-- what XINFO GROUPS says of it.
local function oldest_wanted(stream, info)
    if info.pending > 0 then
        return call('XPENDING', stream, info.name)[2]
    end
    return info['last-delivered-id']
end

-- What the first group has answered goes; while there are other groups, only
-- what they have answered too, or what is beyond `keep_count`.
local function trim_stream(meta, stream)
    local m = call('HMGET', meta, group_field(stream), 'keep_count')
    local length = call('XLEN', stream)
    if not m[1] or length == 0 then
        return
    end
    local first, least
    for _, fields in ipairs(call('XINFO', 'GROUPS', stream)) do
        local info = {}
        for i = 1, #fields, 2 do
            info[fields[i]] = fields[i + 1]
        end
        local oldest = oldest_wanted(stream, info)
        if info.name == m[1] then
            first = oldest
        end
        if not least or is_before(oldest, least) then
            least = oldest
        end
    end
    if not first then
        return
    end
    local excess = length - (tonumber(m[2]) or KEEP_COUNT)
    if excess > 0 and is_before(least, first) then
        local old = call('XRANGE', stream, '-', '+', 'COUNT',
            math.min(excess, MAX_BATCH))
        least = old[#old][1]
        if is_before(first, least) then
            least = first
        end
    end
    call('XTRIM', stream, 'MINID', '~', least, 'LIMIT', 0)
end

-- Trims once a second. The memory of when need not outlive the server. Should it
-- fail, as the key may be of another type, then others will say so.
local trimmed = {}
local function trim(meta, stream, now)
    local last = trimmed[stream]
    if not last or now - last >= 1000000 or now < last then
        trimmed[stream] = now
        pcall(trim_stream, meta, stream)
    end
end

register('lawn_join', 2, 1, 2, {'allow-oom'}, function(keys, args)
    local group, first = args[1], args[2]
    if not id_is_valid(group) or (first and not id_is_valid(first)) then
        return invalid('group')
    end
    local field = group_field(keys[2])
    local known = call('HGET', keys[1], field)
    local made = try('XGROUP', 'CREATE', keys[2], group, '0', 'MKSTREAM')
    if made.err and not find(made.err, '^%-?BUSYGROUP') then
        return made
    end
    if first and first ~= known then
        call('HSET', keys[1], field, first)
        return first
    end
    if not known then
        call('HSET', keys[1], field, group)
    end
    return known or group
end)

-- FIRING

-- The misfire policy, and from how late on an occurrence is not wanted.
local function policy_of(o)
    if not o.misfire then
        return 0, 0
    end
    return byte(o.misfire), unpack_struct('<I', o.misfire, 2) * 1000
end

-- The occurrence of a periodic timer after the one that was due at `due`, and
-- how many were missed between. 0 if it is not known yet; then, the time after
-- which it is to be looked for.
local function next_occurrence(o, due, now)
    local policy, slack = policy_of(o)
    local due_next
    if o.after then
        due_next = (unpack_struct('<d', o.after))
    elseif o.cron then
        due_next = (unpack_struct('<d', o.next))
    else
        due_next = due + unpack_struct('<d', o.every)
    end
    local least = due_next
    if policy == COALESCE then
        least = now + 1
    elseif policy == SKIP then
        least = now - slack
    end
    if due_next == 0 then
        return 0, 0, due
    elseif due_next >= least then
        return due_next, 0
    elseif o.cron then
        return 0, 1, least - 1
    end
    local every = unpack_struct('<d', o.every)
    local missed = math.ceil((least - due_next) / every)
    return due_next + missed * every, missed
end

-- Starts the next occurrence of a periodic timer. One of cron whose time is not
-- known is in no ZSET, but in the SET, and begins its search after its `due`.
local function rearm(f, id, body, o)
    local due, missed, after =
        next_occurrence(o, (unpack_struct('<d', body, 9)), f.now)
    f.missed = f.missed + missed
    if o.cron and (due == 0 or not o.after) then
        o.next = pack('<d', 0)
        call('SADD', f.cron, id)
    end
    o.after = nil
    f.gen = (f.gen or tonumber(call('HGET', f.meta, 'gen')) or 0) + 1
    call('HSET', f.body, id, head(f.gen, due > 0 and due or after, 1) ..
        tail_of(o, sub(body, o.payload)))
    if due > 0 then
        call('ZADD', f.due, due, id)
    end
end

-- Fires a timer with options: an error, or nil.
local function fire_one(f, id, body)
    local o = parse(body, HEAD + 1)
    if not o then
        f.corrupt = f.corrupt + 1
        return nil
    end
    local policy, slack = policy_of(o)
    local late = f.now - unpack_struct('<d', body, 9)
    local is_missed = policy == SKIP and late > slack and attempt_of(body) == 1
    if not is_missed then
        local added = try('XADD', o.target and f.push or f.out, '*', 'i', id,
            'b', f.stamp .. body)
        if added.err then
            return added
        end
        f.fired = f.fired + 1
    else
        f.missed = f.missed + 1
    end
    if o.every or o.cron then
        f.periodic[#f.periodic + 1] = {id, body, o}
    elseif is_missed then
        f.gone[#f.gone + 1] = id
        f.ends[#f.ends + 1] = id
        f.ends[#f.ends + 1] = end_record(FAIL, body, f.now)
        f.bytes = f.bytes - bytes_of(body)
    end
    return nil
end

-- Fires ids[i] with bodies[i], in turn, until one fails: how many, and an error.
local function fire_all(f, ids, bodies)
    local out, stamp = f.out, f.stamp
    for i = 1, #ids do
        local body = bodies[i]
        local flags = body and byte(body, HEAD + 1)
        local failure
        if flags and flags < MISFIRE then
            local added = try('XADD', out, '*', 'i', ids[i], 'b', stamp .. body)
            if added.err then
                failure = added
            else
                f.fired = f.fired + 1
            end
        elseif flags then
            failure = fire_one(f, ids[i], body)
        else
            f.corrupt = f.corrupt + 1
        end
        if failure then
            return i - 1, failure
        end
    end
    return #ids
end

-- The reply: [now, fired, more, cron timers, [due times]].
local function upcoming(f, horizon, most, waiting)
    local list = call('ZRANGE', f.due, 0, most - 1, 'WITHSCORES')
    local times = {}
    local limit = f.now + horizon
    for i = 2, #list, 2 do
        local due = tonumber(list[i])
        if #times > 0 and due > limit then
            break
        end
        if due ~= times[#times] then
            times[#times + 1] = due
        end
    end
    local more = times[1] and times[1] <= f.now and 1 or 0
    return {f.now, f.fired, more, waiting, times}
end

register('lawn_fire', 8, 3, 3, {'allow-oom'}, function(keys, args)
    local limit = integer(args[1], 1, 500)
    local horizon = integer(args[2], 0, MOST)
    local most = integer(args[3], 1, 64)
    if not limit or not horizon or not most then
        return invalid('limit, horizon or count')
    end
    local now = time()
    local f = {
        due = keys[1], body = keys[2], meta = keys[3], out = keys[4],
        push = keys[5], cron = keys[8], now = now, stamp = pack('<d', now),
        fired = 0, missed = 0, corrupt = 0, bytes = 0,
        periodic = {}, gone = {}, ends = {},
    }
    local ids = call('ZRANGE', f.due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
    local waiting = call('SCARD', f.cron)
    if #ids == 0 then
        return upcoming(f, horizon, most, waiting)
    end
    local before = call('HGET', f.meta, 'gen')
    local done, failure = fire_all(f, ids, call('HMGET', f.body, unpack(ids)))
    if done > 0 then
        call('ZREMRANGEBYRANK', f.due, 0, done - 1)
        for _, p in ipairs(f.periodic) do
            rearm(f, p[1], p[2], p[3])
        end
        if f.gen and f.gen ~= before then
            call('HSET', f.meta, 'gen', f.gen)
        end
        if #f.gone > 0 then
            call('HDEL', f.body, unpack(f.gone))
            -- Without its record a missed timer is unknown, but not fired again.
            local known, key = pcall(ended_key, f.meta, keys[6], keys[7], now)
            if known then
                call('HSET', key, unpack(f.ends))
            end
        end
        count(f.meta, {fired = f.fired, missed = f.missed, corrupt = f.corrupt,
            bytes = f.bytes})
        trim(f.meta, f.out, now)
        trim(f.meta, f.push, now)
        waiting = call('SCARD', f.cron)
    elseif failure then
        return failure
    end
    return upcoming(f, horizon, most, waiting)
end)

-- ANSWERS

local function add_dead(dead, id, now, body, reason, message)
    call('XADD', dead, '*', 'i', id, 'b', pack('<d', now) .. body,
        'r', reason, 'l', sub(message, 1, 1024))
end

-- What answers change, kept until all have been looked at.
local function new_changes(keys, now)
    return {
        due = keys[1], body = keys[2], meta = keys[3], dead = keys[7],
        now = now, gone = {}, ends = {}, counts = {bytes = 0},
        ended = ended_key(keys[3], keys[5], keys[6], now),
    }
end

local function add_count(c, name)
    c.counts[name] = (c.counts[name] or 0) + 1
end

local function finish(c, id, body, state, name)
    local n = #c.gone + 1
    c.gone[n] = id
    c.ends[2 * n - 1] = id
    c.ends[2 * n] = end_record(state, body, c.now)
    c.counts.bytes = c.counts.bytes - bytes_of(body)
    c.counts[name] = (c.counts[name] or 0) + 1
end

local function apply(c)
    if #c.gone > 0 then
        call('HDEL', c.body, unpack(c.gone))
        call('HSET', c.ended, unpack(c.ends))
    end
    count(c.meta, c.counts)
end

-- "r<delay_us> <deliveries> <error>" -> delay, deliveries, error. What waits,
-- "w<delay_us>", was not tried.
local function parse_retry(verdict)
    local delay, deliveries, message =
        string.match(verdict, '^r(%d+) (%d+) ?(.*)$')
    if not delay then
        delay, deliveries, message = string.match(verdict, '^w(%d+)$'), '0', ''
    end
    delay = delay and integer(delay, 0, MOST)
    deliveries = deliveries and integer(deliveries, 0, 65535)
    if not delay or not deliveries then
        return nil
    end
    return delay, deliveries, message
end

local function retry_at(c, id, body, due)
    call('ZADD', c.due, due, id)
    call('HSET', c.body, id, body)
    arm(c.due, id, due)
    add_count(c, 'retried')
end

-- The result, and the body that the timer has now; false if it has none.
local function retry(c, id, body, verdict)
    local delay, deliveries, message = parse_retry(verdict)
    local attempt = attempt_of(body) + deliveries
    if attempt > attempts_of(body) then
        add_dead(c.dead, id, c.now, body, 'attempts', message)
        finish(c, id, body, DEAD, 'dead')
        return 2, false
    end
    local due = math.min(c.now + delay, MOST)
    body = head(generation_of(body), due, attempt) .. sub(body, HEAD + 1)
    retry_at(c, id, body, due)
    return 1, body
end

-- The occurrence `identity` of a periodic timer, whose body is that of the next.
local function retry_occurrence(c, id, body, identity, verdict)
    local delay, deliveries, message = parse_retry(verdict)
    local attempt = attempt_of(identity) + deliveries
    if attempt > attempts_of(body) then
        add_dead(c.dead, id, c.now, identity .. sub(body, HEAD + 1), 'attempts',
            message)
        add_count(c, 'dead')
        return 2, body
    end
    local due = c.now + delay
    local due_next = (unpack_struct('<d', body, 9))
    local o = parse(body, HEAD + 1)
    if not o or o.after or due >= due_next or not call('ZSCORE', c.due, id) then
        add_count(c, 'superseded')
        return 3, body
    end
    o.after = pack('<d', due_next)
    body = head(generation_of(identity), due, attempt) ..
        tail_of(o, sub(body, o.payload))
    retry_at(c, id, body, due)
    return 1, body
end

local function is_verdict(verdict)
    local kind = byte(verdict)
    return verdict == 'd' or kind == 102 or parse_retry(verdict) ~= nil
end

-- The arguments of lawn_answer as lists; nil and an error if they are wrong.
local function parse_answers(args)
    local n = (#args - 1) / 4
    if n % 1 ~= 0 or n < 1 or n > MAX_BATCH then
        return nil, invalid('number of arguments of lawn_answer')
    end
    local entries, ids = {}, {}
    for i = 1, n do
        local at = 4 * i - 2
        entries[i], ids[i] = args[at], args[at + 1]
        if #args[at + 2] ~= HEAD or not is_verdict(args[at + 3]) then
            return nil, invalid('answer')
        end
    end
    return entries, ids
end

-- One answer, whose entry is acknowledged: the result, and the body now.
local function answer(c, id, body, identity, verdict)
    local kind = byte(verdict)
    if kind == 100 then
        finish(c, id, body, SUCCESS, 'success')
        return 1, false
    elseif kind == 102 then
        finish(c, id, body, FAIL, 'fail')
        return 1, false
    end
    return retry(c, id, body, verdict)
end

local function answer_occurrence(c, id, body, identity, verdict)
    local kind = byte(verdict)
    if kind == 100 or kind == 102 then
        add_count(c, kind == 100 and 'success' or 'fail')
        return 1, body
    end
    return retry_occurrence(c, id, body, identity, verdict)
end

register('lawn_answer', 7, 5, 1 + 4 * MAX_BATCH, {'allow-oom'},
    function(keys, args)
        local stream, group = keys[4], args[1]
        local entries, ids = parse_answers(args)
        if not entries then
            return ids
        end
        local results = {}
        if call('HGET', keys[3], group_field(stream)) ~= group then
            call('XACK', stream, group, unpack(entries))
            for i = 1, #ids do
                results[i] = 0
            end
            return results
        end
        local now = time()
        local bodies = call('HMGET', keys[2], unpack(ids))
        call('ZCARD', keys[1])
        call('XLEN', keys[7])
        local c = new_changes(keys, now)
        -- How many of a batch are acknowledged says nothing of one; but a timer
        -- is answered once in any case, for its body then is gone or another.
        -- Only an occurrence of a periodic timer leaves no such trace.
        local acks = {}
        for i = 1, #ids do
            local body = bodies[i]
            if not (body and body_is_whole(body) and is_periodic(body)) then
                acks[#acks + 1] = entries[i]
            end
        end
        if #acks > 0 then
            call('XACK', stream, group, unpack(acks))
        end
        local changed = {}
        for i = 1, #ids do
            local id, identity = ids[i], args[4 * i]
            local verdict = args[4 * i + 1]
            local body = changed[id]
            if body == nil then
                body = bodies[i]
            end
            local result = 0
            if body and body_is_whole(body) then
                local same = sub(body, 1, HEAD) == identity
                if not is_periodic(body) then
                    if same then
                        result, changed[id] =
                            answer(c, id, body, identity, verdict)
                    end
                elseif try('XACK', stream, group, entries[i]) == 1 and
                    not same then
                    result, changed[id] =
                        answer_occurrence(c, id, body, identity, verdict)
                end
            end
            results[i] = result
        end
        apply(c)
        trim(keys[3], stream, now)
        return results
    end)

-- The body in the fields of an entry, and the id; nil if it is no entry of ours.
local function body_in(fields)
    local id, text
    for i = 1, #fields, 2 do
        if fields[i] == 'i' then
            id = fields[i + 1]
        elseif fields[i] == 'b' then
            text = fields[i + 1]
        end
    end
    if id and text and #text > 8 + HEAD then
        return sub(text, 9), id
    end
    return nil
end

-- An entry that was delivered too often, or cannot be read.
local function bury(c, stream, group, entry, fields)
    local body, id = body_in(fields)
    if try('XACK', stream, group, entry) ~= 1 then
        return
    elseif not body then
        add_count(c, 'corrupt')
        call('XADD', c.dead, '*', unpack(fields))
        return
    end
    local present = call('HGET', c.body, id)
    if present and sub(present, 1, HEAD) == sub(body, 1, HEAD) then
        add_dead(c.dead, id, c.now, body, 'lease', 'not answered')
        finish(c, id, present, DEAD, 'dead')
    elseif present and #present > HEAD and is_periodic(present) then
        add_dead(c.dead, id, c.now, body, 'lease', 'not answered')
        add_count(c, 'dead')
    end
end

register('lawn_take', 7, 4, 4, {'allow-oom'}, function(keys, args)
    local stream, group, consumer = keys[4], args[1], args[2]
    local lease = integer(args[3], 0, MOST)
    local most = integer(args[4], 1, 500)
    if not lease or not most or not id_is_valid(consumer) then
        return invalid('consumer, lease or count')
    end
    lease = floor(lease / 1000)
    local late = call('XPENDING', stream, group, 'IDLE', lease, '-', '+', most)
    if #late == 0 then
        return {}
    end
    local ids, deliveries = {}, {}
    for i, p in ipairs(late) do
        ids[i] = p[1]
        deliveries[p[1]] = p[4]
    end
    call('XLEN', keys[7])
    call('HEXISTS', keys[2], '')
    local is_first = call('HGET', keys[3], group_field(stream)) == group
    local c = new_changes(keys, time())
    local claimed = call('XCLAIM', stream, group, consumer, lease, unpack(ids))
    local taken = {}
    for _, e in ipairs(claimed) do
        local entry, fields = e[1], e[2]
        local before = deliveries[entry]
        local body = body_in(fields)
        if is_first and (not body or
            attempt_of(body) + before > attempts_of(body)) then
            bury(c, stream, group, entry, fields)
        else
            taken[#taken + 1] = {entry, before + 1, fields}
        end
    end
    count(keys[3], {taken = #taken})
    apply(c)
    return taken
end)

register('lawn_extend', 1, 3, 2 + MAX_BATCH, {'allow-oom'}, function(keys, args)
    local stream, group, consumer = keys[1], args[1], args[2]
    local own = {}
    for i = 3, #args do
        local p = try('XPENDING', stream, group, args[i], args[i], 1, consumer)
        if p.err then
            return p
        end
        if #p == 1 and p[1][1] == args[i] then
            own[#own + 1] = args[i]
        end
    end
    if #own > 0 then
        call('XCLAIM', stream, group, consumer, 0, unpack(own), 'JUSTID')
    end
    return own
end)

-- CRON

register('lawn_cron', 2, 1, 1, {'allow-oom'}, function(keys, args)
    local most = integer(args[1], 1, 500)
    if not most then
        return invalid('count')
    end
    local ids = call('SRANDMEMBER', keys[2], most)
    local list = {}
    for _, id in ipairs(ids) do
        local body = call('HGET', keys[1], id)
        local o = body and parse(body, HEAD + 1)
        if o and o.cron and unpack_struct('<d', o.next) == 0 then
            local generation, due = unpack_struct('<dd', body)
            if o.after then
                due = (unpack_struct('<d', o.after))
            end
            list[#list + 1] = {id, generation, due, o.expression, o.zone}
        else -- stopped, started anew, or renewed
            call('SREM', keys[2], id)
        end
    end
    return list
end)

-- The time `due_next` for one timer, 0 if there is none any more: whether it was
-- of use.
local function renew(keys, id, generation, due_next)
    local body = call('HGET', keys[2], id)
    local o = body and parse(body, HEAD + 1)
    if not o or not o.cron or generation_of(body) ~= generation or
        unpack_struct('<d', o.next) ~= 0 then
        return 0
    end
    local due = (unpack_struct('<d', body, 9))
    local is_waiting = not call('ZSCORE', keys[1], id)
    if due_next > 0 and due_next <= due then
        return 0
    end
    local payload = sub(body, o.payload)
    if is_waiting and due_next == 0 then
        call('SREM', keys[4], id)
        call('HDEL', keys[2], id)
        count(keys[3], {bytes = -bytes_of(body)})
        return 1
    elseif is_waiting then
        -- The time after it is wanted next, so it stays in the SET.
        call('ZADD', keys[1], due_next, id)
        call('HSET', keys[2], id,
            head(generation, due_next, 1) .. tail_of(o, payload))
        arm(keys[1], id, due_next)
        return 1
    elseif due_next == 0 and o.after then
        return 0 -- first the retry, then the last occurrence
    end
    if due_next == 0 then
        o.cron, o.next = nil, nil
    else
        o.next = pack('<d', due_next)
    end
    local tail = tail_of(o, payload)
    call('SREM', keys[4], id)
    call('HSET', keys[2], id, sub(body, 1, HEAD) .. tail)
    count(keys[3], {bytes = #tail - 1 - bytes_of(body)})
    return 1
end

register('lawn_renew', 4, 3, 3 * MAX_BATCH, {'allow-oom'}, function(keys, args)
    if #args % 3 ~= 0 then
        return invalid('number of arguments of lawn_renew')
    end
    call('SCARD', keys[4])
    call('HEXISTS', keys[3], '')
    local renewed = 0
    for i = 1, #args, 3 do
        local generation = integer(args[i + 1], 1, MOST)
        local due_next = integer(args[i + 2], 0, MOST)
        if not generation or not due_next then
            return invalid('generation or time')
        end
        renewed = renewed + renew(keys, args[i], generation, due_next)
    end
    return renewed
end)

-- ADMINISTRATION

register('lawn_drain', 1, 1, 1, {'allow-oom'}, function(keys, args)
    if args[1] == '1' then
        call('HSET', keys[1], 'draining', 1)
    else
        call('HDEL', keys[1], 'draining')
    end
    return 1
end)

register('lawn_replay', 4, 1, 1, {}, function(keys, args)
    if not string.match(args[1], '^%d+%-%d+$') then
        return invalid('entry')
    end
    local letter = call('XRANGE', keys[4], args[1], args[1])[1]
    if not letter then
        return {0, 0, 0}
    end
    local body, id = body_in(letter[2])
    local o = body and id_is_valid(id) and parse(body, HEAD + 1)
    if not o then
        return invalid('letter: it has no timer of this library')
    end
    local present = call('HGET', keys[2], id)
    if present then
        return {0, #present >= 8 and generation_of(present) or 0, 0}
    end
    -- One occurrence, now, whatever the timer was.
    o.every, o.after, o.cron, o.next, o.misfire = nil, nil, nil, nil, nil
    local now = time()
    local generation, failure = put(keys, id, nil, now, 1,
        tail_of(o, sub(body, o.payload)))
    if failure then
        return failure
    end
    call('XDEL', keys[4], args[1])
    return {1, generation, now}
end)

local function list_pending(keys, cursor, most)
    local from = integer(cursor, 0, MOST)
    if not from then
        return invalid('cursor')
    end
    local ids = call('ZRANGE', keys[1], from, from + most - 1, 'WITHSCORES')
    local list = {}
    for i = 1, #ids, 2 do
        local body = call('HGET', keys[2], ids[i])
        if body and body_is_whole(body) then
            list[#list + 1] = {ids[i], PENDING, generation_of(body),
                tonumber(ids[i + 1]), attempt_of(body)}
        end
    end
    local read = #ids / 2
    return {read < most and '0' or string.format('%.0f', from + read), list}
end

local function list_delivered(keys, cursor, most)
    local page = try('HSCAN', keys[2], cursor, 'COUNT', most)
    if page.err then
        return page
    end
    local list, found = {}, page[2]
    for i = 1, #found, 2 do
        local id, body = found[i], found[i + 1]
        if body_is_whole(body) and not call('ZSCORE', keys[1], id) then
            local generation, due = unpack_struct('<dd', body)
            list[#list + 1] = {id, DELIVERED, generation, due, attempt_of(body)}
        end
    end
    return {page[1], list}
end

-- The cursor is the table, "a" the one that is filled or "b", and that of HSCAN.
local function list_ended(keys, state, cursor, most)
    local tables = {keys[4], keys[5]}
    if call('HGET', keys[3], 'cur') == '1' then
        tables = {keys[5], keys[4]}
    end
    local which, at = string.match(cursor, '^([ab])(%d+)$')
    if cursor == '0' then
        which, at = 'a', '0'
    end
    local page = which and try('HSCAN', tables[which == 'a' and 1 or 2], at,
        'COUNT', most)
    if not page or page.err then
        return page or invalid('cursor')
    end
    local list, found = {}, page[2]
    for i = 1, #found, 2 do
        local id, record = found[i], found[i + 1]
        if byte(record) == state and #record >= HEAD + 9 and
            call('HEXISTS', keys[2], id) == 0 and
            (which == 'a' or call('HEXISTS', tables[1], id) == 0) then
            list[#list + 1] = {id, state, (unpack_struct('<d', record, 2)),
                (unpack_struct('<d', record, HEAD + 2)),
                (unpack_struct('<H', record, 18))}
        end
    end
    local next_cursor = which .. page[1]
    if page[1] == '0' then
        next_cursor = which == 'a' and 'b0' or '0'
    end
    return {next_cursor, list}
end

register('lawn_list', 5, 3, 3, {'no-writes'}, function(keys, args)
    local state = integer(args[1], PENDING, DEAD)
    local most = integer(args[3], 1, MAX_BATCH)
    if not state or not most then
        return invalid('state or count')
    end
    if state == PENDING then
        return list_pending(keys, args[2], most)
    elseif state == DELIVERED then
        return list_delivered(keys, args[2], most)
    end
    return list_ended(keys, state, args[2], most)
end)

-- Entries that the first group was given and has not answered, and those that it
-- was not given yet.
local function in_flight(meta, stream)
    local group = call('HGET', meta, group_field(stream))
    if not group then
        return 0, call('XLEN', stream)
    end
    local groups = try('XINFO', 'GROUPS', stream)
    for _, fields in ipairs(groups) do
        local info = {}
        for i = 1, #fields, 2 do
            info[fields[i]] = fields[i + 1]
        end
        if info.name == group then
            return info.pending, tonumber(info.lag) or 0
        end
    end
    return 0, call('XLEN', stream)
end

register('lawn_stats', 6, 0, 0, {'no-writes'}, function(keys)
    local now = time()
    local meta = keys[3]
    local pending = call('ZCARD', keys[1])
    local first = call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')
    local out_flight, out_wait = in_flight(meta, keys[4])
    local push_flight, push_wait = in_flight(meta, keys[5])
    local stats = {
        'now', now,
        'pending', pending,
        'due', call('ZCOUNT', keys[1], '-inf', now),
        'next', first[2] and tonumber(first[2]) or 0,
        'delivered', math.max(call('HLEN', keys[2]) - pending, 0),
        'out_waiting', out_wait, 'out_in_flight', out_flight,
        'push_waiting', push_wait, 'push_in_flight', push_flight,
        'dead_letters', call('XLEN', keys[6]),
        'cron', call('SCARD', keys[7]),
    }
    local names = {'gen', 'bytes', 'fired', 'success', 'fail', 'stopped',
        'retried', 'dead', 'missed', 'superseded', 'taken', 'corrupt'}
    local values = call('HMGET', meta, unpack(names))
    for i, name in ipairs(names) do
        stats[#stats + 1] = name
        stats[#stats + 1] = tonumber(values[i]) or 0
    end
    return stats
end)
