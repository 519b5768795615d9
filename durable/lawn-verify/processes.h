// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The processes of a run of `verify`: a store, pumps, consumers and clients in
// a directory of their own, and what is done to them.

#ifndef LAWN_VERIFY_PROCESSES_H
#define LAWN_VERIFY_PROCESSES_H

#include "history.h"
#include "plan.h"
#include "process.h"
#include "store.h"

#include <ios>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lawn_verify
{

class Processes
{
public:
    enum class Kind { one_server, cluster, failover };

    struct Sizes {
        Kind kind = Kind::one_server;
        // The pumps have clocks that are set.
        bool has_clocks = false;
        unsigned pumps = 2;
        unsigned consumers = 2;
        unsigned clients = 2;
        uint64_t rate = 500; // starts a second, of all clients
        uint64_t seed = 1;
    };

    // Starts the store, and then all others. Fails the program if a program is
    // not there or does not start.
    Processes(const std::string &directory, const Sizes &sizes);
    ~Processes();

    Processes(const Processes &) = delete;
    Processes &operator=(const Processes &) = delete;

    // What may be done to the store, and to all pumps, consumers and clients.
    std::vector<FaultKinds> victims() const;
    std::string victim_name(unsigned victim) const;

    void strike(const Fault &fault);
    // Undoes it: all runs and passes again. It may take a while until the
    // store answers.
    void mend(const Fault &fault);
    // The line about a process that has ended by itself, the store aside;
    // empty: none has.
    std::string find_ended();

    // Asks the clients, or the consumers and pumps, to end, and waits for it.
    // Returns what is wrong, or an empty string.
    std::string end_clients();
    std::string end_others();

    Store &store()
    {
        return *store_;
    }
    std::string history() const;

private:
    enum class Role { pump, consumer, client };

    struct Member {
        Role role = Role::pump;
        std::string name;
        std::string log;
        std::streamoff log_begin = 0; // of what it has logged since its start
        std::string url;              // where it finds the store
        std::string clock; // the file that says how wrong its clocks are
        Process process;
        bool is_told_to_end = false;
    };

    void add(Role role, const std::string &name, unsigned count);
    void start_proxy();
    void start(Member &member);
    void kill(Member &member);
    std::vector<std::string> words(const Member &member);
    std::vector<std::string> pump_words(const Member &member) const;
    void tell_proxy(unsigned victim, const std::string &what);
    void set_clock(const Member &member, int64_t step_us);
    bool has_reached_store(const Member &member) const;
    std::string end(Role role, int64_t patience_us);

    const std::string directory_;
    const Sizes sizes_;
    const std::string faketime_; // the library; empty: no clocks are set
    std::unique_ptr<Store> store_;
    unsigned incarnations_ = 0;
    std::vector<std::unique_ptr<Member>> members_; // all victims but the store
    std::optional<Process> proxy_;
    int proxy_input_ = -1;
};

} // namespace lawn_verify

#endif
