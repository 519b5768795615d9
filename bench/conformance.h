// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Whether a contender is a timer scheme: what it fires, against the model
// (schemes/model.h), under random operations.

#ifndef LAWN_BENCH_CONFORMANCE_H
#define LAWN_BENCH_CONFORMANCE_H

#include "contender.h"

#include <string>

namespace bench
{

// What is wrong with it, in one line; empty if nothing was found. Takes some
// tenths of a second.
std::string nonconformance(const Contender &contender);

} // namespace bench

#endif
