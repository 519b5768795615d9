// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Memory on nodes: what holds with any number of them. That it is where it
// should be needs two: test/e2e/numa_test.cc.

#include "group/pages.h"
#include "group_fixture.h"

#include <lawn/numa.h>

#include <unistd.h>

#include <cstring>
#include <new>

namespace
{

const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

TEST(Numa, MemoryIsZeroAndItsOwn)
{
    const int node = lawn_numa_node();
    EXPECT_GE(node, 0);
    for (const size_t size : {size_t{1}, page, 5 * page + 1}) {
        for (const int where : {-1, node, 1023, 5000}) {
            char *const memory =
                static_cast<char *>(lawn_numa_alloc(size, where));
            ASSERT_NE(memory, nullptr);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % page, 0U);
            for (size_t i = 0; i < size; i += 64) {
                EXPECT_EQ(memory[i], 0);
            }
            memset(memory, 1, size);
            lawn_numa_free(memory, size);
        }
    }
    EXPECT_EQ(lawn_numa_alloc(0, node), nullptr);
    EXPECT_EQ(lawn_numa_alloc(SIZE_MAX, node), nullptr);
    EXPECT_EQ(lawn_numa_alloc(SIZE_MAX / 2, node), nullptr);
    lawn_numa_free(nullptr, 1);
}

TEST(Numa, RefusesBadInput)
{
    char memory[64] = {};
    EXPECT_EQ(lawn_numa_move(nullptr, page, 0), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_numa_move(memory, page, -1), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_numa_move(memory, page, 100000), LAWN_ERR_UNSUPPORTED);
    // No whole page is in it.
    EXPECT_EQ(lawn_numa_move(memory, sizeof(memory), 0), LAWN_OK);
}

TEST(Numa, PagesForMoreThanThereIsAreRefused)
{
    const lawn_allocator_t pages = lawn::page_allocator();
    EXPECT_EQ(pages.alloc(nullptr, SIZE_MAX), nullptr);
    EXPECT_EQ(pages.alloc(nullptr, SIZE_MAX - 4096), nullptr);
}

TEST(Numa, WhereANodeIsNotNothingIsChanged)
{
    char *const memory = static_cast<char *>(lawn_numa_alloc(3 * page, -1));
    ASSERT_NE(memory, nullptr);
    memset(memory, 7, 3 * page);
    EXPECT_NE(lawn_numa_move(memory, 3 * page, 1000), LAWN_OK);
    const lawn_status_t status =
        lawn_numa_move(memory, 3 * page, lawn_numa_node());
    EXPECT_TRUE(status == LAWN_OK || status == LAWN_ERR_UNSUPPORTED) << status;
    for (size_t i = 0; i < 3 * page; ++i) {
        ASSERT_EQ(memory[i], 7);
    }
    lawn_numa_free(memory, 3 * page);
}

using GroupMemory = GroupTest;

// What has moved is still there, and works.
TEST_F(GroupMemory, GoesAlongWithItsShard)
{
    params_.moves_memory = true;
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    pass(first);
    const size_t size = 3 * page;
    Told *const told = new (lawn_numa_alloc(size, -1)) Told;
    told->init(shard(0));
    told->start(2000);
    pass(first);
    lawn_region_t region = {told, size, nullptr};
    lawn_region_t other = {told, size, nullptr};
    lawn_shard_hold(shard(0), &region);
    lawn_shard_hold(shard(0), &other);
    lawn_group_move_shard(shard(0), second);
    pass(first);
    pass(second);
    EXPECT_EQ(lawn_check(lawn_shard_lawn(shard(0))), LAWN_OK);
    EXPECT_EQ(told->fired, 0U);
    now_ = 2000;
    pass(second);
    EXPECT_EQ(told->fired, 1U);
    lawn_shard_drop(shard(0), &region);
    lawn_shard_drop(shard(0), &region); // none of its: nothing
    lawn_shard_drop(shard(0), &other);
    told->retire();
    pass(second);
    EXPECT_EQ(told->released, 1U);
    end();
    lawn_numa_free(told, size);
}

} // namespace
