#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""What the documents quote of the examples is what stands there: a block of
code right after a line that ends with a colon and names a file by a link,
[examples/hello.c](examples/hello.c), is found in that file as it is.

usage: quotes.py ROOT"""
import pathlib
import re
import sys

QUOTE = re.compile(r"^[^\n]*\]\((?P<path>[^)\n]*examples/[^)\n]+)\)[^\n]*:\n\n"
                   r"```\w*\n(?P<text>.*?)^```$", re.S | re.M)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[-1])
    root = pathlib.Path(sys.argv[1])
    count, wrong = 0, []
    for document in [root / "README.md", *sorted(root.glob("doc/*.md")),
                     *sorted(root.glob("durable/doc/*.md"))]:
        for quote in QUOTE.finditer(document.read_text()):
            count += 1
            source = document.parent / quote["path"]
            if quote["text"] not in source.read_text():
                wrong.append(f"{document.name}: not what is in "
                             f"{quote['path']}")
    print("\n".join(wrong) if wrong else f"{count} quotes")
    sys.exit(bool(wrong) or count == 0)


main()
