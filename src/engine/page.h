// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics page of an engine, which lawn_top shows (page_layout.h). It is
// a hook, so an engine without a page does not pay for it.

#ifndef LAWN_SRC_ENGINE_PAGE_H
#define LAWN_SRC_ENGINE_PAGE_H

#include <lawn/engine.h>

namespace lawn
{

struct Engine;

// Makes the page if the parameters or the environment ask for one. Returns OK,
// NO_MEMORY, or IO with errno.
lawn_status_t open_page(Engine *engine, const char *name);

// Shows the statistics of an engine that is about to sleep, if it has a page.
void show_asleep(const Engine *engine);

// Removes the page, if the engine has one.
void close_page(Engine *engine);

} // namespace lawn

#endif
