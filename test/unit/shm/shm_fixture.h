// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An owner of shared memory, in a directory that is empty afterwards.

#ifndef LAWN_TEST_UNIT_SHM_FIXTURE_H
#define LAWN_TEST_UNIT_SHM_FIXTURE_H

#include <lawn/shm.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <dirent.h>
#include <unistd.h>

class ShmOwner : public testing::Test
{
protected:
    ShmOwner()
    {
        char name[] = "/tmp/lawn-shm.XXXXXX";
        directory_ = mkdtemp(name);
        path_ = directory_ + "/timers";
    }

    ~ShmOwner() override
    {
        for (lawn_shm_client_t *const client : clients_) {
            lawn_shm_close(client);
        }
        lawn_shm_destroy(shm_);
        lawn_engine_destroy(engine_);
        EXPECT_EQ(files(), 0U);
        rmdir(directory_.c_str());
    }

    void own()
    {
        ASSERT_EQ(lawn_engine_create(&engine_params_, &engine_), LAWN_OK);
        ASSERT_EQ(lawn_shm_create(engine_, path_.c_str(), &params_, &shm_),
                  LAWN_OK);
    }

    // On the owner's clock, and closed with it.
    lawn_shm_client_t *open_client()
    {
        lawn_shm_client_t *client = nullptr;
        EXPECT_EQ(lawn_shm_open(path_.c_str(), engine_params_.clock,
                                engine_params_.clock_arg, &client),
                  LAWN_OK);
        clients_.push_back(client);
        return client;
    }

    static lawn_shm_timer_t alloc(lawn_shm_client_t *client,
                                  uint64_t cookie = 0)
    {
        lawn_shm_timer_t timer = 0;
        EXPECT_EQ(lawn_shm_alloc(client, cookie, &timer), LAWN_OK);
        EXPECT_NE(timer, 0U);
        return timer;
    }

    // The name of the owner's bell, which is 0, or of a client's FIFO.
    std::string fifo_name(unsigned number) const
    {
        return path_ + '.' + std::to_string(lawn_shm_owner_id(shm_) >> 32) +
               '.' + std::to_string(number);
    }

    unsigned files() const
    {
        unsigned count = 0;
        DIR *const directory = opendir(directory_.c_str());
        while (const dirent *const entry = readdir(directory)) {
            count += entry->d_name[0] != '.';
        }
        closedir(directory);
        return count;
    }

    lawn_status_t try_to_open()
    {
        lawn_shm_client_t *client = nullptr;
        const lawn_status_t status =
            lawn_shm_open(path_.c_str(), engine_params_.clock,
                          engine_params_.clock_arg, &client);
        lawn_shm_close(client);
        return status;
    }

    lawn_shm_stats_t stats() const
    {
        lawn_shm_stats_t stats;
        lawn_shm_query(shm_, &stats);
        return stats;
    }

    std::string directory_;
    std::string path_;
    lawn_engine_params_t engine_params_ = {};
    lawn_shm_params_t params_ = {};
    lawn_engine_t *engine_ = nullptr;
    lawn_shm_t *shm_ = nullptr;
    std::vector<lawn_shm_client_t *> clients_;
};

// One of eight timers and three clients, on virtual time.
class TimedShmOwner : public ShmOwner
{
protected:
    TimedShmOwner()
    {
        engine_params_.clock = clock;
        engine_params_.clock_arg = this;
        engine_params_.ticks_per_sec = 1e9;
        params_.timers = 8;
        params_.clients = 3;
    }

    static lawn_time_t clock(void *arg)
    {
        return static_cast<TimedShmOwner *>(arg)->now_;
    }

    unsigned pass()
    {
        return lawn_engine_progress(engine_);
    }

    lawn_time_t now_ = 1'000'000'000;
};

#endif
