-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- Groups of the streams, and what is trimmed.

local function group_field(stream)
    return sub(stream, -5) == ':push' and 'group_push' or 'group_out'
end

-- What another group answers changes nothing, so what is remembered is not
-- enough to say that it is another.
local function is_first_group(s, stream, group)
    local field = group_field(stream)
    if s[field] ~= group then
        s[field] = call('HGET', s.meta, field)
    end
    return s[field] == group
end

local function is_before(a, b)
    local a1, a2 = string.match(a, '^(%d+)-(%d+)$')
    local b1, b2 = string.match(b, '^(%d+)-(%d+)$')
    a1, a2, b1, b2 = tonumber(a1), tonumber(a2), tonumber(b1), tonumber(b2)
    return a1 < b1 or (a1 == b1 and a2 < b2)
end

-- What XINFO lists, by its names.
local function pairs_of(list)
    local info = {}
    for i = 1, #list, 2 do
        info[list[i]] = list[i + 1]
    end
    return info
end

-- Reads from the entry `from` on: how many entries, up to `most`, the name of the
-- last, and whether there may be more, as these are so many, or large.
local function skim(stream, from, most)
    local count, bytes, last = 0, 0, nil
    while count < most do
        local wanted = math.min(most - count, SKIMMED_AT_ONCE)
        local found = call('XRANGE', stream, from, '+', 'COUNT', wanted)
        for _, entry in ipairs(found) do
            last = entry[1]
            for _, text in ipairs(entry[2]) do
                bytes = bytes + #text
            end
        end
        count = count + #found
        if #found < wanted then
            return count, last, false
        elseif bytes > MOST_SKIMMED then
            break
        end
        from = '(' .. last
    end
    return count, last, true
end

-- How many entries of the stream the first group has not answered, given to it
-- or not; how many the stream has had; how many it has; and whether the first is
-- certain. The bodies do not tell: that of a periodic timer is pending again.
-- The lag of a group may be too large after its stream was moved, so it counts
-- only if there is more than it was given. It is nil if somebody has deleted an
-- entry. Then a thousand are counted, or fewer if they are large.
local function flow_of(meta, stream)
    local about = try('XINFO', 'STREAM', stream)
    if about.err then -- there is none, or it is of another type
        return call('XLEN', stream), 0, 0, true
    end
    about = pairs_of(about)
    local length, added = about.length, about['entries-added']
    local group = call('HGET', meta, group_field(stream))
    for _, fields in ipairs(group and call('XINFO', 'GROUPS', stream) or {}) do
        local info = pairs_of(fields)
        if info.name == group then
            local last, lag = info['last-delivered-id'], tonumber(info.lag)
            local is_known = true
            if last == about['last-generated-id'] then
                lag = 0
            elseif not lag then
                local _, is_more
                lag, _, is_more = skim(stream, '(' .. last, MAX_BATCH)
                is_known = not is_more
            end
            return info.pending + lag, added, length, is_known
        end
    end
    return length, added, length, true
end

-- The least entry that `group` has not answered, or one before it. `info` is
-- what XINFO GROUPS says of it.
local function oldest_wanted(stream, info)
    if info.pending > 0 then
        return call('XPENDING', stream, info.name)[2]
    end
    return info['last-delivered-id']
end

-- The milliseconds since 1970 in the name of an entry.
local function time_of(entry)
    return tonumber(string.match(entry, '^(%d+)-'))
end

