# Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
"""Reads C++ of the library and says in SMT-LIB what it computes.

Two things are read. functions() translates a function that consists of
constants, `if (...) { return ...; }` and `return`, such as those of slots.h:
bit for bit, with the types and conversions of C++. quote() takes an expression
out of any other function, by what stands around it. So what is proved about an
expression is proved about the one that the compiler sees.

For each function f there is a second one, ok_f. It says that no shift is by the
width of its operand or more, that no bit is searched in 0, and that no sum,
difference or product wraps around, in f and in what f calls.
"""
import importlib.machinery
import importlib.util
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent.parent

# Tells how C++ is split into tokens, where a function is, and what a fault is.
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutate", str(root / "ci/mutate"))
loader_spec = importlib.util.spec_from_loader("mutate", loader)
mutate = importlib.util.module_from_spec(loader_spec)
loader.exec_module(mutate)

Error = mutate.Error

widths = {"int": 32, "u32": 32, "u64": 64}
types = {"lawn_time_t": "u64", "uint64_t": "u64", "size_t": "u64",
         "unsigned": "u32", "bool": "bool"}
sorts = {"u64": "(_ BitVec 64)", "u32": "(_ BitVec 32)", "bool": "Bool"}

levels = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="],
          ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
compare = {"<": "bvult", "<=": "bvule", ">": "bvugt", ">=": "bvuge"}
compute = {"|": "bvor", "^": "bvxor", "&": "bvand", "+": "bvadd", "-": "bvsub",
           "*": "bvmul", "/": "bvudiv", "%": "bvurem"}


class Term:
    """What an expression is in SMT-LIB, and when it is well defined."""

    def __init__(self, text, kind, ok=()):
        self.text = text
        self.kind = kind
        self.ok = list(ok)

    def to(self, kind):
        text = self.text
        if kind == self.kind or {kind, self.kind} == {"int", "u32"}:
            pass
        elif kind == "bool":
            text = f"(distinct {text} {number(0, self.kind)})"
        elif self.kind == "bool":
            text = f"(ite {text} {number(1, kind)} {number(0, kind)})"
        elif kind == "u64":
            extend = "sign" if self.kind == "int" else "zero"
            text = f"((_ {extend}_extend 32) {text})"
        else:
            text = f"((_ extract 31 0) {text})"
        return Term(text, kind, self.ok)


def number(value, kind):
    return f"(_ bv{value} {widths[kind]})"


def conjunction(terms):
    terms = [term for term in dict.fromkeys(terms) if term != "true"]
    return "true" if not terms else f"(and {' '.join(terms)} true)"


def no_wrap(operator, left, right, kind):
    width = widths[kind]
    if operator == "-":
        return f"(bvule {right} {left})"
    extend = 1 if operator == "+" else width
    wide = [f"((_ zero_extend {extend}) {side})" for side in (left, right)]
    high = f"((_ extract {width + extend - 1} {width})"
    return (f"(= {high} ({compute[operator]} {wide[0]} {wide[1]}))"
            f" (_ bv0 {extend}))")


