"""Run any training command with the recorder in it, to its end whatever that may be.

The command keeps its own standard streams. It runs in a session of its own; what it leaves
behind is killed. A rank that waits for ever is named with the place where it waits.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shlex
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

from sampler_lint.harness import HarnessError
from sampler_lint.harness.command import (
    came_to_end,
    dump_stacks,
    note_wait,
    recorded_environment,
    startable,
)
from sampler_lint.harness.diagnosis import diagnose
from sampler_lint.harness.inside import supervise, tape
from sampler_lint.harness.inside.heirs import SITE, is_recorded
from sampler_lint.harness.inside.log import KEEP_ALL, host_name, stack_path
from sampler_lint.harness.runs import (
    Log,
    Run,
    logs_in,
    read_log,
    recorded_run,
    waiting_place,
    waits_for_ranks,
)
from sampler_lint.properties import listed

#: Seconds without a batch after which the record is looked at for ranks that wait for ever.
STALL = 60.0

#: Seconds that the command gets to end by itself when interrupted.
INTERRUPT_GRACE = 10.0

#: Seconds after which it is first told how far the run is, and the longest time from one telling to
#: the next, which grows with the run: the command writes on the same terminal.
FIRST_TOLD, LONGEST_SILENCE = 10.0, 300.0

#: Variables in which launchers tell a task its number.
_TASKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK")

#: Ranks whose progress is told.
_RANKS_TOLD = 4

#: What was run, left beside the ranks' records by each machine.
ABOUT = "trace.{host}.json"


@dataclass(slots=True)
class Trace:
    """A recorded run of a command."""

    run: Run
    status: int | None = None
    """The command's exit status, minus the signal that ended it; None when it is not known."""
    ended_by: str = ""
    """Why it was ended, if it did not end by itself: ``it was interrupted`` …"""
    left_behind: int = 0
    """Processes that it left behind, which were killed."""
    unrecorded: list[str] = field(default_factory=list)
    """Processes of it in which torch was seen without the recorder: the command, and why."""
    repeated: list[str] = field(default_factory=list)
    """Ranks that several folders have a record of, of which one is judged."""

    @property
    def world_size(self) -> int:
        """How many ranks there are, as far as one of them knows."""
        return max((rank.log.world_size for rank in self.run.ranks), default=0)

    @property
    def failures(self) -> list[str]:
        """Where the recorder had to fall silent."""
        return [f"rank {one.rank}: {why}" for one in self.run.ranks for why in one.log.failures[:1]]

    @property
    def missing(self) -> list[int]:
        """Ranks that left no record."""
        present = {rank.rank for rank in self.run.ranks}
        return [rank for rank in range(self.world_size) if rank not in present]


class _EndedError(Exception):
    """The command is to be ended; the text says why."""


