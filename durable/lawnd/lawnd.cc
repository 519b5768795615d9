// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnd - fires the durable timers of a namespace when they are due, and
// delivers those that have a target (lawn/durable.h).

#include "daemon.h"
#include "log.h"
#include "options.h"

#include "../../tools/finish.h"

#include <curl/curl.h>
#include <lawn/base.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

namespace
{

// Each post has a connection, and some are kept for the next. The limit that
// shells give is for programs that use select().
void raise_descriptors()
{
    constexpr rlim_t wanted = 4096;
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = std::min(limit.rlim_max, wanted);
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

} // namespace

int main(int argc, char **argv)
{
    lawnd::Options options;
    std::string error;
    if (!lawnd::parse_options(argc, argv, &options, &error)) {
        lawnd::log_line(error);
        return 1;
    }
    if (options.asks_for_help || options.asks_for_version) {
        fputs(options.asks_for_help ? lawnd::help_text
                                    : "lawnd " LAWN_VERSION_STRING "\n",
              stdout);
        return finish_output("lawnd");
    }
    raise_descriptors();
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        lawnd::log_line("libcurl cannot be used");
        return 1;
    }
    try {
        lawnd::Daemon(options).run();
    } catch (const std::exception &failure) {
        lawnd::log_line(failure.what());
        return 1;
    }
    curl_global_cleanup();
    return 0;
}
