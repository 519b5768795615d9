// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn_bench relies on: that a broken contender is found out, whatever is
// wrong with it, and that its workloads are what they are said to be.

#include "arena.h"
#include "conformance.h"
#include "expiry.h"
#include "schemes/hashed_wheel.h"
#include "schemes/hashed_wheel_sorted.h"
#include "schemes/hierarchical_wheel.h"
#include "schemes/hierarchical_wheel_nomigration.h"
#include "schemes/lawn_intrusive.h"
#include "schemes/lawn_textbook.h"
#include "schemes/multipass_wheel.h"
#include "schemes/ordered_list.h"
#include "schemes/resizing_wheel.h"
#include "schemes/simple_wheel.h"
#include "schemes/tree.h"
#include "schemes/unordered_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace
{

using bench::Config;
using bench::Contender;
using bench::contender_of;
using bench::Load;
using bench::Time;
using bench::Traits;

enum class Fault {
    none,
    drops_one,
    fires_early,
    fires_late,
    fires_twice,
    fires_stopped,
    fires_in_reverse,
    counts_wrong,
    ignores_budget,
    denies_stop,
    ignores_re_arm,
};

// A scheme that is right but for one thing, which it does once in a while.
template <Fault fault> class Faulty
{
public:
    static constexpr Traits traits{"faulty", "", false, false, false, false};

    struct Node : bench::Tree::Node {
        bool was_running = false;
    };

    explicit Faulty(const Config &config) : tree_(config)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        const bool is_chosen = ++calls_ % 64 == 0;
        if (fault == Fault::ignores_re_arm && is_chosen && node.was_running) {
            return;
        }
        node.was_running = true;
        const bool is_late = fault == Fault::fires_late && is_chosen;
        tree_.start(node, now, is_late ? ttl + 1 : ttl);
    }

    bool stop(Node &node)
    {
        const bool is_chosen = ++calls_ % 64 == 0;
        const bool was_running = node.was_running;
        node.was_running = false;
        if (fault != Fault::fires_stopped || !is_chosen) {
            tree_.stop(node);
        }
        return was_running && !(fault == Fault::denies_stop && is_chosen);
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        const bool is_chosen = ++calls_ % 16 == 0;
        const Time until =
            fault == Fault::fires_early && is_chosen ? now + 1 : now;
        unsigned count =
            tree_.advance(until, fault == Fault::ignores_budget ? 0 : budget,
                          [&](bench::Tree::Node &node, Time) {
                              due_.push_back(static_cast<Node *>(&node));
                          });
        if (fault == Fault::drops_one && is_chosen && !due_.empty()) {
            due_.pop_back();
            --count;
        }
        if (fault == Fault::fires_twice && is_chosen && !due_.empty()) {
            due_.push_back(due_.back());
            ++count;
        }
        if (fault == Fault::fires_in_reverse) {
            std::reverse(due_.begin(), due_.end());
        }
        for (Node *node : due_) {
            node->was_running = false;
            fired(*node, now);
        }
        due_.clear();
        return count + (fault == Fault::counts_wrong && is_chosen);
    }

private:
    bench::Tree tree_;
    std::vector<Node *> due_;
    unsigned calls_ = 0;
};

template <Fault fault> std::string nonconformance_of()
{
    return bench::nonconformance(contender_of<Faulty<fault>>());
}

TEST(Conformance, FindsWhatIsWrong)
{
    EXPECT_EQ(nonconformance_of<Fault::none>(), "");
    const auto says = [](const std::string &wrong, const char *what) {
        EXPECT_EQ(wrong.substr(0, wrong.find(" (seed")), what);
    };
    says(nonconformance_of<Fault::drops_one>(),
         "a timer that is due did not fire");
    says(nonconformance_of<Fault::fires_early>(), "a timer fired early");
    Contender late = contender_of<Faulty<Fault::fires_late>>();
    late.traits.any_order = true;
    says(bench::nonconformance(late), "a timer that is due did not fire");
    says(nonconformance_of<Fault::fires_twice>(),
         "a timer fired that was not running");
    says(nonconformance_of<Fault::fires_stopped>(),
         "a timer fired that was not running");
    says(nonconformance_of<Fault::fires_in_reverse>(),
         "timers of one TTL fired out of order");
    says(nonconformance_of<Fault::counts_wrong>(),
         "an advance returned a wrong count");
    says(nonconformance_of<Fault::ignores_budget>(),
         "an advance went beyond its budget");
    says(nonconformance_of<Fault::denies_stop>(),
         "a stop did not tell whether the timer was running");
    EXPECT_NE(nonconformance_of<Fault::ignores_re_arm>(), "");
}

TEST(Conformance, AllowsWhatTheTraitsSay)
{
    Contender reversed = contender_of<Faulty<Fault::fires_in_reverse>>();
    reversed.traits.any_order = true;
    EXPECT_EQ(bench::nonconformance(reversed), "");

    Contender boundless = contender_of<Faulty<Fault::ignores_budget>>();
    boundless.no_budget = true;
    EXPECT_EQ(bench::nonconformance(boundless), "");

    Contender early = contender_of<Faulty<Fault::fires_early>>();
    early.traits.may_be_early = true;
    EXPECT_EQ(bench::nonconformance(early), "");
}

