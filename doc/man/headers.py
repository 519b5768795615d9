# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Reads what the public headers say: their opening comments, and the comment
above each declaration. Comments are plain text, paragraphs between empty lines;
what is indented by four is code, and "  - " begins an item of a list."""
import re

COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
NAME = re.compile(r"\b(lawn_\w+)\s*(?:\(|;|\[)")


class Item:
    """What stands under one comment: functions, a type, a macro or nothing."""

    def __init__(self, kind, comment):
        self.kind = kind
        self.comment = comment  # lines
        self.type = None  # of a function: what the comment stands above
        self.names = []
        self.codes = []

    def add(self, name, code):
        self.names.append(name)
        self.codes.append(code)


class Header:
    def __init__(self, path):
        self.include = f"lawn/{path.name}"
        text = path.read_text()
        self.title, self.opening = opening_of(text)
        self.includes = " ".join(re.findall(r"^#include <(lawn/.*)>$", text,
                                            re.M))
        self.mentioned = set(re.findall(
            r"\blawn/\w+\.hp*\b", " ".join(self.opening) + self.includes))
        # Such a header stands in for another library's: one page tells all.
        self.is_inline = "\nstatic inline " in text and not re.search(
            r"^LAWN_(API|INLINE)\s[^=;{]*\);$", text, re.M)
        self.items = []
        if path.suffix == ".h":
            _, _, body = text.partition("\nLAWN_BEGIN_DECLS\n")
            self.items = list(items_of(body.partition("\nLAWN_END_DECLS")[0]))

    @property
    def page(self):
        return self.include.replace("/", "_").replace("lawn_lawn", "lawn")

    def of(self, kind):
        return [item for item in self.items if item.kind == kind]

    def threads(self):
        """The paragraph that says which thread may call all functions."""
        paragraph = []
        for line in self.opening:
            if "Threads: " in line and not paragraph:
                line = line[line.index("Threads: ") + len("Threads: "):]
                paragraph = [line[0].upper() + line[1:]]
            elif paragraph and line:
                paragraph.append(line)
            elif paragraph:
                break
        return paragraph


def lines_of(comment):
    """The text in a comment, without the stars in front of it."""
    return [re.sub(r"^ ?\* ?", "", line).rstrip()
            for line in comment.strip("\n").strip(" ").split("\n")]


def opening_of(text):
    """The title of a header, and what else its first comment says."""
    if text.startswith("//"):
        block = text[:text.index("\n\n")].split("\n")
        lines = [re.sub(r"^// ?", "", line) for line in block]
    else:
        lines = lines_of(COMMENT.match(text)[1])
    while "Copyright" in lines[0] or not lines[0]:
        del lines[0]
    first = lines.index("") if "" in lines else len(lines)
    name, _, paragraph = " ".join(lines[:first]).partition(" - ")
    title, _, more = paragraph.partition(". ")
    rest = lines[first:]
    if more:
        rest[:0] = [more]
    while rest and not rest[0]:
        del rest[0]
    while rest and not rest[-1]:
        del rest[-1]
    return title.rstrip(".:"), rest


def declaration_at(lines, begin):
    """The end of the declaration, or definition, that begins there."""
    depth, body = 0, False
    for end in range(begin, len(lines)):
        line = COMMENT.sub("", lines[end])
        depth += line.count("{") - line.count("}")
        body = body or "{" in line
        if depth == 0 and (line.rstrip().endswith(";")
                           or body and line.startswith("}")):
            return end + 1
    raise ValueError(f"no end of: {lines[begin]}")


def items_of(body):
    """Items in their order. A function without a comment of its own stands
    under the latest, which may be that of a type."""
    body = re.sub(r"^#ifdef __cplusplus\n.*?^#else\n(.*?)^#endif\n", r"\1",
                  body, flags=re.S | re.M)
    lines = body.split("\n")
    at, comment, latest, seen = 0, None, None, set()
    while at < len(lines):
        line = lines[at]
        if line.startswith("/*"):
            end = at
            while "*/" not in lines[end]:
                end += 1
            comment = lines_of("\n".join(lines[at:end + 1])[2:-2])
            at = end + 1
            if line == "/*" and not lines[at]:
                yield Item("text", comment)
        elif line.startswith("#"):
            item = macro_of(line, comment)
            if item:
                yield item
            while lines[at].endswith("\\"):
                at += 1
            at += 1
            comment = None
        elif not line:
            comment = None
            at += 1
        else:
            end = declaration_at(lines, at)
            code, at = lines[at:end], end
            if not line.startswith(("LAWN_API", "LAWN_INLINE",
                                    "static inline")):
                latest = Item("type", comment)
                latest.codes.append("\n".join(code))
                yield latest
            else:
                prototype = prototype_of(code)
                name = NAME.search(prototype)[1]
                if name not in seen and (
                        comment or latest and latest.comment):
                    seen.add(name)
                    if comment or latest.kind != "function":
                        type_ = None if comment else latest
                        latest = Item("function", comment or latest.comment)
                        latest.type = type_
                        yield latest
                    latest.add(name, prototype)
            comment = None


def macro_of(line, comment):
    """A constant with a comment, or what is called like a function."""
    match = re.match(r"#define (LAWN_\w+ |lawn_\w+\([^)]*\))", line)
    if not match or not comment:
        return None
    item = Item("macro", comment)
    item.codes.append(match[0].rstrip())
    return item


def prototype_of(code):
    text = " ".join(" ".join(code).partition("{")[0].split()).rstrip("; ")
    return re.sub(r"^(LAWN_API|LAWN_INLINE|static inline) ", "", text) + ";"
