"""What a run left behind: the outcome of every rank, and the passes its loaders made."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

#: An index as the log can say it.
Index = int | str | bool | None

_FRAME = re.compile(r'  File "(?P<path>.*)", line (?P<line>\d+) in ')


@dataclass(slots=True)
class Pass:
    """One run of a loader from its start (one ``iter()``) on one rank."""

    number: int
    length: int | None = None
    """``len(loader)`` when the pass began."""
    length_error: str | None = None
    """What ``len(loader)`` raised, unless it was torch's "has no len()"."""
    sampler_length: int | None = None
    """``len()`` of the sampler that a plain ``BatchSampler`` draws from."""
    grad: bool = True
    """Whether gradients were enabled when it began: a validation pass has them off."""
    batches: list[list[Index]] = field(default_factory=list)
    """What the index sampler gave, batch by batch; see :attr:`whole`."""
    drawn: int = 0
    """Batches the index sampler gave."""
    count: int = 0
    """Indices in them."""
    yielded: int = 0
    """Batches the program took; fewer than :attr:`drawn` when workers read ahead."""
    digest: str | None = None
    exhausted: bool = False
    """The index sampler (of an iterable dataset: the loader) came to its end."""

    @property
    def whole(self) -> bool:
        """Whether every index that was handed out is in :attr:`batches`."""
        return len(self.batches) == self.drawn

    @property
    def indices(self) -> list[Index]:
        """The indices that were kept, in order."""
        return [index for batch in self.batches for index in batch]

    @property
    def order(self) -> str:
        """A hash of all indices in their order."""
        if self.digest is not None:
            return self.digest
        text = "".join(
            json.dumps(batch, separators=(",", ":"))[1:-1] + "," for batch in self.batches
        )
        return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


@dataclass(slots=True)
class Loader:
    """A ``DataLoader`` that one rank built."""

    number: int
    path: str
    line: int
    cls: str
    dataset: int
    """Tells dataset objects of one rank apart."""
    dataset_cls: str
    dataset_length: int | None
    """Of the dataset below any ``Subset``."""
    subset: list[int] | None
    """The indices that ``Subset`` layers leave of it; None for all."""
    iterable: bool
    batch_size: Any
    drop_last: bool | None
    num_workers: Any
    samplers: list[dict[str, Any]]
    """What the indices come from, the outermost first: ``object`` and ``cls``."""
    shuffling: bool | None
    """Whether the order is meant to be random; None when nothing says so."""
    passes: list[Pass] = field(default_factory=list)

    @property
    def role(self) -> tuple[Any, ...]:
        """Equal for the loaders of different ranks that do the same job."""
        classes = tuple(sampler["cls"] for sampler in self.samplers)
        return (self.path, self.line, self.cls, self.dataset_cls, classes)


@dataclass(frozen=True, slots=True)
class SetEpoch:
    """A call of ``set_epoch``."""

    object: int
    cls: str
    value: Any
    passes: int
    """How many passes had begun before it."""


@dataclass(slots=True)
class Log:
    """What the recorder noted in one process."""

    pid: int = 0
    rank: int = 0
    world_size: int = 1
    loaders: list[Loader] = field(default_factory=list)
    set_epochs: list[SetEpoch] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What made the recorder fall silent."""


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
    """``finished``, ``died`` or ``hung``."""
    reason: str = ""
    """The exception, the exit status, or the place it waited at."""
    place: str | None = None
    """``file:line`` in the user's code of the exception or of the wait."""
    stdout: str = ""
    stderr: str = ""
    log: Log = field(default_factory=Log)

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        if self.outcome == "hung":
            return f"rank {self.rank} waited for ever{at}"
        if self.outcome == "died":
            return f"rank {self.rank} died{at}: {self.reason}"
        return f"rank {self.rank} finished"


