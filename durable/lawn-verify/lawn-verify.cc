// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn-verify: tests the durable tier, with a store, pumps, consumers and
// clients of its own, to which it does harm. `lawnctl verify` calls it. See
// lawnctl(1).

#include "commands.h"

#include "../../tools/finish.h"

#include <exception>

namespace lawn_verify
{

namespace
{

const char help[] =
    R"(usage: lawn-verify [--json] [--seconds S] [--seed N] [--rate N] [--timers N]
           [--history FILE] [--cluster | --failover] [--clocks] [--calm]

Starts a store, pumps, consumers and clients of its own, kills and stops them at
random, and checks that no timer is lost, early, or delivered after a stop.

  --seconds S     do harm for so long (default: 60)
  --seed N        which harm, and when (default: 1)
  --rate N        starts a second (default: 500)
  --timers N      end when so many starts are acknowledged, if that is earlier
  --history FILE  write there all that has happened
  --cluster       the store is a cluster, whose shards move
  --failover      the store is a primary with a replica, and fails over
  --clocks        set the clocks of the pumps, too
  --calm          do no harm
  --json          print one JSON object

  -h, --help      show this text
  -V, --version   show the version
)";

// The first word, of a process that lawn-verify starts.
struct Part {
    const char *name;
    int (*run)(const Settings &settings, Arguments &arguments);
};

const Part parts[] = {
    {"client", run_client},
    {"consumer", run_consumer},
    {"proxy", run_proxy},
};

int run(int argc, char **argv)
{
    Arguments arguments(argc, argv,
                        {"--json", "--help", "-h", "--version", "-V", "--calm",
                         "--clocks", "--cluster", "--failover",
                         "--replicated"});
    if (arguments.take_flag("--help") || arguments.take_flag("-h")) {
        fputs(help, stdout);
        return finish_output("lawn-verify");
    }
    if (arguments.take_flag("--version") || arguments.take_flag("-V")) {
        print_line(std::string("lawn-verify ") + lawn_version());
        return 0;
    }
    const Settings settings = take_settings(arguments);
    for (const Part &part : parts) {
        if (argc > 1 && argv[1] == std::string(part.name)) {
            arguments.take_word(part.name);
            return part.run(settings, arguments);
        }
    }
    return run_verify(settings, arguments);
}

} // namespace

} // namespace lawn_verify

int main(int argc, char **argv)
{
    try {
        return lawn_verify::run(argc, argv);
    } catch (const std::exception &error) {
        lawn_verify::fail(error.what());
    }
}
