// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A programmer's mistake: an assertion in debug builds, and in release builds
// what the header says.

#ifndef LAWN_TEST_UNIT_MISUSE_H
#define LAWN_TEST_UNIT_MISUSE_H

#include <gtest/gtest.h>

#ifdef NDEBUG
#define EXPECT_MISUSE(statement, message) statement
#else
#define EXPECT_MISUSE(statement, message) EXPECT_DEATH(statement, message)
#endif

#endif
