// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// All that an engine knows of its connections: when it is destroyed, it frees
// what they have shared (profile.h).

#ifndef LAWN_SRC_CONN_PROFILES_H
#define LAWN_SRC_CONN_PROFILES_H

#include <lawn/engine.h>

namespace lawn
{

void close_profiles(lawn_engine_t *engine);

} // namespace lawn

#endif
