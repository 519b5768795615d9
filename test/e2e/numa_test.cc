// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// On a machine with two NUMA nodes: memory is on the node that it was asked to
// be on, page by page, by the kernel's own account (move_pages). How fast it is
// from there says nothing on an emulated machine, and is not asked.

#include "../unit/group/group_fixture.h"

#include <lawn/numa.h>

#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>
#include <string>

namespace
{

const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

// The first processor of a node; -1 where there is none.
int processor_of(int node)
{
    std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) +
                       "/cpulist");
    int processor = -1;
    file >> processor;
    return processor;
}

// Where each page is.
void expect_all_on(int node, const void *memory, size_t size)
{
    for (size_t i = 0; i < size; i += page) {
        EXPECT_EQ(lawn_numa_node_of(static_cast<const char *>(memory) + i),
                  node)
            << "page " << i / page;
    }
}

void run_on(int node)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    ASSERT_GE(processor_of(node), 0) << "needs two nodes: ci/softroce --nodes";
    CPU_SET(static_cast<size_t>(processor_of(node)), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    ASSERT_EQ(lawn_numa_node(), node);
}

TEST(Numa, MemoryIsWhereItIsAllocated)
{
    constexpr size_t size = 56;
    ASSERT_NO_FATAL_FAILURE(run_on(0));
    for (const int node : {0, 1}) {
        void *const memory = lawn_numa_alloc(size * page, node);
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(lawn_numa_node_of(memory), -1); // not touched
        memset(memory, 1, size * page);
        expect_all_on(node, memory, size * page);
        lawn_numa_free(memory, size * page);
    }
    for (const int node : {1, 0}) {
        ASSERT_NO_FATAL_FAILURE(run_on(node));
        void *const memory = lawn_numa_alloc(size * page, -1);
        ASSERT_NE(memory, nullptr);
        memset(memory, 1, size * page);
        expect_all_on(node, memory, size * page); // first touched
        lawn_numa_free(memory, size * page);
    }
}

TEST(Numa, MemoryMoves)
{
    constexpr size_t size = 56;
    ASSERT_NO_FATAL_FAILURE(run_on(0));
    char *const memory = static_cast<char *>(lawn_numa_alloc(size * page, 1));
    ASSERT_NE(memory, nullptr);
    memset(memory, 1, size / 2 * page);
    EXPECT_EQ(lawn_numa_move(memory, size * page, 0), LAWN_OK);
    expect_all_on(0, memory, size / 2 * page);
    memset(memory, 1, size * page);
    expect_all_on(0, memory, size * page); // what came later, too
    // Of pages that are in it by a part nothing moves.
    EXPECT_EQ(lawn_numa_move(memory + 1, 3 * page, 1), LAWN_OK);
    expect_all_on(0, memory, page);
    expect_all_on(1, memory + page, 2 * page);
    expect_all_on(0, memory + 3 * page, page);
    EXPECT_EQ(lawn_numa_move(memory, size * page, 2), LAWN_ERR_UNSUPPORTED);
    lawn_numa_free(memory, size * page);
}

using Group = GroupTest;

TEST_F(Group, MemoryGoesWhereTheOwnerRuns)
{
    params_.moves_memory = true;
    ASSERT_NO_FATAL_FAILURE(run_on(0));
    make();
    lawn_worker_t *const workers[] = {add_worker(), add_worker()};
    pass(workers[0]);
    const size_t size = 3 * page;
    void *const memory = lawn_numa_alloc(size, -1);
    memset(memory, 0, size);
    Told *const told = new (memory) Told;
    told->init(shard(0));
    told->start(2000);
    pass(workers[0]);
    lawn_region_t region = {told, size, nullptr};
    lawn_shard_hold(shard(0), &region);
    lawn_t *const lawn = lawn_shard_lawn(shard(0));
    for (const int node : {1, 0, 1}) {
        lawn_group_move_shard(shard(0), workers[node]);
        pass(workers[1 - node]);
        ASSERT_NO_FATAL_FAILURE(run_on(node));
        pass(workers[node]);
        expect_all_on(node, told, size);
        expect_all_on(node, lawn, sizeof(*lawn));
        expect_all_on(node, lawn_shard_box(shard(0)), 1);
        expect_all_on(0, lawn_shard_lawn(shard(1)), sizeof(*lawn));
        EXPECT_EQ(told->fired, 0U);
    }
    now_ = 2000;
    pass(workers[1]);
    EXPECT_EQ(told->fired, 1U);
    told->retire();
    pass(workers[1]);
    end();
    lawn_numa_free(memory, size);
}

TEST_F(Group, WithoutMovingMemoryStaysWhereItWasMade)
{
    ASSERT_NO_FATAL_FAILURE(run_on(0));
    make();
    lawn_worker_t *const first = add_worker();
    lawn_worker_t *const second = add_worker();
    pass(first);
    lawn_t *const lawn = lawn_shard_lawn(shard(0));
    const int node = lawn_numa_node_of(lawn);
    ASSERT_GE(node, 0);
    lawn_group_move_shard(shard(0), second);
    pass(first);
    ASSERT_NO_FATAL_FAILURE(run_on(1 - node));
    pass(second);
    EXPECT_EQ(lawn_numa_node_of(lawn), node);
}

} // namespace
