// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See processes.h.

#include "processes.h"

#include "common.h"
#include "server.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lawn_verify
{

namespace
{

constexpr int64_t second_us = 1000000;

// The library by which the clocks of a process are set.
std::string find_faketime()
{
    glob_t found;
    std::string path;
    if (glob("/usr/lib*/{,*/}faketime/libfaketimeMT.so.1", GLOB_BRACE, nullptr,
             &found) == 0) {
        path = found.gl_pathv[0];
    }
    globfree(&found);
    if (path.empty()) {
        fail("--clocks needs libfaketime, which is not below /usr/lib (Debian: "
             "libfaketime)");
    }
    return path;
}

std::unique_ptr<Store> make_store(const std::string &directory,
                                  const Processes::Sizes &sizes)
{
    switch (sizes.kind) {
    case Processes::Kind::cluster:
        return make_cluster(directory, sizes.seed);
    case Processes::Kind::failover:
        return make_failover(directory, sizes.seed);
    case Processes::Kind::one_server:
        break;
    }
    return make_one_server(directory);
}

} // namespace

Processes::Processes(const std::string &directory, const Sizes &sizes)
    : directory_(directory), sizes_(sizes),
      faketime_(sizes.has_clocks ? find_faketime() : ""),
      store_(make_store(directory, sizes))
{
    add(Role::pump, "pump", sizes.pumps);
    add(Role::consumer, "consumer", sizes.consumers);
    add(Role::client, "client", sizes.clients);
    if (store_->has_links()) {
        start_proxy();
    }
    if (store_->shards() != 0) {
        Settings settings;
        settings.url = store_->url();
        settings.name_space = verify_space;
        lawn_durable_params_t params = {};
        params.shards = store_->shards();
        Client(settings, params).connect();
    }
    for (const auto &member : members_) {
        start(*member);
    }
}

Processes::~Processes()
{
    for (const auto &member : members_) {
        kill(*member);
    }
    if (proxy_input_ >= 0) {
        close(proxy_input_); // the end of the proxy
        const int64_t until_us = patience_end();
        while (proxy_->is_running() && monotonic_now() < until_us) {
            pause_between_looks();
        }
    }
}

void Processes::add(Role role, const std::string &name, unsigned count)
{
    for (unsigned i = 0; i < count; ++i) {
        auto member = std::make_unique<Member>();
        member->role = role;
        member->name = name + "-" + std::to_string(i + 1);
        const std::string path = directory_ + "/" + member->name;
        member->log = path + ".log";
        member->clock = path + ".clock";
        member->url = store_->has_links()
                          ? "unix:" + directory_ + "/link-" +
                                std::to_string(members_.size()) + ".sock"
                          : store_->url();
        members_.push_back(std::move(member));
    }
}

void Processes::start_proxy()
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fail(std::string("pipe: ") + strerror(errno));
    }
    proxy_input_ = ends[1];
    const std::string links = std::to_string(members_.size());
    const std::string last_link =
        directory_ + "/link-" + std::to_string(members_.size() - 1) + ".sock";
    proxy_.emplace();
    proxy_->start(
        {own_program(), "proxy", "--directory", directory_, "--links", links},
        directory_ + "/proxy.log", ends[0]);
    close(ends[0]);
    const int64_t until_us = patience_end();
    while (access(last_link.c_str(), F_OK) != 0) {
        if (!proxy_->is_running() || monotonic_now() > until_us) {
            fail("the proxy does not start; see " + directory_ + "/proxy.log");
        }
        pause_between_looks();
    }
}

std::vector<FaultKinds> Processes::victims() const
{
    std::vector<FaultKinds> all = {store_->kinds()};
    for (const auto &member : members_) {
        FaultKinds kinds = {FaultKind::kill, FaultKind::pause};
        if (store_->has_links()) {
            kinds.insert(kinds.end(),
                         {FaultKind::cut, FaultKind::hold, FaultKind::delay});
        }
        if (member->role == Role::pump && sizes_.has_clocks) {
            kinds.insert(kinds.end(), kinds.size(), FaultKind::step);
        }
        all.push_back(kinds);
    }
    return all;
}

std::string Processes::victim_name(unsigned victim) const
{
    return victim == 0 ? "redis" : members_[victim - 1]->name;
}

std::string Processes::history() const
{
    return directory_ + "/history.txt";
}

std::vector<std::string> Processes::pump_words(const Member &member) const
{
    std::vector<std::string> all;
    if (sizes_.has_clocks) {
        all = {"env", "LAWN_CLOCK=clock_gettime", "LD_PRELOAD=" + faketime_,
               "FAKETIME_TIMESTAMP_FILE=" + member.clock, "FAKETIME_NO_CACHE=1",
               // What is shared would outlive a process that is killed.
               "FAKETIME_DISABLE_SHM=1"};
    }
    all.insert(all.end(), {program_beside("lawnd"), "--redis", member.url,
                           "--namespace", verify_space});
    return all;
}

