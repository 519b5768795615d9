-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Times of cron timers, which the pumps reckon.

-- The reply: [timers that are in the SET no more, [timer]].
register('lawn_cron', 2, 1, 1, {'allow-oom'}, function(keys, args)
    local most = integer(args[1], 1, 500)
    if not most then
        return invalid('count')
    end
    local ids = call('SRANDMEMBER', keys[2], most)
    local list, removed = {}, 0
    for _, id in ipairs(ids) do
        local body = call('HGET', keys[1], id)
        local o = body and parse(body, HEAD + 1)
        local generation, after
        if o and next_is_sought(o) then
            generation, after = unpack_struct('<dd', body)
            after = o.after and unpack_struct('<d', o.after) or after
        end
        if id_is_valid(id) and integer(generation, 1, MOST) and
            integer(after, 0, MOST) then
            list[#list + 1] = {id, generation, after, o.expression, o.zone}
        else -- stopped, started anew, renewed, or not ours
            call('SREM', keys[2], id)
            removed = removed + 1
        end
    end
    return {removed, list}
end)

-- The same for one that is tried again at `due`. An occurrence that comes first
-- takes its place.
local function renew_retry(s, keys, id, body, o, due, due_next)
    if due_next > 0 and due_next <= unpack_struct('<d', o.after) then
        return 0
    end
    local first = sub(body, 1, HEAD)
    o.after = due_next > due and pack('<d', due_next) or nil
    if due_next == 0 then
        o.cron, o.next = nil, nil
        call('SREM', keys[4], id)
    elseif due_next <= due then
        first = head(new_generations(s, s.at, 1), due_next, 1)
        call('ZADD', keys[1], due_next, id)
    end
    local tail = tail_of(o, sub(body, o.payload))
    call('HSET', keys[2], id, first .. tail)
    local is_superseded = due_next > 0 and due_next <= due and 1 or 0
    count(s, {bytes = bytes_of_tail(tail) - bytes_of(body),
        superseded = is_superseded, again = is_superseded})
    if due_next > 0 then
        wake(s, keys[1], due_next)
    end
    return 1
end

-- The time `due_next` for one timer, 0 if there is none any more: whether it
-- was of use.
local function renew(s, keys, id, generation, due_next)
    local body = call('HGET', keys[2], id)
    local o = body and parse(body, HEAD + 1)
    if not o or not next_is_sought(o) or
        generation_of(body) ~= generation then
        return 0
    end
    local due = (unpack_struct('<d', body, 9))
    local is_waiting = not call('ZSCORE', keys[1], id)
    if after_is_sought(o, due) and not is_waiting then
        return renew_retry(s, keys, id, body, o, due, due_next)
    end
    if due_next > 0 and due_next <= due then
        return 0
    end
    local payload = sub(body, o.payload)
    if is_waiting and due_next == 0 then
        call('SREM', keys[4], id)
        call('HDEL', keys[2], id)
        count(s, {bytes = -bytes_of(body)})
        return 1
    elseif is_waiting then
        -- The time after it is wanted next, so it stays in the SET.
        call('ZADD', keys[1], due_next, id)
        call('HSET', keys[2], id,
            head(generation, due_next, 1) .. tail_of(o, payload))
        wake(s, keys[1], due_next)
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
    count(s, {bytes = bytes_of_tail(tail) - bytes_of(body)})
    return 1
end

register('lawn_renew', 4, 3, 3 * MAX_BATCH, {'allow-oom'}, function(keys, args)
    if #args % 3 ~= 0 then
        return invalid('number of arguments of lawn_renew')
    end
    for i = 1, #args, 3 do
        if not integer(args[i + 1], 1, MOST) or
            not integer(args[i + 2], 0, MOST) then
            return invalid('generation or time')
        end
    end
    call('SCARD', keys[4])
    local s = shard_of(keys[3], time())
    s.cron = nil
    local renewed = 0
    for i = 1, #args, 3 do
        renewed = renewed + renew(s, keys, args[i], tonumber(args[i + 1]),
            tonumber(args[i + 2]))
    end
    return renewed
end)
