// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Sockets on virtual time, for a program that is linked with --wrap of the
// kernel's. What is written arrives a little later, in order; nothing else
// moves the clock. So a run is a function of its seed.
//
//     SeededNetwork network(seed, server);   // one at a time
//     network.at(network.now() + 5 * ms, [] { ... });
//     network.step(until);                   // to the next thing that happens
//
// While has_faults is set, connections are refused or get no answer, and what
// is written or read comes in pieces.

#ifndef LAWN_TEST_DURABLE_SEEDED_NETWORK_H
#define LAWN_TEST_DURABLE_SEEDED_NETWORK_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace lawn_test
{

constexpr int64_t ms = 1000; // times are microseconds

class SeededNetwork
{
public:
    // Of a connection, and never used again.
    using Number = unsigned;

    class Server
    {
    public:
        virtual void on_bytes(Number connection, std::string_view bytes) = 0;
        virtual void on_end(Number connection) = 0;

    protected:
        ~Server() = default;
    };

    SeededNetwork(uint64_t seed, Server &server);
    ~SeededNetwork();
    SeededNetwork(const SeededNetwork &) = delete;
    SeededNetwork &operator=(const SeededNetwork &) = delete;

    // Microseconds.
    int64_t now() const
    {
        return now_us_;
    }
    void at(int64_t time_us, std::function<void()> fn);
    // Goes on to the next time at which something happens, `until_us` at the
    // latest, and lets that happen.
    void step(int64_t until_us);

    // From the server to the client.
    void send(Number connection, std::string bytes, int64_t delay_us = 0);
    // From now on, nothing comes through; the client sees that, or does not.
    void reset(Number connection);
    void mute(Number connection);
    void reset_all();
    // As if the process that has it had been killed, and its machine gone.
    void cut_off(int epoll);
    // Those that are mute are reset, and nothing fails any more.
    void heal();

    uint64_t random(uint64_t below)
    {
        return random_() % below;
    }
    bool happens(unsigned permille)
    {
        return random(1000) < permille;
    }

    unsigned faults_permille = 0; // of what may go wrong

    // What the kernel's functions do.
    int add_descriptor();
    int connect(int fd);
    int error_of(int fd);
    bool is_established(int fd);
    ssize_t write(int fd, const char *bytes, size_t size);
    ssize_t read(int fd, char *bytes, size_t size);
    bool close(int fd);
    void watch(int epoll, int fd, uint32_t events);
    bool is_ready(int epoll) const;
    int ready(int epoll, std::pair<int, uint32_t> *found, int most);

    static SeededNetwork *current;

private:
    struct Connection {
        Number number = 0;
        int epoll = -1;
        uint32_t events = 0;
        bool is_open = false; // a connect() was made
        bool is_established = false;
        int error = 0;
        bool is_reset = false;
        std::string in;
        size_t in_read = 0;
        int64_t blocked_until = 0;
        int64_t last_up = 0; // when the latest bytes arrive at the server
        int64_t last_down = 0;
    };

    struct Event {
        int64_t time;
        uint64_t number;
        std::function<void()> fn;

        bool operator<(const Event &other) const // for a heap: the first is top
        {
            return std::make_pair(time, number) >
                   std::make_pair(other.time, other.number);
        }
    };

    Connection *find(Number number);
    int64_t travel(int64_t *last, int64_t delay_us);
    static uint32_t readiness(const Connection &connection, int64_t now_us);

    std::mt19937_64 random_;
    Server &server_;
    int64_t now_us_ = 1000000;
    uint64_t events_made_ = 0;
    std::vector<Event> events_;
    Number connections_made_ = 0;
    int next_fd_;
    std::map<int, Connection> connections_; // by the descriptor
    std::set<Number> mute_;
};

} // namespace lawn_test

#endif
