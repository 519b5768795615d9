/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Defines the symbols of the inline functions of lawn/shared.h, for calls that
 * are not inlined.
 */
#include <lawn/shared.h>

extern inline bool lawn_shared_start_local(lawn_shared_t *timer,
                                           lawn_time_t deadline);
extern inline bool lawn_shared_is_active(const lawn_shared_t *timer);
extern inline lawn_time_t lawn_shared_deadline(const lawn_shared_t *timer);
