#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""lawn_worst measures each advance by two readings of CLOCK_MONOTONIC, and
prints microseconds: with a clock that goes on by a known step in each reading,
all its figures are that step. A time in ticks of the processor, or in another
unit, is not.

usage: worst.py LAWN_WORST MONOTONIC_CLOCK"""
import os
import re
import subprocess
import sys

STEP_NSEC = 1234560
STEP = "1234.56"  # in microseconds
CASES = 7


def main(program, clock):
    result = subprocess.run(
        [program, "1000"], capture_output=True, text=True, check=False,
        env={**os.environ, "LD_PRELOAD": clock,
             "LAWN_CLOCK_STEP": str(STEP_NSEC)})
    print(result.stdout, result.stderr, sep="", end="")
    head, _, *rows = result.stdout.splitlines()
    times = [re.split(r" {2,}", row)[-4:] for row in rows]
    is_right = (result.returncode == 0 and result.stderr == "" and
                head.endswith("; us for one advance") and
                times == [[STEP] * 4] * CASES)
    print("passed" if is_right else f"not {STEP} us for each advance")
    return 0 if is_right else 1


if len(sys.argv) != 3:
    sys.exit(__doc__)
sys.exit(main(*sys.argv[1:]))
