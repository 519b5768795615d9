/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Meeting the peer by rdma_cm. HOST is an address of an RDMA device. The
 * device, port, GID and path follow from it.
 *
 *     client                                   server
 *       rdma_resolve_addr, _route                rdma_listen
 *       rdma_connect  --- our half ---------->   CONNECT_REQUEST
 *                                                queue pair to RTR, RTS (RC)
 *       CONNECT_RESPONSE  <------ its half ---   rdma_accept
 *       queue pair to RTR, RTS
 *       rdma_establish  --------------------->   ESTABLISHED
 *
 * The 56 bytes of private data carry what the TCP exchange would carry: a
 * "half" from each side. A server with other options answers with a rejection
 * that carries its own half, so both sides can say what differs. UD has no
 * connection: request and response only tell each side the other's queue pair
 * and GID.
 *
 * The queue pair belongs to the transport. libibverbs alone makes it, and this
 * file changes its states. rdma_create_qp() would do both, but it would bind
 * the queue pair to one attempt to connect, and hide the timeouts.
 */
#include "verbs_cm.h"

#include "wire.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define MAGIC_SIZE 8u
/* magic, options, nonce, queue pair, receive depth, GID */
#define HALF_SIZE (MAGIC_SIZE + EXCHANGE_OPTIONS_SIZE + 8 + 4 + 4 + 16)
_Static_assert(HALF_SIZE <= 56, "all the private data that an RC request has");

static const uint8_t magic[MAGIC_SIZE] = {'L', 'A', 'W', 'N',
                                          'C', 'M', '0', '1'};

#define RESOLVE_MS 2000
/* The codes of RC and UD for "nobody listens there". */
#define REJECTED_NO_LISTENER 8
#define SIDR_NO_LISTENER 1

static bool failed(const verbs_cm_t *cm, const char *what)
{
    if (!exchange_is_given_up(cm->exchange)) {
        complain("%s: %s", what, strerror(errno));
    }
    return false;
}

static bool make_id(const transport_t *v, struct rdma_cm_id **id_p)
{
    return rdma_create_id(v->cm->channel, id_p, NULL,
                          v->is_ud ? RDMA_PS_UDP : RDMA_PS_TCP) == 0;
}

/* Encodes our half: what the peer must know of us. Before the queues are made,
 * it has only our options and our nonce. */
static void encode(const transport_t *v, uint8_t *half)
{
    memset(half, 0, HALF_SIZE);
    memcpy(half, magic, MAGIC_SIZE);
    exchange_encode_options(v->options, half + 8);
    wire_put64(half + 24, v->cm->nonce);
    if (v->qp) {
        wire_put32(half + 32, v->qp->qp_num);
        wire_put32(half + 36, v->recv_depth);
        memcpy(half + 40, v->gid.raw, sizeof(v->gid.raw));
    }
}

/* Copies the peer's half, if the latest event has one. */
static bool find_half(const transport_t *v, uint8_t *half)
{
    const struct rdma_cm_event *event = v->cm->event;
    const uint8_t *data = v->is_ud ? event->param.ud.private_data
                                   : event->param.conn.private_data;
    size_t length = v->is_ud ? event->param.ud.private_data_len
                             : event->param.conn.private_data_len;
    if (length < HALF_SIZE || memcmp(data, magic, MAGIC_SIZE) != 0) {
        return false;
    }
    memcpy(half, data, HALF_SIZE);
    return true;
}

/* Takes the peer's half. Returns false after one line on stderr if there is
 * none, or if its options do not agree with ours. */
static bool take_half(transport_t *v, uint8_t *half)
{
    if (!find_half(v, half)) {
        complain("the peer is no %s: foreign private data", program_name);
        return false;
    }
    v->cm->peer_nonce = wire_get64(half + 24);
    return exchange_agrees(v->options, half + 8);
}

/* Opens the device and port that the address belongs to, and makes all
 * queues. */
static bool open_queues(transport_t *v)
{
    if (v->context) {
        return true;
    }
    v->device = ibv_get_device_name(v->cm->id->verbs->device);
    v->ib_port = v->cm->id->port_num;
    return verbs_open_queues(v);
}

