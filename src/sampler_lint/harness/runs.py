"""What a run left behind: the outcome of every rank, and the passes its loaders made."""

from __future__ import annotations

import glob
import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sampler_lint.harness.inside import tape
from sampler_lint.harness.inside.objects import is_users
from sampler_lint.harness.inside.passes import FIRST
from sampler_lint.properties import Index

_FRAME = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+) in ', re.MULTILINE)


#: The recorder's own modules, which stand between a program and torch.
_OURS = os.path.join(os.path.dirname(os.path.abspath(tape.__file__)), "")

#: Where torch waits for other ranks.
_COLLECTIVE = ("/torch/distributed/", "/torch/autograd/", "/torch/nn/parallel/")

#: Words in the names of samplers, or of their attributes, that repeat samples, or choose them.
_REPEAT = ("repeat", "repetition", "rasampler")
_CHOOSE = ("replacement", "weight", "subset", "balanced")


@dataclass(slots=True)
class Pass:
    """One run of a loader from its start (one ``iter()``) on one rank."""

    number: int
    """In the order of their beginning, over all loaders of the process."""
    length: int | None = None
    """``len(loader)`` when the pass began."""
    length_error: str | None = None
    """What ``len(loader)`` raised, unless it was torch's "has no len()"."""
    sampler_length: int | None = None
    """``len()`` of the sampler that a plain ``BatchSampler`` draws from."""
    grad: bool = True
    """Whether gradients were enabled when it began: a validation pass has them off."""
    one_in: int = 1
    """Of so many samples one was kept; see :mod:`.inside.sampling`."""
    path: str = ""
    line: int = 0
    """Where the user's code began it: the ``for`` loop, ``trainer.fit`` …"""
    mark: int = 0
    """Differs when the dataset held other data at its beginning (where that shows)."""
    dataset_values: dict[str, int] = field(default_factory=dict)
    """Attributes of the dataset that are numbers, in the process that reads the loader."""
    random: bool = False
    """The dataset holds a random generator."""
    seed: int | None = None
    """What torch's global generator was seeded with when it began, where that was looked at."""
    generators: dict[str, int] = field(default_factory=dict)
    """The states that the global generators and those of its samplers were in then, by name."""
    contents: list[tuple[list[Index] | None, list[tuple[int, ...]]]] = field(default_factory=list)
    """Of the first batches, the indices and digests of their samples."""
    sizes: list[int] = field(default_factory=list)
    """Of the same batches, how many numbers their largest tensor holds."""
    fed: list[list[int]] = field(default_factory=list)
    """Of the same batches, how many those tensors held that wrapped models were given then."""
    drew: list[bool] = field(default_factory=list)
    """Of the same batches, or of the first that its workers fetched, whether they were fetched
    with random numbers."""
    backwards: int = 0
    """How often the process had computed gradients when the loader ended."""
    steps: int = 0
    """How many steps optimizers had taken when it began."""
    taken: int = 0
    """How many they took after that, until a pass began at later steps, or the program ended."""
    dropped: tuple[int, int, int] | None = None
    """How often gradients were computed at its end that no step has used, the steps then, and how
    many of its batches were given after its end."""
    reduced: list[tuple[str, int, list[float]]] = field(default_factory=list)
    """Where the program added up numbers over the ranks after it, before it learned again, and
    what this rank put in."""
    gathered: list[tuple[str, int, list[float]]] = field(default_factory=list)
    """The same where it gathered them; no numbers if there were more than a few."""
    rows: list[tuple[str, int]] = field(default_factory=list)
    """Where it gathered what it made of each sample of a batch, and left none out."""
    batches: list[list[Index]] = field(default_factory=list)
    """What the index sampler gave, batch by batch; see :attr:`complete`."""
    first: list[Index] = field(default_factory=list)
    """The first few indices, however many are kept."""
    drawn: int = 0
    """Batches the index sampler gave."""
    count: int = 0
    """Indices in them."""
    yielded: int = 0
    """Batches the program took; fewer than :attr:`drawn` when workers read ahead."""
    checksum: int = 0
    """Equal for passes that yielded the same indices in the same order."""
    learned: int = 0
    """Batches after which gradients were computed."""
    learned_from: int = 0
    """The number, from 1, of the first of them."""
    exhausted: bool = False
    """The index sampler (of an iterable dataset: the loader) came to its end."""
    ended: bool = False
    """The loader came to its end: the program took all that there was."""
    cycled: bool = False
    """An ``itertools.cycle`` had stored its batches by then, to give them again."""

    @property
    def complete(self) -> bool:
        """Whether :attr:`batches` holds all indices that were to be kept."""
        return len(self.batches) == self.drawn

    @property
    def indices(self) -> list[Index]:
        """The indices that were kept, in order."""
        return [index for batch in self.batches for index in batch]

    @property
    def begins(self) -> list[Index]:
        """The first few indices that were yielded."""
        return self.first or self.indices[:FIRST]


