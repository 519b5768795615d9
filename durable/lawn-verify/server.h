// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A redis-server of a run of `verify`. What cannot be started fails the
// program.

#ifndef LAWN_VERIFY_SERVER_H
#define LAWN_VERIFY_SERVER_H

#include "process.h"
#include "src/socket.h"

#include <string>
#include <vector>

namespace lawn_verify
{

using Words = std::vector<std::string>;

// CLOCK_MONOTONIC in microseconds until something has taken too long.
int64_t patience_end();
void pause_between_looks();

class Server
{
public:
    // Its data is in a directory of its name below `directory`, its log beside
    // that. It listens on the port of 127.0.0.1, or, if that is 0, on the
    // socket NAME.sock beside its log.
    Server(const std::string &directory, const std::string &name, int port,
           const Words &options);

    // With further options, or, instead of all, `words`. Does not wait.
    void start(const Words &more = {});
    void start_as(const Words &words);
    // Until it answers.
    void await();
    bool answers();
    // Nothing if it does not answer, or answers with an error.
    lawn::durable::ReplyPtr ask(const Words &command);
    // The text of the answer; "" if there is none.
    std::string text_of(const Words &command);

    void kill()
    {
        process_.kill();
    }
    void signal(int number)
    {
        process_.signal(number);
    }
    // The line about an end of its own; empty: it has not ended so.
    std::string find_ended();

    int port() const
    {
        return port_;
    }
    // As redis-cli takes it.
    std::string address() const;

private:
    const std::string directory_;
    const std::string name_;
    const int port_;
    Words words_;
    Process process_;
};

// $LAWN_REDIS_SERVER, or redis-server; and the redis-cli beside it.
std::string server_program();
std::string cli_program();

// A port of 127.0.0.1 that nobody listens on now, nor on the one 10,000 above.
int free_port();

} // namespace lawn_verify

#endif
