// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The list of the peers of this build.

#include "peers/peers.h"

namespace bench
{

std::vector<Contender> peers()
{
    return {
#ifdef LAWN_BENCH_UCX
        ucs_twheel(),
        ucs_timerq(),
#endif
#ifdef LAWN_BENCH_DPDK
        rte_timers(),
#endif
#ifdef LAWN_BENCH_LIBEV
        libev(),
#endif
#ifdef LAWN_BENCH_LIBUV
        libuv(),
#endif
#ifdef LAWN_BENCH_LIBEVENT
        libevent(),
        libevent_common(),
#endif
#ifdef LAWN_BENCH_ASIO
        asio(),
#endif
#ifdef LAWN_BENCH_LAWN2
        lawn2_store(),
#endif
#ifdef LAWN_BENCH_WAHERN
        wahern_timeouts(),
#endif
    };
}

} // namespace bench
