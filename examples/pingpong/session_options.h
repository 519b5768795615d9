/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Between the command line and the session: what the options mean to it, and
 * what its end means to whoever has started the program.
 */
#ifndef PINGPONG_SESSION_OPTIONS_H
#define PINGPONG_SESSION_OPTIONS_H

#include "options.h"
#include "session.h"

/* The configuration of one side. `window` and `run` as in session_config_t. */
session_config_t session_options(const options_t *options, bool is_client,
                                 uint32_t window, uint64_t run);

/* EXIT_..., EXIT_TIMEOUT for a session that is not over. */
int session_exit_status(const session_t *session);

#endif
