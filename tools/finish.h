/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The end of a program's output. A report that was cut short, for example by a
 * full disk, is a failure.
 */
#ifndef LAWN_TOOLS_FINISH_H
#define LAWN_TOOLS_FINISH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes out what is buffered. If that or an earlier write failed, says so on
 * stderr. Returns an exit status. */
static inline int finish_output(const char *program)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return EXIT_SUCCESS;
    }
    /* An earlier error is only known as such. */
    fprintf(stderr, "%s: standard output: %s\n", program,
            errno != 0 ? strerror(errno) : "a write failed");
    return EXIT_FAILURE;
}

#endif
