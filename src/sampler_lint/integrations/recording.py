"""A record of this process's loaders, and the report that rank 0 makes of all ranks' records."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sampler_lint.harness.inside.heirs import is_recorded
from sampler_lint.harness.inside.recorder import Recorder, install
from sampler_lint.harness.runs import logs_in, recorded_run
from sampler_lint.harness.trace import Trace
from sampler_lint.reporters import Outcome
from sampler_lint.reporters.text import render_findings
from sampler_lint.trace_report import findings, summary

#: The recorder of this process: torch is patched once.
_installed: Recorder | None = None


class SamplerBugsError(RuntimeError):
    """The recorded run has shown bugs that were to end it (``fail_on``).

    ``codes`` are the linter's codes of all bugs that were found, in order.
    """

    def __init__(self, codes: list[str]) -> None:
        super().__init__(f"sampler-lint found {', '.join(codes)} in what the loaders yielded")
        self.codes = codes


class Recording:
    """Records this process from now on.

    Loaders that were built before are seen from their next pass on, and their place is where
    that pass begins. Every rank makes one, and calls :meth:`finish` when training is over.

    Args:
        fail_on: codes whose findings raise :class:`SamplerBugsError` at the end, on every rank;
            ``"any"`` for all. By default the report is only printed.
        keep: a folder in which rank 0 leaves all ranks' records, for
            ``sampler-lint trace --report``; by default they are deleted.

    Raises:
        ValueError: ``fail_on`` holds something else than codes and ``"any"``.
    """

    def __init__(
        self, fail_on: str | Collection[str] = (), keep: str | os.PathLike[str] | None = None
    ) -> None:
        self.fail_on = {fail_on} if isinstance(fail_on, str) else set(fail_on)
        for code in sorted(self.fail_on - {"any"}):
            if not re.fullmatch(r"SMP\d{3}", code):
                raise ValueError(f"fail_on: {code!r} is neither a code such as 'SMP102' nor 'any'")
        self.keep = os.fspath(keep) if keep is not None else None
        self.begin()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A process that is spawned gets the callback pickled, and records itself."""
        self.__dict__.update(state)
        self.begin()

    def begin(self) -> None:
        """Record this process, if it is not recorded yet (``sampler-lint trace`` may do so)."""
        global _installed
        import torch.utils.data  # noqa: F401  # what the recorder patches

        if _installed is None and not is_recorded(os.environ):
            folder = tempfile.mkdtemp(prefix="sampler-lint-")
            _installed = install(folder)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def finish(self, *, together: bool = True) -> list[str]:
        """Report what all ranks have recorded, on rank 0; the codes found, on every rank.

        Every rank has to call this, unless ``together`` is false: then rank 0 reports what it
        has read itself (after an exception nobody knows where the others are).

        A report that cannot be made ends nothing that ``fail_on`` does not ask to end: it is said
        on rank 0.

        Raises:
            SamplerBugsError: a bug of ``fail_on`` was found.
            RuntimeError: ``fail_on`` is given and the report could not be made.
        """
        recorder = _installed
        if recorder is None or not recorder.directory:
            return []  # `sampler-lint trace` reports
        if recorder.file is not None:
            recorder.guarded(recorder.note_exit)
        records = _records(recorder.directory)
        gathered = _gather(records) if together else [records]
        codes: list[str] | str = self._reported(gathered) if _world()[0] == 0 else []
        if together:
            codes = _told_by_first(codes)
        if isinstance(codes, str):
            if self.fail_on:
                raise RuntimeError(codes)
            return []
        if codes and ("any" in self.fail_on or not self.fail_on.isdisjoint(codes)):
            raise SamplerBugsError(codes)
        return codes

    def _reported(self, gathered: list[dict[str, bytes] | str]) -> list[str] | str:
        """The codes found; or why no report could be made, which is written too."""
        try:
            if lost := [records for records in gathered if isinstance(records, str)]:
                raise OSError(lost[0])
            return self._report([records for records in gathered if isinstance(records, dict)])
        except Exception as error:  # whatever it is, it must not end a training
            why = f"sampler-lint: no report of this run: {type(error).__name__}: {error}"
            sys.stderr.write(f"{why}\n")
            return why

    def _report(self, gathered: list[dict[str, bytes]]) -> list[str]:
        folder = self.keep or tempfile.mkdtemp(prefix="sampler-lint-")
        os.makedirs(folder, exist_ok=True)
        try:
            for number, records in enumerate(gathered):
                for name, data in records.items():
                    # Processes of two machines may have one name; their places differ.
                    Path(folder, f"{number}-{name}").write_bytes(data)
            run = recorded_run(logs_in(folder), os.getcwd(), sys.argv)
            found = findings(run)
            report = render_findings(Outcome(found, files=0, color=False))
            report += "\n".join(summary(Trace(run), len(found)))
            sys.stderr.write(f"{report}\n")
            sys.stderr.flush()
        finally:
            if self.keep is None:
                shutil.rmtree(folder, ignore_errors=True)
        return sorted({finding.code for finding in found})


def _world() -> tuple[int, int]:
    """This process's rank, and how many there are."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return int(os.environ.get("RANK", 0)), 1


def _records(folder: str) -> dict[str, bytes] | str:
    """This process's records by name, or why they cannot be read."""
    try:
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    except OSError as error:  # the other ranks wait for this one
        return str(error)


def _gather(records: dict[str, bytes] | str) -> list[dict[str, bytes] | str]:
    """All ranks' records, on rank 0."""
    import torch.distributed as dist

    rank, size = _world()
    if size == 1:
        return [records]
    every: list[Any] = [None] * size
    dist.gather_object(records, every if rank == 0 else None)
    return every


def _told_by_first(codes: list[str] | str) -> list[str] | str:
    """What rank 0 says."""
    import torch.distributed as dist

    if _world()[1] == 1:
        return codes
    told: list[Any] = [codes]
    dist.broadcast_object_list(told)
    first: list[str] | str = told[0]
    return first
