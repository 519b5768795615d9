/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/lawn.h - includes all headers of the core.
 */
#ifndef LAWN_LAWN_H
#define LAWN_LAWN_H

#include <lawn/base.h>
#include <lawn/conn.h>
#include <lawn/engine.h>
#include <lawn/flight.h>
#include <lawn/group.h>
#include <lawn/keyed.h>
#include <lawn/numa.h>
#include <lawn/observer.h>
#include <lawn/pacer.h>
#include <lawn/periodic.h>
#include <lawn/queue.h>
#include <lawn/service.h>
#include <lawn/shared.h>
#include <lawn/shm.h>
#include <lawn/stats.h>
#include <lawn/time.h>
#include <lawn/timer.h>

#endif
