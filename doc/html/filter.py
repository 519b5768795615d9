#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Prints a public header as Doxygen wants it: its plain comments are Doxygen's,
and signs that it would take for commands or tags are escaped.

usage: filter.py HEADER"""
import pathlib
import re
import sys

# Those on lines of their own, and those behind a member.
COMMENT = re.compile(r"^(?P<indent> *)/\*(?P<block>.*?)\*/|"
                     r"(?<=\S) +/\*(?P<member>.*?)\*/", re.S | re.M)
LINE_COMMENT = re.compile(r"^( *)//(.*)", re.M)
COPYRIGHT = re.compile(r"Copyright \(c\).*\n(.*\n)")


def escaped(text):
    """Not where it is indented, as code is."""
    return "\n".join(
        line if re.match(r" *\*? {5}", line)
        else re.sub(r"([<>#@\\&])", r"\\\1", line)
        for line in text.split("\n"))


def comment(match):
    if match["member"] is not None:
        return f" /**< {escaped(match['member'])}*/"
    return f"{match['indent']}/**{escaped(match['block'])}*/"


def main():
    path = pathlib.Path(sys.argv[1])
    text = path.read_text()
    if path.suffix == ".hpp":
        text = LINE_COMMENT.sub(
            lambda match: f"{match[1]}///{escaped(match[2])}", text)
    else:
        text = COMMENT.sub(comment, text)
    # The opening comment is about the file.
    sys.stdout.write(COPYRIGHT.sub(r"@file\n\1", text, count=1))


if __name__ == "__main__":
    main()
