"""The contract of a sampler, checked over data sizes, world sizes, epochs and seeds.

:func:`check_sampler` is for a test of one's own sampler; :func:`examine` gives the whole report.
Both run the sampler in this process, with simulated ranks (:mod:`sampler_lint.harness.ranks`).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sampler_lint import properties
from sampler_lint.harness import HarnessError, TorchMissingError
from sampler_lint.harness.construct import as_meant, name_of
from sampler_lint.harness.frameworks import FRAMEWORKS, Prepare, installed, load, user_loader
from sampler_lint.harness.promises import PROMISES, Experiment, Promise, world_order
from sampler_lint.harness.ranks import (
    Case,
    Pass,
    RankTrace,
    Setting,
    Simulator,
    Tell,
    plain,
    tell_epoch,
)
from sampler_lint.properties import ENOUGH, Observation, Share, Violation, shares

#: None, one, fewer than ranks, primes, multiples of every world size, and large enough to shuffle.
SIZES = (0, 1, 2, 3, 7, 8, 13, 100, 101)
WORLD_SIZES = (1, 2, 3, 4, 8, 64, 4096)
SEEDS = (0, 1)
EPOCHS = 3
BATCH_SIZE = 4

#: Seconds after which no further experiment is begun.
TIME_LIMIT = 30.0

#: Worlds larger than these are tried with two sizes, or with one, and with one seed and epoch.
LARGE_WORLD = 16
HUGE_WORLD = 256

#: Orders of this many samples are not equal by chance, even where little is shuffled.
LARGE = 32

#: Sizes on which a sampler that is stuck on the largest may be stuck, too, before it is given up:
#: each takes as long as :data:`ranks.STUCK`.
MOST_STUCK = 2

#: Experiments made to find a smaller counterexample.
SHRINKS = 200


class CannotBuildError(HarnessError):
    """The sampler could not be built at all; the message says why."""


class ContractError(AssertionError):
    """A sampler breaks promises; the message has a line for each, to paste into a test."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.render(only_broken=True))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one promise."""

    promise: str
    verdict: str
    """``kept``, ``broken``, ``n/a``, or ``unknown`` when nothing could be seen."""
    reason: str = ""
    """What was seen, or why the promise does not apply."""
    setting: Setting | None = None
    """The smallest input that breaks it."""
    epochs: int = 1
    """How many epochs it takes to see it."""
    call: str = ""
    """The line that shows it again."""


