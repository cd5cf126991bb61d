"""SMP505: one loop walks the same samples twice at once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TypeAlias

from sampler_lint.analysis.origins import is_one_object, scope_of
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import ITERATES
from sampler_lint.domain.fixed_orders import orders_items
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.domain.samplers import order_giver, shuffles
from sampler_lint.edits.editor import Editor, line_indent
from sampler_lint.edits.names import fresh_name, text_of
from sampler_lint.edits.region import EditError, offsets
from sampler_lint.findings import Applicability, Fix, Related, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.source import LINE_END
from sampler_lint.syntax.navigation import same, self_class, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Attr,
    Call,
    Const,
    Expr,
    ExprStmt,
    For,
    Function,
    Index,
    Name,
    Node,
    Scope,
    last_name,
)
from sampler_lint.workspace.project import Module


class WalkedTwiceAtOnce(Rule):
    """A `zip` reads the same samples twice, from two iterations over one dataset.

    What it does:
        Reports `zip(loader, loader)`, a `zip` of two loaders that share a sampler over one
        dataset, or have two that are built alike and told the same epoch, and a loop that takes a
        batch of both in each turn (`next(iterator)`), where both iterations certainly have the
        same order: because the sampler's order is determined by its seed and epoch, as for
        `DistributedSampler`, or because nothing shuffles. Not reported where an iteration draws
        its own order (`shuffle=True`, `RandomSampler`), for datasets that are iterable or order
        their samples while they are read, and for persistent workers.

    Why is this bad?
        Each batch is combined with itself: images are mixed with themselves, pairs consist of
        equal samples, and a second stream of unlabelled data adds nothing. Everything is read and
        decoded twice.

    Fix safety:
        Unsafe: of two samplers that are built alike, the second one gets the next seed. Beside one
        loader or one sampler, a second one is built with the next seed, and set to the same epochs.
        You may want a permutation of the same batch instead, or two views of each sample, which the
        dataset can make with half the reading.

    How it is proved:
        Invariant `runs`: the fixture stops where both halves of a step hold the same samples, as
        they do in each step on two gloo ranks; it finishes with a sampler of another seed.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: the generator is seeded
          with `seed + epoch` for each iteration
        - https://github.com/charlesCXK/TorchSemiSeg/issues/78
        - https://github.com/LiheYoung/UniMatch/issues/51
        - met in https://github.com/LiheYoung/UniMatch (unimatch.py)
    """

    code = "SMP505"
    name = "walked-twice-at-once"
    symptoms = ("samples are mixed or paired with themselves",)
    severity = Severity.WARNING
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each pair of loaders that are zipped, or taken from in turn by one loop."""
        told: set[Node] = set()
        for module in model.modules:
            for one, other, where in chain(_zipped(model, module), _in_step(model, module)):
                found = _walked_alike(model, one, other) if where not in told else None
                if found is None:
                    continue
                told.add(where)
                loader, giver = found
                how = "`zip`" if isinstance(where, Call) else "loop"
                what = f"`{unparse(one)}`" if same(one, other) else "one dataset"
                yield Suspect(
                    module,
                    other,
                    f"this {how} reads {what} twice at once, in the same order",
                    why=(Related(model.place_of(loader), "the loader is built here"),),
                    fix=partial(_reseed, model, one, other),
                    effect=f"{giver} gives both the same order: every batch is paired with itself",
                    advice="use a sampler with another seed for the second one, or permute "
                    "the batch",
                )


