// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Programs that were compiled with an older or a newer header: they know less
// or more of a structure than the library does (lawn/base.h, "Structures that
// grow").

#include "conn/profile.h"

#include <lawn/conn.h>
#include <lawn/engine.h>
#include <lawn/group.h>
#include <lawn/service.h>
#include <lawn/shm.h>
#include <lawn/time.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include <unistd.h>

namespace
{

// A structure in as many bytes as the program knows, of which AddressSanitizer
// and valgrind see the end.
template <typename T> class Sized
{
public:
    Sized(const T &value, size_t size) : bytes_(new char[size]), size_(size)
    {
        memset(bytes_.get(), 0, size);
        memcpy(bytes_.get(), &value, size < sizeof(T) ? size : sizeof(T));
    }

    T *get() const
    {
        return reinterpret_cast<T *>(bytes_.get());
    }

    size_t size() const
    {
        return size_;
    }

    char &operator[](size_t i)
    {
        return bytes_[i];
    }

private:
    std::unique_ptr<char[]> bytes_;
    size_t size_;
};

// What a newer program knows in addition.
constexpr size_t more = sizeof(uint64_t);

// `create` is called as an older program does, which knows no field at all,
// and as newer ones do: one that leaves alone what the library does not know,
// one that sets it.
template <typename Params>
void expect_sized(
    const std::function<lawn_status_t(const Params *, size_t)> &create)
{
    EXPECT_EQ(create(nullptr, sizeof(Params)), LAWN_OK);
    const Sized<Params> oldest({}, 0);
    EXPECT_EQ(create(oldest.get(), oldest.size()), LAWN_OK);
    const Sized<Params> present({}, sizeof(Params));
    EXPECT_EQ(create(present.get(), present.size()), LAWN_OK);
    Sized<Params> newer({}, sizeof(Params) + more);
    EXPECT_EQ(create(newer.get(), newer.size()), LAWN_OK);
    for (const size_t i : {size_t(0), more - 1}) {
        newer[sizeof(Params) + i] = 1;
        EXPECT_EQ(create(newer.get(), newer.size()), LAWN_ERR_UNSUPPORTED);
        newer[sizeof(Params) + i] = 0;
    }
}

// The same for a function that makes an object of its own.
template <typename Params, typename Object>
void expect_sized(lawn_status_t (*create)(const Params *, size_t, Object **),
                  void (*destroy)(Object *))
{
    expect_sized<Params>([=](const Params *params, size_t size) {
        Object *object = nullptr;
        const lawn_status_t status = create(params, size, &object);
        EXPECT_EQ(object != nullptr, status == LAWN_OK);
        destroy(object);
        return status;
    });
}

class SizedTest : public testing::Test
{
protected:
    SizedTest()
    {
        EXPECT_EQ(lawn_engine_create(nullptr, &engine_), LAWN_OK);
    }

    ~SizedTest() override
    {
        lawn_engine_destroy(engine_);
    }

    // Opens a connection with what the program knows, and closes it. Keeps what
    // the library has understood.
    lawn_status_t open(const lawn_conn_params_t *params, size_t params_size,
                       const lawn_conn_ops_t *ops, size_t ops_size)
    {
        const lawn_status_t status = lawn_conn_open_sized(
            engine_, params, params_size, ops, ops_size, &conn_);
        if (status == LAWN_OK) {
            params_ = conn_.profile->params;
            ops_ = conn_.profile->ops;
        }
        lawn_conn_close(&conn_);
        return status;
    }

    lawn_engine_t *engine_;
    lawn_conn_t conn_ = {};
    lawn_conn_params_t params_ = {};
    lawn_conn_ops_t ops_ = {};
};

TEST_F(SizedTest, Engine)
{
    expect_sized(lawn_engine_create_sized, lawn_engine_destroy);
}

// A program that knows the clock, and nothing after it.
TEST_F(SizedTest, EngineTakesWhatTheProgramKnows)
{
    lawn_engine_params_t params = {};
    params.clock = [](void *) -> lawn_time_t { return 7000; };
    params.ticks_per_sec = -1; // is not looked at
    const Sized<lawn_engine_params_t> older(
        params, offsetof(lawn_engine_params_t, clock_arg));
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create_sized(older.get(), older.size(), &engine),
              LAWN_OK);
    EXPECT_EQ(lawn_engine_time(engine), 7000U);
    lawn_engine_destroy(engine);
}

TEST_F(SizedTest, Group)
{
    expect_sized(lawn_group_create_sized, lawn_group_destroy);
}

TEST_F(SizedTest, Service)
{
    expect_sized(lawn_service_create_sized, lawn_service_destroy);
}

