-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- What a delivery comes to.

-- What answers change, kept until all have been looked at.
local function new_changes(s, keys, most, now)
    return {
        s = s, due = keys[1], body = keys[2], dead = keys[7], now = now,
        stamp = pack('<d', now), gone = {}, ends = {}, counts = {bytes = 0},
        acked = {},
        ended = ended_key(s, keys[5], keys[6], most, now),
    }
end

local function add_count(c, name, n)
    c.counts[name] = (c.counts[name] or 0) + (n or 1)
end

-- The oldest letters go where there are more than are kept. The entry of this one
-- is acknowledged by then: if nothing can be added, the timer ends without it.
local function add_letter(c, ...)
    local before = call('XLEN', c.dead)
    local added = try('XADD', c.dead, 'MAXLEN', '~', c.s.keep_count, '*', ...)
    if type(added) ~= 'table' then
        add_count(c, 'dropped_letters', before + 1 - call('XLEN', c.dead))
    end
end

local function add_dead(c, id, body, reason, message)
    add_letter(c, 'i', id, 'b', c.stamp .. body, 'r', reason,
        'l', sub(message, 1, 1024))
end

-- Without a word of how it has ended.
local function drop(c, id, body)
    c.gone[#c.gone + 1] = id
    if c.s.max_bytes then
        c.counts.bytes = c.counts.bytes - bytes_of(body)
    end
end

local function finish(c, id, body, state, name)
    local ends, counts = c.ends, c.counts
    local n = #ends
    ends[n + 1] = id
    ends[n + 2] = end_record(state, body, c.stamp)
    counts[name] = (counts[name] or 0) + 1
    drop(c, id, body)
end

-- An end counts for nothing while there is a body, so it is written first. All
-- is acknowledged by now: without its end a timer is unknown, but not delivered
-- for ever.
local function apply(c)
    if #c.gone > 0 then
        try('HSET', c.ended, unpack(c.ends)) -- an error if there are none
        call('HDEL', c.body, unpack(c.gone))
    end
    count(c.s, c.counts)
end

-- "r<delay_us> <deliveries> <error>" -> delay, deliveries, error. Of what waits,
-- "w<delay_us> <deliveries>", the last delivery was not tried.
local function parse_retry(verdict)
    local delay, deliveries, message =
        string.match(verdict, '^r(%d+) (%d+) ?(.*)$')
    local untried = 0
    if not delay then
        delay, deliveries = string.match(verdict, '^w(%d+) (%d+)$')
        untried = 1
    end
    delay = delay and integer(delay, 0, MOST)
    deliveries = deliveries and integer(deliveries, untried, 65535)
    if not delay or not deliveries then
        return nil
    end
    return delay, deliveries - untried, message or ''
end

local function retry_at(c, id, body, due, verdict)
    call('ZADD', c.due, due, id)
    call('HSET', c.body, id, body)
    wake(c.s, c.due, due)
    add_count(c, byte(verdict) == 119 and 'deferred' or 'retried')
end

-- The result, and the body that the timer has now; false if it has none.
local function retry(c, id, body, verdict)
    local delay, deliveries, message = parse_retry(verdict)
    local attempt = attempt_of(body) + deliveries
    if attempt > attempts_of(body) then
        body = with_attempt(body, attempt - 1)
        add_dead(c, id, body, 'attempts', message)
        finish(c, id, body, DEAD, 'dead')
        return '2', false
    end
    local due = math.min(c.now + delay, MOST)
    local tail = sub(body, HEAD + 1)
    local o = byte(tail) % 2 == 1 and parse(tail, 1)
    if o then
        keep_answer(o, body)
        tail = tail_of(o, sub(tail, o.payload))
    end
    body = head(generation_of(body), due, attempt) .. tail
    retry_at(c, id, body, due, verdict)
    return '1', body
end

-- The occurrence `fired` of a periodic timer; the body is that of the next. One
-- that is updated keeps the generation and the due time that the update told.
local function retry_occurrence(c, id, body, fired, is_updated, verdict)
    local delay, deliveries, message = parse_retry(verdict)
    local attempt = attempt_of(fired) + deliveries
    if attempt > attempts_of(fired) then
        add_dead(c, id, with_attempt(fired, attempt - 1), 'attempts', message)
        add_count(c, 'dead')
        return '2', body
    end
    local due = c.now + delay
    local due_next = (unpack_struct('<d', body, 9))
    local o = parse(body, HEAD + 1)
    local is_pending = call('ZSCORE', c.due, id)
    local is_sought = o and o.cron and not is_pending
    if not o or o.after or is_updated or
        (not is_sought and (due >= due_next or not is_pending)) then
        add_count(c, 'superseded')
        return '3', body
    end
    o.after = pack('<d', is_sought and
        math.max(math.min(due_next, due), 1) or due_next)
    c.counts.bytes = c.counts.bytes + #o.after
    body = head(generation_of(fired), due, attempt) ..
        tail_of(o, sub(body, o.payload))
    retry_at(c, id, body, due, verdict)
    return '1', body
end

-- The entries and ids of the arguments of lawn_answer, which are refused, and
-- whether more is among the verdicts than done and fail; nil and an error if it
-- is not known which is which.
local function parse_answers(args)
    local n = (#args - 1) / 4
    if n % 1 ~= 0 or n < 1 or n > MAX_BATCH then
        return nil, invalid('number of arguments of lawn_answer')
    end
    local entries, ids, refused, may_fire = {}, {}, {}, false
    local at = 2
    for i = 1, n do
        local verdict = args[at + 3]
        entries[i], ids[i] = args[at], args[at + 1]
        local is_end = verdict == 'd' or byte(verdict) == 102
        if #args[at + 2] ~= HEAD or not (is_end or parse_retry(verdict)) then
            refused[i] = true
        end
        may_fire = may_fire or not is_end
        at = at + 4
    end
    return entries, ids, refused, may_fire
end

-- One answer, whose entry is acknowledged: the result, and the body now.
local function answer(c, id, body, verdict)
    if verdict == 'd' then
        finish(c, id, body, SUCCESS, 'success')
        return '1', false
    elseif byte(verdict) == 102 then
        finish(c, id, body, FAIL, 'fail')
        return '1', false
    end
    return retry(c, id, body, verdict)
end

-- The same for an entry of a periodic timer.
local function answer_occurrence(c, stream, entry, id, body, identity,
    verdict)
    local found = call('XRANGE', stream, entry, entry)[1]
    local fired = found and body_in(found[2])
    local is_ours, is_same = false, false
    if fired and sub(fired, 1, HEAD) == identity then
        is_ours, is_same = is_occurrence(fired, body)
    end
    local kind = byte(verdict)
    if not is_ours then
        return '0', body
    elseif kind == 100 or kind == 102 then
        add_count(c, kind == 100 and 'success' or 'fail')
        return '1', body
    end
    return retry_occurrence(c, id, body, fired, not is_same, verdict)
end

-- Which of the bodies are those of periodic timers, as a set; and which of
-- `entries` are acknowledged before anything else: all but those of these
-- timers, which tell by it whether they are answered the first time. How many of
-- a batch are acknowledged says nothing of one; but another timer is answered
-- once in any case, for its body then is gone or another.
local function acknowledge(stream, group, entries, bodies, refused)
    local periodic, acks = {}, {}
    for i = 1, #entries do
        if is_periodic(bodies[i]) then
            periodic[i] = true
        elseif not refused[i] then
            acks[#acks + 1] = entries[i]
        end
    end
    if #acks > 0 then
        call('XACK', stream, group, unpack(acks))
    end
    return periodic, acks
end

register('lawn_answer', 7, 5, 1 + 4 * MAX_BATCH, {'allow-oom'},
    function(keys, args)
        local stream, group = keys[4], args[1]
        local entries, ids, refused, may_fire = parse_answers(args)
        if not entries then
            return ids
        end
        local now = time()
        local s = shard_of(keys[3], now)
        if not is_first_group(s, stream, group) then
            call('XACK', stream, group, unpack(entries))
            tidy(s, stream, group, entries)
            return string.rep('0', #ids)
        end
        local bodies = call('HMGET', keys[2], unpack(ids))
        if may_fire then -- both are written then
            call('ZCARD', keys[1])
            call('XLEN', keys[7])
        end
        local c = new_changes(s, keys, #ids, now)
        local periodic, acks =
            acknowledge(stream, group, entries, bodies, refused)
        local results, changed = {}, {}
        for i = 1, #ids do
            local id, identity = ids[i], args[4 * i]
            local result, body = '0', changed[id]
            if body == nil then
                body = bodies[i]
            end
            if refused[i] then
                result = '4'
            elseif body and body_is_whole(body) then
                local is_same = sub(body, 1, HEAD) == identity
                if not periodic[i] then
                    if is_same then
                        result, changed[id] = answer(c, id, body,
                            args[4 * i + 1])
                    end
                elseif try('XACK', stream, group, entries[i]) == 1 then
                    acks[#acks + 1] = entries[i]
                    if not is_same then
                        result, changed[id] = answer_occurrence(c, stream,
                            entries[i], id, body, identity, args[4 * i + 1])
                    end
                end
            end
            results[i] = result
        end
        apply(c)
        tidy(s, stream, group, acks)
        return concat(results)
    end)