@dataclass(slots=True)
class Loader:
    """A ``DataLoader`` that one rank built."""

    number: int
    path: str
    line: int
    """Where the user's code built it."""
    cls: str
    makers: list[int]
    """A framework's objects that wrap it and take ``set_epoch`` for it."""
    dataset: int
    """Tells dataset objects of one rank apart."""
    dataset_cls: str
    dataset_length: int | None
    """Of the dataset below any ``Subset``."""
    mark: int
    """Differs when the datasets of two ranks hold different data (where that shows)."""
    subset: list[int] | None
    """The indices that ``Subset`` layers leave of it; None for all."""
    iterable: bool
    batch_size: Any
    drop_last: bool | None
    own_batch_sampler: bool
    """It was built with ``batch_sampler=``."""
    samplers: list[dict[str, Any]]
    """What the indices come from, the outermost first: the number of the ``object``, its
    ``cls`` and ``module``, whether it has ``set_epoch``, whether its code draws an order
    (``shuffles``), and its attributes that are numbers (``values``)."""
    shuffling: bool | None
    """Whether the order is meant to be random; None when nothing says so."""
    elsewhere: bool = False
    """The innermost sampler was built over another dataset."""
    own_iterator: bool = False
    """Its class yields batches in a way of its own: a pass need not be an epoch."""
    workers: int = 0
    users_dataset: bool = False
    """The class of its dataset is the user's own."""
    shuffles: bool = False
    """The code of its dataset draws an order."""
    sources: list[dict[str, Any]] = field(default_factory=list)
    """Of iterable data, the dataset and those in it: the ``cls``, whether its code ``asks`` for
    the rank, the ``sampler`` in it that takes the epoch, and its ``values`` that are numbers."""
    lasting: bool = False
    """Its workers outlive a pass."""
    loads: list[int] = field(default_factory=list)
    """How many passes had begun when the state of it, its samplers or its dataset was loaded: the
    pass after it may be a rest."""
    passes: list[Pass] = field(default_factory=list)

    @property
    def role(self) -> tuple[Any, ...]:
        """Equal for the loaders of different ranks that do the same job."""
        classes = tuple(sampler["cls"] for sampler in self.samplers)
        return (self.path, self.line, self.cls, self.dataset_cls, classes)

    @property
    def job(self) -> tuple[Any, ...]:
        """Equal for the loaders of one rank that do the same job, wherever they are built."""
        classes = tuple(sampler["cls"] for sampler in self.samplers)
        return (self.cls, self.dataset_cls, self.dataset_length, self.mark, classes)

    @property
    def read(self) -> list[Pass]:
        """Its passes but those that were begun for nothing, as some frameworks do."""
        return [one for one in self.passes if one.drawn or one.yielded]

    @property
    def chooses(self) -> bool:
        """Whether a sampler says by its name, or an attribute's, that it repeats or chooses."""
        return self.repeats or self._says(_CHOOSE)

    @property
    def repeats(self) -> bool:
        """Whether one says so that it repeats."""
        return self._says(_REPEAT)

    def _says(self, words: Sequence[str]) -> bool:
        told = [
            [one["cls"], *(n for n, value in one["values"].items() if value is True or value > 1)]
            for one in self.samplers
        ]
        names = " ".join(name for names in told for name in names).lower()
        return any(word in names for word in words)