class Parser:
    """Expressions of C++, by the precedence of their operators."""

    def __init__(self, tokens, names, functions):
        self.tokens = list(tokens)
        self.names = names  # what names, members and calls stand for
        self.functions = functions  # name: kinds of parameters, of the result
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if token == "" or (wanted is not None and token != wanted):
            raise Error(f"'{' '.join(self.tokens)}': '{token}' where "
                        f"'{wanted or 'an expression'}' was expected")
        self.at += 1
        return token

    def parse(self):
        term = self.ternary()
        if self.at != len(self.tokens):
            self.take("")
        return term

    def ternary(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        condition = condition.to("bool")
        self.take("?")
        yes = self.ternary()
        self.take(":")
        no = self.ternary()
        kind = self.common(yes, no)
        yes, no = yes.to(kind), no.to(kind)
        return Term(f"(ite {condition.text} {yes.text} {no.text})", kind,
                    condition.ok
                    + [f"(=> {condition.text} {ok})" for ok in yes.ok]
                    + [f"(or {condition.text} {ok})" for ok in no.ok])

    @staticmethod
    def common(left, right):
        kinds = {left.kind, right.kind}
        for kind in ("u64", "u32", "int"):
            if kind in kinds:
                return kind
        return "bool" if kinds == {"bool"} else "int"

    def binary(self, level):
        if level == len(levels):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in levels[level]:
            operator = self.take()
            left = self.apply(operator, left, self.binary(level + 1))
        return left

    def apply(self, operator, left, right):
        if operator in ("||", "&&"):
            left, right = left.to("bool"), right.to("bool")
            guard = "or" if operator == "||" else "=>"
            word = "or" if operator == "||" else "and"
            return Term(f"({word} {left.text} {right.text})", "bool",
                        left.ok + [f"({guard} {left.text} {ok})"
                                   for ok in right.ok])
        ok = left.ok + right.ok
        if operator in ("<<", ">>"):
            kind = "int" if left.kind == "bool" else left.kind
            width = number(widths[kind], right.to("u64").kind)
            ok.append(f"(bvult {right.to('u64').text} {width})")
            word = "bvshl" if operator == "<<" else (
                "bvashr" if kind == "int" else "bvlshr")
            return Term(f"({word} {left.to(kind).text} {right.to(kind).text})",
                        kind, ok)
        kind = self.common(left, right)
        if kind == "bool":
            if operator not in ("==", "!="):
                raise Error(f"'{operator}' of two conditions")
            word = "=" if operator == "==" else "distinct"
            return Term(f"({word} {left.text} {right.text})", "bool", ok)
        if kind == "int":
            raise Error(f"'{operator}' of two signed numbers")
        a, b = left.to(kind).text, right.to(kind).text
        if operator in ("==", "!="):
            word = "=" if operator == "==" else "distinct"
            return Term(f"({word} {a} {b})", "bool", ok)
        if operator in compare:
            return Term(f"({compare[operator]} {a} {b})", "bool", ok)
        if operator in "+-*":
            ok.append(no_wrap(operator, a, b, kind))
        elif operator in "/%":
            ok.append(f"(distinct {b} {number(0, kind)})")
        return Term(f"({compute[operator]} {a} {b})", kind, ok)

    def unary(self):
        if self.peek() == "~":
            self.take()
            term = self.unary()
            return Term(f"(bvnot {term.text})", term.kind, term.ok)
        if self.peek() == "!":
            self.take()
            term = self.unary().to("bool")
            return Term(f"(not {term.text})", "bool", term.ok)
        if self.peek() == "(":
            self.take()
            term = self.ternary()
            self.take(")")
            return term
        return self.primary()

    def primary(self):
        token = self.take()
        if match := re.fullmatch(r"(\d+)(U?)", token):
            return Term(number(int(match[1]), "int"),
                        "u32" if match[2] else "int")
        if token == "static_cast":
            self.take("<")
            kind = types[self.take()]
            self.take(">")
            self.take("(")
            term = self.ternary().to(kind)
            self.take(")")
            return term
        if token in types and self.peek() == "{":
            self.take()
            term = self.ternary().to(types[token])
            self.take("}")
            return term
        return self.named(token)

    def named(self, token):
        """A name with all that follows it, if `names` has the whole."""
        begin, end = self.at - 1, self.at
        while end < len(self.tokens):
            if self.tokens[end] in ("->", "."):
                end += 2
            elif self.tokens[end] in "([":
                end = mutate.closing(self.tokens, end) + 1
            else:
                break
        whole = "".join(self.tokens[begin:end])
        if whole in self.names:
            self.at = end
            return self.names[whole]
        if token not in self.functions:
            raise Error(f"{whole}: not known to the proof")
        kinds, result = self.functions[token]
        self.take("(")
        terms = []
        for i, kind in enumerate(kinds):
            if i:
                self.take(",")
            terms.append(self.ternary().to(kind))
        self.take(")")
        texts = " ".join(term.text for term in terms)
        return Term(f"({token} {texts})", result,
                    [ok for term in terms for ok in term.ok]
                    + [f"(ok_{token} {texts})"])


class Source:
    """The files of the library, one of them perhaps with a fault."""

    def __init__(self, file=None, text=None):
        self.texts = {file: text} if file else {}
        self.known = {  # of the compiler; prelude() defines them
            "__builtin_clzll": (["u64"], "int"),
            "__builtin_ctzll": (["u64"], "int"),
        }
        self.constants = {}

    def tokens(self, file):
        if file not in self.texts:
            self.texts[file] = (root / file).read_text()
        return [token[0] for token in mutate.read_tokens(self.texts[file])]

    def body(self, file, function):
        words = self.tokens(file)
        first, last = mutate.the_only(list(mutate.bodies(words, function)),
                                      f"{function}() is defined", file)
        return words[first:last]

    def quote(self, file, function, pattern):
        """The tokens at the @ of the pattern, which must be there once."""
        parts = [" ".join(re.escape(token[0])
                          for token in mutate.read_tokens(part))
                 for part in pattern.split("@")]
        regex = re.compile(" ([^;]+?) ".join(parts))
        found = regex.findall(" ".join(self.body(file, function)))
        return mutate.the_only(found, f"'{pattern}' is",
                               f"{function}()").split()

    def term(self, tokens, names):
        return Parser(tokens, {**self.constants, **names}, self.known).parse()

    def read_constants(self, file):
        words = self.tokens(file)
        for at in mutate.find(words, ["constexpr"]):
            end = words.index(";", at)
            self.constants[words[at + 2]] = self.term(
                words[at + 4:end], {}).to(types[words[at + 1]])

    def functions(self, file, names):
        """Defines the functions in SMT-LIB, in this order."""
        return "\n".join(self.function(file, name) for name in names)

    def function(self, file, name):
        words = self.tokens(file)
        body = self.body(file, name)
        end = mutate.closing(body, 1)
        parameters = [(types[body[i]], body[i + 1])
                      for i in range(2, end, 3)]
        result = types[words[mutate.find(words, body)[0] - 1]]
        scope = {word: Term(word, kind) for kind, word in parameters}
        term = self.statements(body[end + 2:-1], scope, result)
        self.known[name] = [kind for kind, _ in parameters], result
        head = " ".join(f"({word} {sorts[kind]})" for kind, word in parameters)
        return (f"(define-fun {name} ({head}) {sorts[result]} {term.text})\n"
                f"(define-fun ok_{name} ({head}) Bool {conjunction(term.ok)})")

    def statements(self, words, scope, result):
        if words[0] == "return":
            end = words.index(";")
            return self.term(words[1:end], scope).to(result)
        if words[0] == "const":
            end = words.index(";")
            value = self.term(words[4:end], scope).to(types[words[1]])
            # A constant stands for its value: no name can be captured.
            rest = self.statements(
                words[end + 1:], {**scope, words[2]: Term(
                    value.text, value.kind)}, result)
            return Term(rest.text, rest.kind, value.ok + rest.ok)
        if words[0] == "if":
            end = mutate.closing(words, 1)
            condition = self.term(words[2:end], scope).to("bool")
            close = mutate.closing(words, end + 1)
            yes = self.statements(words[end + 2:close], scope, result)
            no = self.statements(words[close + 1:], scope, result)
            return Term(f"(ite {condition.text} {yes.text} {no.text})", result,
                        condition.ok
                        + [f"(=> {condition.text} {ok})" for ok in yes.ok]
                        + [f"(or {condition.text} {ok})" for ok in no.ok])
        raise Error(f"'{' '.join(words[:6])} ...': a statement that the proof "
                    "cannot read")


def prelude():
    """clz and ctz: where the highest and the lowest bit of a word are."""
    lines = []
    for name, order in (("clz", range(63, -1, -1)), ("ctz", range(64))):
        text = number(64, "int")
        for i, bit in reversed(list(enumerate(order))):
            text = (f"(ite (= ((_ extract {bit} {bit}) x) (_ bv1 1)) "
                    f"{number(i, 'int')} {text})")
        lines.append(f"(define-fun __builtin_{name}ll ((x (_ BitVec 64))) "
                     f"(_ BitVec 32) {text})")
        lines.append(f"(define-fun ok___builtin_{name}ll ((x (_ BitVec 64))) "
                     "Bool (distinct x (_ bv0 64)))")
    return "\n".join(lines)
