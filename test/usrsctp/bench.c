/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What usrsctp's timers cost while COUNT associations are idle, whose two ends
 * are both in this process.
 *
 *     bench quiet COUNT      no heartbeats: nothing is due for ten minutes
 *     bench heartbeat COUNT  a heartbeat of each end every 30 seconds or so
 *     bench calls COUNT      nanoseconds per call
 *     bench late COUNT       how late timers are, in milliseconds
 *
 * The first two print, for a second: milliseconds of CPU time of the process
 * and of the thread of the timers, how often each went to sleep, and usrsctp's
 * ticks, which should be a thousand.
 */
#include "wire.h"

#include <dirent.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <unistd.h>

#include <netinet/sctp_callout.h> /* wants sys/queue.h */

/* The first timers of an association run for 3 seconds. A heartbeat comes in
 * each 31 seconds. */
enum {
    SETTLE = 4,
    WATCH = 8,
    WATCH_HEARTBEATS = 31,
    TIMERS = 512,
    ROUNDS = 1000,
    LATE = 400
};

static unsigned random_below(unsigned limit)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)((state >> 32) * limit >> 32);
}

static void set_heartbeats(struct socket *s, bool are_on)
{
    struct sctp_paddrparams params;
    memset(&params, 0, sizeof params);
    params.spp_address.ss_family = AF_CONN;
    params.spp_flags = are_on ? SPP_HB_ENABLE : SPP_HB_DISABLE;
    params.spp_hbinterval = are_on ? 30000 : 0;
    check(usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &params,
                             sizeof params),
          "SCTP_PEER_ADDR_PARAMS");
}

static int on_data(struct socket *s, union sctp_sockstore from, void *data,
                   size_t size, struct sctp_rcvinfo info, int flags, void *arg)
{
    (void)s;
    (void)from;
    (void)size;
    (void)info;
    (void)flags;
    (void)arg;
    free(data);
    return 1;
}

/* One end is one socket, the other has one for each association. */
static void open_associations(unsigned count, bool have_heartbeats)
{
    struct socket *const server =
        wire_socket(1, SOCK_SEQPACKET, WIRE_PORT, on_data);
    set_heartbeats(server, have_heartbeats);
    check(usrsctp_listen(server, 1), "usrsctp_listen");
    for (unsigned i = 0; i < count; ++i) {
        struct socket *const client = wire_socket(0, SOCK_STREAM, 0, on_data);
        set_heartbeats(client, have_heartbeats);
        wire_connect(client, 0);
    }
}

struct usage {
    double cpu; /* seconds */
    double sleeps;
};

static struct usage usage_of_process(void)
{
    struct rusage all;
    getrusage(RUSAGE_SELF, &all);
    return (struct usage){
        (double)(all.ru_utime.tv_sec + all.ru_stime.tv_sec) +
            (double)(all.ru_utime.tv_usec + all.ru_stime.tv_usec) * 1e-6,
        (double)all.ru_nvcsw};
}

/* The value behind `key` in a file of a thread. */
static double read_status(const char *thread, const char *key)
{
    char path[300];
    char line[200];
    double value = -1;
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtod(line + strlen(key), NULL);
        }
    }
    if (file) {
        fclose(file);
    }
    if (value < 0) {
        fail(path);
    }
    return value;
}

static bool is_timer_thread(const char *thread)
{
    char path[300];
    char name[64] = "";
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread);
    file = fopen(path, "r");
    if (file) {
        (void)!fgets(name, sizeof name, file);
        fclose(file);
    }
    return strcmp(name, "SCTP timer\n") == 0;
}

/* Linux: the clock of any thread of the process, named by its number. */
static double cpu_of(const char *thread)
{
    struct timespec time;
    const clockid_t id = (clockid_t)(~(unsigned)atoi(thread) << 3 | 6);
    check(clock_gettime(id, &time), "clock_gettime");
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct usage usage_of_timers(void)
{
    struct usage sum = {-1, 0};
    DIR *const threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
        if (is_timer_thread(entry->d_name)) {
            sum.cpu = cpu_of(entry->d_name);
            sum.sleeps = read_status(entry->d_name, "voluntary_ctxt_switches:");
        }
    }
    if (sum.cpu < 0) {
        fail("no thread of the timers");
    }
    closedir(threads);
    return sum;
}