/* GIDs of RoCE v1 and v2 may have the same bytes. Like the connection manager,
 * this takes the one of RoCE v2. */
bool verbs_cm_find_gid(transport_t *v)
{
    const union ibv_gid *wanted = &v->cm->id->route.addr.addr.ibaddr.sgid;
    for (uint32_t i = 0; i < (uint32_t)v->port.gid_tbl_len; ++i) {
        struct ibv_gid_entry entry;
        if (ibv_query_gid_ex(v->context, v->ib_port, i, &entry, 0) == 0 &&
            memcmp(&entry.gid, wanted, sizeof(*wanted)) == 0 &&
            entry.gid_type != IBV_GID_TYPE_ROCE_V1) {
            v->gid_index = i;
            return true;
        }
    }
    complain("%s has no GID of the address", v->device);
    return false;
}

static bool follow(transport_t *v, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr;
    int mask = 0;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = state;
    return rdma_init_qp_attr(v->cm->id, &attr, &mask) == 0 &&
           verbs_qp_follow(v, &attr, mask);
}

/* Connects the queue pair to the one in the peer's half. For UD, it builds the
 * address that the TCP exchange would have brought. */
static bool connect_queues(transport_t *v, const uint8_t *half)
{
    if (v->is_ud) {
        uint8_t address[EXCHANGE_ADDRESS_SIZE];
        transport_address(v, address); /* LID and MTU are the same as ours */
        memcpy(address, half + 32, 4);
        memcpy(address + 8, half + 36, 4);
        memcpy(address + 16, half + 40, 16);
        return transport_connect(v, address);
    }
    v->peer_qpn = wire_get32(half + 32);
    v->peer_window = wire_get32(half + 36) / 4;
    if (v->peer_window == 0) {
        complain("the peer's address makes no sense");
        return false;
    }
    return (follow(v, IBV_QPS_RTR) && follow(v, IBV_QPS_RTS)) ||
           failed(v->cm, "cannot connect the queue pair");
}

static struct rdma_conn_param our_param(const transport_t *v,
                                        const uint8_t *half)
{
    struct rdma_conn_param param;
    memset(&param, 0, sizeof(param));
    param.private_data = half;
    param.private_data_len = HALF_SIZE;
    param.responder_resources = 1;
    param.initiator_depth = 1;
    param.qp_num = v->qp->qp_num;
    return param;
}

/* Returns true if the peer has accepted, and `half` is then its half.
 * Otherwise, either cm->is_absent says that the peer was not there, or one line
 * has been printed. */
static bool request(transport_t *v, uint8_t *half)
{
    verbs_cm_t *cm = v->cm;
    encode(v, half);
    struct rdma_conn_param param = our_param(v, half);
    cm->limit = exchange_limit();
    if (verbs_cm_expect(cm, rdma_connect(cm->id, &param),
                        v->is_ud ? RDMA_CM_EVENT_ESTABLISHED
                                 : RDMA_CM_EVENT_CONNECT_RESPONSE)) {
        return take_half(v, half);
    }
    if (!cm->event) {
        return failed(cm, "no answer by rdma_cm");
    }
    int status = cm->event->status;
    int absent = v->is_ud ? SIDR_NO_LISTENER : REJECTED_NO_LISTENER;
    cm->is_absent = status < 0 || status == absent;
    if (!cm->is_absent &&
        (!find_half(v, half) || exchange_agrees(v->options, half + 8))) {
        complain("the peer has refused, by rdma_cm, with status %d", status);
    }
    return false;
}

/* Tries one address once. Returns the same as request(). */
static bool try_address(transport_t *v, struct sockaddr *address)
{
    verbs_cm_t *cm = v->cm;
    uint8_t half[HALF_SIZE];
    cm->limit = exchange_limit();
    cm->is_absent = true;
    if (!make_id(v, &cm->id) ||
        !verbs_cm_expect(cm,
                         rdma_resolve_addr(cm->id, NULL, address, RESOLVE_MS),
                         RDMA_CM_EVENT_ADDR_RESOLVED) ||
        !verbs_cm_expect(cm, rdma_resolve_route(cm->id, RESOLVE_MS),
                         RDMA_CM_EVENT_ROUTE_RESOLVED)) {
        return false;
    }
    cm->is_absent = false;
    return open_queues(v) && request(v, half) && connect_queues(v, half) &&
           (v->is_ud || rdma_establish(cm->id) == 0 ||
            failed(cm, "cannot establish the connection"));
}

