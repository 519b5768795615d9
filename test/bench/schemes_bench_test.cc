// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The contenders of lawn_bench that are no plain schemes: those whose advances
// may end before they have fired what is due, those that must know the TTLs,
// and the floor.

#include "arena.h"
#include "conformance.h"
#include "expiry.h"
#include "floor.h"
#include "schemes/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace
{

using bench::Config;
using bench::Contender;
using bench::contender_of;
using bench::Load;
using bench::Result;
using bench::Time;
using bench::Traits;

enum class Fault {
    none,
    says_that_it_is_done,
    says_that_there_is_more,
    forgets_one,
};

// The tree, with a budget that is spent on other things as well: every third
// advance fires nothing, and the others fire half of it.
template <Fault fault> class Spender
{
public:
    static constexpr Traits traits{"spender", "", false, false, false, false};

    using Node = bench::Tree::Node;

    explicit Spender(const Config &config) : tree_(config)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        tree_.start(node, now, ttl);
    }

    bool stop(Node &node)
    {
        return tree_.stop(node);
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        if (budget == 0) {
            has_more_ = false;
            return tree_.advance(now, 0, fired);
        }
        has_more_ = true;
        if (++calls_ % 3 == 0) {
            return 0;
        }
        const unsigned most = (budget + 1) / 2;
        std::vector<Node *> due;
        tree_.advance(now, most,
                      [&](Node &node, Time) { due.push_back(&node); });
        has_more_ = due.size() == most;
        if (fault == Fault::forgets_one && !due.empty() && calls_ % 16 == 0) {
            due.pop_back();
        }
        for (Node *node : due) {
            fired(*node, now);
        }
        return static_cast<unsigned>(due.size());
    }

    bool has_more() const
    {
        switch (fault) {
        case Fault::says_that_it_is_done:
            return false;
        case Fault::says_that_there_is_more:
            return true;
        default:
            return has_more_;
        }
    }

    static Contender contender()
    {
        Contender c = contender_of<Spender>();
        c.has_more = [](void *scheme, Time) {
            return static_cast<Spender *>(scheme)->has_more();
        };
        return c;
    }

private:
    bench::Tree tree_;
    bool has_more_ = false;
    unsigned calls_ = 0;
};

template <Fault fault> std::string what_is_wrong()
{
    const std::string wrong =
        bench::nonconformance(Spender<fault>::contender());
    return wrong.substr(0, wrong.find(" (seed"));
}

TEST(Budget, MayBeSpentOnOtherThings)
{
    EXPECT_EQ(what_is_wrong<Fault::none>(), "");
}

TEST(Budget, IsNoExcuse)
{
    EXPECT_EQ(what_is_wrong<Fault::says_that_it_is_done>(),
              "a timer that is due did not fire");
    EXPECT_EQ(what_is_wrong<Fault::says_that_there_is_more>(),
              "advances never come to an end");
    EXPECT_EQ(what_is_wrong<Fault::forgets_one>(),
              "a timer that is due did not fire");
}

// Who cannot tell whether there is more has to fire all.
TEST(Budget, IsSpentOnTimersByAllOthers)
{
    Contender silent = Spender<Fault::none>::contender();
    silent.has_more = nullptr;
    const std::string wrong = bench::nonconformance(silent);
    EXPECT_EQ(wrong.substr(0, wrong.find(" (seed")),
              "a timer that is due did not fire");
}

TEST(Budget, OfLawnIsSpentOnTouches)
{
    EXPECT_EQ(bench::nonconformance(bench::lawn()), "");
    EXPECT_EQ(bench::nonconformance(bench::lawn_pause()), "");
}

// Setting up may take too long on a machine that is busy or instrumented: then
// again, with more time.
template <class Run> Result patiently(Run &&run)
{
    Result result;
    for (double sec = 0.002; sec < 100; sec *= 4) {
        result = run(sec);
        if (result || !result.is_available) {
            return result;
        }
    }
    ADD_FAILURE() << "too slow";
    return result;
}

TEST(WorstAdvance, TellsHowItsAdvancesAreDistributed)
{
    const auto worst = [](const Contender &contender) {
        return patiently([&](double sec) {
            return bench::worst_advance(contender, {1000, 0, 1, sec});
        });
    };
    const Result result = worst(Spender<Fault::none>::contender());
    EXPECT_GT(result.p50, 0);
    EXPECT_LE(result.p50, result.p99);
    EXPECT_LE(result.p99, result.p999);
    EXPECT_LE(result.p999, result.figure);
    EXPECT_EQ(result.most, 32);
    EXPECT_EQ(worst(bench::lawn()).most, 64);
}

// The tree, for programs that know their TTLs: a start is given the number of
// one of those that were declared.
class Declarer : public bench::Tree
{
public:
    using Tree::Tree;

    void start(Node &node, Time now, Time which)
    {
        Tree::start(node, now, ttls_.at(which - first));
        ++starts;
    }

    Time declare(Time ttl)
    {
        ttls_.push_back(ttl);
        most = std::max(most, ttls_.size());
        return first + ttls_.size() - 1;
    }

    static Contender contender()
    {
        Contender c = contender_of<Declarer>();
        c.declare = [](void *scheme, Time ttl) {
            return static_cast<Declarer *>(scheme)->declare(ttl);
        };
        return c;
    }

