// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Ops that end everything: each connection of the engine, in the op of any one,
// closed and freed in the pass in which many more of them are due.

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

class Ops : public Conn
{
protected:
    static constexpr size_t many = 500;

    // Connections that retransmit, probe and die in the same passes.
    void open_heap()
    {
        params_.max_retries = 2;
        keep_alive(100 * msec, 100 * msec, 2);
        heap_.clear();
        for (size_t i = 0; i < many; ++i) {
            heap_.push_back(std::make_unique<lawn_conn_t>());
            ASSERT_EQ(open(heap_.back().get()), LAWN_OK);
            if (i % 2 == 0) {
                lawn_conn_on_send(heap_.back().get(), now_);
            }
        }
    }

    void close_all()
    {
        for (auto &conn : heap_) {
            lawn_conn_close(conn.get());
            conn.reset();
        }
        heap_.clear();
    }

    std::vector<std::unique_ptr<lawn_conn_t>> heap_;
};

TEST_F(Ops, CloseAndFreeEveryConnection)
{
    for (const char victim : std::string("rpd")) {
        for (const unsigned at : {1U, 2U, 65U, 200U}) {
            SCOPED_TRACE(victim + std::to_string(at));
            open_heap();
            unsigned seen = 0;
            then_ = [&](lawn_conn_t *, char what) {
                ASSERT_LT(seen, at);
                seen += what == victim;
                if (seen == at) {
                    close_all();
                }
            };
            run_to(now_ + 10 * sec);
            EXPECT_EQ(seen, at);
            EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
        }
    }
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
}

TEST_F(Ops, ReplaceEveryConnection)
{
    open_heap();
    unsigned generations = 0;
    then_ = [&](lawn_conn_t *, char what) {
        if (what == 'd' && generations < 5) {
            ++generations;
            close_all();
            open_heap();
        }
    };
    run_to(now_ + 60 * sec);
    EXPECT_EQ(generations, 5U);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U); // all have died
    for (const auto &conn : heap_) {
        lawn_conn_on_send(conn.get(), now_);
        lawn_conn_on_ack(conn.get(), now_, 1, true);
        lawn_conn_on_receive(conn.get(), now_);
    }
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
}

// A source's poll, and not an op, takes its connections with it.
TEST_F(Ops, ASourceClosesEverythingAndItself)
{
    open_heap();
    lawn_source_t *source = nullptr;
    std::function<unsigned()> poll = [&] {
        close_all();
        lawn_engine_remove(engine_, source);
        return 1U;
    };
    const auto call = [](void *arg) {
        return (*static_cast<std::function<unsigned()> *>(arg))();
    };
    ASSERT_EQ(lawn_engine_add(engine_, call, &poll, -1, &source), LAWN_OK);
    pass_at(start + 10 * sec);
    EXPECT_EQ(take_log(), "");
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_engine_progress(engine_), 0U); // does not poll it
}

} // namespace
