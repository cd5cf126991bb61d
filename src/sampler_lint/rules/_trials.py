"""What the rules about counting share: which classes to judge, and where to point."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint.domain.concepts import EVALUATES, INFERS, RANGES, RANK
from sampler_lint.domain.conditions import is_never_built
from sampler_lint.domain.launches import is_installable, is_left_over, launches
from sampler_lint.domain.model import Model
from sampler_lint.domain.settled import is_chosen_by_nobody
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Grade
from sampler_lint.parameters import Role, role_of
from sampler_lint.properties import equal_steps
from sampler_lint.rules._base import Suspect
from sampler_lint.syntax.navigation import nodes_in, self_class, statements, walk
from sampler_lint.syntax.nodes import (
    Attr,
    Bin,
    Class,
    Comp,
    Compare,
    Expr,
    Function,
    Index,
    Name,
    Node,
    Stmt,
    last_name,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.errors import Globals, RaisedError
    from sampler_lint.execution.outcomes import Trial


_UNEVEN = re.compile(
    r"(?:un|non?|wo|without)_?(?:even|repeat|pad|extend|dup)|ordereddist", re.IGNORECASE
)


def may_be_uneven(cls: Class) -> bool:
    """Whether a sampler says that ranks may differ: evaluation gathers results of any number."""
    return EVALUATES.says(cls.name) or INFERS.says(cls.name) or _UNEVEN.search(cls.name) is not None


def judged(model: Model) -> Iterator[tuple[Module, Class]]:
    """The sampler classes of the tree that can be built as they are."""
    for module, cls in model.classes():
        if model.is_meant_as_sampler(cls) and not any(
            (last_name(decorator) or "").startswith("abstract")
            for method in cls.methods
            for decorator in method.decorators
        ):
            yield module, cls


def graded(model: Model, cls: Class, code: str, suspect: Suspect | None) -> Iterator[Suspect]:
    """What is wrong in a class, if anything, where a program in sight may build it.

    Where none does, or no object that is built comes to the place, it is likely in a package that
    others install, and in an application nobody meets it.
    """
    if suspect is None:
        return
    place = getattr(suspect.start, "stmt", None)
    if (
        is_left_over(model, cls)
        or launches(model).is_named_by_nobody(cls)
        or is_never_built(model, cls)
        or (isinstance(place, Stmt) and is_chosen_by_nobody(model, cls, place))
    ):
        yield from for_others(model, cls, code, suspect, "no program in sight builds it so")
    else:
        yield suspect


def for_others(
    model: Model, cls: Class, code: str, suspect: Suspect, reason: str
) -> Iterator[Suspect]:
    """What no program in sight meets: likely where others install the class, else nothing."""
    if is_installable(model.project, model.module_of(cls)):
        suspect.grade = Grade.LIKELY
        yield suspect
    else:
        model.silent(code, suspect.module.facts, suspect.start, reason)


def is_never_told(model: Model, cls: Class, trial: Trial) -> bool:
    """Whether the program builds a class, and never with the optional arguments of a world."""
    built = model.built.get(cls, ())
    return bool(built) and any(
        all(
            model.flow.argument(obj, name) is None and not model.flow.may_be_passed(obj, name)
            for obj in built
        )
        for name in trial.options
    )


def node_of(tree: ast.AST) -> Node:
    """A place in the syntax tree as a place of the facts."""
    node = Node()
    node.row, node.col = getattr(tree, "lineno", 1), getattr(tree, "col_offset", 0)
    node.end_row = getattr(tree, "end_lineno", node.row)
    node.end_col = getattr(tree, "end_col_offset", node.col)
    return node


def defined_by(model: Model, cls: Class, name: str) -> Function | None:
    """The method of the tree that instances of ``cls`` run as ``name``."""
    method = model.flow.method(cls, name)
    return method if isinstance(method, Function) else None


def splitting_place(model: Model, cls: Class) -> tuple[Module, Node] | None:
    """Where a class takes its rank's share: an expression that says the rank, best a slice."""
    iterate = defined_by(model, cls, "__iter__")
    methods = [m for base in model.flow.own_mro(cls) for m in base.methods]
    found: tuple[int, Function, Expr] | None = None
    for function in ([] if iterate is None else [iterate]) + methods:
        for node in nodes_in(statements(function.body)):
            if any(_says_rank(part) for part in walk(node)):
                weight = _weight(node)
                if function.name == "__init__":
                    if not weight:
                        continue  # the rank is only kept
                    weight -= 10
                elif function is iterate:
                    weight += 2
                if found is None or weight > found[0]:
                    found = (weight, function, node)
    if found is None:
        return None
    return model.module_of(found[1]), found[2]