static void watch(unsigned duration)
{
    struct usage process[2];
    struct usage timers[2];
    uint32_t ticks;
    double begin;
    sleep(SETTLE);
    timers[0] = usage_of_timers();
    process[0] = usage_of_process();
    ticks = sctp_get_tick_count();
    begin = seconds();
    sleep(duration);
    timers[1] = usage_of_timers();
    process[1] = usage_of_process();
    ticks = sctp_get_tick_count() - ticks;
    begin = seconds() - begin;
    printf("%.3f %.3f %.2f %.2f %.0f\n",
           (process[1].cpu - process[0].cpu) * 1e3 / begin,
           (timers[1].cpu - timers[0].cpu) * 1e3 / begin,
           (process[1].sleeps - process[0].sleeps) / begin,
           (timers[1].sleeps - timers[0].sleeps) / begin, ticks / begin);
}

static void watch_quiet(void)
{
    watch(WATCH);
}

static void watch_heartbeats(void)
{
    watch(WATCH_HEARTBEATS);
}

static sctp_os_timer_t timers[TIMERS];
static uint32_t starts[TIMERS]; /* what sctp_timer_start() keeps of the time */

static void on_never(void *arg)
{
    (void)arg;
    fputs("a timer of a minute has expired\n", stderr);
    exit(1);
}

/* As sctp_timer_start() does it, which asks for the time first. */
static void do_start(unsigned i)
{
    starts[i] = sctp_get_tick_count();
    sctp_os_timer_start(&timers[i], 60000 + i * 16, on_never, &timers[i]);
}

static void do_bare_start(unsigned i)
{
    sctp_os_timer_start(&timers[i], 60000 + i * 16, on_never, &timers[i]);
}

static void do_stop(unsigned i)
{
    sctp_os_timer_stop(&timers[i]);
}

/* As for each acknowledgement. */
static void do_rearm(unsigned i)
{
    do_stop(i);
    do_start(i);
}

/* Prints the median of the rounds: other work on the machine, and the walks of
 * stock's thread, which holds the lock, lie in the rounds that take longer. */
static void measure(void (*prepare)(unsigned), void (*call)(unsigned))
{
    static double spent[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; ++round) {
        double begin;
        for (unsigned i = 0; i < TIMERS; ++i) {
            prepare(i);
        }
        begin = seconds();
        for (unsigned i = 0; i < TIMERS; ++i) {
            call(i);
        }
        spent[round] = seconds() - begin;
    }
    qsort(spent, ROUNDS, sizeof *spent, compare_doubles);
    printf("%.1f ", spent[ROUNDS / 2] * 1e9 / TIMERS);
}

/* In the order: start, bare start, stop, stop of a stopped one, re-arm. */
static void call(void)
{
    for (unsigned i = 0; i < TIMERS; ++i) {
        sctp_os_timer_init(&timers[i]);
    }
    sleep(SETTLE);
    measure(do_stop, do_start);
    measure(do_stop, do_bare_start);
    measure(do_start, do_stop);
    measure(do_stop, do_stop);
    measure(do_start, do_rearm);
    printf("%u\n", starts[0] > starts[1]);
}

static double dues[LATE];
static double lates[LATE];
static unsigned fired;

static void on_late(void *arg)
{
    const size_t i = (size_t)arg;
    lates[i] = (seconds() - dues[i]) * 1e3;
    __atomic_fetch_add(&fired, 1, __ATOMIC_RELEASE);
}

/* Prints the earliest, the median, and the latest of a hundred. */
static void be_late(void)
{
    static sctp_os_timer_t late[LATE];
    sleep(SETTLE);
    for (size_t i = 0; i < LATE; ++i) {
        const uint32_t ttl = 1 + random_below(3000);
        sctp_os_timer_init(&late[i]);
        dues[i] = seconds() + ttl * 1e-3;
        sctp_os_timer_start(&late[i], ttl, on_late, (void *)i);
        usleep(random_below(10000));
    }
    while (__atomic_load_n(&fired, __ATOMIC_ACQUIRE) < LATE) {
        usleep(10000);
    }
    qsort(lates, LATE, sizeof *lates, compare_doubles);
    printf("%.3f %.3f %.3f\n", lates[0], lates[LATE / 2],
           lates[LATE - 1 - LATE / 100]);
}

int main(int argc, char **argv)
{
    const char *const kind = argc > 2 ? argv[1] : "";
    const bool have_heartbeats = strcmp(kind, "heartbeat") == 0;
    void (*run)(void) = NULL;
    if (have_heartbeats) {
        run = watch_heartbeats;
    } else if (strcmp(kind, "quiet") == 0) {
        run = watch_quiet;
    } else if (strcmp(kind, "calls") == 0) {
        run = call;
    } else if (strcmp(kind, "late") == 0) {
        run = be_late;
    }
    if (!run) {
        fputs("usage: bench quiet|heartbeat|calls|late COUNT\n", stderr);
        return 2;
    }
    wire_open();
    open_associations((unsigned)strtoul(argv[2], NULL, 10), have_heartbeats);
    run();
    return 0;
}
