"""Tries what a length, an attribute that is read, or the start of a share might have been meant to
be, in the small worlds of :mod:`.trials`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterable

from sampler_lint.execution.budget import BUDGET
from sampler_lint.execution.errors import RaisedError
from sampler_lint.execution.interpreter import Interpreter
from sampler_lint.execution.outcomes import Trial
from sampler_lint.execution.passes import SILENT
from sampler_lint.execution.set_up import SetUp
from sampler_lint.execution.trials import is_as_long_as_it_says, shares_out, try_out, welcoming
from sampler_lint.execution.worlds import World
from sampler_lint.properties import equal_steps, partitions, shares
from sampler_lint.syntax.nodes import Attr, Class, Expr, Index, Stmt
from sampler_lint.syntax.parse import all_nodes
from sampler_lint.workspace.project import Module


def first_true(
    interpreter: Interpreter, cls: Class, module: Module, returned: Expr, candidates: Iterable[str]
) -> str | None:
    """The first candidate that, returned instead, is what every rank yields in every world."""
    BUDGET.open()
    tree = interpreter.names_of(module).tree
    stmt = _returns(tree).get((returned.row, returned.col))
    if stmt is None:
        return None
    original = stmt.value
    try:
        for code in candidates:
            stmt.value = ast.parse(code, mode="eval").body
            interpreter.rewritten()
            if is_as_long_as_it_says(interpreter, cls):
                return code
    finally:
        stmt.value = original
        interpreter.rewritten()
    return None


def start_of_share(
    interpreter: Interpreter, cls: Class, module: Module, sliced: Index, candidates: Iterable[str]
) -> str | None:
    """The one slice with which, taken instead, the ranks share out all there is.

    That is so in every world, and in even parts.
    """
    tree = interpreter.names_of(module).tree
    place = (sliced.row, sliced.col, sliced.end_row, sliced.end_col)
    node = _slices(tree).get(place)
    if node is None:
        return None
    original, found = (node.lower, node.upper, node.step), list[str]()
    try:
        for code in candidates:
            other = ast.parse(f"x[{code}]", mode="eval").body
            assert isinstance(other, ast.Subscript)
            assert isinstance(other.slice, ast.Slice)
            node.lower, node.upper, node.step = (
                other.slice.lower,
                other.slice.upper,
                other.slice.step,
            )
            interpreter.rewritten()
            trials = try_out(interpreter, cls)
            told = trials.told if trials.repeated is None and trials.torn is None else ()
            if trials.sharded and told and not any(map(_shares_badly, told)):
                found.append(code)
    finally:
        node.lower, node.upper, node.step = original
        interpreter.rewritten()
    return found[0] if len(found) == 1 else None


def other_attribute(
    interpreter: Interpreter, cls: Class, module: Module, reads: Iterable[Attr]
) -> tuple[Attr, str] | None:
    """The one read of a number of its own, and the other number, read instead, with which all
    ranks share out all there is and yield as many as they say, in every world.
    """
    BUDGET.open()
    nodes = _attributes(interpreter.names_of(module).tree)
    found: list[tuple[Attr, str]] = []
    try:
        spec = SetUp(interpreter, interpreter.class_of(cls))
        worlds = welcoming(interpreter, spec)
    except (RaisedError, *SILENT):
        return None
    if shares_out(interpreter, spec, worlds):
        return None  # what is right in these worlds goes wrong for another reason
    numbers = _own_numbers(interpreter, spec, worlds)
    for read in reads:
        node = nodes.get((read.row, read.col, read.end_row, read.end_col))
        if node is None or node.attr not in numbers:
            continue
        original = node.attr
        tried = {numbers[original]}
        try:
            for node.attr, values in numbers.items():
                interpreter.rewritten()
                if values not in tried and shares_out(interpreter, spec, worlds):
                    found.append((read, node.attr))
                tried.add(values)
                if len(found) > 1 or BUDGET.gone:
                    return None
        finally:
            node.attr = original
            interpreter.rewritten()
    return found[0] if found else None


def _own_numbers(
    interpreter: Interpreter, spec: SetUp, worlds: tuple[World, ...]
) -> dict[str, tuple[int, ...]]:
    """What an object holds that is a number in each world, on the last rank."""
    out: list[dict[str, int]] = []
    with contextlib.suppress(RaisedError, *SILENT):
        for world in worlds:
            interpreter.restart(world.ranks, world.ranks - 1)
            held = spec.build(world, world.ranks - 1).attributes
            out.append({name: each for name, each in held.items() if type(each) is int})
        names = [name for name in out[0] if all(name in each for each in out)]
        return {name: tuple(each[name] for each in out) for name in names}
    return {}


def evened_out(
    interpreter: Interpreter,
    cls: Class,
    module: Module,
    after: Stmt,
    candidates: Iterable[tuple[str, str | None]],
    returned: Expr | None,
) -> tuple[str, str | None] | None:
    """The first candidate with which, run after a statement, all ranks yield as much as they say.

    That is so in every world, and no two ranks are given one and the same share. A candidate's
    second part is what ``__len__``, which stands in the same file, is to return.
    """
    tree = interpreter.names_of(module).tree
    block = _blocks(tree).get((after.row, after.col))
    if block is None:
        return None
    place = next(i for i, one in enumerate(block) if one.lineno == after.row) + 1
    says = _returns(tree).get((returned.row, returned.col)) if returned is not None else None
    for code, length in candidates:
        if length is not None and says is None:
            continue
        said = says.value if says is not None else None
        block[place:place] = ast.parse(code).body
        try:
            if says is not None and length is not None:
                says.value = ast.parse(length, mode="eval").body
                interpreter.rewritten()
            trials = try_out(interpreter, cls)
        finally:
            del block[place]
            if says is not None:
                says.value = said
                interpreter.rewritten()
        told = trials.told if trials.torn is None else ()
        if trials.sharded and told and not any(map(_differs_in_length, told)):
            return code, length
    return None


def _differs_in_length(trial: Trial) -> bool:
    counts = {turn.count for turn in trial.turns}
    return trial.raised is not None or any(
        {turn.count if turn.length is None else turn.length, turn.count} != counts
        for turn in trial.turns
    )


def _shares_badly(trial: Trial) -> bool:
    """Whether more is left out than what is left over, or something is read again."""
    seen = trial.observed
    if trial.raised is not None or equal_steps(seen):
        return True
    rest = [found for _, _, found in shares(seen) if found.repeats or found.strange]
    rest += [found for _, _, found in shares(seen) if len(found.missing) >= len(seen.ranks)]
    return bool(rest and partitions(seen))


@functools.lru_cache(maxsize=1)
def _attributes(
    tree: ast.Module,
) -> dict[tuple[int, int, int | None, int | None], ast.Attribute]:
    """The attributes that a file reads, by where they stand."""
    return {
        (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): node
        for node in all_nodes(tree)
        if isinstance(node, ast.Attribute)
    }


@functools.lru_cache(maxsize=1)
def _slices(tree: ast.Module) -> dict[tuple[int, int, int | None, int | None], ast.Slice]:
    """The slices of a file by where what they are taken of begins and they end."""
    return {
        (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): node.slice
        for node in all_nodes(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    }


@functools.lru_cache(maxsize=1)
def _blocks(tree: ast.Module) -> dict[tuple[int, int], list[ast.stmt]]:
    """The block that each statement of a file stands in, by where that begins."""
    return {
        (stmt.lineno, stmt.col_offset): block
        for node in all_nodes(tree)
        for block in (getattr(node, "body", None), getattr(node, "orelse", None))
        if isinstance(block, list)
        for stmt in block
    }


@functools.lru_cache(maxsize=1)
def _returns(tree: ast.Module) -> dict[tuple[int, int], ast.Return]:
    """The ``return`` statements of a file by where their values begin."""
    return {
        (node.value.lineno, node.value.col_offset): node
        for node in all_nodes(tree)
        if isinstance(node, ast.Return) and node.value is not None
    }
