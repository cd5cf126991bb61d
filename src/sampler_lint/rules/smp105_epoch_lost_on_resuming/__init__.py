"""SMP105: a program that goes on from a checkpoint counts its epochs from 0 again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sampler_lint.analysis.origins import Hop, ends, only
from sampler_lint.domain.concepts import RANGES
from sampler_lint.domain.counters import Beginning, is_kept_as_zero
from sampler_lint.domain.epoch_calls import calls_for, carriers
from sampler_lint.domain.epochs import EpochLoop, epoch_loops, trains
from sampler_lint.domain.model import Model
from sampler_lint.domain.programs import is_test
from sampler_lint.domain.resuming import led_by, reads_epoch, restored_before
from sampler_lint.domain.turns import epoch_expression
from sampler_lint.edits.editor import Fixer
from sampler_lint.findings import Grade, Related
from sampler_lint.rules._base import Rule, Suspect
from sampler_lint.rules.smp105_epoch_lost_on_resuming.counters import (
    from_zero,
    left_out,
    never_saved,
    overwritten,
    skips_by,
)
from sampler_lint.rules.smp105_epoch_lost_on_resuming.fixed import begin_there, count_on
from sampler_lint.rules.smp105_epoch_lost_on_resuming.kept import made_before
from sampler_lint.rules.smp105_epoch_lost_on_resuming.skipped import (
    begun_there_again,
    cut_for_ever,
    set_back,
    skipped,
    taken_back,
    used_up,
)
from sampler_lint.syntax.navigation import same, unparse, walk
from sampler_lint.syntax.nodes import Attr, Bin, Call, Const, Expr, For, If, Loop, Name


class EpochLostOnResuming(Rule):
    """`set_epoch` starts at 0 again after a checkpoint is loaded.

    What it does:
        Reports a `set_epoch` that gets the counter of an epoch loop which certainly starts at 0
        or 1, or another number that starts at 0 (`epoch - start`, or a count of its own), after
        an optimizer was restored from `torch.load`: the program continues a run that has already
        trained for some epochs. Not reported where iterations of the loop are skipped by their
        number, where something is added to the counter, or where another epoch loop starts
        elsewhere, since that one continues the run. Only `likely` where the code that restores
        takes no epoch from the checkpoint: perhaps only the optimizer is wanted. For an iterator
        that is created before `set_epoch`, see SMP103.

        Also reports a batch sampler that can be given a position to resume from, but whose
        `__iter__` resets it before anything is read (`start, self.start = self.start, 0`, and
        then `return`): a loader with workers calls `iter()` twice and uses the second iterator.
        So is a sampler whose `__iter__` sets to 0 what `load_state_dict` has restored, before
        anything reads it, and a `set_epoch` in the loop that leaves out an argument by which a
        resumed run has told the sampler where to begin; and one that begins every later epoch
        there, too (shown by running it from a checkpoint into the next epoch). Also an attribute
        at which each pass of a sampler or dataset begins, which the code that restores a run sets,
        and nothing sets back.

        Also reports a sampler or dataset whose `state_dict` leaves out a number that each pass
        adds to and seeds its order with, or (likely) is never restored where the optimizer is; a
        pass whose first batches are skipped (by Accelerate's `skip_first_batches`, by `islice`, by
        `if step < resumed: continue`) by a number of samples, or in every epoch of a loop by the
        number that a checkpoint gives; and, in a loop that goes on at another epoch than 0, a
        `set_epoch` of a sampler whose loader Accelerate has wrapped, which sets it by its own
        count.

    Why is this bad?
        The order of an epoch follows from its number. A run that is resumed after epoch 20
        repeats the orders of the first 20 epochs, in the same batches, and trains for 20 epochs
        too many. The loss looks better than it is, and nothing fails.

    Fix safety:
        Unsafe: where a variable keeps the checkpoint's epoch, the loop begins at it
        (`range(start_epoch, epochs)`); only you know whether that is the next epoch or the last
        one that was trained. A number that a state leaves out is put into it, and taken out where
        it is there; an `__iter__` that resets its position becomes a generator. No fix is offered
        where nothing keeps the epoch, and for batches that are skipped.

    How it is proved:
        Invariant `runs`: the fixture resumes from its own checkpoint and stops where it reads an
        order again; with the loop begun at the checkpoint's epoch it runs to its end.

    References:
        - torch/utils/data/distributed.py, `DistributedSampler.__iter__`: the generator is seeded
          with `seed + epoch`
        - https://github.com/modelscope/ms-swift/issues/10050
        - https://github.com/allenai/open-instruct/pull/681
        - https://github.com/huggingface/accelerate/issues/1451
        - torch/utils/data/dataloader.py, `_BaseDataLoaderIter.__init__` and `_reset`: both ask
        - https://github.com/nvidia-cosmos/cosmos-rl/pull/621
        - https://github.com/PrimeIntellect-ai/prime-rl/pull/3299 (at 2b5bb1d, line 219 of
          src/prime_rl/trainer/sft/train.py)
        - met in https://github.com/PKU-YuanGroup/Open-Sora-Plan
          (opensora/train/train_causalvae.py)
    """

    code = "SMP105"
    name = "epoch-lost-on-resuming"
    symptoms = (
        "resumed training repeats batches it has already seen",
        "resumed training runs for too many epochs",
    )
    invariant = "runs"
    fixable = "sometimes"

    def check(self, model: Model) -> Iterator[Suspect]:
        """Look at each epoch loop that begins as in a new run, and at what forgets its begin."""
        yield from used_up(model)
        yield from set_back(model)
        yield from taken_back(model)
        yield from cut_for_ever(model)
        yield from begun_there_again(model)
        yield from made_before(model)
        yield from left_out(model)
        yield from never_saved(model)
        yield from skipped(model)
        yield from overwritten(model, partial(_begins_elsewhere, model))
        told: set[Call] = set()
        loops = epoch_loops(model) if model.epoch_setters else []
        going_on = {found.loop.scope for found in loops if _begins_elsewhere(model, found.loop)}
        for found in loops:
            if is_test(model.module_of(found.loop.scope)):
                continue
            wanted = list(carriers(model, found.inner.loader))
            restored = restored_before(model, found.loop) if wanted else None
            if restored is None or not trains(model, found) or _begins_with(model, found, restored):
                continue
            counted = _counter_from_first(model, found)
            if found.loop.scope in going_on:
                counted = None  # another phase of the program is the one that goes on
            for call in calls_for(model, found, wanted).hits:
                if call in told:
                    continue
                fix: Fixer | None = None
                if counted is not None and _is_given(model, found, call, counted[0]):
                    begins, counter = Beginning(found.loop.scope, found.loop), "the loop"
                    number = counted[1]
                    if isinstance(found.loop, For):
                        fix = begin_there(model, found.loop, number)
                elif (other := from_zero(model, found, call)) is not None:
                    begins, counter, number = other, "its number", 0
                    given = call.positional[0]
                    fix = partial(count_on, given) if isinstance(given, Bin) else None
                else:
                    continue
                told.add(call)
                why = (
                    Related(model.place(restored.scope, restored), "the checkpoint is loaded here"),
                    Related(
                        model.place(begins.scope, begins.node), f"{counter} begins at {number}"
                    ),
                )
                yield Suspect(
                    model.module_of(call.scope),
                    call,
                    f"`{unparse(call)}` counts from {number} again after a checkpoint was loaded",
                    effect="a resumed run repeats the orders of the first epochs",
                    advice=f"start {counter} at the checkpoint's epoch",
                    why=why,
                    fix=fix,
                    grade=Grade.CERTAIN if reads_epoch(restored.scope) else Grade.LIKELY,
                )


#: The numbers of the first epoch, by whether a loop counts from 0 or from 1.
_FIRST = frozenset({0, 1})


def _counter_from_first(model: Model, found: EpochLoop) -> tuple[Expr, int] | None:
    """The counter of an epoch loop, and the number at which that certainly begins in any run.

    None where the loop skips turns by their number.
    """
    loop, epoch = found.loop, epoch_expression(found.loop)
    if not isinstance(loop, For) or not isinstance(epoch, Name):
        return None
    counts = [node for node in walk(loop.iter) if isinstance(node, Call) and RANGES.is_call(node)]
    if len(counts) != 1 or any(arg.stars for arg in counts[0].args):
        return None
    given = counts[0].positional
    number = _first_number(model, given)
    if number is None or not given or skips_by(found, epoch):
        return None
    return epoch, number


def _begins_with(model: Model, found: EpochLoop, restored: Call) -> bool:
    """Whether where the loop begins decides if the checkpoint is loaded at all."""
    if not isinstance(found.loop, For):
        return False
    starts = {
        node.id
        for count in walk(found.loop.iter)
        if isinstance(count, Call) and RANGES.is_call(count)
        for given in count.positional[: len(count.positional) > 1]
        for node in walk(given)
        if isinstance(node, Name)
    }
    return any(
        isinstance(stmt, If)
        and any(isinstance(node, Name) and node.id in starts for node in walk(stmt.test))
        for call in led_by(model, found.loop, restored)
        if call.stmt is not None
        for stmt in call.stmt.ancestors()
    )


def _begins_elsewhere(model: Model, loop: Loop) -> bool:
    """Whether an epoch loop may begin at another epoch than the first."""
    return isinstance(loop, For) and any(
        _first_number(model, node.positional) is None
        for node in walk(loop.iter)
        if isinstance(node, Call) and RANGES.is_call(node)
    )


def _first_number(model: Model, given: list[Expr]) -> int | None:
    """Where a range with these arguments certainly begins, if at the first epoch of any run."""
    if len(given) < 2:
        return 0
    starts = list(ends(model.flow, given[0], Hop.ASSIGNED | Hop.RETURN))
    numbers = {_number(model, start) for start in starts}
    number = numbers.pop() if len(numbers) == 1 else None
    return number if number in _FIRST else None


def _number(model: Model, start: Expr) -> int | None:
    if isinstance(start, Attr):
        return 0 if is_kept_as_zero(model, start) else None
    return start.value if isinstance(start, Const) and type(start.value) is int else None


def _is_given(model: Model, found: EpochLoop, call: Call, epoch: Expr) -> bool:
    """Whether a call gets the loop's counter as it is."""
    given = next(iter(call.positional), None)
    if given is None:
        return False
    if call.scope is found.loop.scope:
        return call.stmt is not None and found.loop.encloses(call.stmt) and same(given, epoch)
    source = only(model.flow, given, Hop.ASSIGNED | Hop.CALLER)
    return source is not given and same(source, epoch)
