// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Out of memory: groups, shared memory, and the handles of shared timers.

#include "memory_fixture.h"

#include <lawn/group.h>
#include <lawn/lawn.hpp>
#include <lawn/shm.h>

#include <cstdlib>
#include <string>

#include <dirent.h>
#include <unistd.h>

using namespace lawn_test;

namespace
{

TEST(Memory, OfAGroupAndItsWorkers)
{
    lawn_group_params_t params = {};
    params.shards = 2;
    lawn_group_t *group = untouched<lawn_group_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(group, untouched<lawn_group_t>());
                  return is_ok(lawn_group_create(&params, &group));
              }),
              7U); // the group, its shards and loads, two lawns and boxes
    // The first one makes room for more, which stays.
    lawn_worker_t *worker = untouched<lawn_worker_t>();
    const auto add_worker = [&] {
        EXPECT_EQ(worker, untouched<lawn_worker_t>());
        return is_ok(lawn_group_add_worker(group, nullptr, nullptr, &worker));
    };
    left = 0;
    is_watching = true;
    EXPECT_FALSE(add_worker());
    left = UINT_MAX;
    has_failed = false;
    EXPECT_TRUE(add_worker());
    is_watching = false;
    worker = untouched<lawn_worker_t>();
    EXPECT_EQ(count_failures(add_worker), 2U); // the worker, its shards
    lawn_engine_params_t engine_params = {};
    engine_params.clock = lawn_group_time;
    engine_params.clock_arg = group;
    lawn_engine_t *engine = nullptr;
    is_watching = true;
    ASSERT_EQ(lawn_engine_create(&engine_params, &engine), LAWN_OK);
    is_watching = false;
    worker = untouched<lawn_worker_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(worker, untouched<lawn_worker_t>());
                  return is_ok(lawn_group_add_engine(group, engine, &worker));
              }),
              2U);
    lawn_worker_t *const of_engine = worker;
    worker = untouched<lawn_worker_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(worker, untouched<lawn_worker_t>());
                  return is_ok(lawn_group_add_thread(group, &worker));
              }),
              4U); // an engine comes to it
    expect_all_back([&] {
        EXPECT_EQ(lawn_group_remove_worker(worker, nullptr), LAWN_OK);
        EXPECT_EQ(lawn_group_remove_worker(of_engine, nullptr), LAWN_OK);
        lawn_engine_destroy(engine);
        lawn_group_destroy(group);
    });
}

// Valgrind leaves it out: it knows no pidfds.
TEST(ShmOutOfMemory, IsToldByOwnersAndClients)
{
    char name[] = "/tmp/lawn-memory.XXXXXX";
    const std::string directory = mkdtemp(name);
    const std::string path = directory + "/timers";
    const auto files = [&] {
        size_t count = 0;
        DIR *const stream = opendir(directory.c_str());
        while (const dirent *const entry = readdir(stream)) {
            count += entry->d_name[0] != '.';
        }
        closedir(stream);
        return count;
    };
    lawn_engine_t *engine = nullptr;
    is_watching = true;
    ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
    is_watching = false;
    lawn_shm_t *shm = untouched<lawn_shm_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(shm, untouched<lawn_shm_t>());
                  EXPECT_EQ(access(path.c_str(), F_OK), -1);
                  return is_ok(
                      lawn_shm_create(engine, path.c_str(), nullptr, &shm));
              }),
              4U); // the owner, its timers, what it watches, its source
    lawn_shm_client_t *client = untouched<lawn_shm_client_t>();
    EXPECT_EQ(count_failures([&] {
                  EXPECT_EQ(client, untouched<lawn_shm_client_t>());
                  return is_ok(
                      lawn_shm_open(path.c_str(), nullptr, nullptr, &client));
              }),
              1U);
    EXPECT_EQ(files(), 3U); // the memory, and two FIFOs
    expect_all_back([&] {
        lawn_shm_close(client);
        lawn_shm_destroy(shm);
        lawn_engine_destroy(engine);
    });
    EXPECT_EQ(rmdir(directory.c_str()), 0);
}

TEST(Memory, OfHandlesOfSharedTimers)
{
    lawn::engine engine = lawn::make_engine();
    unsigned runs = 0;
    auto run = [&runs](lawn_time_t) { ++runs; };
    lawn::shared_timer<decltype(run)> timer;
    EXPECT_FALSE(timer);
    left = 0;
    is_watching = true;
    timer = lawn::make_shared_timer(engine, run);
    is_watching = false;
    left = UINT_MAX;
    EXPECT_FALSE(timer) << "the engine has no box yet";
    ASSERT_NE(lawn_engine_box(engine.get()), nullptr);
    EXPECT_EQ(count_failures([&] {
                  timer = lawn::make_shared_timer(engine, run);
                  return static_cast<bool>(timer);
              }),
              1U);
    EXPECT_TRUE(timer.start_at(0));
    while (runs == 0) {
        lawn_engine_progress(engine.get());
    }
    EXPECT_FALSE(timer.is_active());
}

} // namespace
