// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Static probes (USDT) for bpftrace, perf and systemtap. Each probe is a nop
// until one of these tools attaches. The probes are named lawn:start, lawn:fire
// and so on, and doc/trace.md lists them. Without <sys/sdt.h> there are no
// probes.

#ifndef LAWN_SRC_BASE_PROBE_H
#define LAWN_SRC_BASE_PROBE_H

#if LAWN_HAVE_SDT
#include <sys/sdt.h>
#ifdef __clang__
// The warning comes from the macros of <sys/sdt.h>.
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define LAWN_PROBE(name, a, b, c) DTRACE_PROBE3(lawn, name, a, b, c)
#else
#define LAWN_PROBE(name, a, b, c) ((void)0)
#endif

#endif
