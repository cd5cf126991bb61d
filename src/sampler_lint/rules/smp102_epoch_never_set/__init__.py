"""SMP102: an epoch loop over a shuffling distributed sampler never calls ``set_epoch``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sampler_lint.analysis.values import Obj
from sampler_lint.domain.conditions import contradict, excludes
from sampler_lint.domain.epoch_calls import (
    Carrier,
    epoch_samplers,
)
from sampler_lint.domain.epochs import (
    EpochLoop,
    epoch_loops,
    loops_in_samplers,
    loops_that_build,
    trains,
)
from sampler_lint.domain.model import Model
from sampler_lint.domain.samplers import (
    is_distributed_sampler,
    sharding_programs,
    shuffle_choice,
    shuffles,
    shuffles_by_epoch,
)
from sampler_lint.edits.editor import Editor
from sampler_lint.findings import Applicability, Fix, Grade, Related, Severity
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp102_epoch_never_set.insertion import (
    counter_of,
    receiver_for,
    skips_its_end,
)
from sampler_lint.rules.smp102_epoch_never_set.rebuilt import is_alike_in_turns
from sampler_lint.rules.smp102_epoch_never_set.setters import leads_to, may_be_set, tries_to_set
from sampler_lint.syntax.navigation import unparse
from sampler_lint.syntax.nodes import (
    For,
)


class EpochNeverSet(Rule):
    """An epoch loop trains over a shuffling `DistributedSampler` whose `set_epoch` is never called.

    What it does:
        Follows each loader built with a shuffling `DistributedSampler` to the loops that
        iterate it, through functions, attributes and files, and reports an epoch loop on whose
        way nothing calls `set_epoch` on that sampler. A loop of a sampler that goes through
        another one again and again is one too; so is one that builds a loader in each epoch,
        around the one sampler or around torch's, new over the same data with the same seed.
        Silent with `shuffle=False`, where the sampler is otherwise rebuilt each epoch, where a
        wrapper or framework sets the epoch, and where a `set_epoch` call might reach the
        sampler. Likely where only whether it shuffles is not known; a warning where a setting
        chooses.

    Why is this bad?
        `DistributedSampler` seeds its shuffle with `seed + epoch`, and `epoch` stays 0: every
        epoch hands every rank the same samples in the same order. Training goes on, only worse.

    Fix safety:
        Safe: `set_epoch(epoch)` is inserted as the first statement of the loop, on the sampler
        variable in scope or through the loader, guarded where the sampler may be `None` or
        another one. A loop that does not count its turns gets a counter. Unsafe where the
        loader may also be one that is not known. No fix where a loop over steps starts the
        loader again, where a `continue` would skip the counter, or where the loop sets a wrong
        attribute of the sampler: that is SMP404's to fix.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__` and `set_epoch`
        - https://github.com/pytorch/pytorch/issues/31771
    """

    code = "SMP102"
    name = "epoch-never-set"
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each epoch loop once for every sampler that it iterates."""
        if not sharding_programs(model):
            return
        seen = set()
        for found in (
            *epoch_loops(model),
            *loops_in_samplers(model),
            *loops_that_build(model),
        ):
            for reached in epoch_samplers(model, found.inner.loader):
                if not is_distributed_sampler(model, reached.sampler):
                    continue
                if found.builds_anew and not is_alike_in_turns(model, found.loop, reached.sampler):
                    continue
                key = (found.loop, reached.sampler.site)
                if key in seen or _is_left_out(model, found, reached.sampler):
                    continue
                veto = _veto(model, found, reached)
                if veto is not None and not veto.beside:
                    model.silent(self.code, found.loop.scope, found.loop, veto.reason)
                    model.silent(self.code, found.inner.scope, found.inner.stmt, veto.reason)
                    continue
                if veto is None:
                    seen.add(key)
                yield _suspect(model, found, reached, veto)


def _is_left_out(model: Model, found: EpochLoop, sampler: Obj) -> bool:
    """Whether this sampler is built in a branch that is not taken in a run with this loop.

    The loader's own factory call takes another, or the loop stands in one that excludes it.
    """
    through = found.inner.loader.through
    site = sampler.site
    built = [call for call in (site, found.inner.loader.site, through) if call is not None]
    if contradict(model, built, [found.loop, found.inner.stmt, *found.calls]):
        return True
    return excludes(model, through, site)


