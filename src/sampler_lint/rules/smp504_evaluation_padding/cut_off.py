"""Evaluations over loaders that leave out the last batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import depends_on
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.conditions import excludes
from sampler_lint.domain.epochs import (
    feeds_training,
    hooked_to_evaluate,
    is_named_after_training,
    pass_evaluates,
    pass_trains,
)
from sampler_lint.domain.model import Model
from sampler_lint.domain.passes import Pass, passes_near
from sampler_lint.domain.programs import is_test
from sampler_lint.edits.editor import Editor
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp504_evaluation_padding.counting import (
    ADDS,
    COUNTING,
    names_drawn,
    sums_up,
)
from sampler_lint.rules.smp504_evaluation_padding.padding import (
    batch_maker,
    may_drop_last,
    padding_sampler,
)
from sampler_lint.syntax.navigation import statements
from sampler_lint.syntax.nodes import (
    Attr,
    AugAssign,
    Call,
    Const,
    Expr,
    For,
    Name,
    Node,
    Scope,
    Simple,
    Stmt,
    last_name,
)


def cut_off(model: Model) -> Iterator[Suspect]:
    """Evaluations over a loader that leaves out the last batch, whoever divides the data."""
    seen: set[Stmt] = set()
    for loader in model.loaders:
        site = loader.site
        if site is None or is_test(model.module_of(site.scope)):
            continue
        maker = batch_maker(model, loader)
        given = may_drop_last(model, maker)
        if given is None or padding_sampler(model, loader) is not None:
            continue
        for found in _passes_of(model, site):
            if found.stmt in seen or _ends_early(found.stmt):
                continue
            is_named = sums_up(model, found.scope, found.stmt)
            if pass_trains(model, found) or not (is_named or _keeps_results(model, found)):
                continue
            through = found.loader.through
            told = through if maker is loader else maker.through
            if excludes(model, through, site) or model.flow.constants(given, told) != {True}:
                continue
            seen.add(found.stmt)
            yield _leaves_out(model, maker.site or site, given, found.scope, found.stmt)


def cut_off_in_hooks(model: Model) -> Iterator[Suspect]:
    """The same of the loaders that a framework evaluates with."""
    seen: set[Call] = set()
    for hook, loader in hooked_to_evaluate(model):
        site = loader.site
        if site is None or site in seen or is_test(model.module_of(site.scope)):
            continue
        given = may_drop_last(model, loader)
        if given is not None and model.flow.constants(given, loader.through) == {True}:
            seen.add(site)
            yield _leaves_out(model, site, given, hook, hook, Grade.LIKELY)


def _leaves_out(
    model: Model,
    site: Call,
    given: Expr,
    scope: Scope,
    where: Node,
    grade: Grade = Grade.CERTAIN,
) -> Suspect:
    return Suspect(
        model.module_of(site.scope),
        given if isinstance(given, (Name, Attr, Const)) else site.func,
        "this evaluation leaves out the last samples: its loader drops the incomplete batch",
        why=(Related(model.place(scope, where), "they are counted here"),),
        grade=grade,
        effect="up to `batch_size - 1` samples, on each rank, are never evaluated",
        fix=None if _also_trains(model, site) else partial(_keep_last, model, site, given),
        advice="leave `drop_last` out",
    )


def _also_trains(model: Model, site: Call) -> bool:
    """Whether something trains, or may train, with what a call builds or is part of."""
    built = [each for each in model.loaders if site in {each.site, batch_maker(model, each).site}]
    return feeds_training(model, *built) is not False or any(
        pass_trains(model, found)
        for each in built
        if each.site is not None
        for found in _passes_of(model, each.site)
    )


def _keep_last(model: Model, site: Call, given: Expr, editor: Editor) -> Fix | None:
    """Do not drop the last batch, where the call says so by a literal."""
    if not isinstance(given, Const) or all(arg.value is not given for arg in site.args):
        return None
    editor.at(model.module_of(site.scope)).replace(given, "False")
    why = "the last batch may have another size"
    return editor.fix("Keep the last batch", Applicability.UNSAFE, why)


def _keeps_results(model: Model, found: Pass) -> bool:
    """Whether a pass only uses a model, and keeps what comes out for each batch.

    One that also trains, or shuffles, may be over data of which enough is left.
    """
    loader, loop = found.loader, found.stmt
    shuffle = model.argument(loader, "shuffle")
    if not isinstance(loop, For) or not (shuffle is None or _is_off(model, loader, shuffle)):
        return False
    if is_named_after_training(loader) or not pass_evaluates(model, found):
        return False
    if loader.site is None or any(pass_trains(model, e) for e in _passes_of(model, loader.site)):
        return False
    drawn = names_drawn(loop)
    kept = [
        arg.value
        for call in found.scope.calls_in(loop)
        if last_name(call.func) in COUNTING | ADDS
        for arg in call.args
    ]
    kept += [stmt.value for stmt in statements(loop.body) if isinstance(stmt, AugAssign)]
    return any(
        depends_on(model.flow, each, lambda e: isinstance(e, Name) and e.id in drawn) is not None
        for each in kept
    )


def _is_off(model: Model, loader: Obj, shuffle: Expr) -> bool:
    return model.flow.constants(shuffle, loader.through) == {False}


def _passes_of(model: Model, site: Call) -> list[Pass]:
    """The passes over what a call builds."""
    known: dict[str, dict[Call, list[Pass]]] = model.memo.setdefault(_passes_of, {})
    program = model.project.program_of(model.module_of(site.scope))
    if program not in known:
        by_site = known[program] = {}
        for found in passes_near(model, site.scope):
            if found.loader.site is not None:
                by_site.setdefault(found.loader.site, []).append(found)
    return known[program].get(site, [])


def _ends_early(loop: Stmt) -> bool:
    """Whether a loop over the batches stops before the last one on purpose."""
    return any(isinstance(stmt, Simple) and stmt.kind == "break" for stmt in statements([loop]))
