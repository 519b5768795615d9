// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn-verify: runs everything, does harm by a plan, ends the run in peace,
// and has its history judged.

#include "commands.h"
#include "judge.h"
#include "periodic.h"
#include "processes.h"
#include "worker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include <dirent.h>
#include <unistd.h>

namespace lawn_verify
{

namespace
{

constexpr int status_violated = 2;

constexpr int64_t ms = 1000;
constexpr int64_t second_us = 1000 * ms;
constexpr int64_t look_us = 50 * ms;
// How long all may take to fire and be answered in the end.
constexpr int64_t drain_us = 180 * second_us;
constexpr int64_t late_us = 60 * second_us;

// Removed in the end, unless it is kept.
class Directory
{
public:
    Directory()
    {
        const char *root = getenv("TMPDIR");
        path_ = std::string(root != nullptr && *root != '\0' ? root : "/tmp") +
                "/lawn-verify-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr) {
            fail("cannot make " + path_ + ": " + strerror(errno));
        }
    }

    ~Directory()
    {
        if (!is_kept_) {
            remove_all(path_);
        }
    }

    Directory(const Directory &) = delete;
    Directory &operator=(const Directory &) = delete;

    const std::string &path() const
    {
        return path_;
    }

    void keep()
    {
        is_kept_ = true;
    }

private:
    static void remove_all(const std::string &path)
    {
        DIR *directory = opendir(path.c_str());
        if (directory == nullptr) {
            unlink(path.c_str());
            return;
        }
        while (const dirent *entry = readdir(directory)) {
            const std::string name = entry->d_name;
            if (name != "." && name != "..") {
                const std::string inner = path + "/" + name;
                if (entry->d_type == DT_DIR) {
                    remove_all(inner);
                } else {
                    unlink(inner.c_str());
                }
            }
        }
        closedir(directory);
        rmdir(path.c_str());
    }

    std::string path_;
    bool is_kept_ = false;
};

// Counts the lines that were added to a history since the last look.
class Watcher
{
public:
    explicit Watcher(const std::string &path) : path_(path)
    {
    }

    void look()
    {
        std::ifstream file(path_);
        file.seekg(at_);
        Event event;
        for (std::string line; std::getline(file, line) && !file.eof();) {
            at_ += static_cast<std::streamoff>(line.size() + 1);
            if (from_line(line, event)) {
                started_ += event.kind == EventKind::started ? 1 : 0;
                delivered_ += event.kind == EventKind::deliver ? 1 : 0;
            }
        }
    }

    uint64_t started() const
    {
        return started_;
    }

    std::string text() const
    {
        return "acknowledged " + std::to_string(started_) + ", delivered " +
               std::to_string(delivered_);
    }

private:
    const std::string path_;
    std::streamoff at_ = 0;
    uint64_t started_ = 0;
    uint64_t delivered_ = 0;
};

struct Options {
    uint64_t seconds = 60;
    uint64_t timers = 0;
    Processes::Sizes sizes;
    bool is_calm = false;
    std::optional<std::string> history;
};

class Verify
{
public:
    Verify(const Options &options, const std::string &directory)
        : options_(options), processes_(directory, options.sizes),
          watcher_(processes_.history()), notes_(processes_.history(), 0)
    {
    }

    // Empty: the run has come to its end.
    std::string run();
    Verdict judge_history(size_t &unread);

    const std::map<std::string, uint64_t> &faults() const
    {
        return faults_;
    }

    std::map<std::string, uint64_t> store_figures()
    {
        return processes_.store().figures();
    }

private:
    struct Wound {
        Fault fault;
        int64_t begun_us; // as in a history
    };

    Settings settings();
    std::string do_harm();
    void mend(const Wound &wound);
    void note(const std::vector<Event> &faults);
    std::string drain();

