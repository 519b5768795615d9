// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Histories made by hand: each rule of the judge objects to what breaks it, and
// to nothing that comes close and is right.

#include "story.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include <unistd.h>

namespace
{

using lawn_test::expect_only;
using lawn_test::Story;
using lawn_verify::Event;
using lawn_verify::EventKind;
using lawn_verify::Limits;
using lawn_verify::Verdict;

TEST(Judge, FindsNothingWrongWithAPlainTimer)
{
    const Verdict verdict = Story()
                                .timer(10, 1, "a", 1, 100)
                                .deliver(130, 1, "a", 1, 100, 120)
                                .verdict();
    EXPECT_TRUE(verdict.is_good());
    EXPECT_EQ(verdict.acknowledged, 1u);
    EXPECT_EQ(verdict.delivered, 1u);
    EXPECT_EQ(verdict.duplicates, 0u);
    EXPECT_EQ(verdict.lateness(50), 20);
}

TEST(Judge, FindsATimerThatIsLost)
{
    expect_only(Story().timer(10, 1, "a", 1, 100).verdict(), "lost");
}

TEST(Judge, LetsAnUnheardStartBeLostOrDelivered)
{
    Story story;
    story.start(10, 1, "a").unheard(20, 1, "a");
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_EQ(story.verdict().unheard, 1u);
    story.deliver(130, 1, "a", 1, 100, 120);
    EXPECT_TRUE(story.verdict().is_good());
}

TEST(Judge, LetsNoRefusedStartBeDelivered)
{
    Story story;
    story.start(10, 1, "a").refused(20, 1, "a");
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_EQ(story.verdict().unheard, 0u);
    expect_only(story.deliver(130, 1, "a", 1, 100, 120).verdict(), "invented");
}

TEST(Judge, FindsWhatNobodyAskedFor)
{
    expect_only(Story().deliver(130, 1, "a", 1, 100, 120).verdict(),
                "invented");
    expect_only(Story()
                    .timer(10, 1, "b", 1, 100)
                    .deliver(130, 1, "b", 1, 100, 120)
                    .deliver(130, 1, "a", 1, 100, 120)
                    .verdict(),
                "invented");
}

TEST(Judge, FindsAnEarlyDeliveryByEitherClock)
{
    expect_only(Story()
                    .timer(10, 1, "a", 1, 100)
                    .deliver(130, 1, "a", 1, 100, 99)
                    .verdict(),
                "early");
    expect_only(Story()
                    .timer(10, 1, "a", 1, 100)
                    .deliver(99, 1, "a", 1, 100, 100)
                    .verdict(),
                "early");
    EXPECT_TRUE(Story()
                    .timer(10, 1, "a", 1, 100)
                    .deliver(100, 1, "a", 1, 100, 100)
                    .verdict()
                    .is_good());
}

TEST(Judge, FindsALateFireWhereNoFaultWasNear)
{
    Limits limits;
    limits.late_us = 50;
    limits.recovery_us = 10;
    Story story;
    story.timer(10, 1, "a", 1, 100).deliver(200, 1, "a", 1, 100, 150);
    EXPECT_TRUE(story.verdict(limits).is_good());
    story.timer(10, 2, "b", 1, 100).deliver(200, 2, "b", 1, 100, 151);
    expect_only(story.verdict(limits), "late");
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_TRUE(Story(story).fault(80, 90).verdict(limits).is_good());
    expect_only(Story(story).fault(80, 89).verdict(limits), "late");
    EXPECT_TRUE(Story(story).fault(151, 170).verdict(limits).is_good());
    expect_only(Story(story).fault(152, 170).verdict(limits), "late");
}

TEST(Judge, FindsAStartThatWasCarriedOutTwice)
{
    Story same;
    same.start(10, 1, "a").unheard(20, 1, "a").timer(30, 1, "a", 1, 100);
    same.started(40, 1, "a", 1, 100).deliver(130, 1, "a", 1, 100, 120);
    EXPECT_TRUE(same.verdict().is_good());
    Story other;
    other.start(10, 1, "a").unheard(20, 1, "a").timer(30, 1, "a", 2, 110);
    other.deliver(120, 1, "a", 1, 100, 105).deliver(130, 1, "a", 2, 110, 120);
    EXPECT_GT(other.verdict().count("doubled"), 0u);
    Story answers;
    answers.timer(10, 1, "a", 1, 100).started(40, 1, "a", 2, 110);
    answers.deliver(130, 1, "a", 2, 110, 120);
    EXPECT_GT(answers.verdict().count("doubled"), 0u);
}

TEST(Judge, CountsDuplicatesAndBoundsThemByTheFaults)
{
    Limits limits;
    limits.duplicates_per_fault = 2;
    Story story;
    story.timer(10, 1, "a", 1, 100).deliver(130, 1, "a", 1, 100, 120);
    EXPECT_TRUE(story.verdict(limits).is_good());
    story.deliver(140, 1, "a", 1, 100, 120);
    EXPECT_EQ(story.verdict(limits).duplicates, 1u);
    expect_only(story.verdict(limits), "duplicates");
    story.fault(50, 60).deliver(150, 1, "a", 1, 100, 120);
    EXPECT_EQ(story.verdict(limits).duplicates, 2u);
    EXPECT_TRUE(story.verdict(limits).is_good());
    story.deliver(160, 1, "a", 1, 100, 120);
    expect_only(story.verdict(limits), "duplicates");
}

TEST(Judge, FindsAnAttemptThatFiredTwiceWhateverTheFaults)
{
    Limits limits;
    limits.duplicates_per_fault = 100;
    expect_only(Story()
                    .timer(10, 1, "a", 1, 100)
                    .fault(50, 60)
                    .deliver(130, 1, "a", 1, 100, 120)
                    .deliver(140, 1, "a", 1, 100, 135)
                    .verdict(limits),
                "refired");
}

TEST(Judge, FindsAStopThatLies)
{
    Story story;
    story.timer(10, 1, "a", 1, 100).stop(90, 2, "a");
    EXPECT_TRUE(story.verdict().is_good()) << "it may have been carried out";
    story.stopped(95, 2, "a", 1, "stopped");
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_EQ(story.verdict().stopped, 1u);
    expect_only(story.deliver(130, 1, "a", 1, 100, 120).verdict(), "stopped");
}

TEST(Judge, KnowsThatARetryCanBeStopped)
{
    Story story;
    story.timer(10, 1, "a", 1, 100).deliver(120, 1, "a", 1, 100, 110);
    story.retry(130, "a", 1, 1);
    story.stop(140, 2, "a").stopped(150, 2, "a", 1, "stopped");
    EXPECT_TRUE(story.verdict().is_good());
    expect_only(story.deliver(180, 1, "a", 1, 160, 170, 2).verdict(),
                "stopped");
}

TEST(Judge, FindsATooLateThatIsNotTrue)
{
    Story lost;
    lost.timer(10, 1, "a", 1, 100).stop(110, 2, "a");
    expect_only(lost.stopped(120, 2, "a", 1, "late").verdict(), "lost");
    EXPECT_TRUE(lost.deliver(140, 1, "a", 1, 100, 130).verdict().is_good());
    Story early;
    early.timer(10, 1, "a", 1, 100).stop(20, 2, "a");
    early.stopped(30, 2, "a", 1, "late").deliver(140, 1, "a", 1, 100, 130);
    expect_only(early.verdict(), "denied");
}

TEST(Judge, FindsAStopThatDoesNotKnowWhatWasAcknowledged)
{
    Story story;
    story.stop(5, 2, "a").stopped(15, 2, "a", 0, "unknown");
    story.timer(10, 1, "a", 1, 100).deliver(120, 1, "a", 1, 100, 110);
    EXPECT_TRUE(story.verdict().is_good());
    story.stop(20, 3, "a").stopped(30, 3, "a", 0, "unknown");
    expect_only(story.verdict(), "denied");
}

TEST(Judge, LetsALaterStartTakeTheTimersPlace)
{
    Story story;
    story.timer(10, 1, "a", 1, 100).timer(50, 2, "a", 2, 200);
    expect_only(story.verdict(), "lost");
    story.deliver(220, 2, "a", 2, 200, 210);
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_EQ(story.verdict().replaced, 1u);
    Story both(story);
    both.deliver(230, 1, "a", 1, 100, 49);
    EXPECT_GT(both.verdict().count("early"), 0u);
    expect_only(story.deliver(230, 1, "a", 1, 100, 110).verdict(), "stale");
}

TEST(Judge, FollowsAnUpdate)
{
    Story story;
    story.timer(10, 1, "a", 1, 100).update(20, 2, "a", 1);
    story.updated(30, 2, "a", 2, 150);
    expect_only(story.verdict(), "lost");
    expect_only(Story(story).deliver(160, 1, "a", 2, 140, 155).verdict(),
                "mixed");
    story.deliver(160, 1, "a", 2, 150, 155);
    EXPECT_TRUE(story.verdict().is_good());
    Story both(story);
    both.deliver(161, 1, "a", 1, 100, 110);
    EXPECT_GT(both.verdict().count("stale"), 0u);
    EXPECT_GT(both.verdict().count("doubled"), 0u);
}

TEST(Judge, FindsATimerThatIsNotTheOnePromised)
{
    expect_only(Story()
                    .timer(10, 1, "a", 1, 100)
                    .deliver(130, 1, "a", 1, 90, 120)
                    .verdict(),
                "mixed");
    Story swapped;
    swapped.timer(10, 1, "a", 1, 100).timer(20, 2, "a", 2, 110);
    swapped.deliver(130, 1, "a", 2, 110, 120);
    expect_only(swapped.verdict(), "mixed");
    Story twice;
    twice.timer(10, 1, "a", 1, 100).timer(20, 2, "a", 1, 110);
    twice.deliver(130, 2, "a", 1, 110, 120);
    expect_only(twice.verdict(), "mixed");
}

// The second answer finds the timer waiting for its retry.
TEST(Judge, LetsARepeatedStartTellTheTimeOfARetry)
{
    const auto told = [](int64_t time) {
        return Story()
            .start(10, 1, "a")
            .unheard(20, 1, "a")
            .start(30, 1, "a")
            .deliver(130, 1, "a", 1, 100, 120)
            .retry(140, "a", 1, 1)
            .started(time, 1, "a", 1, 200)
            .deliver(230, 1, "a", 1, 200, 220, 2)
            .verdict();
    };
    EXPECT_TRUE(told(141).is_good());
    expect_only(told(139), "mixed");
}

TEST(Judge, WaitsForARetryThatWasAcknowledged)
{
    Story story;
    story.timer(10, 1, "a", 1, 100).deliver(120, 1, "a", 1, 100, 110);
    story.retry(130, "a", 1, 1);
    expect_only(story.verdict(), "retry");
    story.deliver(160, 1, "a", 1, 140, 150, 2);
    EXPECT_TRUE(story.verdict().is_good());
    EXPECT_EQ(story.verdict().retried, 1u);
}

TEST(History, KeepsEveryFieldInItsFile)
{
    char path[] = "/tmp/lawn-history-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    {
        lawn_verify::HistoryWriter writer(path, 7);
        Event event;
        event.kind = EventKind::deliver;
        event.time_us = INT64_MAX;
        event.operation = UINT64_MAX;
        event.id = "order-17";
        event.generation = 3;
        event.due_us = 4;
        event.fired_us = 5;
        event.attempt = 6;
        event.word = "done";
        writer.write(event);
        event.id.clear();
        event.word.clear();
        event.time_us = 0; // is filled in
        writer.write(event);
    }
    std::ofstream(path, std::ios::app) << "1 2 nothing 3 a 4 5 6 7 -\n"
                                       << "1 2 stop 3 a 4 5 6 7 - more\n"
                                       << "1 2 stop 3 a 4 five 6 7 -\n"
                                       << "1 2 stop 3 a 4";
    std::vector<Event> events;
    EXPECT_EQ(lawn_verify::read_history(path, events), 4u);
    unlink(path);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_LT(events[0].time_us, lawn_verify::history_now() + 1);
    EXPECT_EQ(events[0].id, "");
    EXPECT_EQ(events[0].word, "");
    EXPECT_EQ(events[1].time_us, INT64_MAX) << "sorted by their times";
    EXPECT_EQ(events[1].process, 7u);
    EXPECT_EQ(events[1].kind, EventKind::deliver);
    EXPECT_EQ(events[1].operation, UINT64_MAX);
    EXPECT_EQ(events[1].id, "order-17");
    EXPECT_EQ(events[1].generation, 3u);
    EXPECT_EQ(events[1].due_us, 4);
    EXPECT_EQ(events[1].fired_us, 5);
    EXPECT_EQ(events[1].attempt, 6u);
    EXPECT_EQ(events[1].word, "done");
}

} // namespace