def _reseed(model: Model, one: Expr, other: Expr, editor: Editor) -> Fix | None:
    """Let the second loader have the next seed: that of its own sampler, or of a new one."""
    mine, first = (_distributed(model, each) for each in (other, one))
    if mine is None or first is None or mine.site is None or mine.site.has_star:
        return None
    if mine.site is first.site and not same(one, other) and _are_of_one_place(model, one, other):
        return None  # the function that builds both would have to take a seed
    if shuffles(model, mine, mine.through) is not True:
        return None
    there = editor.at(model.module_of(mine.site.scope))
    seed = _next_seed(model, there, mine)
    if seed is None:
        return None
    old, new = seed
    if mine.site is first.site:
        if not _build_second(model, one, other, mine, seed, there):
            return None
    elif old is None:
        there.add_argument(mine.site, "seed", new)
    else:
        there.replace(old, new)
    why = "another order may not be what is wanted"
    return editor.fix("Give the second sampler another seed", Applicability.UNSAFE, why)


def _are_of_one_place(model: Model, *loaders: Expr) -> bool:
    values = (value for each in loaders for value in model.flow.values(each))
    return len({value.site for value in values if isinstance(value, Obj)}) == 1


def _next_seed(model: Model, editor: Editor, sampler: Obj) -> tuple[Expr | None, str] | None:
    """What a sampler gets for its seed, if that is passed by its name, and the next one."""
    assert sampler.site is not None
    seed = sampler.site.keyword("seed")
    if seed is None:
        return (None, "1") if model.flow.argument(sampler, "seed") is None else None
    if isinstance(seed, Const) and type(seed.value) is int:
        return seed, str(seed.value + 1)
    if isinstance(seed, (Attr, Name)):
        return seed, f"{text_of(editor.source, seed)} + 1"
    return None


def _build_second(
    model: Model,
    one: Expr,
    other: Expr,
    sampler: Obj,
    seed: tuple[Expr | None, str],
    editor: Editor,
) -> bool:
    """Build a second sampler beside the one that is shared, a loader if need be, and set both."""
    loaders = [each for each in model.flow.values(other) if isinstance(each, Obj)]
    site, loader = sampler.site, loaders[0].site if len(loaders) == 1 else None
    if site is None or loader is None or loader.scope is not site.scope:
        return False
    told = [
        call
        for call in model.epoch_setters
        if isinstance(call.func, Attr)
        and any(isinstance(v, Obj) and v.site is site for v in model.flow.values(call.func.value))
    ]
    held, given = _held(model, site), loader.keyword("sampler")
    if held is None or given is None or not same(given, held) or not told:
        return False
    order, second, name = _fresh(model, held), "", None
    if same(one, other):
        name = _held(model, loader)
        if name is None or not same(other, name):
            return False
        second = _fresh(model, name)
    told_by = []
    for call in told:
        receiver = _spelled(held, order, call.scope)
        if receiver is None and name is not None:
            spelled = _spelled(name, second, call.scope)
            receiver = spelled and f"{spelled}.sampler"
        if receiver is None or not isinstance(call.stmt, ExprStmt):
            return False
        told_by.append((call, call.stmt, receiver))
    here = _spelled(held, order, site.scope)
    there = None if name is None else _spelled(name, second, scope_of(other))
    if here is None or (name is not None and there is None):
        return False
    _repeat(editor, site, here, *seed)
    for call, stmt, receiver in told_by:
        numbers = ", ".join(text_of(editor.source, each) for each in call.positional)
        editor.insert_after(stmt, f"{receiver}.set_epoch({numbers})")
    if name is None or there is None:
        editor.replace(given, here)
        return True
    _repeat(editor, loader, _spelled(name, second, loader.scope) or second, given, here)
    editor.replace(other, there)
    return True


def _held(model: Model, site: Call) -> Name | Attr | None:
    """The one variable, or attribute of the object itself, that what is built is assigned to."""
    stmt = site.stmt
    if not isinstance(stmt, Assign) or stmt.value is not site or len(stmt.targets) != 1:
        return None
    target = stmt.targets[0]
    if isinstance(target, Attr) and (cls := self_class(target.value)) is not None:
        return target if len(model.project.own_stores(target.name, cls)) == 1 else None
    if not isinstance(target, Name) or len(site.scope.bindings.get(target.id, ())) != 1:
        return None
    return target


