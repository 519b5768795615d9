// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lines of the source that explored accesses are in.

#ifndef LAWN_TEST_EXPLORE_PLACES_H
#define LAWN_TEST_EXPLORE_PLACES_H

#include <string>
#include <vector>

namespace explore
{

// Of each return address the line of the call before it, as "file.cc:12"; of
// what is inline, the line in the library that it serves. "" for nullptr.
std::vector<std::string> lines_of(const std::vector<const void *> &places);

} // namespace explore

#endif
