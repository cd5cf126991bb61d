"""SMP103: ``set_epoch`` is called where, or with what, it cannot change the order of an epoch."""

from __future__ import annotations

from collections.abc import Iterator

from sampler_lint.domain.epoch_calls import calls_for, carriers, runs_in
from sampler_lint.domain.epochs import epoch_loops, loops_in_samplers, trains
from sampler_lint.domain.model import Model
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules._epoch_frameworks import framework_calls
from sampler_lint.rules.smp103_set_epoch_misplaced.another import on_another
from sampler_lint.rules.smp103_set_epoch_misplaced.moment import (
    between,
    late_in_turn,
    once,
    one_rank,
)
from sampler_lint.rules.smp103_set_epoch_misplaced.receiver import receivers
from sampler_lint.rules.smp103_set_epoch_misplaced.same_value import (
    constant,
    last_word,
    never_moved,
    unbound,
)
from sampler_lint.rules.smp103_set_epoch_misplaced.stale import late


class SetEpochMisplaced(Rule):
    """`set_epoch` is called too late, too rarely or with the wrong value, so it changes no order.

    What it does:
        Reports a `set_epoch` call

        - that runs once before the epoch loop and not in it,
        - that gets the same value in every epoch, also after another one that does not, the number
          of the batch, or a name that nothing defines,
        - that comes after the loader was iterated, with the number of the epoch that has just
          ended,
        - whose receiver, a loader, a torch batch sampler, or what torch makes for a loader without
          a sampler, has no `set_epoch`, or whose guard tests for a class that the sampler is not
          an instance of,
        - that comes too late because the loader keeps one iterator, or the sampler draws its next
          order at the end of the previous epoch,
        - that changes a dataset in the main process while persistent workers keep their copies,
        - that goes to `loader.batch_sampler` after `accelerator.prepare`, which hides it,
        - that only one rank makes, or that is no call at all (`sampler.set_epoch = epoch`),
        - that goes to a loader which is built for this very call: the pass asks for another.

        Not reported where any other call may set the epoch in the loop, where the loader is
        rebuilt for each epoch, and for samplers that do not shuffle.

    Why is this bad?
        A sampler reads its epoch only when its `__iter__` starts. If the epoch is set later, only
        once, or always to the same number, all epochs (or two in a row) have the same order;
        behind a guard that is never true it is not set at all. No error is raised.

    Fix safety:
        Safe where the call can be moved to the start of the loop body, given the loop's counter, or
        above the line that makes the iterator, or made on the sampler that carries the epoch or
        before the branch that only one rank takes, or only lacks its parentheses. Unsafe where it
        becomes a handler of ignite's `Events.EPOCH_STARTED`: other handlers may rely on the order.
        Unsafe, too, where samples may be read between its old and its new place, or where its guard
        decides about other lines; where a turn makes another pass, which trains nothing and may be
        meant to read one order; where the order would no longer depend on a seed or an offset
        that it was told; where a number is told in a loop that counts something else than epochs;
        and where `persistent_workers` is dropped, for it takes time to
        start workers in each epoch.
        There is no fix without a plain counter, or for loaders that keep their iterator.

    How it is proved:
        Invariant `reshuffles`: on two gloo ranks the epochs have one order before the fix and
        different orders after it.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__` and `set_epoch`
        - torch/utils/data/dataloader.py, `_MultiProcessingDataLoaderIter._reset` (prefetches)
        - accelerate/data_loader.py, `BatchSamplerShard` (has no `set_epoch`)
        - https://github.com/pytorch-ignite/code-generator/pull/130
        - met in https://github.com/SWivid/F5-TTS (src/f5_tts/model/trainer.py)
    """

    code = "SMP103"
    name = "set-epoch-misplaced"
    symptoms = ("every epoch has the same order",)
    invariant = "reshuffles"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Ask of each epoch loop which calls set its epoch, then of each call what it meets."""
        told: set[object] = set()
        if model.epoch_setters:
            for suspect in (
                *_in_loops(model),
                *unbound(model),
                *never_moved(model),
                *receivers(model),
                *framework_calls(model),
                *late(model),
            ):
                key = (suspect.module, suspect.start.row, suspect.start.col)
                if key not in told:
                    told.add(key)
                    yield suspect
        else:
            yield from late(model)


def _in_loops(model: Model) -> Iterator[Suspect]:
    for found in (*epoch_loops(model), *loops_in_samplers(model)):
        wanted = list(carriers(model, found.inner.loader))
        if not wanted or not trains(model, found):
            continue
        calls = calls_for(model, found, wanted)
        if calls.unclear or not calls.hits or not calls.are_plain:
            continue
        here = calls.by_scope.get(found.loop.scope, [])
        inside = between(here, found.loop.order, found.loop.last_order)
        outside = [scope for scope in calls.by_scope if scope is not found.loop.scope]
        if len(inside) < len(here):
            outside.append(found.loop.scope)
        runs = {scope: runs_in(model, found.loop, scope) for scope in outside}
        if None in runs.values():
            continue
        if any(runs.values()):
            within = {*inside}
            inside += [c for c in calls.hits if c not in within and runs.get(c.scope)]
        if not inside:
            yield from once(model, found, wanted, calls.hits)
            continue
        for judge in (on_another, constant, late_in_turn, one_rank):
            suspects = [judge(model, found, call) for call in inside]
            if all(suspect is not None for suspect in suspects):
                yield from (suspect for suspect in suspects if suspect is not None)
                break
        else:
            last = last_word(model, found, inside)
            suspect = constant(model, found, last) if last is not None else None
            if suspect is not None:
                yield suspect
