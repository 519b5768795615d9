// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A lawn and a table of timers by number on it, whose allocations are counted
// and may be refused.

#ifndef LAWN_TEST_KEYED_FIXTURE_H
#define LAWN_TEST_KEYED_FIXTURE_H

#include "timer/lawn_impl.h"

#include <lawn/keyed.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

struct Allowance {
    int left;
    int live;

    static void *alloc(void *arg, size_t size)
    {
        Allowance *const allowance = static_cast<Allowance *>(arg);
        if (allowance->left == 0) {
            return nullptr;
        }
        --allowance->left;
        ++allowance->live;
        void *const memory = malloc(size);
        return memory ? memset(memory, 0xa5, size) : nullptr;
    }

    static void release(void *arg, void *memory)
    {
        --static_cast<Allowance *>(arg)->live;
        free(memory);
    }
};

struct Fired {
    uint64_t id;
    void *payload;
    lawn_time_t now;
};

class Keyed : public testing::Test
{
public:
    void open(size_t capacity_hint)
    {
        lawn_params_t params = {};
        params.allocator = {Allowance::alloc, Allowance::release, &allowance_};
        ASSERT_EQ(lawn_create(&params, &lawn_), LAWN_OK);
        ASSERT_EQ(lawn_keyed_create(lawn_, capacity_hint, &keyed_), LAWN_OK);
        lawn_keyed_set_expired(keyed_, on_expired, this);
    }

    void close()
    {
        lawn_keyed_destroy(keyed_);
        EXPECT_EQ(lawn_count(lawn_), 0U);
        EXPECT_EQ(queues(), 0U);
        lawn_destroy(lawn_);
        EXPECT_EQ(allowance_.live, 0);
        keyed_ = nullptr;
        lawn_ = nullptr;
        fired_.clear();
        allowance_.left = plenty;
    }

    ~Keyed() override
    {
        if (lawn_) {
            close();
        }
    }

    // Of all TTLs.
    size_t queues() const
    {
        size_t count = 0;
        for (const lawn::Queue *i = lawn::impl_of(lawn_)->queues; i;
             i = i->next) {
            ++count;
        }
        return count;
    }

    // Stops the next but one, and starts two others.
    static void act_on_own_ttl(void *arg, uint64_t id, void *, lawn_time_t now)
    {
        Keyed *const self = static_cast<Keyed *>(arg);
        self->fired_.push_back({id, nullptr, now});
        lawn_keyed_stop(self->keyed_, id + 2, nullptr);
        lawn_keyed_start(self->keyed_, now, 100, 100 + id, nullptr);
        lawn_keyed_start(self->keyed_, now, 100, 200 + id, nullptr);
    }

    static void on_expired(void *arg, uint64_t id, void *payload,
                           lawn_time_t now)
    {
        static_cast<Keyed *>(arg)->fired_.push_back({id, payload, now});
    }

    static constexpr int plenty = 1'000'000;

    Allowance allowance_ = {plenty, 0};
    lawn_t *lawn_ = nullptr;
    lawn_keyed_t *keyed_ = nullptr;
    std::vector<Fired> fired_;
};

#endif