def _says_rank(node: Expr) -> bool:
    return RANK.is_call(node) or (isinstance(node, (Name, Attr)) and RANK.names(node))


def _weight(node: Expr) -> int:
    """How much an expression looks like taking a share."""
    if isinstance(node, Index) or RANGES.is_call(node):
        return 5
    return 1 if isinstance(node, (Bin, Compare, Comp)) else 0


def checks_length(error: RaisedError) -> bool:
    """Whether what was raised is the code's own check of a length, not of its arguments.

    Such a check compares ``len(…)`` of something it made with what it should be, or a multiple of
    it.
    """
    node, names = error.node, error.names
    if isinstance(node, ast.Assert):
        return _compares_length(node.test, ast.Eq, names)
    if isinstance(node, ast.Raise) and names is not None:
        test = names.tests.get(node)
        return test is not None and _compares_length(test, ast.NotEq, names)
    return False


def _compares_length(test: ast.expr, op: type[ast.cmpop], names: Globals | None) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], op)):
        return False
    sides = (test.left, test.comparators[0])
    measured = [_measured(side) for side in sides]
    if any(isinstance(each, ast.Name) for each in measured):
        return True
    factors = [part for side in sides for part in _factors(side)]
    made = {ast.unparse(each) for part in factors if (each := _measured(part)) is not None}
    return names is not None and any(
        test in ast.walk(function) and made & _assigned(function)
        for function in ast.walk(names.tree)
        if isinstance(function, ast.FunctionDef) and made
    )


def _measured(side: ast.expr) -> ast.expr | None:
    """``x`` of ``len(x)``."""
    if isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "len":
        return next(iter(side.args), None)
    return None


def _factors(side: ast.expr) -> Iterator[ast.expr]:
    if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
        yield from _factors(side.left)
        yield from _factors(side.right)
    else:
        yield side


def _assigned(function: ast.FunctionDef) -> set[str]:
    """What a function assigns: names and attributes, as they are written."""
    return {
        ast.unparse(target)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }


def counts(trial: Trial) -> str:
    """How many each rank yields, in words: ``rank 0 yields 4, rank 1 yields 3``."""
    first = trial.turns[0]
    other = next((turn for turn in trial.turns if turn.count != first.count), trial.turns[-1])
    return f"rank {first.rank} yields {first.count}, rank {other.rank} yields {other.count}"


def is_uneven(trial: Trial) -> bool:
    """Whether the ranks of a world yield different numbers."""
    return trial.raised is None and equal_steps(trial.observed) is not None


def slice_of(module: Module, node: Index) -> ast.Slice | None:
    """The slice as Python has it: the facts do not keep which part is which."""
    source = module.source
    start = source.offset(node.row, node.col)
    end = source.offset(node.end_row, node.end_col)
    try:
        parsed = ast.parse(f"({source.stretch(start, end)})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if isinstance(parsed, ast.Subscript) and isinstance(parsed.slice, ast.Slice):
        return parsed.slice
    return None


def is_meant(trials: tuple[Trial, ...]) -> bool:
    """Whether every rank knows, and says, how many it yields."""
    turns = [turn for trial in trials if trial.raised is None for turn in trial.turns]
    return all(turn.length == turn.count or turn.later == turn.count for turn in turns)


# A fix of a class that goes wrong in small worlds: another one of its numbers is read.


def read_other(model: Model, cls: Class, editor: Editor) -> Fix | None:
    """Read the one other attribute with which all worlds come out right, if there is just one."""
    reads = tuple(
        read for method in cls.methods for read in method.reads if self_class(read.value) is cls
    )
    found = model.other_attribute(cls, reads)
    if found is None:
        return None
    read, name = found
    lines = statements(stmt for method in cls.methods for stmt in method.body)
    if any(_is_odd(node, read, name) for node in nodes_in(lines)):
        return None
    module = model.module_of(cls)
    code = f"{text_of(module.source, read.value)}.{name}"
    editor.at(module).replace(read, code)
    title = f"Read `{code}`, with which the ranks share out all samples"
    return editor.fix(title, Applicability.UNSAFE, "something else may be what is wrong")


def _is_odd(node: Expr, read: Attr, name: str) -> bool:
    """Whether an operation would take a number times itself, or something from a rank."""
    if not isinstance(node, Bin) or read not in (node.left, node.right):
        return False
    if node.op == "Sub" and read is node.left and role_of(name) is Role.RANK:
        return True
    return any(isinstance(one, Attr) and one.name == name for one in (node.left, node.right))