@dataclass(frozen=True, slots=True)
class SetEpoch:
    """A call of ``set_epoch``."""

    object: int
    cls: str
    value: Any
    passes: int
    """How many passes had begun before it."""
    time: float = 0.0
    path: str = ""
    line: int = 0
    direct: bool = True
    """Called by the user's own code, not by a framework."""


class Saved(NamedTuple):
    """The state of an optimizer was asked for, as one who saves it does, or a file was written."""

    passes: int
    """How many passes had begun."""
    steps: int
    """All steps that were taken."""
    given: int
    """The batches that the pass begun last had given."""
    learned: dict[int, int]
    """Of the passes that may have gone on, by number, how many batches were learned from."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a wrapped model was given to learn from, at its calls 1, 2, 4, 8 …"""

    number: int
    digest: int
    path: str
    line: int


@dataclass(slots=True)
class Log:
    """What the recorder noted in one process."""

    pid: int = 0
    host: str = ""
    attempt: int = 0
    """How often torchrun had started the ranks anew."""
    rank: int = 0
    world_size: int = 1
    groups: list[tuple[int, ...]] = field(default_factory=list)
    """The ranks of its process groups that are smaller than the world."""
    averages: list[tuple[int, ...]] = field(default_factory=list)
    """Groups of ranks that average the gradients of a model."""
    parts: list[tuple[int, ...]] = field(default_factory=list)
    """Groups of ranks each of which holds a part of one parameter."""
    exchanges: list[tuple[int, ...]] = field(default_factory=list)
    """Groups that exchange what a model makes of each sample before gradients are computed."""
    gradients: dict[tuple[int, int], int | None] = field(default_factory=dict)
    """Checksums of what optimizers were given: by optimizer, and by its step."""
    inputs: list[Inputs] = field(default_factory=list)
    resumed: list[tuple[int, int]] = field(default_factory=list)
    """When an optimizer's state was loaded: how many passes had begun, and its steps."""
    scheduled: dict[tuple[int, int], list[tuple[int, int]]] = field(default_factory=dict)
    """The first steps of schedules of the learning rate after each of these times: which it was,
    and how many steps its optimizer had taken in the process."""
    saved: list[Saved] = field(default_factory=list)
    """When it was asked for."""
    written: list[Saved] = field(default_factory=list)
    """When a file was written with ``torch.save``, whatever it holds."""
    joins: bool = False
    """The program uses ``Join``: its ranks may take different numbers of steps."""
    exit: dict[str, Any] | None = None
    """Set when the program came to its end: the ``error`` that ended it, ``path``, ``line``."""
    stepped: dict[int, list[int]] = field(default_factory=dict)
    """How many passes had begun at steps 1, 2, 4, 8 … of each optimizer."""
    ended_steps: int | None = None
    """Steps that optimizers had taken when the program came to its end."""
    draws: list[dict[str, Any]] = field(default_factory=list)
    """The generators from which workers drew at their start: the ``loader``, the ``number`` of the
    pass, the ``worker`` and, by the generator's name, the states before and after (``drawn``)."""
    loaders: list[Loader] = field(default_factory=list)
    set_epochs: list[SetEpoch] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What made the recorder fall silent."""
    full: int | None = None
    """The pass at which its file was full; what came then was only counted."""

    @property
    def trainings(self) -> list[int]:
        """How many passes had begun when a training began: an optimizer takes its first step, and
        those before it no more."""
        every = self.stepped.values()
        return [
            new[0]
            for new in every
            if all(old is new or old[0] > new[0] or old[-1] < new[0] for old in every)
        ]


@dataclass(slots=True)
class Stream:
    """The successive passes of one job in the program, on one rank.

    Usually the passes of one loader; of a chain of loaders when the program builds one anew
    for every epoch.
    """

    loaders: list[Loader]

    @property
    def loader(self) -> Loader:
        """The first of its loaders."""
        return self.loaders[0]

    @property
    def passes(self) -> list[Pass]:
        """Its passes in order."""
        return [one for loader in self.loaders for one in loader.passes]


@dataclass(slots=True)
class RankRun:
    """What became of one rank."""

    rank: int
    outcome: str
    """``finished``, ``died``, ``hung``, or ``stopped`` when it was ended for no fault."""
    reason: str = ""
    """The exception, the exit status, or the place it waited at."""
    place: str | None = None
    """``file:line`` in the user's code of the exception or of the wait."""
    within: list[tuple[str, int]] = field(default_factory=list)
    """The lines of the user's code that were at work then."""
    stdout: str = ""
    stderr: str = ""
    log: Log = field(default_factory=Log)

    def streams(self) -> list[Stream]:
        """Its jobs, each as one stream, in the order in which they were built."""
        return list(_streams(self.log).values())

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        if self.outcome == "hung":
            return f"rank {self.rank} waited for ever{at}"
        if self.outcome == "died":
            return f"rank {self.rank} died{at}: {self.reason}"
        if self.outcome == "stopped":
            return f"rank {self.rank} was{at or ' at work'} when {self.reason}"
        return f"rank {self.rank} finished"


