/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The exchange over TCP. Once the peer is there, every wait ends after
 * EXCHANGE_LIMIT_SEC. All data is checked before it is used, because the peer
 * may be a port scanner, or a later version of this program.
 */
#include "exchange.h"

#include "wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXCHANGE_LIMIT_SEC 5
#define MAGIC_SIZE 8u
#define BLOB_SIZE                                                              \
    (MAGIC_SIZE + EXCHANGE_OPTIONS_SIZE + 8 + EXCHANGE_ADDRESS_SIZE + 4)

static const uint8_t magic[MAGIC_SIZE] = {'L', 'A', 'W', 'N',
                                          'P', 'P', '0', '2'};

bool exchange_is_given_up(const exchange_t *x)
{
    return *x->interrupted || lawn_get_time() >= x->deadline;
}

/* Sleeps in slices of 50 ms. So a signal that comes just before a slice is not
 * missed. */
bool exchange_wait(const exchange_t *x, short events, lawn_time_t limit)
{
    while (!exchange_is_given_up(x)) {
        struct pollfd entry = {.fd = x->fd, .events = events};
        int ready = poll(&entry, 1, 50);
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
        if (lawn_get_time() >= limit) {
            errno = ETIMEDOUT;
            return false;
        }
    }
    errno = EINTR;
    return false;
}

lawn_time_t exchange_limit(void)
{
    return lawn_get_time() + lawn_time_from_sec(EXCHANGE_LIMIT_SEC);
}

struct addrinfo *exchange_resolve(const char *host, uint32_t port)
{
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int error = getaddrinfo(host, service, &hints, &list);
    if (error != 0) {
        complain("cannot resolve '%s': %s", host, gai_strerror(error));
        return NULL;
    }
    return list;
}

