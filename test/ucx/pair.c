/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Two programs that play ping-pong by UCX, for ci/ucx-scenario:
 *
 *     pair DIRECTORY server
 *     pair DIRECTORY client
 *
 * They exchange their addresses by files in DIRECTORY. The client reads numbers
 * from its input. For N > 0 it does N round trips and prints the seconds that
 * they took, and the median. For 0 it does round trips until one has taken more
 * than a second and a half, and prints when that one ended, as date(1)
 * has it. For N < 0 it is idle for -N seconds and prints the seconds of CPU.
 */
#include <ucp/api/ucp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64, MAX_ROUNDS = 100000 };

static ucp_worker_h worker;
static ucp_ep_h peer;
static double taken[MAX_ROUNDS];

#define CHECK(call) check(call, #call)

static void check(ucs_status_t status, const char *text)
{
    if (status != UCS_OK) {
        fprintf(stderr, "pair: %s: %s\n", text, ucs_status_string(status));
        exit(1);
    }
}

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void open_worker(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask =
                                             UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_config_t *config;
    ucp_context_h context;
    CHECK(ucp_config_read(NULL, NULL, &config));
    CHECK(ucp_init(&params, config, &context));
    ucp_config_release(config);
    CHECK(ucp_worker_create(context, &worker_params, &worker));
}

/* The other side reads the file, so it must be whole when it has its name. */
static void publish(const char *name)
{
    ucp_address_t *address;
    size_t length;
    char part[64];
    FILE *file;
    CHECK(ucp_worker_get_address(worker, &address, &length));
    snprintf(part, sizeof part, "%s.part", name);
    file = fopen(part, "w");
    if (!file || fwrite(address, 1, length, file) != length || fclose(file) ||
        rename(part, name)) {
        perror(name);
        exit(1);
    }
    ucp_worker_release_address(worker, address);
}

static void connect_to(const char *name)
{
    static char address[4096];
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = (ucp_address_t *)address};
    FILE *file;
    while (!(file = fopen(name, "r"))) {
        ucp_worker_progress(worker);
        usleep(1000);
    }
    if (fread(address, 1, sizeof address, file) == 0) {
        exit(1);
    }
    fclose(file);
    CHECK(ucp_ep_create(worker, &params, &peer));
}

/* The devices are threads of the kernel, which need the processors, too. So
 * rest when nothing came. UD looks at its timers in one of eight calls. */
static void progress(void)
{
    const struct timespec rest = {0, 20000};
    int calls;
    for (calls = 0; calls < 8; calls++) {
        if (ucp_worker_progress(worker) != 0) {
            return;
        }
    }
    nanosleep(&rest, NULL);
}

static void wait_for(void *request)
{
    if (!request) {
        return;
    }
    if (UCS_PTR_IS_ERR(request)) {
        check(UCS_PTR_STATUS(request), "request");
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        progress();
    }
    check(ucp_request_check_status(request), "request");
    ucp_request_free(request);
}

static void transfer(int is_send)
{
    static char buffer[2][SIZE];
    const ucp_request_param_t none = {0};
    wait_for(is_send ? ucp_tag_send_nbx(peer, buffer[0], SIZE, 1, &none)
                     : ucp_tag_recv_nbx(worker, buffer[1], SIZE, 1,
                                        (ucp_tag_t)-1, &none));
}

static double round_trip(void)
{
    const double start = now(CLOCK_MONOTONIC);
    transfer(1);
    transfer(0);
    return now(CLOCK_MONOTONIC) - start;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(int count)
{
    const double start = now(CLOCK_MONOTONIC);
    double end;
    int i;
    for (i = 0; i < count; i++) {
        taken[i] = round_trip();
    }
    end = now(CLOCK_MONOTONIC);
    qsort(taken, (size_t)count, sizeof *taken, compare);
    printf("%.6f %.6f\n", end - start, taken[count / 2]);
}

static void run_until_stall(void)
{
    while (round_trip() < 1.5) {
    }
    printf("%.6f\n", now(CLOCK_REALTIME));
}

static double cpu(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void idle(unsigned seconds)
{
    const double before = cpu();
    sleep(seconds);
    printf("%.6f\n", cpu() - before);
}

int main(int argc, char **argv)
{
    const int is_server = argc == 3 && strcmp(argv[2], "server") == 0;
    int count;
    if (argc != 3 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: pair DIRECTORY server|client\n");
        return 2;
    }
    open_worker();
    publish(argv[2]);
    connect_to(is_server ? "client" : "server");
    while (is_server) {
        transfer(0);
        transfer(1);
    }
    while (scanf("%d", &count) == 1 && count <= MAX_ROUNDS) {
        if (count > 0) {
            run(count);
        } else if (count == 0) {
            run_until_stall();
        } else {
            idle((unsigned)-count);
        }
        fflush(stdout);
    }
    return 0;
}
