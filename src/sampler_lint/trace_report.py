"""What a recorded run showed, in words: findings and a summary."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sampler_lint import engine
from sampler_lint.findings import Finding, Place, Position, Related
from sampler_lint.harness.diagnosis import diagnose, learns
from sampler_lint.harness.inside.sampling import KEPT_PER_PASS, KEPT_PER_PROCESS
from sampler_lint.harness.runs import Run, relative
from sampler_lint.harness.told import Diagnosis, Evidence
from sampler_lint.harness.trace import Trace


def findings(run: Run) -> list[Finding]:
    """The bugs that the run has shown; where codes look alike, the linter's choice among them."""
    return [finding(one, run) for one in _as_linted(diagnose(run), run)]


def _as_linted(observations: Sequence[Diagnosis], run: Run) -> list[Diagnosis]:
    """The observations, where several codes look alike with the one that the linter finds."""
    unsure = [one for one in observations if one.also]
    if not unsure:
        return list(observations)
    log = run.ranks[0].log
    calls = {call.path for call in log.set_epochs}
    loops = {one.path for loader in log.loaders for one in loader.passes}
    paths = {*calls, *loops, *(loader.path for loader in log.loaders)}
    files = sorted(filter(os.path.isfile, paths))
    report = engine.check(files, engine.Options(), edits=False)
    linted = {each.code: each for each in reversed(report.findings)}
    told = []
    for one in observations:
        code = next((code for code in (one.code, *one.also) if code in linted), None)
        if one.also and code is not None:
            path = os.path.relpath(linted[code].path, run.root)
            text = f"the linter finds {code} here; `sampler-lint rule {code}` explains it"
            note = Evidence(text, path, linted[code].start.row)
            one = replace(one, code=code, evidence=(*one.evidence, note))
        told.append(one)
    return told


def finding(one: Diagnosis, run: Run) -> Finding:
    """A diagnosis as the reporters take it."""
    text = line_of(one.path, one.line)
    first, last = len(text) - len(text.lstrip()) + 1, len(text.rstrip()) + 1
    path = relative(one.path, os.getcwd())
    start, end = Position(max(1, one.line), first), Position(max(1, one.line), max(first, last))
    why = tuple(
        Related(Place(each.path, Position(each.line, 1)) if each.path else "", each.text)
        for each in one.evidence
    )
    return Finding(one.code, one.message, path, start, end, why=why)


def line_of(path: str, row: int) -> str:
    """A line of a file; empty where it cannot be read."""
    with contextlib.suppress(OSError, IndexError):
        return Path(path).read_text("utf-8", "replace").splitlines()[row - 1]
    return ""


def batches(run: Run) -> int:
    """How many batches were read, over all ranks."""
    return sum(
        one.yielded or one.drawn
        for rank in run.ranks
        for loader in rank.log.loaders
        for one in loader.passes
    )


def status(traced: Trace) -> str:
    """How the command ended."""
    assert traced.status is not None
    if traced.status < 0:
        return f"signal {-traced.status}"
    return f"exit status {traced.status}"


def summary(traced: Trace, found: int) -> Iterator[str]:
    """What became of the command and its ranks, and how much was recorded."""
    run = traced.run
    if found:
        yield ""
    if traced.ended_by:
        yield f"The command was ended: {traced.ended_by}."
    elif traced.status not in (None, 0):
        yield f"The command failed: {status(traced)}."
    yield from (f"{rank}." for rank in run.ranks if rank.outcome != "finished")
    if traced.missing:
        yield f"No record of rank {', '.join(map(str, traced.missing))} of {traced.world_size}."
    if traced.left_behind:
        yield f"{_count(traced.left_behind, 'process')} left behind by it had to be killed."
    yield from (f"Recording failed: {one}." for one in traced.failures)
    yield from (f"Not recorded: {one}." for one in traced.unrecorded)
    yield from _bounds(run)
    yield from (f"{one}: the one that read most is judged." for one in traced.repeated)
    if run.ranks and not learns(run):
        yield (
            "No gradients were computed, so what only training needs (a loader that someone "
            "shards, equal steps) was not judged."
        )
    read = batches(run)
    if not read and not found:
        return  # the error says why
    loaders = [loader for rank in run.ranks[:1] for loader in rank.log.loaders if loader.passes]
    epochs = sum(len(loader.passes) for loader in loaders)
    told = "Nothing wrong was seen." if not found else f"Found {_count(found, 'finding')}."
    yield (
        f"{told} Recorded: {_count(len(run.ranks), 'rank')}, {_count(len(loaders), 'loader')}, "
        f"{_count(epochs, 'epoch')} on rank 0, {_count(read, 'batch')}."
    )


def _bounds(run: Run) -> Iterator[str]:
    """What of a large or long run was not kept, and what that may hide."""
    every = [one for rank in run.ranks[:1] for loader in rank.log.loaders for one in loader.passes]
    large = [one for one in every if one.one_in > 1 and one.count]
    if large:
        most = max(one.one_in for one in large)
        kept = min(one.count * len(run.ranks) // one.one_in for one in large)
        exact, rare = 98 / max(1, kept) ** 0.5, 300 / max(1, kept)
        yield (
            f"Of more than {KEPT_PER_PASS} samples, one in {most} was kept, chosen by a hash of "
            f"its index: shares of samples are right to {exact:.1f} points, and what concerns less "
            f"than {rare:.2g} % of them may be missed (--all-indices keeps all)."
        )
    left = sum(one.count > 0 and not one.batches for one in every)
    if left:
        yield (
            f"Of {len(every)} passes on rank {run.ranks[0].rank}, {left} were only counted and "
            f"compared as a whole: once {KEPT_PER_PROCESS} indices are kept, those of a few passes "
            f"at growing distances are."
        )
    for rank in run.ranks:
        if rank.log.full is not None:
            yield f"Rank {rank.rank}'s record was full at pass {rank.log.full}, and ends there."


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith(("ss", "tch")) else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
