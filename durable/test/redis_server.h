// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A redis-server of a test's own, in a directory of its own:
//
//     RedisServer server;                            // answers already
//     server.command({"SET", "key", "value"});
//     server.url();                                  // unix:/tmp/...
//     server.kill();                                 // SIGKILL
//     server.start();                                // with the same data
//
// It listens on a unix socket, and on a port only if an option says so. It
// keeps nothing on disk, if no option says so. It ends with the test, even when
// the test is killed: only the thread that starts it must live as long.

#ifndef LAWN_TEST_DURABLE_REDIS_SERVER_H
#define LAWN_TEST_DURABLE_REDIS_SERVER_H

#include "src/hiredis_ptr.h"

#include <sys/types.h>

#include <string>
#include <vector>

namespace lawn_test
{

using Words = std::vector<std::string>;

// An answer of the server.
struct Reply {
    enum Type { none, text, number, list, nil, status, error };

    Type type = none; // none: there was no answer
    std::string string;
    long long integer = 0;
    std::vector<Reply> elements;

    bool is_error() const
    {
        return type == error;
    }
    size_t size() const
    {
        return elements.size();
    }
    // Fails the test and ends it with std::out_of_range if there is none.
    const Reply &operator[](size_t i) const
    {
        return elements.at(i);
    }
};

// For messages of failed tests.
std::string to_string(const Reply &reply);

class RedisServer
{
public:
    // `options` are those of redis-server, such as {"--appendonly", "yes"};
    // `environment` are settings such as "NAME=value".
    explicit RedisServer(Words options = {}, Words environment = {});
    ~RedisServer();

    RedisServer(const RedisServer &) = delete;
    RedisServer &operator=(const RedisServer &) = delete;

    // Starts it, if it does not run, in the same directory, and waits until it
    // answers PING; for a minute, after which the test fails. While it loads
    // data, it does not answer, unless `loading` is enough.
    void start(bool loading = false);
    // Replaces the options for the next start.
    void set_options(Words options);

    void kill(); // SIGKILL
    void stop(); // SIGTERM, and waits for the end
    void pause();
    void resume();

    bool is_running() const
    {
        return pid_ > 0;
    }
    pid_t pid() const
    {
        return pid_;
    }
    const std::string &directory() const
    {
        return directory_;
    }
    std::string socket() const;
    std::string url() const;
    // What the server has logged.
    std::string log() const;

    // On a connection of the fixture's own, which is made anew when it is lost;
    // an answer takes a minute at most.
    Reply command(const Words &words);
    // Sends all, and then reads all answers.
    std::vector<Reply> pipeline(const std::vector<Words> &commands);
    // How many calls of a command it has had, such as "fcall".
    unsigned long calls(const std::string &name);

private:
    void end(int signal);
    bool connect();

    std::string directory_;
    Words options_;
    Words environment_;
    pid_t pid_ = -1;
    lawn::durable::ContextPtr context_;
};

} // namespace lawn_test

#endif
