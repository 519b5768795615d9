// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Short runs of lawn-verify with the stores and the faults that it does
// not have by default. ci/test has long ones.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <glob.h>
#include <sys/wait.h>

namespace
{

// What lawn-verify says, and how it ends.
class VerifyRun
{
public:
    explicit VerifyRun(const std::string &options)
    {
        const char *const program = getenv("LAWN_VERIFY");
        const std::string command =
            std::string(program != nullptr ? program : "lawn-verify") +
            " --json --rate 200 " + options + " 2>&1";
        FILE *const pipe = popen(command.c_str(), "r");
        if (pipe == nullptr) {
            ADD_FAILURE() << command;
            return;
        }
        for (int c; (c = fgetc(pipe)) != EOF;) {
            out_ += static_cast<char>(c);
        }
        const int status = pclose(pipe);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
            << command << ": " << out_;
    }

    // 0 if it is not there.
    unsigned long figure(const std::string &name) const
    {
        const std::string key = "\"" + name + "\":";
        const size_t at = out_.find(key);
        return at == std::string::npos
                   ? 0
                   : strtoul(out_.c_str() + at + key.size(), nullptr, 10);
    }

    void expect_good() const
    {
        EXPECT_NE(out_.find("\"verdict\":\"good\""), std::string::npos) << out_;
        EXPECT_GT(figure("acknowledged"), 0u) << out_;
        EXPECT_GT(figure("delivered"), 0u) << out_;
        for (const char *name : {"lost", "early", "stopped", "doubled"}) {
            EXPECT_EQ(figure(name), 0u) << out_;
        }
    }

    const std::string &out() const
    {
        return out_;
    }

private:
    std::string out_;
};

TEST(LawnctlVerify, LosesNothingWhileShardsMoveInACluster)
{
    const VerifyRun run("--cluster --seconds 5 --seed 4");
    run.expect_good();
    EXPECT_GT(run.figure("faults_reshard"), 0u) << run.out();
    EXPECT_GT(run.figure("shards_moved"), 0u) << run.out();
    EXPECT_EQ(run.figure("forgotten"), 0u) << run.out();
}

TEST(LawnctlVerify, LosesInAFailoverOnlyWhatItMay)
{
    const VerifyRun run("--failover --seconds 5 --seed 5");
    run.expect_good();
    EXPECT_GT(run.figure("faults_failover"), 0u) << run.out();
    // The replica was cut off, and half of the starts do not wait for it.
    EXPECT_GT(run.figure("forgotten"), 0u) << run.out();
}

// A sanitizer wants to be the first library, and so does the one that sets
// clocks.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(LawnctlVerify, IsNeverEarlyWhenTheClocksOfPumpsAreSet)
{
    glob_t found;
    const int missing =
        glob("/usr/lib*/*/faketime/libfaketimeMT.so.1", 0, nullptr, &found);
    globfree(&found);
    if (missing != 0) {
        GTEST_SKIP() << "there is no libfaketime";
    }
    const VerifyRun run("--clocks --seconds 6 --seed 6");
    run.expect_good();
    EXPECT_GT(run.figure("faults_step"), 0u) << run.out();
}
#endif

} // namespace
