/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A TCP echo server with an epoll set of its own. The fd of an engine is in
 * this set. Timers close a client that is idle, or that takes too long to end a
 * line.
 */
#include <lawn/lawn.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    lawn_timer_t idle; /* first: on_idle() casts it to client_t */
    lawn_timer_t line; /* runs while a line has begun and not ended */
    int fd;
} client_t;

static lawn_engine_t *engine;
static int epoll_fd, closed;
static lawn_time_t idle_ttl;

static void check(bool is_done)
{
    if (!is_done) {
        perror("epoll_server");
        exit(1);
    }
}

static void watch(int fd, void *of)
{
    struct epoll_event event = {EPOLLIN, {of}};
    check(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void close_client(client_t *client, const char *why)
{
    printf("client %d: %s\n", client->fd, why);
    lawn_engine_stop(engine, &client->idle);
    lawn_engine_stop(engine, &client->line);
    close(client->fd); /* this also takes it out of the epoll set */
    free(client);
    ++closed;
}

static void on_idle(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    close_client((client_t *)timer, "idle");
}

static void on_line_late(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    close_client((client_t *)((char *)timer - offsetof(client_t, line)),
                 "the line has not ended");
}

static void serve(client_t *client)
{
    char text[256];
    lawn_engine_start(engine, &client->idle, idle_ttl);
    ssize_t size = recv(client->fd, text, sizeof(text), 0);
    if (size <= 0) {
        if (size == 0 || errno != EAGAIN) {
            close_client(client, "has gone");
        }
        return;
    }
    if (text[size - 1] == '\n') {
        lawn_engine_stop(engine, &client->line);
    } else if (!lawn_timer_is_active(&client->line)) {
        lawn_engine_start(engine, &client->line, lawn_time_from_sec(2));
    }
    (void)send(client->fd, text, (size_t)size, MSG_NOSIGNAL);
}

static void accept_client(int listen_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return; /* the client has gone again */
    }
    client_t *client = calloc(1, sizeof(*client));
    check(client != NULL);
    client->fd = fd;
    lawn_timer_init(&client->idle, on_idle);
    lawn_timer_init(&client->line, on_line_late);
    watch(fd, client);
    serve(client); /* it may have sent something already */
}

static void run(int listen_fd, int until_closed)
{
    struct epoll_event events[64];
    watch(listen_fd, &listen_fd);
    watch(lawn_engine_fd(engine), NULL);
    while (closed != until_closed) {
        /* After OK, the descriptor wakes us for the next timer. BUSY means that
         * there is work now. */
        lawn_status_t status = lawn_engine_arm(engine);
        check(status == LAWN_OK || status == LAWN_ERR_BUSY);
        int n = epoll_wait(epoll_fd, events, 64, status == LAWN_OK ? -1 : 0);
        check(n >= 0 || errno == EINTR);
        for (int i = 0; i < n; ++i) {
            if (events[i].data.ptr == &listen_fd) {
                accept_client(listen_fd);
            } else if (events[i].data.ptr != NULL) {
                serve(events[i].data.ptr);
            }
        }
        lawn_engine_progress(engine); /* after all clients were served */
    }
}

int main(int argc, char **argv)
{
    bool serves = argc == 3 && strcmp(argv[1], "--listen") == 0;
    char *end = NULL;
    long port = serves ? strtol(argv[2], &end, 10) : 0;
    if (argc != 1 && (port < 1 || port > 65535 || *end != '\0')) {
        fprintf(stderr, "usage: epoll_server [--listen PORT]\n");
        return 2;
    }
    struct in_addr host = {htonl(serves ? INADDR_ANY : INADDR_LOOPBACK)};
    struct sockaddr_in at = {AF_INET, htons((uint16_t)port), host, {0}};
    struct sockaddr *address = (struct sockaddr *)&at;
    socklen_t length = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(bind(fd, address, length) == 0 && listen(fd, 64) == 0);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    check(epoll_fd >= 0 && lawn_engine_create(NULL, &engine) == LAWN_OK);
    idle_ttl = lawn_time_from_msec(serves ? 10000 : 200);
    /* This client sends a line, receives it, and sends nothing more. */
    char heard[7];
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!serves) {
        check(getsockname(fd, address, &length) == 0);
        check(connect(client, address, length) == 0);
        check(send(client, "hello\n", 6, 0) == 6);
    }
    run(fd, serves ? -1 : 1);
    lawn_engine_destroy(engine);
    return recv(client, heard, sizeof(heard), MSG_WAITALL) == 6 ? 0 : 1;
}
