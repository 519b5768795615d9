// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Who is posted to: all URLs of one scheme, host and port are one target, which
// shares its connections, its queue and its limits.

#ifndef LAWND_TARGET_H
#define LAWND_TARGET_H

#include <string>

namespace lawnd
{

// "http://host:80" for what may be posted to, otherwise "".
std::string target_of(const std::string &url);

} // namespace lawnd

#endif
