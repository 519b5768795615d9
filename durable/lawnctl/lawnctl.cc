// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl: starts, stops and shows durable timers, consumes what has fired, and
// tests a store. See lawnctl(1).

#include "beside.h"
#include "commands.h"
#include "output.h"

#include "../../tools/finish.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <unistd.h>

namespace lawnctl
{

namespace
{

const char help[] =
    R"(usage: lawnctl [--redis URL] [--namespace NS] [--json] [--require-safe-store]
               COMMAND

Commands:
  start ID [--in DURATION | --at TIME] [--payload TEXT]
      [--every DURATION | --cron EXPRESSION [--zone ZONE]]
      [--durability async|fsync|replicated:N]
      [--target stream|stream:KEY|http://...|https://...]
      [--max-attempts N] [--misfire fire|skip:DURATION|coalesce]
                  start a timer, or start it anew; without --cron it needs
                  --in or --at
  update ID --generation G [--in DURATION | --at TIME] [--payload TEXT]
      [--durability ...]
                  change a pending timer: prints `updated ID GENERATION DUE`,
                  `too late` (status 3), `unknown` (4)
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
  acknowledge     timers were lost, and somebody knows it: lawnd says so no
                  more
  load --rate N --seconds S [--delay DURATION [--spread DURATION]]
      [--pumps N] [--coalesce DURATION] [--consumers N] [--leave]
                  start timers at a rate, and measure; pumps (0: those that
                  run already) and consumers are threads of this process
  verify ...      as lawn-verify: kill and stop processes and a store of its
                  own at random, and check that no timer is lost

  --redis URL     the store (default: redis://127.0.0.1:6379)
  --namespace NS  timers of different namespaces do not meet (default: lawn)
  --json          print one JSON object a line
  --require-safe-store
                  refuse a store that may drop timers when its memory is
                  full, or keeps nothing on its disk
  -h, --help      show this text
  -V, --version   show the version

`lawnctl COMMAND --help` shows the lines of one command.

Durations: 250ms, 2s, 5m, 3h, 10d.
Times: seconds since 1970, 2026-12-24T18:00Z, 2026-12-24T18:00+01:00, or
2026-12-24T18:00 with --zone Europe/Berlin.

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
    {"start", command_start},     {"update", command_update},
    {"stop", command_stop},       {"get", command_get},
    {"consume", command_consume}, {"list", command_list},
    {"dead", command_dead},       {"stats", command_stats},
    {"drain", command_drain},     {"acknowledge", command_acknowledge},
    {"load", command_load},
};

// The lines of the command in the help; all of it if there is no such command.
std::string help_of(const std::string &command)
{
    const std::string all = help;
    const size_t begin = all.find("\n  " + command + " ");
    if (command.empty() || begin == std::string::npos) {
        return all;
    }
    size_t end = all.find('\n', begin + 1);
    while (all.compare(end, 4, "\n   ") == 0) {
        end = all.find('\n', end + 1);
    }
    return "usage: lawnctl [OPTION]... " +
           all.substr(begin + 3, end - begin - 3) + "\n";
}

// It is a program of its own, which takes the same words but for the command.
[[noreturn]] void become_verify(char **argv)
{
    const std::string program = program_beside("lawn-verify");
    std::vector<char *> words;
    bool is_command = false;
    for (; *argv != nullptr; ++argv) {
        if (!is_command && strcmp(*argv, "verify") == 0) {
            is_command = true;
        } else {
            words.push_back(*argv);
        }
    }
    words.push_back(nullptr);
    execvp(program.c_str(), words.data());
    fail(program + ": " + strerror(errno));
}

int run(int argc, char **argv)
{
    Arguments arguments(argc, argv,
                        {"--json", "--require-safe-store", "--help", "-h",
                         "--version", "-V", "--no-ack", "--end", "--leave",
                         // those of verify
                         "--calm", "--clocks", "--cluster", "--failover"});
    if (arguments.take_flag("--help") || arguments.take_flag("-h")) {
        const std::string text = help_of(arguments.first_word());
        fputs(text.c_str(), stdout);
        return finish_output("lawnctl");
    }
    if (arguments.take_flag("--version") || arguments.take_flag("-V")) {
        print_line(std::string("lawnctl ") + lawn_version());
        return 0;
    }
    const Settings settings = take_settings(arguments);
    const std::string name = arguments.take_word("COMMAND");
    if (name == "verify") {
        become_verify(argv);
    }
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
