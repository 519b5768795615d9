-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Opening a namespace; starting, stopping, changing and asking for a timer.

local limits = {'max_pending', 'max_bytes', 'keep_us', 'keep_count'}

register('lawn_open', 1, 5, 5, {'allow-oom'}, function(keys, args)
    local wanted = {}
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
            'LAWN CORRUPT the number of shards of the namespace')
    elseif not shards then
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
    forget_shard(keys[1])
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

-- An error if the namespace does not take a tail instead of `old`, or nil.
local function refusal(s, keys, old, tail)
    if s.draining and not old then
        return redis.error_reply('LAWN FULL the namespace is being drained')
    elseif s.max_pending and not old and
        call('HLEN', keys[2]) >= s.max_pending then
        return redis.error_reply(
            'LAWN FULL as many timers are pending as the namespace may have')
    elseif s.max_bytes then
        local more = bytes_of_tail(tail) - bytes_of(old)
        local bytes = tonumber(call('HGET', keys[3], 'bytes')) or 0
        if more > 0 and bytes + more > s.max_bytes then
            return redis.error_reply('LAWN FULL the payloads have as many ' ..
                'bytes as the namespace may have')
        end
    end
    return nil
end

-- Puts in place a timer with this tail, instead of the body `old`, if there is
-- one, which is looked at only if there are limits. Returns the generation, or
-- nil and an error.
local function put(s, keys, id, old, due, attempt, tail, now)
    if s.is_limited then
        local refused = refusal(s, keys, old, tail)
        if refused then
            return nil, refused
        end
    end
    local generation = new_generation(s, now)
    call('ZADD', keys[1], due, id)
    local set = try('HSET', keys[2], id, head(generation, due, attempt) .. tail)
    if type(set) == 'table' then
        call('ZREM', keys[1], id)
        return nil, set
    end
    if s.max_bytes then
        count(s, {bytes = bytes_of_tail(tail) - bytes_of(old)})
    end
    wake(s, keys[1], due, now)
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
        if not o or o.after or o.mark then
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
    local s = shard_of(keys[3], now)
    local old
    if token or s.is_limited then
        old = call('HGET', keys[2], id)
    end
    local reply = token and repeated(keys, id, old, token, now)
    if reply then
        return reply
    end
    local generation, failure = put(s, keys, id, old, due, 1, tail, now)
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
    local s = shard_of(keys[3], now)
    local ended = ended_key(s, keys[4], keys[5], 1, now)
    call('HSET', ended, id, end_record(STOPPED, body, now))
    call('ZREM', keys[1], id)
    call('HDEL', keys[2], id)
    count(s, {bytes = -bytes_of(body), stopped = 1})
    return {STOPPED, generation}
end)

-- Of an update with these arguments.
local function mark_of(args)
    local digest = redis.sha1hex(args[2] .. ' ' .. args[3] .. ' ' ..
        (args[4] and '+' .. args[4] or ''))
    return (string.gsub(sub(digest, 1, 16), '%x%x', function(byte_text)
        return char(tonumber(byte_text, 16))
    end))
end

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
    local mark = mark_of(args)
    if o.mark == mark then
        return {1, generation, (unpack_struct('<d', body, 9)), now}
    elseif generation ~= tonumber(args[2]) or not pending then
        return {0, generation, pending and PENDING or DELIVERED}
    end
    if due and o.cron then
        return invalid('time: that of a cron timer is in its expression')
    end
    if not due then
        due = (unpack_struct('<d', body, 9))
    end
    local failure
    o.mark = mark
    generation, failure = put(shard_of(keys[3], now), keys, id, body, due,
        attempt_of(body), tail_of(o, payload or sub(body, o.payload)), now)
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
