"""SMP503: a distributed sampler is built and never handed to a loader."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

from sampler_lint.analysis.reaching import surely_runs_before
from sampler_lint.analysis.values import Obj, Unknown, Why
from sampler_lint.domain.conditions import contradict
from sampler_lint.domain.escape import is_handed_on, is_used_by_string, overwritten_entry, target_of
from sampler_lint.domain.model import DISTRIBUTED_SAMPLER, Model
from sampler_lint.domain.programs import in_test_function
from sampler_lint.domain.shares import shares_out
from sampler_lint.edits.editor import Editor
from sampler_lint.edits.names import text_of
from sampler_lint.findings import Applicability, Fix, Related
from sampler_lint.remembered import remembered
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._expected import is_expected
from sampler_lint.syntax.navigation import leftmost, same, self_class, unparse
from sampler_lint.syntax.nodes import (
    Attr,
    Compare,
    Const,
    Expr,
    Name,
    Scope,
    Stmt,
    last_name,
)


class SamplerNotUsed(Rule):
    """A `DistributedSampler` is built, and no loader ever gets it.

    What it does:
        Reports a distributed sampler, also one of the repository that gives each rank its part, or
        a batch sampler around one, that is assigned to a variable or to an attribute of `self`,
        and then only tested (`is None`, `isinstance`) or used for `set_epoch`; and one that is put
        into an entry of a dict which something else replaces unread. Not reported when
        it is passed, returned, stored or iterated anywhere, when another file may import it, and
        for attributes of classes whose base is not known.

    Why is this bad?
        The sampler was meant to shard the data. Without it, the loader reads the whole dataset on
        every rank: an epoch does the same work once per process, and metrics that are summed over
        the ranks count every sample several times.

    Fix safety:
        Unsafe: the loader over the same dataset that is built after it in the same function gets
        the sampler, in the place of a literal `shuffle`. Only you know whether that one was
        meant, and an epoch then has fewer steps on each rank. No other fix is offered.

    How it is proved:
        Invariant `partitions`: on two gloo ranks both ranks read every sample; with the sampler
        passed to the loader each reads its half.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler`
        - met in https://github.com/FAIR-Chem/fairchem (ocpmodels/trainers/forces_trainer.py, at
          e7b07af, line 196), repaired in https://github.com/FAIR-Chem/fairchem/pull/131
    """

    code = "SMP503"
    name = "sampler-not-used"
    symptoms = (
        "ranks train on the same samples",
        "an epoch has as many steps on several GPUs as on one",
        "metrics change with the number of GPUs",
    )
    invariant = "partitions"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each distributed sampler that gets a name."""
        for obj in model.constructions():
            if obj.site is None or model.role(obj) not in {"sampler", "batch_sampler"}:
                continue
            instead = overwritten_entry(obj)
            if (
                instead is not None
                and not in_test_function(model, obj.site.scope)
                and _shards(model, obj)
            ):
                yield _overwritten(model, obj, instead)
            target = target_of(obj)
            scope = obj.site.scope
            if (
                target is None
                or in_test_function(model, scope)
                or is_expected(model, obj.site)
                or is_used_by_string(scope, last_name(target) or "")
            ):
                continue
            loader = _loader_beside(model, obj)
            if isinstance(target, Attr) and loader is None:
                continue  # code outside the tree may read a public attribute
            # A loader over the same data was meant, whoever else gets the sampler to set its epoch.
            returning = loader is None or _reaches_a_loader(model, obj)
            if loader is None and _has_another(model, obj):
                continue  # what divides the data is that one
            if not is_handed_on(model, obj, target, returning=returning) and _shards(model, obj):
                yield _suspect(model, obj, target, loader)


def _shards(model: Model, obj: Obj) -> bool:
    return model.is_a(obj, DISTRIBUTED_SAMPLER) is True or shares_out(model, obj)


def _overwritten(model: Model, obj: Obj, instead: Stmt) -> Suspect:
    assert obj.site is not None
    return Suspect(
        model.module_of(obj.site.scope),
        obj.site,
        f"this `{obj.name}` is replaced before anything reads it",
        why=(Related(model.place(obj.site.scope, instead), "something else is put there"),),
        effect="the loader that is built of these arguments does not get it",
        advice="put it where it is read, or do not replace it",
    )


def _loader_beside(model: Model, obj: Obj) -> Obj | None:
    """A loader over the same dataset that is built there without a sampler.

    In the same function, or by another method from the same attribute.
    """
    dataset = model.flow.argument(obj, "dataset")
    if dataset is None or obj.site is None:
        return None
    beside = _without_sampler(model, _name_in(obj.site.scope, dataset))
    return next((loader for loader, over in beside if same(over, dataset)), None)


@remembered
def _without_sampler(model: Model, named: _Named) -> list[tuple[Obj, Expr]]:
    """The loaders over a dataset called so that get no sampler, with their dataset."""
    return [
        (loader, over)
        for loader, over in _by_dataset(model).get(named, ())
        if not any(
            model.argument(loader, name) is not None or model.flow.may_be_passed(loader, name)
            for name in ("sampler", "batch_sampler")
        )
    ]


@remembered
def _by_dataset(model: Model) -> dict[_Named, list[tuple[Obj, Expr]]]:
    """The loaders with their dataset, by what that is called where."""
    found: dict[_Named, list[tuple[Obj, Expr]]] = {}
    for loader in model.loaders:
        over = model.flow.argument(loader, "dataset")
        if loader.site is not None and over is not None:
            found.setdefault(_name_in(loader.site.scope, over), []).append((loader, over))
    return found


_Named: TypeAlias = "tuple[Scope, str]"


def _name_in(scope: Scope, dataset: Expr) -> _Named:
    """A dataset's name, and the function, or for ``self.dataset`` the class, where it is one."""
    root = leftmost(dataset)
    return (self_class(root) if root is not dataset else None) or scope, unparse(dataset)


def _has_another(model: Model, obj: Obj) -> bool:
    """Whether a loader over the same dataset is built there, and another sampler divides that."""
    dataset, site = model.flow.argument(obj, "dataset"), obj.site
    assert site is not None
    if dataset is None:
        return False
    named = _name_in(site.scope, dataset)

    def is_over(each: Obj) -> bool:
        over = model.flow.argument(each, "dataset")
        return (
            over is not None and each.site is not None and _name_in(each.site.scope, over) == named
        )

    return any(
        other.site is not None
        and other.site is not site
        and is_over(other)
        and not contradict(model, [site], [other.site, made.site])
        and _shards(model, other)
        for made, _ in _by_dataset(model).get(named, ())
        if made.site is not None
        for other in model.passed_to(made, "sampler")
        if isinstance(other, Obj)
    )


def _reaches_a_loader(model: Model, obj: Obj) -> bool:
    """Whether some loader is given the sampler, or one that is not known, in its program.

    What a function gets that nothing calls is no sampler of one that is called.
    """
    assert obj.site is not None
    scope = obj.site.scope
    is_called = bool(model.flow.callers(scope))
    program = model.project.program_of(model.module_of(obj.site.scope))
    return any(
        (isinstance(value, Unknown) and not (is_called and value.why is Why.CHOSEN))
        or (isinstance(value, Obj) and value.site is obj.site)
        for loader in model.loaders
        if loader.site is not None
        and model.project.program_of(model.module_of(loader.site.scope)) == program
        for name in ("sampler", "batch_sampler")
        for value in model.passed_to(loader, name)
    )


def _suspect(model: Model, obj: Obj, target: Name | Attr, loader: Obj | None) -> Suspect:
    assert obj.site is not None
    name = unparse(target)
    if loader is None or loader.site is None:
        effect = "a loader over this dataset reads all of it on every rank"
        why: tuple[Related, ...] = ()
    else:
        effect = f"the `{loader.name}` over the same dataset reads all of it on every rank"
        why = (Related(model.place_of(loader), "this loader gets no sampler"),)
    return Suspect(
        model.module_of(obj.site.scope),
        obj.site,
        f"`{name}` is a `{obj.name}` that is never passed to a loader",
        why=why,
        fix=None if loader is None else partial(_pass, model, obj, target, loader),
        effect=effect,
        advice=f"pass `sampler={name}` to the loader",
    )


#: What the program sees of it, besides the bug that is gone.
_FEWER = "an epoch has fewer steps then"


def _pass(model: Model, obj: Obj, target: Name | Attr, loader: Obj, editor: Editor) -> Fix | None:
    """Pass the sampler to the loader beside, in the place of its own order."""
    made, site = obj.site, loader.site
    assert made is not None
    assert site is not None
    root, over = leftmost(target), model.flow.argument(loader, "dataset")
    assert over is not None
    if (
        len(_without_sampler(model, _name_in(site.scope, over))) > 1
        or model.role(obj) != "sampler"
        or not surely_runs_before(made.stmt, site.stmt)
        or (isinstance(target, Name) and len(target.scope.bindings.get(target.id, ())) != 1)
        or not isinstance(root, Name)
    ):
        return None
    shuffle = site.keyword("shuffle")
    if shuffle is None and model.flow.argument(loader, "shuffle") is not None:
        return None  # by its place among the others
    is_absent = shuffle is not None and _is_absent(shuffle, target)
    if not (is_absent or shuffle is None or isinstance(shuffle, Const)):
        return None  # what chooses it may choose to shuffle, which torch refuses beside a sampler
    name = text_of(editor.source, target)
    if shuffle is not None and not is_absent:
        editor.at(model.module_of(site.scope)).replace_argument(site, shuffle, "sampler", name)
    else:
        editor.at(model.module_of(site.scope)).add_argument(site, "sampler", name)
    return editor.fix(f"Pass `sampler={name}` to the loader", Applicability.UNSAFE, _FEWER)


def _is_absent(test: Expr, sampler: Expr) -> bool:
    """Whether it is the test ``sampler is None``, which is false beside the sampler."""
    return (
        isinstance(test, Compare)
        and test.ops == ["Is"]
        and same(test.left, sampler)
        and isinstance(test.rights[0], Const)
        and test.rights[0].value is None
    )
