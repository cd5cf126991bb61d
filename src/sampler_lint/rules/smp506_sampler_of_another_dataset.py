"""SMP506: a loader reads one dataset by the indices of a sampler over another, or another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from sampler_lint.analysis.asked import tests
from sampler_lint.analysis.origins import (
    Hop,
    as_passed,
    only,
    scope_of,
)
from sampler_lint.analysis.reaching import definitions, surely_runs_before
from sampler_lint.analysis.values import Obj
from sampler_lint.domain.concepts import EVALUATES, SAMPLER_ARGUMENTS, TRAINS
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.datasets import are_apart, are_named_apart, sampled, whole_of
from sampler_lint.domain.escape import is_left, is_only_tested
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.edits.editor import Editor, replacing
from sampler_lint.findings import Applicability, Fix, Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.syntax.navigation import same, statements, unparse, walk
from sampler_lint.syntax.nodes import (
    Assign,
    Call,
    Expr,
    Function,
    Index,
    Name,
    Param,
    Stmt,
    last_name,
)


class SamplerOfAnotherDataset(Rule):
    """A loader's sampler was built over another dataset, or both belong to another loader.

    What it does:
        Reports a loader whose sampler (or batch sampler) was built over a dataset that is
        certainly not the loader's: both are built in the repository, at different places, from
        different sources, and neither is made from the other. Also one of torch over the numbers
        up to the length of such a dataset. Only `likely` where the loader may get another sampler
        of which it is not known what it is over, and where a function only calls them so: one
        its data to train on, the other its data to evaluate on; or where no loader gets the sampler
        over its own data, which is built beside that one. Not reported for samplers over
        other indices, labels or a range, for a dataset and its wrapper, for a sampler over the
        whole of a subset, and for two datasets that are built alike but for how samples are
        transformed. One over a part of the loader's dataset is `likely` wrong, unless that is its
        beginning. Reports an evaluation loader that gets the dataset or the sampler of another
        loader, where another one, built by the same call and named for evaluation, is never used,
        or a parameter is only tested.

    Why is this bad?
        The sampler yields indices up to the length of the other dataset. If that is longer, the
        loader raises `IndexError` during an epoch; if it is shorter, the other samples are never
        read, without any error. A validation on the training samples measures nothing.

    Fix safety:
        Unsafe, for only you know which of the two datasets was meant. A sampler that another
        loader has, too, is replaced by that over this dataset, if there is one; a loader whose
        sampler nobody else has gets the dataset of that, if this one has another sampler, or its
        sampler is built over this one. What nothing reads is passed where it was left out.

    How it is proved:
        Invariant `runs`: the program stops with the `IndexError` on two gloo ranks; it finishes
        with a sampler over the loader's dataset.

    References:
        - torch/utils/data/sampler.py: samplers draw from `range(len(data_source))`
        - https://github.com/fastai/fastai/issues/1299
        - met in https://github.com/facebookresearch/EGG
          (egg/zoo/compositional_efficiency/continuous.py)
    """

    code = "SMP506"
    name = "sampler-of-another-dataset"
    symptoms = (
        "IndexError while iterating over a DataLoader",
        "some samples are never read",
        "validation scores look too good",
    )
    invariant = "runs"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Compare each loader's dataset with those of its samplers, and with what is left over."""
        told = set()
        for loader in model.loaders:
            data = model.argument(loader, "dataset")
            if loader.site is None or data is None or in_test_function(model, loader.site.scope):
                continue
            samplers = [
                (each, _over(model, each, loader)) for each in model.samplers_behind(loader)
            ]
            known = [(each, over) for each, over in samplers if over is not None]
            # What makes batches of another sampler is over the data of that.
            samplers = [
                pair
                for pair in samplers
                if pair in known or not any(model.samplers_within(pair[0]))
            ]
            built = [(each, over) for each, over in known if are_apart(model, data, over)]
            apart = (
                built
                or [pair for pair in known if are_named_apart(model, data, pair[1])]
                or [pair for pair in known if _has_own_left(model, loader, data, *pair)]
                or [pair for pair in known if _is_over_part(model, data, pair[1])]
            )
            # Of another call, it may be the sampler of another loader.
            here = [pair for pair in apart if _is_built_beside(pair[0], loader)]
            if apart and (here or apart == known):
                sampler, over = (here or apart)[0]
                told.add(loader.site)
                yield Suspect(
                    model.module_of(scope_of(data)),
                    data,
                    f"this `{loader.name}` over `{unparse(data)}` has a `{sampler.name}` over "
                    f"`{unparse(over)}`",
                    why=(Related(model.place_of(sampler), "the sampler is built here"),),
                    grade=Grade.CERTAIN if built and (here or known == samplers) else Grade.LIKELY,
                    effect="where the lengths differ, it raises `IndexError` or never reads some "
                    "samples",
                    advice="build a sampler over this dataset",
                    fix=partial(_over_its_own, model, loader, sampler, over, data),
                )
        yield from _instead(model, told)


