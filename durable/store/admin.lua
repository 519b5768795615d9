-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Draining, replaying, listing and counting.

register('lawn_drain', 1, 1, 1, {'allow-oom'}, function(keys, args)
    if args[1] == '1' then
        call('HSET', keys[1], 'draining', 1)
    elseif args[1] == '0' then
        call('HDEL', keys[1], 'draining')
    else
        return invalid('argument of lawn_drain')
    end
    forget_shard(keys[1])
    return 1
end)

local REPLAYED = 'replayed' -- the mark

register_of_shard('lawn_replay', 4, 2, 2, {}, function(keys, args)
    local entry, id = args[1], args[2]
    if entry ~= '' and not are_entries({entry}) then
        return invalid('entry')
    end
    local present = call('HGET', keys[2], id)
    local is = present and body_is_whole(present) and parse(present, HEAD + 1)
    if is and is.mark == REPLAYED then
        local generation, due = unpack_struct('<dd', present)
        return {1, generation, due}
    elseif present and entry ~= '' then
        return {0, #present >= 8 and generation_of(present) or 0, 0}
    end
    call('ZCARD', keys[1])
    local letter = entry ~= '' and call('XRANGE', keys[4], entry, entry)[1]
    if not letter then
        return {0, 0, 0}
    end
    local body, of = body_in(letter[2])
    local o = body and of == id and id_is_valid(id) and parse(body, HEAD + 1)
    if not o then
        return invalid('letter: it has no such timer')
    end
    -- One occurrence, now, whatever the timer was.
    o.every, o.after, o.cron, o.next, o.misfire = nil, nil, nil, nil, nil
    o.mark = REPLAYED
    local now = time()
    local generation, failure = put_one(keys, id, nil, now, 1,
        tail_of(o, sub(body, o.payload)), now)
    if failure then
        return failure
    end
    call('XDEL', keys[4], entry)
    return {1, generation, now}
end)

-- Whether an id comes before another in a ZSET. Lua would ask the locale.
local function id_is_before(a, b)
    for i = 1, math.min(#a, #b) do
        local x, y = byte(a, i), byte(b, i)
        if x ~= y then
            return x < y
        end
    end
    return #a < #b
end

-- How many timers there are until that of the id, due then, inclusive; it need
-- not be there any more.
local function rank_after(due_key, due, id)
    local low = call('ZCOUNT', due_key, '-inf', '(' .. due)
    local high = low + call('ZCOUNT', due_key, due, due)
    while low < high do
        local middle = floor((low + high) / 2)
        if id_is_before(id, call('ZRANGE', due_key, middle, middle)[1]) then
            high = middle
        else
            low = middle + 1
        end
    end
    return low
end

-- The body of a timer of cron that is in no ZSET, since its next time is sought;
-- nil if it is another timer.
local function sought_body(due, bodies, id)
    local body = call('HGET', bodies, id)
    return is_periodic(body) and not call('ZSCORE', due, id) and body or nil
end

-- What a list shows of a number that somebody else may have written: the
-- nearest that a timer can have.
local function shown(number)
    return number == number and
        floor(math.min(math.max(number, 0), MOST)) or 0
end

-- A line of a list, of a timer with this body.
local function line_of(id, state, body, due)
    return {id, state, shown(generation_of(body)),
        shown(due or (unpack_struct('<d', body, 9))), attempt_of(body)}
end

-- The cursor is "c" and that of SSCAN.
local function list_sought(keys, cursor, most)
    local page = try('SSCAN', keys[6], cursor, 'COUNT', most)
    if page.err then
        return page
    end
    local list = {}
    for _, id in ipairs(page[2]) do
        local body = sought_body(keys[1], keys[2], id)
        if body then
            list[#list + 1] = line_of(id, PENDING, body)
        end
    end
    return {page[1] == '0' and '0' or 'c' .. page[1], list}
end

-- The cursor is the due time and the id of the last one, as those before it may
-- fire meanwhile.
local function list_pending(keys, cursor, most)
    local sought = string.match(cursor, '^c(%d+)$')
    if sought then
        return list_sought(keys, sought, most)
    end
    local due, last = string.match(cursor, '^(%S+) (.+)$')
    if not tonumber(due) and cursor ~= '0' then
        return invalid('cursor')
    end
    local from = due and rank_after(keys[1], due, last) or 0
    local ids = call('ZRANGE', keys[1], from, from + most - 1, 'WITHSCORES')
    local list = {}
    for i = 1, #ids, 2 do
        local body = call('HGET', keys[2], ids[i])
        if body and body_is_whole(body) then
            list[#list + 1] =
                line_of(ids[i], PENDING, body, tonumber(ids[i + 1]))
        end
    end
    local n = #ids
    return {n < 2 * most and 'c0' or ids[n] .. ' ' .. ids[n - 1], list}
end

local function list_delivered(keys, cursor, most)
    local page = try('HSCAN', keys[2], cursor, 'COUNT', most)
    if page.err then
        return page
    end
    local list, found = {}, page[2]
    for i = 1, #found, 2 do
        local id, body = found[i], found[i + 1]
        if body_is_whole(body) and
            state_of(body, call('ZSCORE', keys[1], id)) == DELIVERED then
            list[#list + 1] = line_of(id, DELIVERED, body)
        end
    end
    return {page[1], list}
end

-- The cursor is the table ("a" is the one that is filled) and that of HSCAN.
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
            list[#list + 1] = line_of(id, state, sub(record, 2),
                (unpack_struct('<d', record, HEAD + 2)))
        end
    end
    local next_cursor = which .. page[1]
    if page[1] == '0' then
        next_cursor = which == 'a' and 'b0' or '0'
    end
    return {next_cursor, list}
end

register('lawn_list', 6, 3, 3, {'no-writes'}, function(keys, args)
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

-- How many timers are pending. Those of cron whose next times are sought are in
-- no ZSET.
local function pending_of(due, bodies, cron)
    local pending = call('ZCARD', due)
    for _, id in ipairs(call('SRANDMEMBER', cron, 500)) do
        if sought_body(due, bodies, id) then
            pending = pending + 1
        end
    end
    return pending
end

register('lawn_count', 3, 0, 0, {'no-writes'}, function(keys)
    return pending_of(keys[1], keys[2], keys[3])
end)

register('lawn_stats', 7, 0, 0, {'no-writes'}, function(keys)
    local now = time()
    local meta = keys[3]
    local first = call('ZRANGE', keys[1], 0, 0, 'WITHSCORES')
    local out_flight, out_added, out_length = flow_of(meta, keys[4])
    local push_flight, push_added, push_length = flow_of(meta, keys[5])
    local stats = {
        'now', now,
        'pending', pending_of(keys[1], keys[2], keys[7]),
        'due', call('ZCOUNT', keys[1], '-inf', now),
        'next', first[2] and shown(tonumber(first[2])) or 0,
        'out_in_flight', out_flight,
        'push_in_flight', push_flight,
        'dead_letters', call('XLEN', keys[6]),
        'cron', call('SCARD', keys[7]),
        'fired', out_added + push_added,
        'entries', out_length + push_length,
    }
    local names = {'bytes', 'success', 'fail', 'stopped',
        'retried', 'dead', 'missed', 'superseded', 'taken', 'corrupt',
        'deferred', 'dropped_letters'}
    local values = call('HMGET', meta, unpack(names))
    for i, name in ipairs(names) do
        stats[#stats + 1] = name
        stats[#stats + 1] = tonumber(values[i]) or 0
    end
    -- Each start has a generation of its own, and `again` counts the others.
    local gen = call('HMGET', meta, 'gen', 'raised', 'again')
    stats[#stats + 1] = 'started'
    stats[#stats + 1] = (tonumber(gen[1]) or 0) - (tonumber(gen[2]) or 0) -
        (tonumber(gen[3]) or 0)
    return stats
end)
