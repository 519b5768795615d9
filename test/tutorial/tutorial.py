#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The programs of doc/tutorial.md and doc/tutorial_transports.md. A file has a
name in bold, and a block of C, or of a diff to the file before. What a program
prints stands in a block behind it, in which * is anything.

usage: tutorial.py write DIR DOCUMENT...      all files
       tutorial.py check NAME PROGRAM DOCUMENT...  it prints what is behind NAME
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

FILE = re.compile(r"^\*\*(?P<name>\w+\.[ch])\*\*\n\n"
                  r"```(?P<kind>c|diff)\n(?P<text>.*?)^```$", re.S | re.M)
OUTPUT = re.compile(r"\n```output\n(?P<text>.*?)^```$", re.S | re.M)
HUNK = re.compile(r"^@@ -(?P<line>\d+).*@@$")


def patched(before, diff):
    """The file before, with the diff, of which all must fit where it says."""
    source, result, at = before.splitlines(), [], 0
    for line in diff.splitlines()[2:]:
        hunk = HUNK.match(line)
        if hunk:
            result += source[at:int(hunk["line"]) - 1]
            at = int(hunk["line"]) - 1
        elif line[:1] == "+":
            result.append(line[1:])
        elif at < len(source) and source[at] == line[1:]:
            result += source[at:at + 1] if line[:1] != "-" else []
            at += 1
        else:
            sys.exit(f"the diff does not fit at line {at + 1}: {line}")
    return "\n".join(result + source[at:]) + "\n"


def files(documents):
    """Yields the name and the text of each, and the output behind it or ""."""
    before = ""
    for document in documents:
        text = pathlib.Path(document).read_text()
        found = list(FILE.finditer(text))
        for match, after in zip(found, [*found[1:], None]):
            before = (match["text"] if match["kind"] == "c"
                      else patched(before, match["text"]))
            output = OUTPUT.search(text, match.end(),
                                   after.start() if after else len(text))
            yield match["name"], before, output["text"] if output else ""


def write(directory, *documents):
    for name, text, _ in files(documents):
        (pathlib.Path(directory) / name).write_text(text)


def check(wanted_of, program, *documents):
    wanted = {name: output for name, _, output in files(documents)}[wanted_of]
    found = subprocess.run([program], stdout=subprocess.PIPE, text=True,
                           check=True, timeout=200).stdout
    lines = found.splitlines(), wanted.splitlines()
    if not wanted or len(lines[0]) != len(lines[1]) or not all(
            map(fnmatch.fnmatchcase, *lines)):
        sys.exit(f"it prints\n{found}instead of\n{wanted}")


def main():
    commands = {"write": write, "check": check}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])


main()
