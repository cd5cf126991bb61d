"""Slices that are taken one after the other and do not meet: what is between two is in none."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from sampler_lint.domain.concepts import RANGES, RANK, WORLD_SIZE
from sampler_lint.domain.model import Model
from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import name_of, text_of
from sampler_lint.findings import Applicability
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.parameters import FLAGS, NUMBERS, OBJECTS, Role, role_of
from sampler_lint.properties import Share, shares
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._trials import defined_by, may_be_uneven, read_other, splitting_place
from sampler_lint.syntax.navigation import nodes_in, statements, unparse
from sampler_lint.syntax.nodes import Attr, Call, Class, Const, Expr, Function, Index, Name, Other
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial

#: A sum of products: how often each is there, by the sorted texts of its factors.
_Sum: TypeAlias = "Mapping[tuple[str, ...], int]"

_ONE = ast.Constant(1)


def gaps(module: Module, function: Function) -> Iterator[Suspect]:
    """``x[i : i + size - 1]`` in a loop by ``size``, ``x[rank * n : (rank + 1) * n - 1]``."""
    places = {
        (node.row, node.col, node.end_row, node.end_col): node
        for node in nodes_in(statements(function.body))
        if isinstance(node, Index)
    }
    tree = _parsed(module, function) if places else None
    if tree is None:
        return
    values, seen = _values(tree), set[Index]()
    for loop, name, step in _loops(tree):
        for cut in ast.walk(loop):
            if not isinstance(cut, ast.Subscript):
                continue
            lost = _lost(cut, name, step, values)
            if lost and not _reads_between(loop, cut):
                # The text begins with a line of its own.
                row = function.body[0].row - 2
                place = cut.lineno + row, cut.col_offset, (cut.end_lineno or 0) + row
                node = places.get((*place, cut.end_col_offset or 0))
                if node is not None and node not in seen:
                    seen.add(node)
                    yield _suspect(module, node, cut, lost)


def exchanged(module: Module, function: Function) -> Iterator[Suspect]:
    """``x[world_size * n : (rank + 1) * n]``: one end of a share goes by the number of ranks.

    With the rank in its place, each share would begin where the one before it ends.
    """
    nodes = [*nodes_in(statements(function.body))]
    places = {(node.row, node.col): node for node in nodes if _has_ends(node)}
    named = [node for node in nodes if isinstance(node, (Name, Attr))] if places else []
    ranks, sizes = (
        {unparse(node) for node in named if concept.names(node)} for concept in (RANK, WORLD_SIZE)
    )
    tree = _parsed(module, function) if ranks and sizes else None
    if tree is None:
        return
    values, row = _values(tree), function.body[0].row - 2
    for cut, lower, upper in _shares(tree):
        node = places.get((cut.lineno + row, cut.col_offset))
        for rank, size in (
            itertools.product(sorted(ranks), sorted(sizes)) if node is not None else ()
        ):
            known = {name: value for name, value in values.items() if name not in {rank, size}}
            is_begin = _of_all(lower, upper, rank, size, known)
            if is_begin is not None and node is not None:
                yield _of_ranks(module, node, is_begin)


def _has_ends(node: Expr) -> bool:
    """Whether it is a slice or a range from somewhere to somewhere."""
    if isinstance(node, Index):
        return isinstance(node.key, Other) and len(node.key.parts) > 1
    return isinstance(node, Call) and RANGES.is_call(node) and len(node.args) == 2


def _shares(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """``x[lower:upper]``, ``range(lower, upper)``."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(
                slice=ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper)
            ):
                yield node, lower, upper
            case ast.Call(func=ast.Name(id="range"), args=[lower, upper]):
                yield node, lower, upper


def _of_all(
    lower: ast.expr, upper: ast.expr, rank: str, size: str, values: Mapping[str, ast.expr]
) -> bool | None:
    """Whether it is the begin of a share that goes by the number of ranks in place of the rank.

    False where it is the end, and None where both go by the same.
    """
    begin = _sum(lower, values, {})
    end = _sum(_unclipped(_unclipped(upper, rank, values), size, values), values, {})
    if begin is None or end is None:
        return None
    says = [({rank, size} & {*itertools.chain.from_iterable(part)}) for part in (begin, end)]
    if says not in ([{size}, {rank}], [{rank}, {size}]):
        return None
    first, last = (_renamed(part, size, rank) for part in (begin, end))
    between = _added(_following(first, rank), last, -1)
    is_begin = says[0] == {size}
    # What is added to the begin alone may be what was read before.
    is_share = not any(rank in product for product in between) if is_begin else not between
    return is_begin if is_share else None


def _renamed(terms: _Sum, old: str, new: str) -> _Sum:
    out: Counter[tuple[str, ...]] = Counter()
    for product, many in terms.items():
        out[tuple(sorted(new if one == old else one for one in product))] += many
    return out


