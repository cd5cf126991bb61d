"""The few texts of which a constructor takes one: those that its class compares it with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.values import Klass, last_name
from sampler_lint.syntax.parse import all_nodes


def other_texts(spec: SetUp) -> Iterator[tuple[str, str]]:
    """Every argument that has a text by default, with each other text that it may have."""
    texts = _compared(spec)
    for param, default in spec.params:
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, str):
            yield from ((param.arg, text) for text in texts.get(param.arg, ()) if text != value)


def _compared(spec: SetUp) -> dict[str, list[str]]:
    """The texts that a class compares something with, by its name."""
    out: dict[str, list[str]] = {}
    for klass in spec.klass.mro:
        for node in all_nodes(klass.node) if isinstance(klass, Klass) else ():
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                name = last_name(node.left).strip("_")
                parts = node.comparators[0]
                for part in getattr(parts, "elts", [parts]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        out.setdefault(name, []).append(part.value)
    return {name: [*dict.fromkeys(found)] for name, found in out.items()}
