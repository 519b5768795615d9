// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An allocator of the C library that fails when the test says so: with no
// memory at all, then with enough for one allocation, and so on. (Linked with
// --wrap, see memory_test.cc.)

#ifndef LAWN_TEST_UNIT_MEMORY_FIXTURE_H
#define LAWN_TEST_UNIT_MEMORY_FIXTURE_H

#include <lawn/base.h>

#include <gtest/gtest.h>

#include <climits>

namespace lawn_test
{

extern unsigned left; // allocations before the first that fails
extern long live;     // of those watched
extern bool is_watching;
extern bool has_failed; // one, and all after it

// At how many allocations `call` was made to fail, each in turn; the last time
// none did and it has succeeded. `call` returns whether it
// has, and checks what it returns if not.
template <typename Call> unsigned count_failures(const Call &call)
{
    for (unsigned failing = 0;; ++failing) {
        const long before = live;
        left = failing;
        has_failed = false;
        is_watching = true;
        const bool has_succeeded = call();
        is_watching = false;
        left = UINT_MAX;
        EXPECT_NE(has_succeeded, has_failed) << failing;
        has_failed = false;
        if (has_succeeded) {
            return failing;
        }
        EXPECT_EQ(live, before) << failing;
    }
}

// Runs `end`, after which all memory is back.
template <typename End> void expect_all_back(const End &end)
{
    is_watching = true;
    end();
    is_watching = false;
    EXPECT_EQ(live, 0);
}

// For outputs, which failures leave alone.
template <typename Object> Object *untouched()
{
    static char somewhere;
    return reinterpret_cast<Object *>(&somewhere);
}

inline bool is_ok(lawn_status_t status)
{
    EXPECT_TRUE(status == LAWN_OK || status == LAWN_ERR_NO_MEMORY);
    return status == LAWN_OK;
}

} // namespace lawn_test

#endif
