/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Reliable messages over UDP: all messages arrive, once and in order. Each is
 * acknowledged singly. lawn/flight.h knows which are on their way, and
 * lawn/conn.h when to send one again.
 *
 *     client                                         server
 *       DATA 0, sent at 17  ------------------------>  takes 0
 *       DATA 1, sent at 18  ---------- lost
 *       DATA 2, sent at 19  ------------------------>  keeps 2 until 1 is here
 *       flight_ack(0, 17)  <-------------------------  ACK 0, echo 17
 *       flight_ack(2, 19)  <-------------------------  ACK 2, echo 19
 *       retransmit soon, by evidence: 2 has overtaken 1
 *       DATA 1, sent at 23  ------------------------>  takes 1 and 2
 *       flight_ack(1, 23)  <-------------------------  ACK 1, echo 23
 *
 * An ACK echoes the time of the datagram that it answers. So every ACK gives a
 * valid round trip, even if the message was sent twice. FIN is the last
 * message. A side sends a PROBE, and gets an ACK, when it receives nothing, and
 * when its newest message waits for long: nothing later can show its loss.
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

#define MAX_WINDOW 256    /* so far ahead a side keeps what arrives */
#define BURST 64          /* datagrams received per pass at most */
#define MAGIC 0x6c61776eU /* datagrams without it are ignored */
#define NO_MESSAGE UINT64_MAX

enum { DATA = 1, FIN, ACK, PROBE };

/* All fields are big-endian, except `time`, which only its sender reads, in the
 * echo. A payload would follow. */
typedef struct {
    uint32_t magic;
    uint32_t kind;
    uint64_t number; /* of the DATA or FIN; of a PROBE, NO_MESSAGE */
    uint64_t time;   /* of sending; in an ACK, the echo */
} datagram_t;

typedef struct {
    lawn_flight_message_t in_flight; /* first: resend() casts it to message_t */
    datagram_t datagram;             /* kept until it is acknowledged */
} message_t;

typedef struct {
    lawn_timer_t linger; /* first: end_linger() casts it to side_t */
    lawn_conn_t conn;
    const char *name;
    int fd;
    struct sockaddr_in peer;
    bool is_over;
    uint64_t total;                 /* messages to send; 0: the server */
    uint64_t next;                  /* to send for the first time */
    message_t messages[MAX_WINDOW]; /* number n is at n % window */
    lawn_flight_t flight;           /* those of them that are on their way */
    uint64_t wanted;                /* all before it were taken */
    bool has_arrived[MAX_WINDOW];   /* wanted or later: at n % MAX_WINDOW */
    uint64_t end;                   /* all to take; 0: FIN has not arrived */
    lawn_pacer_t pacer;             /* zero: as fast as the window allows */
    uint64_t sent_again;
    uint64_t dropped;
    uint64_t random;
} side_t;

static lawn_engine_t *engine;
static uint64_t window = 8; /* from the oldest on its way to the newest */
static uint64_t rate;       /* bytes of messages in a second; 0: no limit */
static uint64_t drop;       /* percent of the datagrams to lose on purpose */
static int status;          /* exit status */

static const char usage[] =
    "usage: udp [--count N] [--window N] [--rate BYTES] [--drop PERCENT]\n"
    "           [--listen PORT | HOST PORT]\n"
    "Sends numbered messages to HOST, an IPv4 address, or receives them on a\n"
    "port; with neither it does both over loopback.\n"
    "  --count N       messages to send; 2000\n"
    "  --window N      messages on their way at most, from 1 to 256; 8\n"
    "  --rate BYTES    of messages in a second at most, without the headers\n"
    "                  of UDP and IP; 0: no limit; 0\n"
    "  --drop PERCENT  of what this program sends is lost on purpose; 0";
static const struct option options[] = {
    {"count", 1, NULL, 'c'},  {"drop", 1, NULL, 'd'}, {"help", 0, NULL, 'h'},
    {"listen", 1, NULL, 'l'}, {"rate", 1, NULL, 'r'}, {"window", 1, NULL, 'w'},
    {NULL, 0, NULL, 0}};

static void transmit(side_t *side, const datagram_t *datagram)
{
    /* Pseudo-random, so each run drops the same datagrams of a side. */
    side->random = side->random * 6364136223846793005 + 1442695040888963407;
    if ((side->random >> 33) % 100 < drop) {
        ++side->dropped;
        return;
    }
    /* If this fails, it is as if the network had lost the datagram. */
    (void)send(side->fd, datagram, sizeof(*datagram), MSG_DONTWAIT);
}

/* The next message waits until the one in its place is acknowledged, and then
 * for the rate, as one may go on. */
static void send_new(side_t *side)
{
    lawn_time_t now = lawn_engine_now(engine);
    message_t *message = &side->messages[side->next % window];
    while (side->next < side->total && !message->in_flight.link.next &&
           lawn_pacer_take(&side->pacer, now, sizeof(message->datagram))) {
        uint32_t kind = side->next + 1 == side->total ? FIN : DATA;
        lawn_flight_send(&side->flight, &message->in_flight, now);
        message->datagram =
            (datagram_t){htobe32(MAGIC), htobe32(kind), htobe64(side->next),
                         message->in_flight.sent_at};
        transmit(side, &message->datagram);
        message = &side->messages[++side->next % window];
    }
}

