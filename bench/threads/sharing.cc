// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The list of the ways to share timers that this build has.

#include "threads/sharing.h"

#include <cstdio>

namespace bench
{

Sharings all_sharings()
{
    Sharings all;
    add_lawns(&all);
    add_wheels(&all);
#ifdef LAWN_BENCH_DPDK
    add_dpdk(&all);
#endif
    for (auto i = all.begin(); i != all.end();) {
        const char *const defect = (*i)->defect();
        if (defect) {
            fprintf(stderr, "lawn_bench: no %s: %s\n", (*i)->name, defect);
        }
        i = defect ? all.erase(i) : i + 1;
    }
    return all;
}

} // namespace bench
