// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Tries the faults of all atomic steps (faults.h). ci/atomics runs it.

#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace explore;

namespace
{

const char usage[] =
    "usage: explore_faults [--list] [--kind KIND] [--one-of N AFTER] "
    "FOLDER|FILE...\n";

struct Options {
    bool lists = false;
    const char *kind = ""; // all
    unsigned one_of = 1;
    unsigned after = 0;
    std::vector<std::string> files;
};

bool read(int argc, char **argv, Options *options)
{
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--list") == 0) {
            options->lists = true;
        } else if (strcmp(argv[i], "--kind") == 0 && i + 1 < argc) {
            options->kind = argv[++i];
        } else if (strcmp(argv[i], "--one-of") == 0 && i + 2 < argc) {
            options->one_of =
                static_cast<unsigned>(strtoul(argv[++i], nullptr, 10));
            options->after =
                static_cast<unsigned>(strtoul(argv[++i], nullptr, 10));
        } else if (argv[i][0] == '-') {
            return false;
        } else {
            options->files.emplace_back(argv[i]);
        }
    }
    return options->one_of != 0 && !options->files.empty();
}

} // namespace

int main(int argc, char **argv)
{
    Options options;
    if (!read(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    unsigned number = 0;
    for (const LineFault &i : find_faults(options.files)) {
        if (*options.kind != '\0' && strcmp(options.kind, i.kind) != 0) {
            continue;
        }
        if (number++ % options.one_of != options.after % options.one_of) {
            continue;
        }
        const std::string noticed = options.lists ? "" : try_fault(i);
        printf("%s\t%s\t%s\n", i.kind, i.line.c_str(), noticed.c_str());
        fflush(stdout);
    }
    return 0;
}
