// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The plot; see report.h. gnuplot is given its script, data included, on its
// standard input. Both axes are logarithmic, and nearer to the origin is
// better. What was never spurious is drawn at the left edge. Contenders differ
// by colour and mark, so that they can be told apart in grey print, too.

#include "rto/report.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace bench::rto
{

namespace
{

// Stands for 0 on a logarithmic axis.
constexpr double least_spurious = .1;

struct Point {
    double spurious;
    double stall;
};

std::string quoted(const std::string &text)
{
    std::string result = "'";
    for (const char c : text) {
        result += c == '\'' ? "''" : std::string(1, c);
    }
    return result + "'";
}

// After Okabe and Ito, whose colours the colour-blind can tell apart. Lawn and
// the oracle look the same in all plots.
std::string style_of(const std::string &name, size_t others)
{
    if (name == "lawn") {
        return "lc rgb '#000000' pt 7 ps 1.6";
    }
    if (name == "lawn+ask") {
        return "lc rgb '#d00000' pt 5 ps 1.4";
    }
    if (name == "oracle") {
        return "lc rgb '#a0a0a0' pt 3 ps 1.6";
    }
    constexpr const char *styles[] = {
        "lc rgb '#0072b2' pt 4",  "lc rgb '#e69f00' pt 8",
        "lc rgb '#009e73' pt 6",  "lc rgb '#56b4e9' pt 10",
        "lc rgb '#cc79a7' pt 12", "lc rgb '#7f7f7f' pt 1",
        "lc rgb '#8c6d31' pt 2",  "lc rgb '#404040' pt 14",
    };
    return std::string(styles[others % std::size(styles)]) + " lw 2 ps 1.4";
}

bool is_plotted(const Cell &cell)
{
    return !cell.variant->path->rules.is_aside;
}

size_t plotted(const std::vector<Cell> &cells)
{
    return static_cast<size_t>(
        std::count_if(cells.begin(), cells.end(), is_plotted));
}

// The geometric mean of stalls: no path outweighs the others.
Point mean_of(const std::vector<Cell> &cells, size_t contender)
{
    Point sum = {0, 0};
    double count = 0;
    for (const Cell &cell : cells) {
        const Figures &of = cell.figures[contender];
        if (is_plotted(cell) && of.p50 > 0) {
            sum.spurious += of.spurious;
            sum.stall += std::log(of.p50);
            ++count;
        }
    }
    if (count == 0) {
        throw std::runtime_error("nothing to plot");
    }
    return {std::max(sum.spurious / count, least_spurious),
            std::exp(sum.stall / count)};
}

void write_script(FILE *script, const Plan &plan,
                  const std::vector<Cell> &cells, const char *path)
{
    fprintf(script,
            "set terminal svg size 960,640 font 'sans-serif,13' background "
            "'white'\n"
            "set output %s\n"
            "set encoding utf8\n"
            "set logscale xy\n"
            "set xlabel 'needless retransmissions in 10,000 messages without "
            "loss (logarithmic; %g: none)'\n"
            "set ylabel 'median stall of a lost message, round trips "
            "(logarithmic)'\n"
            "set title 'means of %zu cells; loss %g; less is better'\n"
            "set yrange [1:*]\n"
            "set key outside right top Left reverse noenhanced\n"
            "set grid xtics ytics lt 1 lc rgb '#cccccc' lw 0.7\n"
            "set border 3 lc rgb '#404040'\n"
            "set tics nomirror\n"
            "set offsets graph 0.05, graph 0.05, graph 0.05, graph 0.05\n",
            quoted(path).c_str(), least_spurious, plotted(cells),
            plan.setting.loss);
    std::string plot;
    size_t others = 0;
    for (size_t i = 0; i < plan.kinds.size(); ++i) {
        const Point point = mean_of(cells, i);
        fprintf(script, "$d%zu << EOD\n%.6g %.6g\nEOD\n", i, point.spurious,
                point.stall);
        const std::string name = plan.kinds[i]->name;
        plot += (plot.empty() ? "plot $d" : ", \\\n $d") + std::to_string(i) +
                " with points " + style_of(name, others) + " title " +
                quoted(name);
        const bool has_own = name == "oracle" || name.find("lawn") == 0;
        others += !has_own;
    }
    fprintf(script, "%s\n", plot.c_str());
}

} // namespace

void prepare_plot()
{
    // A gnuplot that dies is told by its status.
    signal(SIGPIPE, SIG_IGN);
    if (system("gnuplot --version >/dev/null 2>&1") != 0) {
        throw std::runtime_error(
            "--plot needs gnuplot (Debian: gnuplot-nox), and there is none");
    }
}

void write_plot(const Plan &plan, const std::vector<Cell> &cells,
                const char *path)
{
    FILE *const script = popen("gnuplot", "w");
    if (!script) {
        throw std::runtime_error("cannot run gnuplot");
    }
    write_script(script, plan, cells, path);
    if (pclose(script) != 0) {
        throw std::runtime_error(std::string("gnuplot could not plot ") + path);
    }
}

} // namespace bench::rto
