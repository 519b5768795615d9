#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Each folder of src/ is a room with headers of its own. Other rooms, and the
programs, include only those that are named here, which say what a room lets
others use. Nothing in the library includes a file of durable/ or compat/, and
durable/ includes only headers of src/base.

usage: rooms.py ROOT"""
import pathlib
import re
import sys

# By room: its headers for others, and who may include them, if not all.
OPEN = {
    "base": {"*": None},
    "clock": {"convert.h": None},
    "conn": {"profiles.h": {"engine"},  # whose memory the engine frees
             "state.h": {"trace"}},
    "engine": {"inside.h": None, "page_layout.h": {"tools"},
               "thread.h": {"group", "service"}},
    "timer": {"inside.h": None, "queue.h": {"keyed"}},
    "trace": {"writer.h": {"engine"}},
}
FOR_DURABLE = {"base"}
INCLUDE = re.compile(r'^\s*#\s*include "([a-z_]+)/([a-z_]+\.h)"', re.M)


def is_open(room, header, user):
    users = OPEN.get(room, {}).get(header, set())
    return "*" in OPEN.get(room, {}) or users is None or user in users


def may_include(user, room, header, rooms):
    if room in ("durable", "compat"):
        return False
    if room == user or room not in rooms:
        return True
    if user.startswith("durable/"):
        return room in FOR_DURABLE
    return is_open(room, header, user)


def complaints(root, rooms):
    places = {path.name: path for path in (root / "src").iterdir()
              if path.is_dir()}
    places |= {name: root / name for name in
               ("tools", "examples", "include", "compat/include")}
    places |= {f"durable/{name}": root / "durable" / name for name in
               ("src", "include", "lawnd", "lawnctl", "lawn-verify")}
    for user, place in places.items():
        for path in sorted(place.rglob("*")):
            if path.suffix not in (".h", ".c", ".cc", ".hpp"):
                continue
            for room, header in INCLUDE.findall(path.read_text()):
                if not may_include(user, room, header, rooms):
                    yield f"{path.relative_to(root)}: {room}/{header}"


def main():
    root = pathlib.Path(sys.argv[1])
    rooms = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    wrong = list(complaints(root, rooms))
    missing = [f"{room}/{header} is not there" for room, headers in OPEN.items()
               for header in headers
               if header != "*" and not (root / "src" / room / header).exists()]
    print("\n".join(wrong + missing) or f"{len(rooms)} rooms")
    return bool(wrong or missing)


if __name__ == "__main__":
    sys.exit(main())
