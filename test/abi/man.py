#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""The manual is complete and correct: what the headers declare is what the
version script exports, each of that has a page that names its header and shows
its declaration, each reference leads to a page, each option of a program
stands in its page, so does each URL of a store, as in lawn/durable.h, and groff
has no warning.

usage: man.py SOURCE_ROOT [PROGRAM...]"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXPORTED = re.compile(r"^ +(lawn_\w+);$", re.M)
DECLARED = re.compile(r"^(LAWN_API|LAWN_INLINE)\s[^;{]*?\b(lawn_\w+)(\(|;)",
                      re.M)
INLINE = re.compile(r"^static inline [^;{]*?\b(lawn_\w+)\(", re.M)
REFERENCE = re.compile(r"\b(lawn[\w.-]*|pingpong_\w+)(?:\\fP)? ?\(([13])\)")
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)


def headers_of(root):
    return [header for part in (".", "compat", "durable")
            for header in sorted((root / part).glob("include/lawn/*"))]


def check_functions(root, man):
    exported = set()
    for script in ("src/liblawn.map", "durable/src/liblawn-durable.map"):
        exported |= set(EXPORTED.findall((root / script).read_text()))
    declared = {}
    for header in headers_of(root):
        if header.suffix != ".h":
            continue
        text = header.read_text()
        if header.name.endswith("_inline.h"):
            continue
        expect((man / "man3" / f"lawn_{header.name}.3").exists()
               or header.name == "lawn.h", f"no page: {header.name}")
        for _, name, _ in DECLARED.findall(text):
            declared[name] = header.name
        for name in INLINE.findall(text):
            page = text_of(man, man / "man3" / f"{name}.3")
            synopsis = page.partition(".SH SYNOPSIS")[2].partition(".SH ")[0]
            expect(re.search(rf"\b{name}\b", synopsis), f"no page: {name}")
    for name in exported ^ set(declared):
        failures.append(f"either not declared or not exported: {name}")
    for name in exported & set(declared):
        page = text_of(man, man / "man3" / f"{name}.3")
        expect(f"#include <lawn/{declared[name]}>" in page,
               f"{name}: no #include")
        synopsis = page.partition(".SH SYNOPSIS")[2].partition(".SH ")[0]
        expect(re.search(rf"\b{name}\b", synopsis), f"{name}: not declared")
        expect(".SH DESCRIPTION\n" in page, f"{name}: no description")


def text_of(man, page):
    if not page.exists():
        return ""
    text = page.read_text()
    link = re.fullmatch(r"\.so (\S+)\n", text)
    return text_of(man, man / link[1]) if link else text


def check_pages(man, groff):
    pages = sorted(man.glob("man?/*"))
    for page in pages:
        text = text_of(man, page)
        expect(text, f"{page.name}: empty, or leads nowhere")
        for name, section in REFERENCE.findall(text):
            expect((man / f"man{section}" / f"{name}.{section}").exists(),
                   f"{page.name}: no page {name}({section})")
    if groff:
        result = subprocess.run(
            [groff, "-man", "-ww", "-z", "-Tutf8", *pages], cwd=man,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        expect(not result.stdout and result.returncode == 0,
               f"groff: {result.stdout}")
    return len(pages)


def check_options(man, program, header):
    usage = subprocess.run([program, "--help"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    name = pathlib.Path(program).name
    page = text_of(man, man / "man1" / f"{name}.1").replace("\\-", "-")
    # Those of the program, not of the examples.
    options = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)\s", usage, re.M)
    expect(options, f"{name}: --help tells of no options")
    for option in options:
        expect(re.search(rf"{option}(?![\w-])", page),
               f"{name}.1: nothing about {option}")
    for url in re.findall(r"^ +([a-z]+:/\S+)$", usage, re.M):
        expect(url in page, f"{name}.1: nothing about {url}")
        expect(url in header, f"lawn/durable.h: nothing about {url}")


def main():
    root = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        man = pathlib.Path(directory)
        version = re.search(r"version: '(.*)'",
                            (root / "meson.build").read_text())[1]
        subprocess.run(
            [sys.executable, root / "doc/man/pages.py", version, man / "man3",
             *headers_of(root)], check=True)
        (man / "man1").mkdir()
        for page in [*root.glob("doc/man/*.1"),
                     *root.glob("durable/doc/man/*.1")]:
            shutil.copy(page, man / "man1")
        check_functions(root, man)
        count = check_pages(man, shutil.which("groff"))
        for program in sys.argv[2:]:
            check_options(man, program,
                          (root / "durable/include/lawn/durable.h").read_text())
    print("\n".join(failures) or f"{count} pages")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
