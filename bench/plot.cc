// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Plots; see plot.h. gnuplot is given its script, data included, on its
// standard input. Both axes are logarithmic: the figures span four decades. A
// curve has its name where it ends. Curves differ by colour, dashes and marks,
// so that they can be told apart in grey print, too. A bar goes from the least
// repetition to the greatest.

#include "plot.h"

#include "machine.h"
#include "series.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <sys/stat.h>

namespace bench
{

namespace
{

// Of the picture, in pixels.
constexpr double width = 960;
constexpr double height = 640;
constexpr double line_height = 16;
constexpr double left = 105;
constexpr double right = 215; // for the names
constexpr double top = 70;
constexpr double bottom = 60; // and the lines of the caption

std::string quoted(const std::string &text)
{
    std::string result = "'";
    for (const char c : text) {
        result += c == '\'' ? "''" : std::string(1, c);
    }
    return result + "'";
}

// Lawn and the floor look the same in all plots; NULL for the others.
const char *style_of_its_own(const std::string &name)
{
    constexpr const char *styles[][2] = {
        {"lawn", "lc rgb '#000000' lw 3.5 pt 7 ps 1.1"},
        {"lawn-pause", "lc rgb '#d00000' lw 2.5 dt 2 pt 5 ps 1.1"},
        {"lawn-queue", "lc rgb '#8000c0' lw 2.5 dt 4 pt 9 ps 1.2"},
        {"floor", "lc rgb '#a0a0a0' lw 3.5 dt 3 pt 0 ps 1.1"},
    };
    for (const auto &[whose, style] : styles) {
        if (name == whose) {
            return style;
        }
    }
    return nullptr;
}

// After Okabe and Ito, whose colours the colour-blind can tell apart.
std::string line_style(size_t others)
{
    constexpr const char *styles[most_series] = {
        "lc rgb '#0072b2' dt 1 pt 4",  "lc rgb '#e69f00' dt 1 pt 8",
        "lc rgb '#009e73' dt 5 pt 6",  "lc rgb '#56b4e9' dt 1 pt 10",
        "lc rgb '#cc79a7' dt 2 pt 12", "lc rgb '#7f7f7f' dt 1 pt 1",
        "lc rgb '#8c6d31' dt 4 pt 2",  "lc rgb '#404040' dt 3 pt 14",
    };
    return std::string(styles[others]) + " lw 1.8 ps 1.1";
}

std::vector<std::string> styles_of(const std::vector<Curve> &curves)
{
    std::vector<std::string> styles;
    size_t others = 0;
    for (const Curve &curve : curves) {
        const char *const own = style_of_its_own(curve.contender->traits.name);
        styles.push_back(own ? own : line_style(others++));
    }
    return styles;
}

// Of a logarithmic axis.
struct Range {
    double from;
    double to;