@dataclass(slots=True)
class Run:
    """One run of a program on all its ranks."""

    root: str
    """The folder that places are told relative to."""
    ranks: list[RankRun]
    args: tuple[str, ...] = ()
    duration: float = 0.0

    def __post_init__(self) -> None:
        full = [rank.log.full for rank in self.ranks if rank.log.full is not None]
        for rank in self.ranks if full else ():
            _cut(rank.log, min(full))

    @property
    def finished(self) -> bool:
        """Whether every rank came to its end with exit status 0."""
        return bool(self.ranks) and all(rank.outcome == "finished" for rank in self.ranks)

    @property
    def trouble(self) -> str:
        """What went wrong, the cause before its consequences; empty when nothing did."""
        bad = [rank for rank in self.ranks if rank.outcome != "finished"]
        # Ranks that wait for, or lose the connection to, one that has died tell nothing new.
        own = [rank for rank in bad if rank.outcome == "died" and not _lost_peer(rank.reason)]
        shown = own or bad
        reasons = {(rank.reason, rank.place) for rank in shown}
        if len(shown) == len(self.ranks) > 1 and len(reasons) == 1 and shown[0].outcome == "died":
            return str(shown[0]).replace("rank 0 died", "every rank died", 1)
        return "; ".join(map(str, shown))

    @property
    def lost_peer(self) -> bool:
        """Whether some rank finished while another was still in a collective with it."""
        bad = [rank for rank in self.ranks if rank.outcome != "finished"]
        return 0 < len(bad) < len(self.ranks) and all(_lost_peer(rank.reason) for rank in bad)

    @property
    def stalled(self) -> bool:
        """Whether ranks waited for others, and none of them failed by itself."""
        bad = [rank for rank in self.ranks if rank.outcome != "finished"]
        waited = [rank for rank in bad if rank.outcome == "hung" or _lost_peer(rank.reason)]
        return bool(bad) and len(waited) == len(bad)

    @property
    def recorded(self) -> bool:
        """Whether every rank yielded at least one batch."""
        return bool(self.ranks) and all(
            any(one.drawn or one.yielded for loader in rank.log.loaders for one in loader.passes)
            for rank in self.ranks
        )

    def place(self, loader: Loader) -> str:
        """``file:line`` of the loader's construction."""
        return f"{relative(loader.path, self.root)}:{loader.line}"

    def streams(self) -> list[list[Stream]]:
        """The jobs that every rank has, each as one stream a rank, in rank order."""
        by_rank = [_streams(rank.log) for rank in self.ranks]
        if not by_rank:
            return []
        return [
            [streams[key] for streams in by_rank]
            for key in by_rank[0]
            if all(key in streams for streams in by_rank)
        ]


