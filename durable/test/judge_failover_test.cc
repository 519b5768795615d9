// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the judge lets a failover undo, and what it does not. Here a replica is
// never behind but for what a failover says.

#include "story.h"

namespace
{

using lawn_test::expect_only;
using lawn_test::Story;
using lawn_verify::Limits;
using lawn_verify::Verdict;
using lawn_verify::word_async;
using lawn_verify::word_sure;

Verdict verdict_of(const Story &story)
{
    Limits limits;
    limits.lag_us = 0;
    return story.verdict(limits);
}

TEST(JudgeOfFailovers, LetsOnlyAsyncStartsOfTheLastMomentsBeLost)
{
    const auto lost = [](int64_t time, const char *word) {
        return verdict_of(
            Story().failover(100, 200).timer(time, 1, "a", 1, 500, word));
    };
    EXPECT_TRUE(lost(100, word_async).is_good());
    EXPECT_EQ(lost(150, word_async).forgotten, 1u);
    EXPECT_TRUE(lost(200, word_async).is_good());
    EXPECT_TRUE(lost(99, word_async).is_good()) << "it was told at 100";
    expect_only(lost(98, word_async), "lost");
    expect_only(lost(201, word_async), "lost");
    expect_only(lost(150, word_sure), "lost");
    expect_only(lost(150, ""), "lost");
    expect_only(verdict_of(Story().fault(100, 200).timer(150, 1, "a", 1, 500,
                                                         word_async)),
                "lost");
}

TEST(JudgeOfFailovers, KnowsHowFarAReplicaIsBehind)
{
    Story story;
    story.failover(1000, 2000).timer(950, 1, "a", 1, 5000, word_async);
    Limits limits;
    limits.lag_us = 49;
    EXPECT_TRUE(story.verdict(limits).is_good());
    limits.lag_us = 48;
    expect_only(story.verdict(limits), "lost");
}

TEST(JudgeOfFailovers, LetsOnlyAsyncStopsBeForgotten)
{
    const auto delivered = [](int64_t time, const char *word) {
        return verdict_of(Story()
                              .timer(10, 1, "a", 1, 500, word_sure)
                              .failover(100, 200)
                              .stop(time, 2, "a", word)
                              .stopped(time + 1, 2, "a", 1, "stopped")
                              .deliver(520, 1, "a", 1, 500, 510));
    };
    EXPECT_TRUE(delivered(150, word_async).is_good());
    EXPECT_EQ(delivered(150, word_async).forgotten_stops, 1u);
    expect_only(delivered(90, word_async), "stopped");
    expect_only(delivered(150, word_sure), "stopped");
    expect_only(delivered(250, word_async), "stopped");
}

// The store forgot that it had fired.
TEST(JudgeOfFailovers, LetsWhatFiredBeStoppedAfterwards)
{
    const auto stopped = [](int64_t fired) {
        return verdict_of(Story()
                              .timer(10, 1, "a", 1, 50, word_sure)
                              .deliver(fired, 1, "a", 1, 50, fired)
                              .failover(100, 200)
                              .stop(300, 2, "a", word_sure)
                              .stopped(301, 2, "a", 1, "stopped"));
    };
    EXPECT_TRUE(stopped(150).is_good());
    EXPECT_TRUE(stopped(60).is_good()) << "the failover is between";
    expect_only(stopped(250), "stopped");
    expect_only(stopped(310), "stopped");
}

TEST(JudgeOfFailovers, LetsAnAttemptFireOnEitherSide)
{
    const auto again = [](int64_t first, int64_t second) {
        return verdict_of(Story()
                              .timer(10, 1, "a", 1, 50, word_sure)
                              .failover(100, 200)
                              .deliver(first, 1, "a", 1, 50, first)
                              .deliver(second, 1, "a", 1, 50, second));
    };
    EXPECT_TRUE(again(150, 250).is_good());
    EXPECT_EQ(again(150, 250).rolled_back, 1u);
    EXPECT_EQ(again(150, 250).duplicates, 0u);
    EXPECT_GT(again(60, 90).count("refired"), 0u);
    EXPECT_GT(again(250, 260).count("refired"), 0u);
}

TEST(JudgeOfFailovers, LetsAForgottenUpdateReplaceNothing)
{
    const auto fired = [](const char *word) {
        return verdict_of(Story()
                              .timer(10, 1, "a", 1, 500, word_sure)
                              .failover(100, 200)
                              .update(150, 2, "a", 1, word)
                              .updated(151, 2, "a", 2, 900)
                              .deliver(510, 1, "a", 1, 500, 505));
    };
    EXPECT_TRUE(fired(word_async).is_good());
    EXPECT_EQ(fired(word_async).forgotten, 1u);
    const Verdict sure = fired(word_sure);
    EXPECT_GT(sure.count("stale"), 0u);
    EXPECT_GT(sure.count("lost"), 0u);
}

TEST(JudgeOfFailovers, LetsAStopNotKnowWhatWasForgotten)
{
    const auto unknown = [](const char *word) {
        return verdict_of(Story()
                              .failover(100, 200)
                              .timer(150, 1, "a", 1, 500, word)
                              .stop(300, 2, "a", word_sure)
                              .stopped(301, 2, "a", 0, "unknown"));
    };
    EXPECT_TRUE(unknown(word_async).is_good());
    EXPECT_GT(unknown(word_sure).count("denied"), 0u);
}

TEST(JudgeOfFailovers, LetsAnUnheardStartBeCarriedOutOnEitherSide)
{
    const auto twice = [](int64_t first) {
        return verdict_of(Story()
                              .start(first, 1, "a", word_sure)
                              .failover(100, 200)
                              .deliver(160, 1, "a", 1, 155, 156)
                              .unheard(210, 1, "a")
                              .timer(300, 1, "a", 2, 310, word_sure)
                              .deliver(320, 1, "a", 2, 310, 315));
    };
    EXPECT_TRUE(twice(150).is_good());
    EXPECT_EQ(twice(150).rolled_back, 1u);
    EXPECT_GT(twice(220).count("doubled"), 0u);
}

// A retry goes with the timer.
TEST(JudgeOfFailovers, LetsWhatNobodyHeardOfForgetItsRetry)
{
    const auto retried = [](int64_t time, bool is_heard) {
        Story story;
        story.start(time, 1, "a", word_sure).failover(100, 200);
        if (is_heard) {
            story.started(time + 1, 1, "a", 1, time + 5);
        }
        story.deliver(time + 7, 1, "a", 1, time + 5, time + 6);
        return verdict_of(story.retry(time + 8, "a", 1, 1));
    };
    EXPECT_TRUE(retried(150, false).is_good());
    expect_only(retried(150, true), "retry");
    expect_only(retried(80, false), "retry");
    expect_only(retried(210, false), "retry");
}

// Whatever its durability: it was not acknowledged.
TEST(JudgeOfFailovers, LetsAnUpdateHaveFiredThatNobodyHeardOf)
{
    const auto fired = [](int64_t time) {
        return verdict_of(Story()
                              .timer(10, 1, "a", 1, 500, word_sure)
                              .failover(100, 200)
                              .update(time, 2, "a", 1, word_sure)
                              .unheard(time + 9, 2, "a")
                              .deliver(time + 6, 1, "a", 2, time + 5, time + 5)
                              .deliver(510, 1, "a", 1, 500, 505));
    };
    EXPECT_EQ(fired(150).count("doubled"), 0u);
    EXPECT_GT(fired(210).count("doubled"), 0u);
}

TEST(JudgeOfFailovers, LetsAForgottenUpdateHaveFired)
{
    const auto both = [](int64_t time, const char *word) {
        return verdict_of(Story()
                              .timer(10, 1, "a", 1, 500, word_sure)
                              .failover(100, 200)
                              .update(time, 2, "a", 1, word)
                              .updated(time + 1, 2, "a", 2, time + 5)
                              .deliver(time + 20, 1, "a", 2, time + 5, time + 9)
                              .deliver(510, 1, "a", 1, 500, 505));
    };
    EXPECT_TRUE(both(150, word_async).is_good());
    EXPECT_EQ(both(150, word_async).rolled_back, 1u);
    EXPECT_GT(both(150, word_sure).count("doubled"), 0u);
    EXPECT_GT(both(300, word_async).count("doubled"), 0u);
}

} // namespace
