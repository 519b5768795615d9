#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What lawn_rto prints and writes has the shape that it should, a seed repeats
it, and lawn meets the targets wherever it once met them by a margin.

usage: rto.py LAWN_RTO"""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

WINDOWS = ("1", "8")  # of a run that asks for no others
STALL = re.compile(r"[\d.e+]+\([\d.e+]+\)")
CELL = re.compile(r"[\d.e+]+/[\d.e+]+\([\d.e+]+\)(\+[\d.e+]+)?")

# What is checked with each window. A path is left out if it missed a target, or
# was within 2.5 % of one, in any of five runs with other seeds: so a libm that
# rounds in another way makes no difference.
CHECKS = (("1", "*,-late-program*"),
          ("8", "*,-jitter,-bursts,-both-ways,-late-program/any"))

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def run(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True,
                          check=False)


def listed(program):
    """The paths, and the contenders that take part by default."""
    result = run(program, "--list")
    expect((result.returncode, result.stderr) == (0, ""), f"--list: {result}")
    contenders, _, paths = result.stdout.partition("\n\npaths:\n")
    names = re.findall(r"^  \* (\S+) +\S", contenders, re.M)
    expect({"oracle", "linux", "quic", "lawn", "lawn+ask"} <= set(names),
           f"contenders: {names}")
    paths = [line.split()[0] for line in paths.splitlines()]
    expect({"steady", "steady/any", "outage"} <= set(paths), f"paths: {paths}")
    return paths, names


def check_tables(output, paths, contenders):
    tables = output.strip().split("\n\n")
    expect(len(tables) == len(WINDOWS), f"{len(tables)} tables")
    for table, window in zip(tables, WINDOWS):
        head, names, *rows = table.splitlines()
        expect(head == f"round trip 10us, window {window}, single ACKs, loss "
               "0.01, 6000 messages, 2 seeds", head)
        expect(names.split() == ["path", *contenders], names)
        attempts = [row.split() for row in rows if row.startswith(" ")]
        expect([len(row) for row in attempts] == [1 + len(contenders)],
               f"attempts: {attempts}")
        rows = [row.split() for row in rows if not row.startswith(" ")]
        expect([row[0] for row in rows] == paths, f"rows: {rows}")
        for _, *cells in rows:
            expect(len(cells) == len(contenders) and
                   all(map(CELL.fullmatch, cells)), f"cells: {cells}")


def check_csv(path, paths, contenders):
    with open(path, encoding="ascii", newline="") as file:
        rows = list(csv.DictReader(file))
    expect([(row["window"], row["path"], row["contender"]) for row in rows] ==
           [(window, path, name) for window in WINDOWS for path in paths
            for name in contenders], "rows of the CSV file")
    for row in rows:
        is_oracle = row["contender"] == "oracle"
        expect((float(row["rto"]) >= 1) == is_oracle and
               float(row["p50"]) <= float(row["p99"]) and
               float(row["packets"]) >= 1 and
               not (is_oracle and float(row["spurious"]) > 5), f"CSV: {row}")


def check_quick(program, directory):
    paths, contenders = listed(program)
    table = directory / "rto.csv"
    options = ["--quick", "--csv", str(table)]
    result = run(program, *options)
    expect((result.returncode, result.stderr) == (0, ""),
           f"{options}: {result.returncode}, {result.stderr!r}")
    check_tables(result.stdout, paths, contenders)
    check_csv(table, paths, contenders)


def check_inherit(program):
    paths, _ = listed(program)
    result = run(program, "--quick", "--inherit", "--rtt", "20ms")
    expect((result.returncode, result.stderr) == (0, ""),
           f"--inherit: {result.returncode}, {result.stderr!r}")
    tables = result.stdout.strip().split("\n\n")
    expect(len(tables) == len(WINDOWS), f"--inherit: {len(tables)} tables")
    for table, window in zip(tables, WINDOWS):
        head, names, *rows = table.splitlines()
        expect(head == f"round trip 20ms, window {window}, single ACKs, the "
               "first loss of 1000 new connections", head)
        expect(names.split() ==
               ["path", "knows", "nothing", "inherits", "and", "asks"], names)
        rows = [row.split() for row in rows]
        expect([row[0] for row in rows] == paths, f"--inherit: {rows}")
        for _, *cells in rows:
            expect(len(cells) == 3 and all(map(STALL.fullmatch, cells)),
                   f"--inherit: {cells}")


def check_failures(program):
    few = ("--quick", "--paths", "steady", "--contenders", "lawn")
    result = run(program, *few, "--csv", "/no/such/file")
    expect((result.returncode, result.stdout, result.stderr) ==
           (1, "", "lawn_rto: cannot write /no/such/file: "
            "No such file or directory\n"), f"--csv: {result}")


def rows_of(program, *options):
    result = run(program, "--quick", "--contenders", "oracle,lawn,lawn+ask",
                 *options)
    expect((result.returncode, result.stderr) == (0, ""),
           f"{options}: {result}")
    return result.stdout


def names_of(program, patterns):
    output = rows_of(program, "--windows", "1", "--paths", patterns)
    return [line.split()[0] for line in output.splitlines()[3:]]


def check_choice(program):
    for patterns, names in (
            ("steady,jitter", ["steady", "jitter"]),
            ("jitter,steady", ["steady", "jitter"]),
            ("steady*,steady", ["steady", "steady/any"]),
            ("s*,-s*/any,-st*", ["silence", "shorter", "slow-start"]),
            ("s*,-*,steady", ["steady"])):
        expect(names_of(program, patterns) == names, f"--paths {patterns}")


def check_seeds(program):
    options = ("--paths", "jitter*,bursts*", "--windows", "8")
    once = rows_of(program, *options, "--jobs", "1")
    expect(rows_of(program, *options, "--jobs", "3") == once,
           "a seed does not repeat a run")
    expect(rows_of(program, *options, "--seed", "3") != once,
           "the seed is not used")


def check_refused(program):
    for options, error in (
            (["--no"], "unknown option --no"),
            (["word"], "unexpected argument 'word'"),
            (["--paths"], "--paths needs an argument"),
            (["--paths", "steady,tea"], "--paths: there is no 'tea'"),
            (["--paths", "*,-tea"], "--paths: there is no 'tea'"),
            (["--paths", ""], "--paths: there is no ''"),
            (["--paths", "-steady"], "--paths: '-steady' leaves out all"),
            (["--contenders", "tea"], "--contenders: there is no 'tea'"),
            (["--rtt", "10"], "--rtt takes times from 1us to 1s, such as 10us, "
             "not '10'"),
            (["--windows", "5000"], "--windows takes numbers up to 4096"),
            (["--acks", "all"], "--acks takes single, cumulative or bare, not "
             "'all'"),
            (["--loss", "0.6"], "--loss takes a share above 0, up to 0.5, not "
             "'0.6'"),
            (["--messages", "1000"], "--messages takes more than --warm-up"),
            (["--check", "--contenders", "quic"], "--check is for lawn, which "
             "--contenders leaves out"),
            (["--check", "--acks", "bare"], "--check is not for bare ACKs, "
             "which say too little"),
            (["--inherit", "--check"], "--inherit has no --check or --csv")):
        result = run(program, *options)
        expect((result.returncode, result.stdout, result.stderr) ==
               (2, "", f"lawn_rto: {error}; see --help\n"),
               f"{options}: {result}")


def check_targets(program):
    for window, paths in CHECKS:
        result = run(program, "--check", "--contenders", "lawn", "--windows",
                     window, "--paths", paths, "--messages", "21000",
                     "--seeds", "3")
        last = result.stdout.rpartition("\n\n")[2]
        expect(result.returncode == 0 and
               re.fullmatch(r"0 targets missed in [0-9]{2} cells\n", last),
               f"window {window}, status {result.returncode}: {last}"
               f"{result.stderr}")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        check_quick(program, pathlib.Path(directory))
    check_inherit(program)
    check_failures(program)
    check_choice(program)
    check_seeds(program)
    check_refused(program)
    check_targets(program)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