static bool meet_server(transport_t *v)
{
    verbs_cm_t *cm = v->cm;
    const options_t *options = v->options;
    struct addrinfo *list = exchange_resolve(options->host, options->port);
    if (!list) {
        return false;
    }
    lawn_time_t limit = lawn_get_time() + options->wait;
    bool is_told = options->quiet;
    bool has_met = false;
    int error = 0;
    do {
        if (error) {
            if (!is_told) {
                fprintf(stderr, "waiting for %s, port %u of rdma_cm: %s\n",
                        options->host, (unsigned)options->port,
                        strerror(error));
                is_told = true;
            }
            poll(NULL, 0, 50);
        }
        for (struct addrinfo *i = list; i && !has_met; i = i->ai_next) {
            verbs_cm_drop_id(cm);
            has_met = try_address(v, i->ai_addr);
            error = errno;
            if (!cm->is_absent) {
                break;
            }
        }
    } while (!has_met && cm->is_absent && lawn_get_time() < limit &&
             !exchange_is_given_up(cm->exchange));
    freeaddrinfo(list);
    if (!has_met && cm->is_absent && !exchange_is_given_up(cm->exchange)) {
        complain("cannot reach %s, port %u, by rdma_cm: %s", options->host,
                 (unsigned)options->port, strerror(error));
    }
    return has_met;
}

static bool await_request(transport_t *v)
{
    verbs_cm_t *cm = v->cm;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)v->options->port)};
    if (!make_id(v, &cm->listener) ||
        rdma_bind_addr(cm->listener, (struct sockaddr *)&any) != 0 ||
        rdma_listen(cm->listener, 1) != 0) {
        /* rdma_cm returns EADDRNOTAVAIL if the port is in use. */
        complain("cannot listen on port %u of rdma_cm: %s",
                 (unsigned)v->options->port,
                 strerror(errno == EADDRNOTAVAIL ? EADDRINUSE : errno));
        return false;
    }
    if (!v->options->quiet) {
        printf("waiting for a client on port %u of rdma_cm\n",
               (unsigned)v->options->port);
    }
    cm->limit = LAWN_TIME_INFINITY;
    if (!verbs_cm_expect(cm, 0, RDMA_CM_EVENT_CONNECT_REQUEST)) {
        return failed(cm, "cannot await a client");
    }
    cm->id = cm->event->id; /* a new id, on the listener's channel */
    return true;
}

static bool meet_client(transport_t *v)
{
    verbs_cm_t *cm = v->cm;
    uint8_t half[HALF_SIZE];
    uint8_t own[HALF_SIZE];
    if (!await_request(v)) {
        return false;
    }
    bool agrees = take_half(v, half);
    if (!agrees || !open_queues(v)) {
        encode(v, own);
        rdma_reject(cm->id, own, HALF_SIZE);
        return false;
    }
    encode(v, own);
    struct rdma_conn_param param = our_param(v, own);
    if (!connect_queues(v, half)) {
        return false;
    }
    int accepted = rdma_accept(cm->id, &param);
    cm->limit = exchange_limit();
    return (v->is_ud
                ? accepted == 0
                : verbs_cm_expect(cm, accepted, RDMA_CM_EVENT_ESTABLISHED)) ||
           failed(cm, "cannot accept the client");
}

bool transport_meet(transport_t *v, exchange_t *exchange, uint64_t *run_p)
{
    verbs_cm_t *cm = v->cm;
    cm->exchange = exchange;
    exchange->fd = cm->channel->fd;
    cm->nonce = exchange_nonce();
    bool has_met = v->options->host ? meet_server(v) : meet_client(v);
    verbs_cm_acknowledge(cm);
    if (cm->listener) {
        rdma_destroy_id(cm->listener); /* one client is enough */
        cm->listener = NULL;
    }
    cm->exchange = NULL;
    *run_p = cm->nonce ^ cm->peer_nonce;
    return has_met;
}
