/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Sets up the device, port and GID, the memory, the queues, and the peer's
 * address. If something is missing or wrong, one line on stderr says what it
 * is.
 */
#include "verbs_internal.h"

#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RECV_DEPTH 4096u
#define SEND_DEPTH 1024u
#define RECV_MEMORY ((size_t)64 << 20)

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

static bool port_is_active(struct ibv_context *context, uint32_t number,
                           struct ibv_port_attr *port)
{
    return ibv_query_port(context, (uint8_t)number, port) == 0 &&
           port->state == IBV_PORT_ACTIVE;
}

static void complain_no_device(struct ibv_device **list, const char *wanted)
{
    char names[300] = "";
    size_t used = 0;
    for (int i = 0; list[i] && used < sizeof(names) - 70; ++i) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 i ? ", " : "", ibv_get_device_name(list[i]));
    }
    complain("no RDMA device %s; there are: %s", wanted, names);
}

/* Opens the device that the user named, or the first one with an active
 * port. */
static bool open_device(transport_t *v)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list || count == 0) {
        complain("no RDMA devices found");
        if (list) {
            ibv_free_device_list(list);
        }
        return false;
    }
    bool seen = false;
    for (int i = 0; list[i] && !v->context; ++i) {
        const char *name = ibv_get_device_name(list[i]);
        if (v->device && strcmp(v->device, name) != 0) {
            continue;
        }
        seen = true;
        v->context = ibv_open_device(list[i]);
        if (v->context && !port_is_active(v->context, v->ib_port, &v->port)) {
            ibv_close_device(v->context);
            v->context = NULL;
        }
    }
    if (!seen) {
        complain_no_device(list, v->device);
    } else if (!v->context && v->device) {
        complain("%s has no active port %u", v->device, (unsigned)v->ib_port);
    } else if (!v->context) {
        complain("no RDMA device has an active port %u", (unsigned)v->ib_port);
    }
    ibv_free_device_list(list);
    return v->context != NULL;
}

static bool find_gid(transport_t *v)
{
    static const union ibv_gid empty;
    unsigned index = v->gid_index;
    const char *device = ibv_get_device_name(v->context->device);
    /* An address has 8 bits for it. */
    int count = v->port.gid_tbl_len < 256 ? v->port.gid_tbl_len : 256;
    if (index >= (unsigned)count) {
        complain("--gid-index %u: %s has GIDs 0 to %d", index, device,
                 count - 1);
        return false;
    }
    if (ibv_query_gid(v->context, (uint8_t)v->ib_port, (int)index, &v->gid) !=
            0 ||
        memcmp(&v->gid, &empty, sizeof(empty)) == 0) {
        complain("--gid-index %u: %s has no GID there", index, device);
        return false;
    }
    char text[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, v->gid.raw, text, sizeof(text));
    snprintf(v->name, sizeof(v->name), "%.20s, port %u, GID %s", device,
             (unsigned)v->ib_port, text);
    return true;
}

static bool plan_memory(transport_t *v, const struct ibv_device_attr *device)
{
    uint32_t mtu = mtu_bytes(v->port.active_mtu);
    size_t message = WIRE_HEADER_SIZE + (size_t)v->options->size;
    if (v->is_ud && message > mtu) {
        complain("--size %u: the MTU of %s, %u, allows at most %u in ud mode",
                 (unsigned)v->options->size,
                 ibv_get_device_name(v->context->device), (unsigned)mtu,
                 (unsigned)(mtu - WIRE_HEADER_SIZE));
        return false;
    }
    /* A UD queue pair receives datagrams of any sender, up to the MTU. */
    size_t receive = v->is_ud ? GRH_SIZE + (size_t)mtu : message;
    v->recv_stride = (receive + 63) & ~(size_t)63;
    v->send_stride = (message + 63) & ~(size_t)63;
    uint32_t limit = (uint32_t)device->max_qp_wr;
    uint32_t completions = (uint32_t)device->max_cqe;
    v->recv_depth = RECV_DEPTH;
    while (v->recv_depth > BATCH &&
           (v->recv_depth > limit || v->recv_depth > completions / 2 ||
            v->recv_depth * v->recv_stride > RECV_MEMORY)) {
        v->recv_depth /= 2;
    }
    v->send_depth = v->recv_depth < SEND_DEPTH ? v->recv_depth : SEND_DEPTH;
    return true;
}

static bool make_memory(transport_t *v)
{
    size_t size =
        v->recv_depth * v->recv_stride + v->send_depth * v->send_stride;
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, size) != 0) {
        complain("no memory for %zu bytes of buffers", size);
        return false;
    }
    memset(memory, 0, size);
    v->memory = memory;
    v->mr = ibv_reg_mr(v->pd, memory, size, IBV_ACCESS_LOCAL_WRITE);
    if (!v->mr) {
        complain("cannot register %zu bytes (see ulimit -l): %s", size,
                 strerror(errno));
        return false;
    }
    return true;
}

static bool make_channel(transport_t *v)
{
    v->channel = ibv_create_comp_channel(v->context);
    if (!v->channel) {
        complain("cannot create a completion channel: %s", strerror(errno));
    }
    return v->channel != NULL;
}

