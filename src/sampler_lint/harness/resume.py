"""Whether a run that is stopped and started again reads what it would have read at one go.

The command runs three times: to its end; again, until each rank has taken some steps; and once
more, as a user would go on. The first runs in one folder, the others in another, both of which
stand in for the current one, so that no run finds the checkpoints of the first.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from sampler_lint.harness import HarnessError
from sampler_lint.harness.command import copy_tree
from sampler_lint.harness.inside.log import STOP_AT
from sampler_lint.harness.runs import Log, Pass, RankRun, Run, Saved
from sampler_lint.harness.told import Diagnosis, spot
from sampler_lint.harness.trace import Trace, trace
from sampler_lint.properties import ENOUGH

#: Steps between the checkpoint and the stop, of which the resumed run has to know nothing.
_BEYOND = 2


@dataclass(frozen=True, slots=True)
class Resumed:
    """The three runs, and what the last one read wrongly."""

    whole: Trace
    resumed: Trace
    found: tuple[Diagnosis, ...]
    told: str
    """What was done and seen, as a sentence."""


def resume_check(
    argv: Sequence[str],
    directory: str | os.PathLike[str],
    *,
    going_on: Sequence[str] = (),
    stop_at: int | None = None,
    stdout: int | None = None,
    timeout: float | None = None,
    tell: Callable[[str], object] | None = None,
) -> Resumed:
    """Run ``argv`` three times and compare; the records are left below ``directory``.

    ``going_on`` is added to the command where it goes on. Each rank is stopped (SIGTERM) at its
    optimizer step ``stop_at``; by default two steps after the checkpoint in the middle of the run.
    ``tell`` is told now and then how far they are.

    Raises:
        HarnessError: the command does not run, does not train, or saves nothing to go on from.
    """
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="sampler-lint-") as scratch:
        folders = [Path(scratch, name) for name in ("whole", "parts")]
        for folder in folders:
            copy_tree(here, folder)

        def run(name: str, folder: Path, more: Sequence[str] = (), stop: int = 0) -> Trace:
            records = Path(directory, name)
            records.mkdir(parents=True, exist_ok=True)
            return trace(
                [*argv, *more],
                records,
                cwd=folder,
                env={STOP_AT: str(stop)} if stop else {STOP_AT: ""},
                stdout=stdout,
                timeout=timeout,
                keep_all=True,
                tell=tell and (lambda text: tell(f"{name} run, {text}")),
            )

        whole = run("whole", folders[0])
        if whole.status != 0 or not whole.run.ranks or not whole.run.ranks[0].log.ended_steps:
            raise HarnessError("the command did not train to its end: there is nothing to compare")
        steps = whole.run.ranks[0].log.ended_steps
        stop = stop_at or _in_the_middle(whole.run.ranks[0].log, steps)
        if not 0 < stop < steps:
            raise HarnessError(f"the run takes {steps} steps: it cannot be stopped at step {stop}")
        stopped = run("stopped", folders[1], stop=stop)
        resumed = run("resumed", folders[1], going_on)
        found, told = _compared(whole.run, stopped.run, resumed.run)
        failed = f" It then failed (status {resumed.status})." if resumed.status else ""
        local = [
            replace(one, path=os.path.join(here, os.path.relpath(one.path, folders[1])))
            if one.path.startswith(str(folders[1]))
            else one
            for one in found
        ]
        if not found:
            told = f"Stopped at step {stop} and started again, {told}"
        return Resumed(whole, resumed, tuple(local), told + failed)


def _in_the_middle(log: Log, steps: int) -> int:
    saved = sorted({one.steps for one in _saves(log) if 0 < one.steps < steps - _BEYOND})
    if not saved:
        return steps // 2
    return min(saved, key=lambda one: abs(one - steps // 2)) + _BEYOND


def _saves(log: Log) -> list[Saved]:
    """When the program saved what it goes on from: an optimizer's state, or else what it wrote."""
    return log.saved or log.written


# -- what was learned from, batch by batch


@dataclass(frozen=True, slots=True)
class _Batch:
    holds: object
    """Its indices; of iterable data, the digests of its samples."""
    owner: Pass


def _readings(rank: RankRun) -> list[list[_Batch]]:
    """The batches that a rank learned from, in their order.

    Those of all loaders, one pass after the other; where passes go on side by side, those of each
    job by themselves.
    """
    every = [*_trained(rank.log)]
    roles = {one.number: loader.role for loader in rank.log.loaders for one in loader.passes}
    beside: Counter[tuple[object, ...]] = Counter()
    jobs: dict[tuple[object, ...], list[_Batch]] = {}
    side_by_side = any(
        one.learned > 1 and one.steps == after.steps for one, after in pairwise(every)
    )
    for one in every:
        role = roles[one.number]
        key = (role, beside[role, one.steps]) if side_by_side else ()
        beside[role, one.steps] += 1
        jobs.setdefault(key, []).extend(_learned(one))
    return [batches for batches in jobs.values() if batches]


