/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A TCP echo server with an epoll set of its own. The fd of an engine is in
 * this set. Timers close a client that is idle, or that takes too long to end a
 * line. A timer also resumes the accepting of clients, which pauses when there
 * is no descriptor left.
 */
#define _GNU_SOURCE
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
    bool is_sending; /* it is watched for room to send, and not read from */
    size_t size;     /* of what is not sent yet */
    char text[4096];
} client_t;

static lawn_engine_t *engine;
static lawn_timer_t accept_again;
static int epoll_fd, listen_fd, closed;
static lawn_time_t idle_ttl;

static void check(bool is_done)
{
    if (!is_done) {
        perror("epoll_server");
        exit(1);
    }
}

/* Writes out what is buffered. Returns an exit status. */
static int finish_output(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("epoll_server: standard output");
        return 1;
    }
    return 0;
}

/* `operation` is EPOLL_CTL_ADD or EPOLL_CTL_MOD. */
static void watch(int operation, int fd, uint32_t events, void *of)
{
    struct epoll_event event = {events, {of}};
    check(epoll_ctl(epoll_fd, operation, fd, &event) == 0);
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

/* Sends what it can. As long as something is left, nothing more is read. */
static void send_text(client_t *client)
{
    ssize_t sent = send(client->fd, client->text, client->size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        close_client(client, "has gone");
        return;
    }
    if (sent > 0) {
        client->size -= (size_t)sent;
        memmove(client->text, client->text + sent, client->size);
    }
    if (client->is_sending != (client->size > 0)) {
        client->is_sending = client->size > 0;
        watch(EPOLL_CTL_MOD, client->fd,
              client->is_sending ? EPOLLOUT : EPOLLIN, client);
    }
}

static void receive_text(client_t *client)
{
    ssize_t size = recv(client->fd, client->text, sizeof(client->text), 0);
    if (size <= 0) {
        if (size == 0 || errno != EAGAIN) {
            close_client(client, "has gone");
        }
        return;
    }
    client->size = (size_t)size;
    if (memrchr(client->text, '\n', client->size) != NULL) {
        lawn_engine_stop(engine, &client->line);
    }
    /* After the end of a line, the next one may have begun. */
    if (client->text[size - 1] != '\n' &&
        !lawn_timer_is_active(&client->line)) {
        lawn_engine_start(engine, &client->line, lawn_time_from_sec(2));
    }
    send_text(client);
}

static void serve(client_t *client)
{
    lawn_engine_start(engine, &client->idle, idle_ttl);
    if (client->is_sending) {
        send_text(client);
    } else {
        receive_text(client);
    }
}

static void on_accept_again(lawn_timer_t *timer, lawn_time_t now)
{
    (void)timer;
    (void)now;
    watch(EPOLL_CTL_MOD, listen_fd, EPOLLIN, &listen_fd);
}

static void accept_client(void)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        /* Either this client has gone again; or there is no descriptor or
         * memory for it. Then it stays in the queue, and the listener would
         * wake us at once, for nothing, until another client goes. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
            errno == ENOMEM) {
            watch(EPOLL_CTL_MOD, listen_fd, 0, &listen_fd);
            lawn_engine_start(engine, &accept_again, lawn_time_from_msec(100));
        }
        return;
    }
    client_t *client = calloc(1, sizeof(*client));
    check(client != NULL);
    client->fd = fd;
    lawn_timer_init(&client->idle, on_idle);
    lawn_timer_init(&client->line, on_line_late);
    watch(EPOLL_CTL_ADD, fd, EPOLLIN, client);
    lawn_engine_start(engine, &client->idle, idle_ttl);
}

/* Runs for ever, or until a client has been closed. */
static void run(bool for_ever)
{
    struct epoll_event events[64];
    lawn_timer_init(&accept_again, on_accept_again);
    watch(EPOLL_CTL_ADD, listen_fd, EPOLLIN, &listen_fd);
    watch(EPOLL_CTL_ADD, lawn_engine_fd(engine), EPOLLIN, NULL);
    while (for_ever || closed == 0) {
        /* After OK, the descriptor wakes us for the next timer. BUSY means that
         * there is work now. */
        lawn_status_t status = lawn_engine_arm(engine);
        check(status == LAWN_OK || status == LAWN_ERR_BUSY);
        int n = epoll_wait(epoll_fd, events, 64, status == LAWN_OK ? -1 : 0);
        check(n >= 0 || errno == EINTR);
        for (int i = 0; i < n; ++i) {
            if (events[i].data.ptr == &listen_fd) {
                accept_client();
            } else if (events[i].data.ptr != NULL) {
                serve(events[i].data.ptr);
            }
        }
        lawn_engine_progress(engine); /* after all clients were served */
    }
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: epoll_server [--listen PORT]";
    bool serves = argc == 3 && strcmp(argv[1], "--listen") == 0;
    char *end = NULL;
    long port = serves ? strtol(argv[2], &end, 10) : 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts(usage);
        return finish_output();
    }
    if (argc != 1 && (port < 1 || port > 65535 || *end != '\0')) {
        fprintf(stderr, "%s\n", usage);
        return 2;
    }
    struct in_addr host = {htonl(serves ? INADDR_ANY : INADDR_LOOPBACK)};
    struct sockaddr_in at = {AF_INET, htons((uint16_t)port), host, {0}};
    struct sockaddr *address = (struct sockaddr *)&at;
    socklen_t length = sizeof(at);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(listen_fd >= 0);
    check(bind(listen_fd, address, length) == 0 && listen(listen_fd, 64) == 0);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    check(epoll_fd >= 0 && lawn_engine_create(NULL, &engine) == LAWN_OK);
    idle_ttl = lawn_time_from_msec(serves ? 10000 : 200);
    if (serves) {
        run(true);
    }
    /* This client sends a line, receives it, and sends nothing more. */
    char heard[7];
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(client >= 0 && getsockname(listen_fd, address, &length) == 0);
    check(connect(client, address, length) == 0);
    check(send(client, "hello\n", 6, 0) == 6);
    run(false);
    lawn_engine_destroy(engine);
    if (recv(client, heard, sizeof(heard), MSG_WAITALL) != 6) {
        return 1;
    }
    return finish_output();
}