static bool make_queues(transport_t *v)
{
    struct ibv_device_attr device;
    int error = ibv_query_device(v->context, &device);
    if (error) {
        complain("cannot query the device: %s", strerror(error));
        return false;
    }
    if (!plan_memory(v, &device)) {
        return false;
    }
    v->pd = ibv_alloc_pd(v->context);
    if (!v->pd) {
        complain("cannot allocate a protection domain: %s", strerror(errno));
        return false;
    }
    if (!make_memory(v)) {
        return false;
    }
    if (v->options->events && !make_channel(v)) {
        return false;
    }
    v->cq = ibv_create_cq(v->context, (int)(v->recv_depth + v->send_depth),
                          NULL, v->channel, 0);
    if (!v->cq) {
        complain("cannot create a completion queue: %s", strerror(errno));
        return false;
    }
    struct ibv_qp_init_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.send_cq = v->cq;
    attr.recv_cq = v->cq;
    attr.cap.max_send_wr = v->send_depth;
    attr.cap.max_recv_wr = v->recv_depth;
    attr.cap.max_send_sge = 1;
    attr.cap.max_recv_sge = 1;
    attr.qp_type = v->is_ud ? IBV_QPT_UD : IBV_QPT_RC;
    v->qp = ibv_create_qp(v->pd, &attr);
    if (!v->qp) {
        complain("cannot create a queue pair: %s", strerror(errno));
        return false;
    }
    /* Receives are posted before the peer knows our address. */
    if (!verbs_qp_init(v) || !verbs_post_all(v)) {
        complain("cannot set up the queue pair: %s", strerror(errno));
        return false;
    }
    return true;
}

bool verbs_open_queues(transport_t *v)
{
    return open_device(v) && (!v->cm || verbs_cm_find_gid(v)) && find_gid(v) &&
           make_queues(v);
}

/* With --cm, the connection manager finds the device when the two sides
 * meet. */
transport_t *transport_open(const options_t *options)
{
    transport_t *v = calloc(1, sizeof(*v));
    if (!v) {
        complain("no memory");
        return NULL;
    }
    v->options = options;
    v->is_ud = !options->is_rc;
    v->device = options->device;
    v->ib_port = options->ib_port;
    v->gid_index = options->gid_index;
    if (getrandom(&v->psn, sizeof(v->psn), 0) != (ssize_t)sizeof(v->psn)) {
        v->psn = (uint32_t)lawn_get_time();
    }
    v->psn &= 0xffffff;
    if (options->cm ? !verbs_cm_open(v) : !verbs_open_queues(v)) {
        transport_close(v);
        return NULL;
    }
    return v;
}

/* Closes everything in the reverse order of creation, and skips what was not
 * made. */
void transport_close(transport_t *v)
{
    if (!v) {
        return;
    }
    if (v->engine) {
        lawn_engine_stop(v->engine, &v->recovery);
    }
    lawn_verbs_cq_close(&v->completions);
    lawn_verbs_events_close(&v->events);
    if (v->cm_source) {
        lawn_engine_remove(v->engine, v->cm_source);
    }
    verbs_cm_close(v);
    if (v->ah) {
        ibv_destroy_ah(v->ah);
    }
    if (v->qp) {
        ibv_destroy_qp(v->qp);
    }
    if (v->cq) {
        ibv_destroy_cq(v->cq);
    }
    if (v->channel) {
        ibv_destroy_comp_channel(v->channel);
    }
    if (v->mr) {
        ibv_dereg_mr(v->mr);
    }
    if (v->pd) {
        ibv_dealloc_pd(v->pd);
    }
    if (v->context) {
        ibv_close_device(v->context);
    }
    free(v->memory);
    free(v);
}

const char transport_program[] = "pingpong_verbs";
const options_of_t transport_options = OPTIONS_OF_VERBS;

const char *transport_mode(const transport_t *v)
{
    return v->is_ud ? "ud" : "rc";
}

const char *transport_name(const transport_t *v)
{
    return v->name;
}

/* A quarter of the peer's receive queue, because a message is answered by an
 * ACK and by a message. The other half is for retransmissions and probes, which
 * the window does not limit. */
uint32_t transport_window(const transport_t *v)
{
    return v->peer_window;
}

void transport_address(const transport_t *v, uint8_t *address)
{
    memset(address, 0, EXCHANGE_ADDRESS_SIZE);
    wire_put32(address, v->qp->qp_num);
    wire_put32(address + 4, v->psn);
    wire_put32(address + 8, v->recv_depth);
    wire_put16(address + 12, v->port.lid);
    address[14] = (uint8_t)v->port.active_mtu;
    memcpy(address + 16, v->gid.raw, sizeof(v->gid.raw));
}

bool transport_connect(transport_t *v, const uint8_t *peer)
{
    uint32_t mtu = peer[14];
    v->peer_qpn = wire_get32(peer);
    v->peer_psn = wire_get32(peer + 4);
    v->peer_window = wire_get32(peer + 8) / 4;
    if (v->peer_qpn == 0 || v->peer_qpn > 0xffffff || v->peer_psn > 0xffffff ||
        v->peer_window == 0 || mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) {
        complain("the peer's address makes no sense");
        return false;
    }
    v->path_mtu =
        mtu < v->port.active_mtu ? (enum ibv_mtu)mtu : v->port.active_mtu;

    struct ibv_ah_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.dlid = wire_get16(peer + 12);
    attr.port_num = (uint8_t)v->ib_port;
    attr.is_global = 1; /* RoCE has only global addresses */
    memcpy(attr.grh.dgid.raw, peer + 16, sizeof(attr.grh.dgid.raw));
    attr.grh.sgid_index = (uint8_t)v->gid_index;
    attr.grh.hop_limit = 64;
    if (v->is_ud) {
        v->ah = ibv_create_ah(v->pd, &attr);
        if (!v->ah) {
            complain("cannot reach the peer's GID: %s", strerror(errno));
            return false;
        }
    }
    if (!verbs_qp_connect(v, &attr)) {
        complain("cannot connect the queue pair: %s", strerror(errno));
        return false;
    }
    return true;
}