_MEANT = "the other dataset may be the one that was meant"


def _over_its_own(
    model: Model, loader: Obj, sampler: Obj, over: Expr, data: Expr, editor: Editor
) -> Fix | None:
    """Pass the sampler over the loader's dataset, or the dataset of a sampler that only it has."""
    site = sampler.site
    if site is None or not _is_built_beside(sampler, loader):
        return None
    there = editor.at(model.module_of(site.scope))
    own = _sampler_over(model, loader, data)
    if any(sampler in model.samplers_behind(other) for other in model.loaders if other != loader):
        given = [model.flow.argument(loader, name) for name in SAMPLER_ARGUMENTS]
        names = [each for each in given if isinstance(each, Name)]
        if own is None or len(names) != 1:
            return None
        there.replace(names[0], own)
        return editor.fix(f"Pass `{own}`", Applicability.UNSAFE, _MEANT)
    if not isinstance(over, Name):
        return None
    if own is not None:
        there.replace(data, over.id)
        return editor.fix(f"Pass `{over.id}`", Applicability.UNSAFE, _MEANT)
    known = _made_in(data) if isinstance(data, Name) else None
    if known is None or not surely_runs_before(known, site.stmt):
        return None
    there.replace(over, unparse(data))
    return editor.fix(f"Build it over `{unparse(data)}`", Applicability.UNSAFE, _MEANT)


def _has_own_left(model: Model, loader: Obj, data: Expr, sampler: Obj, over: Expr) -> bool:
    """Whether no loader gets the sampler over a loader's own data that is built with another.

    The other one is over other data, and the loader gets it.
    """
    ours, other = (only(model.flow, each, Hop.ASSIGNED) for each in (data, over))
    if same(ours, other) or not _is_built_beside(sampler, loader):
        return False
    own = {
        made
        for made in model.constructions()
        if model.role(made) == "sampler" and _is_built_beside(made, loader)
        if made.site and sampler.site and not contradict(model, [made.site], [sampler.site])
        if (of := sampled(model, made)) is not None and same(of, data)
    }
    given = {each for one in model.loaders for each in model.samplers_behind(one)}
    return bool(own) and given.isdisjoint(own)


def _is_over_part(model: Model, data: Expr, over: Expr) -> bool:
    """Whether a sampler is over a part that torch makes of the data: its numbers count that.

    They count the data as well where the part is the beginning of it.
    """
    made = only(model.flow, over, Hop.ASSIGNED)
    whole = whole_of(model, over) or whole_of(model, made)
    if whole is None or same(over, data) or not _is_one_variable(whole, data):
        return False
    chosen = [arg.value for arg in made.args] if isinstance(made, Call) else []
    return not any(map(partial(_counts_up, model), chosen))


def _is_one_variable(one: Expr, other: Expr) -> bool:
    """Whether two names certainly read the same assignments of a variable."""
    if not (isinstance(one, Name) and isinstance(other, Name) and same(one, other)):
        return False
    found = [[*definitions(each.scope, each)] for each in (one, other)]
    return found[0] == found[1]


def _counts_up(model: Model, indices: Expr) -> bool:
    """Whether indices are made of a range where they are assigned, or are a slice of such."""
    made = only(model.flow, indices, Hop.ASSIGNED)
    if isinstance(made, Index):
        made = only(model.flow, made.value, Hop.ASSIGNED)
    called = [node.func for node in walk(made) if isinstance(node, Call)]
    return any(last_name(func) in {"arange", "range"} for func in called)


def _sampler_over(model: Model, loader: Obj, data: Expr) -> str | None:
    """The name of the only other sampler over a dataset that is built before its loader."""
    site = loader.site
    before = [
        stmt
        for stmt in (statements(site.scope.body) if site is not None else ())
        if site is not None and surely_runs_before(stmt, site.stmt)
    ]
    found = {name for name, _ in _built_over(model, before, data)}
    return found.pop() if len(found) == 1 else None


def _built_over(model: Model, stmts: Iterable[Stmt], data: Expr) -> Iterator[tuple[str, list[Obj]]]:
    """The variables to which statements assign samplers over a dataset, and these."""
    for stmt in stmts:
        name = stmt.targets[0] if isinstance(stmt, Assign) else None
        if isinstance(stmt, Assign) and isinstance(name, Name):
            built = [one for one in model.flow.values(stmt.value) if isinstance(one, Obj)]
            overs = [sampled(model, one) for one in built]
            if overs and all(over is not None and same(over, data) for over in overs):
                yield name.id, built


def _is_built_beside(sampler: Obj, loader: Obj) -> bool:
    """Whether one call of a function builds both."""
    return (
        sampler.site is not None
        and loader.site is not None
        and sampler.site.scope is loader.site.scope
    )


