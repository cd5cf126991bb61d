#!/usr/bin/env python3
"""Put a ``set_epoch`` that stops at its wrapper into public programs, one at a time.

    python benchmarks/wild/inject_forward.py TREES [--part read|blind] [--per 2] [--kinds K …]

As ``inject_loaders.py`` beside it, for every class with a ``set_epoch`` that calls another one's:
that call is replaced by ``None``. Some are harmless, as where nothing below draws an order by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from inject_loaders import Edit, File, _last, main, places

_EPOCH = {"SMP101", "SMP102", "SMP103", "SMP104"}

CODES = {"forward-to-base": _EPOCH, "forward-to-held": _EPOCH}


class Wrappers(File):
    """A file and the calls of ``set_epoch`` in methods of that name."""

    def bugs(self) -> Iterator[Edit]:
        """Every call that may be left out."""
        for node in ast.walk(self.tree):
            is_setter = isinstance(node, ast.FunctionDef) and node.name == "set_epoch"
            if is_setter and isinstance(self.parents[node], ast.ClassDef):
                yield from self._of_setter(node)

    def _of_setter(self, setter: ast.AST) -> Iterator[Edit]:
        for call in ast.walk(setter):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "set_epoch"
            ):
                owner = call.func.value
                is_base = isinstance(owner, ast.Call) and _last(owner.func) == "super"
                yield self.edit(f"forward-to-{'base' if is_base else 'held'}", call, "None")


_places = places
places = partial(_places, reader=Wrappers, word="set_epoch")

if __name__ == "__main__":
    main(CODES, places)
