// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared timers, and a lawn behind a lock, which each pass of the owner takes.

#include "threads/sharing.h"
#include "threads/spin_lock.h"

#include <lawn/shared.h>

#include <array>
#include <mutex>
#include <new>

namespace bench
{

namespace
{

lawn_t *make_lawn()
{
    lawn_t *lawn = nullptr;
    if (lawn_create(nullptr, &lawn) != LAWN_OK) {
        throw std::bad_alloc();
    }
    return lawn;
}

class Shared : public Sharing
{
public:
    Shared() : Sharing("lawn/shared.h")
    {
        if (lawn_box_create(lawn_, &box_) != LAWN_OK) {
            throw std::bad_alloc();
        }
        for (auto *const all : {&timers_, &own_}) {
            for (lawn_shared_t &timer : *all) {
                lawn_shared_init(&timer, box_, nullptr);
            }
        }
    }

    ~Shared() override
    {
        for (auto *const all : {&timers_, &own_}) {
            for (lawn_shared_t &timer : *all) {
                lawn_shared_retire(&timer, nullptr);
            }
        }
        lawn_box_destroy(box_);
        lawn_destroy(lawn_);
    }

    void start(size_t i, lawn_time_t, lawn_time_t deadline) override
    {
        lawn_shared_start(&timers_[i], deadline);
    }

    bool stop(size_t i) override
    {
        return lawn_shared_stop(&timers_[i]);
    }

    void pass(lawn_time_t now) override
    {
        lawn_box_drain(box_, now, pass_budget);
        lawn_advance(lawn_, now, pass_budget);
    }

    void start_own(size_t i, lawn_time_t, lawn_time_t deadline) override
    {
        lawn_shared_start_local(&own_[i], deadline);
    }

private:
    lawn_t *const lawn_ = make_lawn();
    lawn_box_t *box_ = nullptr;
    std::array<lawn_shared_t, timer_count> timers_;
    std::array<lawn_shared_t, timer_count> own_;
};

template <class Lock> class Locked : public Sharing
{
public:
    explicit Locked(const char *name) : Sharing(name)
    {
        for (auto *const all : {&timers_, &own_}) {
            for (lawn_timer_t &timer : *all) {
                lawn_timer_init(&timer, nullptr);
            }
        }
    }

    ~Locked() override
    {
        lawn_destroy(lawn_);
    }

    void start(size_t i, lawn_time_t, lawn_time_t deadline) override
    {
        const std::lock_guard<Lock> guard(lock_);
        lawn_timer_start_at(lawn_, &timers_[i], lawn_now(lawn_), deadline);
    }

    bool stop(size_t i) override
    {
        const std::lock_guard<Lock> guard(lock_);
        return lawn_timer_stop(lawn_, &timers_[i]);
    }

    void pass(lawn_time_t now) override
    {
        const std::lock_guard<Lock> guard(lock_);
        lawn_advance(lawn_, now, pass_budget);
    }

    void start_own(size_t i, lawn_time_t now, lawn_time_t deadline) override
    {
        const std::lock_guard<Lock> guard(lock_);
        lawn_timer_start_at(lawn_, &own_[i], now, deadline);
    }

private:
    lawn_t *const lawn_ = make_lawn();
    Lock lock_;
    std::array<lawn_timer_t, timer_count> timers_;
    std::array<lawn_timer_t, timer_count> own_;
};

} // namespace

void add_lawns(Sharings *all)
{
    all->push_back(std::make_unique<Shared>());
    all->push_back(std::make_unique<Locked<SpinLock>>("spinlock + lawn"));
    all->push_back(std::make_unique<Locked<std::mutex>>("mutex + lawn"));
}

} // namespace bench