def trace(
    argv: Sequence[str],
    directory: str | os.PathLike[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdout: Any = None,
    timeout: float | None = None,
    stall: float | None = None,
    keep_all: bool = False,
    tell: Callable[[str], object] | None = None,
) -> Trace:
    """Run ``argv`` recorded; the ranks' records are left in ``directory``.

    The command is ended after ``timeout`` seconds; when no rank has read anything for ``stall``
    seconds; and, without ``stall``, when nothing was read for a minute and the record says
    that some rank waits for one that took fewer steps. SIGINT and SIGTERM are passed on to it.
    ``tell`` is told now and then how far it is.

    Raises:
        HarnessError: the command cannot be started, or ``directory`` holds another run.
    """
    root = os.path.abspath(cwd or os.curdir)
    folder = os.path.abspath(directory)
    environment = recorded_environment(folder, {**os.environ, **(env or {})})
    if keep_all:
        environment[KEEP_ALL] = "1"
    about = {"command": list(argv), "root": root, "time": time.time()}
    try:
        with open(os.path.join(folder, ABOUT.format(host=host_name() + _task())), "x") as file:
            json.dump(about, file)
    except FileExistsError:
        raise HarnessError(
            f"{directory} holds the records of another run; give an empty folder"
        ) from None
    started = time.monotonic()
    with supervise.adopting() as others, _signals() as caught:
        child = _start(argv, root, environment, stdout)
        watch = _Watch(folder, root, timeout, stall, tell)
        try:
            ended_by = watch.until_end(child, caught)
        finally:
            # Whatever happens here, nothing of it stays.
            left_behind = _end(child, others)
    run = _collected(folder, root, watch, child.returncode)
    run.args, run.duration = tuple(argv), time.monotonic() - started
    left_behind = 0 if ended_by else left_behind
    return Trace(run, child.returncode, ended_by, left_behind, [*watch.unrecorded])


def _task() -> str:
    """Which of several tasks this is, where a launcher starts one of us for each."""
    numbers = filter(None, map(os.environ.get, _TASKS))
    return next((f"-{number}" for number in numbers), "")


def read(directories: Sequence[str | os.PathLike[str]]) -> Trace:
    """The run that left its records in these folders, one of each node or one of all.

    Raises:
        HarnessError: there is no record in one of them, or one that cannot be read.
    """
    paths: list[str] = []
    for one in {os.path.realpath(one): one for one in directories}.values():
        found = [*logs_in(os.fspath(one))]
        if not found:
            raise HarnessError(f"{one}: no records here")
        paths += found
    about: dict[str, Any] = {}
    for one in directories:
        for path in sorted(Path(one).glob(ABOUT.format(host="*"))):
            with contextlib.suppress(OSError, ValueError):
                about = about or json.loads(path.read_text("utf-8"))
    try:
        root = about.get("root") or os.path.abspath(os.curdir)
        logs = {path: read_log(path) for path in paths}
        run = recorded_run(logs.values(), root, about.get("command") or ())
        return Trace(run, repeated=[*_repeated(run, logs)])
    except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
        raise HarnessError(
            f"{', '.join(map(str, directories))}: a record cannot be read; it is damaged, or of "
            f"another version of sampler-lint ({type(error).__name__}: {error})"
        ) from error


def _repeated(run: Run, logs: Mapping[str, Log]) -> Iterator[str]:
    """The ranks whose start that is judged several folders have a record of."""
    for rank in run.ranks:
        judged = rank.log
        folders = {
            os.path.dirname(path)
            for path, log in logs.items()
            if (log.rank, log.world_size, log.attempt)
            == (judged.rank, judged.world_size, judged.attempt)
            and any(loader.passes for loader in log.loaders)
        }
        if len(folders) > 1:
            yield f"rank {rank.rank} is recorded in {listed(sorted(folders))}"


# -- the command


def _start(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str], stdout: Any
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            startable(argv, environment),
            cwd=cwd,
            env=environment,
            stdout=stdout,
            start_new_session=True,
        )
    except OSError as error:
        raise HarnessError(f"{argv[0]} cannot be started: {error.strerror or error}") from error


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """SIGINT and SIGTERM are collected instead of ending this process."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = {}
    with contextlib.suppress(ValueError):  # not in the main thread: they end up elsewhere
        before = {one: signal.signal(one, note) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(slots=True)
class _Watch:
    """Looks at a running command, its clock and what its ranks have read."""

    directory: str
    root: str
    timeout: float | None
    stall: float | None
    tell: Callable[[str], object] | None = None
    stopped: set[int] = field(default_factory=set)
    """Recorded processes that were there when the command had to be ended."""
    outcome: str = "stopped"
    """``hung`` when they were waiting for ever."""
    reason: str = ""
    unrecorded: dict[str, None] = field(default_factory=dict)
    _seen: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _moved: float = 0.0
    _pid: int = 0
    _tell_after: float = 0.0

    def until_end(self, child: subprocess.Popen[bytes], caught: list[int]) -> str:
        """Wait for the command; why it had to be ended, or nothing."""
        self._pid = child.pid
        started = self._moved = time.monotonic()
        looked = started
        self._tell_after = FIRST_TOLD
        try:
            while child.poll() is None:
                if caught:
                    raise _EndedError("it was interrupted")
                now = time.monotonic()
                if self.timeout is not None and now - started >= self.timeout:
                    raise _EndedError(f"its {self.timeout:g} seconds were up")
                if now - looked >= min(1.0, (self.stall or STALL) / 4):
                    looked = now
                    self._look(now)
                    if self.tell is not None and now - started >= self._tell_after:
                        self._tell_after += min(now - started, LONGEST_SILENCE)
                        self.tell(f"{now - started:.0f} s: {_progress(self._seen)}")
                time.sleep(supervise.TICK)
        except _EndedError as reason:
            self.reason = str(reason)
            below = {child.pid, *supervise.descendants(child.pid)}
            self.stopped = dump_stacks(self.directory, below)
            if caught:
                self._interrupt(child, caught)
        return self.reason

    def _look(self, now: float) -> None:
        """Whether anything has been read since the last look.

        Raises:
            _EndedError: for too long nothing was.
        """
        below = {self._pid, *supervise.descendants(self._pid)}
        self.unrecorded |= dict.fromkeys(unrecorded(below))
        seen = {}
        for path in glob.glob(os.path.join(glob.escape(self.directory), "*.tape")):
            with contextlib.suppress(OSError):
                seen[path] = tape.totals(path)
        if seen != self._seen:
            self._seen, self._moved = seen, now
        if not any(totals and totals[0] for totals in seen.values()):
            self._moved = now  # the clock starts with the first loader that is read
        if self.stall is not None and now - self._moved >= self.stall:
            self.outcome = "hung"
            raise _EndedError(f"no rank read anything for {self.stall:g} seconds")
        if self.stall is None and now - self._moved >= STALL:
            self._moved = now
            found = diagnose(recorded_run(logs_in(self.directory), self.root))
            if any(one.code == "SMP306" for one in found):
                self.outcome = "hung"
                raise _EndedError("a rank waits for ever for one that took fewer steps")
            if self._all_wait():
                self.outcome = "hung"
                raise _EndedError("all ranks wait for each other")

    def _all_wait(self) -> bool:
        """Whether each rank here is in a collective, and stays there: none will end it."""
        looks: list[list[str | None]] = []
        while not looks[1:]:
            below = supervise.descendants(self._pid)
            ranks = {
                rank.log.pid for rank in recorded_run(logs_in(self.directory), self.root).ranks
            }
            asked = dump_stacks(self.directory, {self._pid, *below}) & ranks
            stacks = [Path(stack_path(self.directory, one)).read_text("utf-8") for one in asked]
            if len(asked) < 2 or not all(map(waits_for_ranks, stacks)):
                return False
            looks.append([waiting_place(stack, self.root) for stack in stacks])
        return all(one == looks[0] for one in looks)

    def _interrupt(self, child: subprocess.Popen[bytes], caught: list[int]) -> None:
        """Pass the signals on, and give the command time to end by itself."""
        passed = 0
        until = time.monotonic() + INTERRUPT_GRACE
        while child.poll() is None and time.monotonic() < until and len(caught) < 3:
            for number in caught[passed:]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, number)
            passed = len(caught)
            time.sleep(supervise.TICK)


def _progress(seen: Mapping[str, tuple[int, ...]]) -> str:
    """How much the ranks have read so far, by the totals on their tapes."""
    ranks: dict[str, tuple[int, ...]] = {}
    for path, totals in seen.items():
        name = os.path.basename(path).partition(".rank")[2].partition(".")[0]
        ranks[name] = max(ranks.get(name, ()), totals)
    if not any(totals and totals[0] for totals in ranks.values()):
        return "no loader has been read so far"
    told = [
        f"{f'rank {name}: ' if name else ''}pass {totals[0]}, {totals[1]} batches"
        for name, totals in sorted(ranks.items(), key=lambda one: (len(one[0]), one[0]))
        if totals
    ]
    more = len(told) - _RANKS_TOLD
    return ", ".join([*told[:_RANKS_TOLD], *([f"{more} more ranks"] if more > 0 else [])])


def _end(child: subprocess.Popen[bytes], others: set[int]) -> int:
    """End the command if it still runs, and all that it left; how many processes that were.

    ``others`` are this process's children from before.
    """
    if child.poll() is None:
        child.terminate()  # a launcher ends its ranks itself, and says so
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(supervise.GRACE)
    until = time.monotonic() + supervise.GRACE
    left = _left(child, others)
    while left and child.poll() is not None and time.monotonic() < until:
        time.sleep(supervise.TICK)
        left = _left(child, others)
    count = len(left)
    while left or child.poll() is None:
        if child.poll() is None:
            child.kill()
            child.wait()
        supervise.kill(left)
        time.sleep(supervise.TICK)
        left = _left(child, others)
    if not os.path.isdir("/proc/self"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    return count


def _left(child: subprocess.Popen[bytes], others: set[int]) -> list[int]:
    """What the command has started and is still there; takes the status of what is not."""
    left = supervise.descendants(child.pid) if child.poll() is None else []
    return left + supervise.orphans({child.pid, *others})


# -- its record


def _collected(directory: str, root: str, watch: _Watch, status: int) -> Run:
    """The run, with what became of each rank as far as its record tells."""
    run = recorded_run(logs_in(directory), root)
    for rank in run.ranks:
        log = rank.log
        if came_to_end(rank, root):
            continue
        if watch.reason:
            rank.outcome, rank.reason = watch.outcome, watch.reason
            if log.pid in watch.stopped:
                note_wait(rank, log.pid, directory, root)
        elif status != 0:
            rank.outcome, rank.reason = "died", "it did not come to its end"
    return run


# Processes of a command that read data unseen: Python programs that the recorder is not in.


#: A library that every process with torch in it has loaded.
_TORCH = b"/libtorch"

#: Characters of a command that are shown.
_SHOWN = 80


def unrecorded(pids: Collection[int]) -> Iterator[str]:
    """Each of the processes that has torch and not the recorder: its command, and why."""
    for pid in pids:
        folder = Path("/proc", str(pid))
        try:
            argv = [os.fsdecode(one) for one in (folder / "cmdline").read_bytes().split(b"\0")[:-1]]
            pairs = [os.fsdecode(one) for one in (folder / "environ").read_bytes().split(b"\0")]
            why = _why(argv, dict(one.split("=", 1) for one in pairs if "=" in one))
            if why and _TORCH in (folder / "maps").read_bytes():
                yield f"`{shlex.join(argv)[:_SHOWN]}`: {why}"
        except OSError:  # gone, or another user's
            continue


def _why(argv: list[str], environment: dict[str, str]) -> str:
    options = takewhile(lambda one: one[:1] == "-" and one[1:2] not in "cm-", argv[1:])
    isolated = sorted({*"IES"} & set("".join(options)))
    if isolated:
        return f"Python is run with -{isolated[0]}"
    if is_recorded(environment):
        return ""
    paths = environment.get("PYTHONPATH", "")
    if SITE in paths.split(os.pathsep):
        return "it was given a new environment"
    if not paths:
        return "PYTHONPATH was removed from its environment"
    return f"PYTHONPATH was replaced by {paths}; append $PYTHONPATH to it"
