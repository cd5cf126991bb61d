#!/usr/bin/env python3
"""Put one slip into a class that samples, or that wraps one, at a time in public programs.

    python benchmarks/wild/inject_classes.py TREES [--part read|blind] [--per 2] [--kinds K …]

As ``inject_loaders.py`` beside it, for what ``inject_state.py`` leaves out: names that hide one
another, calls that no longer reach the part they are for, and the arithmetic of a rank's share.
About one slip in ten is harmless: a setter that nobody calls, or a rounding that comes to the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from inject_loaders import Edit, File, _last, main, places
from inject_state import _is_own, _stored

_COUNTS = {"SMP304", "SMP306", "SMP405"}
_STATE = {"SMP401", "SMP402", "SMP404"}
_EPOCH = {"SMP101", "SMP102", "SMP103", "SMP104"}

CODES = {
    "number-for-number": _COUNTS | _STATE | _EPOCH | {"SMP203"},
    "true-division": _COUNTS | _STATE | {"SMP305"},
    "attribute-over-method": _COUNTS | _STATE | {"SMP104", "SMP305"},
    "property-assigned": _COUNTS | _STATE | {"SMP104", "SMP305"},
    "override-misspelled": _COUNTS | _STATE | _EPOCH | {"SMP301", "SMP303", "SMP305"},
    "forward-dropped": _EPOCH | {"SMP404"},
    "forward-guarded": _EPOCH | {"SMP401"},
    "forward-to-another": _EPOCH | _STATE,
    "forward-removed": _EPOCH,
    "rank-to-world": _COUNTS,
    "share-shifted": _COUNTS,
    "padding-of-another": _COUNTS | _STATE,
    "rest-dropped": _COUNTS,
    "drop-last-flipped": _COUNTS,
    "length-rounded": _COUNTS,
    "length-of-inner": _COUNTS,
}
_WRONG = {"__iter__": "__iter", "__len__": "_len_", "set_epoch": "set_epochs"}
_WRAPPED = re.compile("sampler|loader|dataset|data")


class Classes(File):
    """A file and the slips that fit into its classes."""

    def bugs(self) -> Iterator[Edit]:
        """Every slip that fits."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
                names = " ".join((node.name, *map(_last, node.bases)))
                if "Sampler" in names and methods.keys() & {"__iter__", "__len__"}:
                    yield from self._of_sampler(node, methods)
                if "Sampler" in names or re.search("Loader|Dataset", names):
                    yield from self._of_wrapper(methods)

    def _of_sampler(self, cls: ast.ClassDef, methods: dict[str, ast.FunctionDef]) -> Iterator[Edit]:
        init = methods.get("__init__")
        stored = {_stored(stmt): stmt for stmt in init.body} if init is not None else {}
        stored.pop("", None)
        yield from self._names(methods, stored)
        for name in ("__iter__", "__len__", "set_epoch"):
            if name in methods:
                line = methods[name]
                new = self.source(line).replace(f"def {name}(", f"def {_WRONG[name]}(", 1)
                yield self.edits("override-misspelled", [(line, new)])
        numbers = {name for name in stored if self._is_number(cls, name)}
        for method in methods.values():
            for node in ast.walk(method):
                if method is not init and _is_read(node) and node.attr in numbers:
                    for other in sorted(numbers - {node.attr}):
                        yield self.edit("number-for-number", node, f"self.{other}")
                yield from self._arithmetic(node)
        yield from self._length(methods)

    def _is_number(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether the class reckons with it."""
        for node in ast.walk(cls):
            sides: list[ast.AST] = []
            if isinstance(node, (ast.BinOp, ast.AugAssign)):
                sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
            elif isinstance(node, ast.Call) and _last(node.func) in {"range", "manual_seed"}:
                sides = [*node.args]
            elif isinstance(node, ast.Slice):
                sides = [part for part in (node.lower, node.upper, node.step) if part]
            if any(_is_own(side) and side.attr == name for side in sides):
                return True
        return False

    def _names(
        self, methods: dict[str, ast.FunctionDef], stored: dict[str, ast.stmt]
    ) -> Iterator[Edit]:
        """Two things of one name."""
        own = [name for name, m in methods.items() if not m.decorator_list and name[:2] != "__"]
        for name in own:
            called = [
                node
                for each in methods.values()
                for node in ast.walk(each)
                if isinstance(node, ast.Call) and _is_own(node.func) and node.func.attr == name
            ]
            for stmt in stored.values():
                plain = isinstance(stmt.value, (ast.Constant, ast.BinOp))
                if called and plain and name not in stored:
                    more = f"self.{name} = {self.source(stmt.targets[0])}"
                    indent = " " * stmt.col_offset
                    new = f"{self.source(stmt)}\n{indent}{more}"
                    yield self.edits("attribute-over-method", [(stmt, new)])
        first = methods.get("__iter__") or next(iter(methods.values()))
        if first.decorator_list:
            return
        for name in stored:
            read = any(
                _is_read(node) and node.attr == name
                for each in methods.values()
                for node in ast.walk(each)
            )
            if read:
                indent = " " * first.col_offset
                body = f"@property\n{indent}def {name}(self):\n{indent}    return self._{name}"
                new = f"{body}\n\n{indent}{self.source(first)}"
                yield self.edits("property-assigned", [(first, new)])

    def _arithmetic(self, node: ast.AST) -> Iterator[Edit]:
        """A rank's share, what fills it, and what is left of it."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            first, last, step = node.slice.lower, node.slice.upper, node.slice.step
            items = self.source(node.value)
            if first is not None and step is not None and "rank" in self.source(first):
                rank, ranks = self.source(first), self.source(step)
                yield self.edit("rank-to-world", node, f"{items}[{rank}:{ranks}]")
                end = "" if last is None else f" {self.source(last)} "
                new = f"{items}[{rank} + 1 :{end}: {ranks}]"
                yield self.edit("share-shifted", node, new)
            elif first is not None and last is not None and step is None:
                text = self.source(node.slice)
                if "rank" in text or "offset" in text or "start" in text:
                    begin, end = self.source(first), self.source(last)
                    yield self.edit("share-shifted", node, f"{items}[{begin} : {end} - 1]")
                    yield self.edit("share-shifted", node, f"{items}[{begin} + 1 : {end}]")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            left, right = self.source(node.left), self.source(node.right)
            if left == "self.total_size" and right.startswith("len("):
                yield self.edit("padding-of-another", node, f"self.num_samples - {right}")
                yield self.edit("padding-of-another", node, f"{left} - {right} - 1")
        if isinstance(node, ast.Assign) and _is_own(node.targets[0]):
            value = node.value
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
                new = f"{self.source(value.left)} / {self.source(value.right)}"
                yield self.edit("true-division", value, new)
            if isinstance(value, ast.Call) and _last(value.func) == "int" and len(value.args) == 1:
                inner = value.args[0]
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
                    yield self.edit("true-division", value, self.source(inner))
        if isinstance(node, ast.If) and not node.orelse:
            text, body = self.source(node.test), "".join(map(self.source, node.body))
            last = node.body[-1]
            is_rest = isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield)
            if is_rest and "len(" in text and "drop_last" in text and "size" not in text:
                yield self.edits("rest-dropped", [(node, "pass")])
            if "not self.drop_last" in text and ("yield" in body or "append" in body):
                new = text.replace("not self.drop_last", "self.drop_last")
                yield self.edit("drop-last-flipped", node.test, new)

    def _length(self, methods: dict[str, ast.FunctionDef]) -> Iterator[Edit]:
        length = methods.get("__len__")
        if length is None or "__iter__" not in methods:
            return
        for stmt in ast.walk(length):
            value = stmt.value if isinstance(stmt, ast.Return) else None
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
                left, right = self.source(value.left), self.source(value.right)
                yield self.edit("length-rounded", value, f"-(-({left}) // ({right}))")
                yield self.edit("length-of-inner", value, left)
            if isinstance(value, ast.Call) and _last(value.func) == "ceil" and value.args:
                yield self.edit("length-rounded", value, f"int({self.source(value.args[0])})")

    def _of_wrapper(self, methods: dict[str, ast.FunctionDef]) -> Iterator[Edit]:
        """An epoch that no longer reaches the part that it is for."""
        setter = methods.get("set_epoch")
        if setter is None:
            return
        held = {
            node.attr
            for method in methods.values()
            for node in ast.walk(method)
            if _is_own(node) and _WRAPPED.search(node.attr) and node.attr not in methods
        }
        for node in ast.walk(setter):
            call = node.value if isinstance(node, ast.Expr) else None
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr != "set_epoch"
            ):
                continue
            part, text = call.func.value, self.source(call.func.value)
            if text.startswith("super("):
                yield self.edits("forward-dropped", [(node, "pass")])
                continue
            if len(setter.body) == 1 + bool(ast.get_docstring(setter)):
                yield self.edits("forward-removed", [(setter, "pass")])
            yield self.edits(
                "forward-dropped",
                [(node, f"self._epoch = {self.source(call.args[0])}" if call.args else "pass")],
            )
            indent = " " * node.col_offset
            guard = f'if hasattr({text}, "set_epochs"):\n{indent}    {self.source(node)}'
            yield self.edits("forward-guarded", [(node, guard)])
            if _is_own(part):
                for other in sorted(held - {part.attr}):
                    yield self.edit("forward-to-another", part, f"self.{other}")


def _is_read(node: ast.AST) -> bool:
    return _is_own(node) and isinstance(node.ctx, ast.Load)


if __name__ == "__main__":
    main(CODES, partial(places, reader=Classes, word="ampler"))
