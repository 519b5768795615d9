// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The words of a command line, and the values that they stand for. What is not
// understood ends the program with status 1 and one line on stderr.

#ifndef LAWN_LAWNCTL_ARGUMENTS_H
#define LAWN_LAWNCTL_ARGUMENTS_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lawnctl
{

// Writes one line to stderr, whatever `line` has: control characters are
// written as \xHH.
void complain(const std::string &line);
// The same, and ends the program with status 1.
[[noreturn]] void fail(const std::string &line);

class Arguments
{
public:
    // Options are `--name value`, `--name=value`, or, those in `flags`,
    // `--name`. They stand before, between and after the other words. After
    // `--` there are none.
    Arguments(int argc, char **argv, const std::set<std::string> &flags);

    bool take_flag(const std::string &name);
    std::optional<std::string> take_text(const std::string &name);
    std::optional<uint64_t> take_number(const std::string &name, uint64_t least,
                                        uint64_t most);
    // Microseconds.
    std::optional<uint64_t> take_duration(const std::string &name);
    // The next word that is no option; "" if there is none.
    std::string first_word() const
    {
        return words_.empty() ? "" : words_.front();
    }
    // Takes it; fails with `what` if there is none.
    std::string take_word(const std::string &what);
    // Fails if anything is left that nobody has taken.
    void finish() const;

private:
    std::map<std::string, std::string> options_;
    std::string last_; // an option that has nothing behind it
    std::vector<std::string> words_;
};

// Microseconds of a time such as 1700000000.25, 2026-12-24T18:00:00Z, or
// 2026-12-24T18:00 in `zone`, which is empty if none is given; fails if it is
// none.
int64_t parse_time(const std::string &text, const std::string &zone);

} // namespace lawnctl

#endif