@dataclass(slots=True)
class Report:
    """All promises of one sampler."""

    name: str
    judgements: dict[str, Judgement]
    refusals: list[str] = field(default_factory=list)
    """Inputs for which every rank's constructor raised alike: a no, not a violation."""
    notes: list[str] = field(default_factory=list)
    """What breaks no promise and may still surprise."""
    experiments: int = 0
    seconds: float = 0.0
    guessed: str = ""
    """What stood for parameters that do not say what they want."""

    @property
    def broken(self) -> list[Judgement]:
        """The broken promises."""
        return [one for one in self.judgements.values() if one.verdict == "broken"]

    def render(self, *, only_broken: bool = False) -> str:
        """The report for a person."""
        shown = self.broken if only_broken else list(self.judgements.values())
        count = len(self.broken)
        lines = [f"{self.name}: {f'{count} promises' if count != 1 else '1 promise'} broken"]
        for one in shown:
            word = one.verdict.upper() if one.verdict == "broken" else one.verdict
            lines.append(f"  {one.promise:<15}{word:<8}{one.reason}".rstrip())
            if one.call:
                lines.append(f"    {one.call}")
        if self.guessed:
            lines.append(f"  tried with {self.guessed}, a guess; --kw (or kw=) gives another")
        if not only_broken:
            lines += [f"  refused: {text}" for text in self.refusals]
            lines += [f"  note: {text}" for text in self.notes]
            lines.append(f"  {self.experiments} experiments in {self.seconds:.1f} s")
        return "\n".join(lines)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The report that :meth:`to_dict` made plain."""
        judgements = {}
        for name, told in data["promises"].items():
            smallest, call = dict(told["smallest"] or {}), told["call"] or ""
            epochs = smallest.pop("epochs", 1)
            setting = Setting(**smallest) if smallest else None
            judgements[name] = Judgement(
                name, told["verdict"], told["reason"], setting, epochs, call
            )
        rest = {
            name: data[name] for name in ("refusals", "notes", "experiments", "seconds", "guessed")
        }
        return cls(data["sampler"], judgements, **rest)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        promises = {}
        for one in self.judgements.values():
            smallest = one.setting and {
                "size": one.setting.size,
                "world_size": one.setting.world_size,
                "seed": one.setting.seed,
                "epochs": one.epochs,
                "batch_size": one.setting.batch_size,
            }
            promises[one.promise] = {
                "verdict": one.verdict,
                "reason": one.reason,
                "smallest": smallest,
                "call": one.call or None,
            }
        return {
            "sampler": self.name,
            "promises": promises,
            "refusals": self.refusals,
            "notes": self.notes,
            "experiments": self.experiments,
            "seconds": round(self.seconds, 3),
            "guessed": self.guessed,
        }


def check_sampler(
    factory: Callable[..., Any], *, allow: Collection[str] = (), **options: Any
) -> Report:
    """Check that a sampler keeps its contract; for tests.

    ``factory`` is a sampler class, or a function that builds one. What its parameters want is
    read from their names: ``lambda dataset, num_replicas, rank, seed: MySampler(…)``. Promises
    that the sampler breaks on purpose go into ``allow``. The other options are those of
    :func:`examine`.

    Raises:
        ContractError: a promise is broken; an ``AssertionError`` with the smallest
            counterexamples.
        CannotGuessError: a parameter without default means nothing known.
        CannotBuildError: the sampler cannot be built on any input.
        ValueError: there is no such promise.
    """
    __tracebackhide__ = True  # pytest shows the test, not this function
    _known(allow)
    report = examine(factory, **options)
    if any(one.promise not in allow for one in report.broken):
        kept = {k: v for k, v in report.judgements.items() if k not in allow}
        raise ContractError(dataclasses.replace(report, judgements=kept))
    return report


def examine(
    factory: Callable[..., Any],
    *,
    kw: Mapping[str, Any] | None = None,
    sizes: Sequence[int] = SIZES,
    world_sizes: Sequence[int] = WORLD_SIZES,
    epochs: int = EPOCHS,
    seeds: Sequence[int] = SEEDS,
    batch_size: int = BATCH_SIZE,
    promises: Collection[str] | None = None,
    tell: Tell = tell_epoch,
    index: Callable[[Any], Any] = plain,
    frameworks: Collection[str] = (),
    time_limit: float = TIME_LIMIT,
    progress: Callable[[Setting], None] = lambda setting: None,
    name: str | None = None,
) -> Report:
    """Try a sampler on inputs in the order of their size and judge every promise.

    ``kw`` are values for parameters whose names tell nothing. ``tell(sampler, epoch)`` is what
    the training loop does before an epoch (by default ``set_epoch`` where it is found), and
    ``index`` turns what is yielded into an index or a list of them. Of ``frameworks``
    (``lightning``, ``accelerate``; they must be installed) it is tried what they make of a loader
    with the sampler. ``progress`` hears of each input before it is tried.

    Raises:
        CannotGuessError: a parameter without default means nothing known.
        CannotBuildError: the sampler cannot be built on any input.
        TorchMissingError: torch is not installed.
        ValueError: there is no such promise.
    """
    if importlib.util.find_spec("torch") is None:
        raise TorchMissingError
    importlib.import_module("torch")
    meant = as_meant(
        factory, kw, functools.partial(Simulator, tell=tell, index=index), max(SIZES), batch_size
    )
    examination = _Examination(
        Simulator(meant.build, tell=tell, index=index),
        [PROMISES[one] for one in PROMISES if one in _known(promises or PROMISES)],
        epochs=epochs,
        deadline=time.monotonic() + time_limit,
        progress=progress,
    )
    settings = [Setting(n, w, s, batch_size) for n, w, s in _grid(sizes, world_sizes, seeds)]
    started = time.monotonic()
    examination.run(settings)
    report = examination.report(name or name_of(factory), functools.partial(_call, factory, kw))
    for framework in frameworks:
        report.judgements[framework] = examination.framework(framework, batch_size)
    report.guessed = meant.guessed
    report.seconds = time.monotonic() - started
    return report


def _known(names: Collection[str]) -> Collection[str]:
    for one in names:
        if one not in PROMISES and one not in FRAMEWORKS:
            raise ValueError(f"no promise is called {one!r}; known are {', '.join(PROMISES)}")
    return names


def _grid(
    sizes: Sequence[int], world_sizes: Sequence[int], seeds: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Size, world size and seed of all experiments, the small ones first."""
    for size in sorted(set(sizes)):
        for world_size in sorted(set(world_sizes)):
            if world_size <= LARGE_WORLD:
                for seed in seeds:
                    yield size, world_size, seed
    for world_size in sorted(set(world_sizes)):
        if world_size > LARGE_WORLD:
            some = {world_size + 1} if world_size > HUGE_WORLD else {world_size + 1, max(sizes)}
            for size in sorted(some):
                yield size, world_size, seeds[0]


