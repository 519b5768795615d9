#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Each public function says which thread may call it: in the comment that it
stands under, or in the one that its header opens with, where that says
"Threads:" of all of them.

usage: threads.py INCLUDE_DIR..."""
import pathlib
import re
import sys

# In the opening comment of a header.
OF_ALL = re.compile(r"\bThreads: ")
# In a function's comment.
CALLER = re.compile(r"\b([Aa]ny|[Oo]ne|same|lawn's|engine's) thread\b"
                    r"|\b([Tt]he|shard's) (owner|worker)\b"
                    r"|\bnot for programs\b|\bThread: ")
ITEM = re.compile(r"/\*(?P<comment>.*?)\*/|^(?:LAWN_API|LAWN_INLINE)\s[^;{]*?"
                  r"\b(?P<name>lawn_\w+)\(", re.S | re.M)


def words_of(comment):
    return " ".join(comment.replace("\n *", " ").split())


def check(path):
    text = path.read_text()
    opening = next(ITEM.finditer(text))
    if OF_ALL.search(words_of(opening["comment"])):
        return []
    last, seen, silent = "", set(), []
    for match in ITEM.finditer(text):
        if match["comment"]:
            # What stands inside a declaration is about that alone.
            if match.start() == 0 or text[match.start() - 1] == "\n":
                last = words_of(match["comment"])
        elif match["name"] not in seen:  # inline functions are defined below
            seen.add(match["name"])
            if not CALLER.search(last):
                silent.append(f"{path.name}: {match['name']}")
    return silent


def main():
    headers = [header for directory in sys.argv[1:]
               for header in sorted(pathlib.Path(directory, "lawn").glob("*.h"))]
    silent = [line for header in headers for line in check(header)]
    print("\n".join(silent) or f"{len(headers)} headers")
    return bool(silent)


if __name__ == "__main__":
    sys.exit(main())
