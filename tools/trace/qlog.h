// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A trace as qlog, for the tools that show the recovery of QUIC: the version
// 0.3 of draft-ietf-quic-qlog-main-schema-02 and the events of
// draft-ietf-quic-qlog-quic-events-02, as JSON text sequences (RFC 7464).

#ifndef LAWN_TOOLS_TRACE_QLOG_H
#define LAWN_TOOLS_TRACE_QLOG_H

#include "model.h"

#include <string>

namespace trace_file
{

// All connections, or the one of that name if it is not 0. Events have the
// connection's name as their group_id, and are in the order of time.
std::string qlog_of(const Model &model, const std::string &title,
                    uint64_t connection);

} // namespace trace_file

#endif