def _following(terms: _Sum, rank: str) -> _Sum:
    """The sum for the next rank."""
    out = Counter(terms)
    for product, many in terms.items():
        if product.count(rank) == 1:
            out[tuple(one for one in product if one != rank)] += many
    return out


def _of_ranks(module: Module, node: Index | Expr, is_begin: bool) -> Suspect:
    place = "begins" if is_begin else "ends"
    return Suspect(
        module,
        node,
        f"this share {place} by the number of ranks in place of the rank",
        effect="no rank gets anything of it"
        if is_begin
        else "each rank reads what is meant for those behind it, too",
        advice="go by the rank at both ends",
    )


def _parsed(module: Module, function: Function) -> ast.AST | None:
    """The body of the function as Python has it, with its columns as they are."""
    source, last = module.source, function.body[-1]
    start = source.offset(function.body[0].row, 0)
    text = source.stretch(start, source.offset(last.end_row, last.end_col))
    try:
        return ast.parse(f"if 1:\n{text}")
    except (SyntaxError, ValueError):
        return None


def _values(tree: ast.AST) -> dict[str, ast.expr]:
    """What each variable that is given a value once, in one statement, is given."""
    stored = Counter(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    return {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and stored[node.targets[0].id] == 1
    }


def _loops(tree: ast.AST) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """What runs again and again, by which variable it differs, and by how much that grows.

    Ranks differ by one.
    """
    ranks = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            yield from _by_range(node, node.target, node.iter)
        elif isinstance(node, ast.While):
            for stmt in node.body:
                match stmt:
                    case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=step):
                        yield node, name, step
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            for part in node.generators:
                yield from _by_range(node, part.target, part.iter)
        elif isinstance(node, (ast.Name, ast.Attribute)) and RANK.says(
            node.id if isinstance(node, ast.Name) else node.attr
        ):
            ranks.add(ast.unparse(node))
    for rank in sorted(ranks):
        yield tree, rank, _ONE


def _by_range(
    loop: ast.AST, target: ast.expr, iterated: ast.expr
) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    match target, iterated:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_, _, step]):
            yield loop, name, step
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[_] | [_, _]):
            yield loop, name, _ONE


def _lost(cut: ast.Subscript, name: str, step: ast.expr, values: Mapping[str, ast.expr]) -> int:
    """How many items are left out between a slice and the next one; 0 where that is not known."""
    match cut.slice:
        case ast.Slice(lower=ast.expr() as lower, upper=ast.expr() as upper, step=None):
            pass
        case _:
            return 0
    once = {key: value for key, value in values.items() if key != name}
    grown = _sum(step, once, {})
    ends = _sum(_unclipped(upper, name, once), once, {})
    if grown is None or ends is None or not any(name in product for product in ends):
        return 0
    following = _sum(lower, once, {name: _added({(name,): 1}, grown)})
    if following is None or not any(name in product for product in following):
        return 0
    between = _added(following, ends, -1)
    return between[()] if between.keys() == {()} and between[()] > 0 else 0


def _unclipped(upper: ast.expr, name: str, values: Mapping[str, ast.expr]) -> ast.expr:
    """``i + size`` of ``min(i + size, n)``: the last slice says nothing of the others."""
    if isinstance(upper, ast.Name) and upper.id in values:
        upper = values[upper.id]
    if isinstance(upper, ast.Call) and isinstance(upper.func, ast.Name) and upper.func.id == "min":
        of_loop = [arg for arg in upper.args if name in map(ast.unparse, ast.walk(arg))]
        return of_loop[0] if len(of_loop) == 1 else upper
    return upper


def _sum(node: ast.expr, values: Mapping[str, ast.expr], given: Mapping[str, _Sum]) -> _Sum | None:
    """An expression as a sum of products; None where what is given is in none of them."""
    text = ast.unparse(node)
    if text in given:
        return given[text]
    match node:
        case ast.Constant(value=int() as number):
            return {(): number}
        case ast.Name(id=name) if name in values:
            rest = {key: value for key, value in values.items() if key != name}
            return _sum(values[name], rest, given)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            left, right = _sum(node.left, values, given), _sum(node.right, values, given)
            if left is None or right is None:
                return None
            if not isinstance(node.op, ast.Mult):
                return _added(left, right, 1 if isinstance(node.op, ast.Add) else -1)
            out: Counter[tuple[str, ...]] = Counter()
            for one, many in left.items():
                for other, more in right.items():
                    product = tuple(sorted((*one, *other)))
                    out[product] += many * more
            return _added(out, {})
    inside = {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.expr)}
    return None if inside & given.keys() else {(text,): 1}


def _added(left: _Sum, right: _Sum, times: int = 1) -> _Sum:
    out = Counter(left)
    for product, many in right.items():
        out[product] += times * many
    return {product: many for product, many in out.items() if many}


