-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Opening a namespace, and whether all that it had is still there. No function
-- removes a key that has timers, so if one is gone, somebody else has removed
-- it, or the server has. `born` says when the keys of a shard were made. Programs
-- remember it: a shard with another one is not the one that they knew.

-- The first loss stays noted until an operator acknowledges it.
local function note_loss(meta, when)
    if not call('HGET', meta, 'lost') then
        call('HSET', meta, 'lost', when)
    end
end

local limits = {'max_pending', 'max_bytes', 'keep_us', 'keep_count'}

-- Why the user may not publish, or ''. The pumps take no notice of a time that
-- is so far.
local function publish_error(config_key)
    local told = try('PUBLISH', sub(config_key, 1, -7) .. 'wake', MOST)
    return type(told) == 'number' and '' or told.err
end

-- What has been opened before: how many shards, or nil.
local function shards_of(meta)
    return integer(call('HGET', meta, 'shards') or '', 1, 1024)
end

register('lawn_open', 2, 6, 6, {'allow-oom'}, function(keys, args)
    local wanted = {}
    local default_shards = integer(args[6], 1, 1024)
    if not default_shards then
        return invalid('shards')
    end
    for i = 1, 5 do
        wanted[i] = integer(args[i], 0, i == 1 and 1024 or MOST)
        if not wanted[i] then
            return invalid(i == 1 and 'shards' or limits[i - 1])
        end
    end
    local m = call('HMGET', keys[1], 'format', 'shards', unpack(limits))
    if m[1] and m[1] ~= '1' then
        return redis.error_reply('LAWN VERSION the namespace has format ' ..
            sub(m[1], 1, 20) .. ', this library knows 1')
    end
    local shards = integer(m[2] or '', 1, 1024)
    if m[2] and not shards then
        return redis.error_reply(
            'LAWN CORRUPT ' .. keys[1] .. ', field shards: no number of shards')
    end
    local known = shards or shards_of(keys[2])
    if known and wanted[1] > 0 and wanted[1] ~= known then
        return redis.error_reply('LAWN SHARDS the namespace has ' .. known ..
            ' shards, not ' .. wanted[1])
    elseif not shards then
        if known then -- it was open before
            note_loss(keys[2], time())
        end
        shards = known or wanted[1] > 0 and wanted[1] or default_shards
        wanted[4] = wanted[4] > 0 and wanted[4] or KEEP_US
        wanted[5] = wanted[5] > 0 and wanted[5] or KEEP_COUNT
        call('HSET', keys[1], 'format', 1, 'shards', shards,
            'max_pending', wanted[2], 'max_bytes', wanted[3],
            'keep_us', wanted[4], 'keep_count', wanted[5])
        return {shards, wanted[2], wanted[3], wanted[4], wanted[5],
            publish_error(keys[1])}
    end
    return {shards, tonumber(m[3]) or 0, tonumber(m[4]) or 0,
        tonumber(m[5]) or KEEP_US, tonumber(m[6]) or KEEP_COUNT,
        publish_error(keys[1])}
end)

-- Of a key of another type, those who use it will say so.
local function has_timers(keys)
    local due, bodies = try('ZCARD', keys[1]), try('HLEN', keys[2])
    return type(due) == 'number' and due > 0 or
        type(bodies) == 'number' and bodies > 0
end

-- When the shard's keys were made, now if they are not there. `known` is what the
-- caller was told before, 0 if nothing.
local function birth_of(keys, known)
    local meta = keys[3]
    local m = call('HMGET', meta, 'born', 'acknowledged', 'shards')
    local born = tonumber(m[1])
    if born then
        if known > 0 and known ~= born and born > (tonumber(m[2]) or 0) then
            note_loss(meta, born)
        end
        return born
    end
    local is_lost = known > 0 or not m[3] and has_timers(keys)
    born = time()
    call('HSET', meta, 'born', born)
    if is_lost then
        note_loss(meta, born)
    end
    return born
end

-- Whether the bounds were others.
local function set_bounds(meta, args)
    local present = call('HMGET', meta, 'shards', unpack(limits))
    local is_changed = present[1] ~= args[5]
    if is_changed then
        call('HSET', meta, 'shards', args[5])
    end
    for i = 1, 4 do
        local wanted = tonumber(args[i])
        -- Without a bound there is no field, and a start reads less.
        if wanted > 0 and tonumber(present[i + 1]) ~= wanted then
            call('HSET', meta, limits[i], wanted)
            is_changed = true
        elseif wanted == 0 and present[i + 1] then
            call('HDEL', meta, limits[i])
            is_changed = true
        end
    end
    return is_changed
end

register('lawn_prepare', 3, 6, 6, {'allow-oom'}, function(keys, args)
    local known = integer(args[6], 0, MOST)
    if not integer(args[5], 1, 1024) or not known then
        return invalid(known and 'shards' or 'birth')
    end
    for i = 1, 4 do
        if not integer(args[i], 0, MOST) then
            return invalid(limits[i])
        end
    end
    local born = birth_of(keys, known)
    if set_bounds(keys[3], args) then
        forget_shard(keys[3])
    end
    return {born, tonumber(call('HGET', keys[3], 'lost')) or 0}
end)

-- How many timers of the shard are not where they belong. Each that has a due
-- time has a body; and each that has a body is due, or sought, or in flight.
local function count_missing(keys)
    local due, bodies = call('ZCARD', keys[1]), call('HLEN', keys[2])
    local elsewhere = call('SCARD', keys[6])
    for i = 4, 5 do
        local in_flight, _, length, is_known = flow_of(keys[3], keys[i])
        elsewhere = elsewhere + (is_known and in_flight or length)
    end
    return math.max(due - bodies, bodies - due - elsewhere, 0)
end

register('lawn_look', 6, 0, 0, {'allow-oom'}, function(keys)
    local meta = keys[3]
    local missing = count_missing(keys)
    local gap = tonumber(call('HGET', meta, 'gap'))
    if not gap or missing < gap then
        call('HSET', meta, 'gap', missing)
    elseif missing > gap then
        note_loss(meta, time())
    end
    return tonumber(call('HGET', meta, 'lost')) or 0
end)

register('lawn_acknowledge', 6, 0, 0, {'allow-oom'}, function(keys)
    call('HSET', keys[3], 'acknowledged', time(), 'gap', count_missing(keys))
    call('HDEL', keys[3], 'lost')
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

