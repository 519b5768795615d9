/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lwIP's TCP over a wire in memory that loses packets, in virtual time: one
 * stack sends to itself. Sleeps for as long as lwIP allows. Prints how long a
 * megabyte takes, the longest time without news, the packets, how often lwIP
 * woke up, and a sum of every packet and its time, which ci/lwip compares.
 *
 *     loss PER_MILLE SEED
 */
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 1 << 20, DELAY = 5, QUEUE = 1024, PORT = 7 };

static u32_t now;
static uint64_t state;
static u32_t per_mille;
static uint64_t sum = 14695981039346656037u;
static unsigned packets;
static unsigned lost;
static unsigned received;
static unsigned written;
static u32_t last_news;
static u32_t longest;

static struct {
    struct pbuf *packet;
    u32_t due;
} wire[QUEUE];
static unsigned head;
static unsigned tail;

u32_t sys_now(void)
{
    return now;
}

static void add_to_sum(const void *data, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        sum = (sum ^ ((const u8_t *)data)[i]) * 1099511628211u;
    }
}

static err_t send_packet(struct netif *netif, struct pbuf *packet,
                         const ip4_addr_t *to)
{
    struct pbuf *const copy = pbuf_clone(PBUF_RAW, PBUF_RAM, packet);
    (void)netif;
    (void)to;
    if (!copy || head - tail == QUEUE) {
        fputs("no room for a packet\n", stderr);
        exit(1);
    }
    add_to_sum(&now, sizeof now);
    add_to_sum(copy->payload, copy->len);
    packets++;
    state = state * 6364136223846793005 + 1442695040888963407;
    if ((state >> 32) * 1000 >> 32 < per_mille) {
        lost++;
        pbuf_free(copy);
        return ERR_OK;
    }
    wire[head % QUEUE].packet = copy;
    wire[head++ % QUEUE].due = now + DELAY;
    return ERR_OK;
}

static void deliver(struct netif *netif)
{
    while (tail != head && (s32_t)(now - wire[tail % QUEUE].due) >= 0) {
        struct pbuf *const packet = wire[tail++ % QUEUE].packet;
        if (netif->input(packet, netif) != ERR_OK) {
            pbuf_free(packet);
        }
    }
}

static err_t open_wire(struct netif *netif)
{
    netif->mtu = 1500;
    netif->output = send_packet;
    netif->flags |= NETIF_FLAG_LINK_UP;
    return ERR_OK;
}

static err_t on_received(void *arg, struct tcp_pcb *pcb, struct pbuf *data,
                         err_t status)
{
    (void)arg;
    (void)status;
    if (data) {
        received += data->tot_len;
        longest = LWIP_MAX(longest, now - last_news);
        last_news = now;
        tcp_recved(pcb, data->tot_len);
        pbuf_free(data);
    }
    return ERR_OK;
}

static err_t on_accepted(void *arg, struct tcp_pcb *pcb, err_t status)
{
    (void)arg;
    (void)status;
    tcp_recv(pcb, on_received);
    return ERR_OK;
}

static err_t send_more(void *arg, struct tcp_pcb *pcb, u16_t acked)
{
    static const u8_t data[TCP_MSS];
    (void)arg;
    (void)acked;
    while (written < SIZE && tcp_sndbuf(pcb) >= sizeof data &&
           tcp_write(pcb, data, sizeof data, 0) == ERR_OK) {
        written += sizeof data;
    }
    tcp_output(pcb);
    return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t status)
{
    (void)status;
    tcp_sent(pcb, send_more);
    return send_more(arg, pcb, 0);
}

static void on_failed(void *arg, err_t status)
{
    (void)arg;
    fprintf(stderr, "the connection failed: %d\n", status);
    exit(1);
}

int main(int argc, char **argv)
{
    unsigned wakes = 0;
    struct netif netif;
    ip4_addr_t address;
    ip4_addr_t mask;
    ip_addr_t server;
    struct tcp_pcb *listener;
    struct tcp_pcb *client;

    per_mille = argc > 1 ? (u32_t)atoi(argv[1]) : 10;
    state = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
    lwip_init();
    IP4_ADDR(&address, 10, 0, 0, 1);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    ip_addr_copy_from_ip4(server, address);
    netif_add(&netif, &address, &mask, NULL, NULL, open_wire, ip_input);
    netif_set_default(&netif);
    netif_set_up(&netif);

    listener = tcp_new();
    tcp_bind(listener, IP_ADDR_ANY, PORT);
    listener = tcp_listen(listener);
    tcp_accept(listener, on_accepted);
    client = tcp_new();
    tcp_err(client, on_failed);
    tcp_connect(client, &server, PORT, on_connected);

    while (received < SIZE) {
        u32_t sleep = sys_timeouts_sleeptime();
        if (tail != head) {
            sleep = LWIP_MIN(sleep, wire[tail % QUEUE].due - now);
        }
        now += sleep;
        wakes++;
        deliver(&netif);
        sys_check_timeouts();
    }
    printf("%4.1f %% lost: %7u ms, longest silence %6u ms, %5u packets, "
           "%3u lost, %5u wake-ups, sum %016llx\n",
           per_mille / 10.0, now, longest, packets, lost, wakes,
           (unsigned long long)sum);
    return 0;
}
