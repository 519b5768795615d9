/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Threads that sleep while they have nothing to do (nap.h): those of services,
 * also of a driver's, and those that delay.
 */
#include "nap.h"

#include <rte_cycles.h>
#include <rte_service_component.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

typedef int32_t (*register_fn_t)(const struct rte_service_spec *, uint32_t *);

typedef struct {
    rte_service_func call;
    void *arg;
} service_t;

static int32_t call_or_nap(void *arg)
{
    const service_t *const service = arg;
    const int32_t result = service->call(service->arg);
    nap(result == -EAGAIN);
    return result;
}

/* Stands before EAL's, also for drivers, which are libraries. What it allocates
 * is never freed: a service may end at any time, and nobody tells. */
int32_t rte_service_component_register(const struct rte_service_spec *spec,
                                       uint32_t *id_p)
{
    const register_fn_t of_eal =
        (register_fn_t)dlsym(RTLD_NEXT, "rte_service_component_register");
    service_t *const service = malloc(sizeof(*service));
    struct rte_service_spec napping = *spec;
    if (!service || !of_eal) {
        free(service);
        return -ENOMEM;
    }
    service->call = spec->callback;
    service->arg = spec->callback_userdata;
    napping.callback = call_or_nap;
    napping.callback_userdata = service;
    return of_eal(&napping, id_p);
}

RTE_INIT(sleep_in_delays)
{
    rte_delay_us_callback_register(rte_delay_us_sleep);
}