    const Options &options_;
    Processes processes_;
    Watcher watcher_;
    HistoryWriter notes_;
    Progress progress_;
    std::map<std::string, uint64_t> faults_;
};

void Verify::note(const std::vector<Event> &faults)
{
    for (const Event &fault : faults) {
        notes_.write(fault);
        ++faults_[fault.word.substr(0, fault.word.find(':'))];
    }
}

void Verify::mend(const Wound &wound)
{
    processes_.mend(wound.fault);
    Event event;
    event.kind = EventKind::fault;
    event.time_us = wound.begun_us;
    event.due_us = history_now();
    event.word = std::string(to_string(wound.fault.kind)) + ":" +
                 processes_.victim_name(wound.fault.victim);
    note({event});
}

std::string Verify::do_harm()
{
    const int64_t length_us =
        static_cast<int64_t>(options_.seconds) * second_us;
    // The plan goes on if the timers take longer than the seconds.
    std::vector<Fault> plan;
    Store &store = processes_.store();
    if (!options_.is_calm) {
        plan = make_plan(options_.sizes.seed, processes_.victims(),
                         10 * length_us);
    }
    auto next = plan.begin();
    std::multimap<int64_t, Wound> wounds; // by the time of their mending
    const int64_t begin_us = monotonic_now();
    std::string wrong;
    for (;;) {
        const int64_t at_us = monotonic_now() - begin_us;
        watcher_.look();
        const bool is_over =
            (at_us >= length_us && watcher_.started() >= options_.timers) ||
            at_us >= 10 * length_us;
        for (; !is_over && next != plan.end() && next->at_us <= at_us; ++next) {
            wounds.emplace(next->at_us + next->for_us,
                           Wound{*next, history_now()});
            processes_.strike(*next);
        }
        while (!wounds.empty() && (is_over || wounds.begin()->first <= at_us)) {
            mend(wounds.begin()->second);
            wounds.erase(wounds.begin());
        }
        wrong = store.advance(!is_over && !options_.is_calm);
        note(store.take_faults());
        wrong = wrong.empty() ? processes_.find_ended() : wrong;
        if ((is_over && store.is_whole()) || !wrong.empty()) {
            return wrong;
        }
        if (was_signalled()) {
            return "interrupted";
        }
        progress_.show(std::to_string(at_us / second_us) + " s, " +
                       watcher_.text());
        usleep(static_cast<useconds_t>(look_us));
    }
}

Settings Verify::settings()
{
    Settings settings;
    settings.url = processes_.store().url();
    settings.name_space = verify_space;
    return settings;
}

// Waits until every timer has fired and was answered.
std::string Verify::drain()
{
    struct Answer {
        std::optional<lawn_durable_stats_t> stats;
    } answer;
    const auto on_stats = [](void *arg, const lawn_durable_stats_t *stats) {
        static_cast<Answer *>(arg)->stats = *stats;
    };
    Client client(settings());
    const int64_t until_us = monotonic_now() + drain_us;
    while (monotonic_now() < until_us) {
        // Starts a pump again that has not reached the store in time.
        const std::string wrong = processes_.find_ended();
        if (!wrong.empty()) {
            return wrong;
        }
        answer.stats.reset();
        require_success(lawn_durable_stats(client.get(), on_stats, &answer),
                        nullptr);
        while (!answer.stats) {
            lawn_durable_wait(client.get(), UINT64_MAX);
        }
        if (answer.stats->status == LAWN_OK && answer.stats->pending == 0 &&
            answer.stats->in_flight == 0) {
            // Nobody has removed a key, whatever pumps have seen meanwhile.
            const char *const losses = lawn_durable_losses(client.get());
            return losses != nullptr ? std::string("a false alarm: ") + losses
                                     : "";
        }
        if (was_signalled()) {
            return "interrupted";
        }
        watcher_.look();
        progress_.show("draining, " + watcher_.text());
        client.run([] { return false; }, monotonic_now() + look_us);
    }
    // The judge says what is lost.
    return "";
}

std::string Verify::run()
{
    const bool is_replicated = options_.sizes.kind == Processes::Kind::failover;
    PeriodicTimers periodic(settings(), is_replicated ? 1 : LAWN_DURABLE_FSYNC,
                            notes_);
    std::string wrong = periodic.start();
    if (wrong.empty()) {
        wrong = do_harm();
    }
    if (wrong.empty()) {
        wrong = periodic.stop();
    }
    if (wrong.empty()) {
        progress_.show("ending the clients, " + watcher_.text());
        wrong = processes_.end_clients();
    }
    if (wrong.empty()) {
        wrong = drain();
    }
    if (wrong.empty()) {
        wrong = processes_.end_others();
    }
    progress_.show("");
    return wrong;
}

Verdict Verify::judge_history(size_t &unread)
{
    std::vector<Event> events;
    unread = read_history(processes_.history(), events);
    Limits limits;
    limits.duplicates_per_fault =
        options_.sizes.consumers * uint64_t(verify_in_flight);
    limits.late_us = late_us;
    limits.recovery_us = late_us;
    return judge(events, limits);
}

const char *const always_shown[] = {"lost",    "early",   "stopped",
                                    "doubled", "refired", "gap"};

void print_verdict(const Verdict &verdict, Verify &verify,
                   const Options &options, bool is_json)
{
    const double percents[] = {50, 99, 99.9, 100};
    const char *const names[] = {"lateness_p50_ms", "lateness_p99_ms",
                                 "lateness_p999_ms", "lateness_max_ms"};
    Table table;
    Json json;
    const auto row = [&](const std::string &name, uint64_t value) {
        table.row(name, value);
        json.number(name.c_str(), value);
    };
    row("seed", options.sizes.seed);
    for (const auto &[kind, count] : verify.faults()) {
        row("faults_" + kind, count);
    }
    for (const auto &[name, value] : verify.store_figures()) {
        row(name, value);
    }
    row("acknowledged", verdict.acknowledged);
    row("unheard", verdict.unheard);
    row("acknowledged_stops", verdict.stopped);
    row("replaced", verdict.replaced);
    row("delivered", verdict.delivered);
    row("occurrences", verdict.occurrences);
    row("retried", verdict.retried);
    row("duplicates", verdict.duplicates);
    row("forgotten", verdict.forgotten);
    row("forgotten_stops", verdict.forgotten_stops);
    row("rolled_back", verdict.rolled_back);
    row("occurrences_again", verdict.occurrences_again);
    for (const char *name : always_shown) {
        row(name, verdict.count(name));
    }
    for (const auto &[name, count] : verdict.violations) {
        if (std::find(std::begin(always_shown), std::end(always_shown), name) ==
            std::end(always_shown)) {
            row("violation_" + name, count);
        }
    }
    for (size_t i = 0; i < 4; ++i) {
        const double value =
            static_cast<double>(verdict.lateness(percents[i])) / 1e3;
        char text[40];
        snprintf(text, sizeof(text), "%.3f", value);
        table.row(names[i], text);
        json.real(names[i], value);
    }
    table.row("verdict", verdict.is_good() ? "good" : "violated");
    json.text("verdict", verdict.is_good() ? "good" : "violated");
    if (is_json) {
        print_line(json.str());
    } else {
        table.print();
    }
}

Options take_options(Arguments &arguments)
{
    Options options;
    options.seconds = arguments.take_number("--seconds", 1, 86400).value_or(60);
    options.sizes.seed =
        arguments.take_number("--seed", 0, INT64_MAX / 10).value_or(1);
    options.sizes.rate =
        arguments.take_number("--rate", 1, 100000).value_or(500);
    options.timers =
        arguments.take_number("--timers", 1, INT64_MAX / 10).value_or(0);
    options.is_calm = arguments.take_flag("--calm");
    const bool is_cluster = arguments.take_flag("--cluster");
    const bool is_failover = arguments.take_flag("--failover");
    if (is_cluster && is_failover) {
        fail("--cluster and --failover are two stores: one of them");
    }
    options.sizes.kind = is_cluster    ? Processes::Kind::cluster
                         : is_failover ? Processes::Kind::failover
                                       : Processes::Kind::one_server;
    options.sizes.has_clocks = arguments.take_flag("--clocks");
    options.history = arguments.take_text("--history");
    arguments.finish();
    return options;
}

void copy_history(const std::string &from, const std::string &to)
{
    std::ifstream in(from);
    std::ofstream out(to);
    if (!(out << in.rdbuf()) || !out.flush()) {
        fail("cannot write " + to);
    }
}

} // namespace

int run_verify(const Settings &settings, Arguments &arguments)
{
    if (!settings.url.empty() || !settings.name_space.empty()) {
        fail("verify has a store of its own: no --redis, no --namespace");
    }
    const Options options = take_options(arguments);
    catch_signals();
    Directory directory;
    Verify verify(options, directory.path());
    const std::string wrong = verify.run();
    const std::string history = directory.path() + "/history.txt";
    if (options.history) {
        copy_history(history, *options.history);
    }
    size_t unread = 0;
    const Verdict verdict = verify.judge_history(unread);
    // A run that has not come to its end loses what it had in flight.
    if (wrong.empty()) {
        print_verdict(verdict, verify, options, settings.json);
        for (const std::string &example : verdict.examples) {
            complain(example);
        }
    }
    if (!wrong.empty() || unread != 0 || !verdict.is_good()) {
        if (!was_signalled()) {
            directory.keep();
        }
        complain((!wrong.empty() ? wrong
                  : unread != 0  ? "the history has lines that are no events"
                                 : "the promise was broken") +
                 "; the history is in " + directory.path());
        return wrong.empty() ? status_violated : EXIT_FAILURE;
    }
    return 0;
}

} // namespace lawn_verify
