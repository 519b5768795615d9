-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Bodies of timers.

-- The options of a body or a tail whose flags are at `at`; nil if they are cut
-- short or make no sense. `payload` is where the payload begins.
local function parse(text, at)
    local flags = byte(text, at)
    if not flags then
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
        local policy = o.misfire and byte(o.misfire)
        if policy and policy >= ANSWERED then
            policy = policy - ANSWERED
            o.misfire = char(policy) .. sub(o.misfire, 2)
            o.answered = take(16)
            if not is_time(o.answered, 0) or
                not is_time(sub(o.answered, 9), 0) then
                return nil
            end
        end
        if not policy or policy > COALESCE then
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
        if #o.target > 2 + MAX_TARGET then
            return nil
        end
    end
    if band(flags, MARK) ~= 0 then
        o.mark = take(8)
        if not o.mark then
            return nil
        end
    end
    o.payload = p
    return o
end

-- Whether it has what its next occurrence is reckoned from, if there is one.
local function may_repeat(body, o)
    return not o.every and not o.cron or
        integer((unpack_struct('<d', body, 9)), 0, MOST) ~= nil
end

-- Whether its generation and its due time are such.
local function has_numbers(body)
    local generation, due = unpack_struct('<dd', body)
    return integer(generation, 0, MOST) and integer(due, 0, MOST)
end

local NO_MISFIRE = '\0\0\0\0\0'

-- The head of `body` is to change: what the start was answered is kept, for a
-- start that is repeated with its token.
local function keep_answer(o, body)
    if o.token and not o.answered and has_numbers(body) then
        o.answered = sub(body, 1, 16)
    end
end

local function misfire_of(o)
    if not o.answered then
        return o.misfire
    end
    local misfire = o.misfire or NO_MISFIRE
    return char(ANSWERED + byte(misfire)) .. sub(misfire, 2) .. o.answered
end

-- A tail of the options `o` and a payload.
local function tail_of(o, payload)
    local misfire = misfire_of(o)
    local flags = (o.token and TOKEN or 0) + (o.retry and RETRY or 0) +
        (misfire and MISFIRE or 0) + (o.every and EVERY or 0) +
        (o.after and THEN or 0) + (o.cron and CRON or 0) +
        (o.target and TARGET or 0) + (o.mark and MARK or 0)
    return char(flags) .. (o.token or '') .. (o.retry or '') ..
        (misfire or '') .. (o.every or '') .. (o.after or '') ..
        (o.cron and o.next .. o.cron or '') .. (o.target or '') ..
        (o.mark or '') .. payload
end

-- Whether the pumps are asked for the next time of this.
local function next_is_sought(o)
    return o.cron and unpack_struct('<d', o.next) == 0
end

-- Whether this is tried again while the next occurrence is not known.
local function after_is_sought(o, due)
    return o.cron and o.after and unpack_struct('<d', o.after) <= due
end

local function head(generation, due, attempt)
    return pack('<ddH', generation, due, attempt)
end

-- Whether it can be taken for a body at all.
local function body_is_whole(body)
    return #body > HEAD
end

-- Not so without a body, or one that is not whole.
local function is_periodic(body)
    local flags = body and byte(body, HEAD + 1)
    return flags and flags >= EVERY and band(flags, EVERY + CRON) ~= 0
end

-- Of a timer that has this body, and is in the ZSET or not. One of cron whose
-- next time is sought is in no ZSET, but will fire again.
local function state_of(body, due)
    return (due or is_periodic(body)) and PENDING or DELIVERED
end

local function token_of(body)
    return byte(body, HEAD + 1) % 2 == 1 and sub(body, HEAD + 2, HEAD + 9) or ''
end

-- Where the misfire policy is in a text whose flags are at `at`; nil if it has
-- none, or one that is followed by nothing of the store's.
local function kept_answer_at(text, at)
    local flags = byte(text, at) or 0
    if band(flags, MISFIRE) == 0 then
        return nil
    end
    local p = at + 1 + (band(flags, TOKEN) ~= 0 and 8 or 0) +
        (band(flags, RETRY) ~= 0 and 10 or 0)
    return (byte(text, p) or 0) >= ANSWERED and p or nil
end

-- What the start was answered, if the head does not have it; ''.
local function kept_answer(body)
    local p = kept_answer_at(body, HEAD + 1)
    return p and sub(body, p + 5, p + 20) or ''
end

-- The mark of a periodic timer with the generation `generation` by its start.
local function mark_of_start(generation)
    return pack('<I4', generation % 4294967296) .. '\0\0\0\0'
end

-- The mark of a periodic timer with the mark `old` after an update.
local function mark_of_both(old, update)
    return sub(old, 1, 4) .. sub(update, 5)
end

local function generation_of(body)
    return (unpack_struct('<d', body))
end

local function attempt_of(body)
    return (unpack_struct('<H', body, 17))
end

local function with_attempt(body, attempt)
    return sub(body, 1, 16) .. pack('<H', math.min(attempt, 65535)) ..
        sub(body, HEAD + 1)
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

-- How many bytes of a text whose flags are at `at` are the store's own.
local function own_bytes(text, at)
    local bytes = (byte(text, at) or 0) >= MARK and 8 or 0
    local p = kept_answer_at(text, at)
    if p then
        bytes = bytes + (sub(text, p + 1, p + 4) == '\0\0\0\0' and
            byte(text, p) == ANSWERED and 21 or 16)
    end
    return bytes
end

-- What a tail counts for the bound on bytes: its payload and options, but not
-- what the store adds, for an update that moves a timer must not be refused.
local function bytes_of_tail(tail)
    return #tail - 1 - own_bytes(tail, 1)
end

-- The same for the tail of a body, if there is one.
local function bytes_of(body)
    return body and #body - HEAD - 1 - own_bytes(body, HEAD + 1) or 0
end

-- Whether `fired` is an occurrence of the periodic timer that has `body` now,
-- and not of a start that had its id before; and whether no update was between.
local function is_occurrence(fired, body)
    local old, new = parse(fired, HEAD + 1), parse(body, HEAD + 1)
    local mark, present = old and old.mark or '', new and new.mark or ''
    return old and new and is_periodic(fired) and
        sub(mark, 1, 4) == sub(present, 1, 4), mark == present
end

-- The body in the fields of an entry, and the id; nil if it is not ours.
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
