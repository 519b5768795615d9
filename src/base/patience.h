// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How a thread waits for another one that is in the middle of a few
// instructions. It yields at first, and then sleeps between its looks. If the
// other one has a lower priority and was interrupted on this processor, yields
// alone would never let it go on.
//
//     for (Patience patience; is_taken(lock);) {
//         patience.wait();
//     }

#ifndef LAWN_SRC_BASE_PATIENCE_H
#define LAWN_SRC_BASE_PATIENCE_H

#include <sched.h>
#include <time.h>

namespace lawn
{

// Sleeps for 50 us, so that any other thread of this processor may run.
inline void nap()
{
    const timespec duration = {0, 50'000};
    nanosleep(&duration, nullptr);
}

class Patience
{
public:
    void wait()
    {
        if (left_ != 0) {
            --left_;
            sched_yield();
        } else {
            nap();
        }
    }

private:
    unsigned left_ = 100; // yields
};

} // namespace lawn

#endif
