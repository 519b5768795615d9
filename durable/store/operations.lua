-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Starting, stopping, changing and asking for a timer.

local FIRST_ATTEMPT = '\1\0'

-- The reply to a start. A list would cost as much as the start itself.
local function started(generation, due, is_repeated, now, state)
    return pack('<dddBB', generation, due, now, is_repeated, state)
end

-- The reply for a start that was carried out before, as its token says; or nil.
-- Generation and due time are those of its first answer, whatever the timer has
-- come to since.
local function repeated(keys, id, token, old, record, now)
    local first, identity, state
    if old and body_is_whole(old) then
        if token_of(old) ~= token then
            return nil
        end
        first, identity = kept_answer(old), old
        state = state_of(old, call('ZSCORE', keys[1], id))
    elseif record and sub(record, HEAD + 10, HEAD + 17) == token then
        first, identity = sub(record, HEAD + 18), sub(record, 2)
        state = byte(record)
    else
        return nil
    end
    local generation, due =
        unpack_struct('<dd', #first == 16 and first or identity)
    return started(generation, due, 1, now, state)
end

-- What the namespace has room for, where it has bounds.
local function room_of(s, keys)
    return {
        timers = s.max_pending and s.max_pending - call('HLEN', keys[2]),
        bytes = s.max_bytes and
            s.max_bytes - (tonumber(call('HGET', keys[3], 'bytes')) or 0),
        taken = 0, -- bytes
    }
end

local function being_drained()
    return redis.error_reply('LAWN FULL the namespace is being drained')
end

-- An error if there is no room for a tail instead of `old` bytes, nil if there
-- is no timer of its id; or nil, and then the room is taken.
local function refusal(room, old, tail)
    local more = bytes_of_tail(tail) - (old or 0)
    if room.timers and not old and room.timers <= 0 then
        return redis.error_reply(
            'LAWN FULL as many timers are pending as the namespace may have')
    elseif room.bytes and more > 0 and room.taken + more > room.bytes then
        return redis.error_reply('LAWN FULL the payloads have as many ' ..
            'bytes as the namespace may have')
    end
    room.taken = room.taken + more
    room.timers = room.timers and not old and room.timers - 1 or room.timers
    return nil
end

-- A timer is put in place: the arguments of ZADD and HSET, of those before it,
-- get its own, too.
local function add_timer(p, id, due, body)
    local n = p.n + 2
    local dues, bodies = p.dues, p.bodies
    p.n = n
    -- Redis would make a text of the number as that of a fraction.
    dues[n - 1], dues[n] = format('%d', due), id
    bodies[n - 1], bodies[n] = id, body
    if due < p.first then
        p.first = due
    end
end

local function new_timers()
    return {n = 0, dues = {}, bodies = {}, first = MOST}
end

-- Puts the timers in place, each instead of the one of its id, if there is one,
-- which adds so many bytes. Returns an error or nil.
local function put(s, keys, p, bytes)
    call('ZADD', keys[1], unpack(p.dues))
    local set = try('HSET', keys[2], unpack(p.bodies))
    if type(set) == 'table' then
        for i = 2, p.n, 2 do
            if try('HEXISTS', keys[2], p.dues[i]) == 0 then
                call('ZREM', keys[1], p.dues[i])
            end
        end
        return set
    end
    if bytes ~= 0 then
        count(s, {bytes = bytes})
    end
    wake(s, keys[1], p.first)
    return nil
end

-- Puts one in place, instead of `old` bytes, nil if there is no timer of its id.
-- Returns its generation, or nil and an error.
local function put_one(keys, id, old, due, attempt, tail, now)
    local s = shard_of(keys[3], now)
    local room = s.is_limited and room_of(s, keys)
    local failure = s.draining and not old and being_drained() or
        room and refusal(room, old, tail)
    if failure then
        return nil, failure
    end
    local generation = new_generations(s, now, 1)
    local timers = new_timers()
    add_timer(timers, id, due, head(generation, due, attempt) .. tail)
    failure = put(s, keys, timers, room and room.taken or 0)
    count(s, {again = 1})
    return generation, failure
end

-- How many occurrences of a timer that is due at `due` would fire at once to
-- make up for what is past. Those of cron are a minute apart at least, and are
-- looked for one by one.
local function missed_already(o, due, now)
    local every = o.every and unpack_struct('<d', o.every)
    local catches_up = every and byte(o.misfire or NO_MISFIRE) == 0
    return catches_up and (now - due) / every or 0
end

local function too_many_missed()
    return invalid('time: more than ' .. MOST_MISSED .. ' occurrences of it ' ..
        'are past, and would all fire now; the misfire policy may skip or ' ..
        'coalesce them')
end

-- When a start is due, its token if it has one, and its options if it is
-- periodic; false and an error if it is none.
local function check_start(id, when, tail, now)
    if not id_is_valid(id) then
        return false, invalid('id')
    end
    local payload, token, o = 2, nil, nil
    if byte(tail) ~= 0 then
        o = parse(tail, 1)
        if not o or o.after or o.mark or o.answered then
            return false, invalid('options')
        elseif o.every and unpack_struct('<d', o.every) < LEAST_EVERY then
            return false, invalid('a period of less than 10 ms')
        end
        payload, token = o.payload, o.token
    end
    if #tail - payload + 1 > MAX_PAYLOAD then
        return false, invalid('payload of more than 65536 bytes')
    end
    local due = due_of(when, now)
    if not due then
        return false, invalid('time')
    elseif o and missed_already(o, due, now) > MOST_MISSED then
        return false, too_many_missed()
    end
    return due, token, o and (o.every or o.cron) and o
end

-- Replies to the starts that were carried out before, and to those that there
-- is no room for. Returns how many bytes the others add, and for a start that
-- is like one before it in this call, the number of that one.
local function admit(s, keys, ids, args, tokens, replies, now)
    local olds = call('HMGET', keys[2], unpack(ids))
    local records = next(tokens) and keys[5] and
        find_ends(keys[3], keys[4], keys[5], ids) or {}
    local room = room_of(s, keys)
    local latest, like = {}, {} -- the number of the latest by the id
    for i = 1, #ids do
        local id, tail, token = ids[i], args[3 * i], tokens[i]
        local before, old = latest[id], olds[i]
        if token and before and tokens[before] == token then
            like[i] = before
        elseif not replies[i] then
            replies[i] = token and not before and
                repeated(keys, id, token, old, records[i], now) or
                s.draining and being_drained() or
                refusal(room, before and bytes_of_tail(args[3 * before]) or
                    old and bytes_of(old), tail)
            latest[id] = not replies[i] and i or before
        end
    end
    return room.taken, like
end

-- The same for timers without options, if all are, and are right: when they are
-- due; or nil.
local function check_plain_starts(args, now)
    local dues = {}
    for i = 3, #args, 3 do
        local tail = args[i]
        local due = byte(tail) == 0 and
            check_start(args[i - 2], args[i - 1], tail, now)
        if not due then
            return nil
        end
        dues[i / 3] = due
    end
    return dues
end

-- The starts of such timers in a namespace without bounds, which have no more to
-- be asked: the replies, or an error.
local function start_plain(s, keys, args, dues, now)
    local n = #dues
    local generation = new_generations(s, now, n) - n
    local timers, replies = new_timers(), {}
    -- What add_timer() does: calls of it would cost 3 % of a start.
    local scores, bodies, first = timers.dues, timers.bodies, MOST
    local fresh = pack('<dBB', now, 0, PENDING)
    for i = 1, n do
        local id, due = args[3 * i - 2], dues[i]
        local name = pack('<dd', generation + i, due)
        scores[2 * i - 1], scores[2 * i] = format('%d', due), id
        bodies[2 * i - 1], bodies[2 * i] = id,
            name .. FIRST_ATTEMPT .. args[3 * i]
        first = due < first and due or first
        replies[i] = name .. fresh
    end
    timers.n, timers.first = 2 * n, first
    return put(s, keys, timers, 0) or replies
end

register_of_shard('lawn_start', 3, 3, 3 * MAX_BATCH, {}, function(keys, args)
    local n = #args / 3
    if n % 1 ~= 0 then
        return invalid('number of arguments of lawn_start')
    end
    call('ZCARD', keys[1])
    call('HLEN', keys[2])
    local now = time()
    local s = shard_of(keys[3], now)
    local plain = not s.is_limited and check_plain_starts(args, now)
    if plain then
        return start_plain(s, keys, args, plain, now)
    end
    local ids, dues, tokens, replies, like, bytes = {}, {}, {}, {}, {}, 0
    local periodic = {}
    for i = 1, n do
        local id = args[3 * i - 2]
        local due, rest, o = check_start(id, args[3 * i - 1], args[3 * i], now)
        ids[i], dues[i], periodic[i] = id, due, o
        if rest then
            (due and tokens or replies)[i] = rest
        end
    end
    if s.is_limited or next(tokens) then
        bytes, like = admit(s, keys, ids, args, tokens, replies, now)
    end
    local wanted = n
    for i = 1, (next(replies) or next(like)) and n or 0 do
        wanted = (replies[i] or like[i]) and wanted - 1 or wanted
    end
    local generation = wanted > 0 and
        new_generations(s, now, wanted) - wanted
    local timers = new_timers()
    local fresh = pack('<dBB', now, 0, PENDING)
    for i = 1, n do
        if like[i] then
            local known, due = unpack_struct('<dd', replies[like[i]])
            replies[i] = started(known, due, 1, now, PENDING)
        elseif not replies[i] then
            generation = generation + 1
            local name = pack('<dd', generation, dues[i])
            local tail, o = args[3 * i], periodic[i]
            if o then
                o.mark = mark_of_start(generation)
                tail = tail_of(o, sub(tail, o.payload))
            end
            add_timer(timers, ids[i], dues[i], name .. FIRST_ATTEMPT .. tail)
            replies[i] = name .. fresh
        end
    end
    return wanted > 0 and put(s, keys, timers, bytes) or replies
end)

register_of_shard('lawn_stop', 5, 1, 2, {'allow-oom'}, function(keys, args)
    local id = args[1]
    if args[2] and not integer(args[2], 0, MOST) then
        return invalid('generation')
    end
    local body = call('HGET', keys[2], id)
    if not body then
        local record = find_end(keys[3], keys[4], keys[5], id)
        if not record then
            return {0, 0}
        end
        return {byte(record), (unpack_struct('<d', record, 2))}
    end
    local pending = call('ZSCORE', keys[1], id)
    if not body_is_whole(body) or not has_numbers(body) then
        body = head(0, 0, 1) .. '\0'
    end
    local generation = generation_of(body)
    local state = state_of(body, pending)
    if state == DELIVERED or
        (args[2] and tonumber(args[2]) ~= generation) then
        return {state, generation}
    end
    local now = time()
    local s = shard_of(keys[3], now)
    local stopped = body
    if is_periodic(body) then
        -- One that waits to be tried again has fired before the latest.
        generation = new_generations(s, now, 1)
        stopped = pack('<d', generation) .. sub(body, 9)
    end
    local ended = ended_key(s, keys[4], keys[5], 1, now)
    call('HSET', ended, id, end_record(STOPPED, stopped, pack('<d', now)))
    call('ZREM', keys[1], id)
    call('HDEL', keys[2], id)
    count(s, {bytes = -bytes_of(body), stopped = 1,
        again = is_periodic(body) and 1 or 0})
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

register_of_shard('lawn_update', 3, 3, 4, {}, function(keys, args)
    local id, payload = args[1], args[4]
    local now = time()
    local due = args[3] ~= '' and due_of(args[3], now) or nil
    if args[3] ~= '' and not due then
        return invalid('time')
    end
    if not integer(args[2], 0, MOST) then
        return invalid('generation')
    end
    if payload and #payload > MAX_PAYLOAD then
        return invalid('payload of more than 65536 bytes')
    end
    local body = call('HGET', keys[2], id)
    local o = body and parse(body, HEAD + 1)
    if not o or not may_repeat(body, o) then
        return {0, 0, 0}
    end
    local generation = generation_of(body)
    local pending = call('ZSCORE', keys[1], id)
    local state = state_of(body, pending)
    local mark = mark_of(args)
    if o.mark and (o.every or o.cron) then
        mark = mark_of_both(o.mark, mark)
    end
    local is_seen = generation == tonumber(args[2])
    if o.mark == mark and not is_seen then
        return {1, generation, (unpack_struct('<d', body, 9)), now}
    elseif not is_seen or state == DELIVERED then
        return {0, generation, state}
    end
    if due and o.cron then
        return invalid('time: that of a cron timer is in its expression')
    end
    local attempt = attempt_of(body)
    local is_retry = due and o.after -- of an occurrence
    if is_retry then
        o.after, attempt = nil, 1
    end
    if due and missed_already(o, due, now) > MOST_MISSED then
        return too_many_missed()
    end
    due = due or (unpack_struct('<d', body, 9))
    keep_answer(o, body)
    o.mark = mark
    local tail = tail_of(o, payload or sub(body, o.payload))
    local failure
    generation, failure =
        put_one(keys, id, bytes_of(body), due, attempt, tail, now)
    if failure then
        return failure
    elseif not pending and next_is_sought(o) then
        call('ZREM', keys[1], id)
    end
    count(shard_of(keys[3], now), {superseded = is_retry and 1 or 0})
    return {1, generation, due, now}
end)

register_of_shard('lawn_get', 5, 1, 1, {'no-writes'}, function(keys, args)
    local id = args[1]
    local now = time()
    local body = call('HGET', keys[2], id)
    if body then
        return {state_of(body, call('ZSCORE', keys[1], id)), now, body}
    end
    local record = find_end(keys[3], keys[4], keys[5], id)
    if record then
        return {byte(record), now, record}
    end
    return {0, now, ''}
end)
