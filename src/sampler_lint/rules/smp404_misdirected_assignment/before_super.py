"""Attributes set before ``super().__init__()``, which stores another value over them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sampler_lint import catalog
from sampler_lint.domain.model import Model
from sampler_lint.domain.signatures import Construction, base_inits
from sampler_lint.edits.editor import replacing
from sampler_lint.edits.names import quoted, text_of
from sampler_lint.findings import Related
from sampler_lint.rules._base import Suspect
from sampler_lint.rules.smp404_misdirected_assignment.attributes import read_by
from sampler_lint.rules.smp404_misdirected_assignment.overwritten import reads
from sampler_lint.syntax.navigation import same, self_class, walk
from sampler_lint.syntax.nodes import (
    SUMS,
    Attr,
    Bin,
    Class,
    Const,
    Expr,
    Function,
    Name,
    Store,
    Unary,
)
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial, Trials
    from sampler_lint.execution.values import Lost

#: What a constructor of torch's samplers stores when the argument is left out.
DEFAULTS = {"shuffle": True, "seed": 0, "drop_last": False, "generator": None}


def set_before_super(model: Model, module: Module, cls: Class) -> Iterator[Suspect]:
    """Attributes set before the base's ``__init__``, which stores something else."""
    init = cls.method("__init__")
    if init is None:
        return
    found = [*_by_its_arguments(model, module, cls, init)]
    yield from found or _by_running(model, module, cls, init)


def _by_running(model: Model, module: Module, cls: Class, init: Function) -> Iterator[Suspect]:
    """What the base's constructor overwrites with something else when the class is built."""
    read = read_by(model, cls)
    for base in model.flow.mro(cls):
        entry = catalog.known(base) if isinstance(base, str) else None
        read |= entry.attributes if entry is not None else set()
    for made in base_inits(model, cls):
        stmt = made.call.stmt
        before = {
            (target.row, target.col): target
            for store in init.stores
            if isinstance(target := store.target, Attr)
            and self_class(target.value) is cls
            and target.name in read
            and not isinstance(store.value, Const)
            and stmt is not None
            and store.stmt.order < stmt.order
            and not reads(init, target.name, store.stmt, stmt)
        }
        overwritten = (
            (before[place], trial.story, lost)
            for trial, lost in (_lost_by(model.trials(cls)) if before else ())
            if (place := (lost.target.lineno, lost.target.col_offset)) in before
        )
        for target, story, lost in itertools.islice(overwritten, 1):
            yield _taken_over(module, made, target, story, lost)


def _lost_by(trials: Trials) -> Iterator[tuple[Trial, Lost]]:
    """What is lost in some usual world, or in all those of which some arguments are guessed."""
    for trial in trials.usual or trials.guessed[:1]:
        for lost in trial.lost:
            if trials.usual or all(
                any(other.target is lost.target for other in each.lost)
                for each in trials.guessed
                if each.turns
            ):
                yield trial, lost


def _taken_over(
    module: Module, made: Construction, target: Attr, story: str, lost: Lost
) -> Suspect:
    shown = text_of(module.source, target)
    why = (Related(module.place(target), f"`{shown}` set here"),)
    return Suspect(
        module,
        made.call,
        f"`{made.built}.__init__` overwrites `{shown}`, which was set before",
        why=why,
        effect=f"with {story}, {lost.value} is replaced by {lost.other}",
        advice="set it after this call",
    )


def _by_its_arguments(
    model: Model, module: Module, cls: Class, init: Function
) -> Iterator[Suspect]:
    """What a call of a base's constructor says that it overwrites."""
    for made in base_inits(model, cls):
        owner, stmt = made.signature.owner, made.call.stmt
        entry = catalog.known(owner) if isinstance(owner, str) else None
        if entry is None or stmt is None or stmt.parent is not None:
            continue
        if any(arg.stars for arg in made.args):
            continue
        read = read_by(model, cls)
        for store in init.stores:
            target = store.target
            if (
                isinstance(target, Attr)
                and self_class(target.value) is cls
                and target.name in entry.attributes & read
                and (target.name in entry.params or _is_floored(store.value))
                and store.stmt.order < stmt.order
                and store.value is not None
                and store.how == "assign"
                and not store.path
                and not _stored_again(init, target, store)
            ):
                given = given_for(made, target.name)
                if target.name not in entry.params or _differs(target, store.value, given):
                    yield _overwrite(module, cls, made, store, target, store.value, given)
                    break


def _stored_again(init: Function, target: Attr, store: Store) -> bool:
    return any(
        other is not store and isinstance(other.target, Attr) and other.target.name == target.name
        for other in init.stores
    )


def given_for(made: Construction, name: str) -> Expr | None:
    """What a call of a base's constructor passes for one of its parameters."""
    for arg in made.args:
        if arg.keyword == name:
            return arg.value
    if name not in made.signature.positional:
        return None
    index = made.signature.positional.index(name)
    return made.positional[index] if index < len(made.positional) else None


def _is_floored(value: Expr | None) -> bool:
    """Whether it is a count of the class's own, and not rounded up as the base does."""
    return (
        isinstance(value, Bin)
        and value.op == "FloorDiv"
        and not any(
            isinstance(node, Unary) or (isinstance(node, Bin) and node.op in SUMS)
            for node in walk(value)
        )
    )


def _differs(target: Attr, stored: Expr, given: Expr | None) -> bool:
    """Whether the base certainly stores another value than the one stored before."""
    if given is None:
        return target.name in DEFAULTS and not (
            isinstance(stored, Const) and stored.value == DEFAULTS[target.name]
        )
    if same(stored, given) or same(target, given):
        return False
    # Another spelling may be the same value; a value made from what is passed is not.
    return isinstance(given, Name) and any(
        same(node, given) for node in walk(stored) if node is not stored
    )


def _overwrite(
    module: Module,
    cls: Class,
    made: Construction,
    store: Store,
    target: Attr,
    stored: Expr,
    given: Expr | None,
) -> Suspect:
    shown = text_of(module.source, target)
    base = made.built
    advice = f"pass `{target.name}={shown}`"
    if given is not None:
        what = f"sets it to `{quoted(module.source, given)}`"
    elif target.name not in DEFAULTS:
        what, advice = "computes its own", "set it after that call"
    else:
        what = f"sets it to its default, {DEFAULTS[target.name]}"
    why = (Related(module.place(store.stmt), f"`{shown}` set here"),)
    fix = None if given is None else replacing(given, shown, f"Pass `{shown}`")
    return Suspect(
        module,
        made.call,
        f"`{base}.__init__` overwrites `{shown} = {quoted(module.source, stored)}`",
        why=why,
        fix=fix,
        effect=f"called afterwards, it {what}",
        advice=advice,
    )
