/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * usrsctp over a wire in memory that loses packets. Sends numbered messages,
 * and fails if one is missing, wrong or out of order. Then sends single
 * messages, loses each once, and compares the time until it is sent again with
 * the RTO of the association. At last it closes everything, which usrsctp has
 * to notice. Prints what it saw.
 *
 *     loss PER_MILLE SEED
 */
#include "wire.h"

#include <unistd.h>

enum {
    MESSAGES = 500,
    SINGLES = 10,
    SIZE = 1000,
    RTO_MIN = 100,
    RTO_MAX = 400
};

static uint64_t state;
static unsigned per_mille;
static unsigned packets;
static unsigned lost;
static unsigned received; /* atomic */

/* A single message: whether it was lost, and when it was sent again. */
static bool loses_next;
static bool was_lost;
static double again_at;

static bool is_data(const void *data, size_t size)
{
    return size > SIZE && ((const uint8_t *)data)[12] == SCTP_DATA;
}

static bool loses(const void *data, size_t size)
{
    packets++;
    if (is_data(data, size) && was_lost && again_at == 0) {
        again_at = seconds();
    }
    if (is_data(data, size) && loses_next) {
        loses_next = false;
        was_lost = true;
        return true;
    }
    state = state * 6364136223846793005 + 1442695040888963407;
    if ((state >> 32) * 1000 >> 32 < per_mille) {
        lost++;
        return true;
    }
    return false;
}

static void fill(uint8_t *message, unsigned number)
{
    for (size_t i = 0; i < SIZE; ++i) {
        message[i] = (uint8_t)(number * 31 + i * (number % 7 + 1));
    }
}

static int on_data(struct socket *s, union sctp_sockstore from, void *data,
                   size_t size, struct sctp_rcvinfo info, int flags, void *arg)
{
    uint8_t expected[SIZE];
    (void)from;
    (void)info;
    (void)arg;
    (void)s;
    if (data && !(flags & MSG_NOTIFICATION)) {
        fill(expected, received);
        if (size != SIZE || memcmp(data, expected, SIZE) != 0) {
            fprintf(stderr, "message %u is wrong\n", received);
            exit(1);
        }
        __atomic_fetch_add(&received, 1, __ATOMIC_RELEASE);
    }
    free(data);
    return 1;
}

/* Short, so that a run is short. What arrives is acknowledged at once, and not
 * 200 ms later. */
static void set_rto(struct socket *s)
{
    struct sctp_rtoinfo rto;
    struct sctp_sack_info sack;
    const int no_delay = 1;
    memset(&rto, 0, sizeof rto);
    rto.srto_initial = RTO_MIN;
    rto.srto_min = RTO_MIN;
    rto.srto_max = RTO_MAX;
    check(usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto),
          "SCTP_RTOINFO");
    memset(&sack, 0, sizeof sack);
    sack.sack_freq = 1;
    check(usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_DELAYED_SACK, &sack,
                             sizeof sack),
          "SCTP_DELAYED_SACK");
    check(usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_NODELAY, &no_delay,
                             sizeof no_delay),
          "SCTP_NODELAY");
}

/* When all is acknowledged: an acknowledgement changes the RTO. */
static double rto_of(struct socket *s)
{
    struct sctp_status status;
    do {
        socklen_t size = sizeof status;
        usleep(1000);
        memset(&status, 0, sizeof status);
        check(usrsctp_getsockopt(s, IPPROTO_SCTP, SCTP_STATUS, &status, &size),
              "SCTP_STATUS");
    } while (status.sstat_unackdata > 0);
    return status.sstat_primary.spinfo_rto * 1e-3;
}

/* A socket with a callback does not block. */
static void send_message(struct socket *s, unsigned number)
{
    uint8_t message[SIZE];
    fill(message, number);
    while (usrsctp_sendv(s, message, SIZE, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO,
                         0) < 0) {
        if (errno != EWOULDBLOCK) {
            fail("usrsctp_sendv");
        }
        usleep(500);
    }
}

static void wait_until_received(unsigned count)
{
    while (__atomic_load_n(&received, __ATOMIC_ACQUIRE) < count) {
        usleep(500);
    }
}

static void send_all(struct socket *s)
{
    struct sctpstat before;
    struct sctpstat after;
    const double begin = seconds();
    usrsctp_get_stat(&before);
    for (unsigned i = 0; i < MESSAGES; ++i) {
        send_message(s, i);
    }
    wait_until_received(MESSAGES);
    usrsctp_get_stat(&after);
    pthread_mutex_lock(&wire_mutex);
    printf("%.1f %% lost: %d messages in %.2f s, %u of %u packets lost, "
           "%u retransmit timeouts\n",
           per_mille / 10.0, MESSAGES, seconds() - begin, lost, packets,
           after.sctps_timodata - before.sctps_timodata);
    per_mille = 0;
    pthread_mutex_unlock(&wire_mutex);
}

/* Before each, a message that arrives: its acknowledgement ends the back-off of
 * the RTO. The RTO begins in the call that sends, at any time of it: on a busy
 * machine that is long before the packet is on the wire. */
static void send_singles(struct socket *s)
{
    double lates[SINGLES];
    unsigned early = 0;
    for (unsigned i = 0; i < SINGLES; ++i) {
        double rto;
        double begin;
        send_message(s, MESSAGES + i * 2);
        wait_until_received(MESSAGES + i * 2 + 1);
        rto = rto_of(s);
        pthread_mutex_lock(&wire_mutex);
        loses_next = true;
        was_lost = false;
        again_at = 0;
        pthread_mutex_unlock(&wire_mutex);
        begin = seconds();
        send_message(s, MESSAGES + i * 2 + 1);
        wait_until_received(MESSAGES + i * 2 + 2);
        pthread_mutex_lock(&wire_mutex);
        lates[i] = (again_at - begin - rto) * 1e3;
        pthread_mutex_unlock(&wire_mutex);
        early += lates[i] < -1;
    }
    qsort(lates, SINGLES, sizeof *lates, compare_doubles);
    printf("sent again after the RTO and %.2f ms, at least %.2f ms; "
           "early: %u of %d\n",
           lates[SINGLES / 2], lates[0], early, SINGLES);
}

int main(int argc, char **argv)
{
    struct socket *server;
    struct socket *client;
    struct socket *peer;
    if (argc != 3) {
        fputs("usage: loss PER_MILLE SEED\n", stderr);
        return 2;
    }
    per_mille = (unsigned)strtoul(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10);
    wire_open();
    wire_loses = loses;
    server = wire_socket(1, SOCK_STREAM, WIRE_PORT, on_data);
    set_rto(server);
    check(usrsctp_listen(server, 1), "usrsctp_listen");
    client = wire_socket(0, SOCK_STREAM, 0, on_data);
    set_rto(client);
    wire_connect(client, 0);
    peer = usrsctp_accept(server, NULL, NULL);
    if (!peer) {
        fail("usrsctp_accept");
    }
    send_all(client);
    send_singles(client);
    usrsctp_close(client);
    usrsctp_close(peer);
    usrsctp_close(server);
    while (usrsctp_finish() != 0) {
        usleep(10000);
    }
    return 0;
}
