// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See page.h. The data is JSON. Times are ns, each as the difference to the one
// before, which keeps a page of 100,000 events to a few megabytes.

#include "page.h"

#include "json.h"

namespace trace_file
{

namespace
{

// Appends an array of what `value` says of each.
template <class Items, class Value>
void append_array(std::string *out, const Items &items, Value value)
{
    *out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
        *out += i == 0 ? "" : ",";
        *out += std::to_string(value(items[i]));
    }
    *out += ']';
}

// The same of times, which do not go back.
template <class Items, class Value>
void append_times(std::string *out, const Items &items, Value time)
{
    Time before = 0;
    append_array(out, items, [&](const auto &item) {
        const Time step = time(item) - before;
        before = time(item);
        return step;
    });
}

void append_points(std::string *out, const char *name,
                   const std::vector<Point> &points)
{
    *out += std::string("\"") + name + "\":[";
    append_times(out, points, [](const Point &p) { return p.time; });
    *out += ',';
    append_array(out, points, [](const Point &p) { return p.value; });
    *out += "],\n";
}

void append_connection(std::string *out, const Connection &c)
{
    const auto &marks = c.marks;
    *out += "{\"name\":";
    append_name(out, c.name);
    *out += ",\"keepalive\":";
    append_name(out, c.keepalive);
    *out += ",\"marks\":[";
    append_times(out, marks, [](const Marked &m) { return m.time; });
    *out += ',';
    append_array(out, marks,
                 [](const Marked &m) { return static_cast<int>(m.mark); });
    *out += ',';
    append_array(out, marks, [](const Marked &m) { return m.value; });
    *out += "],\"metrics\":[";
    append_times(out, c.metrics, [](const Metrics &m) { return m.time; });
    *out += ',';
    append_array(out, c.metrics, [](const Metrics &m) { return m.rto; });
    *out += ',';
    append_array(out, c.metrics, [](const Metrics &m) { return m.rtt; });
    *out += "]}";
}

void append_timer(std::string *out, const Timer &timer, Time end)
{
    const auto &runs = timer.runs;
    *out += "{\"name\":";
    append_name(out, timer.name);
    *out += ",\"runs\":[";
    append_times(out, runs, [](const Timer::Run &r) { return r.start; });
    *out += ',';
    append_array(out, runs, [&](const Timer::Run &r) {
        return (r.end == never ? end : r.end) - r.start;
    });
    *out += ',';
    // How late it fired; -1: it did not.
    append_array(out, runs, [](const Timer::Run &r) {
        return !r.fired             ? int64_t{-1}
               : r.end > r.deadline ? static_cast<int64_t>(r.end - r.deadline)
                                    : int64_t{0};
    });
    *out += "]}";
}

template <class Items, class Append>
void append_list(std::string *out, const char *name, const Items &items,
                 Append append)
{
    *out += std::string("\"") + name + "\":[\n";
    for (size_t i = 0; i < items.size(); ++i) {
        *out += i == 0 ? "" : ",\n";
        append(items[i]);
    }
    *out += "]";
}

void replace(std::string *text, const std::string &mark, const std::string &by)
{
    const size_t at = text->find(mark);
    text->replace(at, mark.size(), by);
}

} // namespace

std::string json_of(const Model &model, const std::string &title)
{
    std::string out = "{\"title\":";
    append_quoted(&out, title);
    out += ",\"end\":" + std::to_string(model.end);
    out += ",\"budget\":" + std::to_string(model.budget);
    out += ",\"events\":" + std::to_string(model.events);
    out += ",\"marks\":[";
    for (unsigned i = 0; i < static_cast<unsigned>(Mark::count); ++i) {
        out += i == 0 ? "" : ",";
        append_quoted(&out, name_of(static_cast<Mark>(i)));
    }
    out += "],\n";
    append_points(&out, "gaps", model.gaps);
    append_points(&out, "late", model.late);
    append_points(&out, "backlog", model.backlog);
    append_points(&out, "stalls", model.stalls);
    append_list(&out, "connections", model.connections,
                [&](const Connection &c) { append_connection(&out, c); });
    out += ",\n";
    append_list(&out, "timers", model.timers, [&](const Timer &timer) {
        append_timer(&out, timer, model.end);
    });
    out += "}";
    return out;
}

std::string page_of(const Model &model, const std::string &title)
{
    std::string page = page_html;
    replace(&page, "/* page.css */", page_css);
    // The data last: the mark stands before the scripts, so nothing that was
    // put in is searched.
    replace(&page, "/* scripts */", page_script);
    replace(&page, "DATA_OF_THE_TRACE", json_of(model, title));
    return page;
}

} // namespace trace_file
