// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a run of lawn_bench says of itself: which contenders a plot shows, and
// where the summary says that Lawn is first. How often what is repeated, when
// time is short.

#include "series.h"
#include "summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

namespace
{

using bench::Contender;
using bench::Family;
using bench::Series;
using bench::Statistic;
using bench::Summary;
using bench::Table;

using Names = std::vector<std::string>;

class ReportTest : public testing::Test
{
protected:
    ReportTest()
    {
        table_.name = "work";
        table_.columns = {{"1e3", {}}, {"1e4", {}}};
    }

    // A row; NaN: no figure.
    Contender &add(const char *name, Family family,
                   const std::vector<double> &figures)
    {
        Contender &contender = contenders_.emplace_back();
        contender.traits.name = name;
        contender.family = family;
        table_.rows.push_back(&contender);
        std::vector<bench::Cell> &cells = table_.cells.emplace_back();
        for (const double figure : figures) {
            cells.emplace_back();
            if (!std::isnan(figure)) {
                cells.back().results.emplace_back(figure);
            }
        }
        return contender;
    }

    void add_many_wheels()
    {
        for (const char *name : {"a", "b", "c", "d", "e", "f", "g"}) {
            add(name, Family::wheel, {50, 50});
        }
    }

    Names shown() const
    {
        Names names;
        for (const bench::Curve &curve : series().shown) {
            names.emplace_back(curve.contender->traits.name);
        }
        return names;
    }

    Series series() const
    {
        return choose_series(table_, Statistic::figure);
    }

    std::string summary() const
    {
        Summary summary;
        summary.add(table_);
        testing::internal::CaptureStdout();
        summary.print();
        return testing::internal::GetCapturedStdout();
    }

    Table table_;

private:
    std::deque<Contender> contenders_; // stay where they are
};

TEST_F(ReportTest, shows_all_of_eight)
{
    add("lawn", Family::lawn, {1, 1});
    add_many_wheels();
    EXPECT_EQ(shown(), (Names{"lawn", "a", "b", "c", "d", "e", "f", "g"}));
    EXPECT_EQ(series().left_out, Names{});
}

TEST_F(ReportTest, shows_lawn_and_the_best_of_each_family_of_nine)
{
    add("lawn", Family::lawn, {100, 100});
    add_many_wheels();
    add("fast wheel", Family::wheel, {10, 50});
    add("fast list", Family::sorted, {5, NAN});
    add("list", Family::sorted, {200, 300});
    add("fifo", Family::fifos, {NAN, 900});
    add("none", Family::fifos, {NAN, NAN});
    add("early", Family::library, {1, 1}).traits.may_be_early = true;
    add("library", Family::library, {70, 70});
    EXPECT_EQ(shown(), (Names{"lawn", "fast wheel", "list", "fifo", "library"}))
        << "a figure in more columns comes first, and an early one never";
    EXPECT_EQ(series().left_out,
              (Names{"a", "b", "c", "d", "e", "f", "g", "fast list", "early"}));
    EXPECT_EQ(series().empty, Names{"none"});
}

TEST_F(ReportTest, says_where_lawn_is_ahead_even_and_behind)
{
    table_.columns = {{"1e3", {}}, {"1e4", {}}, {"1e5", {}}, {"1e6", {}}};
    add("lawn", Family::lawn, {10, 20, 102, 40});
    add("list", Family::sorted, {20, 10, 100, NAN});
    add("wheel", Family::wheel, {30, 5, 400, NAN});
    add("early", Family::library, {1, 1, 1, 1}).traits.may_be_early = true;
    EXPECT_NE(summary().find("work                1, 2.00 x         1  "
                             "1, 4.00 x: wheel at 1e4\n"),
              std::string::npos)
        << summary();
}

TEST_F(ReportTest, has_no_ratio_with_a_zero)
{
    table_.columns = {{"1e3", {}}, {"1e4", {}}, {"1e5", {}}};
    add("lawn", Family::lawn, {0, 10, 0});
    add("list", Family::sorted, {20, 0, 0});
    EXPECT_NE(summary().find("work                1                 1  "
                             "1: list at 1e4\n"),
              std::string::npos)
        << summary();
}

TEST_F(ReportTest, says_where_there_is_nothing_to_compare)
{
    add("lawn", Family::lawn, {10, 20});
    add("list", Family::sorted, {NAN, NAN});
    EXPECT_NE(summary().find("work                nothing to compare\n"),
              std::string::npos)
        << summary();
}

TEST_F(ReportTest, says_nothing_without_lawn)
{
    add("list", Family::sorted, {1, 2});
    add("wheel", Family::wheel, {1, 2});
    EXPECT_EQ(summary(), "");
}

using Counts = std::vector<unsigned>;

TEST(AffordableTest, first_columns_come_first)
{
    EXPECT_EQ(bench::affordable({1, 10, 100}, 4, 450), (Counts{4, 4, 4}));
    EXPECT_EQ(bench::affordable({1, 10, 100}, 4, 443), (Counts{4, 4, 3}));
    EXPECT_EQ(bench::affordable({1, 10, 100}, 4, 60), (Counts{4, 4, 0}));
    EXPECT_EQ(bench::affordable({1, 10, 100}, 4, 25), (Counts{4, 2, 0}));
    EXPECT_EQ(bench::affordable({1, 10, 100}, 4, INFINITY), (Counts{4, 4, 4}));
    EXPECT_EQ(bench::affordable({1, 10, 100}, 4, -1), (Counts{0, 0, 0}));
    EXPECT_EQ(bench::affordable({1, 10}, 0, INFINITY), (Counts{0, 0}));
}

// The repetitions of each column, when all take `budget_sec`.
std::vector<size_t> repetitions_within(double budget_sec)
{
    Contender contender = {};
    contender.traits.name = "contender";
    Table table;
    table.columns = {{"1e3", {}}, {"1e4", {}}};
    table.rows = {&contender};
    table.budget_sec = budget_sec;
    table.run = [](const Contender &, const bench::Load &) {
        return bench::Result(1);
    };
    bench::Hopeless hopeless;
    bench::Progress progress(10);
    fill(table, 5, hopeless, progress);
    return {table.repetitions(0), table.repetitions(1)};
}

TEST(AffordableTest, each_column_is_run_once_whatever_it_takes)
{
    EXPECT_EQ(repetitions_within(INFINITY), (std::vector<size_t>{5, 5}));
    EXPECT_EQ(repetitions_within(0), (std::vector<size_t>{1, 1}));
}

} // namespace
