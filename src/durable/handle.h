// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structure behind lawn_durable_t.

#ifndef LAWN_SRC_DURABLE_HANDLE_H
#define LAWN_SRC_DURABLE_HANDLE_H

#include "durable/link.h"

#include <set>

namespace lawn::durable
{

// What lawn_durable_close() closes: consumers and pumps. They add themselves to
// `attached`, and their destructors take them out.
class Attached
{
public:
    virtual ~Attached() = default;
};

} // namespace lawn::durable

struct lawn_durable {
    lawn_durable_params_t params; // without pointers; defaults filled in
    std::string name_space;
    lawn::durable::Loop loop;
    std::unique_ptr<lawn::durable::Link> link;
    std::set<lawn::durable::Attached *> attached;
    bool is_closing = false; // lawn_durable_close() is running
    // What the results of the functions ending in `_sync` point to.
    std::string sync_error;
    std::string sync_payload;
};

#endif
