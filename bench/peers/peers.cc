// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The list of the peers of this build.

#include "peers/peers.h"

namespace bench
{

std::vector<Contender> peers()
{
    return {};
}

} // namespace bench
