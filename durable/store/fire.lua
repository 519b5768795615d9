-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- What is due goes to the streams; the next of what is periodic is started.

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
    local least = policy == COALESCE and now + 1 or
        policy == SKIP and now - slack or 0
    local due_next
    if after_is_sought(o, due) then
        return 0, 0, math.max((unpack_struct('<d', o.after)), least - 1)
    elseif o.after then
        due_next = (unpack_struct('<d', o.after))
    elseif o.cron then
        due_next = (unpack_struct('<d', o.next))
    else
        due_next = math.min(due + unpack_struct('<d', o.every), MOST)
    end
    if due_next == 0 then
        return 0, 0, math.max(due, least - 1)
    elseif due_next >= least then
        return due_next, 0
    elseif o.cron then
        return 0, 1, least - 1
    end
    local every = unpack_struct('<d', o.every)
    local missed = math.ceil((least - due_next) / every)
    return math.min(due_next + missed * every, MOST), missed
end

-- Starts the next occurrence of a periodic timer. One of cron whose time is not
-- known is in no ZSET, but in the SET, and begins its search after its `due`.
local function rearm(f, id, body, o, generation)
    local due, missed, after =
        next_occurrence(o, (unpack_struct('<d', body, 9)), f.now)
    f.missed = f.missed + missed
    if o.cron and (due == 0 or not o.after) then
        o.next = pack('<d', 0)
        call('SADD', f.cron, id)
        f.s.cron = nil
    end
    f.bytes = f.bytes - (o.after and #o.after or 0)
    o.after = nil
    keep_answer(o, body)
    call('HSET', f.body, id, head(generation, due > 0 and due or after, 1) ..
        tail_of(o, sub(body, o.payload)))
    if due > 0 then
        call('ZADD', f.due, due, id)
    end
end

-- Nobody could read what would be delivered.
local function drop_corrupt(f, id, body)
    f.corrupt = f.corrupt + 1
    f.gone[#f.gone + 1] = id
    f.bytes = f.bytes - math.max(bytes_of(body), 0)
end

-- Fires a timer with options: an error, or nil.
local function fire_one(f, id, body)
    local o = parse(body, HEAD + 1)
    if not o or not may_repeat(body, o) then
        drop_corrupt(f, id, body)
        return nil
    end
    local checked = o.cron and try('SCARD', f.cron)
    if type(checked) == 'table' then
        return checked
    end
    local is_known, generation = true, nil
    if o.every or o.cron then
        is_known, generation = pcall(new_generations, f.s, f.now, 1)
        if not is_known then
            return redis.error_reply(generation)
        end
    end
    local policy, slack = policy_of(o)
    local late = f.now - unpack_struct('<d', body, 9)
    local is_missed = policy == SKIP and late > slack and attempt_of(body) == 1
    if not is_missed then
        local stream = o.target and f.push or f.out
        local added = try('XADD', stream, '*', 'i', id, 'b', f.stamp .. body)
        if added.err then
            count(f.s, {again = generation and 1 or 0})
            return name_key(added, stream)
        end
        f.fired[#f.fired + 1] = sub(body, 9, 16)
    else
        f.missed = f.missed + 1
    end
    if o.every or o.cron then
        f.periodic[#f.periodic + 1] = {id, body, o, generation}
    elseif is_missed then
        f.gone[#f.gone + 1] = id
        f.ends[#f.ends + 1] = id
        f.ends[#f.ends + 1] = end_record(FAIL, body, f.stamp)
        f.bytes = f.bytes - bytes_of(body)
    end
    return nil
end

-- Fires ids[i] with bodies[i] until one fails: how many, and an error.
local function fire_all(f, ids, bodies)
    local out, stamp, fired = f.out, f.stamp, f.fired
    for i = 1, #ids do
        local body = bodies[i]
        local flags = body and byte(body, HEAD + 1)
        local failure
        if flags and flags < MISFIRE then
            local added = try('XADD', out, '*', 'i', ids[i], 'b', stamp .. body)
            if added.err then
                failure = name_key(added, out)
            else
                fired[#fired + 1] = sub(body, 9, 16)
            end
        elseif flags then
            failure = fire_one(f, ids[i], body)
        else
            drop_corrupt(f, ids[i], body)
        end
        if failure then
            return i - 1, failure
        end
    end
    return #ids
end

-- The reply. If there are `most` times in it, more may follow.
local function upcoming(f, horizon, most, is_more)
    local list = call('ZRANGE', f.due, '0', most - 1, 'WITHSCORES')
    local first, times = nil, {}
    local limit = f.now + horizon
    for i = 2, #list, 2 do
        -- The client takes integers. Others may have written what is none.
        local due = floor(tonumber(list[i]))
        if due > MOST or (first and due > limit) then
            break
        end
        first = first or due
        times[i / 2] = pack('<d', due)
    end
    is_more = is_more or (first and first <= f.now)
    -- Each pump is told so, at one time or another, and calls then or before.
    f.s.wake = first or MOST
    f.s.cron = f.s.cron or call('SCARD', f.cron)
    return pack('<dI4BB', f.now, f.s.cron, is_more and 1 or 0, #times) ..
        concat(times) .. concat(f.fired)
end

-- Takes what has fired out of the ZSET, and does what else it comes to.
local function settle(f, done, ended0, ended1)
    call('ZREMRANGEBYRANK', f.due, '0', done - 1)
    for _, p in ipairs(f.periodic) do
        rearm(f, p[1], p[2], p[3], p[4])
    end
    if #f.gone > 0 then
        -- Without its record a missed timer is unknown, but not fired again.
        local known, key =
            pcall(ended_key, f.s, ended0, ended1, #f.gone, f.now)
        if known and #f.ends > 0 then
            try('HSET', key, unpack(f.ends))
        end
        call('HDEL', f.body, unpack(f.gone))
    end
    if f.missed + f.corrupt + #f.periodic > 0 or f.bytes ~= 0 then
        count(f.s, {missed = f.missed, corrupt = f.corrupt, bytes = f.bytes,
            again = #f.periodic})
    end
end

register_of_shard('lawn_fire', 8, 3, 3, {'allow-oom'}, function(keys, args)
    local limit = integer(args[1], 1, 500)
    local horizon = integer(args[2], 0, MOST)
    local most = integer(args[3], 1, 64)
    if not limit or not horizon or not most then
        return invalid('limit, horizon or count')
    end
    local now = time()
    local f = {
        due = keys[1], body = keys[2], out = keys[4], push = keys[5],
        cron = keys[8], now = now, stamp = pack('<d', now),
        s = shard_of(keys[3], now),
        missed = 0, corrupt = 0, bytes = 0,
        fired = {}, periodic = {}, gone = {}, ends = {},
    }
    local ids = call('ZRANGE', f.due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
    if #ids > 0 then
        local done, failure =
            fire_all(f, ids, call('HMGET', f.body, unpack(ids)))
        if done > 0 then
            settle(f, done, keys[6], keys[7])
        elseif failure then
            return failure
        end
    end
    -- Also if nothing has fired: what was answered since the last call goes.
    local is_more = trim(f.s, f.out)
    is_more = trim(f.s, f.push) or is_more
    return upcoming(f, horizon, most, is_more)
end)
