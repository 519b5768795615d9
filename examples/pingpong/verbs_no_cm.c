/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Replaces verbs_cm.c and verbs_meet.c if there is no librdmacm. --cm is
 * refused, so the other functions are never called. transport_meet() is not
 * defined.
 */
#include "verbs_internal.h"

bool verbs_cm_open(transport_t *v)
{
    (void)v;
    complain("--cm: built without librdmacm");
    return false;
}

void verbs_cm_close(transport_t *v)
{
    (void)v;
}

bool verbs_cm_find_gid(transport_t *v)
{
    (void)v;
    return false;
}

int verbs_cm_fd(const transport_t *v)
{
    (void)v;
    return -1;
}

unsigned verbs_cm_poll(transport_t *v)
{
    (void)v;
    return 0;
}
