/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A wire in memory between two ends of one process, over usrsctp's AF_CONN. A
 * thread delivers the packets: usrsctp sends under locks that its input takes.
 */
#ifndef WIRE_H
#define WIRE_H

#include <usrsctp.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIRE_PORT = 7 };

struct packet {
    struct packet *next;
    void *to;
    size_t size;
    char data[];
};

/* The addresses of the two ends. A socket of one end sends to its own address,
 * and usrsctp takes what comes in at an end for what its peer has sent. */
static char wire_ends[2];
static pthread_mutex_t wire_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wire_changed = PTHREAD_COND_INITIALIZER;
static struct packet *wire_first;
static struct packet **wire_last = &wire_first;

/* Returns true if the packet is lost. Called with the lock held. */
static bool (*wire_loses)(const void *data, size_t size);

static inline void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void check(int status, const char *what)
{
    if (status < 0) {
        fail(what);
    }
}

/* Not of the clock that NTP speeds up and slows down. */
static inline double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* For qsort(). */
static inline int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static int wire_send(void *from, void *data, size_t size, uint8_t tos,
                     uint8_t set_df)
{
    struct packet *const packet = malloc(sizeof *packet + size);
    (void)tos;
    (void)set_df;
    if (!packet) {
        return ENOMEM;
    }
    packet->next = NULL;
    packet->to = from == &wire_ends[0] ? &wire_ends[1] : &wire_ends[0];
    packet->size = size;
    memcpy(packet->data, data, size);
    pthread_mutex_lock(&wire_mutex);
    if (wire_loses && wire_loses(data, size)) {
        free(packet);
    } else {
        *wire_last = packet;
        wire_last = &packet->next;
        pthread_cond_signal(&wire_changed);
    }
    pthread_mutex_unlock(&wire_mutex);
    return 0;
}

static void *wire_deliver(void *arg)
{
    pthread_mutex_lock(&wire_mutex);
    for (;;) {
        struct packet *packet;
        while (!wire_first) {
            pthread_cond_wait(&wire_changed, &wire_mutex);
        }
        packet = wire_first;
        wire_first = packet->next;
        if (!wire_first) {
            wire_last = &wire_first;
        }
        pthread_mutex_unlock(&wire_mutex);
        usrsctp_conninput(packet->to, packet->data, packet->size, 0);
        free(packet);
        pthread_mutex_lock(&wire_mutex);
    }
    return arg;
}

static inline void wire_open(void)
{
    pthread_t thread;
    usrsctp_init(0, wire_send, NULL);
    usrsctp_enable_crc32c_offload();
    usrsctp_sysctl_set_sctp_ecn_enable(0);
    usrsctp_register_address(&wire_ends[0]);
    usrsctp_register_address(&wire_ends[1]);
    if (pthread_create(&thread, NULL, wire_deliver, NULL) != 0) {
        fail("pthread_create");
    }
}

static inline struct sockaddr_conn wire_address(int end, uint16_t port)
{
    struct sockaddr_conn address;
    memset(&address, 0, sizeof address);
    address.sconn_family = AF_CONN;
    address.sconn_port = htons(port);
    address.sconn_addr = &wire_ends[end];
    return address;
}

/* A socket that is bound to an end. Port 0: any. */
static inline struct socket *
wire_socket(int end, int type, uint16_t port,
            int (*on_data)(struct socket *, union sctp_sockstore, void *,
                           size_t, struct sctp_rcvinfo, int, void *))
{
    struct sockaddr_conn address = wire_address(end, port);
    struct socket *const s =
        usrsctp_socket(AF_CONN, type, IPPROTO_SCTP, on_data, NULL, 0, NULL);
    if (!s) {
        fail("usrsctp_socket");
    }
    check(usrsctp_bind(s, (struct sockaddr *)&address, sizeof address),
          "usrsctp_bind");
    return s;
}

static inline void wire_connect(struct socket *s, int end)
{
    struct sockaddr_conn address = wire_address(end, WIRE_PORT);
    check(usrsctp_connect(s, (struct sockaddr *)&address, sizeof address),
          "usrsctp_connect");
}

#endif