def _call(
    factory: Callable[..., Any], kw: Mapping[str, Any] | None, setting: Setting, epochs: int
) -> str:
    """The call of :func:`check_sampler` that shows a counterexample again."""
    name = name_of(factory)
    parts = [
        "factory" if name == "<lambda>" else name,
        f"sizes=[{setting.size}]",
        f"world_sizes=[{setting.world_size}]",
        f"seeds=[{setting.seed}]",
        f"epochs={epochs}",
    ]
    if setting.batch_size != BATCH_SIZE:
        parts.append(f"batch_size={setting.batch_size}")
    if kw:
        parts.append(f"kw={dict(kw)!r}")
    return f"check_sampler({', '.join(parts)})"


#: The first violation of a promise, in the order of size.
_Seen = tuple[Setting, Violation]


class _Examination:
    """The experiments made with one sampler, and what was seen in them."""

    def __init__(
        self,
        simulator: Simulator,
        promises: Sequence[Promise],
        *,
        epochs: int,
        deadline: float,
        progress: Callable[[Setting], None],
    ) -> None:
        self._simulator = simulator
        self._promises = promises
        self._epochs = epochs
        self._deadline = deadline
        self._progress = progress
        self._sharded = True
        self._batch = 1
        self._kept: list[Experiment] = []
        self._lone: Experiment | None = None
        self._seen: dict[str, _Seen] = {}
        self._refusals: dict[str, list[str]] = {}
        self._left_out: list[Setting] = []
        self._given_up: set[Setting] = set()
        self._stuck_at_last = False
        self._count = 0
        self._slowest = 0.0

    # -- making experiments

    def run(self, settings: Sequence[Setting]) -> None:
        """Make the experiments and note the first violation of each promise."""
        self._sharded = self._knows_rank(settings)
        done: set[Setting] = set()
        stuck: set[int] = set()
        for setting in settings:
            if not self._sharded:
                # Every rank is the same to it, so one rank is the whole world.
                setting = Setting(setting.size, 1, setting.seed, setting.batch_size)
            if setting in done or setting.size in stuck:
                continue
            if setting.world_size > LARGE_WORLD and self._endless():
                continue  # more ranks of it show nothing else
            if not setting.size and self._simulator.endless:
                continue  # it would look for a sample for ever
            if self._stuck_at_last and len(stuck) >= MOST_STUCK:
                self._given_up.add(setting)
                continue
            done.add(setting)
            if not self._affordable(setting):
                self._left_out.append(setting)
                continue
            experiment = self._experiment(setting)
            if len(experiment.ranks) < setting.world_size and not experiment.stuck:
                self._left_out.append(setting)  # time was up among its ranks
                continue
            if experiment.stuck:
                stuck.add(setting.size)
            if experiment.refused:
                self._refusals.setdefault(experiment.refused, []).append(_where(setting))
            else:
                self._kept.append(experiment)
        reads = any(one.setting.size for one in self._kept)
        if not self._kept or (self._refusals and not reads):  # of no samples, anything can be made
            reasons = "; ".join(self._refusals) or "there was no time"
            raise CannotBuildError(f"it cannot be built on any input: {reasons}")
        given = [item for one in self._passes() for item in one.items]
        if given and all(isinstance(item, str) for item in given):
            raise CannotBuildError(f"it yields {given[0]!r} and such, which are no indices")

    def _knows_rank(self, settings: Sequence[Setting]) -> bool:
        """Whether the sampler is told its rank, asks for it, or reads other data on another."""
        for size in sorted({s.size for s in settings}, reverse=True):
            one = next(s for s in settings if s.size == size)
            setting = Setting(size, 2, one.seed, one.batch_size)
            self._progress(setting)
            ranks = self._simulator.world(setting, 1)
            self._stuck_at_last = any(rank.stuck for rank in ranks)
            self._simulator.endless |= any(one.endless for rank in ranks for one in rank.passes)
            if any(rank.knows_rank for rank in ranks):
                return True
            if self._stuck_at_last:
                return False
            passes = [rank.passes[0].items for rank in ranks if rank.passes]
            if len(passes) == 2:
                return passes[0] != passes[1]
        return False

    def _affordable(self, setting: Setting) -> bool:
        left = self._deadline - time.monotonic()
        cost = self._slowest * max(1, setting.world_size / LARGE_WORLD)
        return left > min(cost, TIME_LIMIT / 2)

    def _experiment(self, setting: Setting) -> Experiment:
        started = time.monotonic()
        self._progress(setting)
        self._count += 1
        world = functools.partial(self._simulator.world, setting)
        if setting.world_size > LARGE_WORLD:
            experiment = Experiment.of(setting, world(1, until=self._deadline))
        else:
            ends = sorted({0, setting.world_size - 1})
            ranks = world(self._epochs)
            errors = [
                one.error
                for rank in ranks
                for one in rank.passes[:1]
                if one.error and not one.stuck and not one.slipped
            ]
            if not setting.size and len(errors) == len(ranks):
                for rank, error in zip(ranks, errors, strict=True):  # no rank gives any of nothing
                    rank.refusal = rank.refusal or error.removeprefix("raises ")
            experiment = Experiment.of(setting, ranks)
            experiment.sharded = self._sharded
            if not any(rank.refusal for rank in ranks) and not experiment.stuck:
                experiment.apart = world(self._epochs, apart=True)
                experiment.again = world(self._epochs, ranks=ends)
                if self._epochs > 1 and ranks[0].route != "none":
                    experiment.jumped = world([1], ranks=ends)
                other = Setting(
                    setting.size, setting.world_size, setting.seed + 1, setting.batch_size
                )
                experiment.other_seed = self._simulator.world(other, 1)
                self._resume(experiment)
            if not experiment.stuck:  # an interrupted one tells nothing of what others take
                self._slowest = max(self._slowest, time.monotonic() - started)
        return experiment

    def _resume(self, experiment: Experiment) -> None:
        passes = experiment.ranks[0].passes
        if experiment.endless or experiment.ranks[0].error or not passes:
            return
        half = len(passes[0].items) // 2
        if not half:
            return
        try:
            experiment.resumed = self._simulator.resumed(experiment.setting, 0, half)
        except Exception as error:
            experiment.resume_error = f"{type(error).__name__}: {error}"

    # -- judging

    def _judge(self) -> None:
        """Note the first violation of each promise."""
        self._batch = max((one.largest for one in self._passes()), default=1)
        most = max((one.setting.size for one in self._kept), default=0)
        large = max(ENOUGH, min(LARGE, most))
        for experiment in self._kept:
            experiment.batch = max(experiment.batch, self._batch)
            for promise in self._promises:
                if promise.by_order and experiment.setting.size < large:
                    continue
                violation = None if promise.name in self._seen else promise.judge(experiment)
                if violation:
                    self._seen[promise.name] = experiment.setting, violation

    def report(self, name: str, call: Callable[[Setting, int], str]) -> Report:
        """The judgements, each broken promise with its smallest counterexample."""
        self._judge()
        judgements = {}
        for promise in self._promises:
            seen, reason = self._seen.get(promise.name), self._not_applicable(promise)
            alike = self._alike() if reason is not None and promise.name == "disjoint" else None
            if reason is not None and alike is None:
                judgements[promise.name] = Judgement(promise.name, "n/a", reason)
            elif (seen := alike or seen) is None and promise.of_order and not self._reads_enough():
                reason = f"no dataset of {ENOUGH} samples or more was read"
                judgements[promise.name] = Judgement(promise.name, "unknown", reason)
            elif seen is None:
                judgements[promise.name] = Judgement(promise.name, "kept")
            else:
                setting, violation = alike or self._shrunk(promise, *seen)
                epochs = violation.epoch + 1
                where = f", epoch {violation.epoch}" if violation.epoch else ""
                judgements[promise.name] = Judgement(
                    promise.name,
                    "broken",
                    f"{_where(setting)}{where}: {violation.text}",
                    setting,
                    epochs,
                    call(setting, epochs),
                )
        refusals = [
            f"{places[0]}{f' and {len(places) - 1} more' if places[1:] else ''}: {reason}"
            for reason, places in self._refusals.items()
        ]
        return Report(name, judgements, refusals, self._notes(), self._count)

    def framework(self, name: str, batch_size: int) -> Judgement:
        """What a framework makes of a loader with the sampler, on two ranks.

        Raises:
            ValueError: the framework is not known.
        """
        if name not in FRAMEWORKS:
            raise ValueError(f"no framework is called {name!r}; known are {', '.join(FRAMEWORKS)}")
        if not installed(name):
            return Judgement(name, "unknown", "is not installed")
        if name == "accelerate" and self._endless():
            return Judgement(name, "n/a", "never ends")
        load(name)  # before any clock runs
        batches = any(rank.batches for rank in self._traces())
        objects = any(one.objects for rank in self._traces() for one in rank.passes)
        read = False
        settings = [Setting(size, 2, 0, batch_size) for size in (8, 100)]
        built = [one for one in settings if not self._simulator.world(one, 1)[0].refusal]
        largest = Setting(max(one.setting.size for one in self._kept), 2, 0, batch_size)
        for setting in built or [largest]:
            for what, prepare in FRAMEWORKS[name].items():
                self._progress(setting)
                make = functools.partial(
                    _prepared,
                    prepare=prepare,
                    batches=batches,
                    objects=objects,
                    index=self._simulator.index,
                )
                ranks = self._simulator.loaded(setting, make, batches=batches, objects=objects)
                declared = next((one.attributes for one in self._traces()), {})
                for rank in ranks:
                    rank.attributes = {k: v for k, v in declared.items() if k == "drop_last"}
                experiment = Experiment.of(setting, ranks, max(self._batch, batch_size))
                violation = self._spoiled(experiment)
                if violation:
                    reason = f"{_where(setting)}: {what}: {violation.text}"
                    return Judgement(name, "broken", reason, setting)
                read = True
        return Judgement(name, "kept" if read else "unknown")

    def _spoiled(self, experiment: Experiment) -> Violation | None:
        """What is wrong with the shards of a framework's loaders."""
        for rank in experiment.ranks:
            if error := rank.passes[0].error:
                return Violation(f"rank {rank.rank} {error}")
        steps = properties.equal_steps(experiment)
        if steps or self._chooses():
            return steps
        if violation := properties.coverage(experiment):
            setting = experiment.setting
            alone = Experiment.of(setting, self._simulator.world(setting, 1), self._batch)
            unread, without = _unread(experiment), _unread(alone)
            # What a sampler that knows no rank leaves out is no framework's doing; then nothing
            # says how many samples are padding, either.
            own = not any(rank.knows_rank for rank in alone.ranks)
            same = unread is not None and without is not None and unread <= without
            return None if own and same else violation
        return properties.disjoint(experiment)

    def _shrunk(self, promise: Promise, found: Setting, violation: Violation) -> _Seen:
        """The same violation on the smallest input that has it."""
        tried = {one.setting for one in self._kept}
        smallest = ENOUGH if promise.by_order else int(self._simulator.endless)
        count = 0
        for size in range(smallest, found.size):
            for world_size in range(1, min(found.world_size, LARGE_WORLD) + 1):
                setting = Setting(size, world_size, found.seed, found.batch_size)
                if (setting in tried and not promise.by_order) or (
                    world_size > 1 and not self._sharded
                ):
                    continue
                count += 1
                if count > SHRINKS or time.monotonic() > self._deadline:
                    return found, violation
                experiment = self._experiment(setting)
                experiment.batch = max(experiment.batch, self._batch)
                smaller = None if experiment.refused else promise.judge(experiment)
                if smaller:
                    return setting, smaller
        return found, violation

    def _not_applicable(self, promise: Promise) -> str | None:
        """Why the promise says nothing about this sampler; None when it does."""
        name, endless = promise.name, self._endless()
        if name == "equal-steps" and not self._sharded:
            return "knows no ranks"
        # The beginnings of endless shares may show that they are of several orders, never of one.
        apart = self._sharded and name in self._seen
        if endless and (name == "equal-steps" or (name == "ranks-agree" and not apart)):
            return "never ends"
        if name in {"coverage", "disjoint"}:
            crashed = name == "coverage" and any(
                rank.error or rank.reopened_empty for one in self._kept for rank in one.ranks
            )
            if endless and not crashed and name == "coverage":
                return "never ends"
            if not crashed and self._chooses() and (name == "disjoint" or self._leaves_out()):
                return self._chooses()
        if name == "length-is-true" and not self._has_length():
            return "has no len()"
        if name == "reshuffles" and any(rank.once for rank in self._traces()):
            return "refuses a second pass"
        if promise.by_order and self._reads_enough() and not self._shuffles():
            return "does not shuffle"
        if name == "ranks-agree" and self._sharded and self._chooses() and self._follows():
            return "draws with replacement, on each rank for itself"
        if name == "batch-size" and not any(r.batches for one in self._kept for r in one.ranks):
            return "yields indices"
        if name == "resumes" and not any(one.resumed or one.resume_error for one in self._kept):
            return "has no state_dict()"
        return None

    def _alike(self) -> _Seen | None:
        """The first world whose ranks read the same in one order, if those of all do.

        So do they where samples are drawn for each rank, and the rank has no say.
        """
        worlds = [
            (one.setting, passes)
            for one in self._kept
            if self._sharded and len(one.ranks) > 1
            for _, passes in one.epochs()
            if passes[0].count >= ENOUGH
        ]
        if not worlds or not all(properties.read_alike(passes) for _, passes in worlds):
            return None
        return worlds[0][0], Violation("all ranks read the same samples in one order")

    def _traces(self) -> list[RankTrace]:
        return [rank for one in self._kept for rank in one.ranks if not rank.refusal]

    def _passes(self) -> list[Pass]:
        return [one for rank in self._traces() for one in rank.passes]

    def _has_length(self) -> bool:
        return any(one.claimed is not None or one.length_error for one in self._passes())

    def _chooses(self) -> str:
        """How a sampler takes some samples and leaves others, on purpose; empty when not.

        With one rank nobody can take a sample away. What repeats more there than padding could,
        or leaves out samples of every dataset, in every epoch and by a whole batch or more, does
        it by design; what reads nothing at all does not.
        """
        if any(rank.attributes.get("replacement") is True for rank in self._traces()):
            return "draws with replacement"
        seen = self._shares_of_one()
        largest = max((size for size, _ in seen), default=0)
        last = [found for size, found in seen if size == largest]
        if not last or any(found.strange or not found.total for found in last):
            return ""
        found = last[0]
        if all(one.repeats > one.room for one in last):
            left_out = {tuple(one.missing) for one in last}
            if left_out == {()}:
                return "repeats samples, with one rank too"
            if len(left_out) > 1 or len(last) < 2:
                return "draws with replacement, with one rank too"
            gone = f"{len(found.missing)} of {largest} samples"
            return f"leaves out {gone} and repeats others, with one rank too"
        off = len(found.missing) + found.repeats
        if off < (found.round if found.round > 1 else largest // 20):
            return ""
        if not all(one.loses or one.overlaps for _, one in seen):
            return ""
        return f"leaves out {len(found.missing)} of {largest} samples with one rank too"

    def _leaves_out(self) -> bool:
        """Whether one rank alone leaves samples out, or says that it may."""
        replaces = any(rank.attributes.get("replacement") is True for rank in self._traces())
        return replaces or any(found.missing for _, found in self._shares_of_one())

    def _shares_of_one(self) -> list[tuple[int, Share]]:
        """The sizes of datasets, and how one rank alone reads them."""
        large = [one for one in self._kept if one.setting.size >= ENOUGH]
        alone = [one for one in large if one.setting.world_size == 1]
        if large and not alone:  # nobody asked for one rank
            if self._lone is None:
                most = max(one.setting for one in large)
                setting = dataclasses.replace(most, world_size=1)
                ranks = self._simulator.world(setting, self._epochs)
                self._lone = Experiment.of(setting, ranks, self._batch)
            alone = [self._lone]
        # A declared size explains padding for other ranks, of which there are none.
        free = [dataclasses.replace(one, total=None) for one in alone]
        return [(one.setting.size, found) for one in free for _, _, found in shares(one)]

    def _endless(self) -> bool:
        some = [one for one in self._kept if one.setting.size] or self._kept
        return any(one.endless for one in some)

    def _reads_enough(self) -> bool:
        return any(one.setting.size >= ENOUGH and one.epochs() for one in self._kept)

    def _follows(self) -> bool:
        return any(properties.follows_generators(one) for one in self._kept)

    def _shuffles(self) -> bool:
        """Whether the order is meant to be random: it says so, or its order changes."""
        traces = self._traces()
        large = [one for one in self._kept if one.setting.size >= ENOUGH]
        orders = [world_order(one) for one in large]
        changes = (
            any(_all_differ(one) for one in orders)
            or any(
                not properties.same_order(*pair)
                for one in orders
                for pair in properties.compared(one.ranks, one.other_seed)
            )
            or self._follows()
        )
        if changes or any("shuffle" in rank.asked for rank in traces):
            return True
        declared = {rank.attributes["shuffle"] for rank in traces if "shuffle" in rank.attributes}
        if declared:
            return True in declared
        alone = [
            one.indices[: experiment.setting.size]  # behind them is padding
            for experiment in large
            if experiment.setting.world_size == 1
            for _, passes in experiment.epochs()
            for one in passes
        ]
        with_epoch = any(rank.route != "none" for rank in traces)
        return with_epoch and any(order != sorted(order) for order in alone)

    def _notes(self) -> list[str]:
        notes = []
        for one in self._kept:
            ends = [rank.random_state for rank in one.apart]
            generators = [
                name
                for name in (ends[0] if len(ends) > 1 else ())
                if len({state[name] for state in ends}) == 1
            ]
            if generators and one.setting.size:
                notes.append(
                    f"it seeds the global generator of {' and '.join(generators)}: what the "
                    "program draws afterwards is the same on every rank and in every epoch"
                )
                break
        for one in self._kept:
            epochs = [[set(map(str, p.indices)) for p in passes] for _, passes in one.epochs()]
            large = one.setting.size >= LARGE and one.setting.world_size > 1
            if (
                large
                and len(epochs) > 1
                and all(e == epochs[0] for e in epochs)
                and (self._shuffles() and len(set(map(frozenset, epochs[0]))) > 1)
            ):
                notes.append(
                    f"{_where(one.setting)}: each rank reads the same samples in every epoch"
                )
                break
        if once := next((rank.once for rank in self._traces() if rank.once), ""):
            notes.append(f"it refuses a second pass, so one epoch was judged: {once}")
        unheard = {name for rank in self._traces() for name in rank.collectives}
        if unheard:
            notes.append(
                f"it calls {', '.join(sorted(unheard))}, which simulated ranks cannot answer; "
                "see gloo_world"
            )
        if self._given_up:
            sizes = sorted({one.size for one in self._given_up})
            notes.append(
                f"it was stuck on {MOST_STUCK} sizes and on the largest: {len(self._given_up)} "
                f"inputs were not tried (sizes {', '.join(map(str, sizes))})"
            )
        if self._left_out:
            worlds = sorted({one.world_size for one in self._left_out})
            count = len(self._left_out)
            notes.append(
                f"there was no time for {count} input{'s' * (count > 1)} "
                f"(world size{'s' * (len(worlds) > 1)} {', '.join(map(str, worlds))})"
            )
        return notes


def _unread(experiment: Experiment) -> int | None:
    """How many samples no rank reads in the first epoch, if all of them come to its end."""
    return next((len(found.missing) for _, _, found in shares(experiment)), None)


def _all_differ(world: Observation) -> bool:
    """Whether every epoch of a world has an order of its own."""
    alike, judged = properties.repeated(world.ranks[0])
    return judged > 1 and not alike


def _prepared(
    build: Callable[[], Any],
    case: Case,
    *,
    prepare: Prepare,
    batches: bool,
    objects: bool,
    index: Callable[[Any], Any],
) -> Any:
    def make() -> Any:
        return user_loader(build(), case, batches=batches, objects=objects, index=index)

    return prepare(make, case.rank, case.setting.world_size)


def _where(setting: Setting) -> str:
    return f"n={setting.size}, world size {setting.world_size}"