-- What the first group has answered goes; while there are other groups, only
-- what they have answered too, or what is beyond `keep_count`. Returns whether
-- more of this is left than is dropped in one call, and whether an entry that
-- nobody answers keeps what has been answered behind it.
local function trim_stream(s, stream)
    local group = s[group_field(stream)]
    local length = call('XLEN', stream)
    if not group or length == 0 then
        return false, false
    end
    local first, least, read
    for _, fields in ipairs(call('XINFO', 'GROUPS', stream)) do
        local info = pairs_of(fields)
        local oldest = oldest_wanted(stream, info)
        if info.name == group then
            first, read = oldest, info['last-delivered-id']
        end
        if not least or is_before(oldest, least) then
            least = oldest
        end
    end
    if not first then
        return false, false
    end
    local excess = length - s.keep_count
    local is_large = false
    if excess > 0 and is_before(least, first) then
        local most, count = math.min(excess, MAX_BATCH), nil
        count, least = skim(stream, '-', most)
        is_large = count < most
        if is_before(first, least) then
            least, is_large = first, false
        end
    end
    local dropped = call('XTRIM', stream, 'MINID', '~', least,
        'LIMIT', MOST_TRIMMED)
    if dropped == 0 then -- a node of the stream may have more entries than that
        dropped = call('XTRIM', stream, 'MINID', '~', least)
    end
    local is_more = 4 * dropped > MOST_TRIMMED or is_large
    return is_more, length - dropped > HELD_LENGTH and
        time_of(read) - time_of(first) > HELD_MS
end

-- Trims as often as the shard is looked at anew, or until the rest can wait.
-- Should it fail, then the next call tries it, as its user may have the right.
-- Returns whether there is more to do.
local function trim(s, stream)
    if s.trimmed[stream] then
        return false
    end
    local is_done, is_more, is_held = pcall(trim_stream, s, stream)
    s.trimmed[stream] = is_done and not is_more
    s.held[stream] = is_done and is_held
    return is_done and is_more
end

-- Whether one of the groups has not answered the entry.
local function is_wanted(stream, groups, entry)
    for _, info in ipairs(groups) do
        if is_before(info['last-delivered-id'], entry) or
            #call('XPENDING', stream, info.name, entry, entry, 1) > 0 then
            return true
        end
    end
    return false
end

-- The groups that `entries` which `group` has answered must wait for.
local function others_of(s, stream, group)
    local is_short = call('XLEN', stream) <= s.keep_count
    local others = {}
    for _, fields in ipairs(call('XINFO', 'GROUPS', stream)) do
        local info = pairs_of(fields)
        if info.name ~= group and
            (is_short or info.name == s[group_field(stream)]) then
            others[#others + 1] = info
        end
    end
    return others
end

-- Drops what of `entries` nobody wants. The newest one stays until the next are
-- answered: without the entry that a group has read last, Redis does not know
-- how many it has not.
local function drop_answered(s, stream, group, entries)
    local others = others_of(s, stream, group)
    local newest = s.spared[stream]
    local gone = {}
    for _, entry in ipairs(entries) do
        if is_wanted(stream, others, entry) then
            -- stays
        elseif not newest or is_before(newest, entry) then
            gone[#gone + 1] = newest
            newest = entry
        elseif entry ~= newest then
            gone[#gone + 1] = entry
        end
    end
    s.spared[stream] = newest
    if #gone > 0 then
        call('XDEL', stream, unpack(gone))
    end
end

-- After `group` has answered the entries. Where an entry that nobody answers
-- holds up others, they go one by one.
local function tidy(s, stream, group, entries)
    trim(s, stream)
    if s.held[stream] and #entries > 0 then
        pcall(drop_answered, s, stream, group, entries)
    end
end

-- Consumers have a name of their own each, and many come and go. One that has
-- nothing and is here after all gets its name back when it reads.
local function forget_consumers(stream, group)
    for _, fields in ipairs(try('XINFO', 'CONSUMERS', stream, group)) do
        local info = pairs_of(fields)
        if info.pending == 0 and info.idle > CONSUMER_IDLE_MS then
            call('XGROUP', 'DELCONSUMER', stream, group, info.name)
        end
    end
end

register('lawn_join', 2, 1, 2, {'allow-oom'}, function(keys, args)
    local group, first = args[1], args[2]
    if not id_is_valid(group) or (first and not id_is_valid(first)) then
        return invalid('group')
    end
    local field = group_field(keys[2])
    local known = call('HGET', keys[1], field)
    local made = try('XGROUP', 'CREATE', keys[2], group, '0', 'MKSTREAM')
    if made.err and not find(made.err, '^%-?BUSYGROUP') then
        return made
    end
    forget_consumers(keys[2], group)
    forget_shard(keys[1])
    if first and first ~= known then
        call('HSET', keys[1], field, first)
        return first
    end
    if not known then
        call('HSET', keys[1], field, group)
    end
    return known or group
end)
