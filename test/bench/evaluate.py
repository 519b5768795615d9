#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What lawn_evaluate says has the shape that it should: each experiment has its
tables, each table a row for each contender, and figures agree with each other.
No figure is compared with a time.

usage: evaluate.py LAWN_EVALUATE"""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

CONTENDERS = ["lawn", "lawn-queue", "lawn-shared", "lawn-textbook",
              "hashed-wheel", "resizing-wheel", "multipass-wheel",
              "hierarchical-wheel", "multimap"]
LATENCIES = ["insertion", "deletion", "tick", "fixed", "ten", "burst",
             "uniform"]
MEMORY = ["allocated", "resident", "allocated-uniform", "resident-uniform"]
SIZES = ["100", "1000"]
WORDS = ("n/a", "too slow")
EXPERIMENTS = LATENCIES + MEMORY + ["stability"]

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def run(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True,
                          check=False)


def rows_after(output, head):
    """The lines of the table whose first line begins with `head`."""
    start = output.find("\n" + head)
    expect(start >= 0, f"no table: {head}")
    if start < 0:
        return []
    return output[start + 1:].split("\n\n")[0].splitlines()[1:]


def check_distribution(rows, name, repetitions=1):
    row = next((row for row in rows if row.startswith(name + " ")), None)
    expect(row is not None, f"no row of {name} in {rows[:1]}")
    if row is None or row.strip().endswith(WORDS):
        return
    cells = row[len(name):].split()
    expect(len(cells) == 10, f"not ten columns: {row}")
    if len(cells) != 10:
        return
    expect((cells[9] == "-") == (repetitions < 5),
           f"a ratio of {repetitions} repetitions: {row}")
    mean, least, greatest, deviation, p50, p99, p999, longest = map(
        float, cells[:8])
    expect(least <= mean <= greatest, f"not in this order: {row}")
    # The median of each is another repetition's.
    expect(p50 <= p99 <= p999 and deviation >= 0 and longest >= 0,
           f"not in this order: {row}")


def check_tables(output):
    for name in EXPERIMENTS:
        expect(re.search(rf"^{name} took [0-9.]+ s$", output, re.M),
               f"no time of {name}")
    for name in LATENCIES:
        for size in SIZES:
            pattern = rf"^{name}: .*, {size} timers; ns$"
            head = re.search(pattern, output, re.M)
            expect(head, f"no {name} of {size}")
            for contender in CONTENDERS if head else []:
                check_distribution(rows_after(output, head.group()), contender)
    for name in MEMORY:
        rows = rows_after(output, name + ": ")
        for contender in CONTENDERS:
            expect(any(row.startswith(contender + " ") for row in rows),
                   f"no {contender} in {name}")
    for contender in CONTENDERS:
        check_distribution(rows_after(output, "stability: all operations"),
                           contender)


def check_csv(path):
    with open(path, encoding="ascii", newline="") as file:
        rows = list(csv.DictReader(file))
    for name in LATENCIES + ["stability"]:
        columns = [row for row in rows
                   if (row["workload"], row["contender"]) == (name, "lawn")]
        expect(columns and all(row["p999"] and row["deviation"] and
                               row["longest"] for row in columns),
               f"the CSV file lacks figures of {name}")


def check_refused(program, *options):
    result = run(program, *options)
    expect(result.returncode == 2, f"{options}: status {result.returncode}")
    expect(result.stdout == "", f"{options}: has output")
    expect(re.fullmatch(r"lawn_evaluate: .+\n", result.stderr),
           f"{options}: {result.stderr!r}")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "tables.csv"
        result = run(program, "--quick", "--csv", str(path))
        expect((result.returncode, result.stderr) == (0, ""),
               f"status {result.returncode}: {result.stderr}")
        check_tables(result.stdout)
        check_csv(path)
    result = run(program, "tick", "--quick", "--contenders", "lawn,multimap",
                 "--sizes", "200", "--seed", "7")
    expect("seeds from 8;" in result.stdout, "the seed is not used")
    expect("200 timers" in result.stdout and "insertion" not in result.stdout
           and "hashed-wheel  " not in result.stdout,
           "more was run than was asked for")
    result = run(program, "tick", "--quick", "--sizes", "200",
                 "--contenders", "lawn,hashed-wheel", "--repetitions", "5")
    check_distribution(rows_after(result.stdout, "tick: "), "lawn", 5)
    expect(run(program, "--help").returncode == 0, "--help fails")
    for options in (["--no"], ["tock"], ["--sizes"], ["--sizes", "0"],
                    ["--sizes", "1,x"], ["--contenders", "none"],
                    ["--seed", "-1"], ["--seconds", "nan"],
                    ["--repetitions", "0"]):
        check_refused(program, *options)
    result = run(program, "tick", "--quick", "--csv", "/no/such/file")
    expect(result.returncode == 1 and "cannot write" in result.stderr,
           "a CSV file that cannot be written is no failure")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
