#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What doc/evaluation.md says of the queueing model is what lawn_model prints:
the numbers of each row of a table stand in one line of the output, in their
order, rounded as in the page, and so do the row's words.

usage: model.py LAWN_MODEL EVALUATION.MD"""
import re
import subprocess
import sys

SECTION = "## The queueing model\n"
NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?(?:e\d+)?(?: %)?")
# What the output says instead.
WORDS = {"bursts": "bursty", "equal": "periodic", "distances": "",
         "queue": "queues", "fates": ""}
ROWS = 40  # fewer would mean that they are not found


def rows(page):
    """The rows of all tables, without those that name the columns."""
    lines = page.partition(SECTION)[2].splitlines()
    for line, after in zip(lines, [*lines[1:], ""]):
        if line.startswith("| ") and not after.startswith("|--"):
            yield line


def tolerance(text):
    """Half of the last digit of a number."""
    digits, _, exponent = text.partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.500001 * 10.0 ** (int(exponent or 0) - decimals)


def stands_in(numbers, words, line):
    tokens = line.split()
    if not all(word in tokens for word in words):
        return False
    left = list(numbers)
    for token in tokens:
        try:
            value = float(token)
        except ValueError:
            continue
        if left and abs(value - float(left[0])) <= tolerance(left[0]):
            del left[0]
    return not left


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[-1])
    with open(sys.argv[2], encoding="utf-8") as page:
        found = list(rows(page.read()))
    output = subprocess.run([sys.argv[1]], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    wrong = []
    for row in found:
        numbers, words = [], []
        for cell in (cell.strip() for cell in row.strip("|").split("|")):
            if NUMBER.fullmatch(cell):
                numbers.append(cell.replace(",", "").rstrip(" %"))
            else:
                # What stands behind a comma, such as a range, is not printed.
                words += [WORDS.get(word, word) for word in re.findall(
                    r"[A-Za-z]+", re.sub(r", [\d.]+ .*", "", cell))]
        words = [word for word in words if word]
        if len(numbers) > 1 and not any(
                stands_in(numbers, words, line) for line in output):
            wrong.append(f"not what lawn_model prints: {row}")
    if len(found) < ROWS:
        wrong.append(f"{len(found)} rows only")
    print("\n".join(wrong) or f"{len(found)} rows")
    sys.exit(bool(wrong))


main()
