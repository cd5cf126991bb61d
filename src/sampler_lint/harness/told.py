"""How a diagnosis is told: its code, its sentence, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sampler_lint.harness.inside.objects import is_users
from sampler_lint.harness.runs import Loader, Pass, Run, Stream, relative
from sampler_lint.properties import listed


class Evidence(NamedTuple):
    """What an observation rests on."""

    text: str
    """A sentence for a person."""
    path: str = ""
    """Where it was seen, relative to the run's root; empty if nowhere in a file."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One bug that a run has shown."""

    code: str
    message: str
    """What was seen and what to do, as one sentence."""
    path: str
    line: int
    evidence: tuple[Evidence, ...]
    """Places and numbers."""
    also: tuple[str, ...] = ()
    """Other codes whose bugs look the same from outside."""


def spot(loader: Loader, passes: Sequence[Pass]) -> tuple[str, int]:
    """Where the user meets the loader: where it was built, or else where it is read."""
    if is_users(loader.path) or not passes or not is_users(passes[0].path):
        return loader.path, loader.line
    return passes[0].path, passes[0].line


def places(run: Run, job: Sequence[Stream]) -> list[Evidence]:
    """Where the job's loader was built and is iterated, and what it is."""
    loader, passes = job[0].loader, job[0].passes
    size = "" if loader.dataset_length is None else f" of {loader.dataset_length} samples"
    data = f"{loader.dataset_cls}{size}"
    if loader.subset is not None:
        data = f"{len(loader.subset)} samples of {loader.dataset_cls}"
    chain = " over ".join(sampler["cls"] for sampler in loader.samplers)
    reads = f", indices from {chain}" if chain else ""
    built = f"{loader.cls} built here over {data}{reads}"
    found = [Evidence(built, relative(loader.path, run.root), loader.line)]
    for path, line in dict.fromkeys((one.path, one.line) for one in passes):
        found.append(Evidence("iterated here", relative(path, run.root), line))
    return found[:5]


def who_of(ranks: Sequence[int], size: int) -> str:
    """The ranks in words, of so many."""
    if len(ranks) == size:
        return "both ranks" if size == 2 else "every rank" if size > 1 else "the one rank"
    return f"rank {listed(ranks)}" if len(ranks) == 1 else f"ranks {listed(ranks)}"


def span(numbers: Sequence[int]) -> str:
    """``0-3`` for consecutive numbers, else a list."""
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return listed(numbers)


def percent(part: int, whole: int) -> str:
    """A part in words."""
    return f"{100 * part / whole:.0f} %"
