#!/usr/bin/env python3
# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Writes the manual's section 3 from the public headers: a page for each header
and one for each function, or few that stand under one comment.

usage: pages.py VERSION OUTPUT_DIR HEADER..."""
import pathlib
import re
import shutil
import sys
import textwrap

sys.dont_write_bytecode = True  # nothing beside the sources
import headers

# A comment that begins so goes on from that of the function before.
GOES_ON = re.compile(r"(The same|As \w+,) ")
# The statuses, without LAWN_ERR_ in front.
STATUS = re.compile(r"\b(OK|INVALID_PARAM|NO_MEMORY|BUSY|UNSUPPORTED|IO|"
                    r"NO_ELEM|TIMED_OUT)\b")
WIDTH = 76


def link_with(header):
    is_durable = header.page.startswith("lawn_durable")
    libraries = "-llawn-durable -llawn" if is_durable else "-llawn"
    return f"Link with \\fI{escaped(libraries)}\\fP."


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return text.replace("^", "\\(ha").replace("~", "\\(ti")


def code(lines):
    """Text as it is, indented."""
    out = [".PP", ".RS 4", ".EX"]
    for line in lines:
        line = escaped(line).replace("'", "\\(aq").replace("`", "\\(ga")
        out.append("\\&" + line if line.startswith(".") else line)
    return out + [".EE", ".RE", ".PP"]


def prose(text):
    text = escaped(text)
    text = re.sub(r"`([^`]*)`", r"\\fI\1\\fP", text)
    text = re.sub(r"\b(lawn_\w+)\(\)", r"\\fB\1\\fP()", text)
    lines = textwrap.wrap(text, 78, break_long_words=False,
                          break_on_hyphens=False)
    return ["\\&" + line if line.startswith((".", "'")) else line
            for line in lines]


def roff(lines):
    """A comment: paragraphs, lists and code."""
    out, paragraph, block, in_item = [], [], [], False

    def flush():
        if paragraph:
            out.extend(prose(" ".join(paragraph)))
            paragraph.clear()
        if block:
            out.extend(code(textwrap.dedent("\n".join(block)).split("\n")))
            block.clear()

    for line in [*lines, ""]:
        item = re.match(r"  - (.*)", line)
        if item:
            flush()
            out.append(".IP \\(bu 2")
            paragraph.append(item[1])
            in_item = True
        elif in_item and line.startswith("    "):
            paragraph.append(line)
        elif line.startswith("    ") or block and not line:
            if paragraph:
                flush()
            block.append(line)
        else:
            if block:
                while not block[-1]:
                    block.pop()
                flush()
            if not line or in_item:
                flush()
                out.append(".PP")
            in_item = False
            if line:
                paragraph.append(line)
    flush()
    while out and out[-1] == ".PP":
        out.pop()
    return out


def tidy(lines):
    """No .PP where it does nothing."""
    out = []
    for line, after in zip(lines, [*lines[1:], ".SH"]):
        if line != ".PP" or not (
                after.startswith((".PP", ".SH", ".SS", ".TP", ".IP"))
                or out[-1].startswith((".SH", ".SS"))):
            out.append(line)
    return out


def brief(comment, header):
    """The first sentence, or its first part."""
    text = " ".join(" ".join(comment).split()).replace("`", "")
    text = re.split(r"(?<!e\.g)\. |: |; |\.$", text)[0]
    if text.count("(") > text.count(")"):
        text = text[:text.rindex(" (")]
    if len(text) < 8 or not text[0].isalpha():
        return f"see {header.page}(3)"
    return text if text[1].isupper() else text[0].lower() + text[1:]


def prototype(text):
    """In bold, with the parameters' names in italics."""
    name = headers.NAME.search(text)
    if "(" not in text:
        return ["\\fB" + escaped(text) + "\\fP"]
    before, inside = text[:name.end()], text[name.end():-2]
    parameters = re.split(r", (?![^()]*\))", inside)
    lines, line = [], before
    for i, parameter in enumerate(parameters):
        end = ", " if i + 1 < len(parameters) else ");"
        if len(line) + len(parameter) + 2 > WIDTH and line != before:
            lines.append(line.rstrip())
            line = " " * 4
        line += parameter + end
    lines.append(line)
    return ["\\fB" + re.sub(r"\b(\w+)(?=,|\);$)", r"\\fI\1\\fP\\fB",
                            escaped(line)) + "\\fP" for line in lines]


