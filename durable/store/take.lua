-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Deliveries whose lease is over.

-- An entry that cannot be read is kept as it is. If it is what the timer of its
-- id has come to, then nobody will ever answer that.
local function bury_unreadable(c, stream, group, entry, fields)
    if try('XACK', stream, group, entry) ~= 1 or not fields then
        return
    end
    c.acked[#c.acked + 1] = entry
    add_count(c, 'corrupt')
    add_letter(c, unpack(fields, 1, math.min(#fields, 100)))
    local body, id = body_in(fields)
    local present = body and call('HGET', c.body, id)
    if present and sub(present, 1, HEAD) == sub(body, 1, HEAD) and
        not call('ZSCORE', c.due, id) then
        drop(c, id, present)
    end
end

-- An entry that was delivered too often, `deliveries` times, or cannot be read.
local function bury(c, stream, group, entry, fields, deliveries)
    local body, id = body_in(fields)
    if not body then
        bury_unreadable(c, stream, group, entry, fields)
        return
    elseif try('XACK', stream, group, entry) ~= 1 then
        return
    end
    c.acked[#c.acked + 1] = entry
    local present = call('HGET', c.body, id)
    local attempt = attempt_of(body) + deliveries - 1
    local last = with_attempt(body, attempt)
    if present and sub(present, 1, HEAD) == sub(body, 1, HEAD) then
        add_dead(c, id, last, 'lease', 'not answered')
        finish(c, id, with_attempt(present, attempt), DEAD, 'dead')
    elseif present and is_periodic(present) and
        is_occurrence(body, present) then
        add_dead(c, id, last, 'lease', 'not answered')
        add_count(c, 'dead')
    end
end

-- Those of the entries that the consumer has, as XPENDING says it.
local function own_of(stream, group, consumer, entries)
    local own = {}
    for _, entry in ipairs(entries) do
        local p = call('XPENDING', stream, group, entry, entry, 1, consumer)[1]
        if p and p[1] == entry then
            own[#own + 1] = p
        end
    end
    return own
end

-- Whether these are names of entries.
local function are_entries(names)
    for _, name in ipairs(names) do
        if not string.match(name, '^%d+%-%d+$') then
            return false
        end
    end
    return true
end

register('lawn_take', 7, 4, 4 + 500, {'allow-oom'}, function(keys, args)
    local stream, group, consumer = keys[4], args[1], args[2]
    local lease = integer(args[3], 0, MOST)
    local most = integer(args[4], 1, 500)
    local named = {unpack(args, 5)}
    if not lease or not most or not id_is_valid(consumer) or
        not are_entries(named) then
        return invalid('consumer, lease, count or entry')
    end
    local late
    if #named > 0 then
        lease = 0
        late = own_of(stream, group, consumer, named)
    else
        lease = floor(lease / 1000)
        late = call('XPENDING', stream, group, 'IDLE', lease, '-', '+', most)
    end
    if #late == 0 then
        return {0, {}}
    end
    local ids, deliveries = {}, {}
    for i, p in ipairs(late) do
        ids[i] = p[1]
        deliveries[p[1]] = p[4]
    end
    call('XLEN', keys[7])
    call('HEXISTS', keys[2], '')
    local now = time()
    local s = shard_of(keys[3], now)
    local is_first = is_first_group(s, stream, group)
    local c = new_changes(s, keys, #ids, now)
    local claimed = call('XCLAIM', stream, group, consumer, lease, unpack(ids))
    local taken = {}
    for _, e in ipairs(claimed) do
        local entry, fields = e[1], e[2]
        local before = deliveries[entry]
        local body = body_in(fields)
        if is_first and (not body or
            attempt_of(body) + before > attempts_of(body)) then
            bury(c, stream, group, entry, fields, before)
        else
            taken[#taken + 1] = {entry, before + 1, fields}
        end
    end
    c.counts.taken = #taken
    apply(c)
    tidy(s, stream, group, c.acked)
    return {#late == most and 1 or 0, taken}
end)

register('lawn_bury', 7, 2, 1 + MAX_BATCH, {'allow-oom'}, function(keys, args)
    local stream, group = keys[4], args[1]
    local now = time()
    local s = shard_of(keys[3], now)
    if not is_first_group(s, stream, group) then
        return call('XACK', stream, group, unpack(args, 2))
    end
    call('XLEN', keys[7])
    call('HEXISTS', keys[2], '')
    call('ZCARD', keys[1])
    local c = new_changes(s, keys, #args - 1, now)
    for i = 2, #args do
        local found = try('XRANGE', stream, args[i], args[i])
        bury_unreadable(c, stream, group, args[i], found[1] and found[1][2])
    end
    apply(c)
    tidy(s, stream, group, c.acked)
    return c.counts.corrupt or 0
end)

local LONG_IDLE = 1000000000 -- milliseconds; longer than any lease

-- The number of deliveries is that before the one which nobody has seen.
register('lawn_release', 1, 3, 2 + MAX_BATCH, {'allow-oom'},
    function(keys, args)
        local stream, group, consumer = keys[1], args[1], args[2]
        local entries = {unpack(args, 3)}
        if not are_entries(entries) then
            return invalid('entry')
        end
        local own = own_of(stream, group, consumer, entries)
        for _, p in ipairs(own) do
            if p[3] < LONG_IDLE then -- not yet
                call('XCLAIM', stream, group, consumer, 0, p[1],
                    'IDLE', LONG_IDLE, 'RETRYCOUNT', p[4] - 1, 'JUSTID')
            end
        end
        return #own
    end)

register('lawn_extend', 1, 3, 2 + MAX_BATCH, {'allow-oom'}, function(keys, args)
    local stream, group, consumer = keys[1], args[1], args[2]
    local entries = {unpack(args, 3)}
    if not are_entries(entries) then
        return invalid('entry')
    end
    local own = {}
    for i, p in ipairs(own_of(stream, group, consumer, entries)) do
        own[i] = p[1]
    end
    if #own > 0 then
        call('XCLAIM', stream, group, consumer, 0, unpack(own), 'JUSTID')
    end
    return own
end)
