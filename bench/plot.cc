// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Plots; see plot.h. gnuplot is given its script, data included, on its
// standard input. Both axes are logarithmic: the figures span four decades.
// Lawn stands out in black, red and violet, and the floor is grey; the others
// differ by colour, dashes and marks, so that two dozen can be told apart, in
// grey print too.

#include "plot.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <sys/stat.h>

namespace bench
{

namespace
{

// After Okabe and Ito, which the colour-blind can tell apart.
constexpr const char *colours[] = {"#0072b2", "#e69f00", "#009e73", "#56b4e9",
                                   "#cc79a7", "#7f7f7f", "#8c6d31"};

std::string quoted(const std::string &text)
{
    std::string result = "'";
    for (const char c : text) {
        result += c == '\'' ? "''" : std::string(1, c);
    }
    return result + "'";
}

// Of those that stand out; NULL for the others.
const char *style_of_its_own(const std::string &name)
{
    constexpr const char *styles[][2] = {
        {"lawn", "lc rgb '#000000' lw 3.5 pt 7 ps 1.1"},
        {"lawn-pause", "lc rgb '#d00000' lw 3.5 pt 5 ps 1.1"},
        {"lawn-queue", "lc rgb '#8000c0' lw 3.5 pt 9 ps 1.1"},
        {"floor", "lc rgb '#a0a0a0' lw 3.5 dt 2 pt 0 ps 1.1"},
    };
    for (const auto &[whose, style] : styles) {
        if (name == whose) {
            return style;
        }
    }
    return nullptr;
}

std::string line_style(size_t others)
{
    constexpr size_t count = sizeof(colours) / sizeof(*colours);
    const unsigned marks[] = {4, 6, 8, 10, 12, 1, 2};
    return std::string("lc rgb '") + colours[others % count] + "' lw 1.8 dt " +
           std::to_string(1 + others / count) + " pt " +
           std::to_string(marks[(others / count + others) % 7]) + " ps 0.9";
}

struct Curve {
    std::string name;
    std::string style;
    std::vector<double> values; // by column; NaN: none
};

// In the order in which they end at the right, as the legend shows them.
std::vector<Curve> curves_of(const Table &table, Statistic statistic)
{
    std::vector<Curve> curves;
    size_t others = 0;
    for (size_t row = 0; row < table.rows.size(); ++row) {
        Curve curve;
        curve.name = table.rows[row]->traits.name;
        const char *const own = style_of_its_own(curve.name);
        curve.style = own ? own : line_style(others);
        others += own == nullptr;
        bool is_empty = true;
        for (const Cell &cell : table.cells[row]) {
            const double value = cell.median(statistic);
            // There is no logarithm of 0.
            curve.values.push_back(value > 0 ? value : NAN);
            is_empty = is_empty && !(value > 0);
        }
        if (!is_empty) {
            curves.push_back(curve);
        }
    }
    const auto rank = [](const Curve &curve) {
        const double last = curve.values.back();
        return std::isnan(last) ? HUGE_VAL : last;
    };
    std::stable_sort(
        curves.begin(), curves.end(),
        [&](const Curve &a, const Curve &b) { return rank(a) > rank(b); });
    return curves;
}

struct Range {
    double from;
    double to;
};

// What is thousands of times slower than the best leaves at the top: at its
// scale nothing else could be told apart.
Range y_range_of(const std::vector<Curve> &curves)
{
    double least = NAN;
    double greatest = NAN;
    for (const Curve &curve : curves) {
        for (const double value : curve.values) {
            least = std::fmin(least, value);
            greatest = std::fmax(greatest, value);
        }
    }
    return {least / 1.5, std::fmin(greatest * 1.5, least * 3000)};
}

Range x_range_of(const Table &table)
{
    const auto value = [](const Column &column) {
        return strtod(column.head.c_str(), nullptr);
    };
    return {value(table.columns.front()) / 1.15,
            value(table.columns.back()) * 1.15};
}

void write_frame(FILE *script, const Table &table, Statistic statistic, Range y)
{
    const Range x = x_range_of(table);
    const bool is_p99 = statistic == Statistic::p99;
    const std::string title =
        table.name + (is_p99 ? ", p99: " : ": ") + table.what;
    fprintf(script,
            "set encoding utf8\n"
            "set logscale xy\n"
            "set format xy '10^{%%L}'\n"
            "set xrange [%g:%g]\n"
            "set yrange [%g:%g]\n"
            "set xlabel %s\n"
            "set ylabel %s\n"
            "set title %s noenhanced\n"
            "set key outside right top Left reverse noenhanced samplen 3\n"
            "set grid xtics ytics lt 1 lc rgb '#bbbbbb' lw 0.7\n"
            "set border 3 lc rgb '#404040'\n"
            "set tics nomirror\n",
            x.from, x.to, y.from, y.to, quoted(table.axis).c_str(),
            quoted(table.unit).c_str(), quoted(title).c_str());
}

void write_script(FILE *script, const Table &table, Statistic statistic,
                  const std::vector<Curve> &curves, const std::string &path)
{
    write_frame(script, table, statistic, y_range_of(curves));
    std::string plot;
    for (size_t i = 0; i < curves.size(); ++i) {
        const std::string block = "$d" + std::to_string(i);
        fprintf(script, "%s << EOD\n", block.c_str());
        for (size_t column = 0; column < table.columns.size(); ++column) {
            const double value = curves[i].values[column];
            if (!std::isnan(value)) {
                fprintf(script, "%s %.6g\n", table.columns[column].head.c_str(),
                        value);
            }
        }
        fprintf(script, "EOD\n");
        plot += (plot.empty() ? "plot " : ", \\\n ") + block +
                " with linespoints " + curves[i].style + " title " +
                quoted(curves[i].name);
    }
    const char *const terminals[][2] = {
        {"png", "pngcairo size 1280,800 font 'Sans,13' background 'white'"},
        {"svg", "svg size 960,600 font 'sans-serif,12' background 'white'"}};
    for (const auto &[suffix, terminal] : terminals) {
        fprintf(script, "set terminal %s\nset output %s\n%s\n", terminal,
                quoted(path + "." + suffix).c_str(), plot.c_str());
    }
}

void run_gnuplot(const Table &table, Statistic statistic,
                 const std::string &path)
{
    const std::vector<Curve> curves = curves_of(table, statistic);
    if (curves.empty()) {
        return;
    }
    FILE *const script = popen("gnuplot", "w");
    if (!script) {
        throw std::runtime_error("cannot run gnuplot");
    }
    write_script(script, table, statistic, curves, path);
    if (pclose(script) != 0) {
        throw std::runtime_error("gnuplot could not plot " + path);
    }
}

} // namespace

void prepare_plots(const char *directory)
{
    // A gnuplot that dies is told by its status.
    signal(SIGPIPE, SIG_IGN);
    if (system("gnuplot --version >/dev/null 2>&1") != 0) {
        throw std::runtime_error(
            "--plot needs gnuplot (Debian: gnuplot-nox), and there is none");
    }
    struct stat status = {};
    if (mkdir(directory, 0777) != 0 &&
        (errno != EEXIST || stat(directory, &status) != 0 ||
         !S_ISDIR(status.st_mode))) {
        throw std::runtime_error(std::string("cannot make the directory ") +
                                 directory + ": " + strerror(errno));
    }
}

void plot(const Table &table, const char *directory)
{
    if (table.columns.size() < 2) {
        fprintf(stderr, "lawn_bench: no plot of %s: it has one column\n",
                table.name.c_str());
        return;
    }
    const std::string path = std::string(directory) + "/" + table.name;
    run_gnuplot(table, Statistic::figure, path);
    if (table.has(Statistic::p99)) {
        run_gnuplot(table, Statistic::p99, path + "-p99");
    }
}

} // namespace bench