def _lost_peer(reason: str) -> bool:
    """Whether an exception says that another rank is gone, not that this one did wrong."""
    words = ("closed by peer", "reset by peer", "Timed out waiting", "timeout caused")
    return any(word in reason for word in words)


def _streams(log: Log) -> dict[tuple[Any, ...], Stream]:
    """The rank's jobs: loaders of one role on one dataset, of one sampler or used once each.

    So are those on datasets that are made anew for each epoch of a training, and hold the same.
    """
    chains: dict[tuple[Any, ...], list[Loader]] = {}
    for loader in log.loaders:
        if loader.passes:
            chains.setdefault((*loader.role, loader.dataset), []).append(loader)
    anew: dict[tuple[Any, ...], list[Loader]] = {}
    for key, chain in list(chains.items()):
        (loader, *others), read = chain, chain[0].read
        if not others and len(read) == 1 and read[0].learned:
            training = sum(begun <= read[0].number + 1 for begun in log.trainings)
            same = (*loader.role, training, loader.mark, *(loader.subset or ()))
            if same in anew:
                anew[same] += chains.pop(key)
            else:
                anew[same] = chain
    counts: dict[tuple[Any, ...], int] = {}
    streams: dict[tuple[Any, ...], Stream] = {}
    for chain in chains.values():
        once = all(len(loader.read) <= 1 for loader in chain)
        for members in [chain] if once or _of_one_sampler(chain) else [[one] for one in chain]:
            role = members[0].role
            counts[role] = counts.get(role, 0) + 1
            streams[role, counts[role]] = Stream(members)
    return streams


def _of_one_sampler(loaders: Sequence[Loader]) -> bool:
    """Whether loaders that are read one after the other have one sampler."""
    passes = [one.number for loader in loaders for one in loader.passes]
    of = {one.samplers[-1]["object"] if one.samplers else -one.number for one in loaders}
    return len(of) == 1 and passes == sorted(passes)


def relative(path: str, root: str) -> str:
    """``path`` below ``root``, or as it is."""
    real = os.path.realpath(path)
    base = os.path.realpath(root)
    return os.path.relpath(real, base) if real.startswith(base + os.sep) else path