    static size_t starts;
    static size_t most; // TTLs

private:
    static constexpr Time first = Time{1} << 63; // never a TTL

    std::vector<Time> ttls_;
};

size_t Declarer::starts = 0;
size_t Declarer::most = 0;

TEST(Declaration, ReplacesEachTtl)
{
    EXPECT_EQ(bench::nonconformance(Declarer::contender()), "");
    EXPECT_EQ(bench::nonconformance(bench::lawn_queue()), "");
}

TEST(Declaration, IsMadeOfEveryTtlOfAWorkload)
{
    for (const size_t ttls : {1U, 10U, 1000U}) {
        Declarer::starts = 0;
        Declarer::most = 0;
        EXPECT_TRUE(patiently([&](double sec) {
            return bench::life_cycle(Declarer::contender(),
                                     {1000, ttls, 1, sec});
        }));
        EXPECT_GE(Declarer::starts, 1000U);
        EXPECT_EQ(Declarer::most, ttls);
    }
}

TEST(Declaration, IsNotPossibleOfTooMany)
{
    for (const size_t ttls : {0U, 1001U}) {
        const Result result =
            bench::life_cycle(Declarer::contender(), {2000, ttls, 1, 0.005});
        EXPECT_FALSE(result);
        EXPECT_FALSE(result.is_available);
    }
}

TEST(Declaration, LeavesOutWorkloadsOrRunsThem)
{
    std::map<std::string, bool> runs;
    for (const bench::Workload &workload : bench::workloads()) {
        const Result result = patiently([&](double sec) {
            return workload.run(Declarer::contender(), {500, 0, 1, sec});
        });
        runs[workload.name] = result.is_available;
    }
    for (const char *name : {"fixed", "mixed-10", "mixed-1000", "re-arm",
                             "transport", "burst", "idle", "expiry-16"}) {
        EXPECT_TRUE(runs.at(name)) << name;
    }
    for (const char *name : {"continuous", "insertion", "tick", "memory",
                             "worst-advance", "expiry-continuous"}) {
        EXPECT_FALSE(runs.at(name)) << name;
    }
}

// What a contender was asked for, and what it fired.
struct Record {
    std::vector<size_t> started;
    std::vector<std::pair<size_t, size_t>> fired; // the advance, the node
    size_t advances = 0;
};

Record record;
Contender recorded;
char *first_node;

size_t index_of(const void *node)
{
    return static_cast<size_t>(static_cast<const char *>(node) - first_node) /
           recorded.node_size;
}

// The contender, with a record of it.
Contender recording(const Contender &contender)
{
    record = {};
    recorded = contender;
    Contender c = contender;
    c.make_nodes = [](void *memory, size_t count) {
        recorded.make_nodes(memory, count);
        first_node = static_cast<char *>(memory);
    };
    c.start = [](void *scheme, void *node, Time now, Time ttl) {
        record.started.push_back(index_of(node));
        recorded.start(scheme, node, now, ttl);
    };
    c.advance = [](void *scheme, Time now, unsigned budget) {
        const unsigned count = recorded.advance(scheme, now, budget);
        ++record.advances;
        for (const void *node : bench::expired) {
            record.fired.push_back({record.advances, index_of(node)});
        }
        return count;
    };
    return c;
}

template <class T>
void expect_beginning(std::vector<T> whole, std::vector<T> part)
{
    EXPECT_GE(whole.size(), part.size());
    whole.resize(std::min(whole.size(), part.size()));
    EXPECT_TRUE(whole == part);
}

// The same nodes in the same order, and never more than the log has.
TEST(Floor, TouchesWhatLawnTouches)
{
    std::vector<bench::Workload> all = bench::workloads();
    all.push_back({"life", "ns", "", bench::life_cycle, true});
    size_t compared = 0;
    for (const bench::Workload &workload : all) {
        SCOPED_TRACE(workload.name);
        std::vector<Record> records;
        const Result result = patiently([&](double sec) {
            records.clear();
            return bench::run_on_floor(
                [&](const Contender &contender, const Load &load) {
                    const Result once =
                        workload.run(recording(contender), load);
                    records.push_back(record);
                    return once;
                },
                {500, 20, 3, sec});
        });
        if (!result.is_available) {
            continue; // memory
        }
        ASSERT_TRUE(result);
        ASSERT_EQ(records.size(), 2U);
        EXPECT_GE(records[1].started.size(), 500U);
        expect_beginning(records[0].started, records[1].started);
        expect_beginning(records[0].fired, records[1].fired);
        EXPECT_LE(records[1].advances, records[0].advances);
        compared += !records[1].fired.empty();
    }
    EXPECT_GE(compared, 6U);
}

// However fast it is, it ends where Lawn did.
TEST(Floor, EndsWithItsLog)
{
    std::vector<size_t> advances;
    EXPECT_TRUE(patiently([&](double sec) {
        advances.clear();
        return bench::run_on_floor(
            [&](const Contender &contender, Load load) {
                load.limit_sec = advances.empty() ? sec : 60;
                const Result once = bench::tick(recording(contender), load);
                advances.push_back(record.advances);
                return once;
            },
            {500, 0, 3, sec});
    }));
    ASSERT_EQ(advances.size(), 2U);
    EXPECT_EQ(advances[0], advances[1]);
}

} // namespace
