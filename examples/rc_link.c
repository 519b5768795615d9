/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A device, a queue pair and TCP; see rc_link.h.
 */
#include "rc_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void rc_check(bool is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "rc_deadline: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

rc_link_t rc_open(const char *device, uint32_t depth, void *memory, size_t size)
{
    rc_link_t link;
    memset(&link, 0, sizeof(link));
    link.fd = -1;
    struct ibv_device **const list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    for (int i = 0; list && list[i] && !context; ++i) {
        if (!device || strcmp(device, ibv_get_device_name(list[i])) == 0) {
            context = ibv_open_device(list[i]);
        }
    }
    errno = ENODEV;
    rc_check(context != NULL, device ? device : "RDMA");
    ibv_free_device_list(list);
    rc_check(ibv_query_gid(context, 1, 0, &link.mine.gid) == 0, "GID 0");
    struct ibv_pd *const pd = ibv_alloc_pd(context);
    link.cq = ibv_create_cq(context, (int)(2 * depth), NULL, NULL, 0);
    rc_check(pd && link.cq, "completion queue");
    link.mr = ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.qp_type = IBV_QPT_RC;
    attr.send_cq = link.cq;
    attr.recv_cq = link.cq;
    attr.cap.max_send_wr = depth;
    attr.cap.max_recv_wr = depth;
    attr.cap.max_send_sge = 1;
    attr.cap.max_recv_sge = 1;
    attr.cap.max_inline_data = sizeof(uint64_t);
    link.qp = ibv_create_qp(pd, &attr);
    rc_check(link.mr && link.qp, "queue pair");
    link.mine.qpn = link.qp->qp_num;
    return link;
}

static void modify(rc_link_t *link, struct ibv_qp_attr *attr,
                   enum ibv_qp_state state, int mask)
{
    attr->qp_state = state;
    errno = ibv_modify_qp(link->qp, attr, IBV_QP_STATE | mask);
    rc_check(errno == 0, "state of the queue pair");
}

void rc_fail(rc_link_t *link)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof(attr));
    modify(link, &attr, IBV_QPS_ERR, 0);
}

void rc_connect(rc_link_t *link, unsigned long retries,
                unsigned long rnr_retries)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof(attr));
    modify(link, &attr, IBV_QPS_RESET, 0);
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE; /* for the keepalive */
    modify(link, &attr, IBV_QPS_INIT,
           IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = link->theirs.gid;
    attr.ah_attr.grh.hop_limit = 64;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = link->theirs.qpn;
    attr.rq_psn = link->theirs.psn;
    attr.min_rnr_timer = 12; /* 0.64 ms */
    modify(link, &attr, IBV_QPS_RTR,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.sq_psn = link->mine.psn;
    attr.timeout = 14; /* 67 ms */
    attr.retry_cnt = (uint8_t)retries;
    attr.rnr_retry = (uint8_t)rnr_retries;
    modify(link, &attr, IBV_QPS_RTS,
           IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
               IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct sockaddr_in ipv4(unsigned long port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    return address;
}

int rc_listen(unsigned long port)
{
    const struct sockaddr_in any = ipv4(port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    rc_check(bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0 &&
                 listen(fd, 8) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0,
             "port of TCP");
    return fd;
}

/* Each time it has another PSN, so that it takes nothing that is still on its
 * way from before. */
void rc_use(rc_link_t *link, int fd)
{
    const struct timeval second = {1, 0};
    if (link->fd >= 0) {
        close(link->fd);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
    link->fd = fd;
    rc_check(getrandom(&link->mine.psn, sizeof(link->mine.psn), 0) > 0, "PSN");
    link->mine.psn &= 0xffffff;
}

bool rc_dial(rc_link_t *link, const char *address, unsigned long port)
{
    struct sockaddr_in to = ipv4(port);
    errno = EINVAL;
    rc_check(inet_pton(AF_INET, address, &to.sin_addr) == 1, address);
    rc_use(link, socket(AF_INET, SOCK_STREAM, 0));
    return connect(link->fd, (const struct sockaddr *)&to, sizeof(to)) == 0;
}

bool rc_tell(const rc_link_t *link)
{
    return send(link->fd, &link->mine, sizeof(link->mine), MSG_NOSIGNAL) ==
           (ssize_t)sizeof(link->mine);
}

bool rc_hear(rc_link_t *link)
{
    return recv(link->fd, &link->theirs, sizeof(link->theirs), MSG_WAITALL) ==
           (ssize_t)sizeof(link->theirs);
}
