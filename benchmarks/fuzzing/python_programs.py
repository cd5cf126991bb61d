"""Random programs that Python can run and the linter's interpreter of samplers can follow.

They count, slice, loop, raise and yield, and neither import, print nor touch anything: running
one in this process does no more than take time, and little of it.
"""

from __future__ import annotations

import random
import textwrap

_NUMBERS = ("0", "1", "2", "3", "5", "7", "-1", "-2", "0.5", "True")
_OPERATORS = ("+", "-", "*", "//", "%", "/", "&", "|", "^")
_COMPARISONS = ("<", "<=", "==", "!=", ">", ">=", "in", "not in", "is", "is not", "and", "or")

#: ``{n}`` is a number, ``{s}`` a sequence, ``{a}`` any, ``{c}`` a condition, ``{v}`` a name.
_EXPRESSIONS = {
    "n": (
        *("len({s})", "sum({s})", "min({n}, {n})", "max({s}, default=1)", "abs({n})", "int({n})"),
        *(
            "math.ceil({n} / 3)",
            "-({n})",
            "~(0 + {n})",
            "({n} if {c} else {n})",
            "{s}[{n}]",
            "{s}[-1]",
        ),
        *("round({n})", "divmod({n}, 3)[1]", "next(iter({s}), {n})", "{s}.index({n})", "int({c})"),
        *("{s}.count({n})", "helper({n}, {n})", "Box({n}).value", "len(Box({n}))", "(x := {n})"),
        *(
            "(lambda y: y + {n})({n})",
            "{{1: {n}, 2: {n}}}.get({n}, {n})",
            "bisect.bisect({s}, {n})",
        ),
        *("sum(z for z in {s} if {c})", "Box({n})[{n}]", "Box({n}).twice", "math.floor({n})"),
    ),
    "s": (
        *("[{n}, {n}]", "({n}, {a}, {n})", "list(range({n}))", "[*{s}, {n}]", "{s} + {s}"),
        *("{s}[{n}:]", "{s}[:{n}]", "{s}[{n}::2]", "{s}[::-1]", "{s} * 2", "sorted({s})"),
        *("[x for x in {s}]", "[x for x in {s} if {c}]", "list(reversed({s}))", "list(set({s}))"),
        *(
            "list(zip({s}, {s}))",
            "list(enumerate({s}))",
            "list(map(lambda x: x, {s}))",
            "list({s})",
        ),
        *("tuple({s})", "list(generated({n}))", "list(Box({n}))", "[x for y in [{s}] for x in y]"),
        *("list({{x: 1 for x in {s}}})", "list(dict.fromkeys({s}))", "sorted({s}, reverse={c})"),
        *("list(itertools.islice({s}, {n}))", "list(itertools.chain({s}, {s}))", "list('ab')"),
        *("[x for x, *_ in [{s}]]", "list(filter(None, {s}))", "[[{n}] * 2, {s}][{n} % 2]"),
        *("list({{'a': {n}}}.items())", "({s} if {c} else {s})", "list(itertools.accumulate({s}))"),
    ),
    "c": ("{a} {k} {a}", "{n} < {n}", "not {a}", "bool({a})", "any({s})", "isinstance({a}, int)"),
    "a": ("{n}", "{s}", "{c}", "None", "'ab'", "{v}"),
}