def read_log(path: str) -> Log:
    """The log that the recorder wrote to ``path``; a last line cut short is left out."""
    log = Log()
    loaders: dict[int, Loader] = {}
    passes: dict[int, Pass] = {}
    loaded: dict[int, list[int]] = {}
    for event in _events(path):
        kind = event.pop("event")
        if kind == "process":
            log.pid, log.host, log.attempt = event["pid"], event["host"], event["attempt"]
        elif kind == "rank":
            log.rank, log.world_size = event["rank"], event["world_size"]
        elif kind == "groups":
            log.groups = [tuple(one) for one in event["ranks"]]
        elif kind == "averages":
            log.averages.append(tuple(event["ranks"]))
        elif kind in ("parts", "exchanges"):
            (log.parts if kind == "parts" else log.exchanges).append(tuple(event["ranks"]))
        elif kind == "step":
            log.gradients[event["optimizer"], event["step"]] = event["gradients"]
            log.stepped.setdefault(event["optimizer"], []).append(len(passes))
        elif kind == "inputs":
            log.inputs.append(Inputs(**event))
        elif kind == "optimizer_loaded":
            log.resumed.append((len(passes), event["steps"]))
        elif kind == "scheduled":
            of_schedule = log.scheduled.setdefault((len(log.resumed), event["schedule"]), [])
            of_schedule.append((event["last"], event["taken"]))
        elif kind in ("optimizer_saved", "saved"):
            learned = {int(number): count for number, count in event["learned"].items()}
            now = Saved(len(passes), event["steps"], event["given"], learned)
            (log.written if kind == "saved" else log.saved).append(now)
        elif kind == "dropped":
            unused = event["backwards"], event["steps"], event["ahead"]
            passes[event["number"]].dropped = unused
        elif kind == "reduced" and event["number"] in passes:
            one = passes[event["number"]]
            metrics = one.gathered if event["gathered"] else one.reduced
            metrics.append((event["path"], event["line"], event["values"]))
        elif kind == "join":
            log.joins = True
        elif kind == "exit":
            log.ended_steps = event.pop("steps", None)
            log.exit = event
        elif kind == "loader":
            loader = Loader(number=event.pop("loader"), **event)
            loaders[loader.number] = loader
            log.loaders.append(loader)
        elif kind == "samplers":
            loader = loaders[event["loader"]]
            loader.samplers, loader.shuffling = event["samplers"], event["shuffling"]
            loader.elsewhere = event["elsewhere"]
        elif kind == "pass":
            owner = loaders[event.pop("loader")]
            current = passes[event["number"]] = Pass(**event)
            owner.passes.append(current)
        elif kind == "first":
            passes[event["number"]].first = event["indices"]
        elif kind == "content":
            samples = [tuple(one) for one in event["samples"]]
            current = passes[event["number"]]
            current.contents.append((event["indices"], samples))
            current.sizes.append(event["size"])
            current.fed.append([])
        elif kind == "generators":
            current = passes[event["number"]]
            current.seed, current.generators = event["seed"], event["states"]
        elif kind == "fetched" and event["number"] in passes:
            passes[event["number"]].drew.append(event["drew"])
        elif kind == "rows":
            passes[event["number"]].rows.append((event["path"], event["line"]))
        elif kind == "cycled":
            passes[event["number"]].cycled = True
        elif kind == "fed":
            passes[event["number"]].fed[-1].append(event["size"])
        elif kind == "loaded":
            loaded.setdefault(event["object"], []).append(len(passes))
        elif kind == "draw":
            passes[event["number"]].batches.append(event["indices"])
        elif kind == "set_epoch":
            log.set_epochs.append(SetEpoch(**event))
        elif kind == "failed":
            log.failures.append(event["reason"])
        elif kind == "full":
            log.full = max(passes, default=0)
    of_workers = os.path.splitext(path)[0] + ".draws"
    if os.path.exists(of_workers):
        for event in _events(of_workers):
            if "drawn" in event:
                log.draws.append(event)
            elif event["number"] in passes:
                passes[event["number"]].drew.append(event["drew"])
    for loader in log.loaders:
        objects = {loader.number, loader.dataset, *(one["object"] for one in loader.samplers)}
        loader.loads = sorted(begun for one in objects for begun in loaded.get(one, ()))
    of_passes = os.path.splitext(path)[0] + ".tape"
    if os.path.exists(of_passes):
        _read_tape(of_passes, passes)
    ends = sorted((*(one.steps for one in passes.values()), log.ended_steps or 0))
    for current in passes.values():
        later = ends[bisect_right(ends, current.steps) :][:1]
        current.taken = later[0] - current.steps if later else 0
    for loader in log.loaders:
        if loader.iterable:  # the index sampler of torch is endless: the loader's end counts
            for current in loader.passes:
                current.drawn, current.exhausted = current.yielded, current.ended
    return log


