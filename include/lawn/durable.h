/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/durable.h - timers that outlive the process: kept in Redis, visible to
 * every machine, delivered at least once and never early.
 */
#ifndef LAWN_DURABLE_H
#define LAWN_DURABLE_H

#include <lawn/base.h>

#endif