@dataclass(slots=True)
class Run:
    """One run of a program on all its ranks."""

    root: str
    """The folder that places are told relative to."""
    ranks: list[RankRun]
    args: tuple[str, ...] = ()
    duration: float = 0.0

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
    def recorded(self) -> bool:
        """Whether every rank handed out at least one batch."""
        return bool(self.ranks) and all(
            any(one.drawn or one.yielded for loader in rank.log.loaders for one in loader.passes)
            for rank in self.ranks
        )

    def place(self, loader: Loader) -> str:
        """``file:line`` of the loader's construction."""
        return f"{relative(loader.path, self.root)}:{loader.line}"

    def streams(self) -> list[list[Stream]]:
        """The jobs that every rank has, each as one stream a rank, in rank order."""
        by_rank = [_streams(rank.log.loaders) for rank in self.ranks]
        if not by_rank:
            return []
        return [
            [streams[key] for streams in by_rank]
            for key in by_rank[0]
            if all(key in streams for streams in by_rank)
        ]


def _lost_peer(reason: str) -> bool:
    """Whether an exception says that another rank is gone, not that this one did wrong."""
    words = ("Connection closed by peer", "Connection reset by peer", "Timed out waiting")
    return any(word in reason for word in words)


def _streams(loaders: Sequence[Loader]) -> dict[tuple[Any, ...], Stream]:
    """The rank's jobs: loaders of one role on one dataset, used once each, are one job."""
    chains: dict[tuple[Any, ...], list[Loader]] = {}
    for loader in loaders:
        if loader.passes:
            chains.setdefault((*loader.role, loader.dataset), []).append(loader)
    counts: dict[tuple[Any, ...], int] = {}
    streams: dict[tuple[Any, ...], Stream] = {}
    for chain in chains.values():
        once = all(len(loader.passes) == 1 for loader in chain)
        for members in [chain] if once else [[loader] for loader in chain]:
            role = members[0].role
            counts[role] = counts.get(role, 0) + 1
            streams[role, counts[role]] = Stream(members)
    return streams


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
    for event in _events(path):
        kind = event.pop("event")
        if kind == "process":
            log.pid = event["pid"]
        elif kind == "rank":
            log.rank, log.world_size = event["rank"], event["world_size"]
        elif kind == "loader":
            loader = Loader(number=event.pop("loader"), **event)
            loaders[loader.number] = loader
            log.loaders.append(loader)
        elif kind == "pass":
            owner = loaders[event.pop("loader")]
            current = passes[event["number"]] = Pass(**event)
            owner.passes.append(current)
        elif kind == "draw":
            current = passes[event["number"]]
            current.batches.append(event["indices"])
            current.drawn += 1
            current.count += len(event["indices"])
        elif kind == "yield":
            passes[event["number"]].yielded += 1
        elif kind in ("progress", "end"):
            current = passes[event["number"]]
            current.drawn, current.count = event["batches"], event["count"]
            current.yielded, current.digest = event["yielded"], event["digest"]
            current.exhausted = current.exhausted or kind == "end"
        elif kind == "set_epoch":
            log.set_epochs.append(SetEpoch(**event))
        elif kind == "failed":
            log.failures.append(event["reason"])
    for loader in log.loaders:
        if loader.iterable:  # torch draws placeholders for it: only the batches mean something
            for current in loader.passes:
                current.drawn, current.count, current.batches = current.yielded, 0, []
                current.digest = None
    return log


def _events(path: str) -> Iterator[dict[str, Any]]:
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def waiting_place(stack: str, root: str) -> str | None:
    """Where a process waits, from its ``faulthandler`` dump: ``file:line`` below ``root``.

    The main thread comes last in a dump, and its innermost frame first in a thread.
    """
    place = None
    for thread in stack.split("\n\n"):
        for match in _FRAME.finditer(thread):
            path = relative(match["path"], root)
            if path != match["path"] or not os.path.isabs(path):
                place = f"{path}:{match['line']}"
                break
    return place


def main_logs(logs: Iterable[Log]) -> dict[int, Log]:
    """The log of each rank: of several processes of one rank, the one that built loaders."""
    chosen: dict[int, Log] = {}
    for log in logs:
        if log.rank not in chosen or len(log.loaders) > len(chosen[log.rank].loaders):
            chosen[log.rank] = log
    return chosen
