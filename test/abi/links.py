#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Each relative link of an installed document leads to something that is
installed.

usage: links.py BUILD_ROOT"""
import json
import os
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def main():
    info = pathlib.Path(sys.argv[1]) / "meson-info"
    options = {option["name"]: str(option["value"]) for option in json.loads(
        (info / "intro-buildoptions.json").read_text())}
    plan = json.loads((info / "intro-install_plan.json").read_text())
    installed = {}  # from where to where
    for kind in plan.values():
        for source, entry in kind.items():
            path = re.sub(r"\{(\w+)\}", lambda m: options.get(m[1], m[0]),
                          entry["destination"])
            installed[source] = os.path.join(options["prefix"], path)
    targets = set(installed.values())
    count, wrong = 0, []
    for source, place in installed.items():
        if not place.endswith(".md"):
            continue
        for link in LINK.findall(pathlib.Path(source).read_text()):
            if "://" not in link:
                count += 1
                path = os.path.normpath(
                    os.path.join(os.path.dirname(place), link))
                if path not in targets:
                    wrong.append(f"{place}: {link}")
    print("\n".join(wrong) if wrong else f"{count} links")
    return bool(wrong) or count == 0


if __name__ == "__main__":
    sys.exit(main())
