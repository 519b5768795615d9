#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""ci/notes gives the section of a version, no more and no less, and says in one
line what is wrong with any other.

usage: notes.py ROOT"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CHANGELOG = """\
# Changelog

Text above.

## 0.10.0 - unreleased

- Not yet.

## 0.9.1 - 2026-02-03

What breaks:

- One item of
  two lines.
  - A part
    of it.
- Another.

A paragraph
of two.

## 0.9 - 2026-01-02

## 0.8.0

- The first.
"""
NOTES = {
    "0.9.1": "What breaks:\n\n- One item of two lines.\n  - A part of it.\n"
             "- Another.\n\nA paragraph of two.\n",
    "v0.9.1": None,  # the same
    "0.8.0": "- The first.\n",
}
NOTES["v0.9.1"] = NOTES["0.9.1"]
ERRORS = {
    ("0.10.0",): (1, "unreleased"),
    ("0.9",): (1, "says nothing of 0.9"),
    ("0.9.2",): (1, "no version 0.9.2"),
    ("0.1",): (1, "no version 0.1"),
    (): (2, "needs a version"),
    ("latest",): (2, "needs a version"),
    ("0.9", "0.8"): (2, "needs a version"),
}


def run(script, *arguments):
    return subprocess.run([script, *arguments], capture_output=True, text=True)


def complaints(root, directory):
    script = directory / "ci/notes"
    script.parent.mkdir()
    shutil.copy(root / "ci/notes", script)
    (directory / "CHANGELOG.md").write_text(CHANGELOG)
    for version, text in NOTES.items():
        done = run(script, version)
        if (done.returncode, done.stdout, done.stderr) != (0, text, ""):
            yield f"{version}: {done}"
    for arguments, (status, message) in ERRORS.items():
        done = run(script, *arguments)
        if (done.returncode != status or done.stdout or
                done.stderr.count("\n") != 1 or message not in done.stderr):
            yield f"{arguments}: {done}"
    # And of each version that there was.
    text = (root / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+) - \d{4}-", text, re.M)
    if not versions:
        yield "CHANGELOG.md has no dated version"
    for version in versions:
        done = run(root / "ci/notes", version)
        if done.returncode != 0 or "\n## " in "\n" + done.stdout:
            yield f"{version}: {done}"


def main():
    with tempfile.TemporaryDirectory() as name:
        wrong = list(complaints(pathlib.Path(sys.argv[1]), pathlib.Path(name)))
    print("\n".join(wrong) or "ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
