// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_dump(), which prints the timers of a lawn.

#include "timer/inside.h"

#include <lawn/stats.h>

#include <inttypes.h>

using namespace lawn;

namespace
{

struct Dump {
    const lawn_t *lawn;
    lawn_time_t now;
    FILE *stream;
};

void print(const lawn_timer_t *timer, void *arg)
{
    const Dump *const dump = static_cast<const Dump *>(arg);
    const lawn_time_t deadline = program_deadline(dump->lawn, timer);
    if (deadline == LAWN_TIME_INFINITY) {
        return; // what stands behind it was stopped
    }
    fprintf(dump->stream, "timer 0x%" PRIxPTR " callback 0x%" PRIxPTR " ",
            reinterpret_cast<uintptr_t>(timer),
            reinterpret_cast<uintptr_t>(timer->expired));
    if (deadline == never) {
        fputs("never\n", dump->stream);
    } else {
        const bool is_late = deadline < dump->now;
        const lawn_time_t left =
            is_late ? dump->now - deadline : deadline - dump->now;
        fprintf(dump->stream, "deadline %" PRIu64 " left %s%" PRIu64 "\n",
                deadline, is_late ? "-" : "", left);
    }
}

} // namespace

lawn_status_t lawn_dump(const lawn_t *lawn, lawn_time_t now, FILE *stream)
{
    Dump dump = {lawn, now, stream};
    for_each_running(lawn, print, &dump);
    return ferror(stream) != 0 ? LAWN_ERR_IO : LAWN_OK;
}