class Manual:
    def __init__(self, version, output, paths):
        self.version = version
        self.output = output
        self.headers = [headers.Header(path) for path in paths]
        self.pages = {}  # of each function

    def groups(self, header):
        """Lists of items, each for a page."""
        groups = []
        for item in [] if header.is_inline else header.of("function"):
            if groups and GOES_ON.match(item.comment[0]):
                groups[-1].append(item)
            else:
                groups.append([item])
        return groups

    def write(self, page, text):
        (self.output / f"{page}.3").write_text(text)

    def page(self, name, names, title, sections):
        lines = [f'.TH {name} 3 "" "Lawn {self.version}" "Lawn"', ".SH NAME",
                 *prose(", ".join(names) + " - " + title)]
        for heading, text in sections:
            if text:
                lines += [".SH " + heading, *text]
        self.write(name, "\n".join(tidy(lines)) + "\n")

    def see_also(self, pages):
        return [f".BR {escaped(page)} (3)" + ("," if i + 1 < len(pages) else "")
                for i, page in enumerate(pages)]

    def function_page(self, header, group, neighbours):
        names = [name for item in group for name in item.names]
        text, synopsis = [], [".nf", f".B #include <{header.include}>"]
        for item in group:
            if item.type:
                synopsis += [".PP", *map(escaped, item.type.codes)]
            for each in item.codes:
                synopsis += [".PP", *prototype(each)]
            if len(group) > 1:
                text += [".SS " + ", ".join(
                    f"{escaped(name)}()" for name in item.names)]
            text += roff(item.comment)
        synopsis += [".fi", ".PP", link_with(header)]
        mentioned = re.findall(r"\b(lawn_\w+)\(\)", " ".join(
            " ".join(item.comment) for item in group))
        others = [self.pages[name] for name in mentioned if name in self.pages]
        if any(STATUS.search(" ".join(item.comment)) for item in group):
            others.append("lawn_base.h")
        also = dict.fromkeys([header.page, *others, *neighbours])
        also.pop(names[0], None)
        self.page(names[0], names, brief(group[0].comment, header), [
            ("SYNOPSIS", synopsis), ("DESCRIPTION", text),
            ("THREADS", roff(header.threads())),
            ("SEE ALSO", self.see_also(list(also)))])
        for name in names[1:]:
            self.write(name, f".so man3/{names[0]}.3\n")

    def header_page(self, header, groups):
        text = roff(header.opening)
        if header.include == "lawn/lawn.h":
            for other in self.headers:
                if other.include in header.includes:
                    text += [".TP", f".BR {other.page} (3)",
                             *prose(other.title)]
        elif header.include.endswith(".hpp"):
            text += [".PP", "The header explains what is in it."]
        synopsis = [".nf", f".B #include <{header.include}>"]
        types, functions = [], []
        if header.is_inline:
            for item in header.of("function"):
                for each in item.codes:
                    synopsis += [".PP", *prototype(each)]
                functions += [".TP", ", ".join(
                    f"\\fB{escaped(name)}\\fP()" for name in item.names),
                    *roff(item.comment)]
            for item in header.of("macro"):
                functions += [".TP", *prose(item.codes[0]), *roff(item.comment)]
        else:
            for item in header.of("text"):
                text += [".PP", *roff(item.comment)]
            for item in header.of("type") + header.of("macro"):
                types += [".PP", *roff(item.comment or []),
                          *code("\n".join(item.codes).split("\n"))]
            for group in groups:
                functions += [".TP", ", ".join(
                    f"\\fB{escaped(name)}\\fP(3)"
                    for item in group for name in item.names),
                    *prose(brief(group[0].comment, header))]
        also = [other.page for other in self.headers
                if other.include in header.mentioned
                and other is not header]
        self.page(header.page, [header.page], header.title, [
            ("SYNOPSIS", [*synopsis, ".fi", ".PP", link_with(header)]),
            ("DESCRIPTION", text), ("TYPES", types), ("FUNCTIONS", functions),
            ("SEE ALSO", self.see_also(["lawn.h", *also]
                                       if header.page != "lawn.h" else also))])

    def write_all(self):
        grouped = [(header, self.groups(header)) for header in self.headers]
        for header, groups in grouped:
            for group in groups:
                for item in group:
                    for name in item.names:
                        self.pages[name] = group[0].names[0]
        for header, groups in grouped:
            self.header_page(header, groups)
            firsts = [group[0].names[0] for group in groups]
            for i, group in enumerate(groups):
                self.function_page(header, group,
                                   firsts[max(0, i - 1):i + 2])
        for header in self.headers:
            for item in header.of("function") if header.is_inline else []:
                for name in item.names:
                    self.write(name, f".so man3/{header.page}.3\n")
        self.write("lawn", ".so man3/lawn.h.3\n")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    output = pathlib.Path(sys.argv[2])
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    paths = [pathlib.Path(path) for path in sys.argv[3:]
             if not path.endswith("_inline.h")]  # bodies, for no program
    Manual(sys.argv[1], output, paths).write_all()


if __name__ == "__main__":
    main()