def _fresh(model: Model, held: Name | Attr) -> str:
    """A name for what is built beside it."""
    if isinstance(held, Name):
        return fresh_name(held.scope, f"second_{held.id}")
    cls = self_class(held.value)
    taken = model.attributes(cls).names if cls is not None else ()
    name = f"second_{held.name}"
    while name in taken:
        name += "_2"
    return name


def _spelled(held: Name | Attr, name: str, scope: Scope) -> str | None:
    """How a scope reads what is kept beside a variable, or an attribute, under another name."""
    if isinstance(held, Name):
        return name if scope is held.scope else None
    me = scope.self_name if isinstance(scope, Function) else None
    is_own = me and isinstance(scope, Function) and scope.cls is self_class(held.value)
    return f"{me}.{name}" if is_own else None


def _repeat(editor: Editor, site: Call, name: str, old: Expr | None, new: str) -> None:
    """Build the same again below, under another name, and with another value of one argument."""
    source, stmt = editor.source, site.stmt
    text = text_of(source, site)
    if stmt is None or "#" in text:
        raise EditError(f"{editor.module.display}:{site.row}: comments stand in it")
    if old is None:
        text = f"{text[:-1].rstrip().removesuffix(',')}, seed={new})"
    else:
        first, last = (each - offsets(source, site)[0] for each in offsets(source, old))
        text = text[:first] + new + text[last:]
    indent = line_indent(source, stmt.row)
    lines = [line.removeprefix(indent) for line in LINE_END.split(f"{name} = {text}")]
    editor.insert_after(stmt, *lines)


def _distributed(model: Model, loader: Expr) -> Obj | None:
    """The only sampler of torch for several processes that a loader has."""
    found = [
        value
        for each in model.flow.values(loader)
        if isinstance(each, Obj)
        for value in model.passed_to(each, "sampler")
    ]
    known = [each for each in found if isinstance(each, Obj) and each.cls == DISTRIBUTED_SAMPLER]
    return known[0] if len(found) == len(known) == 1 else None


_Pair: TypeAlias = tuple[Expr, Expr, Node]


def _zipped(model: Model, module: Module) -> Iterator[_Pair]:
    for call in module.facts.all_calls:
        if last_name(call.func) != "zip" or in_test_function(model, call.scope):
            continue
        for one, other in itertools.combinations(map(_iterated, call.positional), 2):
            yield one, other, call


def _in_step(model: Model, module: Module) -> Iterator[_Pair]:
    """What a loop takes one batch of in each turn: by itself, or by ``next`` of an iterator.

    Each iterator is made once, in one block with the others, and nothing is taken of it before.
    """
    for scope in module.facts.scopes:
        if "next" not in scope.called or in_test_function(model, scope):
            continue
        made = {
            name.id: stmt
            for stmt in statements(scope.body)
            if isinstance(stmt, Assign)
            and isinstance(stmt.value, Call)
            and last_name(stmt.value.func) == "iter"
            and len(stmt.value.positional) == 1
            and isinstance(name := stmt.targets[0], Name)
            and len(scope.bindings.get(name.id) or []) == 1
        }
        by_block: dict[int, list[str]] = {}
        taken: Counter[str] = Counter()
        for call in scope.calls:
            given = call.positional if last_name(call.func) == "next" else []
            for each in given[:1]:
                if isinstance(each, Name) and each.id in made:
                    taken[each.id] += 1
                    if len(given) == 1 and call.stmt is not None:
                        by_block.setdefault(id(call.stmt.parent), []).append(each.id)
        for loop in scope.loops:
            names = by_block.get(id(loop), [])
            if any(taken[name] > 1 for name in names):
                continue  # one of them is ahead
            blocks = {id(made[name].block) for name in names}
            sources = [_iterated(made[name].value) for name in names]
            if isinstance(loop, For):
                blocks.add(id(loop.block))
                sources.insert(0, _iterated(loop.iter))
            if len(blocks) == 1:
                for one, other in itertools.combinations(sources, 2):
                    yield one, other, loop


