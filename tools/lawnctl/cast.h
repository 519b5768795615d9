// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The processes of a run of `verify`: a redis-server, pumps, consumers and
// clients in a directory of their own, and what is done to them.

#ifndef LAWN_LAWNCTL_CAST_H
#define LAWN_LAWNCTL_CAST_H

#include "history.h"
#include "plan.h"
#include "process.h"

#include <memory>
#include <string>
#include <vector>

namespace lawnctl
{

class Cast
{
public:
    struct Sizes {
        unsigned pumps = 2;
        unsigned consumers = 2;
        unsigned clients = 2;
        uint64_t rate = 500; // starts a second, of all clients
        uint64_t seed = 1;
    };

    // Starts the store, and then all others. Fails the program if a program is
    // not there or does not start.
    Cast(const std::string &directory, const Sizes &sizes);
    ~Cast();

    Cast(const Cast &) = delete;
    Cast &operator=(const Cast &) = delete;

    // Of faults: the store, and all pumps, consumers and clients.
    unsigned victims() const;
    std::string victim_name(unsigned victim) const;

    void strike(const Fault &fault);
    // Undoes it: all runs and passes again. It may take a while until the
    // store answers.
    void mend(const Fault &fault);
    // The line about a process that has ended by itself; empty: none has.
    std::string find_ended();

    // Asks the clients, or the consumers and pumps, to end, and waits for it.
    // Returns what is wrong, or an empty string.
    std::string end_clients();
    std::string end_others();

    std::string store_url() const;
    std::string history() const;

private:
    enum class Role { store, pump, consumer, client };

    struct Member {
        Role role = Role::store;
        std::string name;
        Process process;
    };

    void start(unsigned victim);
    std::vector<std::string> words(unsigned victim);
    void tell_proxy(unsigned victim, const std::string &what);
    void await_store();
    std::string end(Role role, int64_t patience_us);
    std::string log(unsigned victim) const;

    const std::string directory_;
    const Sizes sizes_;
    unsigned incarnations_ = 0;
    std::vector<std::unique_ptr<Member>> members_;
    Process proxy_;
    int proxy_input_ = -1;
};

} // namespace lawnctl

#endif