TEST_F(SizedTest, Shm)
{
    const std::string path =
        "/dev/shm/lawn_sized_test." + std::to_string(getpid());
    expect_sized<lawn_shm_params_t>([&](const lawn_shm_params_t *params,
                                        size_t size) {
        lawn_shm_t *shm = nullptr;
        const lawn_status_t status =
            lawn_shm_create_sized(engine_, path.c_str(), params, size, &shm);
        if (shm) {
            const Sized<lawn_shm_stats_t> stats({}, sizeof(unsigned) + more);
            lawn_shm_query_sized(shm, stats.get(), stats.size());
            EXPECT_EQ(stats.get()->clients, 0U);
        }
        lawn_shm_destroy(shm);
        return status;
    });
}

TEST_F(SizedTest, ConnectionParameters)
{
    lawn_conn_params_t all;
    lawn_conn_params_init(&all);
    const lawn_conn_ops_t ops = {};
    const Sized<lawn_conn_params_t> older(
        all, offsetof(lawn_conn_params_t, keepalive_jitter));
    EXPECT_EQ(open(older.get(), older.size(), &ops, sizeof(ops)), LAWN_OK);
    EXPECT_EQ(params_.keepalive_interval, all.keepalive_interval);
    EXPECT_EQ(params_.keepalive_jitter, 0U);
    Sized<lawn_conn_params_t> newer(all, sizeof(all) + more);
    EXPECT_EQ(open(newer.get(), newer.size(), &ops, sizeof(ops)), LAWN_OK);
    EXPECT_EQ(params_.keepalive_jitter, all.keepalive_jitter);
    newer[sizeof(all)] = 1;
    EXPECT_EQ(open(newer.get(), newer.size(), &ops, sizeof(ops)),
              LAWN_ERR_UNSUPPORTED);
}

// Fills in what the program knows, and nothing behind it.
TEST_F(SizedTest, ConnectionParametersAreFilledIn)
{
    lawn_conn_params_t all;
    lawn_conn_params_init(&all);
    const size_t known = offsetof(lawn_conn_params_t, rto_max);
    Sized<lawn_conn_params_t> params({}, sizeof(all) + more);
    memset(params.get(), 0xa5, params.size());
    lawn_conn_params_init_sized(params.get(), known);
    EXPECT_EQ(params.get()->rto_initial, all.rto_initial);
    EXPECT_EQ(params.get()->rto_min, all.rto_min);
    EXPECT_EQ(params.get()->rto_max, 0xa5a5a5a5a5a5a5a5U);
    lawn_conn_params_init_sized(params.get(), params.size());
    EXPECT_EQ(params.get()->keepalive_jitter, all.keepalive_jitter);
    EXPECT_EQ(params[sizeof(all)], 0);
    EXPECT_EQ(params[sizeof(all) + more - 1], 0);
}

TEST_F(SizedTest, ConnectionOperations)
{
    lawn_conn_ops_t ops = {};
    ops.retransmit = [](lawn_conn_t *, lawn_time_t, unsigned) {};
    ops.dead = [](lawn_conn_t *, lawn_time_t, lawn_conn_reason_t) {};
    const Sized<lawn_conn_ops_t> older(ops, offsetof(lawn_conn_ops_t, dead));
    EXPECT_EQ(open(nullptr, 0, older.get(), older.size()), LAWN_OK);
    EXPECT_EQ(ops_.retransmit, ops.retransmit);
    EXPECT_EQ(ops_.dead, nullptr);
    Sized<lawn_conn_ops_t> newer(ops, sizeof(ops) + more);
    EXPECT_EQ(open(nullptr, 0, newer.get(), newer.size()), LAWN_OK);
    EXPECT_EQ(ops_.dead, ops.dead);
    newer[sizeof(ops) + more - 1] = 1;
    EXPECT_EQ(open(nullptr, 0, newer.get(), newer.size()),
              LAWN_ERR_UNSUPPORTED);
}

TEST_F(SizedTest, Clock)
{
    lawn_clock_info_t all;
    ASSERT_EQ(lawn_clock_query(&all), LAWN_OK);
    Sized<lawn_clock_info_t> info({}, sizeof(all) + more);
    memset(info.get(), 0xa5, info.size());
    const double untouched = info.get()->ticks_per_sec;
    EXPECT_EQ(lawn_clock_query_sized(
                  info.get(), offsetof(lawn_clock_info_t, ticks_per_sec)),
              LAWN_OK);
    EXPECT_EQ(info.get()->source, all.source);
    EXPECT_EQ(memcmp(&info.get()->ticks_per_sec, &untouched, sizeof(double)),
              0);
    EXPECT_EQ(lawn_clock_query_sized(info.get(), info.size()), LAWN_OK);
    EXPECT_EQ(info.get()->ticks_per_sec, all.ticks_per_sec);
    EXPECT_EQ(info[sizeof(all)], 0);
    EXPECT_EQ(lawn_clock_query_sized(nullptr, 0), LAWN_ERR_INVALID_PARAM);
}

} // namespace
