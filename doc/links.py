#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Writes a document as it is installed. Links to public headers lead to where
these are installed. Links to what is not installed become their text.

usage: links.py SOURCE_ROOT DOCUMENT OUTPUT DOCUMENT_DIR INCLUDE_DIR INSTALLED...

The two directories are those of the installation. INSTALLED are the sources of
all that is installed."""
import os
import pathlib
import re
import sys

# What is code, and is left as it is, or a link or an image.
LINK = re.compile(r"(?m)(```[\s\S]*?^```|^    .*$|`[^`]*`)|"
                  r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    root, document, output = map(pathlib.Path, sys.argv[1:4])
    document_dir, include_dir = sys.argv[4:6]
    installed = {os.path.realpath(path) for path in sys.argv[6:]}
    headers = [os.path.realpath(path)
               for path in (root / "include", root / "compat/include",
                            root / "durable/include")]

    def rewritten(link):
        code, is_image, text, target, fragment = link.groups()
        if code or "://" in target:
            return link[0]
        path = os.path.realpath(document.parent / target)
        if path not in installed:
            if is_image:
                sys.exit(f"{document}: the image {target} is not installed")
            return text
        for directory in headers:
            if path.startswith(directory + "/"):
                path = os.path.join(include_dir,
                                    os.path.relpath(path, directory))
                target = os.path.relpath(path, document_dir)
        return f"{is_image}[{text}]({target}{fragment or ''})"

    output.write_text(LINK.sub(rewritten, document.read_text()))


if __name__ == "__main__":
    main()
