// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Redis's header, which defines its functions' addresses in each source that
// includes it, but here in module.cc alone, and is not as strict as we are.

#ifndef LAWN_REDIS_API_H
#define LAWN_REDIS_API_H

#ifndef LAWN_REDIS_DEFINES_API
#define REDISMODULE_API extern
#endif
#define REDISMODULE_ATTR
#include <redismodule.h>

#endif