def _over(model: Model, sampler: Obj, loader: Obj) -> Expr | None:
    """The dataset that a loader's sampler is built over, or by whose length its numbers are."""
    over = sampled(model, sampler)
    if over is not None:
        # A sampler that its function keeps to itself is seen by the call that gave the loader.
        return as_passed(model.flow, over, loader.through)
    if not isinstance(sampler.cls, str):
        return None
    for name in ("indices", "weights"):
        given = model.argument(sampler, name)
        made = only(model.flow, given, Hop.ASSIGNED) if given is not None else None
        measured = [
            node.positional[0]
            for node in (walk(made) if made is not None else ())
            if isinstance(node, Call) and last_name(node.func) == "len" and node.positional
        ]
        if len(measured) == 1:
            return measured[0]
    return None


def _instead(model: Model, told: set[Call]) -> Iterator[Suspect]:
    """Evaluation loaders that share what another loader gets, while theirs is left over."""
    taken: dict[tuple[Stmt | Param, str], list[tuple[Call, Name]]] = {}
    for loader in model.loaders:
        if loader.site is None or loader.site in told or in_test_function(model, loader.site.scope):
            continue
        for role in _told_apart_by(model, loader):
            given = model.flow.argument(loader, role)
            if not isinstance(given, Name):
                continue
            made = _made_in(given) or _parameter(given)
            if made is not None:
                uses = taken.setdefault((made, role), [])
                if all(site is not loader.site for site, _ in uses):
                    uses.append((loader.site, given))
    for (made, _), uses in taken.items():
        for site, given in uses if len(uses) > 1 else ():
            meant = _left_over(model, site, given, made)
            if meant is not None:
                name, instead = unparse(given), unparse(meant)
                yield Suspect(
                    model.module_of(site.scope),
                    given,
                    f"this loader gets `{name}`, like another loader, and no loader gets "
                    f"`{instead}`",
                    why=(Related(model.place(site.scope, meant), "nothing reads this"),),
                    effect="it evaluates on the other loader's samples",
                    advice=f"pass `{instead}`",
                    fix=replacing(
                        given, instead, f"Pass `{instead}`", Applicability.UNSAFE, _MEANT
                    ),
                )


def _told_apart_by(model: Model, loader: Obj) -> Iterator[str]:
    """The arguments that choose the samples of a loader: its samplers, or else the dataset."""
    chosen = [name for name in SAMPLER_ARGUMENTS if model.argument(loader, name) is not None]
    yield from chosen or ("dataset",)


def _parameter(name: Name) -> Param | None:
    """The parameter that a name certainly reads."""
    found = definitions(name.scope, name) if name.id in name.scope.bindings else ()
    is_given = [each.how for each in found] == ["param"]
    return name.scope.param(name.id) if is_given and isinstance(name.scope, Function) else None


def _made_in(name: Name) -> Stmt | None:
    """The one assignment of a scope that its name is read from."""
    found = definitions(name.scope, name) if name.id in name.scope.bindings else ()
    if len(found) != 1 or found[0].how != "assign" or found[0].path:
        return None
    return found[0].stmt


def _left_over(model: Model, site: Call, given: Name, made: Stmt | Param) -> Name | None:
    """What was built like the argument of an evaluation loader, and is read nowhere."""
    target = site.stmt.targets[0] if isinstance(site.stmt, Assign) else None
    mine = last_name(target) if isinstance(target, Expr) else None
    if mine is None or not EVALUATES.says(mine) or EVALUATES.says(given.id):
        return None
    if isinstance(made, Param):
        return _tested_alone(model, site, given)
    for stmt in statements(site.scope.body):
        other = stmt.targets[0] if isinstance(stmt, Assign) else None
        if (
            isinstance(stmt, Assign)
            and isinstance(other, Name)
            and EVALUATES.says(other.id)
            and _are_made_alike(stmt, made)
            and surely_runs_before(stmt, site.stmt)
            and is_left(model, other)
        ):
            return other
    return None


def _tested_alone(model: Model, site: Call, given: Name) -> Name | None:
    """A parameter for data to evaluate on that decides on an evaluation loader, and no more.

    It is called like the one that the loader gets, which is for training.
    """
    stem = given.id.partition("_")[2]
    if not stem or not TRAINS.says(given.id):
        return None
    return next(
        (
            node
            for test, _ in tests(site)
            for node in walk(test)
            if isinstance(node, Name)
            and node.id.partition("_")[2] == stem
            and EVALUATES.says(node.id)
            and is_only_tested(model, node)
        ),
        None,
    )


def _are_made_alike(one: Stmt, other: Stmt | Param) -> bool:
    return (
        isinstance(one, Assign)
        and isinstance(other, Assign)
        and isinstance(one.value, Call)
        and isinstance(other.value, Call)
        and same(one.value.func, other.value.func)
    )