std::vector<std::string> Processes::words(const Member &member)
{
    if (member.role == Role::pump) {
        return pump_words(member);
    }
    ++incarnations_;
    const bool is_client = member.role == Role::client;
    std::vector<std::string> all = {
        own_program(),
        is_client ? "client" : "consumer",
        "--redis",
        member.url,
        "--namespace",
        verify_space,
        "--history",
        history(),
        "--process",
        std::to_string(incarnations_),
        "--seed",
        std::to_string((sizes_.seed * 1000003 + incarnations_) % 1000000007)};
    if (is_client) {
        const uint64_t rate =
            std::max<uint64_t>(sizes_.rate / std::max(sizes_.clients, 1u), 1);
        all.insert(all.end(), {"--rate", std::to_string(rate)});
        if (store_->is_replicated()) {
            all.push_back("--replicated");
        }
    }
    return all;
}

void Processes::start(Member &member)
{
    if (member.role == Role::pump && sizes_.has_clocks) {
        set_clock(member, 0);
    }
    std::ifstream log(member.log, std::ios::ate);
    member.log_begin = log.is_open() ? log.tellg() : std::streampos(0);
    member.process.start(words(member), member.log);
}

void Processes::kill(Member &member)
{
    const pid_t pid = member.process.pid();
    member.process.kill();
    if (sizes_.has_clocks && pid > 0) {
        // What libfaketime shares outlives a process that is killed.
        const std::string number = std::to_string(pid);
        unlink(("/dev/shm/faketime_shm_" + number).c_str());
        unlink(("/dev/shm/sem.faketime_sem_" + number).c_str());
    }
}

// Replaces the file as a whole, for it is read at any time.
void Processes::set_clock(const Member &member, int64_t step_us)
{
    char text[40];
    snprintf(text, sizeof(text), "%+.6f\n",
             static_cast<double>(step_us) / second_us);
    const std::string next = member.clock + ".next";
    std::ofstream(next) << text;
    if (rename(next.c_str(), member.clock.c_str()) != 0) {
        fail("cannot write " + member.clock + ": " + strerror(errno));
    }
}

void Processes::tell_proxy(unsigned victim, const std::string &what)
{
    const std::string line = std::to_string(victim - 1) + " " + what + "\n";
    if (write(proxy_input_, line.data(), line.size()) !=
        static_cast<ssize_t>(line.size())) {
        fail("the proxy has ended");
    }
}

void Processes::strike(const Fault &fault)
{
    if (fault.victim == 0) {
        store_->strike(fault);
        return;
    }
    Member &member = *members_[fault.victim - 1];
    switch (fault.kind) {
    case FaultKind::kill:
        kill(member);
        break;
    case FaultKind::pause:
        member.process.signal(SIGSTOP);
        break;
    case FaultKind::cut:
        tell_proxy(fault.victim, "cut");
        break;
    case FaultKind::hold:
        tell_proxy(fault.victim, "hold");
        break;
    case FaultKind::delay:
        tell_proxy(fault.victim, "delay " + std::to_string(fault.delay_us));
        break;
    case FaultKind::step:
        set_clock(member, fault.step_us);
        break;
    }
}

void Processes::mend(const Fault &fault)
{
    if (fault.victim == 0) {
        store_->mend(fault);
        return;
    }
    Member &member = *members_[fault.victim - 1];
    switch (fault.kind) {
    case FaultKind::kill:
        start(member);
        break;
    case FaultKind::pause:
        member.process.signal(SIGCONT);
        break;
    case FaultKind::cut:
        break;
    case FaultKind::hold:
    case FaultKind::delay:
        tell_proxy(fault.victim, "free");
        break;
    case FaultKind::step:
        set_clock(member, 0);
        break;
    }
}

// A pump that has not reached the store ends, and whoever looks after it starts
// it again. One that has reached it once stays.
bool Processes::has_reached_store(const Member &member) const
{
    std::ifstream log(member.log);
    log.seekg(member.log_begin);
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    return text.find("fires the timers") != std::string::npos;
}

std::string Processes::find_ended()
{
    for (const auto &member : members_) {
        Process &process = member->process;
        if (member->is_told_to_end || process.is_running() ||
            !process.status()) {
            continue;
        }
        if (member->role == Role::pump && *process.status() == 1 &&
            !has_reached_store(*member)) {
            start(*member);
        } else {
            return member->name + " has ended with status " +
                   std::to_string(*process.status()) + "; see " + member->log;
        }
    }
    return !proxy_ || proxy_->is_running() ? "" : "the proxy has ended";
}

std::string Processes::end(Role role, int64_t patience_us)
{
    for (const auto &member : members_) {
        if (member->role == role) {
            member->is_told_to_end = true;
            member->process.signal(SIGTERM);
        }
    }
    const int64_t until_us = monotonic_now() + patience_us;
    for (const auto &member : members_) {
        if (member->role != role) {
            continue;
        }
        while (member->process.is_running()) {
            if (monotonic_now() > until_us) {
                return member->name + " does not end; see " + member->log;
            }
            pause_between_looks();
        }
        // One that has just been started again ends by the signal itself, or
        // has not reached the store.
        if (member->process.status().value_or(0) != 0 &&
            (role != Role::pump || has_reached_store(*member))) {
            return member->name + " has not ended well; see " + member->log;
        }
    }
    return "";
}

std::string Processes::end_clients()
{
    return end(Role::client, 90 * second_us);
}

std::string Processes::end_others()
{
    const std::string wrong = end(Role::consumer, 60 * second_us);
    return wrong.empty() ? end(Role::pump, 60 * second_us) : wrong;
}

} // namespace lawn_verify
