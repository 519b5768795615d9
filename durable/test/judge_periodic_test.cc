// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the judge says about the occurrences of periodic timers.

#include "story.h"

namespace
{

using lawn_test::expect_only;
using lawn_test::Story;
using lawn_verify::Limits;
using lawn_verify::Verdict;

Story every_ten()
{
    return Story().periodic(10, "a", 100, 10);
}

TEST(JudgeOfPeriodicTimers, FindsNothingWrongWithOneOccurrenceAfterAnother)
{
    const Verdict verdict = every_ten().occur("a", {100, 110, 120}).verdict();
    EXPECT_TRUE(verdict.is_good());
    EXPECT_EQ(verdict.occurrences, 3u);
    EXPECT_EQ(verdict.duplicates, 0u);
}

TEST(JudgeOfPeriodicTimers, FindsAGapWhateverTheFault)
{
    expect_only(every_ten().occur("a", {110}).verdict(), "gap");
    const Verdict verdict =
        every_ten().failover(50, 200).occur("a", {100, 110, 140}).verdict();
    expect_only(verdict, "gap");
    EXPECT_EQ(verdict.count("gap"), 2u);
}

TEST(JudgeOfPeriodicTimers, TakesTheOccurrencesInAnyOrder)
{
    EXPECT_TRUE(every_ten().occur("a", {120, 100, 110}).verdict().is_good());
}

TEST(JudgeOfPeriodicTimers, LetsOneFireBeforeItsStartIsAnswered)
{
    const Verdict verdict = Story()
                                .occur("a", {100, 110})
                                .periodic(115, "a", 100, 10)
                                .occur("a", {120})
                                .verdict();
    EXPECT_TRUE(verdict.is_good());
    EXPECT_EQ(verdict.occurrences, 3u);
}

TEST(JudgeOfPeriodicTimers, FindsAnOccurrenceThatIsNone)
{
    expect_only(every_ten().occur("a", {100, 105, 110}).verdict(), "invented");
    expect_only(every_ten().occur("a", {90, 100}).verdict(), "invented");
}

TEST(JudgeOfPeriodicTimers, FindsAnEarlyOne)
{
    expect_only(every_ten().deliver(101, 0, "a", 1, 100, 99).verdict(),
                "early");
}

TEST(JudgeOfPeriodicTimers, LetsOnlyAFailoverFireOneTwice)
{
    const Story twice =
        every_ten().occur("a", {100}).deliver(160, 0, "a", 2, 100, 150);
    Limits limits;
    limits.lag_us = 0;
    limits.duplicates_per_fault = 1;
    expect_only(Story(twice).fault(90, 140).verdict(limits), "refired");
    expect_only(Story(twice).failover(161, 180).verdict(limits), "refired");
    const Verdict verdict = Story(twice).failover(90, 140).verdict(limits);
    EXPECT_TRUE(verdict.is_good());
    EXPECT_EQ(verdict.rolled_back, 1u);
    EXPECT_EQ(verdict.occurrences_again, 1u);
}

TEST(JudgeOfPeriodicTimers, CountsWhatIsDeliveredTwice)
{
    const Story twice =
        every_ten().occur("a", {100}).deliver(160, 0, "a", 1, 100, 101);
    expect_only(twice.verdict(), "duplicates");
    Limits limits;
    limits.duplicates_per_fault = 1;
    const Verdict verdict = Story(twice).fault(90, 140).verdict(limits);
    EXPECT_TRUE(verdict.is_good());
    EXPECT_EQ(verdict.duplicates, 1u);
}

TEST(JudgeOfPeriodicTimers, LetsNoneFireAfterTheStop)
{
    Story story = every_ten();
    story.stop(105, 0, "a").stopped(108, 0, "a", 5, "stopped");
    EXPECT_TRUE(Story(story).occur("a", {100}).verdict().is_good());
    expect_only(Story(story).occur("a", {100, 110}).verdict(), "stopped");
}

TEST(JudgeOfPeriodicTimers, FindsOneThatFiresNoMore)
{
    Limits limits;
    limits.late_us = 20;
    limits.recovery_us = 10;
    Story story = every_ten();
    story.occur("a", {100})
        .stop(130, 0, "a")
        .stopped(131, 0, "a", 5, "stopped");
    EXPECT_TRUE(story.verdict(limits).is_good());
    story = every_ten();
    story.occur("a", {100})
        .stop(131, 0, "a")
        .stopped(132, 0, "a", 5, "stopped");
    expect_only(story.verdict(limits), "lost");
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_TRUE(Story(story).fault(90, 100).verdict(limits).is_good());
    expect_only(Story(story).fault(90, 99).verdict(limits), "lost");
}

} // namespace