def _read_tape(path: str, passes: Mapping[int, Pass]) -> None:
    """Add what the tape tells about the passes."""
    for head, numbers in tape.records(path):
        if head > 0 and head - 1 in passes:
            passes[head - 1].batches += map(list, tape.batches_in(numbers))
        elif head < 0 and -1 - head in passes:
            current = passes[-1 - head]
            current.drawn, current.count = numbers[tape.BATCHES], numbers[tape.COUNT]
            current.checksum, current.yielded = numbers[tape.ORDER], numbers[tape.YIELDED]
            if current.yielded < 0:
                current.yielded += current.drawn + 1
            current.learned, current.learned_from = numbers[tape.LEARNED], numbers[tape.BEGAN]
            current.backwards = numbers[tape.BACKWARDS]
            current.exhausted = bool(numbers[tape.ENDS] & tape.SAMPLER_ENDED)
            current.ended = bool(numbers[tape.ENDS] & tape.LOADER_ENDED)


def _events(path: str) -> Iterator[dict[str, Any]]:
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def waiting_within(stack: str, root: str) -> list[tuple[str, int]]:
    """The lines at which a process waits, from its ``faulthandler`` dump, the innermost first.

    Those are below ``root``, or else of no library. The main thread comes last in a dump, and its
    innermost frame first in a thread.
    """
    within: list[tuple[str, int]] = []
    for thread in stack.split("\n\n"):
        frames = [(match["path"], int(match["line"])) for match in _FRAME.finditer(thread)]
        users = [one for one in frames if is_users(one[0]) and not one[0].startswith(_OURS)]
        inside = [one for one in users if relative(one[0], root) != one[0]]
        within = inside or users or within
    return within


def waiting_place(stack: str, root: str) -> str | None:
    """The innermost of these lines: ``file:line``."""
    within = waiting_within(stack, root)
    return f"{relative(within[0][0], root)}:{within[0][1]}" if within else None


def waits_for_ranks(stack: str) -> bool:
    """Whether the main thread of a ``faulthandler`` dump is in a collective."""
    main = stack.rstrip().split("\n\n")[-1].split("Thread 0x")[-1]
    frame = _FRAME.search(main)
    return frame is not None and any(part in frame["path"] for part in _COLLECTIVE)


def logs_in(directory: str) -> list[str]:
    """The paths of the logs that recorded processes left in ``directory``."""
    return sorted(glob.glob(os.path.join(glob.escape(directory), "*.jsonl")))


def log_of(directory: str, pid: int) -> str | None:
    """The path of one process's log, if it left one."""
    return next((path for path in logs_in(directory) if f".{pid}." in path), None)


def recorded_run(left: Iterable[str | Log], root: str, args: Sequence[str] = ()) -> Run:
    """The run whose ranks left these logs, or paths of logs; all count as finished."""
    logs = main_logs(one if isinstance(one, Log) else read_log(one) for one in left)
    ranks = [RankRun(rank, "finished", log=logs[rank]) for rank in sorted(logs)]
    return Run(root, ranks, tuple(args))


def _cut(log: Log, number: int) -> None:
    """Forget what came after the passes that all ranks have a record of."""
    for loader in log.loaders:
        loader.passes = [one for one in loader.passes if one.number < number]
    log.set_epochs = [one for one in log.set_epochs if one.passes < number]
    log.ended_steps, log.exit = None, {**log.exit, "backwards": 0} if log.exit else None


def main_logs(logs: Iterable[Log]) -> dict[int, Log]:
    """The log of each rank.

    A job may leave more: of what a parent did before it became a world, of ranks that were
    started anew, of helper processes. The largest world counts, its last start, and of
    several processes of one rank the one that read most.
    """
    every = list(logs)
    size = max((log.world_size for log in every), default=1)
    chosen: dict[int, Log] = {}
    for log in every:
        if log.world_size == size and (
            log.rank not in chosen or _weight(log) > _weight(chosen[log.rank])
        ):
            chosen[log.rank] = log
    return chosen


def _weight(log: Log) -> tuple[int, int, int]:
    passes = sum(len(loader.passes) for loader in log.loaders)
    return (log.attempt, passes, len(log.loaders))
