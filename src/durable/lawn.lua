#!lua name=lawn
-- Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
--
-- The store's half of the durable tier.

redis.register_function{
    function_name = 'lawn_version',
    callback = function() return 1 end,
    flags = {'no-writes', 'allow-stale', 'allow-oom', 'allow-cross-slot-keys'},
}