// One that may be early must still fire all.
TEST(Conformance, FindsWhatIsLostThoughItMayBeEarly)
{
    Contender lossy = contender_of<Faulty<Fault::drops_one>>();
    lossy.traits.may_be_early = true;
    EXPECT_NE(bench::nonconformance(lossy), "");
}

// What the reference schemes promise besides: a callback may start and stop any
// timer. Of five that are due, the first to fire stops one, puts off another
// and starts itself with no TTL, for the next pass.
template <class Scheme> void act_in_a_callback()
{
    using Node = typename Scheme::Node;
    SCOPED_TRACE(Scheme::traits.name);
    Config config;
    config.capacity = 5;
    Scheme scheme(config);
    std::vector<Node> nodes(config.capacity);
    std::set<Node *> left;
    for (Node &node : nodes) {
        scheme.start(node, 0, 10);
        left.insert(&node);
    }
    Node *first = nullptr;
    Node *put_off = nullptr;
    const unsigned count = scheme.advance(10, 0, [&](Node &node, Time now) {
        EXPECT_EQ(left.erase(&node), 1U);
        EXPECT_FALSE(scheme.stop(node)) << "not idle in its callback";
        if (!first) {
            first = &node;
            scheme.start(node, now, 0);
            EXPECT_TRUE(scheme.stop(**left.begin()));
            left.erase(left.begin());
            put_off = *left.begin();
            scheme.start(*put_off, now, 20);
            left.erase(left.begin());
        }
    });
    EXPECT_EQ(count, 3U);
    EXPECT_TRUE(left.empty());
    const auto fires_alone = [&](Time now, Node *expected) {
        Node *fired = nullptr;
        EXPECT_EQ(
            scheme.advance(now, 0, [&](Node &node, Time) { fired = &node; }),
            1U);
        EXPECT_EQ(fired, expected);
    };
    fires_alone(10, first);
    fires_alone(30, put_off);
}

template <class... Schemes> void act_in_callbacks()
{
    (act_in_a_callback<Schemes>(), ...);
}

TEST(Schemes, LetACallbackActOnAnyTimer)
{
    act_in_callbacks<
        bench::UnorderedList, bench::OrderedList, bench::Tree,
        bench::SimpleWheel, bench::HashedWheelSorted, bench::HashedWheel,
        bench::HierarchicalWheel, bench::NoMigrationWheel, bench::ResizingWheel,
        bench::MultipassWheel, bench::LawnTextbook, bench::LawnIntrusive>();
}

// A contender with a clock of its own: the tree, and a time that only wait()
// moves.
template <Fault fault> class Realtime
{
public:
    static constexpr Traits traits{"realtime", "", false, false, false, false};

    using Node = typename Faulty<fault>::Node;

    explicit Realtime(const Config &config) : scheme_(config)
    {
    }

    void start(Node &node, Time, Time ttl)
    {
        scheme_.start(node, now_, ttl);
    }

    bool stop(Node &node)
    {
        return scheme_.stop(node);
    }

    template <class Fired>
    unsigned advance(Time, unsigned budget, Fired &&fired)
    {
        return scheme_.advance(now_, budget, fired);
    }

    void wait(Time time)
    {
        now_ += time;
    }

    static Contender contender()
    {
        Contender c = contender_of<Realtime>();
        c.wait = [](void *scheme, Time time) {
            static_cast<Realtime *>(scheme)->wait(time);
        };
        return c;
    }

private:
    Faulty<fault> scheme_;
    Time now_ = 0;
};

TEST(Conformance, ChecksWhatHasAClockOfItsOwn)
{
    EXPECT_EQ(bench::nonconformance(Realtime<Fault::none>::contender()), "");
    EXPECT_NE(
        bench::nonconformance(Realtime<Fault::fires_stopped>::contender()), "");
    EXPECT_NE(bench::nonconformance(Realtime<Fault::denies_stop>::contender()),
              "");
    EXPECT_NE(
        bench::nonconformance(Realtime<Fault::ignores_re_arm>::contender()),
        "");
}

// What a workload asked of a contender.
struct Record {
    std::set<Time> ttls;
    std::vector<std::pair<Time, Time>> starts; // when, and the TTL
    uint64_t stopped = 0;
    uint64_t expired = 0;
};

Record record;

template <class Scheme> class Recorder : public Scheme
{
public:
    using Scheme::Scheme;
    using Node = typename Scheme::Node;

    void start(Node &node, Time now, Time ttl)
    {
        record.ttls.insert(ttl);
        record.starts.push_back({now, ttl});
        Scheme::start(node, now, ttl);
    }

    bool stop(Node &node)
    {
        ++record.stopped;
        return Scheme::stop(node);
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        const unsigned count = Scheme::advance(now, budget, fired);
        record.expired += count;
        return count;
    }
};