def _iterated(expr: Expr) -> Expr:
    """What ``iter``, ``cycle``, ``enumerate`` and the like go over."""
    while isinstance(expr, Call) and ITERATES.is_call(expr) and expr.positional:
        expr = expr.positional[0]
    return expr


def _walked_alike(model: Model, one: Expr, other: Expr) -> tuple[Obj, str] | None:
    """The loader that both expressions walk in one order, or walk alike, and what orders it."""
    here, there = (
        [value for value in model.flow.values(expr) if isinstance(value, Obj)]
        for expr in (one, other)
    )
    if same(one, other) and isinstance(one, (Name, Attr, Index)):
        givers = [giver for each in here if (giver := _giver(model, each)) is not None]
        return (here[0], givers[0]) if here and len(givers) == len(here) else None
    if len(here) != 1 or len(there) != 1 or model.role(here[0]) != "loader":
        return None
    data, sampler, size = (
        [model.argument(each, name) for each in (here[0], there[0])]
        for name in ("dataset", "sampler", "batch_size")
    )
    is_it = partial(is_one_object, model.flow)
    if here[0].site is there[0].site and not (
        _are_made_alike(model, here[0], there[0])
        and sampler[0] is not None
        and _are_told_alike(model, sampler[0])
    ):
        return None
    is_one = all(
        x is not None and y is not None and test(x, y)
        for (x, y), test in ((data, is_it), (sampler, partial(_alike, model)), (size, same))
    )
    giver = _giver(model, here[0]) if is_one else None
    return (here[0], giver) if giver is not None else None


def _are_made_alike(model: Model, one: Obj, other: Obj) -> bool:
    """Whether two calls of one function, with the same values, make two objects of one place."""
    here, there = one.through, other.through
    if here is None or there is None or here is there or not same(here, there):
        return False
    given = [[node for arg in call.args for node in walk(arg.value)] for call in (here, there)]
    return all(
        is_one_object(model.flow, *pair)
        if isinstance(pair[0], Name)
        else not isinstance(pair[0], Call)
        for pair in zip(*given, strict=True)
    )


def _alike(model: Model, one: Expr, other: Expr) -> bool:
    """Whether two samplers are one, or torch's own, built alike and told one epoch."""
    if is_one_object(model.flow, one, other):
        return True
    pair = [
        next((v for v in model.flow.values(each) if isinstance(v, Obj)), None)
        for each in (one, other)
    ]
    sites = [each.site for each in pair if each is not None and each.cls == DISTRIBUTED_SAMPLER]
    if len(sites) < 2 or sites[0] is None or sites[1] is None or sites[0] is sites[1]:
        return False
    if not same(sites[0], sites[1]) or any(each.has_double_star for each in sites if each):
        return False
    told = [_told(model, site) for site in sites]
    return len(told[0]) == len(told[1]) and all(
        len(x) == len(y) == 1 and same(x[0], y[0]) for x, y in zip(*told, strict=True)
    )


def _told(model: Model, site: Call | None) -> list[list[Expr]]:
    """What epochs the samplers that are built at a place are told."""
    return [
        call.positional
        for call in model.epoch_setters
        if isinstance(call.func, Attr)
        and any(isinstance(v, Obj) and v.site is site for v in model.flow.values(call.func.value))
    ]


def _are_told_alike(model: Model, sampler: Expr) -> bool:
    """Whether all samplers that are built at a place are told the same, wherever they are told."""
    sites = {each.site for each in model.flow.values(sampler) if isinstance(each, Obj)}
    told = [given for site in sites for given in _told(model, site)]
    return all(len(one) == 1 and same(one[0], told[0][0]) for one in told)


def _giver(model: Model, loader: Obj) -> str | None:
    """What gives every walk over a loader one order; None if that is not certain."""
    data = model.argument(loader, "dataset") if model.role(loader) == "loader" else None
    return None if data is None or orders_items(model, data) else order_giver(model, loader)