    // 0 at `from`, 1 at `to`.
    double place(double value) const
    {
        return std::log(value / from) / std::log(to / from);
    }
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

double x_of(const Column &column)
{
    return strtod(column.head.c_str(), nullptr);
}

Range x_range_of(const Table &table)
{
    return {x_of(table.columns.front()) / 1.15,
            x_of(table.columns.back()) * 1.15};
}

// The name of a curve, beside its last point within the plot.
struct Label {
    size_t curve;
    size_t column;
    double point; // where that point is, as Range::place()
    double text;  // where the name is to be
    std::string name;
};

std::vector<Label> labels_of(const std::vector<Curve> &curves, const Range &y)
{
    std::vector<Label> labels;
    for (size_t i = 0; i < curves.size(); ++i) {
        const std::vector<double> &values = curves[i].values;
        size_t end = values.size();
        while (end != 0 && !(values[end - 1] <= y.to)) {
            --end;
        }
        if (end == 0) {
            continue;
        }
        const double last = values[end - 1];
        std::string name = curves[i].contender->traits.name;
        if (end == values.size()) {
            char text[32];
            snprintf(text, sizeof(text), "  %.*f", last < 100 ? 1 : 0, last);
            name += text;
        } else if (std::isnan(values[end])) {
            const Cell &cell = (*curves[i].cells)[end];
            name += cell.is_too_slow ? ", then too slow" : ", then n/a";
        } else {
            name += ", then off the scale";
        }
        labels.push_back({i, end - 1, y.place(last), y.place(last), name});
    }
    return labels;
}

// Moves the names beside one column apart: those that would overlap form a
// block, around the middle of where they should be.
void spread(std::vector<Label *> labels, double gap)
{
    std::sort(labels.begin(), labels.end(),
              [](const Label *a, const Label *b) { return a->text < b->text; });
    struct Block {
        double middle;
        size_t count;
    };
    std::vector<Block> blocks;
    const auto half = [&](const Block &block) {
        return gap * static_cast<double>(block.count) / 2;
    };
    for (const Label *const label : labels) {
        Block block = {label->text, 1};
        while (!blocks.empty() && blocks.back().middle + half(blocks.back()) >
                                      block.middle - half(block)) {
            const Block &below = blocks.back();
            const auto ours = static_cast<double>(block.count);
            const auto theirs = static_cast<double>(below.count);
            block = {(block.middle * ours + below.middle * theirs) /
                         (ours + theirs),
                     block.count + below.count};
            block.middle =
                std::clamp(block.middle, half(block), 1 - half(block));
            blocks.pop_back();
        }
        blocks.push_back(block);
    }
    auto label = labels.begin();
    for (const Block &block : blocks) {
        for (size_t i = 0; i < block.count; ++i) {
            (*label++)->text = block.middle - half(block) +
                               gap * (static_cast<double>(i) + 0.5);
        }
    }
}

std::string joined(const std::vector<std::string> &names)
{
    std::string text;
    for (const std::string &name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

// What is not in the plot, and why, in lines.
std::vector<std::string> caption_of(const Series &series, const Range &y)
{
    std::string text;
    if (!series.left_out.empty()) {
        text = "Shown are Lawn, the floor, and of each family of schemes the "
               "one with the least geometric mean. Not shown: " +
               joined(series.left_out) + ". ";
    }
    std::vector<std::string> outside;
    for (const Curve &curve : series.shown) {
        if (std::none_of(curve.values.begin(), curve.values.end(),
                         [&](double value) { return value <= y.to; })) {
            outside.emplace_back(curve.contender->traits.name);
        }
    }
    if (!outside.empty()) {
        text += "Off the scale: " + joined(outside) + ". ";
    }
    if (!series.empty.empty()) {
        text += "Without figures: " + joined(series.empty) + ". ";
    }
    constexpr size_t longest = 140;
    std::vector<std::string> lines;
    while (!text.empty()) {
        const size_t end =
            text.size() <= longest ? text.size() - 1 : text.rfind(' ', longest);
        lines.push_back(text.substr(0, end));
        text.erase(0, end + 1);
    }
    return lines;
}

// A decade has one tic, or three where there are not two decades.
std::string tics_of(const Range &y)
{
    const bool is_long = y.to / y.from >= 100;
    std::string tics;
    for (double decade = std::pow(10, std::floor(std::log10(y.from)));
         decade <= y.to; decade *= 10) {
        for (const double step : {1, 2, 5}) {
            if (step == 1 || !is_long) {
                char text[32];
                snprintf(text, sizeof(text), "%s%g", tics.empty() ? "" : ", ",
                         step * decade);
                tics += text;
            }
        }
    }
    return tics;
}

// A line of text at a place in pixels from the top left.
void write_text(FILE *script, double x, double y, int size,
                const std::string &text)
{
    fprintf(script,
            "set label %s at screen %.4f, screen %.4f left noenhanced "
            "font ',%d'\n",
            quoted(text).c_str(), x / width, 1 - y / height, size);
}

void write_frame(FILE *script, const Table &table, Statistic statistic,
                 const Range &y, const std::vector<std::string> &caption)
{
    const Range x = x_range_of(table);
    const size_t repetitions = table.repetitions();
    const double below =
        bottom + line_height * static_cast<double>(caption.size());
    fprintf(script,
            "set encoding utf8\n"
            "set logscale xy\n"
            "set format x '10^{%%L}'\n"
            "set xrange [%g:%g]\n"
            "set yrange [%g:%g]\n"
            "set xlabel %s\n"
            "set ylabel %s\n"
            "unset key\n"
            "set lmargin at screen %.4f\n"
            "set rmargin at screen %.4f\n"
            "set tmargin at screen %.4f\n"
            "set bmargin at screen %.4f\n"
            "set grid xtics ytics lt 1 lc rgb '#cccccc' lw 0.7\n"
            "set border 3 lc rgb '#404040'\n"
            "set tics nomirror\n"
            "set ytics (%s)\n",
            x.from, x.to, y.from, y.to,
            quoted(table.axis + " (logarithmic)").c_str(),
            quoted(table.unit + " (logarithmic)").c_str(), left / width,
            1 - right / width, 1 - top / height, below / height,
            tics_of(y).c_str());
    write_text(script, 15, 22, 16,
               table.name + (statistic == Statistic::p99 ? ", p99: " : ": ") +
                   table.what);
    write_text(script, 15, 46, 12,
               machine() + "; median of " + std::to_string(repetitions) +
                   (repetitions == 1 ? " repetition" : " repetitions") +
                   (statistic == Statistic::figure && repetitions > 1
                        ? ", bars from the least to the greatest"
                        : "") +
                   "; less is better");
    for (size_t i = 0; i < caption.size(); ++i) {
        const auto from_below = static_cast<double>(caption.size() - i);
        write_text(script, 15, height - line_height * (from_below - 0.3), 11,
                   caption[i]);
    }
}

void write_labels(FILE *script, const Table &table, std::vector<Label> labels,
                  const std::vector<std::string> &styles, double plot_height)
{
    for (size_t column = 0; column < table.columns.size(); ++column) {
        std::vector<Label *> beside;
        for (Label &label : labels) {
            if (label.column == column) {
                beside.push_back(&label);
            }
        }
        spread(beside, line_height / plot_height);
        const double x = x_range_of(table).place(x_of(table.columns[column]));
        for (const Label *const label : beside) {
            const std::string &style = styles[label->curve];
            fprintf(
                script,
                "set arrow from graph %.4f, graph %.4f to graph %.4f, "
                "graph %.4f nohead %s lw 1\n"
                "set label %s at graph %.4f, graph %.4f left noenhanced "
                "front\n",
                x + 0.01, label->point, x + 0.045, label->text,
                style.substr(0, style.find('\'', style.find('#')) + 1).c_str(),
                quoted(label->name).c_str(), x + 0.055, label->text);
        }
    }
}

void write_script(FILE *script, const Table &table, Statistic statistic,
                  const Series &series, const std::string &path)
{
    const std::vector<Curve> &curves = series.shown;
    const std::vector<std::string> styles = styles_of(curves);
    const Range y = y_range_of(curves);
    const std::vector<std::string> caption = caption_of(series, y);
    write_frame(script, table, statistic, y, caption);
    write_labels(script, table, labels_of(curves, y), styles,
                 height - top - bottom -
                     line_height * static_cast<double>(caption.size()));
    std::string plot;
    for (size_t i = 0; i < curves.size(); ++i) {
        const std::string block = "$d" + std::to_string(i);
        fprintf(script, "%s << EOD\n", block.c_str());
        for (size_t column = 0; column < table.columns.size(); ++column) {
            const double value = curves[i].values[column];
            if (!std::isnan(value)) {
                const Cell &cell = (*curves[i].cells)[column];
                fprintf(script, "%s %.6g %.6g %.6g\n",
                        table.columns[column].head.c_str(), value, cell.least(),
                        cell.greatest());
            }
        }
        fprintf(script, "EOD\n");
        plot += (plot.empty() ? "plot " : ", \\\n ") + block +
                (statistic == Statistic::figure ? " with yerrorlines "
                                                : " with linespoints ") +
                styles[i];
    }
    const char *const terminals[][2] = {
        {"png", "pngcairo size 1440,960 font 'Sans,13' fontscale 1.125 "
                "linewidth 1.5 pointscale 1.5 background 'white'"},
        {"svg", "svg size 960,640 font 'sans-serif,13' background 'white'"}};
    for (const auto &[suffix, terminal] : terminals) {
        fprintf(script, "set terminal %s\nset output %s\n%s\n", terminal,
                quoted(path + "." + suffix).c_str(), plot.c_str());
    }
}

void run_gnuplot(const Table &table, Statistic statistic,
                 const std::string &path)
{
    const Series series = choose_series(table, statistic);
    if (series.shown.empty()) {
        return;
    }
    FILE *const script = popen("gnuplot", "w");
    if (!script) {
        throw std::runtime_error("cannot run gnuplot");
    }
    write_script(script, table, statistic, series, path);
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
