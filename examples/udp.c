/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Reliable messages over UDP: all messages arrive, once and in order. The
 * protocol is go-back-N with the two timers of lawn/conn.h.
 *
 *     client                                         server
 *       DATA 0, sent at 17  ------------------------>  takes 0
 *       on_send: the retransmit timer runs
 *       DATA 1, sent at 18  ---------- lost
 *       on_ack_of(17)  <-----------------------------  ACK 1, echo 17
 *       retransmit, an RTO later
 *       DATA 1, sent at 40  ------------------------>  takes 1
 *       on_ack_of(40)  <-----------------------------  ACK 2, echo 40
 *
 * An ACK names the message that is wanted next. It also echoes the time of the
 * datagram that it answers. So every ACK gives a valid round trip, even if the
 * message was sent twice. FIN is the last message. A side that receives nothing
 * sends a PROBE and gets an ACK.
 */
#define _GNU_SOURCE
#include <lawn/lawn.h>

#include <arpa/inet.h>
#include <endian.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define WINDOW 32         /* messages outstanding at most */
#define BURST 64          /* datagrams received per pass at most */
#define MAGIC 0x6c61776eU /* datagrams without it are ignored */

enum { DATA = 1, FIN, ACK, PROBE };

/* All fields are big-endian, except `time`, which only its sender reads, in the
 * echo. A payload would follow. Its sender would keep it until it is
 * acknowledged. */
typedef struct {
    uint32_t magic;
    uint32_t kind;
    uint64_t number; /* of this DATA or FIN; else the one wanted next */
    uint64_t time;   /* of sending; in an ACK, the echo */
} datagram_t;

typedef struct {
    lawn_timer_t linger; /* first: end_linger() casts it to side_t */
    lawn_conn_t conn;
    const char *name;
    int fd;
    struct sockaddr_in peer;
    bool is_over;
    uint64_t total;  /* messages to send; 0: the server */
    uint64_t next;   /* the next message to send for the first time */
    uint64_t acked;  /* all messages before it are acknowledged */
    uint64_t wanted; /* from the peer: all before it have arrived */
    uint64_t sent_again;
    uint64_t dropped;
    uint64_t random;
} side_t;

static lawn_engine_t *engine;
static uint64_t drop; /* percent of the datagrams to lose on purpose */
static int status;    /* exit status */

static const char usage[] =
    "usage: udp [--count N] [--drop PERCENT] [--listen PORT | HOST PORT]\n"
    "Sends numbered messages to HOST, an IPv4 address, or receives them on a\n"
    "port; with neither it does both over loopback.\n"
    "  --count N       messages to send; 2000\n"
    "  --drop PERCENT  of what this program sends is lost on purpose; 0";

static void transmit(side_t *side, uint32_t kind, uint64_t number,
                     uint64_t time)
{
    datagram_t datagram = {htobe32(MAGIC), htobe32(kind), htobe64(number),
                           time};
    /* Pseudo-random, so each run drops the same datagrams of a side. */
    side->random = side->random * 6364136223846793005 + 1442695040888963407;
    if ((side->random >> 33) % 100 < drop) {
        ++side->dropped;
        return;
    }
    /* If this fails, it is as if the network had lost the datagram. */
    (void)send(side->fd, &datagram, sizeof(datagram), MSG_DONTWAIT);
}

/* A retransmission, too, carries the time at which it is sent. */
static void transmit_message(side_t *side, uint64_t number)
{
    transmit(side, number + 1 == side->total ? FIN : DATA, number,
             lawn_engine_now(engine));
}

static void send_new(side_t *side)
{
    while (side->next < side->total && side->next - side->acked < WINDOW) {
        transmit_message(side, side->next++);
        lawn_conn_on_send(&side->conn, lawn_engine_now(engine));
    }
}

static void retransmit(lawn_conn_t *conn, lawn_time_t now, unsigned attempt)
{
    side_t *side = conn->context;
    (void)now;
    (void)attempt;
    for (uint64_t i = side->acked; i < side->next; ++i) {
        transmit_message(side, i);
        ++side->sent_again;
    }
}

static void probe(lawn_conn_t *conn, lawn_time_t now, unsigned count)
{
    side_t *side = conn->context;
    (void)count;
    transmit(side, PROBE, side->wanted, now);
}

static void dead(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason)
{
    side_t *side = conn->context;
    (void)now;
    fprintf(stderr, "%s: the peer is dead: %s\n", side->name,
            lawn_conn_reason_string(reason));
    status = 1;
}

static void end_linger(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    ((side_t *)timer)->is_over = true;
}

static void receive(side_t *side, const datagram_t *datagram)
{
    lawn_time_t now = lawn_engine_now(engine);
    uint32_t kind = be32toh(datagram->kind);
    uint64_t number = be64toh(datagram->number);
    if (kind == ACK && number > side->acked && number <= side->next) {
        side->acked = number;
        lawn_conn_on_ack_of(&side->conn, now, datagram->time,
                            number == side->next);
        side->is_over = number == side->total;
        return;
    }
    lawn_conn_on_receive(&side->conn, now);
    if (kind == ACK) {
        return;
    }
    side->wanted += (kind == DATA || kind == FIN) && number == side->wanted;
    transmit(side, ACK, side->wanted, datagram->time);
    if (kind == FIN && number < side->wanted) {
        /* All messages are here. Stay for a while, as the peer may miss the
         * last ACK. */
        lawn_conn_close(&side->conn);
        lawn_engine_start(engine, &side->linger, lawn_time_from_msec(500));
    }
}

