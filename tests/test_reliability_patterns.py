"""No text keeps a regular expression of the package busy: each is pumped wherever it repeats.

For each repeat in a pattern there are texts that go round it thousands of times and then do not
match. Where a pattern can match such a stretch in several ways, or begins anew at each character
of it, the time grows with the square of the length, or worse; it has to grow with the length.
"""

from __future__ import annotations

import ast
import collections
import functools
import importlib
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sampler_lint

try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # before Python 3.11
    import sre_parse as parser  # type: ignore[import-not-found,no-redef]

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="ends a search that hangs")

PACKAGE = Path(sampler_lint.__file__).parent

#: Characters of a text, and the seconds a search through it may take: to look at each character
#: a few dozen times takes a hundredth, and to look at the rest of the text at each takes seconds.
LENGTH, SECONDS = 30_000, 0.2

Pattern = re.Pattern[Any]


@dataclass(frozen=True, slots=True)
class Used:
    """A regular expression, and the methods that are called of it."""

    pattern: Pattern
    methods: frozenset[str]


# -- which there are


@functools.cache
def modules() -> list[tuple[str, ModuleType | None, ast.Module]]:
    """Each file of the package; the module where what it needs is installed."""
    found: list[tuple[str, ModuleType | None, ast.Module]] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "dev"):
            continue  # it reads our own pages
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = None
        if "_site" not in parts and parts[-1] not in {"__main__", "__init__"}:
            try:
                module = importlib.import_module(".".join(parts))
            except ImportError:
                assert parts[1] in {"harness", "integrations", "language_server"}, path
        found.append(("/".join(parts[1:]), module, ast.parse(path.read_text("utf-8"))))
    return found


@functools.cache
def patterns() -> dict[str, Used]:
    """Every regular expression: those with a name, and those written where they are used."""
    found: dict[str, Used] = {}
    for name, module, tree in modules():
        attributes = collections.defaultdict(set)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                attributes[node.value.id].add(node.attr)
        for key, value in vars(module).items() if module is not None else ():
            if isinstance(value, re.Pattern):
                # Handed to a function, it may be used in any way.
                found[f"{name}.{key}"] = Used(value, METHODS & attributes[key] or METHODS)
        named = {used.pattern for used in found.values()}
        for how, call in _calls_of_re(tree):
            text = _text(call.args[0])
            if text is None or how == "escape":
                continue
            pattern = re.compile(text, _flags(call))
            if how != "compile":
                found[f"{name}:{call.lineno}"] = Used(pattern, frozenset({how}))
            elif pattern not in named:
                found[f"{name}:{call.lineno}"] = Used(pattern, METHODS)
    return {key: used for key, used in found.items() if not _is_again(key, used, found)}


METHODS = frozenset({"match", "fullmatch", "search", "finditer", "findall", "sub", "split"})


