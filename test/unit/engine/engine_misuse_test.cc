// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An engine that another thread uses while one is in a pass or in a wait, or
// that is used after its end. Debug builds look for that. Release builds cannot
// know it: there the thread that comes second does what it was told, here while
// the other one waits for it.

#include "../../misuse.h"
#include "engine_fixture.h"
#include "engine_kernel.h"

#include <thread>

using namespace lawn_test;

namespace
{

constexpr char by_two[] = "no other thread is in a pass";

class EngineMisuse : public Engine
{
protected:
    EngineMisuse()
    {
        lawn_timer_init(&timer_, nullptr);
    }

    // In another thread, in the middle of a pass.
    void act_in_a_pass(const std::function<void()> &act)
    {
        lawn_source_t *const source = add([&act] {
            std::thread([&act] { act(); }).join();
            return 0U;
        });
        pass();
        lawn_engine_remove(engine_, source);
    }

    void act_in_a_wait(const std::function<void()> &act)
    {
        kernel.on_epoll_wait = [&act] {
            kernel.on_epoll_wait = nullptr;
            std::thread([&act] { act(); }).join();
        };
        lawn_engine_wait(engine_, 1);
        kernel.on_epoll_wait = nullptr;
    }

    void start()
    {
        lawn_engine_start(engine_, &timer_, sec);
    }

    lawn_timer_t timer_;
};

using EngineMisuseDeathTest = EngineMisuse;

TEST_F(EngineMisuseDeathTest, NoThreadStartsATimerInThePassOfAnother)
{
    EXPECT_MISUSE(act_in_a_pass([this] { start(); }), by_two);
    lawn_engine_stop(engine_, &timer_);
}

TEST_F(EngineMisuseDeathTest, NoThreadStartsATimerWhileAnotherWaits)
{
    EXPECT_MISUSE(act_in_a_wait([this] { start(); }), by_two);
    lawn_engine_stop(engine_, &timer_);
}

TEST_F(EngineMisuseDeathTest, NoThreadUsesAnEngineInThePassOfAnother)
{
    lawn_source_t *const source = add('a');
    EXPECT_MISUSE(act_in_a_pass([this] { lawn_engine_stop(engine_, &timer_); }),
                  by_two);
    EXPECT_MISUSE(act_in_a_pass([this] { lawn_engine_progress(engine_); }),
                  by_two);
    EXPECT_MISUSE(act_in_a_pass([this] { lawn_engine_arm(engine_); }), by_two);
    EXPECT_MISUSE(act_in_a_pass([this] { lawn_engine_wait(engine_, 0); }),
                  by_two);
    EXPECT_MISUSE(act_in_a_pass([this] { lawn_engine_box(engine_); }), by_two);
    EXPECT_MISUSE(act_in_a_pass([this] {
                      lawn_engine_add(engine_, call, nullptr, -2, nullptr);
                      lawn_engine_remove(engine_, add('b'));
                  }),
                  by_two);
    EXPECT_MISUSE(act_in_a_pass([this] { lawn_engine_destroy(engine_); }),
                  by_two);
    EXPECT_EQ(pass(), "a");
    lawn_engine_remove(engine_, source);
}

TEST_F(EngineMisuse, AnEngineGoesFromThreadToThread)
{
    start_timer(5);
    const std::function<void()> turns[] = {
        [this] { start(); },
        [this] { pass(); },
        [this] { lawn_engine_remove(engine_, add('a')); },
        [this] { lawn_engine_wait(engine_, 0); },
        [this] { lawn_engine_arm(engine_); },
        [this] { lawn_engine_stop(engine_, &timer_); },
    };
    for (const auto &turn : turns) {
        std::thread([&turn] { turn(); }).join();
        start();
    }
    EXPECT_EQ(pass_at(lawn_test::start + 5), "t");
    EXPECT_TRUE(lawn_engine_stop(engine_, &timer_));
}

// The thread that forks in a wait of another has the engine to itself.
TEST_F(EngineMisuse, TheChildOfAForkHasNoOtherThread)
{
    bool did_well = false;
    act_in_a_wait([&] {
        did_well = does_well_in_a_child([this]() -> bool {
            start();
            // What the other thread had is a leak of the child's.
            _exit(lawn_engine_stop(engine_, &timer_) ? 0 : 1);
        });
    });
    EXPECT_TRUE(did_well);
}

#ifndef NDEBUG

TEST_F(EngineMisuseDeathTest, NothingUsesAnEngineThatWasDestroyed)
{
    constexpr char gone[] = "not destroyed before";
    std::vector<void *> kept;
    lawn_engine_params_t params = params_;
    params.lawn.allocator.alloc = [](void *arg, size_t size) {
        auto &all = *static_cast<std::vector<void *> *>(arg);
        all.push_back(malloc(size));
        return all.back();
    };
    params.lawn.allocator.release = [](void *, void *) {};
    params.lawn.allocator.arg = &kept;
    lawn_engine_t *engine = nullptr;
    ASSERT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
    lawn_engine_destroy(engine);
    EXPECT_DEATH(lawn_engine_start(engine, &timer_, 1), gone);
    EXPECT_DEATH(lawn_engine_stop(engine, &timer_), gone);
    EXPECT_DEATH(lawn_engine_progress(engine), gone);
    EXPECT_DEATH(lawn_engine_arm(engine), gone);
    EXPECT_DEATH(lawn_engine_wait(engine, 0), gone);
    EXPECT_DEATH(lawn_engine_box(engine), gone);
    EXPECT_DEATH(lawn_engine_add(engine, call, nullptr, -1, nullptr), gone);
    EXPECT_DEATH(lawn_engine_destroy(engine), gone);
    for (void *memory : kept) {
        free(memory);
    }
}

#endif

} // namespace