static void check(bool is_done)
{
    if (!is_done) {
        perror("udp");
        exit(1);
    }
}

static void meet(side_t *side)
{
    static const lawn_conn_ops_t ops = {retransmit, probe, dead, NULL};
    lawn_conn_params_t params;
    lawn_conn_params_init(&params);
    params.rto_max = lawn_time_from_msec(200);
    params.peer_timeout = lawn_time_from_sec(5);
    params.keepalive_idle = lawn_time_from_sec(2);
    side->conn.context = side;
    check(lawn_conn_open(engine, &params, &ops, &side->conn) == LAWN_OK);
}

/* Called once per pass, before timers expire. So an ACK that has already
 * arrived stops a retransmission that would be due. */
static unsigned poll_socket(void *arg)
{
    side_t *side = arg;
    unsigned count = 0;
    while (count < BURST) {
        datagram_t datagram;
        struct sockaddr_in from = {.sin_family = AF_INET};
        socklen_t length = sizeof(from);
        ssize_t size =
            recvfrom(side->fd, &datagram, sizeof(datagram), MSG_DONTWAIT,
                     (struct sockaddr *)&from, &length);
        if (size < 0) {
            break; /* none left; errors are left to the timers */
        }
        ++count;
        if (size != sizeof(datagram) || be32toh(datagram.magic) != MAGIC) {
            continue;
        }
        if (!side->conn.context) { /* the first sender is the peer */
            if (connect(side->fd, (struct sockaddr *)&from, length) != 0) {
                continue; /* nobody could answer it */
            }
            side->peer = from;
            meet(side);
        }
        /* What others sent before the connect() is still in the queue. */
        if (from.sin_addr.s_addr == side->peer.sin_addr.s_addr &&
            from.sin_port == side->peer.sin_port) {
            receive(side, &datagram);
        }
    }
    send_new(side);
    return count;
}

static void open_side(side_t *side, const struct sockaddr_in *address)
{
    const struct sockaddr *to = (const struct sockaddr *)address;
    side->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check(side->fd >= 0);
    check((side->total != 0 ? connect(side->fd, to, sizeof(*address))
                            : bind(side->fd, to, sizeof(*address))) == 0);
    check(lawn_engine_add(engine, poll_socket, side, side->fd, NULL) ==
          LAWN_OK);
    lawn_timer_init(&side->linger, end_linger);
    side->is_over = false;
    if (side->total != 0) {
        side->peer = *address;
        meet(side);
    }
}

static void close_side(side_t *side)
{
    if (side->fd > 0) {
        printf("%s: %" PRIu64 " messages, %" PRIu64 " sent again, %" PRIu64
               " datagrams dropped, RTO %.3f ms\n",
               side->name, side->acked + side->wanted, side->sent_again,
               side->dropped, lawn_time_to_msec(lawn_conn_rto(&side->conn)));
        lawn_conn_close(&side->conn);
    }
}

static uint64_t parse(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    uint64_t number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number < least || number > most) {
        fprintf(stderr, "udp: %s is not from %" PRIu64 " to %" PRIu64 "\n",
                text, least, most);
        exit(2);
    }
    return number;
}

/* Returns the exit status. */
static int finish(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("udp: standard output");
        return 1;
    }
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"count", 1, NULL, 'c'},
                                            {"drop", 1, NULL, 'd'},
                                            {"help", 0, NULL, 'h'},
                                            {"listen", 1, NULL, 'l'},
                                            {NULL, 0, NULL, 0}};
    static side_t client = {.name = "client", .is_over = true, .total = 2000};
    static side_t server = {.name = "server", .is_over = true, .random = 1};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof(at);
    uint64_t port = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c') {
            client.total = parse(optarg, 1, 1000000000);
        } else if (option == 'd') {
            drop = parse(optarg, 0, 99);
        } else if (option == 'l') {
            port = parse(optarg, 1, 65535);
        } else if (option == 'h') {
            puts(usage);
            return finish();
        } else {
            return 2; /* getopt_long() has said what is wrong */
        }
    }
    if (port != 0 && argc != optind) {
        fprintf(stderr, "udp: --listen takes no HOST and PORT; see --help\n");
        return 2;
    }
    bool is_client = argc == optind + 2 &&
                     inet_pton(AF_INET, argv[optind], &at.sin_addr) == 1;
    if (!is_client && argc != optind) {
        fprintf(stderr, "udp: not an IPv4 address and a port; see --help\n");
        return 2;
    }
    port = is_client ? parse(argv[optind + 1], 1, 65535) : port;
    at.sin_port = htons((uint16_t)port);
    check(lawn_engine_create(NULL, &engine) == LAWN_OK);
    if (!is_client) {
        at.sin_addr.s_addr = htonl(port == 0 ? INADDR_LOOPBACK : INADDR_ANY);
        open_side(&server, &at);
        check(getsockname(server.fd, (struct sockaddr *)&at, &length) == 0);
    }
    if (is_client || port == 0) {
        open_side(&client, &at);
    }
    while (status == 0 && !(client.is_over && server.is_over)) {
        /* A program that never sleeps leaves out the wait. */
        if (lawn_engine_progress(engine) == 0) {
            check(lawn_engine_wait(engine, LAWN_TIME_INFINITY) == LAWN_OK);
        }
    }
    close_side(&client);
    close_side(&server);
    lawn_engine_destroy(engine);
    return finish();
}
