/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lwIP for the programs of this directory: TCP, and one cyclic timer beside
 * TCP's (that of DNS). No threads: sys_now() is theirs.
 */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0

#define LWIP_DNS 1
#define LWIP_ARP 0
#define IP_REASSEMBLY 0

#define MEM_ALIGNMENT 8
#define MEM_SIZE (1 << 20)
#define MEMP_NUM_SYS_TIMEOUT 65535 /* the most that a pool can hold */
#define MEMP_NUM_TCP_SEG 256
#define TCP_MSS 1460
#define TCP_SND_BUF (16 * TCP_MSS)
#define TCP_SND_QUEUELEN 128
#define TCP_WND (16 * TCP_MSS)
#define LWIP_STATS 0

#endif
