"""How the fuzzer changes programs: lines, tokens, syntax, bytes, and the files they are in."""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
import warnings
from collections.abc import Callable, Sequence

from fuzzing.programs import Tree

#: Changes some content; the trees are there to take from.
Change = Callable[[bytes, random.Random, Sequence[Tree]], bytes]

_MOST_SYNTAX = 20_000
_DEFINITION = re.compile(rb"^(?:class|def) +([A-Za-z_]\w*)", re.MULTILINE)


def mutant(trees: Sequence[Tree], rng: random.Random) -> Tree:
    """One of the trees, perhaps joined with others or cut in two, with a few changes."""
    tree = dict(rng.choice(trees))
    if rng.random() < 0.35:
        _join(tree, rng, trees)
    if rng.random() < 0.25:
        _part(tree, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        change_one(tree, rng, trees)
    return tree


def change_one(tree: Tree, rng: random.Random, trees: Sequence[Tree]) -> str:
    """Change one of the files; its name."""
    name = rng.choice(sorted(tree))
    tree[name] = rng.choice(CHANGES)(tree[name], rng, trees)
    return name


# -- the files of a tree


def _join(tree: Tree, rng: random.Random, trees: Sequence[Tree]) -> None:
    """Put files of other trees beside those of this, and imports between them, in rings too."""
    for number in range(rng.randint(1, 3)):
        other = rng.choice(trees)
        folder = rng.choice(("", "", "lib/", "lib/deep/"))
        tree[f"{folder}other{number}.py"] = other[rng.choice(sorted(other))]
        if folder and rng.random() < 0.7:
            tree.setdefault("lib/__init__.py", b"")
    names = sorted(name for name in tree if not name.endswith("__init__.py"))
    if len(names) < 2:
        return
    for _ in range(rng.randint(1, 4)):
        importer, imported = rng.sample(names, 2)
        defined = _defined(tree[imported])
        module = imported.removesuffix(".py").replace("/", ".")
        what = rng.choice([*defined, "*"])
        line = rng.choice(
            (
                f"from {module} import {what}",
                f"from {module} import {what}",
                f"import {module}",
                f"from .{module} import {what}",
                f"from . import {module.rpartition('.')[2]}",
                f"from lib import {what}",
            )
        )
        if what != "*" and rng.random() < 0.5:
            line += f" as {rng.choice([*_defined(tree[importer]), 'other'])}"
        tree[importer] = _after_imports(tree[importer], line.encode(), rng)


def _part(tree: Tree, rng: random.Random) -> None:
    """Move some definitions of a file into another, from which the file then imports them."""
    name = rng.choice(sorted(tree))
    if "/" in name or name.endswith("__init__.py"):
        return
    parsed = _parsed(tree[name])
    if parsed is None:
        return
    moved = [
        node
        for node in parsed.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.Assign)) and rng.random() < 0.5
    ]
    if not moved:
        return
    imports = [node for node in parsed.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    rest = [node for node in parsed.body if node not in moved]
    names = [node.name for node in moved if not isinstance(node, ast.Assign)]
    line = f"from moved import {', '.join(names)}" if names else "from moved import *"
    first = ast.parse(line).body if rng.random() < 0.7 else ast.parse("import moved").body
    tree["moved.py"] = _unparsed([*imports, *moved], b"")
    tree[name] = _unparsed([*imports, *first, *rest], tree[name])


def _defined(data: bytes) -> list[str]:
    return [
        match[1].decode()
        for match in re.finditer(rb"^(?:class|def) +([A-Za-z_]\w*)", data, re.MULTILINE)
    ]


def _after_imports(data: bytes, line: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    places = [at for at, text in enumerate(lines) if text.startswith((b"import ", b"from "))]
    at = rng.choice(places) + 1 if places else 0
    return b"".join([*lines[:at], line, b"\n", *lines[at:]])


# -- lines


def _lines(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Drop, double, move or indent some lines, or take some of another program."""
    lines = data.splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    run = lines[at : at + rng.randint(1, 8)]
    rest = lines[:at] + lines[at + len(run) :]
    what = rng.randrange(5)
    if what == 0:
        return b"".join(rest)
    if what == 1:
        other = rng.choice(sorted(rng.choice(trees).items()))[1].splitlines(keepends=True)
        start = rng.randrange(len(other) or 1)
        run = other[start : start + rng.randint(1, 20)]
        rest = lines
    if what == 2:
        run = [b"    " + line for line in run]
    if what == 3:
        run = [line.removeprefix(b"    ") for line in run]
    to = rng.randint(0, len(rest))
    return b"".join([*rest[:to], *run, *rest[to:]])


# -- tokens


def _tokens(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Put a token of the program, of another, or a word of ours in the place of one."""
    tokens = _tokens_of(data)
    if len(tokens) < 3:
        return data
    old, new = rng.choice(tokens[1:]), rng.choice(tokens[1:]).string
    luck = rng.random()
    if luck < 0.3:
        new = rng.choice(_WORDS)
    elif luck < 0.45:
        others = _tokens_of(rng.choice(sorted(rng.choice(trees).items()))[1])
        new = rng.choice(others).string if others else new
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    row, column = old.start
    if row > len(lines):  # it counts other line ends than we do
        return data
    line = lines[row - 1]
    lines[row - 1] = line[:column] + new + line[column + len(old.string) :]
    return "".join(lines).encode("utf-8", "surrogatepass")


def _tokens_of(data: bytes) -> list[tokenize.TokenInfo]:
    try:
        return [
            token
            for token in tokenize.tokenize(io.BytesIO(data).readline)
            if token.string.strip() and token.start[0] == token.end[0]
        ]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return []


_WORDS = (
    *("None", "True", "self", "cls", "lambda: 0", "[]", "{}", "()", "*args", "**kwargs", "..."),
    *("0", "-1", "10**30", "1.5", "''", "yield", "await x", "return", "pass", "del", "global"),
    *("super()", "DistributedSampler", "DataLoader", "set_epoch", "__len__", "__iter__", "rank"),
    *("num_replicas", "batch_sampler", "sampler", "seed", "epoch", "not", "or", "walrus := 1"),
    *("BatchSampler", "drop_last", "shuffle", "self.sampler", "self.epoch", "len(self)", "//"),
    *("total_size", "num_samples", "functools.partial", "%", "range", "iter", "next", "Trainer"),
)


# -- syntax


def _syntax(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Exchange, wrap or replace a piece of syntax; comments and layout get lost."""
    parsed = _parsed(data)
    if parsed is None:
        return data
    places = [
        (node, field, number)
        for node in ast.walk(parsed)
        for field, value in ast.iter_fields(node)
        for number, piece in enumerate(value if isinstance(value, list) else [value])
        if isinstance(piece, (ast.expr, ast.stmt))
    ]
    if not places:
        return data
    node, field, number = rng.choice(places)
    old = _piece(node, field, number)
    kind = ast.stmt if isinstance(old, ast.stmt) else ast.expr
    alike = [place for place in places if isinstance(_piece(*place), kind)]
    if rng.random() < 0.5:
        new = _piece(*rng.choice(alike))
    elif kind is ast.expr:
        new = _wrapped(ast.unparse(old), rng, "eval")
    else:
        new = _wrapped(ast.unparse(old), rng, "exec")
    if new is None:
        return data
    value = getattr(node, field)
    if isinstance(value, list):
        value[number] = new
    else:
        setattr(node, field, new)
    return _unparsed(parsed.body, data)


_AROUND_EXPRESSION = (
    *("f({0})", "({0} if x else {0})", "[{0}]", "{{'a': {0}}}['a']", "(lambda: {0})()", "not {0}"),
    *("({0}, {0})[0]", "({0})()", "({0}).x", "({0})[0]", "(y := {0})", "[{0} for _ in range(2)]"),
    *("f'{{{0}}}'", "functools.partial({0})", "list({0})", "iter({0})", "len({0})", "{0} or None"),
    *("enumerate({0})", "tqdm({0})", "accelerator.prepare({0})", "max({0}, 1)", "{0} // 2"),
    *("getattr({0}, 'sampler')", "DataLoader({0})", "DistributedSampler({0})", "-{0}", "{0} % 7"),
)
_AROUND_STATEMENT = (
    *("if x:\n {0}", "for epoch in range(9):\n {0}", "while True:\n {0}", "def f(self):\n {0}"),
    *("try:\n {0}\nfinally:\n pass", "with x as y:\n {0}", "class A(Sampler):\n {0}"),
    *("async def f():\n {0}", "try:\n pass\nexcept E as e:\n {0}", "for x in loader:\n {0}"),
    *("match x:\n case [1, *y]:\n  {0}", "if rank == 0:\n {0}\nelse:\n {0}"),
    *("@wraps\ndef f(l):\n {0}",),
)  # fmt: skip


def _wrapped(text: str, rng: random.Random, mode: str) -> ast.AST | None:
    forms = _AROUND_EXPRESSION if mode == "eval" else _AROUND_STATEMENT
    form = rng.choice(forms)
    if mode == "exec":
        text = text.replace("\n", "\n  " if "match" in form else "\n ")
    try:
        parsed = ast.parse(form.format(text), mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError, KeyError):
        return None
    return parsed.body if mode == "eval" else parsed.body[0]


def _piece(node: ast.AST, field: str, number: int) -> ast.AST:
    value = getattr(node, field)
    return value[number] if isinstance(value, list) else value


def _parsed(data: bytes) -> ast.Module | None:
    if len(data) > _MOST_SYNTAX:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _unparsed(body: Sequence[ast.stmt], instead: bytes) -> bytes:
    try:
        text = ast.unparse(ast.Module([*body], []))
    except (ValueError, RecursionError, TypeError, AttributeError):
        return instead
    return f"{text}\n".encode("utf-8", "surrogatepass")


# -- bytes


def _bytes(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    """Change some bytes into any others."""
    changed = bytearray(data or b" ")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) or 1)
        changed[at : at + rng.randint(0, 2)] = rng.choice(_PIECES)
    return bytes(changed)


_PIECES = (
    *(b"\x00", b"\xff", b"\r", b"\x0c", b"\t", b"\\\n", b'"""', b"'", b"#", b";", b"("),
    *(b")", b"\xef\xbb\xbf", "é𝄞".encode(), b"\xed\xa0\x80", b"\xe2\x80\xa8", b"%", b":"),
    *(b"# -*- coding: latin-1 -*-\n", b"# noqa", b"\x1a", b"\xc2\xa0", b"\x0b", b"\x85", b"{"),
)


def _newlines(data: bytes, rng: random.Random, trees: Sequence[Tree]) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))


CHANGES: tuple[Change, ...] = (
    *(_lines,) * 6,
    *(_tokens,) * 6,
    *(_syntax,) * 6,
    _bytes,
    _newlines,
)
