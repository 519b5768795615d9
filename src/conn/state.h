// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a trace tells of a connection, found by its timers: whoever observes a
// lawn sees each start and pause of them, so a connection that nobody observes
// pays nothing for it.

#ifndef LAWN_SRC_CONN_STATE_H
#define LAWN_SRC_CONN_STATE_H

#include <lawn/conn.h>

namespace lawn
{

// The connection whose retransmit timer this is, or nullptr.
const lawn_conn_t *conn_of_retransmit(const lawn_timer_t *timer);

// The connection whose keepalive timer this is, or nullptr.
const lawn_conn_t *conn_of_keepalive(const lawn_timer_t *timer);

} // namespace lawn

#endif