def _calls_of_re(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Which function of ``re`` is called where, with something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of = node.func.value
            if isinstance(of, ast.Name) and of.id == "re":
                yield node.func.attr, node


def _is_again(key: str, used: Used, found: dict[str, Used]) -> bool:
    """Whether the same stands under an earlier key, as imported names do."""
    return next(other for other, each in found.items() if each == used) != key


def _text(node: ast.expr) -> Any:
    """What is searched for; any word for what is only known at run time."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "word"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return (left or "word") + (right or "word") if left or right else None
    return None


def _flags(call: ast.Call) -> int:
    words = [ast.unparse(arg) for arg in [*call.args, *(k.value for k in call.keywords)]]
    flags = [getattr(re, flag) for word in words for flag in re.findall(r"re\.([A-Z]+)\b", word)]
    return sum(flags)


# -- what they repeat


def sample(items: Sequence[Any]) -> str:
    """A text that matches, as nearly as matters."""
    return "".join(_sample(str(kind), value) for kind, value in items)


def _sample(kind: str, value: Any) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "NOT_LITERAL":
        return "a" if value != ord("a") else "b"
    if kind == "ANY":
        return "a"
    if kind == "IN":
        return _member(value)
    if kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
        low, _, inner = value
        return sample(inner) * max(low, 1)
    if kind == "SUBPATTERN":
        return sample(value[-1])
    if kind == "BRANCH":
        return sample(value[1][0])
    if kind == "ATOMIC_GROUP":
        return sample(value)
    if kind == "ASSERT":
        return sample(value[1]) if value[0] < 0 else ""
    return ""


def _member(items: Sequence[tuple[Any, Any]]) -> str:
    """A character of a set."""
    spelled = "".join(
        {
            "CATEGORY_SPACE": "[ ]", "CATEGORY_DIGIT": "[1]", "CATEGORY_WORD": "[a]",
            "CATEGORY_NOT_SPACE": "[a]", "CATEGORY_NOT_DIGIT": "[a]", "CATEGORY_NOT_WORD": "[-]",
        }.get(str(value), "")[1:-1]
        or (chr(value[0]) if str(kind) == "RANGE" else chr(value) if str(kind) == "LITERAL" else "")
        for kind, value in items
    )  # fmt: skip
    if str(items[0][0]) == "NEGATE":
        return next(char for char in "a b1-x" if char not in spelled)
    return spelled[:1] or "a"


def repeats(items: Sequence[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """What stands before each repeat that has no narrow limit, and what is repeated there."""
    for kind, value in items:
        name = str(kind)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            _, high, inner = value
            if int(high) > 50:
                yield from ((before, unit) for unit in _units(inner))
            yield from repeats(inner, before)
        elif name == "SUBPATTERN":
            yield from repeats(value[-1], before)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from repeats(branch, before)
        elif name in {"ASSERT", "ASSERT_NOT"}:
            yield from repeats(value[1], before)
        before += _sample(name, value)


def _units(inner: Sequence[Any]) -> Iterator[str]:
    """Texts that the inside of a repeat matches."""
    yield sample(inner) or "a"
    for kind, value in inner:
        if str(kind) == "SUBPATTERN":
            yield from _units(value[-1])
        elif str(kind) == "BRANCH":
            yield from (sample(branch) or "a" for branch in value[1])
        elif str(kind) == "IN":
            spaces = {"CATEGORY_SPACE"} & {str(each) for _, each in value}
            yield from "\n\t" if spaces else ""


def pumped(pattern: Pattern) -> Iterator[str]:
    """Long texts that go round and round in it, and end as it does not like."""
    parsed = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    whole = sample(parsed)
    for before, unit in dict.fromkeys(repeats(parsed)):
        stretch = before + unit * (LENGTH // len(unit))
        yield from (f"{stretch}{end}" for end in ("\0", "\n", "!x"))
        # Some of it, again and again: each beginning looks as far as it may.
        for part in (f"{before}{unit}", f"{before}{unit * 200}"):
            yield part * (3 * LENGTH // len(part))
    if whole:
        yield whole * (LENGTH // len(whole))
        yield whole[:-1] * (LENGTH // len(whole)) + "\0"


def is_slow(used: Used, text: str) -> bool:
    """Whether this process computes for too long on a search."""
    pattern = used.pattern
    data: Any = text
    if isinstance(pattern.pattern, bytes):
        data = text.encode("utf-8", "surrogatepass")

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        if "match" in used.methods:
            pattern.match(data)
        if "fullmatch" in used.methods:
            pattern.fullmatch(data)
        if used.methods - {"match", "fullmatch"}:
            collections.deque(pattern.finditer(data), 0)
    except TimeoutError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return False


# -- that none is slow


def test_no_pattern_takes_longer_than_its_text_is_long() -> None:
    slow = [
        (key, text[:40])
        for key, used in patterns().items()
        for text in pumped(used.pattern)
        if is_slow(used, text)
    ]
    assert not slow


def test_every_pattern_is_tried() -> None:
    tried = {used.pattern.pattern for used in patterns().values()}
    written = {
        call.args[0].value
        for _, module, tree in modules()
        if module is not None
        for _, call in _calls_of_re(tree)
        if isinstance(call.args[0], ast.Constant)
    }
    assert written <= tried


@pytest.mark.parametrize(
    "bad", [r"(a+)+$", r"(?:a|a)*b", r"\s*\s*=", r"(\w|\d)+!", r"\w+:", r"x.*y.*z"]
)
def test_a_bad_pattern_is_found(bad: str) -> None:
    pattern = re.compile(bad)
    assert any(is_slow(Used(pattern, METHODS), text) for text in pumped(pattern))
