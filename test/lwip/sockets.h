/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Debian's sockets.c calls these of its own port. lwIP's tests use lwIP's
 * addresses, which know their length.
 */
#define IP4ADDR_SOCKADDR_SET_LEN(in) ((in)->sin_len = sizeof *(in))
#define IP6ADDR_SOCKADDR_SET_LEN(in6) ((in6)->sin6_len = sizeof *(in6))
#define IPADDR_SOCKADDR_GET_LEN(any) ((any)->sa.sa_len)
