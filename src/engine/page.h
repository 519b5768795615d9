// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics page of an engine, for lawn_top: a passenger, so that an
// engine without one does not pay for it.

#ifndef LAWN_SRC_ENGINE_PAGE_H
#define LAWN_SRC_ENGINE_PAGE_H

#include <lawn/engine.h>

namespace lawn
{

// Makes the page that the parameters or the environment ask for, if they do.
// NO_MEMORY, or IO with errno.
lawn_status_t open_page(lawn_engine_t *engine, const char *name);

// Removes it, if there is one.
void close_page(lawn_engine_t *engine);

} // namespace lawn

#endif