def _trained(log: Log) -> Iterator[Pass]:
    """The passes that were learned from, in their order.

    Of a pass that was left after its first batch, only the steps after it tell that.
    """
    training = {loader.role for loader in log.loaders if any(p.learned for p in loader.passes)}
    roles = {one.number: loader.role for loader in log.loaders for one in loader.passes}
    every = sorted((p for loader in log.loaders for p in loader.passes), key=lambda p: p.number)
    for one, after in zip(every, [*every[1:], None], strict=True):
        left = not one.ended and one.yielded and roles[one.number] in training
        stepped = one.taken and (after is None or after.steps > one.steps)
        if one.learned or (left and stepped):
            yield one


def _learned(one: Pass) -> list[_Batch]:
    """The batches of a pass, without those at its beginning that are only read past."""
    held: list[object] = [tuple(batch) for batch in one.batches]
    if not held:
        held = [tuple(samples) for _, samples in one.contents]
    first = one.learned_from - 1 if one.learned else one.yielded - 1
    return [_Batch(batch, one) for batch in held[max(0, first) : one.yielded]]


def _before(saved: Saved, batches: Sequence[_Batch]) -> int:
    """How many of the batches had been learned from when something was saved."""
    count = Counter(one.owner.number for one in batches)
    return sum(
        min(saved.learned.get(number, each), each)
        for number, each in count.items()
        if number < saved.passes
    )


def _compared(whole: Run, stopped: Run, resumed: Run) -> tuple[list[Diagnosis], str]:
    for name, run in (("stopped", stopped), ("resumed", resumed)):
        missing = {rank.rank for rank in whole.ranks} ^ {rank.rank for rank in run.ranks}
        if missing:
            raise HarnessError(
                f"rank {', '.join(map(str, sorted(missing)))} left a record in only one of the "
                f"whole and the {name} run: they cannot be compared"
            )
    # Often the first rank alone saves, for all of them.
    saver = next((rank for rank in stopped.ranks if _saves(rank.log)), None)
    for first, part, rest in zip(whole.ranks, stopped.ranks, resumed.ranks, strict=True):
        saves = part if _saves(part.log) else saver
        saved = _saves(saves.log)[-1] if saves is not None else None
        of_saver = _readings(saves) if saves is not None else []
        read = [*map(_readings, (first, part, rest))]
        if not read[2]:
            raise HarnessError("the run that was to go on learned from nothing")
        for number, (every, begun, gone_on) in enumerate(zip(*read, strict=False)):
            held, known = ([one.holds for one in batches] for batches in (every, begun))
            if known[: ENOUGH * 10] != held[: len(known)][: ENOUGH * 10]:
                raise HarnessError(
                    f"rank {first.rank} reads other data when it is run once more: the order is "
                    "not seeded, or the run has found what another has left (it has to be below "
                    "the current folder)"
                )
            has = saved is not None and number < len(of_saver)
            right = _before(saved, of_saver[number]) if saved and has else None
            told = _fault(held, [one.holds for one in gone_on], right, len(known))
            if told:
                loader = next(one for one in rest.log.loaders if gone_on[0].owner in one.passes)
                message = (
                    f"stopped after {len(known)} batches and started again, rank {first.rank} "
                    f"{told}"
                )
                place = spot(loader, [gone_on[0].owner])
                found = Diagnosis("SMP105", message, *place, ())
                return [found], "The resumed run reads other data."
    return [], "every rank went on where it was saved, and read what the run at one go reads."


def _fault(
    whole: Sequence[object], rest: Sequence[object], right: int | None, stop: int
) -> str | None:
    """What is wrong with the batches of a resumed run, if something is.

    ``right`` is how many came before the saved state, where that is known.
    """
    begins = list(_places_of(whole, rest[:3]))
    if not begins:
        return (
            "reads batches that the run at one go never reads: the order does not go on from "
            "where it was; restore the epoch, the sampler's state or the generators' states"
        )
    if right is None:
        if 0 in begins and rest[: len(whole)] == whole:
            return "begins with the first batch: nothing was saved, or nothing is loaded"
        right = min(begins[0], stop)
    at = min(begins, key=lambda one: abs(one - right))
    if at < right:
        return f"learns from {right - at} batches again, which came before the saved state"
    if at > right:
        return f"skips {at - right} batches, which come after the saved state"
    for place, (one, other) in enumerate(zip(whole[at:], rest, strict=False)):
        if one != other:
            return (
                f"goes on as it should for {place} batches, and then reads others: the next epoch "
                f"is not the one of the run at one go"
            )
    if at + len(rest) < len(whole):
        return f"ends {len(whole) - at - len(rest)} batches earlier than the run at one go"
    if at + len(rest) > len(whole):
        return f"reads {at + len(rest) - len(whole)} batches more than the run at one go"
    return None


def _places_of(whole: Sequence[object], some: Sequence[object]) -> Iterator[int]:
    for at in range(len(whole)):
        if list(whole[at : at + len(some)]) == list(some):
            yield at
