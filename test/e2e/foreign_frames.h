// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A stranger on the Ethernet: sends frames to a port of the ping-pong's that
// did not ask for them.

#ifndef LAWN_TEST_E2E_FOREIGN_FRAMES_H
#define LAWN_TEST_E2E_FOREIGN_FRAMES_H

#include <string>

namespace e2e
{

// Sends `count` frames out of link `from` to the address of link `to`, in
// turns: of another protocol; of the ping-pong's, from a stranger; random bytes
// of the ping-pong's, in the name of link `from`. Returns how many left.
unsigned send_foreign_frames(const std::string &from, const std::string &to,
                             unsigned count);

} // namespace e2e

#endif
