#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The command lines of the programs in bench/: what they say of a wrong one, and
that an output which is cut short is a failure.

usage: commands.py LAWN_BENCH LAWN_EVALUATE LAWN_MODEL LAWN_RTO LAWN_IDLE \\
           LAWN_INSTRUCTIONS"""
import subprocess
import sys

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def run(program, *options, output=subprocess.PIPE):
    return subprocess.run([program, *options], stdout=output,
                          stderr=subprocess.PIPE, text=True, check=False)


def check_full(program, name, *options):
    with open("/dev/full", "w", encoding="ascii") as full:
        result = run(program, *options, output=full)
    line = f"{name}: standard output: No space left on device\n"
    expect(result.returncode == 1 and result.stderr.endswith(line),
           f"{name} {options}: {result.returncode}, {result.stderr!r}")


def check_refused(program, options, error):
    result = run(program, *options)
    expect((result.returncode, result.stdout, result.stderr) ==
           (2, "", error + "\n"), f"{program} {options}: {result}")


# On virtual time: the figures but the costs are always the same.
def check_pacing(bench):
    result = run(bench, "pacing", "--quick")
    expect((result.returncode, result.stderr) == (0, ""), f"pacing: {result}")
    tables = result.stdout.split("\n\n")[1:]
    expect([table.splitlines()[0] for table in tables] ==
           [f"{count} flows, {rates} rates" for count in (100, 1000)
            for rates in ("equal", "mixed")], result.stdout)
    for table in tables:
        for row in table.splitlines()[2:]:
            error, most = map(float, row[34:56].split())
            # Rates of which the wheel's horizon is too short for some.
            is_wrong = "mixed" in table and row.startswith("wheel")
            expect((most > 100) if is_wrong else (error == most == 0), row)


def main():
    bench, evaluate, model, rto, idle, instructions = sys.argv[1:]
    small = ("--quick", "--contenders", "lawn", "--sizes", "10")
    for options in (("--help",), ("--version",), ("threads", "--help"),
                    ("threads", "--quick"), ("conn", "--help"),
                    ("conn", "--quick"), ("pacing", "--help"),
                    ("pacing", "--quick"),
                    ("--workloads", "fixed", *small)):
        check_full(bench, "lawn_bench", *options)
    for options in (("--help",), ("insertion", *small)):
        check_full(evaluate, "lawn_evaluate", *options)
    check_pacing(bench)
    check_full(model, "lawn_model", "--quick")
    for options in (("--list",), ("--quick", "--check", "--paths", "steady",
                                  "--contenders", "lawn")):
        check_full(rto, "lawn_rto", *options)
    for program, name in ((model, "lawn_model"), (rto, "lawn_rto"),
                          (idle, "lawn_idle"),
                          (instructions, "lawn_instructions")):
        check_full(program, name, "--help")
        result = run(program, "--help")
        expect(result.returncode == 0 and
               result.stdout.startswith(f"usage: {name}") and
               result.stderr == "", f"no help of {name}: {result}")

    for command in ("threads", "conn", "pacing"):
        help_text = run(bench, command, "--help")
        expect(help_text.returncode == 0 and
               help_text.stdout.startswith(f"usage: lawn_bench {command}"),
               f"no help of {command}: {help_text}")
    # The argument that is wrong is no longer where the search for options began
    # if others stand before it.
    for options, error in (
            (["word", "--no"], "unknown option --no"),
            (["--quick", "-x"], "unknown option -x"),
            (["word", "-xy"], "unknown option -x"),
            (["--quick=1"], "unknown option --quick=1"),
            (["word", "--sizes"], "--sizes needs an argument"),
            (["--quick", "word"], "unexpected argument 'word'"),
            (["threads", "word"], "unexpected argument 'word'"),
            (["threads", "--no"], "unknown option --no"),
            (["conn", "word"], "unexpected argument 'word'"),
            (["pacing", "word"], "unexpected argument 'word'")):
        check_refused(bench, options, f"lawn_bench: {error}; see --help")
    check_refused(idle, ["word"], "lawn_idle: unexpected argument 'word'")
    result = run(instructions)
    expect((result.returncode, result.stdout, result.stderr) == (0, "", ""),
           f"lawn_instructions: {result}")
    check_refused(instructions, ["word"],
                  "lawn_instructions: unexpected argument 'word'")
    for options in ([""], ["", "insertion"], ["insertion", ""]):
        check_refused(evaluate, options, "lawn_evaluate: experiments: there is "
                      "no ''; see --help")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
