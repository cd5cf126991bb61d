#!/usr/bin/env python3
"""Put one slip with a sampler's attributes or its arithmetic at a time into public programs.

    python benchmarks/wild/inject_state.py TREES [--part read|blind] [--per 2] [--kinds K …]

As ``inject_loaders.py`` beside it, for classes that are called samplers. About one slip in twenty
is harmless, mostly a floor for a ceil, or the other way round, where it comes to the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from inject_loaders import Edit, File, _last, main, places

#: What shows that samples are lost, repeated or counted wrongly.
_COUNTS = {"SMP304", "SMP306", "SMP405"}
_STATE = {"SMP401", "SMP402", "SMP404"}

CODES = {
    "attribute-made-local": _COUNTS | _STATE | {"SMP104", "SMP203"},
    "base-constructor-last": _COUNTS | _STATE | {"SMP305"},
    "other-attribute": _COUNTS | _STATE,
    "overwritten-at-once": _COUNTS | _STATE | {"SMP104", "SMP203"},
    "stride-of-all": _COUNTS,
    "share-of-neighbours": _COUNTS,
    "share-one-less": _COUNTS,
    "floor-for-ceil": _COUNTS,
    "ceil-for-floor": _COUNTS,
    "padding-cut-once": _COUNTS,
}
#: What torch's DistributedSampler stores in its constructor.
_OF_BASE = {
    *("dataset", "num_replicas", "rank", "epoch", "drop_last", "num_samples", "total_size"),
    *("shuffle", "seed"),
}
_EXCHANGED = {
    "num_samples": ("total_size", "num_replicas", "batch_size"),
    "total_size": ("num_samples", "num_replicas"),
    "batch_size": ("num_samples", "num_replicas", "world_size"),
    "num_batches": ("num_samples", "batch_size"),
    "num_replicas": ("rank", "num_samples"),
    "world_size": ("rank", "num_samples"),
    "rank": ("num_replicas", "world_size", "epoch"),
}


class Samplers(File):
    """A file and the slips that fit into its samplers."""

    def bugs(self) -> Iterator[Edit]:
        """Every slip that fits."""
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.ClassDef)
                and any("Sampler" in name for name in (node.name, *map(_last, node.bases)))
                and any(getattr(stmt, "name", "") in {"__iter__", "__len__"} for stmt in node.body)
            ):
                yield from self._of_class(node)

    def _of_class(self, cls: ast.ClassDef) -> Iterator[Edit]:
        methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
        init = methods.get("__init__")
        read = {
            node.attr
            for name, method in methods.items()
            if name != "__init__"
            for node in ast.walk(method)
            if _is_own(node) and isinstance(node.ctx, ast.Load)
        }
        stored = set()
        if init is not None:
            own = [stmt for stmt in init.body if _stored(stmt)]
            stored = {_stored(stmt) for stmt in own}
            yield from self._constructor(cls, init, own, read)
        for method in methods.values():
            for node in ast.walk(method):
                if method is not init and _is_own(node) and isinstance(node.ctx, ast.Load):
                    for other in _EXCHANGED.get(node.attr, ()):
                        if other in stored:
                            yield self.edit("other-attribute", node, f"self.{other}")
                yield from self._arithmetic(node)

    def _constructor(
        self, cls: ast.ClassDef, init: ast.FunctionDef, own: list[ast.Assign], read: set[str]
    ) -> Iterator[Edit]:
        params = {arg.arg for arg in init.args.args}
        for stmt in own:
            name, text = _stored(stmt), self.source(stmt.value)
            if name in read:
                yield self.edit("attribute-made-local", stmt.targets[0], name)
                if text in params and text != "self" and name not in {"dataset", "data_source"}:
                    both = f"{self.source(stmt)}; self.{name} = 1"
                    yield self.edits("overwritten-at-once", [(stmt, both)])
        first = init.body[1 if ast.get_docstring(init) else 0]
        if not self.source(first).startswith("super(") or not isinstance(first, ast.Expr):
            return
        over = {_stored(stmt) for stmt in own} & _OF_BASE & read
        last = init.body[-1]
        if over and "DistributedSampler" in map(_last, cls.bases) and last is not first:
            moved = f"{self.source(last)}\n{' ' * first.col_offset}{self.source(first)}"
            yield self.edits("base-constructor-last", [(last, moved), (first, "pass")])

    def _arithmetic(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            first, last, step = node.slice.lower, node.slice.upper, node.slice.step
            around = self.parents[node]
            if isinstance(around, ast.Call) and _last(around.func) == "len":
                return  # each share of them has about as many
            if first is not None and step is not None and "rank" in self.source(first):
                rank, ranks, items = map(self.source, (first, step, node.value))
                end = f"len({items})" if last is None else self.source(last)
                yield self.edit("stride-of-all", node, f"{items}[{rank} :: {end}]")
                size = f"len({items}) // {ranks}"
                yield self.edit("share-of-neighbours", node, f"{items}[{rank} : {rank} + {size}]")
                begin = f"({rank}) * ({size})"
                less = f"{items}[{begin} : {begin} + {size} - 1]"
                yield self.edit("share-one-less", node, less)
            repeated = node.value  # (indices * math.ceil(padding / len(indices)))[:padding]
            if (
                (last is not None and first is None and step is None)
                and (isinstance(repeated, ast.BinOp) and isinstance(repeated.op, ast.Mult))
                and "ceil" in self.source(repeated.right)
            ):
                once = f"{self.source(repeated.left)}[:{self.source(last)}]"
                yield self.edit("padding-cut-once", node, once)
        if isinstance(node, ast.Assign) and _is_own(node.targets[0]):
            value = node.value
            while isinstance(value, ast.Call) and _last(value.func) == "int" and value.args:
                value = value.args[0]
            if "num_" in node.targets[0].attr or "size" in node.targets[0].attr:
                if isinstance(value, ast.Call) and _last(value.func) == "ceil" and value.args:
                    new = f"int({self.source(value.args[0])})"
                    yield self.edit("floor-for-ceil", node.value, new)
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
                    one, other = self.source(value.left), self.source(value.right)
                    if "len(" in one:  # a total may be a multiple of what it is divided by
                        yield self.edit("ceil-for-floor", node.value, f"-(-({one}) // ({other}))")


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and _last(node.value) == "self"


def _stored(stmt: ast.stmt) -> str:
    """The one attribute that a statement stores."""
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and _is_own(stmt.targets[0]):
        return _last(stmt.targets[0])
    return ""


_places = places
places = partial(_places, reader=Samplers, word="ampler")

if __name__ == "__main__":
    main(CODES, places)