class _Veto(NamedTuple):
    """Why a loop is, or may be, right."""

    reason: str
    beside: bool = False
    """Whether it says only that something beside the loop is not known: the bug is likely."""


def _veto(model: Model, found: EpochLoop, reached: Carrier) -> _Veto | None:
    """Why the loop is (or may be) right; None when it certainly is not."""
    sampler = f"the {reached.sampler.name} of {model.place_of(reached.sampler)}"
    does = shuffles(model, reached.sampler, found.inner.loader.through)
    if does is False:
        return _Veto(f"{sampler} does not shuffle")
    if not trains(model, found):
        return _Veto("no optimizer step is seen in this pass: it may only evaluate")
    setter = may_be_set(model, found, reached)
    if setter is not None and setter.misses:
        who = f"{setter.who} tries to set the epoch"
        return _Veto(f"{who}, and does not reach {sampler} (see there)")
    if setter is not None:
        return _Veto(f"{setter.who} sets (or may set) the epoch of {sampler}")
    if does is None:
        beside = shuffles_by_epoch(model, reached.sampler, found.inner.loader.through)
        return _Veto(f"whether {sampler} shuffles is not known", beside)
    return None


def _suspect(model: Model, found: EpochLoop, reached: Carrier, doubt: _Veto | None) -> Suspect:
    suspect = _told(model, found, reached)
    if doubt is not None:
        suspect.grade = Grade.LIKELY
        suspect.effect += f" (but {doubt.reason})"
    return suspect


def _told(model: Model, found: EpochLoop, reached: Carrier) -> Suspect:
    module = model.module_of(found.loop.scope)
    loop = found.loop
    site = reached.sampler.site
    is_new = site is not None and site.stmt is not None and found.loop.encloses(site.stmt)
    receiver = None if is_new else receiver_for(model, found, reached)
    counter = counter_of(module, loop)
    where = "the sampler itself"
    if leads_to(model, found.inner.source, reached):
        where = f"`{'.'.join((unparse(found.inner.source), *reached.path))}`"
    if found.is_restart:
        message = (
            f"the loader starts again here and nothing calls `set_epoch` on its "
            f"`{reached.sampler.name}`"
        )
        built = Related(model.place_of(reached.sampler), "sampler built here")
        inner = found.inner
        return Suspect(
            model.module_of(inner.scope),
            inner.stmt,
            message,
            why=(built,),
            effect="every pass repeats the order of epoch 0",
            advice=f"count the passes and call `set_epoch` on {where} before this line",
        )
    message = (
        f"nothing calls `set_epoch` on the `{reached.sampler.name}` that this loop trains over"
    )
    effect = "every epoch repeats the order of epoch 0"
    choice = shuffle_choice(model, reached.sampler, found.inner.loader.through)
    if choice is not None:
        effect += f" (when `{unparse(choice)}` is true)"
    if receiver is not None:
        advice = f"call `{receiver.code}.set_epoch({counter.code})` at the start of each epoch"
        if receiver.guard is not None and not receiver.guard.endswith("is not None:"):
            advice += ", where it has one"
    else:
        when = "once it is built" if is_new else "at the start of each epoch"
        advice = f"call `set_epoch` on {where} {when}"
    why = [Related(model.place_of(reached.sampler), "sampler built here")]
    if reached.path:
        what = "loader" if model.role(found.inner.loader) == "loader" else "batch sampler"
        why.append(Related(model.place_of(found.inner.loader), f"handed to this {what}"))
    if found.calls:
        why.append(Related(model.place(found.inner.scope, found.inner.stmt), "iterated here"))

    def fix(editor: Editor) -> Fix | None:
        if receiver is None or (counter.new and skips_its_end(loop)):
            return None
        if tries_to_set(loop, receiver.code):
            return None
        line = f"{receiver.code}.set_epoch({counter.code})"
        guard = receiver.guard
        lines = [line] if guard is None else [guard, editor.source.indent + line]
        counter.write(editor.insert_first(loop, *lines))
        safe = Applicability.SAFE if receiver.certain else Applicability.UNSAFE
        return editor.fix(f"Call `{line}` in the loop", safe)

    header_end = loop.iter if isinstance(loop, For) else loop.test
    return Suspect(
        module,
        loop,
        message,
        end=header_end,
        why=tuple(why),
        fix=fix,
        severity=None if choice is None else Severity.WARNING,
        effect=effect,
        advice=advice,
    )
