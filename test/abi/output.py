#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""A program whose output is cut short, by a full disk for example, says so in
one line and fails. A ping-pong also names the option that it does not know.

usage: output.py PROGRAM..."""
import pathlib
import subprocess
import sys

failures = []


def check_full(program, *options):
    with open("/dev/full", "w", encoding="ascii") as full:
        result = subprocess.run([program, *options], stdout=full, text=True,
                                stderr=subprocess.PIPE, check=False)
    name = pathlib.Path(program).name.removeprefix("example_")
    line = f"{name}: standard output: No space left on device\n"
    if (result.returncode, result.stderr) != (1, line):
        failures.append(f"{program} {options}: {result}")


def check_refused(program, options, what):
    result = subprocess.run([program, *options], capture_output=True,
                            text=True, check=False)
    name = pathlib.Path(program).name
    line = f"{name}: {what} (see --help)\n"
    if (result.returncode, result.stderr) != (2, line):
        failures.append(f"{program} {options}: {result}")


def main():
    for program in sys.argv[1:]:
        name = pathlib.Path(program).name
        if name == "lawn_info":
            check_full(program, "--clock")
        if name == "example_udp":
            check_full(program, "--count", "10")
        if name == "lawnd":
            check_full(program, "--version")
        if name in ("example_service", "example_threads"):
            check_full(program)
        else:
            check_full(program, "--help")
        if name == "example_epoll_server":
            check_full(program)
        if name.startswith("pingpong"):
            # -q is known.
            check_refused(program, ["-qY"], "bad option -Y")
            check_refused(program, ["-Yq"], "bad option -Y")
            check_refused(program, ["host", "--no"], "bad option --no")
            check_refused(program, ["-qp"], "-p needs a value")
            check_refused(program, ["--port"], "--port needs a value")
    print("\n".join(failures) if failures else "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
