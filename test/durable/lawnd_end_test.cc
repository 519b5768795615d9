// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How lawnd ends, and what it does when the store does.

#include "lawnd_fixture.h"

namespace
{

using namespace lawn_test;

TEST_F(Lawnd, EndsWhenWhatIsPostedHasEnded)
{
    HttpTarget target([&target](const HttpRequest &) {
        target.hold();
        return HttpTarget::status(200);
    });
    start();
    for (unsigned i = 0; i < 30; ++i) {
        start_timer("id" + std::to_string(i), target.url());
    }
    EXPECT_TRUE(becomes([&] { return target.requests().size() == 16; }));
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] {
        return get(url("/healthz")) ==
               std::pair<long, std::string>(503, "ending\n");
    }));
    EXPECT_TRUE(lawnd_.is_running());
    target.release();
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    EXPECT_EQ(lawnd_.status().value_or(-1), 0);
    unsigned succeeded = 0;
    for (unsigned i = 0; i < 30; ++i) {
        succeeded += state_of("id" + std::to_string(i)) == "success";
    }
    EXPECT_EQ(succeeded, 16U);
    start(); // another daemon takes the rest
    for (unsigned i = 0; i < 30; ++i) {
        expect_state("id" + std::to_string(i), "success");
    }
}

TEST_F(Lawnd, EndsAlsoWhenTheStoreWasNeverReached)
{
    lawnd_.start({program_, "--redis",
                  "unix:" + server_.directory() + "/nobody", "--namespace",
                  name_space, "--http-listen", "127.0.0.1:0"},
                 log_path());
    EXPECT_TRUE(becomes([&] {
        return log().find("listens on ") != std::string::npos;
    })) << log();
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    // On a slow machine, it may have given up before.
    EXPECT_TRUE(lawnd_.status().has_value()) << log();
}

// The other pumps need not wait until they miss it.
TEST_F(Lawnd, TakesItsPumpOffTheListWhenItEnds)
{
    start();
    const auto pumps = [&] {
        return server_
            .command({"ZCARD", "{" + std::string(name_space) + ":0}:pumps"})
            .integer;
    };
    EXPECT_TRUE(becomes([&] { return pumps() == 1; }));
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    EXPECT_EQ(pumps(), 0);
}

TEST_F(Lawnd, SecondSignalEndsItAtOnce)
{
    HttpTarget target([&target](const HttpRequest &) {
        target.hold();
        return HttpTarget::status(200);
    });
    start();
    start_timer("one", target.url());
    EXPECT_TRUE(becomes([&] { return target.requests().size() == 1; }));
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] {
        return log().find("ends; posts under way: 1\n") != std::string::npos;
    }));
    EXPECT_TRUE(lawnd_.is_running());
    lawnd_.signal(SIGINT);
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    EXPECT_EQ(lawnd_.status().value_or(-1), 0);
}

TEST_F(Lawnd, CarriesOnWhenTheStoreIsBack)
{
    server_.stop();
    server_.set_options({"--appendonly", "yes", "--appendfsync", "always"});
    server_.start();
    start();
    EXPECT_EQ(get(url("/healthz")),
              (std::pair<long, std::string>(200, "ok\n")));
    EXPECT_EQ(get(url("/")).first, 404);
    server_.kill();
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 503; }));
    EXPECT_TRUE(becomes([&] { return metric("lawnd_store_up") == 0; }));
    EXPECT_EQ(metric("lawn_durable_pending"), -1);
    server_.start();
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 200; }))
        << log();
    EXPECT_NE(log().find("the store answers again"), std::string::npos);
    start_timer("after", "stream:events");
    expect_state("after", "success");
    EXPECT_TRUE(becomes([&] { return metric("lawn_durable_pending") == 0; }));
}

} // namespace
