// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The list of contenders; see contender.h.

#include "rto/contender.h"

namespace bench::rto
{

const std::vector<Kind> &kinds()
{
    static const std::vector<Kind> list = {
        {"oracle",
         "the least fixed RTO that is spurious in at most 5 of 10,000 on that "
         "path",
         true, nullptr},
        {"rfc6298", "SRTT + max(1 us, 4 RTTVAR)", true, make_rfc6298},
        {"rto_min", "the same, at least 1 ms", true, make_rto_min},
        {"infiniband", "the least 4.096 us * 2^n of at least 4R", true,
         make_infiniband},
        {"ucx", "UCX's UD: a tick of 10 ms that doubles", true, make_ucx},
        {"linux", "200 ms, RACK and TLP, at 1,000 Hz", true, make_linux},
        {"linux-250", "the same at 250 Hz", false, make_linux_250},
        {"quic", "RFC 9002", true, make_quic},
        {"lawn", "lawn/conn.h", true, make_lawn},
        {"lawn+ask", "the same, with `ask`", true, make_lawn_ask},
    };
    return list;
}

} // namespace bench::rto