def _reads_between(loop: ast.AST, cut: ast.Subscript) -> bool:
    """Whether the loop takes other items of the same list: those that the slices leave out."""
    owner = ast.unparse(cut.value)
    return any(
        isinstance(node, ast.Subscript)
        and node is not cut
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) == owner
        for node in ast.walk(loop)
    )


def _suspect(module: Module, node: Index, cut: ast.Subscript, lost: int) -> Suspect:
    text = text_of(module.source, node)
    items = "an item" if lost == 1 else f"{lost} items"
    fix = None
    match cut.slice:
        case ast.Slice(
            lower=ast.expr() as lower,
            upper=ast.BinOp(op=ast.Sub(), left=whole, right=ast.Constant(value=number)),
        ) if number == lost:
            owner = text_of(module.source, node.value)
            code = f"{owner}[{ast.unparse(lower)} : {ast.unparse(whole)}]"
            why = "the last sample may be left out on purpose"
            fix = replacing(node, code, f"Write `{code}`", Applicability.UNSAFE, why)
    return Suspect(
        module,
        node,
        f"`{text}` ends {items} before the next slice begins",
        fix=fix,
        effect="what lies between two slices is in none of them, and so never read",
        advice="end each slice where the next one begins: a slice does not hold its end",
    )


# Samples that no rank reads, and that need not be left out.


#: What parameters say that cannot be the size of a group, or is that of a batch.
_NO_OTHER_NUMBER = OBJECTS | FLAGS | (NUMBERS - {Role.NUMBER}) | {Role.START}


def left_out(model: Model, module: Module, cls: Class) -> Suspect | None:
    """A class that leaves out what it says it keeps, or more than does not divide evenly.

    In all worlds that leave a rest, while the ranks share out all samples in all others.
    """
    trials = model.trials(cls)
    usual = [trial for trial in trials.usual if trial.raised is None]
    if not trials.sharded or may_be_uneven(cls) or any(trial.from_data for trial in usual):
        return None
    if not _rests_on_batches_alone(model, cls):
        return None
    for drop_last in (False, True):
        known = [trial for trial in usual if trial.world.drop_last is drop_last]
        found = [(trial, _share(trial)) for trial in known]
        rests = [(trial, share) for trial, share in found if not trial.world.is_even]
        evens = [share for trial, share in found if trial.world.is_even]
        if len(evens) < 2 or not all(share is not None and share.exact for share in evens):
            continue
        if len(rests) < FEWEST_GUESSED:
            continue
        trial, share = rests[0]
        if share is None:
            continue
        many = f"{len(share.missing)} sample{'s' * (len(share.missing) != 1)}"
        keeps = trial.takes_drop_last and not trial.takes_batch_size and not drop_last
        if keeps and all(share is not None and _loses_rest(trial, share) for trial, share in rests):
            wrong = f"leaves out {many}, although `drop_last` is False"
            advice = "repeat some samples, so that each rank has as many"
        elif all(share is not None and _loses_round(trial, share) for trial, share in rests):
            wrong = f"leaves out {many}, of which each rank could read one"
            advice = "leave out only what does not divide evenly"
        else:
            continue
        where, node = splitting_place(model, cls) or (module, name_of(module, cls))
        return Suspect(
            where,
            node,
            f"`{cls.name}` {wrong}",
            fix=partial(read_other, model, cls),
            effect=f"with {trial.story}, no rank reads them",
            advice=advice,
        )
    return None


def _rests_on_batches_alone(model: Model, cls: Class) -> bool:
    """Whether no other number may say what is to divide evenly."""
    init = defined_by(model, cls, "__init__")
    return init is None or all(
        role_of(param.name) in _NO_OTHER_NUMBER
        or (isinstance(param.default, Const) and param.default.value in (True, False, None))
        for param in init.params[1:]
    )


def _share(trial: Trial) -> Share | None:
    """How the ranks share the samples, each as many as the others."""
    if len({turn.count for turn in trial.turns}) > 1:
        return None
    found = next((found for _, _, found in shares(trial.observed)), None)
    return None if found is None or found.strange else found


def _loses_rest(trial: Trial, share: Share) -> bool:
    """Whether just what does not divide evenly among the ranks is left out."""
    world = trial.world
    is_single = not any(turn.in_batches for turn in trial.turns)
    return is_single and len(share.missing) == world.samples % world.ranks > 0


def _loses_round(trial: Trial, share: Share) -> bool:
    """Whether there is enough in what is left out for a step of all ranks."""
    world = trial.world
    is_in_batches = trial.takes_batch_size or any(turn.in_batches for turn in trial.turns)
    return len(share.missing) >= world.ranks * (world.batch_size if is_in_batches else 1)
