/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The link between the command line and the session. The options become the
 * configuration of the session, and its end becomes the program's exit status.
 */
#ifndef PINGPONG_SESSION_OPTIONS_H
#define PINGPONG_SESSION_OPTIONS_H

#include "options.h"
#include "session.h"

/* The configuration of one side. `total_window` and `run` are as in
 * session_config_t. */
session_config_t session_options(const options_t *options, bool is_client,
                                 uint32_t total_window, uint64_t run);

/* One of EXIT_...; EXIT_TIMEOUT if the session is not over. */
int session_exit_status(const session_t *session);

#endif