/* Tries one address once. On failure, errno has the reason. */
static bool connect_to(exchange_t *x, const struct addrinfo *address)
{
    x->fd = socket(address->ai_family,
                   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (x->fd < 0) {
        return false;
    }
    if (connect(x->fd, address->ai_addr, address->ai_addrlen) == 0) {
        return true;
    }
    int error = errno;
    if (error == EINPROGRESS) {
        socklen_t size = sizeof(error);
        if (!exchange_wait(x, POLLOUT, exchange_limit()) ||
            getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
            error = errno;
        }
    }
    if (error == 0) {
        return true;
    }
    close(x->fd);
    x->fd = -1;
    errno = error;
    return false;
}

static bool open_client(exchange_t *x)
{
    const options_t *options = x->options;
    struct addrinfo *list = exchange_resolve(options->host, options->port);
    if (!list) {
        return false;
    }
    lawn_time_t limit = lawn_get_time() + options->wait;
    bool is_told = options->quiet;
    bool connected = false;
    while (!connected) {
        for (struct addrinfo *i = list; i && !connected; i = i->ai_next) {
            connected = connect_to(x, i);
        }
        if (connected || exchange_is_given_up(x) || lawn_get_time() >= limit) {
            break;
        }
        int error = errno;
        if (!is_told) {
            fprintf(stderr, "waiting for %s, port %u: %s\n", options->host,
                    (unsigned)options->port, strerror(error));
            is_told = true;
        }
        poll(NULL, 0, 50);
        errno = error;
    }
    int error = errno;
    freeaddrinfo(list);
    if (!connected && !exchange_is_given_up(x)) {
        complain("cannot reach %s, port %u: %s", options->host,
                 (unsigned)options->port, strerror(error));
    }
    return connected;
}

/* Makes a socket for IPv6 and IPv4, or for IPv4 alone if there is no IPv6. */
static int listen_on(uint16_t port)
{
    const int on = 1;
    const int off = 0;
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons(port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    const struct sockaddr *address = (const struct sockaddr *)&any6;
    socklen_t size = sizeof(any6);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    } else {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        address = (const struct sockaddr *)&any4;
        size = sizeof(any4);
    }
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, address, size) != 0 || listen(fd, 1) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static bool open_server(exchange_t *x)
{
    uint16_t port = (uint16_t)x->options->port;
    x->fd = listen_on(port);
    if (x->fd < 0) {
        complain("cannot listen on port %u: %s", (unsigned)port,
                 strerror(errno));
        return false;
    }
    if (!x->options->quiet) {
        printf("waiting for a client on port %u\n", (unsigned)port);
    }
    int peer = -1;
    bool may_come = true;
    while (peer < 0 && may_come &&
           exchange_wait(x, POLLIN, LAWN_TIME_INFINITY)) {
        peer = accept4(x->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        may_come = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    }
    close(x->fd);
    x->fd = peer;
    if (peer < 0 && !exchange_is_given_up(x)) {
        complain("cannot accept a client: %s", strerror(errno));
    }
    return peer >= 0;
}

bool exchange_open(exchange_t *x)
{
    return x->options->host ? open_client(x) : open_server(x);
}

void exchange_close(exchange_t *x)
{
    if (x->fd >= 0) {
        close(x->fd);
        x->fd = -1;
    }
}

static bool complain_wait(const exchange_t *x)
{
    if (!exchange_is_given_up(x) && errno == ETIMEDOUT) {
        complain("the peer did not finish the exchange within %d s",
                 EXCHANGE_LIMIT_SEC);
    } else if (!exchange_is_given_up(x)) {
        complain("the exchange failed: %s", strerror(errno));
    }
    return false;
}

static bool send_all(exchange_t *x, const uint8_t *data, size_t length,
                     lawn_time_t limit)
{
    while (length != 0) {
        ssize_t sent = send(x->fd, data, length, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            length -= (size_t)sent;
        } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            complain("the peer left during the exchange: %s", strerror(errno));
            return false;
        } else if (!exchange_wait(x, POLLOUT, limit)) {
            return complain_wait(x);
        }
    }
    return true;
}

/* Receives `length` bytes. The first `known` bytes must be those of `expected`,
 * so a peer with another protocol is recognised at once, even if it sends
 * little. */
static bool receive_all(exchange_t *x, uint8_t *data, size_t length,
                        const void *expected, size_t known, lawn_time_t limit)
{
    for (size_t have = 0; have < length;) {
        ssize_t got = recv(x->fd, data + have, length - have, 0);
        if (got > 0) {
            have += (size_t)got;
            if (memcmp(data, expected, have < known ? have : known) != 0) {
                complain("the peer is no %s: foreign data in the exchange",
                         program_name);
                return false;
            }
        } else if (got == 0) {
            complain("the peer left during the exchange");
            return false;
        } else if (errno != EAGAIN && errno != EINTR) {
            complain("the peer left during the exchange: %s", strerror(errno));
            return false;
        } else if (!exchange_wait(x, POLLIN, limit)) {
            return complain_wait(x);
        }
    }
    return true;
}

void exchange_encode_options(const options_t *options, uint8_t *to)
{
    to[0] = options->is_rc;
    to[1] = options->oneway;
    to[2] = options->host != NULL;
    to[3] = (uint8_t)(options->window - 1);
    wire_put32(to + 4, options->iters);
    wire_put32(to + 8, options->size);
    wire_put32(to + 12, options->connections);
}

bool exchange_agrees(const options_t *options, const uint8_t *from)
{
    bool is_client = options->host != NULL;
    if (from[0] > 1 || from[1] > 1 || from[2] != !is_client) {
        complain("the peer sent garbled data in the exchange");
        return false;
    }
    if (from[0] != options->is_rc) {
        complain("the peer runs with --mode %s, this side with --mode %s",
                 from[0] ? "rc" : "ud", options->is_rc ? "rc" : "ud");
        return false;
    }
    if (from[1] != options->oneway) {
        complain("the peer runs %s --oneway, this side %s it",
                 from[1] ? "with" : "without",
                 options->oneway ? "with" : "without");
        return false;
    }
    const struct {
        const char *name;
        uint32_t own;
        uint32_t peer;
    } numbers[] = {
        {"iters", options->iters, wire_get32(from + 4)},
        {"size", options->size, wire_get32(from + 8)},
        {"connections", options->connections, wire_get32(from + 12)},
        {"window", options->window, from[3] + 1u},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        if (numbers[i].own != numbers[i].peer) {
            complain("the peer runs with --%s %u, this side with --%s %u",
                     numbers[i].name, (unsigned)numbers[i].peer,
                     numbers[i].name, (unsigned)numbers[i].own);
            return false;
        }
    }
    return true;
}

static void encode(const options_t *options, const exchange_side_t *own,
                   uint8_t *blob)
{
    memcpy(blob, magic, MAGIC_SIZE);
    exchange_encode_options(options, blob + 8);
    wire_put64(blob + 24, own->nonce);
    memcpy(blob + 32, own->address, EXCHANGE_ADDRESS_SIZE);
    wire_put32(blob + BLOB_SIZE - 4, wire_crc32c(0, blob, BLOB_SIZE - 4));
}

uint64_t exchange_nonce(void)
{
    uint64_t nonce;
    if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce)) {
        nonce = lawn_get_time();
    }
    return nonce;
}

/* Each side sends before it compares, so both sides can say what differs. */
bool exchange_swap(exchange_t *x, const exchange_side_t *own,
                   exchange_side_t *peer_p)
{
    uint8_t blob[BLOB_SIZE];
    lawn_time_t limit = exchange_limit();
    encode(x->options, own, blob);
    if (!send_all(x, blob, sizeof(blob), limit) ||
        !receive_all(x, blob, sizeof(blob), magic, MAGIC_SIZE, limit)) {
        return false;
    }
    if (wire_get32(blob + BLOB_SIZE - 4) !=
        wire_crc32c(0, blob, BLOB_SIZE - 4)) {
        complain("the peer sent garbled data in the exchange");
        return false;
    }
    if (!exchange_agrees(x->options, blob + 8)) {
        return false;
    }
    peer_p->nonce = wire_get64(blob + 24);
    memcpy(peer_p->address, blob + 32, EXCHANGE_ADDRESS_SIZE);
    return true;
}

bool exchange_barrier(exchange_t *x)
{
    uint8_t ready = 'R';
    lawn_time_t limit = exchange_limit();
    return send_all(x, &ready, 1, limit) &&
           receive_all(x, &ready, 1, "R", 1, limit);
}
