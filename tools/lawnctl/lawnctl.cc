// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl: starts, stops and shows durable timers, consumes what has fired, and
// tests a store. See lawnctl(1).

#include "commands.h"
#include "output.h"

#include "../finish.h"
#include "durable/url.h"

#include <cstdlib>
#include <iterator>

namespace lawnctl
{

namespace
{

const char help[] =
    R"(usage: lawnctl [--redis URL] [--namespace NS] [--json] COMMAND

Commands:
  start ID [--in DURATION | --at UNIX_SECONDS] [--payload TEXT]
      [--every DURATION | --cron EXPRESSION [--zone ZONE]]
      [--durability async|fsync|replicated:N]
      [--target stream|stream:KEY|http://...|https://...]
      [--max-attempts N] [--misfire fire|skip:DURATION|coalesce]
                  start a timer, or start it anew; without --cron it needs
                  --in or --at
  stop ID [--durability ...]
                  prints `stopped`, `too late` (status 3), `unknown` (4)
  get ID          print the state of a timer
  consume --group G [--count N] [--timeout DURATION] [--lease DURATION]
      [--answer done|fail|retry:DURATION] [--no-ack]
                  print and answer what fires, a line for each:
                  ID GENERATION DUE DELIVERED ATTEMPT PAYLOAD
  list [--state STATE] [--limit N]
                  print timers: ID STATE GENERATION DUE ATTEMPT
  dead [--limit N] [--replay ID]
                  print dead letters, or start one anew:
                  ID GENERATION DUE ATTEMPT REASON ERROR
  stats           print counts of the namespace
  drain [--timeout DURATION] [--end]
                  take no starts and wait until no timer is left (periodic
                  ones must be stopped); --end takes starts again
  load --rate N --seconds S [--delay DURATION [--spread DURATION]]
      [--pumps N] [--consumers N] [--leave]
                  start timers at a rate, and measure; pumps (0: those that
                  run already) and consumers are threads of this process
  verify [--seconds S] [--seed N] [--rate N] [--timers N] [--history FILE]
      [--cluster | --failover] [--clocks] [--calm]
                  start a store, pumps, consumers and clients of its own, kill
                  and stop them at random, and check that no timer is lost

  --redis URL     the store (default: redis://127.0.0.1:6379)
  --namespace NS  timers of different namespaces do not meet (default: lawn)
  --json          print one JSON object a line
  -h, --help      show this text
  -V, --version   show the version

Durations: 250ms, 2s, 5m, 3h, 10d.

URLs:
  redis://[[user]:password@]host[:port][/db]
  unix:/path[?db=N]
  sentinel://[[user]:password@]host:port[,host:port...]/master[/db]
)";

struct Command {
    const char *name;
    int (*run)(const Settings &settings, Arguments &arguments);
};

const Command commands[] = {
    {"start", command_start},
    {"stop", command_stop},
    {"get", command_get},
    {"consume", command_consume},
    {"list", command_list},
    {"dead", command_dead},
    {"stats", command_stats},
    {"drain", command_drain},
    {"load", command_load},
    {"verify", command_verify},
    {"verify-client", command_verify_client},
    {"verify-consumer", command_verify_consumer},
    {"verify-proxy", command_verify_proxy},
};

int run(int argc, char **argv)
{
    Arguments arguments(argc, argv,
                        {"--json", "--help", "-h", "--version", "-V",
                         "--no-ack", "--end", "--calm", "--leave", "--clocks",
                         "--cluster", "--failover", "--replicated"});
    if (arguments.take_flag("--help") || arguments.take_flag("-h")) {
        fputs(help, stdout);
        return finish_output("lawnctl");
    }
    if (arguments.take_flag("--version") || arguments.take_flag("-V")) {
        print_line(std::string("lawnctl ") + lawn_version());
        return 0;
    }
    Settings settings;
    std::string error;
    if (const auto url = arguments.take_text("--redis")) {
        lawn::durable::Url parsed;
        if (!lawn::durable::parse_url(*url, &parsed, &error)) {
            fail(error);
        }
        settings.url = *url;
    }
    settings.json = arguments.take_flag("--json");
    if (const auto name = arguments.take_text("--namespace")) {
        if (!lawn::durable::check_name_space(*name, &error)) {
            fail("--namespace: " + error);
        }
        settings.name_space = *name;
    }
    const std::string name = arguments.take_word("COMMAND");
    for (const Command &command : commands) {
        if (name == command.name) {
            return command.run(settings, arguments);
        }
    }
    fail("there is no command '" + payload_text(name.data(), name.size()) +
         "'; see --help");
}

} // namespace

} // namespace lawnctl

int main(int argc, char **argv)
{
    try {
        return lawnctl::run(argc, argv);
    } catch (const std::exception &error) {
        lawnctl::fail(error.what());
    }
}
