"""Samples that no rank reads, and that need not be left out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sampler_lint.domain.model import Model
from sampler_lint.edits.names import name_of
from sampler_lint.limits import FEWEST_GUESSED
from sampler_lint.parameters import FLAGS, NUMBERS, OBJECTS, Role, role_of
from sampler_lint.properties import Share, shares
from sampler_lint.rules._base import Suspect
from sampler_lint.rules._other_attribute import read_other
from sampler_lint.rules._trials import defined_by, may_be_uneven, splitting_place
from sampler_lint.syntax.nodes import Class, Const
from sampler_lint.workspace.project import Module

if TYPE_CHECKING:
    from sampler_lint.execution.outcomes import Trial

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
