/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The command line of the ping-pongs, their error messages, and the end of
 * their output.
 */
#ifndef PINGPONG_OPTIONS_H
#define PINGPONG_OPTIONS_H

#include <lawn/conn.h>

/* What main() returns. */
enum {
    EXIT_DELIVERED = 0,
    EXIT_FAILED = 1,   /* at run time: no device, no server, ... */
    EXIT_USAGE = 2,    /* the command line makes no sense */
    EXIT_DEAD = 3,     /* the peer was declared dead */
    EXIT_VIOLATED = 4, /* delivery not exactly once, or a timer fired early */
    EXIT_TIMEOUT = 5   /* --timeout */
};

/* To which programs an option belongs: all ping-pongs, or one transport. */
typedef enum {
    OPTIONS_OF_ALL = 0,
    OPTIONS_OF_VERBS = 1,
    OPTIONS_OF_UCX = 2,
    OPTIONS_OF_DPDK = 4
} options_of_t;

/* Times are ticks. */
typedef struct {
    const char *host; /* NULL: be the server */
    const char *device;
    uint32_t ib_port;
    uint32_t gid_index;
    bool is_rc;
    bool oneway;
    bool events; /* sleep when there is nothing to do */
    bool cm;     /* meet by rdma_cm instead of the exchange */
    bool quiet;
    uint32_t iters;
    uint32_t size;
    uint32_t connections;
    uint32_t window; /* messages under way on a connection */
    uint32_t port;
    uint64_t seed;
    uint64_t rate; /* of messages, bytes per second; 0: no limit */
    double drop;   /* share, 0 <= drop < 1 */
    lawn_time_t wait;
    lawn_time_t timeout; /* 0: none */
    lawn_time_t idle;    /* how long a connected client waits to send */
    lawn_conn_params_t timers;
} options_t;

typedef enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_BAD } options_result_t;

/* Reads the command line of the program of transport `of`. OPTIONS_HELP: the
 * user asked for help, and it is printed. OPTIONS_BAD: the command line is bad,
 * and one line has been printed on stderr. */
options_result_t options_parse(int argc, char **argv, options_of_t of,
                               options_t *options);

/* Prints the name of the program and one line on stderr. */
extern const char *program_name;
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes out what is buffered. Returns `result`, or EXIT_FAILED instead of
 * EXIT_DELIVERED if a write to stdout has failed, which is printed. Call it
 * right after the last output, while errno says why that failed. */
int finish_output(int result);

#endif
