// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Virtual time for libraries that read the clock themselves. The program
// defines clock_gettime and gettimeofday, and the dynamic linker binds the
// library's calls to them; so they must be linked into the program itself. They
// answer from a variable while a VirtualNow lives, which is only while the
// library is in a call, and with the real time otherwise: what measures is not
// to notice. A virtual reading takes a few nanoseconds where a real one takes
// some tens, in favour of the libraries.

#ifndef LAWN_BENCH_PEERS_VIRTUAL_CLOCK_H
#define LAWN_BENCH_PEERS_VIRTUAL_CLOCK_H

#include "schemes/scheme.h"

#include <time.h>

namespace bench
{

// What every clock of this thread shows; null: the real time.
inline thread_local const timespec *virtual_now = nullptr;

class VirtualNow
{
public:
    VirtualNow(Time sec, Time nsec)
        : now_{static_cast<time_t>(sec), static_cast<long>(nsec)}
    {
        virtual_now = &now_;
    }

    ~VirtualNow()
    {
        virtual_now = nullptr;
    }

    VirtualNow(const VirtualNow &) = delete;
    VirtualNow &operator=(const VirtualNow &) = delete;

private:
    const timespec now_;
};

} // namespace bench

#endif
