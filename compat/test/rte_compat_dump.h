// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What rte_timer_dump_stats() prints; of a program that has included
// lawn/rte_compat.h its own way.

#ifndef LAWN_TEST_RTE_COMPAT_DUMP_H
#define LAWN_TEST_RTE_COMPAT_DUMP_H

#include <gtest/gtest.h>

#include <string>

static std::string dump_stats()
{
    char *text = nullptr;
    size_t size = 0;
    FILE *const f = open_memstream(&text, &size);
    EXPECT_EQ(rte_timer_dump_stats(f), 0);
    fclose(f);
    const std::string all(text, size);
    free(text);
    return all;
}

#endif
