// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl consume: what it prints, what it answers, and how it ends.

#include "lawnctl_fixture.h"

namespace
{

using namespace lawn_test;

TEST_F(LawnctlTest, ConsumesExactlyAsManyAsAskedFor)
{
    for (int i = 0; i < 20; ++i) {
        out_of({"start", "t" + std::to_string(i), "--in", "1ms", "--payload",
                "p q"});
    }
    const std::string five =
        out_of({"consume", "--group", "g", "--count", "5"});
    EXPECT_EQ(lines(five), 5u) << five;
    // The others are there at once, not when a lease is over.
    const std::string rest =
        out_of({"consume", "--group", "g", "--count", "15", "--timeout", "5m"});
    EXPECT_EQ(lines(rest), 15u) << rest;
    const std::regex line(
        "t[0-9]+ [0-9]+ ([0-9]+\\.[0-9]{6}) ([0-9]+\\.[0-9]{6}) 1 p q");
    std::istringstream all(five + rest);
    for (std::string each; std::getline(all, each);) {
        std::smatch match;
        ASSERT_TRUE(std::regex_match(each, match, line)) << each;
        EXPECT_LE(match[1].str(), match[2].str());
    }
    EXPECT_EQ(out_of({"get", "t0"}), "success\n");
    EXPECT_EQ(out_of({"stop", "t0"}, 3), "too late\n");
}

TEST_F(LawnctlTest, AnswersAsItIsTold)
{
    out_of({"start", "bad", "--in", "1ms"});
    EXPECT_EQ(lines(out_of({"consume", "--group", "g", "--count", "1",
                            "--answer", "fail"})),
              1u);
    EXPECT_EQ(out_of({"get", "bad"}), "fail\n");
    out_of({"start", "again", "--in", "1ms", "--max-attempts", "2"});
    const std::string tries = out_of(
        {"consume", "--group", "g", "--count", "2", "--answer", "retry:1ms"});
    EXPECT_EQ(lines(tries), 2u);
    EXPECT_NE(tries.find(" 1 \n"), std::string::npos) << tries;
    EXPECT_NE(tries.find(" 2 \n"), std::string::npos) << tries;
    EXPECT_EQ(out_of({"get", "again"}), "dead\n");
    const std::string letters = out_of({"dead"});
    EXPECT_EQ(letters.compare(0, 6, "again "), 0) << letters;
    // Somebody else adds one like it, but for its reason.
    int found = 0;
    for (int shard = 0; shard < 8; ++shard) {
        const std::string key = "{test:" + std::to_string(shard) + "}:dead";
        const Reply all = server_.command({"XRANGE", key, "-", "+"});
        if (all.size() == 1) {
            ++found;
            server_.command({"XADD", key, "*", "i", "again", "b",
                             all[0][1][3].string, "r", "a\nb", "l", "c\nd"});
            EXPECT_NE(out_of({"dead"}).find(" a\\x0ab c\\x0ad\n"),
                      std::string::npos);
            EXPECT_EQ(lines(out_of({"dead"})), 2u);
            server_.command({"XTRIM", key, "MAXLEN", "1"});
        }
    }
    EXPECT_EQ(found, 1);
    const std::string replayed = out_of({"dead", "--replay", "again"});
    EXPECT_EQ(replayed.compare(0, 15, "replayed again "), 0) << replayed;
    EXPECT_EQ(lines(out_of({"consume", "--group", "g", "--count", "1"})), 1u);
    EXPECT_EQ(out_of({"get", "again"}), "success\n");
    EXPECT_EQ(out_of({"dead"}), "");
    expect_refusal(with_store({"dead", "--replay", "again"}), "lawnctl");
}

TEST_F(LawnctlTest, LeavesWhatItDoesNotAcknowledge)
{
    out_of({"start", "a", "--in", "1ms"});
    EXPECT_EQ(lines(out_of({"consume", "--group", "g", "--count", "1",
                            "--no-ack", "--lease", "10ms"})),
              1u);
    EXPECT_EQ(out_of({"get", "a"}), "delivered\n");
    const std::string again =
        out_of({"consume", "--group", "g", "--count", "1", "--no-ack",
                "--lease", "10ms", "--timeout", "1m"});
    EXPECT_EQ(lines(again), 1u);
    EXPECT_NE(again.find(" 2 \n"), std::string::npos) << again;
    EXPECT_EQ(out_of({"get", "a"}), "delivered\n");
    const std::string third =
        out_of({"consume", "--group", "g", "--count", "1", "--lease", "10ms"});
    EXPECT_EQ(lines(third), 1u);
    EXPECT_NE(third.find(" 3 \n"), std::string::npos) << third;
    EXPECT_EQ(out_of({"get", "a"}), "success\n");
}

// For a minute at most.
void wait_for_a_line(Program &run)
{
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (lines(run.out()) == 0 && std::chrono::steady_clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

TEST_F(LawnctlTest, EndsCleanlyAtASignalAndAtATimeout)
{
    Program run(with_store({"consume", "--group", "g"}));
    out_of({"start", "a", "--in", "1ms"});
    wait_for_a_line(run);
    EXPECT_EQ(lines(run.out()), 1u) << "each line is flushed";
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(run.err(), "");
    EXPECT_EQ(out_of({"get", "a"}), "success\n");
    // The time is also that in which it connects.
    EXPECT_EQ(out_of({"consume", "--group", "g", "--timeout", "1s"}), "");
}

TEST_F(LawnctlTest, SaysThatTheStoreIsGone)
{
    Program run(with_store({"consume", "--group", "g"}));
    out_of({"start", "a", "--in", "1ms"});
    wait_for_a_line(run);
    server_.kill();
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 1);
    EXPECT_EQ(lines(run.err()), 1u) << run.err();
    EXPECT_EQ(run.err().compare(0, 9, "lawnctl: "), 0) << run.err();
    server_.start();
}

TEST_F(LawnctlTest, SaysWhatItCannotRead)
{
    out_of({"start", "a", "--in", "1ms"});
    server_.command({"DEL", "{test:0}:out"});
    server_.command({"SET", "{test:0}:out", "text"});
    Program run(with_store({"consume", "--group", "g"}));
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (lines(run.err()) == 0 && std::chrono::steady_clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 1);
    EXPECT_EQ(lines(run.err()), 1u) << run.err();
    EXPECT_NE(run.err().find("{test:0}:out"), std::string::npos) << run.err();
}

// As a server that hangs does, the socket takes connections and says nothing.
TEST(Lawnctl, EndsCleanlyAtASignalBeforeTheStoreHasAnswered)
{
    char directory[] = "/tmp/lawnctl-test-XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    const std::string path = std::string(directory) + "/socket";
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr *>(&address),
                   sizeof(address)),
              0);
    ASSERT_EQ(listen(listener, 1), 0);
    Program run({"--redis", "unix:" + path, "consume", "--group", "g"});
    const int connection = accept(listener, nullptr, nullptr);
    EXPECT_GE(connection, 0);
    run.signal(SIGTERM);
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(run.err(), "");
    close(connection);
    // The time-out counts from the start.
    expect_refusal({"--redis", "unix:" + path, "consume", "--group", "g",
                    "--timeout", "10ms"},
                   "--timeout");
    close(listener);
    unlink(path.c_str());
    rmdir(directory);
}

} // namespace
