// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which faults a run of `verify` has, and when. The same seed gives the same
// plan.

#ifndef LAWN_VERIFY_PLAN_H
#define LAWN_VERIFY_PLAN_H

#include <cstdint>
#include <vector>

namespace lawn_verify
{

enum class FaultKind {
    kill,  // SIGKILL, and started again
    pause, // SIGSTOP, and SIGCONT
    cut,   // its connections are closed
    hold,  // nothing passes on its connections
    delay, // everything on its connections comes later
    step,  // its clocks are set, and set back
};

using FaultKinds = std::vector<FaultKind>;

const char *to_string(FaultKind kind);

// A victim has one fault at a time.
struct Fault {
    int64_t at_us = 0;  // from the beginning
    int64_t for_us = 0; // until it is mended
    FaultKind kind = FaultKind::kill;
    unsigned victim = 0;
    int64_t delay_us = 0;
    int64_t step_us = 0; // below 0: back
};

// Faults that begin within `length_us`, in the order of their beginnings.
// `victims` says what may be done to each; one to whom nothing may is spared.
std::vector<Fault> make_plan(uint64_t seed,
                             const std::vector<FaultKinds> &victims,
                             int64_t length_us);

} // namespace lawn_verify

#endif
