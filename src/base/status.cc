// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The texts of the status codes, and the version (lawn/base.h).

#include <lawn/base.h>

const char *lawn_status_string(lawn_status_t status)
{
    switch (status) {
    case LAWN_OK:
        return "success";
    case LAWN_ERR_INVALID_PARAM:
        return "invalid parameter";
    case LAWN_ERR_NO_MEMORY:
        return "out of memory";
    case LAWN_ERR_BUSY:
        return "busy";
    case LAWN_ERR_UNSUPPORTED:
        return "unsupported";
    case LAWN_ERR_IO:
        return "input/output error";
    case LAWN_ERR_NO_ELEM:
        return "no such element";
    case LAWN_ERR_TIMED_OUT:
        return "timed out";
    case LAWN_ERR_CORRUPT:
        return "corrupt structure";
    }
    return "unknown status";
}

const char *lawn_version(void)
{
    return LAWN_VERSION_STRING;
}