static void may_go_on(lawn_pacer_t *pacer, lawn_time_t now)
{
    (void)now;
    send_new(lawn_container_of(pacer, side_t, pacer));
}

/* Called once for each message that is lost. It has waited already: it goes at
 * once, and new ones wait for longer. */
static bool resend(lawn_flight_t *flight, lawn_flight_message_t *lost,
                   lawn_time_t now)
{
    side_t *side = flight->conn->context;
    datagram_t *datagram = &((message_t *)lost)->datagram;
    datagram->time = now; /* of this transmission, for its echo */
    transmit(side, datagram);
    lawn_pacer_force(&side->pacer, now, sizeof(*datagram));
    ++side->sent_again;
    return true; /* `flight` is still there */
}

static void retransmit(lawn_conn_t *conn, lawn_time_t now, unsigned attempt)
{
    side_t *side = conn->context;
    (void)lawn_flight_retransmit(&side->flight, now, attempt);
}

static void ask(lawn_conn_t *conn, lawn_time_t now)
{
    datagram_t datagram = {htobe32(MAGIC), htobe32(PROBE), NO_MESSAGE, now};
    transmit(conn->context, &datagram);
}

static void probe(lawn_conn_t *conn, lawn_time_t now, unsigned count)
{
    (void)count;
    ask(conn, now);
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

static void receive_ack(side_t *side, const datagram_t *ack)
{
    lawn_time_t now = lawn_engine_now(engine);
    message_t *message = &side->messages[be64toh(ack->number) % window];
    lawn_flight_message_t *in_flight = &message->in_flight;
    if (ack->number != message->datagram.number) {
        /* It answers a PROBE, or once more a message that was replaced. */
        lawn_flight_ack_covered(&side->flight, now, ack->time);
    } else if (lawn_flight_ack(&side->flight, in_flight, now, ack->time)) {
        side->is_over = side->flight.count == 0 && side->next == side->total;
    }
}

/* Returns false if the message is too far ahead: no window goes so far. */
static bool take(side_t *side, uint64_t number)
{
    if (number - side->wanted < MAX_WINDOW) { /* else it is old, or too new */
        side->has_arrived[number % MAX_WINDOW] = true;
    }
    while (side->has_arrived[side->wanted % MAX_WINDOW]) {
        side->has_arrived[side->wanted++ % MAX_WINDOW] = false;
    }
    return number < side->wanted + MAX_WINDOW;
}

static void receive(side_t *side, datagram_t *datagram)
{
    uint32_t kind = be32toh(datagram->kind);
    uint64_t number = be64toh(datagram->number);
    if (kind == ACK) {
        receive_ack(side, datagram);
        return;
    }
    lawn_conn_on_receive(&side->conn, lawn_engine_now(engine));
    if ((kind == DATA || kind == FIN) && !take(side, number)) {
        return;
    }
    datagram->kind = htobe32(ACK); /* its number and time stay: the echo */
    transmit(side, datagram);
    side->end = kind == FIN ? number + 1 : side->end;
    if (side->end != 0 && side->wanted >= side->end) {
        /* All messages are here. Stay for a while, as the peer may miss the
         * last ACKs. */
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
    static const lawn_conn_ops_t ops = {retransmit, probe, dead, ask};
    static const lawn_flight_ops_t flight_ops = {.resend = resend};
    lawn_conn_params_t params;
    lawn_conn_params_init(&params);
    params.rto_max = lawn_time_from_msec(200);
    params.peer_timeout = lawn_time_from_sec(5);
    params.keepalive_idle = lawn_time_from_sec(2);
    side->conn.context = side;
    check(lawn_conn_open(engine, &params, &ops, &side->conn) == LAWN_OK);
    check(lawn_flight_init(&side->flight, &side->conn, &flight_ops) == LAWN_OK);
    const lawn_pacer_params_t pacing = {
        .rate = (double)rate,
        .burst = sizeof(datagram_t) + rate / 1000}; /* and what goes in a ms */
    check(rate == 0 || lawn_pacer_init(&side->pacer, lawn_engine_lawn(engine),
                                       &pacing, may_go_on) == LAWN_OK);
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
    lawn_conn_stats_t stats;
    lawn_conn_query(&side->conn, &stats);
    if (side->fd > 0) {
        printf("%s: %" PRIu64 " messages, %" PRIu64 " sent again (%" PRIu64
               " times, %" PRIu64 " by evidence, %" PRIu64
               " spurious), %" PRIu64 " datagrams dropped, RTO %.3f ms\n",
               side->name, side->next - side->flight.count + side->wanted,
               side->sent_again, stats.retransmissions, stats.by_evidence,
               stats.spurious, side->dropped, lawn_time_to_msec(stats.rto));
        lawn_conn_close(&side->conn);
        lawn_pacer_stop(&side->pacer);
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
        } else if (option == 'r') {
            rate = parse(optarg, 0, 1000000000000);
        } else if (option == 'w') {
            window = parse(optarg, 1, MAX_WINDOW);
        } else if (option == 'h') {
            puts(usage);
            return finish();
        } else {
            return 2; /* getopt_long() has said what is wrong */
        }
    }
    bool is_client = argc == optind + 2 &&
                     inet_pton(AF_INET, argv[optind], &at.sin_addr) == 1;
    if (argc != optind && (!is_client || port != 0)) {
        fprintf(stderr, "udp: HOST is an IPv4 address, without --listen\n");
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
