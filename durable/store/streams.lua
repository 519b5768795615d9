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

-- The least entry that `group` has not answered, or one before it. `info` is
-- what XINFO GROUPS says of it.
local function oldest_wanted(stream, info)
    if info.pending > 0 then
        return call('XPENDING', stream, info.name)[2]
    end
    return info['last-delivered-id']
end

-- What the first group has answered goes; while there are other groups, only
-- what they have answered too, or what is beyond `keep_count`. Returns whether
-- there is more of this than is dropped in one call.
local function trim_stream(s, stream)
    local group = s[group_field(stream)]
    local length = call('XLEN', stream)
    if not group or length == 0 then
        return false
    end
    local first, least
    for _, fields in ipairs(call('XINFO', 'GROUPS', stream)) do
        local info = pairs_of(fields)
        local oldest = oldest_wanted(stream, info)
        if info.name == group then
            first = oldest
        end
        if not least or is_before(oldest, least) then
            least = oldest
        end
    end
    if not first then
        return false
    end
    local excess = length - s.keep_count
    local is_more = false
    if excess > 0 and is_before(least, first) then
        local old = call('XRANGE', stream, '-', '+', 'COUNT',
            math.min(excess, MAX_BATCH))
        least = old[#old][1]
        is_more = excess > MAX_BATCH
        if is_before(first, least) then
            least = first
            is_more = false
        end
    end
    call('XTRIM', stream, 'MINID', '~', least, 'LIMIT', 0)
    return is_more
end

-- Trims as often as the shard is looked at anew, or until the rest can wait.
-- Should it fail, as the key may be of another type, then others will say so.
local function trim(s, stream)
    if not s.trimmed[stream] then
        s.trimmed[stream] = true
        local is_done, is_more = pcall(trim_stream, s, stream)
        s.trimmed[stream] = not (is_done and is_more)
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
