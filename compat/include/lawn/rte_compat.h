/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_compat.h - DPDK's names for lawn/rte_timer.h and
 * lawn/rte_timer_alt.h.
 *
 * It is for programs that were written for <rte_timer.h>:
 *
 *     cc -DLAWN_RTE_COMPAT -include lawn/rte_compat.h program.c -llawn
 *
 * With LAWN_RTE_COMPAT, this header defines the names of DPDK and includes what
 * <rte_timer.h> includes, and <rte_timer.h> itself is empty. Only the names
 * change: the program may also link librte_timer, and DPDK's drivers go on
 * using it.
 */
#ifndef LAWN_RTE_COMPAT_H
#define LAWN_RTE_COMPAT_H

#include <lawn/rte_timer_alt.h>

#ifdef LAWN_RTE_COMPAT

#ifdef _RTE_TIMER_H_
#error "include lawn/rte_compat.h before DPDK's rte_timer.h"
#endif
#define _RTE_TIMER_H_

/* A program may use what <rte_timer.h> includes, such as rte_spinlock_t, and
 * include nothing else for it. <rte_lcore.h> includes DPDK's <rte_compat.h>. */
#ifdef __has_include
#if __has_include(<rte_lcore.h>) && __has_include(<rte_spinlock.h>)
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_spinlock.h>
#endif
#endif

#define rte_timer lawn_rte_timer
#define rte_timer_type lawn_rte_timer_type
#define SINGLE LAWN_RTE_TIMER_SINGLE
#define PERIODICAL LAWN_RTE_TIMER_PERIODICAL
#define rte_timer_cb_t lawn_rte_timer_cb_t
#define rte_timer_subsystem_init lawn_rte_timer_subsystem_init
#define rte_timer_subsystem_finalize lawn_rte_timer_subsystem_finalize
#define rte_timer_init lawn_rte_timer_init
#define rte_timer_reset lawn_rte_timer_reset
#define rte_timer_reset_sync lawn_rte_timer_reset_sync
#define rte_timer_stop lawn_rte_timer_stop
#define rte_timer_stop_sync lawn_rte_timer_stop_sync
#define rte_timer_pending lawn_rte_timer_pending
#define rte_timer_manage lawn_rte_timer_manage
#define rte_timer_next_ticks lawn_rte_timer_next_ticks
#define rte_timer_dump_stats lawn_rte_timer_dump_stats
#define rte_timer_data_alloc lawn_rte_timer_data_alloc
#define rte_timer_data_dealloc lawn_rte_timer_data_dealloc
#define rte_timer_alt_reset lawn_rte_timer_alt_reset
#define rte_timer_alt_stop lawn_rte_timer_alt_stop
#define rte_timer_alt_manage_cb_t lawn_rte_timer_alt_manage_cb_t
#define rte_timer_alt_manage lawn_rte_timer_alt_manage
#define rte_timer_stop_all_cb_t lawn_rte_timer_stop_all_cb_t
#define rte_timer_stop_all lawn_rte_timer_stop_all

#ifdef __cplusplus
#define RTE_TIMER_INITIALIZER                                                  \
    {                                                                          \
    }
#else
#define RTE_TIMER_INITIALIZER                                                  \
    {                                                                          \
        .status = LAWN_RTE_TIMER_STOP                                          \
    }
#endif

#ifndef LCORE_ID_ANY
#define LCORE_ID_ANY LAWN_RTE_LCORE_ID_ANY
#endif

#endif
#endif
