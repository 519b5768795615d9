-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- What is remembered of a shard between calls, for a second at most: its limits
-- and groups, which change rarely, and what has been done lately. It saves most
-- of what a call would have to read. Nothing is wrong without it, for a server
-- that has just started, or got the shard from another one, has none of it.

local shards = {}
local shards_kept = 0

local function shard_of(meta, now)
    local s = shards[meta]
    if s and now >= s.at and now - s.at < 1000000 then
        return s
    end
    local m = call('HMGET', meta, 'max_pending', 'max_bytes', 'draining',
        'keep_us', 'keep_count', 'group_out', 'group_push')
    if not s then
        shards_kept = shards_kept + 1
        if shards_kept > 4096 then -- of more namespaces than anybody has
            shards, shards_kept = {}, 1
        end
    end
    s = {
        at = now,
        meta = meta,
        max_pending = tonumber(m[1]),
        max_bytes = tonumber(m[2]),
        draining = m[3],
        keep_us = tonumber(m[4]) or KEEP_US,
        keep_count = tonumber(m[5]) or KEEP_COUNT,
        group_out = m[6],
        group_push = m[7],
        is_limited = m[1] or m[2] or m[3],
        wake = nil,  -- all pumps call at this time or before; nil: who knows
        ended = nil, -- the table that ends are written to
        room = 0,    -- how many more
        cron = nil,  -- how many timers are in the SET
        trimmed = {}, -- streams, in this second
        held = {},    -- streams, by an entry that nobody answers
        spared = s and s.spared or {}, -- streams -> an answered entry
        is_raised = false, -- the generation, for a server that is new here
    }
    shards[meta] = s
    return s
end

-- To be called when what is kept of the shard has changed.
local function forget_shard(meta)
    shards[meta] = nil
end

-- Adds to the counters of the shard. Bytes are counted where there is a bound.
-- The timers have been written by now. So a counter that somebody has made a
-- text of begins anew.
local function count(s, counts)
    for name, n in next, counts do
        if n ~= 0 and (name ~= 'bytes' or s.max_bytes) and
            type(try('HINCRBY', s.meta, name, n)) == 'table' then
            try('HSET', s.meta, name, math.max(n, 0))
        end
    end
end

-- A server that has just got the shard may have lost the last generations that
-- were given. So they are at least the time when it looks at the shard, and go
-- on from there one by one. `raised` is what was left out by that. Returns the
-- last of `wanted` new ones. It fails if they are no numbers: to begin anew
-- would give some twice.
local function new_generations(s, now, wanted)
    if not s.is_raised then
        local known = call('HGET', s.meta, 'gen')
        local last = tonumber(known or 0)
        if last and last < now then
            call('HSET', s.meta, 'gen', now)
            count(s, {raised = now - last})
        end
        s.is_raised = last ~= nil
    end
    local last = try('HINCRBY', s.meta, 'gen', wanted)
    if type(last) == 'table' then
        error(name_key(last, s.meta .. ', field gen').err, 0)
    end
    return last
end

-- A timer is due at `due`: wakes the pumps, unless all of them call before. Or
-- about then: if the time at which they call has just passed, they hear of this
-- timer from that call. The user may not be let publish: what has been written
-- stays, and pumps find it when they look at the shard by themselves.
local function wake(s, due_key, due)
    if not s.wake or due < s.wake then
        local told = try('PUBLISH', sub(due_key, 1, -4) .. 'wake', due)
        s.wake = type(told) == 'number' and due or nil
    end
end

-- How ends are kept: two tables, of which one is filled; when that is old or
-- full, the other is dropped and filled. So a record stays for keep_us, unless
-- there are more than keep_count of them, and dropping costs nothing.
-- Returns the one to fill with `count` records; call it before anything is
-- written.
local function ended_key(s, ended0, ended1, count, now)
    s.room = s.room - count
    if s.ended and s.room >= 0 then
        return s.ended
    end
    local m = call('HMGET', s.meta, 'cur', 'since')
    local cur = m[1] == '1' and 1 or 0
    local length = call('HLEN', cur == 0 and ended0 or ended1)
    if length == 0 then
        call('HSET', s.meta, 'cur', cur, 'since', now)
    elseif length >= s.keep_count or
        now - (tonumber(m[2]) or 0) > s.keep_us then
        cur = 1 - cur
        length = 0
        call('UNLINK', cur == 0 and ended0 or ended1)
        call('HSET', s.meta, 'cur', cur, 'since', now)
    end
    s.ended = cur == 0 and ended0 or ended1
    s.room = s.keep_count - length - count
    return s.ended
end

local STATE_BYTES = {'\1', '\2', '\3', '\4', '\5', '\6'}

local function end_record(state, body, stamp)
    local record = STATE_BYTES[state] .. sub(body, 1, HEAD) .. stamp
    return byte(body, HEAD + 1) % 2 == 0 and record or
        record .. token_of(body) .. kept_answer(body)
end

-- How each of `ids` ended; false for those that nothing is known of.
local function find_ends(meta, ended0, ended1, ids)
    if call('HGET', meta, 'cur') == '1' then
        ended0, ended1 = ended1, ended0
    end
    local records = call('HMGET', ended0, unpack(ids))
    local older = call('HMGET', ended1, unpack(ids))
    for i = 1, #ids do
        local record = records[i] or older[i]
        records[i] = record and #record >= HEAD + 9 and record
    end
    return records
end

local function find_end(meta, ended0, ended1, id)
    return find_ends(meta, ended0, ended1, {id})[1]
end
