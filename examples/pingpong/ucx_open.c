/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Sets up the context, the worker, the send buffers, and the endpoint to the
 * peer's worker. UCX's own variables choose devices and transports (UCX_TLS,
 * UCX_NET_DEVICES, UCX_IB_GID_INDEX, ...).
 */
#include "ucx_internal.h"

#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/config/global_opts.h>

#define SLOTS 1024u
#define SLOTS_LEAST 32u
#define SLOTS_MEMORY ((size_t)64 << 20)

/* Bytes in front of the worker's address in the exchange. */
#define LENGTH_SIZE 2u

/* How many events a closed endpoint may need to release its transports. */
#define EVENTS_TO_CLOSE 10000u

static bool complain_status(const char *what, ucs_status_t status)
{
    complain("cannot %s: %s", what, ucs_status_string(status));
    return false;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "any";
}

/* Sets defaults that differ from UCX's. The user's variables take
 * precedence. */
static void set_defaults(void)
{
    /* UCX probes its endpoints every 20 s, and wakes a sleeping worker each
     * time. Here lawn_conn probes the peer instead. */
    setenv("UCX_KEEPALIVE_INTERVAL", "inf", 0);
    /* Our endpoints must report failures. UCX lets such endpoints use shared
     * memory only with this variable, by which shared memory claims that it can
     * do so. */
    setenv("UCX_MM_ERROR_HANDLING", "y", 0);
    /* A call that fails returns a status, and this program prints one line. UCX
     * has read this variable when its libraries were loaded, so setenv() is too
     * late. */
    if (!getenv("UCX_LOG_LEVEL")) {
        ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    }
}

static bool open_context(transport_t *u)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features =
            UCP_FEATURE_AM | (u->options->events ? UCP_FEATURE_WAKEUP : 0),
    };
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return complain_status("read UCX's configuration", status);
    }
    status = ucp_init(&params, config, &u->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        complain("cannot use UCX with UCX_TLS=%s, UCX_NET_DEVICES=%s: %s",
                 variable("UCX_TLS"), variable("UCX_NET_DEVICES"),
                 ucs_status_string(status));
        return false;
    }
    return true;
}

static bool open_worker(transport_t *u)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    ucs_status_t status = ucp_worker_create(u->context, &params, &u->worker);
    if (status != UCS_OK) {
        return complain_status("create a UCP worker", status);
    }
    const ucp_am_handler_param_t handler = {
        .field_mask =
            UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
            UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = UCX_AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = ucx_received,
        .arg = u,
    };
    status = ucp_worker_set_am_recv_handler(u->worker, &handler);
    if (status != UCS_OK) {
        return complain_status("receive active messages", status);
    }
    status = ucp_worker_get_address(u->worker, &u->address, &u->address_size);
    if (status != UCS_OK) {
        return complain_status("tell the worker's address", status);
    }
    if (u->address_size > EXCHANGE_ADDRESS_SIZE - LENGTH_SIZE) {
        complain("the worker's address takes %zu bytes of at most %u: name "
                 "fewer transports or devices by UCX_TLS or UCX_NET_DEVICES",
                 u->address_size, EXCHANGE_ADDRESS_SIZE - LENGTH_SIZE);
        return false;
    }
    return true;
}

static bool make_slots(transport_t *u)
{
    size_t size =
        sizeof(send_slot_t) + WIRE_HEADER_SIZE + (size_t)u->options->size;
    u->slot_stride = (size + 63) & ~(size_t)63;
    u->slot_count = SLOTS;
    while (u->slot_count > SLOTS_LEAST &&
           u->slot_count * u->slot_stride > SLOTS_MEMORY) {
        u->slot_count /= 2;
    }
    u->slots = calloc(u->slot_count, u->slot_stride);
    if (!u->slots) {
        complain("no memory for %u send buffers", (unsigned)u->slot_count);
        return false;
    }
    for (uint32_t i = 0; i < u->slot_count; ++i) {
        send_slot_t *slot = ucx_slot(u, i);
        slot->transport = u;
        slot->next_free = u->free_slots;
        u->free_slots = slot;
    }
    return true;
}

transport_t *transport_open(const options_t *options)
{
    transport_t *u = calloc(1, sizeof(*u));
    if (!u) {
        complain("no memory");
        return NULL;
    }
    u->options = options;
    set_defaults();
    if (!open_context(u) || !open_worker(u) || !make_slots(u)) {
        transport_close(u);
        return NULL;
    }
    snprintf(u->name, sizeof(u->name),
             "UCX %s, transports %.60s, devices %.40s",
             ucp_get_version_string(), variable("UCX_TLS"),
             variable("UCX_NET_DEVICES"));
    return u;
}

/* Closes by force. A normal close would wait for the peer, which may be dead.
 * Messages that are not sent yet are not needed. */
static void close_endpoint(transport_t *u)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(u->ep, &param);
    for (unsigned i = 0; i < EVENTS_TO_CLOSE; ++i) {
        unsigned events = ucp_worker_progress(u->worker);
        bool is_closed = !UCS_PTR_IS_PTR(request) ||
                         ucp_request_check_status(request) != UCS_INPROGRESS;
        if (is_closed && events == 0) {
            break;
        }
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

/* Closes everything in the reverse order of creation, and skips what was not
 * made. The buffers are freed last, because UCX still completes the sends that
 * it holds. */
void transport_close(transport_t *u)
{
    if (!u) {
        return;
    }
    u->failed = true;
    u->session = NULL;
    lawn_ucx_close(&u->ucx);
    if (u->ep) {
        close_endpoint(u);
    }
    if (u->address) {
        ucp_worker_release_address(u->worker, u->address);
    }
    if (u->worker) {
        ucp_worker_destroy(u->worker);
    }
    if (u->context) {
        ucp_cleanup(u->context);
    }
    free(u->slots);
    free(u);
}

const char transport_program[] = "pingpong_ucx";
const options_of_t transport_options = OPTIONS_OF_UCX;

const char *transport_mode(const transport_t *u)
{
    (void)u;
    return "ucx";
}

const char *transport_name(const transport_t *u)
{
    return u->name;
}

/* The number of buffers here. The peer has as many, because it has the same
 * --size. More messages would only wait in UCX. */
uint32_t transport_window(const transport_t *u)
{
    return u->slot_count;
}

void transport_address(const transport_t *u, uint8_t *address)
{
    memset(address, 0, EXCHANGE_ADDRESS_SIZE);
    wire_put16(address, (uint32_t)u->address_size);
    memcpy(address + LENGTH_SIZE, u->address, u->address_size);
}

bool transport_connect(transport_t *u, const uint8_t *peer)
{
    size_t size = wire_get16(peer);
    if (size == 0 || size > EXCHANGE_ADDRESS_SIZE - LENGTH_SIZE) {
        complain("the peer's address makes no sense");
        return false;
    }
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)(const void *)(peer + LENGTH_SIZE),
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = ucx_endpoint_failed, .arg = u},
    };
    ucs_status_t status = ucp_ep_create(u->worker, &params, &u->ep);
    return status == UCS_OK || complain_status("connect to the peer", status);
}
