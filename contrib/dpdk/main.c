/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Runs a test of DPDK's app/test, whose own program needs the tests of all of
 * DPDK's libraries:
 *
 *     PROGRAM EAL-OPTION... -- TEST
 *
 * Each file of app/test registers its tests. test_timer_secondary starts this
 * program once more, with a variable in the environment. The exit status is
 * that of the test: 0 passed, 77 skipped.
 */
#include "test.h"

#include <rte_eal.h>
#include <rte_timer.h>

#include <stdio.h>
#include <string.h>

const char *prgname;

static struct test_commands_list commands = TAILQ_HEAD_INITIALIZER(commands);

void add_test_command(struct test_command *t)
{
    TAILQ_INSERT_TAIL(&commands, t, next);
}

static int run(const char *name)
{
    struct test_command *t;
    TAILQ_FOREACH(t, &commands, next)
    {
        if (strcmp(t->command, name) == 0) {
            return t->callback();
        }
    }
    fprintf(stderr, "no such test: %s\n", name);
    return TEST_FAILED;
}

int main(int argc, char **argv)
{
    const int parsed = rte_eal_init(argc, argv);
    int result;
    if (parsed < 0 || rte_timer_subsystem_init() < 0) {
        return EXIT_FAILURE;
    }
    prgname = argv[0];
    result = getenv(RECURSIVE_ENV_VAR) ? test_timer_secondary()
                                       : run(argv[argc - 1]);
    rte_timer_subsystem_finalize();
    rte_eal_cleanup();
    return result == TEST_SUCCESS || result == TEST_SKIPPED ? result
                                                            : EXIT_FAILURE;
}