// Workloads end by the clock, so with more and more time until the contender
// has been asked for enough; false if there is none of this workload here.
template <class Enough>
bool run(const bench::Workload &workload, const Contender &contender, Load load,
         Enough &&enough)
{
    for (load.limit_sec = 0.005; load.limit_sec < 100; load.limit_sec *= 4) {
        record = {};
        const bench::Result result = workload.run(contender, load);
        if (!result.is_available) {
            return false;
        }
        if (result && enough()) {
            return true;
        }
    }
    ADD_FAILURE() << workload.name << " did too little";
    return false;
}

const bench::Workload life = {"life", "ns", "", bench::life_cycle, true};

Record record_of_life(size_t timers, size_t ttls)
{
    run(life, contender_of<Recorder<bench::Tree>>(), {timers, ttls, 1, 0},
        [&] { return record.stopped > 10'000 + 20 * ttls; });
    return record;
}

TEST(LifeCycle, HasAsManyTtlsAsItSays)
{
    for (const size_t timers : {1'000U, 100'000U}) {
        for (size_t ttls = 1; ttls <= timers && ttls <= 1000; ttls *= 10) {
            EXPECT_EQ(record_of_life(timers, ttls).ttls.size(), ttls);
        }
    }
}

TEST(LifeCycle, StaggersItsStarts)
{
    std::set<Time> times;
    for (const auto &[now, ttl] : record_of_life(10'000, 100).starts) {
        times.insert(now);
    }
    EXPECT_GT(times.size(), 10'000U);
}

// Each poll comes with one stop; as many lives end by expiry.
TEST(LifeCycle, EndsHalfOfTheLivesByExpiry)
{
    for (const size_t ttls : {1U, 10U, 1000U}) {
        const Record seen = record_of_life(1'000, ttls);
        EXPECT_NEAR(static_cast<double>(seen.expired) /
                        static_cast<double>(seen.stopped),
                    1, 0.05);
    }
}

TEST(Ttls, AreDistinctAndEvenAtEveryNumber)
{
    for (const size_t distinct :
         {1U, 3U, 10U, 1000U, 1'000'000U, 10'000'000U}) {
        const Time span = distinct * 700; // as in a life cycle
        const bench::Ttls ttls(span / 2, span, distinct);
        const auto at = [&](size_t which) {
            // The middle of the draws that make this one.
            const double draw = (static_cast<double>(which) + 0.5) /
                                static_cast<double>(distinct) * 0x1p64;
            return ttls.at(static_cast<uint64_t>(draw));
        };
        for (size_t i = 0; i < distinct; i += 1 + distinct / 1000) {
            ASSERT_EQ(at(i), span / 2 + 700 * i + 350);
        }
        EXPECT_EQ(at(distinct - 1), span / 2 + span - 350);
    }
}

TEST(Ttls, AreContinuousWithoutANumber)
{
    const bench::Ttls ttls(1000, 1'000'000'000'000, 0);
    bench::Random random(1);
    std::set<Time> seen;
    for (int i = 0; i < 10'000; ++i) {
        const Time ttl = ttls.at(random());
        ASSERT_GE(ttl, 1000U);
        ASSERT_LT(ttl, 1'000'000'001'000U);
        seen.insert(ttl);
    }
    EXPECT_GT(seen.size(), 9'990U);
}

// Timers that expire together are started anew in the order in which they fire,
// which is the contender's affair: so by time, then TTL. How many there are is
// too, since it is time that ends a workload.
void expect_the_same_starts(Record &a, Record &b, const char *workload)
{
    for (auto *starts : {&a.starts, &b.starts}) {
        const Time last = starts->back().first;
        std::sort(starts->begin(), starts->end());
        while (starts->size() > 500 && starts->back().first == last) {
            starts->pop_back();
        }
    }
    const size_t count = std::min(a.starts.size(), b.starts.size());
    EXPECT_GE(count, 500U) << workload;
    a.starts.resize(count);
    b.starts.resize(count);
    EXPECT_TRUE(a.starts == b.starts) << workload;
}

// For one seed, whatever the contender.
TEST(Workloads, AskTheSameOfEveryContender)
{
    const Load load = {500, 20, 7, 0};
    const auto enough = [] { return record.starts.size() >= 500; };
    std::vector<bench::Workload> all = bench::workloads();
    all.push_back(life);
    size_t compared = 0;
    for (const bench::Workload &workload : all) {
        if (!run(workload, contender_of<Recorder<bench::Tree>>(), load,
                 enough)) {
            continue; // memory, under a sanitizer
        }
        Record first = record;
        ASSERT_TRUE(run(workload, contender_of<Recorder<bench::LawnTextbook>>(),
                        load, enough));
        expect_the_same_starts(first, record, workload.name);
        ++compared;
    }
    EXPECT_GE(compared, 15U);
}

} // namespace