#: ``{b}`` is a block of statements.
_STATEMENTS = (
    *("{v} = {a}", "{v} = {n}", "{v} = {s}", "{v} += {n}", "{v} -= 1", "{v}, {v} = {a}, {a}"),
    *("{v}, *{v} = {s}", "out.append({a})", "out.append({n})", "out.extend({s})", "{v} = out[:]"),
    *("if {c}:{b}", "if {c}:{b}else:{b}", "for {v} in {s}:{b}", "for {v} in {s}:{b}else:{b}"),
    *("for i, {v} in enumerate({s}):{b}", "while len(out) < 4:\n    out.append({a})"),
    *("try:{b}except ZeroDivisionError:{b}", "try:{b}except (IndexError, TypeError):{b}"),
    *("try:{b}except Exception:{b}else:{b}", "try:{b}finally:{b}", "assert {c}", "del out[:{n}]"),
    *("def helper(a, b=4, *rest):{b}", "raise ValueError({n})", "return out", "{v} = {v}"),
    *("{v}.append({n})", "{v}[{n}] = {a}", "{v}[{n}:] = {s}", "{v} = dict(a={a})", "{v}.sort()"),
    *("out += [{a}]", "def inner():\n    nonlocal out\n    out = out + [{n}]\ninner()", "pass"),
    *("for {v} in generated({n}):{b}", "{v} = Box({n})", "{v}.value += {n}", "{v}.clear()"),
)
_IN_A_LOOP = ("break", "continue", "if {c}:\n    break", "if {c}:\n    continue")

_HEAD = """\
import bisect, itertools, math

class Box:
    def __init__(self, value=1):
        self.value = value
        self.rest = []
    def __len__(self):
        return abs(int(self.value)) % 7
    def __iter__(self):
        yield self.value
        for number in range(len(self)):
            yield number
    def __getitem__(self, at):
        return [4, 5, 6][at]
    @property
    def twice(self):
        return self.value * 2

def helper(a, b=2, *rest):
    return a - b

def generated(count):
    for number in range(count):
        if number == 3:
            return
        yield number * 2

"""


def python_program(rng: random.Random) -> str:
    """Some text; what it computes is called ``X``."""
    body = "\n".join(_statement(rng, 3, loop=False) for _ in range(rng.randint(1, 7)))
    first = f"a, b, c = {_expression(rng, 'n', 2)}, {_expression(rng, 's', 2)}, None"
    body = f"a, b = 3, [1, 2]\n{first}\n{body}"
    function = textwrap.indent(f"out = []\n{body}\nreturn out, a, b", "    ")
    return f"{_HEAD}def run(x=3):\n{function}\n\nX = run()\n"


def _expression(rng: random.Random, kind: str, depth: int) -> str:
    if depth <= 0 or rng.random() < 0.15:
        return {
            "n": rng.choice((*_NUMBERS, "a", "x")),
            "s": rng.choice(("[1, 2, 3]", "(2, 1)", "[]", "out", "b", "range(4)")),
            "c": rng.choice(("True", "False", "a", "x > 1")),
            "a": rng.choice((*_NUMBERS, "a", "b", "c", "x", "out[:2]")),
        }[kind]
    if kind == "n" and rng.random() < 0.4:
        left, right = _expression(rng, "n", depth - 1), _expression(rng, "n", depth - 1)
        return f"({left} {rng.choice(_OPERATORS)} {right})"
    form = rng.choice(_EXPRESSIONS[kind])
    return f"({_filled(form, rng, depth - 1)})"


def _filled(form: str, rng: random.Random, depth: int, *, loop: bool = False) -> str:
    """The form with each of its holes filled in its own way."""
    out, at = [], 0
    while at < len(form):
        if form[at] == "{" and form[at + 1] != "{":
            hole = form[at + 1]
            at += 3
            if hole == "b":
                inside = loop or form.startswith(("for", "while"))
                block = "\n".join(
                    _statement(rng, depth - 1, loop=inside) for _ in range(rng.randint(1, 2))
                )
                out.append(f"\n{textwrap.indent(block, '    ')}\n")
            elif hole == "v":
                out.append(rng.choice("abcx"))
            elif hole == "k":
                out.append(rng.choice(_COMPARISONS))
            else:
                out.append(_expression(rng, hole, depth))
        else:
            at += form[at] in "{}"  # doubled
            out.append(form[at])
            at += 1
    return "".join(out)


def _statement(rng: random.Random, depth: int, *, loop: bool) -> str:
    simple = [form for form in _STATEMENTS if "{b}" not in form]
    forms = simple if depth <= 0 else [*_STATEMENTS, *(_IN_A_LOOP * loop)]
    return _filled(rng.choice(forms), rng, depth, loop=loop).rstrip("\n")
